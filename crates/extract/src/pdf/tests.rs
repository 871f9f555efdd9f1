use std::time::{Duration, Instant};

use lopdf::{EncryptionState, EncryptionVersion, Permissions, Stream, dictionary};

use super::*;

/// A document of pages with these contents, in a font of one byte (`F1`), one of pairs with a map (`F2`) and one whose bytes
/// are named (`F3`); `X1` is a form.
fn document(contents: &[&str]) -> Document {
    let mut document = Document::with_version("1.5");
    let tree = document.new_object_id();
    let plain = document.add_object(dictionary! {
        "Type" => "Font", "Subtype" => "Type1", "BaseFont" => "Helvetica", "Encoding" => "WinAnsiEncoding",
    });
    let map = "beginbfrange <0001> <001A> <0041> endbfrange beginbfchar <0020> <0020> endbfchar";
    let map = document.add_object(Stream::new(dictionary! {}, map.as_bytes().to_vec()));
    let below = dictionary! {
        "Type" => "Font", "Subtype" => "CIDFontType2", "DW" => 600,
        "W" => vec![1.into(), Object::Array(vec![500.into(), 500.into()]), 3.into(), 9.into(), 700.into()],
    };
    let pairs = document.add_object(dictionary! {
        "Type" => "Font", "Subtype" => "Type0", "Encoding" => "Identity-H", "ToUnicode" => map,
        "DescendantFonts" => vec![Object::Dictionary(below)],
    });
    let differences = ["eacute", "uni20AC", "f_f.alt", "u1F600"].map(|name| Object::Name(name.into()));
    let differences = [vec![Object::Integer(65)], differences.to_vec()].concat();
    let named = document.add_object(dictionary! {
        "Type" => "Font", "Subtype" => "Type1",
        "Encoding" => dictionary! { "Type" => "Encoding", "Differences" => differences },
    });
    let form = dictionary! { "Subtype" => "Form", "Matrix" => vec![1.into(), 0.into(), 0.into(), 1.into(), 0.into(), 0.into()] };
    let form =
        document.add_object(Stream::new(form, b"BT /F1 10 Tf 50 50 Td (in a form) Tj ET /X1 Do".to_vec()));
    let resources = document.add_object(dictionary! {
        "Font" => dictionary! { "F1" => plain, "F2" => pairs, "F3" => named },
        "XObject" => dictionary! { "X1" => form },
    });
    let pages: Vec<Object> = contents
        .iter()
        .map(|content| {
            let mut content = Stream::new(dictionary! {}, content.as_bytes().to_vec());
            content.compress().unwrap();
            let content = document.add_object(content);
            let page = dictionary! { "Type" => "Page", "Parent" => tree, "Contents" => content, "Resources" => resources };
            document.add_object(page).into()
        })
        .collect();
    let count = pages.len() as i64;
    document
        .objects
        .insert(tree, dictionary! { "Type" => "Pages", "Kids" => pages, "Count" => count }.into());
    let catalog = document.add_object(dictionary! { "Type" => "Catalog", "Pages" => tree });
    let about = document.add_object(dictionary! { "Title" => Object::string_literal("The  Loom") });
    document.trailer.set("Root", catalog);
    document.trailer.set("Info", about);
    document
}

fn saved(mut document: Document) -> Vec<u8> {
    let mut bytes = Vec::new();
    document.save_to(&mut bytes).unwrap();
    bytes
}

fn pages(contents: &[&str]) -> Vec<String> {
    crate::extract(&saved(document(contents))).unwrap().pages
}

fn page(content: &str) -> String {
    pages(&[content]).remove(0)
}

#[test]
fn each_page_has_its_text_and_the_document_its_title() {
    let extracted =
        crate::extract(&saved(document(&["BT /F1 12 Tf (one) Tj ET", "", "BT /F1 12 Tf (three) Tj ET"])));
    let extracted = extracted.unwrap();
    assert_eq!((extracted.format, extracted.title.as_deref()), (Format::Pdf, Some("The Loom")));
    assert_eq!(extracted.pages, ["one", "", "three"]);
}

#[test]
fn words_lines_and_paragraphs_end_where_the_pen_moves() {
    let content = "BT /F1 10 Tf 1 0 0 1 50 700 Tm [(wa) -20 (rp) -400 (and)] TJ 0 -12 Td (weft) Tj 14 TL T* (next) Tj 0 -30 TD \
                   (far) Tj ET BT /F1 10 Tf 50 600 Td (a) Tj 100 0 Td (cell) Tj ET";
    assert_eq!(page(content), "warp and\nweft\nnext\n\nfar\n\na  cell");
    assert_eq!(page("BT /F1 10 Tf 12 TL (a) Tj (b) ' 1 2 (c) \" ET"), "a\nb\nc");
    // Each glyph placed alone, as some programs do, and words with no space between them.
    assert_eq!(page("BT /F1 10 Tf (a) Tj 5 0 Td (b) Tj 8 0 Td (c) Tj ET"), "ab c");
    // A page that is turned, and text of no height.
    assert_eq!(
        page(
            "q 0 1 -1 0 0 0 cm BT /F1 10 Tf 5 5 Td (up) Tj 0 -12 Td (on) Tj ET Q BT 0 0 0 0 0 0 Tm (x) Tj ET"
        ),
        "up\non\nx"
    );
}

#[test]
fn codes_are_text_by_the_map_of_their_font_or_its_encoding() {
    assert_eq!(page("BT /F2 10 Tf <000100020003> Tj <00200004> Tj ET"), "ABC D");
    assert_eq!(page("BT /F1 10 Tf (\\344\\200 \\(x\\)) Tj ET"), "ä€ (x)");
    assert_eq!(page("BT /F3 10 Tf (ABCDz) Tj /F9 10 Tf (?) Tj ET"), "é€ﬀ😀z?");
}

#[test]
fn a_form_is_drawn_where_it_stands_and_not_in_itself_without_end() {
    let text = page("BT /F1 10 Tf 50 90 Td (before) Tj ET /X1 Do");
    assert!(text.starts_with("before\n\nin a form") && text.matches("in a form").count() < 20, "{text}");
}

#[test]
fn what_is_encrypted_is_read_if_no_password_is_needed_and_else_says_so() {
    let encrypted = |password: &str| {
        let mut document = document(&["BT /F1 10 Tf (secret) Tj ET"]);
        document.trailer.set("ID", vec![Object::string_literal("1"), Object::string_literal("2")]);
        let version = EncryptionVersion::V2 {
            document: &document,
            owner_password: "owner",
            user_password: password,
            key_length: 128,
            permissions: Permissions::all(),
        };
        let state = EncryptionState::try_from(version).unwrap();
        document.encrypt(&state).unwrap();
        crate::extract(&saved(document))
    };
    assert_eq!(encrypted("").unwrap().pages, ["secret"]);
    assert_eq!(encrypted("key"), Err(ExtractError::Encrypted));
}

#[test]
fn scanned_pages_say_that_they_hold_no_text() {
    assert_eq!(crate::extract(&saved(document(&["q Q", "/None Do"]))), Err(ExtractError::NoText(2)));
}

#[test]
fn a_damaged_document_is_an_error_or_what_is_left_of_it() {
    let whole = saved(document(&["BT /F1 10 Tf (one) Tj ET", "BT /F1 10 Tf (two) Tj ET"]));
    assert!(matches!(crate::extract(b"%PDF-1.7 and nothing more"), Err(ExtractError::Damaged(_))));
    for cut in (9..whole.len()).step_by(whole.len() / 40) {
        let _ = crate::extract(&whole[..cut]);
        let mut changed = whole.clone();
        changed[cut] ^= 0x55;
        let _ = crate::extract(&changed);
    }
}

#[test]
fn what_is_packed_is_unpacked_within_a_bound() {
    let began = Instant::now();
    let mut bomb = document(&[""]);
    let mut stream = Stream::new(dictionary! {}, vec![b' '; 64 << 20]);
    stream.compress().unwrap();
    assert!(stream.content.len() < 1 << 20);
    let stream = bomb.add_object(stream);
    let page = bomb.page_iter().next().unwrap();
    bomb.get_object_mut(page).unwrap().as_dict_mut().unwrap().set("Contents", stream);
    assert_eq!(crate::extract(&saved(bomb)), Err(ExtractError::TooLarge(32)));
    assert!(began.elapsed() < Duration::from_secs(60));
}

#[test]
fn objects_that_lead_to_themselves_end() {
    let mut looping = document(&["BT /F1 10 Tf (one) Tj ET"]);
    let page = looping.page_iter().next().unwrap();
    let tree = looping.catalog().unwrap().get(b"Pages").unwrap().as_reference().unwrap();
    let kids = vec![tree.into(), page.into(), page.into()];
    looping.get_object_mut(tree).unwrap().as_dict_mut().unwrap().set("Kids", kids);
    looping.get_object_mut(tree).unwrap().as_dict_mut().unwrap().set("Parent", page);
    looping.get_object_mut(page).unwrap().as_dict_mut().unwrap().set("Parent", tree);
    let own = looping.add_object(Object::Null);
    *looping.get_object_mut(own).unwrap() = own.into();
    looping.get_object_mut(page).unwrap().as_dict_mut().unwrap().set("Resources", own);
    let _ = crate::extract(&saved(looping));
}

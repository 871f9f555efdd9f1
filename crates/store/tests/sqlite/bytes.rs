//! Bytes in the file: none of a forgotten text, few of the others.

use std::path::Path;
use std::sync::Arc;

use loom::{Mode, Op, Slot, ViewName};
use store::{
    AttachedWrites, DraftEdit, DraftName, Forget, NewOutcome, NewSession, OutcomeKind, SessionId,
    SessionKind, Store,
};

use crate::both::block_on;
use crate::home::{Home, OWNER};

const CANARY: &str = "zanzibar quagmire xylophone";

/// Files of a folder that hold one of the words.
fn holding(folder: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        let bytes = std::fs::read(entry.path()).unwrap();
        for word in CANARY.split(' ') {
            if bytes.windows(word.len()).any(|window| window.eq_ignore_ascii_case(word.as_bytes())) {
                found.push(format!("{word} in {:?}", entry.file_name()));
            }
        }
    }
    found
}

async fn fill(home: &Home) -> crate::home::Page {
    let session = NewSession {
        id: SessionId("s".to_owned()),
        workspace: String::new(),
        name: "s".to_owned(),
        kind: SessionKind::Main,
        at: loom::Millis(5),
    };
    let with = AttachedWrites { begins: Some(session), ..AttachedWrites::nothing() };
    let page = home.create_with(OWNER, Mode::Buffer, "kept title", with).await.unwrap();
    for line in 0..300 {
        page.append(&format!("Plain words of line {line}, as many as it takes to fill pages. ")).await;
    }
    let node = page.append(&format!("Here is a {CANARY} in a sentence.")).await;
    page.change(Op::Bookmark { position: node.as_position(), title: Some(CANARY.into()) }).await;
    page.change(Op::Tag { position: node.as_position(), tag: CANARY.into(), on: true }).await;
    page.change(Op::Rename(CANARY.into())).await;
    page.change(Op::Rename("kept title".into())).await;
    let name = DraftName { tree: page.tree, view: ViewName::default(), slot: Slot::Buffer };
    let text = format!("Typing {CANARY} at length. ");
    home.store.edit_draft(OWNER, name, None, DraftEdit::Set { base: None, text }).await.unwrap();
    let note = NewOutcome {
        session: SessionId("s".to_owned()),
        tree: page.tree,
        node: None,
        kind: OutcomeKind::Outcome,
        trust: loom::Trust::Owner,
        text: format!("Noted of {CANARY}."),
        corrects: None,
        guards: Vec::new(),
    };
    home.store.note_outcome(OWNER, note).await.unwrap();
    for line in 0..50 {
        page.change(Op::Tag { position: node.as_position(), tag: format!("t{line}"), on: true }).await;
    }
    page
}

#[test]
fn no_byte_of_a_forgotten_text_is_left() {
    let folder = tempfile::tempdir().unwrap();
    block_on(async {
        let home = Home::new(Arc::new(Store::open(&folder.path().join("loom.db")).unwrap()));
        let page = fill(&home).await;
        assert!(!holding(folder.path()).is_empty(), "the control: it is there before");
        home.store.forget(OWNER, &Forget::Text(CANARY.into()), loom::Millis(5)).await.unwrap();
        assert_eq!(holding(folder.path()), Vec::<String>::new());
        assert_eq!(home.store.check(OWNER).await.unwrap(), Vec::<String>::new());
        assert_eq!(page.text().await.matches("Plain words").count(), 300);
        page.append("It goes on.").await;
    });
    assert_eq!(holding(folder.path()), Vec::<String>::new());
}

#[test]
fn what_cannot_be_scrubbed_while_another_one_reads_is_said_and_is_done_later() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("loom.db");
    block_on(async {
        let home = Home::new(Arc::new(Store::open(&path).unwrap()));
        let page = home.create(Mode::Buffer, "kept title").await;
        let blob = loom::Digest::of(b"picture");
        let mut pictured = crate::home::owner_text(CANARY);
        pictured.content.push(loom::Block::Image { blob, mime: "image/png".into() });
        page.change(Op::Append(pictured)).await;
        let reading = rusqlite::Connection::open(&path).unwrap();
        reading.execute_batch("BEGIN; SELECT count(*) FROM nodes").unwrap();
        let done = home.store.forget(OWNER, &Forget::Text(CANARY.into()), loom::Millis(5)).await.unwrap();
        assert!(!done.is_scrubbed && done.blobs == [blob] && !done.places.is_empty(), "{done:?}");
        assert!(home.store.unfinished_removal(OWNER).await.unwrap().has_to_scrub());
        assert!(!holding(folder.path()).is_empty());
        reading.execute_batch("ROLLBACK").unwrap();
        assert!(home.store.end_forgetting().await.unwrap());
        assert_eq!(holding(folder.path()), Vec::<String>::new());
    });
}

/// Puts the words where nothing is used on a page, as a row that was moved from there leaves a copy.
fn plant(path: &Path) {
    let conn = rusqlite::Connection::open(path).unwrap();
    let mut pages = conn.prepare("SELECT pgno, data FROM sqlite_dbpage WHERE pgno > 1").unwrap();
    let pages = pages.query_map([], |row| Ok((row.get::<_, i64>(0)?, row.get::<_, Vec<u8>>(1)?))).unwrap();
    let short = |page: &[u8], at: usize| usize::from(u16::from_be_bytes([page[at], page[at + 1]]));
    let roomy = pages.map(Result::unwrap).find_map(|(number, mut page)| {
        let first = 8 + 2 * short(&page, 3);
        let is_leaf = page[0] == 13 && short(&page, 5) > first + 2 * CANARY.len();
        page.get_mut(first..first + CANARY.len()).filter(|_| is_leaf)?.copy_from_slice(CANARY.as_bytes());
        Some((number, page))
    });
    let (number, page) = roomy.unwrap();
    conn.execute("UPDATE sqlite_dbpage SET data = ?2 WHERE pgno = ?1", (number, page)).unwrap();
}

/// Rows that were moved from page to page while pages were split: copies of them stand where nothing is used.
#[test]
fn no_byte_of_a_forgotten_text_is_left_where_pages_were_split() {
    let folder = tempfile::tempdir().unwrap();
    block_on(async {
        let home = Home::new(Arc::new(Store::open(&folder.path().join("loom.db")).unwrap()));
        let page = home.create(Mode::Buffer, "kept title").await;
        let node = page.append("A line.").await;
        let mut random = 11_u64;
        for number in 0..900 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let tag =
                format!("{:x} {}", random >> 20, if number % 9 == 0 { CANARY } else { "of no account" });
            page.change(Op::Tag { position: node.as_position(), tag, on: true }).await;
        }
    });
    plant(&folder.path().join("loom.db"));
    block_on(async {
        let home = Home::new(Arc::new(Store::open(&folder.path().join("loom.db")).unwrap()));
        home.store.forget(OWNER, &Forget::Text(CANARY.into()), loom::Millis(5)).await.unwrap();
        assert_eq!(holding(folder.path()), Vec::<String>::new());
        assert_eq!(home.store.check(OWNER).await.unwrap(), Vec::<String>::new());
    });
    assert_eq!(holding(folder.path()), Vec::<String>::new());
}

/// Words that only their last letter tells from the one before stand whole where a page of the index begins.
#[test]
fn no_word_of_a_forgotten_text_is_left_as_a_border_of_the_index() {
    let folder = tempfile::tempdir().unwrap();
    let words = |number: u32| format!("zanzibar{:03}a zanzibar{:03}b", number % 997, number % 997);
    block_on(async {
        let home = Home::new(Arc::new(Store::open(&folder.path().join("loom.db")).unwrap()));
        let page = home.create(Mode::Buffer, "kept title").await;
        for number in 0..1_500 {
            page.append(&format!("quagmire xylophone {}", words(number))).await;
        }
        page.append("plain words").await;
        home.store.forget(OWNER, &Forget::Text("quagmire".into()), loom::Millis(5)).await.unwrap();
        assert_eq!(holding(folder.path()), Vec::<String>::new());
        assert_eq!(home.store.check(OWNER).await.unwrap(), Vec::<String>::new());
    });
}

#[test]
fn no_byte_of_a_purged_tree_is_left() {
    let folder = tempfile::tempdir().unwrap();
    block_on(async {
        let home = Home::new(Arc::new(Store::open(&folder.path().join("loom.db")).unwrap()));
        let page = fill(&home).await;
        home.store.purge(OWNER, page.tree, loom::Millis(5)).await.unwrap();
        assert_eq!(holding(folder.path()), Vec::<String>::new());
        assert_eq!(home.store.check(OWNER).await.unwrap(), Vec::<String>::new());
    });
}

/// Prose of 200 bytes or a little more, most words rare.
fn prose(random: &mut u64) -> String {
    let mut text = String::new();
    while text.len() < 197 {
        *random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let draw = (*random >> 33) as f64 / f64::from(1_u32 << 31);
        // Zipf's law over 20,000 words.
        let rank = (20_000_f64.powf(draw)) as u32;
        let mut number = rank.wrapping_mul(2_654_435_761) >> 8;
        let letters = 2 + rank.ilog2() / 2;
        for _ in 0..letters {
            text.push((b'a' + (number % 23) as u8) as char);
            number = number / 23 + 7;
        }
        text.push(' ');
    }
    text
}

/// The pages of rows and index, without the newest events, whose number is bounded, and without free pages. The
/// index merges its parts by and by; here it does so at once.
fn used(path: &Path) -> f64 {
    let conn = rusqlite::Connection::open(path).unwrap();
    conn.execute("INSERT INTO search (search) VALUES ('optimize')", []).unwrap();
    let sql = "SELECT sum(pgsize) FROM dbstat WHERE name NOT IN ('events', 'sqlite_schema')";
    conn.query_row(sql, [], |row| row.get(0)).unwrap()
}

#[test]
fn a_node_of_200_bytes_costs_less_than_3_2_times_its_text() {
    const NODES: u32 = 2_000;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("loom.db");
    drop(Store::open(&path).unwrap());
    let empty = used(&path);
    let (mut random, mut text) = (7, 0);
    block_on(async {
        let home = Home::new(Arc::new(Store::open(&path).unwrap()));
        let page = home.create(Mode::Buffer, "long").await;
        for _ in 0..NODES {
            let prose = prose(&mut random);
            text += prose.len();
            page.append(&prose).await;
        }
    });
    let bytes = used(&path) - empty;
    let ratio = bytes / text as f64;
    assert!(ratio < 3.2, "{ratio:.2} times the text, {:.0} bytes a node", bytes / f64::from(NODES));
}

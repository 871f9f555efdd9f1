//! What people and other programs read.

use interop::{annotations, html, markdown, plain, training};
use loom::plan::{EditAs, NewText};
use loom::*;
use proptest::prelude::*;

use crate::driver::*;

type Export = fn(&dyn TreeReader, &ViewName, &mut dyn std::io::Write) -> Result<(), interop::ExportError>;

fn written(export: Export, home: &Home) -> String {
    let mut out = Vec::new();
    export(home.tree(), &ViewName::default(), &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

fn dialogue() -> Home {
    let mut home = Home::new(Mode::Dialogue);
    home.say("What is <b>bold</b>? ![p](https://e.test/p.png)");
    home.answer("A tag & more.");
    let answer = home.tip();
    home.run(Op::Edit { position: answer, text: "A tag, & much more.".into(), edit_as: EditAs::Branch })
        .unwrap();
    home.tool("output");
    home
}

#[test]
fn html_of_a_document() {
    insta::assert_snapshot!(written(html::export, &rich()));
}

#[test]
fn html_of_a_dialogue() {
    insta::assert_snapshot!(body(&written(html::export, &dialogue())));
}

#[test]
fn markdown_of_a_dialogue() {
    insta::assert_snapshot!(written(markdown::export, &dialogue()));
}

#[test]
fn text_of_a_dialogue() {
    insta::assert_snapshot!(written(plain::export, &dialogue()));
}

#[test]
fn annotations_of_a_document() {
    insta::assert_snapshot!(written(annotations::export, &rich()));
}

#[test]
fn training_lines() {
    insta::assert_snapshot!(format!(
        "{}{}",
        written(training::export, &dialogue()),
        written(training::export, &rich())
    ));
}

fn body(html: &str) -> String {
    html[html.find("<header>").unwrap()..].to_owned()
}

#[test]
fn html_never_lets_text_out_of_its_place() {
    let hostile =
        "</span></main><script>alert(1)</script><img src=x onerror=alert(1)>\" onmouseover=\"x' --> &lt;";
    let mut home = Home::new(Mode::Dialogue);
    home.run(Op::Rename(hostile.into())).unwrap();
    home.say(hostile);
    home.answer(hostile);
    let place = home.tip();
    home.run(Op::Edit { position: place, text: format!("{hostile}!"), edit_as: EditAs::Version }).unwrap();
    home.run(Op::Edit { position: place, text: format!("{hostile}?"), edit_as: EditAs::Branch }).unwrap();
    home.run(Op::Append(NewText {
        content: vec![
            Block::text(hostile),
            Block::Thinking { text: hostile.into(), opaque: None },
            Block::ToolCall {
                id: "1".into(),
                name: hostile.into(),
                arguments: serde_json::json!({ hostile: hostile }),
            },
            Block::Image { blob: Digest::ZERO, mime: hostile.into() },
        ],
        author: Author { kind: AuthorKind::Model, id: hostile.into(), profile: None },
        role: Some(Role::Assistant),
        trust: Trust::Outside,
    }))
    .unwrap();
    let html = written(html::export, &home);
    let body = body(&html);
    let mut rest = body.as_str();
    // Every tag in the body is one of ours, with attributes of ours.
    while let Some(at) = rest.find('<') {
        let end = rest[at..].find('>').expect("a tag ends") + at;
        let tag = &rest[at + 1..end];
        let name = tag.trim_start_matches('/').split([' ', '>']).next().unwrap();
        let known = [
            "header", "h1", "h2", "main", "section", "span", "bdi", "details", "summary", "div", "em",
            "footer", "ul", "li", "body", "html", "a",
        ];
        assert!(known.contains(&name), "<{tag}>");
        // Outside quotes only names of attributes stand.
        let outside: String = tag.split('"').step_by(2).collect();
        for word in outside.split_whitespace().skip(1) {
            assert!(["class=", "title=", "dir=", "rel=", "href="].contains(&word), "<{tag}>: {word}");
        }
        rest = &rest[end + 1..];
    }
    assert!(html.contains("default-src 'none'") && !html.contains("<script"));
}

#[test]
fn the_policy_of_the_file_names_its_style() {
    let html = written(html::export, &rich());
    let style = &html[html.find("<style>").unwrap() + 7..html.find("</style>").unwrap()];
    let hash = data_encoding::BASE64.encode(&Digest::of(style.as_bytes()).0);
    assert!(html.contains(&format!("style-src 'sha256-{hash}'")));
}

#[test]
fn pruned_and_excluded_text_is_in_no_reading_export() {
    let mut home = Home::new(Mode::Buffer);
    home.say("kept ");
    let kept = home.tip();
    home.say("hidden branch ");
    let hidden = home.tip();
    home.run(Op::Prune(OpTarget::Position(hidden))).unwrap();
    home.say("left out ");
    home.run(Op::Exclude(OpTarget::Position(home.tip()))).unwrap();
    home.say("end");
    assert!(home.tip() != kept);
    for export in
        [html::export as Export, markdown::export, plain::export, annotations::export, training::export]
    {
        let text = written(export, &home);
        assert!(text.contains("kept") && text.contains("end"), "{text}");
        assert!(!text.contains("hidden branch") && !text.contains("left out"), "{text}");
    }
}

#[test]
fn a_tower_of_forks_is_written_without_recursion() {
    let mut home = Home::new(Mode::Buffer);
    for n in 0..120 {
        home.say(&format!("step {n} "));
        let here = home.tip();
        home.run(Op::Edit { position: here, text: format!("other {n} "), edit_as: EditAs::Branch }).unwrap();
        home.run(Op::Switch(here)).unwrap();
    }
    home.run(Op::Move(home.tree().tree().unwrap().root)).unwrap();
    let html = written(html::export, &home);
    assert_eq!(html.matches("<details").count(), html.matches("</details>").count());
    assert!(html.contains("other 119"));
    let (mut depth, mut deepest) = (0_i32, 0);
    for piece in html.split('<') {
        depth += i32::from(piece.starts_with("details")) - i32::from(piece.starts_with("/details"));
        deepest = deepest.max(depth);
    }
    assert!(deepest <= 70, "{deepest}");
}

/// Room for so many bytes; what is written without end meets its end.
struct Limited(usize);

impl std::io::Write for Limited {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0 = self.0.checked_sub(bytes.len()).ok_or(std::io::ErrorKind::StorageFull)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_branch_that_comes_back_to_itself_is_damage_and_not_written_without_end() {
    let mut home = Home::new(Mode::Buffer);
    home.say("one ");
    let first = home.tip();
    home.say("two ");
    home.say("three ");
    let tip = home.tip();
    home.run(Op::Move(first)).unwrap();
    home.say("beside ");
    let beside = home.tip();
    home.run(Op::Switch(tip)).unwrap();
    for child in [first, beside] {
        let mut damaged = home.clone();
        damaged.file.tree.positions.get_mut(&child).unwrap().parent = Some(tip);
        let written = html::export(damaged.tree(), &ViewName::default(), &mut Limited(1 << 20));
        let is_damage = matches!(written, Err(interop::ExportError::Rows(RowError::Damaged { .. })));
        assert!(is_damage, "{child}: {written:?}");
    }
}

const EXPORTS: [Export; 5] =
    [plain::export, markdown::export, html::export, annotations::export, training::export];

/// Bytes of each export of `main`; none of one that met damage.
fn exported_as_all(home: &Home) -> [Option<Vec<u8>>; 5] {
    EXPORTS.map(|export| {
        let mut out = Vec::new();
        match export(home.tree(), &ViewName::default(), &mut out) {
            Ok(()) => Some(out),
            Err(interop::ExportError::Rows(RowError::Damaged { .. })) => None,
            Err(error) => panic!("{error}"),
        }
    })
}

#[test]
fn a_path_that_leads_into_another_branch_is_damage_in_every_export() {
    let mut home = Home::new(Mode::Buffer);
    home.say("both ");
    let fork = home.tip();
    let [other, own] = ["OTHER ", "own "].map(|text| {
        home.run(Op::Move(fork)).unwrap();
        (0..130).for_each(|_| home.say(text));
        home.tip()
    });
    let whole = exported_as_all(&home).map(Option::unwrap);
    let mut met = [0; 5];
    for damaged in loom_testing::crossings(home.tree(), own, other) {
        let sound = home.file.tree.positions.insert(damaged.id, damaged.clone()).unwrap();
        for (at, export) in exported_as_all(&home).into_iter().enumerate() {
            met[at] += usize::from(export.is_none());
            assert!(export.is_none_or(|export| export == whole[at]), "export {at}: {damaged:?}");
        }
        home.file.tree.positions.insert(sound.id, sound);
    }
    assert!(met.iter().all(|met| *met > 130), "{met:?}");
}

#[test]
fn a_tip_that_says_it_is_the_top_is_no_empty_export() {
    let mut home = rich();
    assert!(exported_as_all(&home).iter().all(Option::is_some));
    let tip = home.tip();
    for depth in [0, 1] {
        home.file.tree.positions.get_mut(&tip).unwrap().depth = depth;
        assert_eq!(exported_as_all(&home), [const { None }; 5], "depth {depth}");
    }
}

proptest! {
    #![proptest_config(cases())]

    #[test]
    fn text_of_a_document_is_its_rendering_and_html_holds_it_all(steps in prop::collection::vec(step(), 0..20)) {
        let mut home = Home::new(Mode::Buffer);
        steps.into_iter().for_each(|step| take(&mut home, step));
        prop_assert_eq!(written(plain::export, &home), home.text());
        let html = written(html::export, &home);
        prop_assert_eq!(html.matches("<details").count(), html.matches("</details>").count());
        let (text, block) = annotations::block(home.tree(), &ViewName::default()).unwrap();
        prop_assert_eq!(&text, &home.text());
        // The ranges of all authors cover every cluster once.
        let clusters = text::grapheme::count(&text);
        let mut covered = vec![0; clusters];
        for line in block.lines().filter(|line| line.starts_with(['@', '&'])) {
            for range in line.rsplit(": ").next().unwrap().split_whitespace() {
                let (start, len) = range.split_once(',').unwrap_or((range, "1"));
                let start: usize = start.parse().unwrap();
                covered[start..start + len.parse::<usize>().unwrap()].iter_mut().for_each(|seen| *seen += 1);
            }
        }
        prop_assert!(covered.iter().all(|seen| *seen == 1), "{}", block);
    }
}

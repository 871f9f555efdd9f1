//! Any work at a tree leaves a tree that verifies, and every export of it reads as what the tree shows.
#![no_main]

use arbitrary::Arbitrary;
use drawloom_fuzz::desk::{Action, Desk};
use libfuzzer_sys::fuzz_target;
use loom::{Mode, TreeReader, ViewName};

#[derive(Arbitrary, Debug)]
struct Input {
    dialogue: bool,
    title: String,
    actions: Vec<Action>,
}

fuzz_target!(|input: Input| {
    let desk = Desk::after(input.dialogue, &input.title, input.actions);
    desk.is_sound();
    let main = ViewName::default();
    let written = |export: fn(
        &dyn TreeReader,
        &ViewName,
        &mut dyn std::io::Write,
    ) -> Result<(), interop::ExportError>| {
        let mut out = Vec::new();
        export(&desk.tree, &main, &mut out).expect("an export");
        String::from_utf8(out).expect("an export is UTF-8")
    };
    let html = written(interop::html::export);
    only_our_tags(&html);
    written(interop::markdown::export);
    written(interop::training::export);
    written(interop::annotations::export);
    let plain = written(interop::plain::export);
    if desk.tree.tree().expect("a tree").mode == Mode::Buffer {
        assert_eq!(plain, desk.committed(&main));
    }
});

/// Asserts that every tag of the body is one the export writes, and that all that were opened are closed.
fn only_our_tags(html: &str) {
    const KNOWN: [&str; 19] = [
        "header", "h1", "h2", "main", "section", "span", "bdi", "details", "summary", "div", "em", "footer",
        "ul", "li", "body", "html", "a", "p", "b",
    ];
    let body = &html[html.find("<body>").expect("a body")..];
    for piece in body.split('<').skip(1) {
        let tag = &piece[..piece.find('>').expect("a tag ends")];
        let name = tag.trim_start_matches('/').split([' ', '>']).next().unwrap_or_default();
        assert!(KNOWN.contains(&name), "<{tag}>");
        let outside: String = tag.split('"').step_by(2).collect();
        for word in outside.split_whitespace().skip(1) {
            assert!(["class=", "title=", "dir=", "rel=", "href=", "open"].contains(&word), "<{tag}>");
        }
    }
    assert_eq!(body.matches("<details").count(), body.matches("</details>").count());
}

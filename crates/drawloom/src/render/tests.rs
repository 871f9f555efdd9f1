use commands::results::Told;
use commands::results::maintenance::{Exported, HitShown, HitsShown, PassageNamed};
use commands::results::tree::{NodeNamed, OperationShown, Operations, TreeLine, Trees, ViewLine, Views};
use loom::{Mode, NodeId, TreeId};

use super::*;

/// As an import may bring it: it writes the clipboard and ends its line.
const HOSTILE: &str = "a\u{1b}]52;c;eA==\u{7}\nb\u{202e}";

const TERMINAL: OutputStyle = OutputStyle { terminal: true, color: false, columns: None };
const PIPE: OutputStyle = OutputStyle { terminal: false, color: false, columns: None };

fn ids() -> (TreeId, NodeId) {
    (TreeId::from_bytes([1; 16]), NodeId::from_bytes([2; 16]))
}

fn outcomes() -> Vec<CommandOutcome> {
    let (tree, node) = ids();
    let title = HOSTILE.to_owned();
    let line = TreeLine {
        tree,
        short_id: "s".into(),
        title: title.clone(),
        mode: Mode::Buffer,
        nodes: 2,
        passages: 1,
        updated: 0,
        archived: false,
    };
    let hit = HitShown {
        tree,
        title,
        node,
        short_id: "n".into(),
        tree_short: "s".into(),
        source: commands::results::maintenance::NODE,
        snippet: HOSTILE.into(),
        matches: Vec::new(),
        kind: loom::PositionKind::Path,
        old: true,
        tags: vec![HOSTILE.to_owned()],
        bookmark: Some(HOSTILE.to_owned()),
        annotations: Vec::new(),
        on: Some(PassageNamed { node, short_id: "n".into(), text: HOSTILE.into() }),
        score: 1.0,
    };
    let exported =
        Exported { file: None, contains: vec![], left_out: vec![], body: Some(HOSTILE.as_bytes().to_vec()) };
    vec![
        CommandOutcome::Trees(Trees { trees: vec![line] }),
        CommandOutcome::Hits(HitsShown { hits: vec![hit], ranked: 1, partial: false }),
        CommandOutcome::Exported(exported),
    ]
}

#[test]
fn s26_nothing_foreign_reaches_a_terminal_raw() {
    for outcome in outcomes() {
        let shown = String::from_utf8(plain(&outcome, TERMINAL).body).unwrap();
        assert!(!shown.contains(text::terminal::is_unsafe), "{outcome:?}: {shown:?}");
        let control = String::from_utf8(plain(&outcome, PIPE).body).unwrap();
        assert!(control.contains("\u{1b}]52"), "a pipe gets bytes as they are: {control:?}");
    }
}

#[test]
fn a_title_stays_on_its_line_at_a_terminal() {
    let shown = String::from_utf8(plain(&outcomes()[0], TERMINAL).body).unwrap();
    assert_eq!(shown.lines().count(), 1, "{shown:?}");
}

#[test]
fn an_export_is_byte_for_byte_in_a_pipe() {
    assert_eq!(plain(&outcomes()[2], PIPE).body, HOSTILE.as_bytes());
}

#[test]
fn the_default_agent_is_called_assistant_also_where_a_record_has_its_old_name() {
    let operation = OperationShown {
        seq: loom::Seq(1),
        kind: loom::OpKind::Answer,
        did: "answer 9c3d “It rained.”".to_owned(),
        view: None,
        agent: "main".to_owned(),
        at: 0,
        nodes: Vec::new(),
        changes: Vec::new(),
    };
    let view = ViewLine {
        name: "second".to_owned(),
        tip: ids().1.as_position(),
        tip_named: "9c3d".to_owned(),
        agent: "main".to_owned(),
    };
    for outcome in [
        CommandOutcome::Operations(Operations { operations: vec![operation], next: None, more: None }),
        CommandOutcome::Views(Views { views: vec![view], sentence: None }),
    ] {
        let shown = String::from_utf8(plain(&outcome, PIPE).body).unwrap();
        assert!(shown.contains("assistant") && !shown.contains("main"), "{shown}");
    }
}

#[test]
fn a_program_gets_a_name_and_a_terminal_a_sentence() {
    let result = NodeNamed { node: ids().1, short_id: "9c3d".to_owned() };
    let outcome = CommandOutcome::Node(Told { result, sentence: format!("added 9c3d {HOSTILE}") });
    let piped = plain(&outcome, PIPE);
    assert_eq!((piped.body.as_slice(), piped.notices.len()), (&b"9c3d\n"[..], 1));
    let shown = plain(&outcome, TERMINAL);
    let body = String::from_utf8(shown.body).unwrap();
    assert!(
        body.starts_with("added 9c3d ") && body.lines().count() == 1 && shown.notices.is_empty(),
        "{body:?}"
    );
}

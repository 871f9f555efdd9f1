//! Who wrote what (spec: loom §10.1): every cluster's author wrote a version of its node, text around a change
//! keeps its authors, and spans cover a rendering without gap.

use drawloom_loom::attribution::{Stretch, attribute, carried, stretches};
use drawloom_loom::reader::AuthorSpan;
use drawloom_loom::render::{Show, render, window};
use drawloom_loom::verify::Status;
use drawloom_loom::{NodeId, Op, ShownPassage, Slot, TreeReader};
use proptest::prelude::*;

use crate::support::cases;
use crate::support::pair::{Pair, actions};
use loom_testing::{Fixture, main_view};

/// Clusters of several characters, some of which words would split.
const HARD: &str = "[ab \n\u{e01}\u{e33}\u{600}e\u{301}🦀🇵🇱]{0,8}";

/// Which node introduced each byte.
fn bytes(spans: &[AuthorSpan]) -> Vec<NodeId> {
    spans.iter().flat_map(|span| std::iter::repeat_n(span.node, span.to - span.from)).collect()
}

/// Bytes two texts share at both ends, on cluster boundaries of both.
fn common(old: &str, new: &str) -> (usize, usize) {
    let bounds = |text: &str| -> Vec<usize> {
        (0..=text.len()).filter(|at| text::grapheme::floor(text, *at) == *at).collect()
    };
    let (in_old, in_new) = (bounds(old), bounds(new));
    let head =
        in_old.iter().filter(|at| in_new.contains(at) && old.as_bytes()[..**at] == new.as_bytes()[..**at]);
    let head = head.max().copied().unwrap_or(0);
    let tail = (0..=old.len().min(new.len()) - head).rev().find(|tail| {
        in_old.contains(&(old.len() - tail))
            && in_new.contains(&(new.len() - tail))
            && old.as_bytes()[old.len() - tail..] == new.as_bytes()[new.len() - tail..]
    });
    (head, tail.unwrap_or(0))
}

/// Bytes at both ends of a text without what may belong to a word that was changed between them.
fn beside_words(text: &str, (head, tail): (usize, usize)) -> (usize, usize) {
    let is_space = |cluster: &std::ops::Range<usize>| text[cluster.clone()].starts_with(char::is_whitespace);
    let spaces: Vec<_> = text::grapheme::clusters(text).filter(is_space).collect();
    let before = text.len() - tail;
    let head = if head == text.len() || spaces.iter().any(|space| space.start == head) {
        head
    } else {
        spaces.iter().map(|space| space.end).filter(|end| *end <= head).max().unwrap_or(0)
    };
    let behind = if before == 0 || spaces.iter().any(|space| space.end == before) {
        before
    } else {
        spaces.iter().map(|space| space.start).find(|start| *start >= before).unwrap_or(text.len())
    };
    (head, text.len() - behind)
}

proptest! {
    #![proptest_config(cases(192))]

    #[test]
    fn text_around_a_change_keeps_its_authors(first in HARD, edits in prop::collection::vec(HARD, 1..6)) {
        prop_assume!(!first.is_empty());
        let mut desk = Fixture::buffer();
        let position = desk.generate(&[&first])[0].as_position();
        let mut before = (first, desk.shown(&main_view(), position));
        for text in edits {
            desk.edit(position, &text);
            let node = desk.shown(&main_view(), position);
            let stored = desk.tree.node(node).unwrap().unwrap().node;
            let spans = attribute(&desk.tree, node).unwrap();
            prop_assert_eq!(bytes(&spans).len(), text.len());
            for span in &spans {
                let author = desk.tree.node(span.node).unwrap().unwrap();
                prop_assert_eq!(author.node.position, position);
                prop_assert_eq!(&author.node.author.id, &span.author);
                prop_assert_eq!(text::grapheme::floor(&text, span.from), span.from, "a cluster is split");
            }
            if stored.edited_from == Some(before.1) {
                let (old, new) = (bytes(&attribute(&desk.tree, before.1).unwrap()), bytes(&spans));
                let (head, tail) = beside_words(&text, common(&before.0, &text));
                prop_assert_eq!(&new[..head], &old[..head], "{:?} -> {:?}", before.0, text);
                prop_assert_eq!(&new[new.len() - tail..], &old[old.len() - tail..]);
            }
            before = (text, node);
        }
    }

    #[test]
    fn stretches_never_split_a_cluster(old in HARD, new in HARD) {
        for stretch in stretches(&old, &new) {
            let range = match stretch {
                Stretch::Kept { old: from, new } => {
                    prop_assert_eq!(text::grapheme::floor(&old, from.start), from.start);
                    prop_assert_eq!(text::grapheme::floor(&old, from.end), from.end);
                    new
                }
                Stretch::New { new } => new,
            };
            prop_assert_eq!(text::grapheme::floor(&new, range.start), range.start);
            prop_assert_eq!(text::grapheme::floor(&new, range.end), range.end);
        }
    }

    #[test]
    fn spans_cover_the_rendering_of_any_tree(actions in actions(30)) {
        let mut pair = Pair::new();
        for action in &actions {
            pair.act(action);
        }
        for view in 0..pair.model.steps.len() {
            let name = pair.view(view);
            for drafts in [false, true] {
                let shown = render(&pair.desk.tree, &name, Show { drafts, spans: true }).unwrap();
                prop_assert_eq!(&shown.text, &pair.model.render(view, drafts));
                let mut at = 0;
                for span in &shown.spans {
                    prop_assert_eq!(span.start, at);
                    prop_assert!(span.end > span.start);
                    at = span.end;
                }
                // Offsets are sums of per-node counts, a pending edit or the buffer counted as a node.
                let buffer = pair.model.pending(view, None).filter(|_| drafts);
                let total: usize = pair.model.path(view).into_iter()
                    .filter(|place| !pair.model.left_out(view, *place))
                    .map(|place| match pair.model.pending(view, Some(place)).filter(|_| drafts) {
                        Some(typed) => text::grapheme::count(&typed.text),
                        None => text::grapheme::count(pair.model.shown_text(view, place)),
                    })
                    .chain(buffer.map(|typed| text::grapheme::count(&typed.text)))
                    .sum();
                prop_assert_eq!(at, total as u64);
            }
        }
    }
}

/// What stands at each byte, and the node that introduced it, as a person would count: merged texts one behind the
/// other, a cluster that became of two with what stands behind it.
fn joined(text: &str, mut authors: Vec<NodeId>) -> Vec<NodeId> {
    for cluster in text::grapheme::clusters(text) {
        let last = authors[cluster.end - 1];
        authors[cluster].fill(last);
    }
    authors
}

/// The passages of `main`, with what each says and who introduced its bytes.
fn passages(desk: &Fixture) -> Vec<(ShownPassage, String, Vec<NodeId>)> {
    let path = desk.path(&main_view());
    let shown = window(&desk.tree, &main_view(), &path, None, usize::MAX).unwrap();
    let shown = shown.into_iter().skip(1).map(|passage| {
        let node = passage.row.node.id;
        let authors = bytes(&attribute(&desk.tree, node).unwrap());
        (ShownPassage { position: passage.position.id, node }, passage.text, authors)
    });
    shown.collect()
}

proptest! {
    #![proptest_config(cases(192))]

    /// Whatever is merged, split and edited in between: text that only moves keeps its authors, and undo gives back.
    #[test]
    fn merged_and_split_passages_keep_their_authors(
        texts in prop::collection::vec((any::<bool>(), HARD), 2..6),
        steps in prop::collection::vec((any::<bool>(), any::<prop::sample::Index>(), any::<prop::sample::Index>(),
            prop::option::of(HARD)), 1..8),
    ) {
        let mut desk = Fixture::buffer();
        for (by_model, text) in texts.iter().filter(|(_, text)| !text.is_empty()) {
            if *by_model {
                desk.generate(&[text]);
            } else {
                desk.append(text);
            }
        }
        for (merge, which, cut, edit) in steps {
            let before = passages(&desk);
            let filled: Vec<usize> = (0..before.len()).filter(|at| !before[*at].1.is_empty()).collect();
            prop_assume!(!filled.is_empty());
            let text = desk.text();
            let shown = |range: std::ops::RangeInclusive<usize>| -> Vec<ShownPassage> {
                before[range].iter().map(|(shown, ..)| *shown).collect()
            };
            if merge && filled.len() > 1 {
                let at = 1 + which.index(filled.len() - 1);
                let (upper, lower) = (filled[at - 1], filled[at]);
                let op = Op::Merge { passages: shown(upper..=lower), keep: false };
                desk.run(op).unwrap();
                let after = passages(&desk);
                let both = format!("{}{}", before[upper].1, before[lower].1);
                let authors = [before[upper].2.clone(), before[lower].2.clone()].concat();
                prop_assert_eq!(&after[upper].1, &both);
                prop_assert_eq!(&after[upper].2, &joined(&both, authors));
                prop_assert!(after[lower].1.is_empty());
                // Split just there, both passages are what they were: texts, authors, nodes.
                let op = Op::Split {
                    passages: after[upper..=lower].iter().map(|(shown, ..)| *shown).collect(),
                    at: before[upper].1.len() as u64,
                    keep: false,
                };
                desk.run(op).unwrap();
                prop_assert_eq!(&passages(&desk), &before);
                desk.run(Op::Undo).unwrap();
                prop_assert_eq!(&passages(&desk), &after);
            } else {
                let at = filled[which.index(filled.len())];
                let is_tip = at + 1 == before.len();
                let cuts: Vec<usize> = text::grapheme::clusters(&before[at].1).skip(1).map(|c| c.start).collect();
                if cuts.is_empty() || !is_tip && !before[at + 1].1.is_empty() {
                    continue;
                }
                let cut = cuts[cut.index(cuts.len())];
                let below = if is_tip { at } else { at + 1 };
                desk.run(Op::Split { passages: shown(at..=below), at: cut as u64, keep: false }).unwrap();
                let after = passages(&desk);
                let (head, tail) = before[at].1.split_at(cut);
                prop_assert_eq!((after[at].1.as_str(), after[at + 1].1.as_str()), (head, tail));
                // Flags may pair in another way in a text of its own.
                prop_assert_eq!(&after[at].2, &joined(head, before[at].2[..cut].to_vec()));
                prop_assert_eq!(&after[at + 1].2, &joined(tail, before[at].2[cut..].to_vec()));
            }
            prop_assert_eq!(desk.text(), text);
            desk.run(Op::Undo).unwrap();
            prop_assert_eq!(&passages(&desk), &before);
            desk.run(Op::Redo).unwrap();
            if let Some(edit) = edit {
                let at = passages(&desk)[filled[0]].0.position;
                desk.edit(at, &edit);
            }
        }
        let report = desk.verify();
        prop_assert_eq!(report.status, Status::Valid, "{:?}", report.problems);
    }
}

#[test]
fn a_word_boundary_inside_a_cluster_is_no_boundary() {
    // Thai SARA AM joins the letter before it into one cluster, but stands as a word piece of its own.
    let kept = stretches("\u{e01}\u{e33}", "\u{e02}\u{e33}");
    assert_eq!(kept, [Stretch::New { new: 0..6 }]);
}

#[test]
fn new_text_in_a_pending_edit_is_the_owners() {
    let mut desk = Fixture::buffer();
    let position = desk.generate(&["rain"])[0].as_position();
    desk.typed_in(&main_view(), Slot::Edit(position), "rainy");
    let shown = render(&desk.tree, &main_view(), Show { drafts: true, spans: true }).unwrap();
    let authors: Vec<_> =
        shown.spans.iter().map(|span| (span.end - span.start, span.author.as_str())).collect();
    assert_eq!(authors, [(4, "weaver"), (1, "owner")]);
}

#[test]
fn a_branch_inside_a_passage_keeps_the_authors_of_what_it_quotes() {
    let mut desk = Fixture::buffer();
    let position = desk.generate(&["the rain fell"])[0].as_position();
    let edited = desk.edit(position, "the snow fell").unwrap();
    let made = desk.made(Op::BranchAt { node: edited, at: 9, token: None });
    let spans = attribute(&desk.tree, made[0]).unwrap();
    let authors: Vec<_> = spans.iter().map(|span| (span.from, span.to, span.author.as_str())).collect();
    assert_eq!(authors, [(0, 4, "weaver"), (4, 8, "owner"), (8, 9, "weaver")]);
}

#[test]
fn control_authors_carried_over_another_text_lose_the_law() {
    // Without the text before, nothing is known to have stayed: the law above is not true of every diff.
    let mut desk = Fixture::buffer();
    let position = desk.generate(&["rain fell"])[0].as_position();
    let edited = desk.edit(position, "rain falls").unwrap();
    let row = desk.tree.node(edited).unwrap().unwrap();
    let old = attribute(&desk.tree, position.original()).unwrap();
    let blind = carried(&row, "", "rain falls", &old);
    assert!(blind.iter().all(|span| span.node == edited));
    assert!(attribute(&desk.tree, edited).unwrap().iter().any(|span| span.node != edited));
}

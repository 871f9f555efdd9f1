//! Reads that skip agree with reads that walk (spec: loom §3 *Windowed access*): jump pointers, offsets, sums and
//! windows of any tree against plain scans of the naive model.

use drawloom_loom::content::Counts;
use drawloom_loom::digest::PathDigest;
use drawloom_loom::path::{ancestor_at, child_toward, common_ancestor, is_ancestor, is_hidden, newest_leaf};
use drawloom_loom::render::window;
use drawloom_loom::{Op, OpTarget, TreeReader};
use proptest::prelude::*;

use crate::support::cases;
use crate::support::model::{Place, View};
use crate::support::pair::{Pair, actions};
use loom_testing::{Fixture, main_view};

fn grown(actions: &[crate::support::pair::Action]) -> Pair {
    let mut pair = Pair::new();
    for action in actions {
        pair.act(action);
    }
    pair
}

/// What a place of a view's path shows, committed; nothing where it is left out.
fn plain(pair: &Pair, view: View, place: Place) -> Option<&str> {
    (!pair.model.left_out(view, place)).then(|| pair.model.shown_text(view, place))
}

proptest! {
    #![proptest_config(cases(96))]

    #[test]
    fn jump_pointers_agree_with_walks(actions in actions(40)) {
        let pair = grown(&actions);
        let (model, rows) = (&pair.model, &pair.desk.tree);
        let all: Vec<Place> = (0..model.spots.len()).collect();
        for &a in &all {
            let path = model.path_to(a);
            let id = pair.position(a);
            prop_assert_eq!(is_hidden(rows, id).unwrap(), model.hidden(a));
            if model.spots[a].on_paths {
                prop_assert_eq!(newest_leaf(rows, id).unwrap(), pair.position(model.newest_leaf(a)));
            }
            for depth in 0..=path.len() {
                let found = ancestor_at(rows, id, depth as u32).unwrap().map(|found| found.id);
                prop_assert_eq!(found, path.get(depth).map(|place| pair.position(*place)));
            }
            for &b in &all {
                let other = model.path_to(b);
                let to = pair.position(b);
                prop_assert_eq!(is_ancestor(rows, id, to).unwrap(), other.contains(&a));
                let shared = path.iter().zip(&other).filter(|(x, y)| x == y).count();
                prop_assert_eq!(common_ancestor(rows, id, to).unwrap().id, pair.position(path[shared - 1]));
                let below = other.iter().position(|place| *place == a).and_then(|at| other.get(at + 1));
                prop_assert_eq!(child_toward(rows, id, to).unwrap(), below.map(|place| pair.position(*place)));
            }
        }
    }

    #[test]
    fn every_offset_lies_where_a_plain_scan_finds_it(actions in actions(40)) {
        let pair = grown(&actions);
        for view in 0..pair.model.steps.len() {
            let path = pair.desk.path(&pair.view(view));
            let places = pair.model.path(view);
            let lengths: Vec<u64> = places.iter()
                .map(|place| plain(&pair, view, *place).map_or(0, |text| Counts::of(text).graphemes))
                .collect();
            let total: u64 = lengths.iter().sum();
            for offset in 0..=total {
                // The first place whose end reaches the offset; at the very start the first that has a cluster.
                let mut start = 0;
                let mut at = 0;
                while at + 1 < places.len() && start + lengths[at] < offset.max(1).min(total) {
                    start += lengths[at];
                    at += 1;
                }
                let (found, inside) = path.locate(&pair.desk.tree, offset).unwrap().unwrap();
                prop_assert_eq!((found.id, inside), (pair.position(places[at]), offset - start));
            }
            prop_assert!(path.locate(&pair.desk.tree, total + 1).unwrap().is_none());
        }
    }

    #[test]
    fn sums_agree_with_what_is_shown(actions in actions(40)) {
        let pair = grown(&actions);
        for view in 0..pair.model.steps.len() {
            let path = pair.desk.path(&pair.view(view));
            let (mut counts, mut digest) = (Counts::default(), PathDigest::default());
            for place in pair.model.path(view) {
                let id = pair.position(place);
                let here = pair.desk.tree.position(id).unwrap().unwrap();
                prop_assert_eq!((path.above(&here).counts, path.above(&here).digest), (counts, digest));
                if let Some(text) = plain(&pair, view, place) {
                    counts = counts.plus(Counts::of(text));
                    digest = digest.plus(PathDigest::term(id, text));
                }
            }
            prop_assert_eq!((path.total().counts, path.total().digest), (counts, digest));
        }
    }

    #[test]
    fn a_window_is_the_tail_of_the_whole(actions in actions(40)) {
        let pair = grown(&actions);
        for view in 0..pair.model.steps.len() {
            let name = pair.view(view);
            let path = pair.desk.path(&name);
            let whole = window(&pair.desk.tree, &name, &path, None, usize::MAX).unwrap();
            let ids: Vec<_> = pair.model.path(view).iter().map(|place| pair.position(*place)).collect();
            prop_assert_eq!(whole.iter().map(|passage| passage.position.id).collect::<Vec<_>>(), ids);
            for limit in 1..=whole.len() {
                for to in 0..whole.len() {
                    let part = window(&pair.desk.tree, &name, &path, Some(to as u32), limit).unwrap();
                    prop_assert_eq!(&part[..], &whole[(to + 1).saturating_sub(limit)..=to]);
                }
                let tail = window(&pair.desk.tree, &name, &path, None, limit).unwrap();
                prop_assert_eq!(&tail[..], &whole[whole.len() - limit..]);
            }
        }
    }
}

#[test]
fn a_caret_at_the_beginning_is_in_the_first_passage_with_text() {
    let mut desk = Fixture::buffer();
    let first = desk.append("gone");
    let second = desk.append("here");
    let at = |desk: &Fixture, offset| {
        let found = desk.path(&main_view()).locate(&desk.tree, offset).unwrap();
        found.map(|(position, inside)| (position.id, inside))
    };
    assert_eq!(at(&desk, 0), Some((first, 0)));
    assert_eq!(at(&desk, 4), Some((first, 4)), "an inner boundary belongs to the text on its left");
    desk.run(Op::Exclude(OpTarget::Position(first))).unwrap();
    assert_eq!(at(&desk, 0), Some((second, 0)));
    assert_eq!(at(&desk, 5), None);
}

#[test]
fn the_newest_leaf_is_found_behind_many_pruned_siblings() {
    let mut desk = Fixture::buffer();
    let first = desk.append("0");
    for index in 1..40 {
        desk.run(Op::Move(desk.root())).unwrap();
        let sibling = desk.append(&index.to_string());
        desk.run(Op::Prune(OpTarget::Position(sibling))).unwrap();
    }
    assert_eq!(newest_leaf(&desk.tree, desk.root()).unwrap(), first);
}

//! Reads that skip agree with reads that walk (spec: loom §3 *Windowed access*): jump pointers, offsets, sums and
//! windows of any tree against plain scans of the naive model.

use drawloom_loom::content::Counts;
use drawloom_loom::digest::PathDigest;
use drawloom_loom::memory::MemoryTree;
use drawloom_loom::path::{
    ViewOverrides, ancestor_at, child_toward, common_ancestor, is_ancestor, is_hidden, newest_leaf,
};
use drawloom_loom::render::{Pages, window};
use drawloom_loom::{Op, OpTarget, RowError, TreeReader};
use proptest::prelude::*;

use crate::support::cases;
use crate::support::model::{Place, View};
use crate::support::pair::{Pair, actions};
use loom_testing::{Fixture, crossings, main_view};

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

/// Passages of a page.
const PAGE: u32 = 8;

/// The texts of the path of `main`, a page at a time from the top, or from its end.
fn paged(rows: &MemoryTree, upwards: bool) -> Result<Vec<String>, RowError> {
    let view = main_view();
    let path = ViewOverrides::read(rows, &view, drawloom_loom::render::tip(rows, &view)?)?;
    let mut starts: Vec<u32> = (0..=path.tip.depth).step_by(PAGE as usize).collect();
    if upwards {
        starts.reverse();
    }
    let mut pages = Pages::default();
    let mut texts = Vec::new();
    for from in starts {
        let page = pages.read(rows, &view, &path, from..=path.tip.depth.min(from + PAGE - 1))?;
        let page = page.into_iter().map(|passage| passage.text);
        texts.splice(if upwards { 0..0 } else { texts.len()..texts.len() }, page);
    }
    Ok(texts)
}

#[test]
fn pages_are_of_one_path_or_damage() {
    let mut desk = Fixture::buffer();
    let fork = desk.append("both");
    let mut branch = |text| {
        desk.run(Op::Move(fork)).unwrap();
        (0..60).map(|_| desk.append(text)).last().unwrap()
    };
    let (other, own) = (branch("other"), branch("own"));
    let mut tree = desk.tree;
    let whole: Vec<String> =
        ["", "both"].into_iter().chain([""; 60].map(|_| "own")).map(String::from).collect();
    let mut damages = 0;
    for damaged in crossings(&tree, own, other) {
        let sound = tree.positions.insert(damaged.id, damaged.clone()).unwrap();
        for upwards in [false, true] {
            match paged(&tree, upwards) {
                Ok(texts) => assert_eq!(texts, whole, "upwards {upwards}: {damaged:?}"),
                Err(RowError::Damaged { .. }) => damages += 1,
                Err(error) => panic!("{error}: {damaged:?}"),
            }
        }
        let path = ViewOverrides::read(&tree, &main_view(), own).unwrap();
        let first = Pages::default().read(&tree, &main_view(), &path, 0..=PAGE);
        if let Ok(first) = first {
            let first: Vec<String> = first.into_iter().map(|passage| passage.text).collect();
            assert_eq!(first, whole[..=PAGE as usize], "the first page alone: {damaged:?}");
        }
        tree.positions.insert(sound.id, sound);
    }
    assert!(damages > 60, "{damages}");
    for upwards in [false, true] {
        assert_eq!(paged(&tree, upwards).unwrap(), whole, "the control, of sound rows");
    }
}

#[test]
fn a_tip_at_the_depth_of_another_place_is_damage() {
    let mut desk = Fixture::buffer();
    let tip = (0..20).map(|_| desk.append("text")).last().unwrap();
    assert_eq!(paged(&desk.tree, false).unwrap().len(), 21);
    for depth in (0..60).filter(|depth| *depth != 20) {
        desk.tree.positions.get_mut(&tip).unwrap().depth = depth;
        for upwards in [false, true] {
            let read = paged(&desk.tree, upwards);
            assert!(matches!(read, Err(RowError::Damaged { .. })), "depth {depth}: {read:?}");
        }
    }
}

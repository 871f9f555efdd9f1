//! Drift (spec: loom §3): a model text has drifted when what its window showed, white space and case aside, is not
//! what stands there now, unless that was accepted since the newest choice in it.

use std::collections::BTreeMap;

use drawloom_loom::drift::is_drifted;
use drawloom_loom::{TreeReader, ViewName};
use proptest::prelude::*;

use crate::support::cases;
use crate::support::model::{Choice, Place, View};
use crate::support::model_ops::Do;
use crate::support::pair::{Kind, Pair, actions};

/// As many views as actions make.
const VIEWS: usize = 3;

/// What a window showed, as it counts.
type Basis = Vec<(Place, String)>;

fn folded(text: &str) -> String {
    text.chars().filter(|c| !c.is_whitespace()).flat_map(char::to_lowercase).collect()
}

fn basis(pair: &Pair, view: View, to: Place) -> Basis {
    let path = pair.model.path_to(to).into_iter().filter(|place| !pair.model.left_out(view, *place));
    path.map(|place| (place, folded(pair.model.shown_text(view, place)))).collect()
}

fn drifted(pair: &Pair, name: &ViewName, place: Place) -> bool {
    let path = pair.desk.path(name);
    let at = pair.desk.tree.position(pair.position(place)).unwrap().unwrap();
    let row = pair.desk.tree.node(pair.ids[place][0]).unwrap().unwrap();
    is_drifted(&pair.desk.tree, &path, &at, &row).unwrap()
}

/// Which place a choice is about, if it changes what stands there.
fn about(choice: Choice, view: View) -> Option<Place> {
    match choice {
        Choice::Shown(of, place) => (of == view).then_some(place),
        Choice::PrunedPlace(place)
        | Choice::PrunedText(place, _)
        | Choice::LeftOutPlace(place)
        | Choice::LeftOutText(place, _) => Some(place),
        _ => None,
    }
}

proptest! {
    #![proptest_config(cases(192))]

    #[test]
    fn drift_agrees_with_comparing_texts(actions in actions(40)) {
        let mut pair = Pair::new();
        let mut asked: BTreeMap<Place, Basis> = BTreeMap::new();
        let mut chosen: BTreeMap<(View, Place), usize> = BTreeMap::new();
        let mut kept: BTreeMap<(View, Place), (bool, usize)> = BTreeMap::new();
        for (now, action) in actions.iter().enumerate() {
            // Taking a keep or a choice back is a choice of its own time; it is left to its own test.
            if matches!(action.kind, Kind::Undo | Kind::Redo) {
                continue;
            }
            let before = pair.model.clone();
            let (view, act) = pair.act(action);
            if let Do::Generate(..) = act {
                for place in before.spots.len()..pair.model.spots.len() {
                    let parent = pair.model.spots[place].parent.unwrap();
                    if matches!(&act, Do::Generate(texts, _) if pair.model.spots.len() - place <= texts.len()) {
                        asked.insert(place, basis(&pair, view, parent));
                    }
                }
            }
            if let Do::Keep(place, below) = act
                && pair.model.get(Choice::Keep(view, place)).is_some()
            {
                kept.insert((view, place), (below, now));
            }
            if let Do::Merge(passages, true) | Do::Split(passages, _, true) = &act
                && let [_, .., (last, _)] = passages[..]
                && before.choices != pair.model.choices
            {
                kept.insert((view, last), (true, now));
            }
            // Flags are of the whole tree: a view made later has them too.
            for of in 0..VIEWS {
                let changed = before.choices.keys().chain(pair.model.choices.keys())
                    .filter(|choice| before.get(**choice) != pair.model.get(**choice))
                    .filter_map(|choice| about(*choice, of));
                chosen.extend(changed.map(|place| ((of, place), now)));
            }
            for of in 0..pair.model.steps.len() {
                for place in pair.model.path(of) {
                    let Some(then) = asked.get(&place) else { continue };
                    let parent = pair.model.spots[place].parent.unwrap();
                    let above = pair.model.path_to(place);
                    let accepted = above.iter()
                        .filter_map(|up| kept.get(&(of, *up)).map(|keep| (up, keep)))
                        .filter(|(up, (below, _))| *below || **up == place)
                        .map(|(_, (_, at))| *at)
                        .max();
                    let newest = pair.model.path_to(parent).iter().filter_map(|up| chosen.get(&(of, *up))).max();
                    let differs = basis(&pair, of, parent) != *then;
                    let fresh = newest.is_some_and(|newest| accepted.is_none_or(|accepted| *newest > accepted));
                    prop_assert_eq!(drifted(&pair, &pair.view(of), place), differs && fresh, "{:?}", act);
                }
            }
        }
    }
}

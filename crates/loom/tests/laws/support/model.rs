//! The naive model: places in a list, strings, and one map of choices. Nothing of the crate is used here.
//!
//! Every question is answered by walking everything. What a tree says may only ever be what this says.

use std::collections::BTreeMap;

/// A place, by the order it was made in; 0 is the genesis.
pub(crate) type Place = usize;
/// A view: 0 is `main`.
pub(crate) type View = usize;
/// A draft of a view: the working buffer, or the pending edit of a place.
pub(crate) type DraftAt = Option<Place>;

/// A logical place with all its versions.
#[derive(Debug, Clone)]
pub(crate) struct Spot {
    pub(crate) parent: Option<Place>,
    pub(crate) on_paths: bool,
    pub(crate) texts: Vec<String>,
    /// How versions that quote were made.
    pub(crate) quotes: BTreeMap<usize, Quoting>,
}

impl Spot {
    pub(crate) fn new(parent: Option<Place>, on_paths: bool, text: &str) -> Self {
        Self { parent, on_paths, texts: vec![text.to_owned()], quotes: BTreeMap::new() }
    }
}

/// A version that quotes: the version it was made from, and whose text from where to where stands at which byte.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Quoting {
    pub(crate) from: usize,
    pub(crate) source: (Place, usize),
    pub(crate) range: std::ops::Range<usize>,
    pub(crate) at: usize,
}

/// Whatever can be chosen, and so be taken back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Choice {
    Tip(View),
    Shown(View, Place),
    LastTip(View, Place),
    Keep(View, Place),
    Window(View),
    PrunedPlace(Place),
    PrunedText(Place, usize),
    LeftOutPlace(Place),
    LeftOutText(Place, usize),
    Head,
    Note,
}

/// Text that is not committed yet, and the version it started from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Typed {
    pub(crate) base: usize,
    pub(crate) text: String,
}

/// One step of a view's timeline.
#[derive(Debug, Clone)]
pub(crate) enum Step {
    Key { at: DraftAt, before: Option<Typed>, after: Typed },
    Op { changes: Vec<Change>, taken: Vec<(DraftAt, Typed)> },
}

/// A choice before and after.
pub(crate) type Change = (Choice, Option<usize>, Option<usize>);

/// What a view can take back and do again, the next one last.
#[derive(Debug, Clone, Default)]
pub(crate) struct Steps {
    pub(crate) done: Vec<Step>,
    pub(crate) undone: Vec<Step>,
}

#[derive(Debug, Clone)]
pub(crate) struct Model {
    pub(crate) spots: Vec<Spot>,
    pub(crate) choices: BTreeMap<Choice, usize>,
    pub(crate) drafts: BTreeMap<(View, DraftAt), Typed>,
    pub(crate) steps: Vec<Steps>,
}

impl Model {
    pub(crate) fn new() -> Self {
        let genesis = Spot::new(None, true, "");
        Self {
            spots: vec![genesis],
            choices: BTreeMap::from([(Choice::Tip(0), 0)]),
            drafts: BTreeMap::new(),
            steps: vec![Steps::default()],
        }
    }

    pub(crate) fn get(&self, choice: Choice) -> Option<usize> {
        self.choices.get(&choice).copied()
    }

    pub(crate) fn put(&mut self, choice: Choice, value: Option<usize>) {
        match value {
            Some(value) => self.choices.insert(choice, value),
            None => self.choices.remove(&choice),
        };
    }

    pub(crate) fn tip(&self, view: View) -> Place {
        self.choices[&Choice::Tip(view)]
    }

    /// A place and all above it, from the top.
    pub(crate) fn path_to(&self, place: Place) -> Vec<Place> {
        let mut path = vec![place];
        while let Some(up) = self.spots[path[path.len() - 1]].parent {
            path.push(up);
        }
        path.reverse();
        path
    }

    pub(crate) fn path(&self, view: View) -> Vec<Place> {
        self.path_to(self.tip(view))
    }

    pub(crate) fn hidden(&self, place: Place) -> bool {
        self.path_to(place).iter().any(|up| self.get(Choice::PrunedPlace(*up)).is_some())
    }

    pub(crate) fn shown(&self, view: View, place: Place) -> usize {
        let wanted = self.get(Choice::Shown(view, place)).unwrap_or(0);
        let pruned = |text: usize| self.get(Choice::PrunedText(place, text)).is_some();
        if !pruned(wanted) {
            return wanted;
        }
        (0..self.spots[place].texts.len()).rev().find(|text| !pruned(*text)).unwrap_or(wanted)
    }

    pub(crate) fn shown_text(&self, view: View, place: Place) -> &str {
        &self.spots[place].texts[self.shown(view, place)]
    }

    pub(crate) fn left_out(&self, view: View, place: Place) -> bool {
        self.get(Choice::LeftOutPlace(place)).is_some()
            || self.get(Choice::LeftOutText(place, self.shown(view, place))).is_some()
    }

    /// Whether a draft changes nothing.
    pub(crate) fn blank(&self, at: DraftAt, typed: &Typed) -> bool {
        typed.text == at.map_or("", |place| self.spots[place].texts[typed.base].as_str())
    }

    pub(crate) fn pending(&self, view: View, at: DraftAt) -> Option<&Typed> {
        self.drafts.get(&(view, at)).filter(|typed| !self.blank(at, typed))
    }

    pub(crate) fn render(&self, view: View, drafts: bool) -> String {
        let mut text = String::new();
        for place in self.path(view) {
            if !self.left_out(view, place) {
                let pending = self.pending(view, Some(place)).filter(|_| drafts);
                text.push_str(pending.map_or(self.shown_text(view, place), |typed| &typed.text));
            }
        }
        if let Some(typed) = self.pending(view, None).filter(|_| drafts) {
            text.push_str(&typed.text);
        }
        text
    }

    /// What a client sees in a slot.
    pub(crate) fn slot_text(&self, view: View, at: DraftAt) -> String {
        match (self.pending(view, at), at) {
            (Some(typed), _) => typed.text.clone(),
            (None, Some(place)) => self.shown_text(view, place).to_owned(),
            (None, None) => String::new(),
        }
    }

    /// The newest child, and its newest child, and so on.
    pub(crate) fn newest_leaf(&self, from: Place) -> Place {
        let child = (0..self.spots.len()).rev().find(|place| {
            let spot = &self.spots[*place];
            spot.parent == Some(from) && spot.on_paths && self.get(Choice::PrunedPlace(*place)).is_none()
        });
        child.map_or(from, |child| self.newest_leaf(child))
    }

    /// The child, on the path to `tip`, of the last place both paths share.
    pub(crate) fn sibling_left(&self, tip: Place, to: Place) -> Option<Place> {
        let (old, new) = (self.path_to(tip), self.path_to(to));
        let shared = old.iter().zip(&new).take_while(|(a, b)| a == b).count();
        old.get(shared).copied()
    }
}

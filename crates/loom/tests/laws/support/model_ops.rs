//! What each operation does to the naive model.

use super::model::{Choice, DraftAt, Model, Place, Spot, Steps, Typed, View};

/// An operation with everything named.
#[derive(Debug, Clone)]
pub(crate) enum Do {
    Append(String),
    /// Under a place.
    Reply(Place, String),
    Type(DraftAt, String),
    Commit,
    EditVersion(Place, String),
    EditBranch(Place, String),
    /// Places, the version each text was made from, the texts; and what is added at the end.
    EditPath(Vec<(Place, usize, String)>, Vec<String>),
    /// Places below one another and the version each shows; whether what is below is accepted.
    Merge(Vec<(Place, usize)>, bool),
    /// As of `Merge`, and the byte at which the first is parted.
    Split(Vec<(Place, usize)>, usize, bool),
    /// The place, the version cut, bytes kept.
    BranchAt(Place, usize, usize),
    /// Texts of the answers, and whether the view follows the first.
    Generate(Vec<String>, bool),
    Switch(Place),
    Select(Place, usize),
    Keep(Place, bool),
    Prune(Place, Option<usize>, bool),
    LeaveOut(Place, Option<usize>, bool),
    Move(Place),
    Compact(Option<Place>),
    Pin(Choice, String),
    NewView,
    Undo,
    Redo,
}

/// The contract refuses it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Refused;

impl Model {
    /// Does it, or leaves everything as it was.
    pub(crate) fn act(&mut self, view: View, act: &Do) -> Result<(), Refused> {
        let before = self.clone();
        let done = match act {
            Do::Type(at, text) => {
                self.type_into(view, *at, text);
                return Ok(());
            }
            Do::Undo => return self.undo(view),
            Do::Redo => return self.redo(view),
            Do::NewView => {
                self.new_view(view);
                return Ok(());
            }
            other => self.change(view, other),
        };
        match done {
            Ok(()) => {
                self.record(view, &before, act);
                Ok(())
            }
            Err(refused) => {
                *self = before;
                Err(refused)
            }
        }
    }

    fn change(&mut self, view: View, act: &Do) -> Result<(), Refused> {
        match act {
            Do::Commit => self.commit(view),
            Do::Append(text) => {
                self.commit(view);
                self.grow(view, text)?;
            }
            Do::Reply(place, text) => {
                if !self.spots[*place].on_paths {
                    return Err(Refused);
                }
                self.visible(*place)?;
                self.commit(view);
                if self.tip(view) != *place {
                    self.leave(view, *place, *place);
                    self.put(Choice::Tip(view), Some(*place));
                }
                self.grow(view, text)?;
            }
            Do::EditVersion(place, text) => {
                if *place == 0 {
                    return Err(Refused);
                }
                self.commit(view);
                self.set_text(view, *place, text);
            }
            Do::EditPath(edits, texts) => {
                for (place, ..) in edits {
                    self.passage(*place)?;
                }
                self.commit(view);
                for (place, from, text) in edits {
                    if self.shown(view, *place) == *from {
                        self.set_text(view, *place, text);
                    }
                }
                for text in texts {
                    self.grow(view, text)?;
                }
            }
            Do::Merge(passages, keep) => self.merge(view, passages, *keep)?,
            Do::Split(passages, at, keep) => self.split(view, passages, *at, *keep)?,
            Do::EditBranch(place, text) => {
                let parent = self.passage(*place)?;
                self.commit(view);
                if self.shown_text(view, *place) != text {
                    self.visible(parent)?;
                    self.leave(view, parent, *place);
                    self.put(Choice::Tip(view), Some(parent));
                    self.grow(view, text)?;
                }
            }
            Do::BranchAt(place, version, at) => {
                let parent = self.passage(*place)?;
                self.commit(view);
                self.visible(parent)?;
                let text = self.spots[*place].texts[*version].clone();
                let at_the_end = *at == text.len() && *at > 0 && self.shown(view, *place) == *version;
                if at_the_end && self.tip(view) == *place {
                    return self.visible(*place);
                }
                self.leave(view, parent, *place);
                self.put(Choice::Tip(view), Some(parent));
                if at_the_end {
                    self.visible(*place)?;
                    self.put(Choice::Tip(view), Some(*place));
                } else if *at > 0 {
                    self.grow(view, &text[..*at])?;
                }
            }
            Do::Generate(texts, follow) => {
                self.commit(view);
                let parent = self.tip(view);
                for (choice, text) in texts.iter().enumerate() {
                    let place = self.add(parent, true, text);
                    if choice == 0 && *follow {
                        self.put(Choice::Tip(view), Some(place));
                    }
                }
            }
            Do::Switch(place) => {
                self.passage(*place)?;
                self.visible(*place)?;
                self.commit(view);
                if !self.path(view).contains(place) {
                    self.leave(view, *place, *place);
                    let last = self.get(Choice::LastTip(view, *place)).filter(|last| !self.hidden(*last));
                    let tip = last.unwrap_or_else(|| self.newest_leaf(*place));
                    self.put(Choice::Tip(view), Some(tip));
                }
            }
            Do::Move(place) => {
                if !self.spots[*place].on_paths {
                    return Err(Refused);
                }
                self.visible(*place)?;
                self.commit(view);
                self.put(Choice::Tip(view), Some(*place));
            }
            Do::Select(place, version) => {
                if *place == 0 || self.get(Choice::PrunedText(*place, *version)).is_some() {
                    return Err(Refused);
                }
                self.commit(view);
                let chosen = self.get(Choice::Shown(view, *place)).unwrap_or(0);
                if self.shown(view, *place) != *version || chosen != *version {
                    self.put(Choice::Shown(view, *place), Some(*version));
                }
            }
            Do::Keep(place, below) => {
                self.passage(*place)?;
                self.put(Choice::Keep(view, *place), Some(usize::from(*below)));
            }
            Do::Prune(place, version, on) => self.prune(*place, *version, *on)?,
            Do::LeaveOut(place, version, on) => {
                self.passage(*place)?;
                let choice = match version {
                    None => Choice::LeftOutPlace(*place),
                    Some(version) => Choice::LeftOutText(*place, *version),
                };
                self.put(choice, on.then_some(1));
            }
            Do::Compact(to) => {
                if let Some(to) = to {
                    self.passage(*to)?;
                    if !self.path(view).contains(to) {
                        return Err(Refused);
                    }
                }
                self.put(Choice::Window(view), *to);
            }
            Do::Pin(choice, text) => match self.get(*choice) {
                Some(place) => self.set_text(view, place, text),
                None if text.is_empty() => return Err(Refused),
                None => {
                    let place = self.add(0, false, text);
                    self.put(*choice, Some(place));
                }
            },
            Do::Type(..) | Do::Undo | Do::Redo | Do::NewView => {}
        }
        Ok(())
    }

    /// The parent of a place that stands on paths and is not the genesis.
    fn passage(&self, place: Place) -> Result<Place, Refused> {
        self.spots[place].parent.filter(|_| self.spots[place].on_paths).ok_or(Refused)
    }

    fn visible(&self, place: Place) -> Result<(), Refused> {
        if self.hidden(place) { Err(Refused) } else { Ok(()) }
    }

    fn add(&mut self, parent: Place, on_paths: bool, text: &str) -> Place {
        self.spots.push(Spot::new(Some(parent), on_paths, text));
        self.spots.len() - 1
    }

    pub(super) fn grow(&mut self, view: View, text: &str) -> Result<(), Refused> {
        if text.is_empty() {
            return Err(Refused);
        }
        let place = self.add(self.tip(view), true, text);
        self.put(Choice::Tip(view), Some(place));
        Ok(())
    }

    fn leave(&mut self, view: View, to: Place, on_path: Place) {
        let tip = self.tip(view);
        let left =
            if self.path(view).contains(&on_path) { Some(on_path) } else { self.sibling_left(tip, to) };
        if let Some(left) = left {
            self.put(Choice::LastTip(view, left), Some(tip));
        }
    }

    pub(super) fn set_text(&mut self, view: View, place: Place, text: &str) {
        if self.shown_text(view, place) == text {
            return;
        }
        let texts = &self.spots[place].texts;
        let same = if texts[0] == text { Some(0) } else { texts.iter().rposition(|other| other == text) };
        let version = match same {
            Some(version) => version,
            None => {
                self.spots[place].texts.push(text.to_owned());
                self.spots[place].texts.len() - 1
            }
        };
        self.put(Choice::PrunedText(place, version), None);
        self.put(Choice::Shown(view, place), Some(version));
    }

    pub(super) fn commit(&mut self, view: View) {
        let held: Vec<(DraftAt, Typed)> = self
            .drafts
            .iter()
            .filter(|((of, _), _)| *of == view)
            .map(|((_, at), t)| (*at, t.clone()))
            .collect();
        self.drafts.retain(|(of, _), _| *of != view);
        let mut edits: Vec<_> =
            held.iter().filter_map(|(at, typed)| at.map(|place| (place, typed))).collect();
        edits.sort_by_key(|(place, _)| (self.path_to(*place).len(), *place));
        for (place, typed) in edits {
            if !self.blank(Some(place), typed) {
                self.set_text(view, place, &typed.text);
            }
        }
        for (at, typed) in held {
            if at.is_none() && !typed.text.is_empty() {
                let _ = self.grow(view, &typed.text);
            }
        }
    }

    fn prune(&mut self, place: Place, version: Option<usize>, on: bool) -> Result<(), Refused> {
        let parent = self.passage(place)?;
        match version {
            None if on => self.retreat(place, parent),
            Some(version) if on => {
                let others = (0..self.spots[place].texts.len()).filter(|other| {
                    *other != version && self.get(Choice::PrunedText(place, *other)).is_none()
                });
                if others.count() == 0 {
                    return Err(Refused);
                }
            }
            None | Some(_) => {}
        }
        let choice = match version {
            None => Choice::PrunedPlace(place),
            Some(version) => Choice::PrunedText(place, version),
        };
        self.put(choice, on.then_some(1));
        Ok(())
    }

    /// Every view whose path goes through a place moves to its parent.
    pub(crate) fn retreat(&mut self, place: Place, parent: Place) {
        for view in 0..self.steps.len() {
            if self.path(view).contains(&place) {
                self.put(Choice::Tip(view), Some(parent));
            }
        }
    }

    /// A view at the same place that shows the same.
    fn new_view(&mut self, view: View) {
        let new = self.steps.len();
        self.steps.push(Steps::default());
        let copied: Vec<_> = self
            .choices
            .iter()
            .filter_map(|(choice, value)| match choice {
                Choice::Tip(of) if *of == view => Some((Choice::Tip(new), *value)),
                Choice::Window(of) if *of == view => Some((Choice::Window(new), *value)),
                Choice::Shown(of, place) if *of == view => Some((Choice::Shown(new, *place), *value)),
                _ => None,
            })
            .collect();
        self.choices.extend(copied);
    }
}

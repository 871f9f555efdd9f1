//! Undo in the naive model: what each step changed is remembered by comparing before and after.

use super::model::{Change, Choice, DraftAt, Model, Step, Typed, View};
use super::model_ops::{Do, Refused};

impl Model {
    pub(crate) fn type_into(&mut self, view: View, at: DraftAt, text: &str) {
        if self.slot_text(view, at) == text {
            return;
        }
        let before = self.drafts.get(&(view, at)).cloned();
        let base = match (self.pending(view, at), at) {
            (Some(typed), _) => typed.base,
            (None, Some(place)) => self.shown(view, place),
            (None, None) => 0,
        };
        let after = Typed { base, text: text.to_owned() };
        self.drafts.insert((view, at), after.clone());
        self.steps[view].done.push(Step::Key { at, before, after });
        self.steps[view].undone.clear();
    }

    /// Puts what an operation changed on the view's timeline.
    pub(crate) fn record(&mut self, view: View, before: &Self, act: &Do) {
        let taken: Vec<_> = before
            .drafts
            .iter()
            .filter(|((of, at), typed)| *of == view && !before.blank(*at, typed))
            .filter(|(key, _)| !self.drafts.contains_key(*key))
            .map(|((_, at), typed)| (*at, typed.clone()))
            .collect();
        let changes = self.compared(before);
        let nothing = changes.is_empty() && taken.is_empty() && !matches!(act, Do::Keep(..));
        let same_text = |a: &Self, b: &Self| {
            a.spots.iter().map(|s| s.texts.len()).eq(b.spots.iter().map(|s| s.texts.len()))
        };
        let only_siblings = matches!(act, Do::Generate(..)) && nothing;
        if only_siblings || nothing && same_text(self, before) {
            self.drafts.clone_from(&before.drafts);
            return;
        }
        let commits = match act {
            Do::Keep(..) | Do::Prune(..) | Do::LeaveOut(..) | Do::Compact(_) | Do::Pin(..) => false,
            Do::Generate(..) => !taken.is_empty(),
            _ => true,
        };
        let steps = &mut self.steps[view];
        if commits {
            // Keystrokes before a commit are no steps of their own any more.
            steps.done.retain(|step| matches!(step, Step::Op { .. }));
        } else {
            self.drafts.clone_from(&before.drafts);
        }
        let steps = &mut self.steps[view];
        steps.undone.clear();
        steps.done.push(Step::Op { changes, taken });
    }

    fn compared(&self, before: &Self) -> Vec<Change> {
        let mut keys: Vec<Choice> = before.choices.keys().chain(self.choices.keys()).copied().collect();
        keys.sort_unstable();
        keys.dedup();
        keys.into_iter()
            .map(|key| (key, before.get(key), self.get(key)))
            .filter(|(_, old, new)| old != new)
            .collect()
    }

    pub(crate) fn undo(&mut self, view: View) -> Result<(), Refused> {
        match self.steps[view].done.pop().ok_or(Refused)? {
            Step::Key { at, before, after } => {
                match before.clone() {
                    Some(typed) => self.drafts.insert((view, at), typed),
                    None => self.drafts.remove(&(view, at)),
                };
                self.steps[view].undone.push(Step::Key { at, before, after });
            }
            Step::Op { changes, taken } => {
                let back: Vec<Change> =
                    changes.into_iter().map(|(choice, old, new)| (choice, new, old)).collect();
                let applied = self.apply(&back);
                for (at, typed) in &taken {
                    self.drafts.insert((view, *at), typed.clone());
                    let key = Step::Key { at: *at, before: None, after: typed.clone() };
                    self.steps[view].done.push(key);
                }
                let changes = applied.into_iter().map(|(choice, old, new)| (choice, new, old)).collect();
                self.steps[view].undone.push(Step::Op { changes, taken });
            }
        }
        Ok(())
    }

    pub(crate) fn redo(&mut self, view: View) -> Result<(), Refused> {
        match self.steps[view].undone.pop().ok_or(Refused)? {
            Step::Key { at, before, after } => {
                self.drafts.insert((view, at), after.clone());
                self.steps[view].done.push(Step::Key { at, before, after });
            }
            Step::Op { changes, taken } => {
                let changes = self.apply(&changes);
                for (at, _) in &taken {
                    self.drafts.remove(&(view, *at));
                    let own = |step: &Step| matches!(step, Step::Key { at: of, .. } if of == at);
                    self.steps[view].done.retain(|step| !own(step));
                }
                self.steps[view].done.push(Step::Op { changes, taken });
            }
        }
        Ok(())
    }

    /// Makes the changes whose choice still is what they expect; returns all that was changed.
    fn apply(&mut self, changes: &[Change]) -> Vec<Change> {
        let before = self.clone();
        let holds = |(choice, old, _): &&Change| before.get(*choice) == *old;
        let (tips, others): (Vec<Change>, Vec<Change>) =
            changes.iter().filter(holds).copied().partition(|(choice, ..)| matches!(choice, Choice::Tip(_)));
        for (choice, _, new) in others {
            let last_visible = matches!(choice, Choice::PrunedText(place, text) if new.is_some()
                && (0..self.spots[place].texts.len())
                    .all(|other| other == text || self.get(Choice::PrunedText(place, other)).is_some()));
            if !last_visible {
                self.put(choice, new);
            }
        }
        for (choice, _, new) in tips {
            if new.is_some_and(|to| !self.hidden(to)) {
                self.put(choice, new);
            }
        }
        for place in 0..self.spots.len() {
            let now_pruned = before.get(Choice::PrunedPlace(place)).is_none()
                && self.get(Choice::PrunedPlace(place)).is_some();
            if let Some(parent) = self.spots[place].parent.filter(|_| now_pruned) {
                self.retreat(place, parent);
            }
        }
        self.compared(&before)
    }
}

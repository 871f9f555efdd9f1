//! Merging and splitting in the naive model.

use super::model::{Choice, Model, Place, Quoting, View};
use super::model_ops::Refused;

impl Model {
    pub(super) fn merge(
        &mut self,
        view: View,
        passages: &[(Place, usize)],
        keep: bool,
    ) -> Result<(), Refused> {
        self.ready(view, passages)?;
        let (upper, lower) = (passages[0], passages[passages.len() - 1]);
        let (head, tail) = (self.says(upper).to_owned(), self.says(lower).to_owned());
        let is_empty = |passage: &(Place, usize)| self.says(*passage).is_empty();
        let between = &passages[1..passages.len() - 1];
        if upper == lower || head.is_empty() || tail.is_empty() || !between.iter().all(is_empty) {
            return Err(Refused);
        }
        let quoting = Quoting { from: upper.1, source: lower, range: 0..tail.len(), at: head.len() };
        self.show(view, upper.0, head + &tail, quoting);
        self.set_text(view, lower.0, "");
        self.accept(view, lower.0, keep);
        Ok(())
    }

    pub(super) fn split(
        &mut self,
        view: View,
        passages: &[(Place, usize)],
        at: usize,
        keep: bool,
    ) -> Result<(), Refused> {
        self.ready(view, passages)?;
        let upper = passages[0];
        let text = self.says(upper).to_owned();
        if at == 0 || at >= text.len() || !passages[1..].iter().all(|below| self.says(*below).is_empty()) {
            return Err(Refused);
        }
        let (head, tail) = text.split_at(at);
        // What was merged just there comes back as it was.
        let merged = self.spots[upper.0].quotes.get(&upper.1).cloned();
        let merged = merged.filter(|merged| merged.at == at && at + merged.range.len() == text.len());
        let part = |range| Quoting { from: 0, source: upper, range, at: 0 };
        match &merged {
            Some(merged) if self.says((upper.0, merged.from)) == head => {
                self.put(Choice::PrunedText(upper.0, merged.from), None);
                self.put(Choice::Shown(view, upper.0), Some(merged.from));
            }
            _ => self.show(view, upper.0, head.to_owned(), Quoting { from: upper.1, ..part(0..at) }),
        }
        let Some(lower) = passages[1..].last() else {
            if self.tip(view) != upper.0 {
                return Err(Refused);
            }
            return self.grow(view, tail);
        };
        match merged.filter(|merged| merged.source.0 == lower.0 && self.says(merged.source) == tail) {
            Some(merged) => {
                self.put(Choice::PrunedText(lower.0, merged.source.1), None);
                self.put(Choice::Shown(view, lower.0), Some(merged.source.1));
            }
            None => {
                let quoting = Quoting { from: lower.1, ..part(at..text.len()) };
                self.show(view, lower.0, tail.to_owned(), quoting);
            }
        }
        self.accept(view, lower.0, keep);
        Ok(())
    }

    fn says(&self, (place, version): (Place, usize)) -> &str {
        &self.spots[place].texts[version]
    }

    fn ready(&mut self, view: View, passages: &[(Place, usize)]) -> Result<(), Refused> {
        let path = self.path(view);
        let first = path.iter().position(|place| Some(place) == passages.first().map(|(place, _)| place));
        let on_path = first.map(|first| &path[first..]).unwrap_or_default();
        let is_path = on_path.len() >= passages.len() && on_path[0] != 0;
        if !is_path || !passages.iter().zip(on_path).all(|((place, _), on_path)| place == on_path) {
            return Err(Refused);
        }
        let (first, last) = (passages[0].0, passages[passages.len() - 1].0);
        if self.hidden(last) {
            return Err(Refused);
        }
        self.commit(view);
        let is_shown = passages.iter().all(|(place, version)| self.shown(view, *place) == *version);
        if !is_shown || self.left_out(view, first) || self.left_out(view, last) {
            return Err(Refused);
        }
        Ok(())
    }

    fn show(&mut self, view: View, place: Place, text: String, quoting: Quoting) {
        let spot = &mut self.spots[place];
        let same = spot.texts.iter().rposition(|other| *other == text);
        let same = same.filter(|same| spot.quotes.get(same) == Some(&quoting));
        let version = same.unwrap_or_else(|| {
            spot.texts.push(text);
            spot.quotes.insert(spot.texts.len() - 1, quoting);
            spot.texts.len() - 1
        });
        if same.is_some() {
            self.put(Choice::PrunedText(place, version), None);
        }
        self.put(Choice::Shown(view, place), Some(version));
    }

    fn accept(&mut self, view: View, place: Place, keep: bool) {
        if keep {
            self.put(Choice::Keep(view, place), Some(1));
        }
    }
}

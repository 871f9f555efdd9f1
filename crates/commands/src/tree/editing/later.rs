//! A file that an editor left, taken in later: what came since stays, and what is on the path no more is named.

use std::collections::HashMap;

use loom::PositionId;

use super::{OpenPassage, OpenText, marks};
use crate::app::App;
use crate::error::CommandError;
use crate::rights::Asker;

impl OpenText {
    /// The same with the versions that the marks of a file name: what a passage became since then collides with what
    /// the file makes of it, and stays where the file changes nothing. Passages that have left the text stand where
    /// they stood, so that a change of theirs is named; those below what was opened stand in it no more.
    pub(super) async fn based_on(
        mut self,
        app: &App,
        asker: &Asker,
        file: &str,
    ) -> Result<Self, CommandError> {
        let by_id: HashMap<String, usize> =
            self.passages.iter().map(|passage| passage.short_id.clone()).zip(0..).collect();
        let by_position: HashMap<PositionId, usize> =
            self.passages.iter().map(|passage| passage.position).zip(0..).collect();
        let text = self.text();
        let mut gone: Vec<(usize, OpenPassage)> = Vec::new();
        let (mut behind, mut last) = (0, None);
        for id in marks::ids_in(file) {
            if let Some(at) = by_id.get(id) {
                (behind, last) = (at + 1, last.max(Some(*at)));
                continue;
            }
            let Ok((node, position)) = app.node_named(asker, Some(self.tree), id).await else { continue };
            let row = app.read(asker, self.tree, move |rows| rows.node(node)).await?;
            let row = row.filter(|row| !row.purged);
            let found = by_position.get(&position);
            if let Some(at) = found {
                (behind, last) = (at + 1, last.max(Some(*at)));
            }
            let Some(row) = row else { continue };
            let passage =
                OpenPassage { position, node, text: row.node.text().into_owned(), short_id: row.short_id };
            match found {
                Some(at) => self.passages[*at] = passage,
                // The text itself may say what reads as a mark.
                None if marks::ids_in(&text).contains(&id) => {}
                None => gone.push((behind, passage)),
            }
        }
        if let [_, Some(end)] = marks::part_of(file) {
            let end = app.node_named(asker, Some(self.tree), end).await.map(|(_, position)| position);
            let is_there = end.is_ok_and(|end| by_position.contains_key(&end));
            if let (false, Some(last)) = (is_there, last)
                && last + 1 < self.passages.len()
            {
                self.passages.truncate(last + 1);
                self.is_to_the_end = false;
                self.typed.clear();
            }
        }
        for (at, passage) in gone.into_iter().rev() {
            self.passages.insert(at.min(self.passages.len()), passage);
        }
        Ok(self)
    }
}

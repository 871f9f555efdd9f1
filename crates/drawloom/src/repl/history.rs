//! What was typed before. It is kept in the home, with known secrets masked (spec: security §11); of a temporary
//! conversation nothing is kept, nor is a line that begins with a space.

use std::io;
use std::sync::Arc;

use commands::chat::Conversation;
use commands::{App, CommandError};
use reedline::{
    FileBackedHistory, History, HistoryItem, HistoryItemId, HistorySessionId, Result, SearchQuery,
};
use store::home::HomeDir;
use text::mask::Masker;

const LINES: usize = 1_000;
/// What a line begins with that is not kept.
pub(super) const UNKEPT: &str = " ";

/// The history of a conversation.
///
/// # Errors
/// When the home takes no file.
pub(super) fn of(
    app: &App,
    conversation: &Conversation,
) -> std::result::Result<Box<dyn History>, CommandError> {
    let failed = |why: String| {
        CommandError::new(
            "home",
            6,
            format!("the input history cannot be kept: {why}"),
            "check the home's folder",
        )
    };
    let lines = if conversation.is_temporary() {
        FileBackedHistory::new(LINES)
    } else {
        let dir = app.runtime.home.dir(HomeDir::Cache).map_err(|error| failed(error.to_string()))?;
        let file = dir.join("history");
        // Opening a FIFO would wait for its other end.
        if file.metadata().is_ok_and(|found| !found.is_file()) {
            return Err(failed(format!("{} is not a plain file", file.display())));
        }
        FileBackedHistory::with_file(LINES, file)
    };
    let lines = lines.map_err(|error| failed(error.to_string()))?;
    Ok(Box::new(Masked { lines, masker: Arc::clone(&app.runtime.masker) }))
}

/// Keeps a line that no editor took at once, as the editor keeps its own: whatever ends the process then, it is there.
pub(super) fn keep(history: &mut dyn History, line: &str) {
    if line.trim().is_empty() || line.starts_with(UNKEPT) {
        return;
    }
    let saved = history.save(HistoryItem::from_command_line(line)).map_err(io::Error::other);
    if let Err(error) = saved.and_then(|_| history.sync()) {
        tracing::warn!(%error, "what was typed could not be kept");
    }
}

/// A history that never holds a known secret.
struct Masked {
    lines: FileBackedHistory,
    masker: Arc<Masker>,
}

impl History for Masked {
    fn save(&mut self, item: HistoryItem) -> Result<HistoryItem> {
        let command_line = self.masker.mask(&item.command_line).text.into_owned();
        self.lines.save(HistoryItem { command_line, ..item })
    }

    fn load(&self, id: HistoryItemId) -> Result<HistoryItem> {
        self.lines.load(id)
    }

    fn count(&self, query: SearchQuery) -> Result<i64> {
        self.lines.count(query)
    }

    fn search(&self, query: SearchQuery) -> Result<Vec<HistoryItem>> {
        self.lines.search(query)
    }

    fn update(&mut self, id: HistoryItemId, updater: &dyn Fn(HistoryItem) -> HistoryItem) -> Result<()> {
        let masker = Arc::clone(&self.masker);
        self.lines.update(id, &|item| {
            let item = updater(item);
            let command_line = masker.mask(&item.command_line).text.into_owned();
            HistoryItem { command_line, ..item }
        })
    }

    fn clear(&mut self) -> Result<()> {
        self.lines.clear()
    }

    fn delete(&mut self, id: HistoryItemId) -> Result<()> {
        self.lines.delete(id)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.lines.sync()
    }

    fn session(&self) -> Option<HistorySessionId> {
        self.lines.session()
    }
}

//! How old the newest backup is, from what the home itself remembers (spec: cli §2 *doctor*).

use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use commands::maintenance::backups::newest;
use commands::results::maintenance::{Check, State};
use store::home::BACKUPS;

use super::{check, ok};

/// A backup older than this is too old.
const TOO_OLD: Duration = Duration::from_secs(14 * 86_400);

const HOW: &str = "`drawloom backup -o FILE`, onto another disk";

/// What a home has stored, as far as its backups go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StoreState {
    Nothing,
    Trees,
    /// The store cannot be read: the newest backup is what is left.
    Unreadable,
    /// There is no store any more: the newest backup is what is left.
    Missing,
    /// On a server, whose backups the home does not know.
    OnServer,
}

/// Judges the newest backup of a home.
pub(super) fn age(home: &Path, stored: StoreState) -> Check {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    match newest(home) {
        _ if stored == StoreState::Nothing => ok("backup", "none is needed yet: nothing was written"),
        _ if stored == StoreState::OnServer => ok(
            "backup",
            "not known here: `pg_dump` makes those of the database, and a copy of the home belongs to it",
        ),
        Err(error) => check("backup", State::Warn, format!("{BACKUPS} cannot be read: {error}"), HOW),
        Ok(None) => check("backup", State::Warn, "none was made", HOW),
        Ok(Some(made)) => {
            let age = now.saturating_sub(Duration::from_millis(u64::try_from(made.at).unwrap_or(0)));
            let (days, file) = (age.as_secs() / 86_400, made.file.display());
            let gone = if made.file.exists() { "" } else { " (which is not there now)" };
            let back = match stored {
                StoreState::Unreadable => "; `drawloom restore FILE --to DIR` makes a home of it",
                StoreState::Missing => "; `drawloom restore FILE` brings it back",
                _ => "",
            };
            let why = format!("{days} days old: {file}{gone}{back}");
            if age > TOO_OLD { check("backup", State::Warn, why, HOW) } else { ok("backup", why) }
        }
    }
}

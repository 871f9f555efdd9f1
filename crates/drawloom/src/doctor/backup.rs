//! How old the newest backup is, from what the home itself remembers (spec: cli §2 *doctor*).

use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use commands::maintenance::backups::newest;
use commands::results::maintenance::{Check, State};

use super::{check, ok};

/// A backup older than this is too old.
const TOO_OLD: Duration = Duration::from_secs(14 * 86_400);

const HOW: &str = "`drawloom backup -o FILE`, onto another disk";

/// Judges the newest backup of a home that holds so many trees; none where the store cannot be read: then the newest
/// backup is what is left.
pub(super) fn age(home: &Path, trees: Option<usize>) -> Check {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    match newest(home) {
        _ if trees == Some(0) => ok("backup", "none is needed yet: nothing was written"),
        Err(error) => check("backup", State::Warn, format!("backups.json cannot be read: {error}"), HOW),
        Ok(None) => check("backup", State::Warn, "none was made", HOW),
        Ok(Some(made)) => {
            let age = now.saturating_sub(Duration::from_millis(u64::try_from(made.at).unwrap_or(0)));
            let (days, file) = (age.as_secs() / 86_400, made.file.display());
            let gone = if made.file.exists() { "" } else { " (which is not there now)" };
            let back =
                if trees.is_none() { "; `drawloom restore FILE --to DIR` makes a home of it" } else { "" };
            let why = format!("{days} days old: {file}{gone}{back}");
            if age > TOO_OLD { check("backup", State::Warn, why, HOW) } else { ok("backup", why) }
        }
    }
}

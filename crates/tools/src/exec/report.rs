//! What a model is told of a command that ran.

use std::collections::BTreeSet;
use std::path::Path;

use sandbox::{BoundedOutput, Ending, Level, LevelReport, Notice, Outcome};
use text::cut::head_tail;
use workspace::{AllowedRoots, lies_in_never};

use super::changed_files::ChangedFiles;
use super::held;
use super::masked_output::MaskedOutput;
use crate::changes::line_name;
use crate::tool::ToolScope;

/// Characters of each output stream that are told.
pub(crate) const SHOWN: usize = 20_000;

/// Last lines of what a failed command printed that a person reads; lines of its notes.
const LAST: usize = 8;
/// Last lines of what another command printed.
const LAST_OF_GOOD: usize = 3;

/// What is told of a command.
pub(crate) struct CommandReport<'a> {
    pub(crate) outcome: &'a Outcome,
    /// Which files it changed.
    pub(crate) files: Option<&'a ChangedFiles>,
    /// What there is to know besides.
    pub(crate) notes: Vec<String>,
    /// What became of its network, below a heading.
    pub(crate) network: Option<String>,
}

impl<'a> CommandReport<'a> {
    /// The report of a command. With the folder that it ran in and its line it tells also which paths it would have to touch:
    /// it may be run so.
    pub(crate) fn of(
        scope: &ToolScope,
        (outcome, ran): (&'a Outcome, Option<(&Path, &str)>),
        level: &LevelReport,
        files: Option<&'a ChangedFiles>,
    ) -> Self {
        // A command that succeeded may print what others said.
        let standard =
            if outcome.ending == Ending::Exited(0) { String::new() } else { outcome.standard.text() };
        let printed = [standard, outcome.error.text()];
        let held = ran.and_then(|ran| held::note(&scope.roots, ran, &printed));
        let notes = [notes(outcome, level), missed_by_git(&scope.roots, outcome), held];
        Self { outcome, files, notes: notes.into_iter().flatten().collect(), network: None }
    }

    /// How it ended, what it printed, what it changed, and what there is to know besides.
    pub(crate) fn told(&self, scope: &ToolScope) -> String {
        let outcome = self.outcome;
        let seconds = outcome.duration.as_secs_f64();
        let ended = match &outcome.ending {
            // More time would bring no network.
            Ending::TimedOut if outcome.notices.contains(&Notice::NetworkSeemsMissing) => {
                "ended: its time was over while it seemed to wait for a network".to_owned()
            }
            other => ending(other),
        };
        let mut parts = vec![format!("{ended} ({seconds:.1} s, sandbox {})", outcome.level)];
        let stream = |name: &str, output: &BoundedOutput| {
            // Secrets go before anything is cut.
            let text = masked(scope, output);
            let shown = head_tail(text.trim_end_matches('\n'), SHOWN, name).text.into_owned();
            (!shown.is_empty()).then(|| format!("[{name}]\n{shown}"))
        };
        parts.extend(stream("output", &outcome.standard));
        parts.extend(stream("errors", &outcome.error));
        parts.extend(self.besides());
        parts.join("\n")
    }

    /// What is told behind what it printed, each part below a heading.
    pub(crate) fn besides(&self) -> impl Iterator<Item = String> + '_ {
        let files = self.files.and_then(ChangedFiles::told_changes).map(|files| format!("[files]\n{files}"));
        let notes = (!self.notes.is_empty()).then(|| format!("[notes]\n{}", self.notes.join("\n")));
        files.into_iter().chain(notes).chain(self.network.clone())
    }

    /// What a person reads of it while its turn goes on: the last lines that it printed, the files that it changed, and what
    /// there is to know besides.
    pub(crate) fn brief(&self, scope: &ToolScope) -> Vec<String> {
        let printed = [&self.outcome.standard, &self.outcome.error].map(|output| masked(scope, output));
        let printed: Vec<&str> = printed.iter().flat_map(|text| text.lines()).collect();
        let last = if self.outcome.ending == Ending::Exited(0) { LAST_OF_GOOD } else { LAST };
        let before = printed.len().saturating_sub(last);
        let more = (before > 0).then(|| format!("[more before: {before} lines]"));
        let printed = more.into_iter().chain(printed[before..].iter().map(|line| (*line).to_owned()));
        printed.chain(self.brief_besides()).collect()
    }

    /// The part of [`Self::brief`] behind what it printed.
    pub(crate) fn brief_besides(&self) -> Vec<String> {
        let notes = self.notes.iter().flat_map(|notes| notes.lines()).take(LAST);
        let network = self.network.iter().flat_map(|network| network.lines().skip(1)).take(LAST);
        let files = self.files.into_iter().flat_map(ChangedFiles::brief);
        files.chain(notes.chain(network).map(str::to_owned)).collect()
    }
}

/// What there is to know besides, a line each; nothing where all is as it should be.
pub(crate) fn notes(outcome: &Outcome, report: &LevelReport) -> Option<String> {
    let of_notice = |told: &Notice| match told {
        // Told with what became of it.
        Notice::Quarantined { path, .. } if outcome.left_of(path).is_some() => None,
        Notice::Restored(path) => Some(match outcome.left_of(path) {
            Some(to) => {
                format!("{}; what it became was moved to {}{}", notice(told), shown(to), other_names(outcome))
            }
            None => notice(told),
        }),
        told => Some(notice(told)),
    };
    let mut notes: Vec<String> = outcome.notices.iter().filter_map(of_notice).collect();
    if outcome.level < Level::Full {
        notes.push(format!("the sandbox is {}: {}", outcome.level, report.missing.join("; ")));
    }
    (!notes.is_empty()).then(|| notes.join("\n"))
}

/// At level full only what another name leads to is changed: that name stays with what it became.
fn other_names(outcome: &Outcome) -> &'static str {
    if outcome.level == Level::Full { ", and its other names (hard links) lead there" } else { "" }
}

fn shown(path: &Path) -> String {
    line_name(&path.display().to_string())
}

/// Says which git folders below the top of a root, as of a clone or another working tree, lack what was moved away.
fn missed_by_git(roots: &AllowedRoots, outcome: &Outcome) -> Option<String> {
    let is_below =
        |folder: &Path| roots.all().any(|root| folder != root.path() && folder.starts_with(root.path()));
    let missed = outcome.notices.iter().filter_map(|notice| match notice {
        Notice::Quarantined { path, .. } if outcome.left_of(path).is_none() => {
            path.ancestors().skip(1).find(|above| above.join(".git").exists())
        }
        _ => None,
    });
    let folders: BTreeSet<String> = missed
        .filter(|folder| is_below(folder))
        .map(|folder| line_name(&folder.display().to_string()))
        .collect();
    let named = folders.into_iter().collect::<Vec<_>>().join(", ");
    (!named.is_empty()).then(|| {
        format!(
            "if git has what was moved away from {named}, it takes it for deleted there: commit by names, as \
             `git commit -a` would commit the deletion"
        )
    })
}

/// Text of an output stream. A secret of which a part is left out is left out whole.
fn masked(scope: &ToolScope, output: &BoundedOutput) -> String {
    let tail: Vec<u8> = output.tail.iter().copied().collect();
    let mut masked = MaskedOutput::new(&scope.masker);
    let mut text = masked.push(&output.head);
    if output.omitted > 0 {
        masked.skip();
        text += &format!("\n[… {} bytes left out …]\n", output.omitted);
    }
    text + &masked.push(&tail) + &masked.finish()
}

pub(super) fn ending(ending: &Ending) -> String {
    match ending {
        Ending::Exited(code) => format!("exit {code}"),
        Ending::Signaled(number) => format!("ended by signal {number}"),
        Ending::TimedOut => "ended: its time was over; ask for a longer timeout".to_owned(),
        Ending::Cancelled => "stopped".to_owned(),
        Ending::OverLimit(limit) => format!("ended: over the limit of {limit}"),
    }
}

/// What a notice says, in words for a model and its owner.
pub(super) fn notice(notice: &Notice) -> String {
    let name = shown;
    match notice {
        Notice::Ended(names) => format!("ended what it left running: {}", line_name(&names.join(", "))),
        Notice::Quarantined { path, to } => {
            let advice = match (lies_in_never(path), to.is_dir()) {
                (true, _) => "",
                (false, true) => "; name it in touches to make it",
                (false, false) => "; name it in touches to make it, or use write",
            };
            format!("{} is protected: what it made there was moved to {}{advice}", name(path), name(to))
        }
        Notice::Restored(path) => {
            format!("{} is protected: it is back as it was; name it in touches to write it", name(path))
        }
        Notice::NotRestored { path, problem } => {
            format!("{} is protected, was changed and could not be given back: {problem}", name(path))
        }
        Notice::DiffersFromIndex(paths) => {
            let paths: Vec<String> = paths.iter().map(|path| name(path)).collect();
            format!(
                "git has another text of {} than the folder, where it is protected: the next commit of all would take \
                 the folder's; to take git's, run `git checkout -- {}` with touches {paths:?}",
                paths.join(", "),
                paths.join(" ")
            )
        }
        Notice::NotAllScanned(path) => {
            format!("{} has too many files to look for protected ones in all of them", name(path))
        }
        Notice::TooManyProtected(path) => {
            format!("{} has too many git folders and other protected paths for a further command", name(path))
        }
        Notice::NetworkSeemsMissing => {
            "it seems to need a network: `net` of exec names the hosts that a command may reach".to_owned()
        }
        Notice::Lacks(what) => what.clone(),
    }
}

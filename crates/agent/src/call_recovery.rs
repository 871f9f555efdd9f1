//! Calls of tools that nobody runs any more: what came of them is not known, and that is their result (spec: agent §1
//! *Crash*). None is run again.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use loom::plan::CallResult;
use loom::{
    Ascent, Block, Millis, NodeId, Op, PositionId, Role, RowError, Seq, ToolStatus, TreeId, TreeReader,
    Trust, ViewName,
};
use store::home::{DATABASE, Home, HomeDir};
use store::{
    AttachedWrites, CallEnd, Claim, FileChange, FileState, Guard, LIST_PAGE, LeaseOwner, Principal,
    RunningCall, StoreError, all_pages,
};
use tools::{CommandRecovery, LeftFile, UnfinishedRoots};
use workspace::StoreGuard;

use crate::blocking::on_disk;
use crate::error::AgentError;
use crate::runtime::Runtime;
use crate::session::{CallChanges, result, tool_author, turn_of, writes_texts};
use crate::unmade_changes::MadeChanges;

/// What the model is told of such a call, with what became of the files that it was about to change: all that is known of a
/// tool that writes texts, and a part of what another one may have done, of which changes are `written` down.
fn told(tool: &str, changes: &MadeChanges, written: &[FileChange]) -> String {
    let paths: BTreeSet<_> = written.iter().map(|change| (&change.root, &change.path)).collect();
    let (is_none, changed) = match (writes_texts(tool), paths.len()) {
        (true, _) => (changes.are_none(), changes.told()),
        (false, 0) => (false, None),
        (false, 1) => (false, Some("It changed 1 path.".to_owned())),
        (false, number) => (false, Some(format!("It changed {number} paths."))),
    };
    let effect = (!is_none).then(|| "It may have had its effect.".to_owned());
    let lost = "The outcome of this call is unknown: it was cut off.".to_owned();
    [Some(lost), effect, changed].into_iter().flatten().collect::<Vec<_>>().join(" ")
}

/// A time in ns since 1970.
const fn nanoseconds(time: Millis) -> i64 {
    time.0.saturating_mul(1_000_000)
}

/// The folder of the records of commands, and what keeps the store's files closed. It blocks.
fn records(home: &Home) -> Result<(PathBuf, StoreGuard), String> {
    let records = home.dir(HomeDir::CheckpointCache).map_err(|error| error.to_string())?;
    let guard = StoreGuard::of(&home.root().join(DATABASE)).map_err(|error| error.to_string())?;
    Ok((records, guard))
}

/// The tool that a call of an answer names; none of one that was forgotten.
fn tool_of(rows: &dyn TreeReader, answer: NodeId, number: u32) -> Result<Option<String>, RowError> {
    let Some(row) = rows.node(answer)?.filter(|row| !row.purged) else { return Ok(None) };
    let tools = row.node.content.iter().filter_map(|block| match block {
        Block::ToolCall { name, arguments, .. } => Some(context::tools::unwrapped(name, arguments).0),
        _ => None,
    });
    Ok(tools.map(str::to_owned).nth(number as usize))
}

/// A call that was cut off, as its tree shows it.
struct LostCall {
    id: String,
    tool: String,
    trust: Trust,
    view: ViewName,
    /// Where its result goes.
    at: PositionId,
    /// The operation that began its turn, if that is what would be undone next.
    part_of: Option<Seq>,
}

impl LostCall {
    /// None where its view went elsewhere since, or what called it was forgotten: a request says of a started call
    /// without a result that its outcome is unknown.
    fn read(rows: &dyn TreeReader, answer: NodeId, number: u32) -> Result<Option<Self>, RowError> {
        let Some(row) = rows.node(answer)?.filter(|row| !row.purged) else { return Ok(None) };
        let calls = row.node.content.iter().filter_map(|block| match block {
            Block::ToolCall { id, name, .. } => Some((id, name)),
            _ => None,
        });
        let Some((id, tool)) = calls.into_iter().nth(number as usize) else { return Ok(None) };
        let Some(generation) = row.node.generation else { return Ok(None) };
        let place = rows.generation(generation)?.and_then(|generation| generation.place);
        let Some(view) = place.map(|place| place.view) else { return Ok(None) };
        let at = match loom::render::tip(rows, &view) {
            Ok(at) => at,
            Err(RowError::Missing { what: "view", .. }) => return Ok(None),
            Err(error) => return Err(error),
        };
        for position in Ascent::new(rows, at) {
            let position = position?;
            if position.id == row.node.position {
                let part_of = turn_of(rows, &view)?;
                let (id, tool, trust) = (id.clone(), tool.clone(), row.node.trust);
                return Ok(Some(Self { id, tool, trust, view, at, part_of }));
            }
            if position.role != Some(Role::Tool) {
                break;
            }
        }
        Ok(None)
    }
}

impl Runtime {
    /// Ends the running calls of a tree whose session is held: nobody runs them any more.
    ///
    /// # Errors
    /// As the store says; what was not ended is found again.
    pub async fn end_calls_of(
        &self,
        tree: TreeId,
        guard: Guard,
        tell: &(dyn Fn(String) + Send + Sync),
    ) -> Result<(), AgentError> {
        let is_lost = |call: &RunningCall| call.tree == tree;
        self.end_calls(&Principal::Owner, is_lost, &[guard], tell).await.map(drop)
    }

    /// Ends running calls that are lost, and clears away what they left beside files: what became of it is told. Returns
    /// how many there were.
    ///
    /// # Errors
    /// As the store says; what was not ended is found again.
    pub(crate) async fn end_calls(
        &self,
        who: &Principal,
        is_lost: impl Fn(&RunningCall) -> bool,
        guards: &[Guard],
        tell: &(dyn Fn(String) + Send + Sync),
    ) -> Result<u64, AgentError> {
        let mut ended = 0;
        let page = |after| self.store.running_calls(who, after, LIST_PAGE);
        for call in all_pages(|call: &RunningCall| call.id, page).await? {
            if !is_lost(&call) {
                continue;
            }
            let changes = self.changes_of(who, &call).await?;
            let UnfinishedRoots { opened, away } = self.reach_roots(&call, &changes).await;
            opened.into_iter().for_each(tell);
            if let Some(root) = away {
                // Others have nothing to do with it.
                if !guards.is_empty() {
                    tell(format!("what a call changed that was cut off waits for {root}"));
                }
                continue;
            }
            let to = LeaseOwner::new(self.instance.to_string());
            let claim = match self.store.take_over_call(who, call.clone(), &to).await {
                Ok(claim) => claim,
                // Another process is at it, or it has its result.
                Err(StoreError::Fenced { .. }) => continue,
                Err(error) => return Err(error.into()),
            };
            let (answer, number) = (call.id.answer, call.id.number);
            let read = move |rows: &dyn TreeReader| {
                Ok((LostCall::read(rows, answer, number)?, tool_of(rows, answer, number)?))
            };
            let (found, tool) = self.read(who, call.tree, read).await?;
            let (trust, tool) =
                (found.as_ref().map_or(Trust::Outside, |lost| lost.trust), tool.unwrap_or_default());
            let since = self.now();
            self.clear_away(&changes).await.into_iter().for_each(tell);
            // One that is only stopped goes on with its changes when it is let run, and they stay written down.
            let is_gone = self.is_gone(&call.claim.owner)?;
            let changes = match is_gone {
                true => self.end_changes(who, &call, &tool, (changes, since)).await?,
                false => MadeChanges::default(),
            };
            changes.notices(&tool).into_iter().for_each(tell);
            let CommandRecovery { lost, waiting } = self.keep_changes((&call, trust), &claim, guards).await;
            for why in lost {
                tell(format!("what a command changed that was cut off cannot be given back: {why}"));
            }
            // Whoever comes next finds it without a result once more.
            if !waiting.is_empty() {
                let why = waiting.join("; ");
                tell(format!("what a command changed that was cut off is not written down yet: {why}"));
                continue;
            }
            let written = if is_gone { self.changes_of(who, &call).await? } else { Vec::new() };
            let with = AttachedWrites {
                calls: vec![CallEnd { id: call.id, claim }],
                guards: guards.to_vec(),
                ..AttachedWrites::nothing()
            };
            match found {
                Some(LostCall { id, tool, trust, view, at, part_of }) => {
                    let author = tool_author(&tool);
                    let told = vec![Block::text(told(&tool, &changes, &written))];
                    let text = result(&id, ToolStatus::Unknown, told, (author.clone(), trust));
                    let op = Op::Result(Box::new(CallResult { to: at, text, part_of }));
                    self.change_as((who, &author, trust), call.tree, &view, op, with).await?;
                }
                None => self.apply_rows(who, call.tree, with).await?,
            }
            ended += 1;
        }
        Ok(ended)
    }

    /// Looks for the folders that a lost call may have changed. One may not be there by now, as one of a drive that is not
    /// mounted: as long as bytes of changes are kept, it may come back.
    async fn reach_roots(&self, call: &RunningCall, changes: &[FileChange]) -> UnfinishedRoots {
        let since = self.kept_files.oldest(self.now());
        let changed = changes.iter().filter(|change| change.at >= since);
        let roots: BTreeSet<PathBuf> = changed.map(|change| change.root.clone()).collect();
        let (home, name) = (Arc::clone(&self.home), call.id.to_string());
        let look = move || {
            let found = records(&home).map(|(records, guard)| {
                tools::reach_roots((&records, &guard), &name, nanoseconds(since), roots)
            });
            found.unwrap_or_default()
        };
        on_disk(look).await
    }

    /// Clears away what a lost call left beside files it was about to change. Returns what became of it, in words. Where
    /// that fails the call is ended all the same.
    async fn clear_away(&self, changes: &[FileChange]) -> Vec<String> {
        let files: Vec<LeftFile> = changes.iter().cloned().map(left_by).collect();
        if files.is_empty() {
            return Vec::new();
        }
        let (locks, database) = (self.home.dir(HomeDir::Locks), self.home.root().join(DATABASE));
        let recover = move || {
            let locks = locks.map_err(|error| error.to_string())?;
            let guard = StoreGuard::of(&database).map_err(|error| error.to_string())?;
            Ok(tools::recover_files(&locks, &guard, files))
        };
        let done: Result<Vec<String>, String> = on_disk(recover).await;
        done.unwrap_or_else(|why| vec![format!("a change that was cut off: {why}")])
    }

    /// Writes down what a command of a lost call changed.
    async fn keep_changes(
        &self,
        (call, trust): (&RunningCall, Trust),
        claim: &Claim,
        guards: &[Guard],
    ) -> CommandRecovery {
        let recorder = CallChanges::of(self, (call.tree, call.id), Some(claim), guards, trust);
        let (home, since) = (Arc::clone(&self.home), nanoseconds(self.kept_files.oldest(self.now())));
        let recover = move || {
            records(&home).map(|(records, guard)| tools::recover_command(&records, &guard, &recorder, since))
        };
        on_disk(recover)
            .await
            .unwrap_or_else(|why| CommandRecovery { waiting: vec![why], ..CommandRecovery::default() })
    }
}

/// A file that a change was about to change.
pub fn left_by(change: FileChange) -> LeftFile {
    let digest = |state: FileState| match state {
        FileState::Large { stamp, .. } => Some(stamp),
        other => other.blob(),
    };
    let known = [change.before, change.after].into_iter().filter_map(digest).collect();
    LeftFile { root: change.root, path: change.path, known }
}

//! Skills that a turn followed which is asked again, as its tree tells: what it read, and what its owner named (ADR 42).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use loom::{Ascent, Block, NodeId, PositionId, Role, RowError, Seq, ToolStatus, TreeId, TreeReader};
use serde_json::Value;
use store::Principal;
use tools::{READ, SPAWN, ToolRegistry};

use super::named_at;
use crate::error::AgentError;
use crate::event::SessionEvent;
use crate::session::subagents::result_of;
use crate::session::turn::calls::{AskedCall, tool_author};
use crate::session::turn::{Turn, TurnConfig};
use crate::session::unanswered::original;

/// Positions that are read at once.
const READ_AT_ONCE: usize = 1_000;

/// What turns read and named, of those of which some answer a text.
#[derive(Default)]
struct FollowedBefore {
    /// Calls of `read`, each with its arguments.
    reads: Vec<(String, Value)>,
    /// Calls that went well.
    succeeded: BTreeSet<String>,
    /// Skills that were named.
    named: Vec<String>,
    /// Subagents whose results began one of the turns, with where these stand.
    subagents: BTreeMap<String, PositionId>,
}

impl FollowedBefore {
    /// Of the turns that answered a text, of the one in which it was said, and of those that began the subagents whose
    /// results began one of these: by the answers that began them, or where their trees are gone by what was said above the
    /// results of their beginning. Subagents of which neither is known are left in it, and all of them without the answers.
    fn of(
        rows: &dyn TreeReader,
        text: PositionId,
        began_by: Option<&BTreeMap<String, NodeId>>,
    ) -> Result<Self, RowError> {
        let mut found = Self::default();
        found.add_turn(rows, text)?;
        let Some(began_by) = began_by else { return Ok(found) };
        let mut looked_at = BTreeSet::new();
        loop {
            let mut next = None;
            for (name, result) in &found.subagents {
                let began = match began_by.get(name) {
                    Some(answer) => {
                        let row = rows.node(*answer)?.ok_or_else(|| RowError::missing("node", answer))?;
                        Some(row.node.position)
                    }
                    None => said_to_begin(rows, *result, name)?,
                };
                next = began.map(|began| (name.clone(), began));
                if next.is_some() {
                    break;
                }
            }
            let Some((name, began)) = next else { return Ok(found) };
            found.subagents.remove(&name);
            if looked_at.insert(began) {
                found.add_turn(rows, began)?;
            }
        }
    }

    /// Adds the turn in which something was said or answered, and the answers below it.
    fn add_turn(&mut self, rows: &dyn TreeReader, from: PositionId) -> Result<(), RowError> {
        let mut below = vec![from];
        while let Some(position) = below.pop() {
            let mut before = None;
            loop {
                let page = rows.children(position, before, READ_AT_ONCE)?;
                let Some(last) = page.last() else { break };
                before = Some(original(rows, last.id)?).map(|row| (row.seq, row.place));
                for child in page.iter().filter(|child| child.role != Some(Role::User)) {
                    self.add(rows, child.id)?;
                    below.push(child.id);
                }
            }
        }
        let turn = begun_by(rows, from)?;
        for position in Ascent::new(rows, from) {
            let position = position?;
            // What is said above the first answer of a turn is asked by it, though it was said before.
            if position.role != Some(Role::User) && original(rows, position.id)?.seq < turn {
                break;
            }
            self.add(rows, position.id)?;
        }
        Ok(())
    }

    fn add(&mut self, rows: &dyn TreeReader, position: PositionId) -> Result<(), RowError> {
        let Some(row) = rows.node(position.original())? else { return Ok(()) };
        self.named.extend(named_at(rows, position)?);
        let reads = AskedCall::of(&row).into_iter().filter(|call| call.tool == READ);
        self.reads.extend(reads.map(|call| (call.id, call.arguments)));
        self.succeeded.extend(row.node.content.iter().filter_map(|block| match block {
            Block::ToolResult { call_id, status: ToolStatus::Ok, .. } => Some(call_id.clone()),
            _ => None,
        }));
        // A result that came to a turn which was under way brought nothing to it.
        if let Some(subagent) = result_of(&row.node.author)
            && begun_by(rows, position)? == row.seq
        {
            self.subagents.entry(subagent.to_owned()).or_insert(position);
        }
        Ok(())
    }

    /// Has the turn that begins follow them.
    fn follow(self, registry: &ToolRegistry) {
        let Self { reads, succeeded, named, .. } = self;
        let reads = reads.into_iter().filter(|(id, _)| succeeded.contains(id));
        reads.for_each(|(_, arguments)| registry.follow_read(&arguments));
        registry.follow_named(&named);
    }
}

/// The result of the call that began a subagent, above what that came to.
fn said_to_begin(
    rows: &dyn TreeReader,
    from: PositionId,
    name: &str,
) -> Result<Option<PositionId>, RowError> {
    let begins = |block: &Block| match block {
        Block::ToolResult { status: ToolStatus::Ok, blocks, .. } => matches!(
            blocks.first(),
            Some(Block::Text { text }) if text.strip_prefix(name).is_some_and(|rest| rest.starts_with(" ("))
        ),
        _ => false,
    };
    for position in Ascent::new(rows, from) {
        let position = position?;
        let row = rows.node(position.id.original())?;
        if row.is_some_and(|row| row.node.author == tool_author(SPAWN) && row.node.content.iter().any(begins))
        {
            return Ok(Some(position.id));
        }
    }
    Ok(None)
}

/// The operation that began the turn of a node.
fn begun_by(rows: &dyn TreeReader, position: PositionId) -> Result<Seq, RowError> {
    let row = original(rows, position)?;
    Ok(rows.operation(row.seq)?.map_or(row.seq, |record| record.turn()))
}

impl Turn<'_> {
    /// Follows what was followed where a text was answered before which is asked again; where that is not known, reading alone
    /// is left.
    pub(in crate::session::turn) async fn follow_again(
        &self,
        config: &TurnConfig,
        (tree, text): (TreeId, Option<PositionId>),
    ) {
        let (Some(registry), Some(text)) = (&config.tools, text) else { return };
        if let Err(error) = self.follow_as_before(registry, tree, text).await {
            tracing::error!(%error, "which skills were followed before is not known");
            self.log.push(SessionEvent::notice(format!(
                "which skills were followed before is not known ({error}): until this turn ends only reading is allowed; say it \
                 anew to go on without them"
            )));
            registry.follow_unknown();
        }
    }

    async fn follow_as_before(
        &self,
        registry: &Arc<ToolRegistry>,
        tree: TreeId,
        text: PositionId,
    ) -> Result<(), AgentError> {
        let who = &Principal::Owner;
        let read = move |rows: &dyn TreeReader| FollowedBefore::of(rows, text, None);
        let mut found = self.runtime.read(who, tree, read).await?;
        if !found.subagents.is_empty() {
            let began_by = self.runtime.answers_of_subagents(self.session, tree).await?;
            let read = move |rows: &dyn TreeReader| FollowedBefore::of(rows, text, Some(&began_by));
            found = self.runtime.read(who, tree, read).await?;
        }
        if let Some((name, _)) = found.subagents.first_key_value() {
            return Err(AgentError::Refused(format!("which turn began {name} is not known")));
        }
        let registry = Arc::clone(registry);
        // It looks at the disk.
        let followed = tokio::task::spawn_blocking(move || found.follow(&registry)).await;
        followed.map_err(|failed| {
            AgentError::Refused(format!("which skills are followed is not known: {failed}"))
        })
    }
}

#[cfg(test)]
mod tests {
    use loom::plan::NewText;
    use loom::{Author, Mode, Op, Trust};
    use loom_testing::Fixture;
    use serde_json::json;

    use super::*;

    /// A text below those before it, in a turn that it begins where none is named; with its turn.
    fn say(
        fixture: &mut Fixture,
        part_of: Option<Seq>,
        (role, author): (Role, Author),
        content: Vec<Block>,
    ) -> (PositionId, Seq) {
        let texts = vec![NewText { content, author, role: Some(role), trust: Trust::Owner }];
        let made = fixture.made(Op::Reply { to: None, texts, exclude: Vec::new(), part_of });
        let position = made[0].as_position();
        (position, begun_by(&fixture.tree, position).unwrap())
    }

    fn owner(fixture: &mut Fixture, part_of: Option<Seq>) -> (PositionId, Seq) {
        say(fixture, part_of, (Role::User, Author::owner()), vec![Block::text("Go on.")])
    }

    /// A call of this id and its result. The node of the call.
    fn called(fixture: &mut Fixture, turn: Seq, (id, tool): (&str, &str), said: &str) -> NodeId {
        let (call_id, name) = (id.to_owned(), tool.to_owned());
        let call = Block::ToolCall { id: call_id.clone(), name, arguments: json!({"path": id}) };
        let (answer, _) = say(fixture, Some(turn), (Role::Assistant, tool_author("model")), vec![call]);
        let (status, blocks) = (ToolStatus::Ok, vec![Block::text(said)]);
        let result = Block::ToolResult { call_id, status, blocks };
        say(fixture, Some(turn), (Role::Tool, tool_author(tool)), vec![result]);
        answer.original()
    }

    fn read_and_named(
        fixture: &Fixture,
        text: PositionId,
        began_by: &BTreeMap<String, NodeId>,
    ) -> (Vec<String>, Vec<String>) {
        let found = FollowedBefore::of(&fixture.tree, text, Some(began_by)).unwrap();
        (found.reads.into_iter().map(|(id, _)| id).collect(), found.named)
    }

    /// A turn that names a skill, reads a file and begins a subagent.
    fn with_subagent() -> (Fixture, BTreeMap<String, NodeId>) {
        let mut fixture = Fixture::new(Mode::Dialogue);
        let named = (Role::User, tools::SessionSkill::author("paint"));
        let (_, turn) = say(&mut fixture, None, named, vec![Block::text("Paint.")]);
        owner(&mut fixture, Some(turn));
        called(&mut fixture, turn, ("first", "read"), "a");
        let other = called(&mut fixture, turn, ("other", "spawn"), "sub-2 (other) has begun.");
        let second = called(&mut fixture, turn, ("second", "spawn"), "sub-1 (second) has begun.");
        let names = ["sub-2", "sub-1"].map(str::to_owned);
        (fixture, names.into_iter().zip([other, second]).collect())
    }

    #[test]
    fn the_turn_that_a_result_begins_is_asked_again_with_what_began_its_subagent() {
        let result = (Role::Tool, tool_author("subagent/sub-1"));
        for (joins, followed) in [(false, true), (true, false)] {
            let (mut fixture, began_by) = with_subagent();
            let (text, turn) = owner(&mut fixture, None);
            called(&mut fixture, turn, ("glob", "glob"), "a");
            say(&mut fixture, joins.then_some(turn), result.clone(), vec![Block::text("Done.")]);
            let expected = if followed {
                (vec!["first".to_owned()], vec!["paint".to_owned()])
            } else {
                (Vec::new(), Vec::new())
            };
            assert_eq!(read_and_named(&fixture, text, &began_by), expected, "{joins}");
            // What began one whose tree is gone is said above.
            assert_eq!(read_and_named(&fixture, text, &BTreeMap::new()), expected, "{joins}");
        }
    }

    #[test]
    fn a_subagent_of_which_is_not_known_what_began_it_is_left() {
        for (tool, said, is_known) in [
            ("spawn", "sub-3 (docs) has begun.", true),
            ("spawn", "sub-30 (docs) has begun.", false),
            ("spawn", "I began sub-3 (docs).", false),
            ("subagent_status", "sub-3 (docs) has ended", false),
        ] {
            let mut fixture = Fixture::new(Mode::Dialogue);
            let (_, turn) = owner(&mut fixture, None);
            called(&mut fixture, turn, ("first", "read"), "a");
            called(&mut fixture, turn, ("call", tool), said);
            let (text, _) = owner(&mut fixture, None);
            let result = (Role::Tool, tool_author("subagent/sub-3"));
            say(&mut fixture, None, result, vec![Block::text("Done.")]);
            let found = FollowedBefore::of(&fixture.tree, text, Some(&BTreeMap::new())).unwrap();
            assert_eq!(
                (found.subagents.is_empty(), found.reads.len()),
                (is_known, usize::from(is_known)),
                "{tool} {said}"
            );
        }
    }

    #[test]
    fn what_was_said_while_a_turn_ran_is_asked_again_with_what_that_read_before() {
        for (joins, read) in [(true, &["later"][..]), (false, &[])] {
            let (mut fixture, began_by) = with_subagent();
            let (_, turn) = owner(&mut fixture, None);
            called(&mut fixture, turn, ("later", "read"), "a");
            let (text, _) = owner(&mut fixture, joins.then_some(turn));
            assert_eq!(read_and_named(&fixture, text, &began_by).0, read, "{joins}");
        }
    }
}

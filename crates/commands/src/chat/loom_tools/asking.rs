//! The tool that has the model of the turn go on elsewhere in a tree.

use ::tools::{CallPlace, Tool};
use loom::{NodeId, PositionKind, Role, Trust};
use schemars::JsonSchema;
use serde::Deserialize;

use super::place::{DEFECT, LoomAgent};
use crate::args::NodeArg;
use crate::args::tree::{Generate, Regenerate, Sampling, TreeCommand};
use crate::chat::conversation_tools::PAGE;
use crate::results::CommandOutcome;

const CONTINUE: &str = "loom_continue";

/// The name of it.
pub(super) const NAMES: [&str; 1] = [CONTINUE];

/// Answers that one call asks for.
const MOST: u32 = 4;

pub(super) fn tools(agent: &LoomAgent) -> Vec<Tool> {
    let agent = agent.clone();
    let tool = Tool::of_conversation(
        CONTINUE,
        "Have yourself answer a message of another place of this conversation's tree, or go on behind a passage of a document: \
         new nodes beside what stands there. Each costs what an answer costs.",
        move |place, asked: ContinueArguments| go_on(&agent, place, &asked),
    );
    vec![tool.changing_trees()]
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ContinueArguments {
    /// Id of the message that is answered, of the answer that gets siblings, or of the passage that is gone on with.
    node: String,
    /// How many: 1 without it, at most 4.
    count: Option<u32>,
    /// Id or title of a document: this conversation without it.
    tree: Option<String>,
}

fn go_on(agent: &LoomAgent, place: &CallPlace, asked: &ContinueArguments) -> Result<(String, Trust), String> {
    let target = agent.target(place, &asked.node, asked.tree.as_deref())?;
    let (node, at) = (&target.node, &target.at);
    if node.kind != PositionKind::Path {
        return Err(format!("{} is no passage: nothing goes on behind it", node.short_id));
    }
    target.require_earlier()?;
    let count = asked.count.unwrap_or(1);
    if !(1..=MOST).contains(&count) {
        return Err(format!("count is from 1 to {MOST}"));
    }
    let sampling = Sampling { n: Some(count), agents: vec![agent.name().to_owned()], ..Sampling::default() };
    let named = node.id.to_string();
    let command = match node.role {
        Some(Role::Assistant) => {
            TreeCommand::Regenerate(Regenerate { node: NodeArg { tree: at.arg(), node: named }, sampling })
        }
        Some(Role::User) | None => {
            TreeCommand::Generate(Generate { tree: at.arg(), from: Some(named), sampling })
        }
        Some(Role::Tool | Role::System) => {
            return Err(format!(
                "{} is neither a message nor an answer: nothing is asked there",
                node.short_id
            ));
        }
    };
    let CommandOutcome::Generated(done) = agent.asking(place)?.change(place, at, command)? else {
        return Err(DEFECT.to_owned());
    };
    let (tree, ids) = (at.tree, done.nodes.iter().map(|node| node.id).collect::<Vec<NodeId>>());
    let rows = agent.wait(async |app, asker| app.read(asker, tree, move |rows| rows.nodes(&ids)).await)?;
    let room = PAGE / rows.len().max(1);
    let (mut told, mut trust) = (String::new(), place.trust);
    for row in rows {
        let text = place.masked(&row.node.said());
        let cut: String = text.chars().take(room).collect();
        let more =
            if cut.len() < text.len() { "\n[there is more of it: read it with loom_view]" } else { "" };
        told += &format!("[{}]\n{cut}{more}\n", row.short_id);
        trust = trust.min(row.node.trust);
    }
    Ok((told, trust))
}

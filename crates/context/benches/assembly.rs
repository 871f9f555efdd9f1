//! How long a request takes to put together, manifest included, by the length of the path (spec: context §8).
//!
//! Files are read, 20 cards stand in the window, 200 skills are listed. The path is in memory: what a store takes for
//! its rows is measured by `drawloom bench`.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a benchmark fails by panicking, and prints figures"
)]

use std::sync::Arc;
use std::time::{Duration, Instant};

use drawloom_context::dialogue::{DialogueRequest, dialogue};
use drawloom_context::{
    BootFile, Bootstrap, Estimator, Previous, SkillEntry, SkillsIndex, TargetModel, TokenBudget, ToolSpec,
    cover, reuse,
};
use loom::plan::NewText;
use loom::reader::Injection;
use loom::{Author, Block, Digest, Mode, NodeId, Op, Role, Trust, ViewName};
use loom_testing::{Fixture, WriteRows};
use model::script::ScriptOptions;
use model::{DialectName, Model, Params, ScriptModel};

/// Requests measured of each path.
const TIMES: usize = 300;

fn main() {
    println!("window, nodes on the path, nodes sent: median, p99");
    let only: Vec<u64> = std::env::args().skip(1).filter_map(|argument| argument.parse().ok()).collect();
    if let [window, nodes] = only[..] {
        return measure(window, nodes as usize);
    }
    for window in [32_000, 200_000] {
        for nodes in [100_usize, 1_000, 10_000, 100_000] {
            measure(window, nodes);
        }
    }
}

fn measure(window: u64, nodes: usize) {
    let mut tree = Fixture::new(Mode::Dialogue);
    for node in 0..nodes {
        let role = if node % 2 == 0 { Role::User } else { Role::Assistant };
        let last = say(
            &mut tree,
            role,
            &format!("Turn {node}: the rain fell all night on the roofs of the town. ").repeat(3),
        );
        if role == Role::User && node + 60 > nodes {
            let shown = Injection {
                node: last,
                ordinal: 0,
                source: format!("card:{node}#1"),
                trust: Trust::Workspace,
                text: "A card: what is to be done when it rains. ".repeat(5),
            };
            tree.tree.add_injection(shown);
        }
    }
    say(&mut tree, Role::User, "and now?");
    let target = TargetModel {
        provider: "p".into(),
        dialect: DialectName::OpenAiChat,
        model: "m".into(),
        tools: true,
        pictures: false,
        sounds: true,
    };
    let mut request = DialogueRequest {
        bootstrap: Arc::new(workspace()),
        ..DialogueRequest::new(ViewName::default(), target, TokenBudget::new(window, 8_000, None))
    };
    let estimator = Estimator::default();
    let model = ScriptModel::echo(ScriptOptions::default());
    // The first request trims; those behind it begin where it did.
    let first = dialogue(&tree.tree, &request, &estimator).unwrap();
    if let Some(start) = first.new_start {
        tree.run(Op::Compact { to: Some(start), by_hand: false }).unwrap();
    }
    let before = model.encode(&first.prompt, &Params::default()).unwrap().body().to_vec();
    request.previous = Previous { prefix: first.prefix, used: Some(first.tokens), ..Previous::default() };
    let mut sent = 0;
    let mut times: Vec<Duration> = (0..TIMES)
        .map(|_| {
            let begun = Instant::now();
            let assembled = dialogue(&tree.tree, &request, &estimator).unwrap();
            let put_together = begun.elapsed();
            let encoded = model.encode(&assembled.prompt, &Params::default()).unwrap();
            let begun = Instant::now();
            let segments = cover(&encoded, &assembled.pieces, &estimator).unwrap();
            let reused = reuse::reused(&encoded, &assembled.pieces, &before);
            assert!(!segments.is_empty() && reused > 0);
            sent = assembled.runs[0].count;
            put_together + begun.elapsed()
        })
        .collect();
    times.sort_unstable();
    println!("{window}, {nodes}, {sent}: {:?}, {:?}", times[TIMES / 2], times[TIMES * 99 / 100]);
}

fn workspace() -> Bootstrap {
    let file = |name: &str| {
        let text = format!("{name}: be careful with the rain.\n").repeat(60);
        BootFile { name: name.into(), digest: Digest::of(text.as_bytes()), text, trust: Trust::Workspace }
    };
    let tool = |n: usize| ToolSpec {
        name: format!("tool-{n}"),
        description: "does something useful with a file".into(),
        parameters: serde_json::json!({"type": "object", "properties": {"path": {"type": "string"}}}),
        core: n < 14,
    };
    let skill = |n: usize| SkillEntry {
        name: format!("skill-{n}"),
        description: "how to do something that is done now and then".into(),
        path: format!("skills/{n}.md"),
    };
    Bootstrap {
        identity: "You are helpful.".into(),
        files: ["AGENTS.md", "SOUL.md", "IDENTITY.md", "USER.md", "TOOLS.md"].map(file).into(),
        tools: (0..30).map(tool).collect(),
        skills: Some(SkillsIndex { entries: (0..200).map(skill).collect(), trust: Trust::Workspace }),
        ..Bootstrap::default()
    }
}

/// Says something in a dialogue; the node of it.
fn say(tree: &mut Fixture, role: Role, text: &str) -> NodeId {
    let content = vec![Block::text(text)];
    tree.made(Op::Append(NewText { content, author: Author::owner(), role: Some(role), trust: Trust::Owner }))
        [0]
}

//! The contract of the command line, row by row (spec: cli §2): the flags that are named there are taken, and the
//! answer has the fields that are named there. More may be added; nothing may be renamed.

use serde_json::Value;

use crate::world::{World, text};

/// A command of the contract, and the fields of its answer; `a.b` is `b` in `a`, or in each item of `a`, of which
/// there is at least one.
struct Row {
    words: &'static str,
    fields: &'static str,
}

const fn row(words: &'static str, fields: &'static str) -> Row {
    Row { words, fields }
}

/// In an order in which each finds what it needs: `{tree}` is a document, `{node}` its first text, `{answer}` a
/// node a model made, `{note}` one that may be forgotten, `{file}` an export, `{copy}` another, `{backup}` a backup.
const ROWS: &[Row] = &[
    row("tree new --mode document --title New --text Words", "tree tip"),
    row("tree new --mode buffer --file {words}", "tree tip"),
    row("tree new --file {words} --split chapter", "tree tip"),
    row("tree new --mode dialogue", "tree tip"),
    row("tree list", "trees.tree trees.short_id trees.title trees.mode trees.nodes trees.updated"),
    row("tree list --archived", "trees"),
    row(
        "tree show {tree} --limit 200 --view main",
        "tree next nodes.id nodes.short_id nodes.position nodes.parent nodes.author nodes.author_kind nodes.kind \
         nodes.role nodes.trust nodes.edited_from nodes.versions nodes.siblings nodes.text nodes.drifted \
         nodes.pruned nodes.below_pruned nodes.excluded nodes.finish nodes.tags nodes.annotations nodes.settings \
         nodes.shown nodes.active head note draft window",
    ),
    row("tree show {tree} --all --depth 9", "tree nodes.id next"),
    row("tree show {tree} --from {node}", "tree nodes.id next"),
    row(
        "tree text {tree} --spans --committed",
        "text spans.start spans.end spans.position spans.node spans.author spans.kind spans.settings",
    ),
    row("tree append {tree} more", "node"),
    row("tree draft {tree} draft", "draft revision"),
    row("tree draft {tree} edited --at {node} --commit", "draft revision"),
    row("tree edit {tree} {node} --text other --as version", "node position edited_from"),
    row("tree edit {tree} {node} --text another --as branch", "node position edited_from"),
    row("tree branch {tree} {node} --at 1", "node position tip"),
    row(
        "tree generate {tree} -n 2 --temperature 0.5 --stop END --seed 7 --max-tokens 9 --from {node} \
         --preset calm --model script:echo",
        "nodes.id manifest usage",
    ),
    row("tree generate {tree} --agent poet --context {node} --instruction {node}", "nodes.id manifest usage"),
    row("tree generate {tree} --dry-run", "cost input_tokens"),
    row("tree regenerate {tree} {answer}", "nodes.id"),
    row("tree show {tree} --around {node} --depth 1", "tree nodes.id next"),
    row("tree siblings {tree} {answer}", "tree nodes.id nodes.short_id current"),
    row("tree versions {tree} {node}", "tree nodes.id current"),
    row("tree switch {tree} {answer}", "tip"),
    row("tree switch {tree} --next", "tip"),
    row("tree switch {tree} --prev", "tip"),
    row("tree switch {tree} 1", "tip"),
    row("tree switch {tree} {answer}", "tip"),
    row("tree go {tree} {node}", "tip"),
    row("tree go {tree} {answer}", "tip"),
    row("tree select {tree} {node}", "tip"),
    row("tree keep {tree} {answer} --below", "node"),
    row("tree prune {tree} {answer}", "node"),
    row("tree restore {tree} {answer}", "node"),
    row("tree exclude {tree} {node} --version", "node"),
    row("tree include {tree} {node} --version", "node"),
    row("tree bookmark {tree} {node} here", "node"),
    row("tree bookmarks {tree}", "tree nodes.id nodes.bookmark"),
    row("tree tag {tree} {node} good", "node"),
    row("tree annotate {tree} {node} remark", "node"),
    row("tree head {tree} --text above", "node"),
    row("tree note {tree} --text aside --depth 2", "node"),
    row("tree tag {tree}", "tree nodes.id nodes.tags"),
    row("tree annotate {tree} {node}", "tree nodes.id nodes.annotations.text"),
    row("tree head {tree}", "text node"),
    row("tree note {tree}", "text node depth"),
    row("tree draft {tree}", "text"),
    row("tree compact {tree} --to {node} --dry-run", "leaves covered_by"),
    row("tree undo {tree}", "operation skipped"),
    row("tree redo {tree}", "operation skipped"),
    row("tree log {tree}", "operations.seq operations.kind operations.view operations.agent operations.at"),
    row("tree view new {tree} second", ""),
    row("tree view list {tree}", "views.name views.tip"),
    row("tree view delete {tree} second", ""),
    row("tree compare {tree} {node} {answer}", "only_a only_b common"),
    row("tree verify {tree} --node {node}", "status assurance nodes unattested problems"),
    row("tree verify --file {file}", "status assurance nodes unattested problems"),
    row("tree seal {tree}", "seq head key"),
    row("tree rename {tree} Fable", "tree"),
    row("tree delete {tree}", ""),
    row("tree undelete {tree}", ""),
    row("tree export {tree} -o {copy}", "file contains left_out"),
    row("tree export {tree} --share -o {copy}.share.jsonl", "file contains left_out"),
    row("tree export {tree} --with-context -o {copy}.context.jsonl", "file contains left_out"),
    row("tree export {tree} --format text -o {copy}.txt", "file contains left_out"),
    row("tree export {tree} --format markdown -o {copy}.md", "file contains left_out"),
    row("tree export {tree} --format html -o {copy}.html", "file contains left_out"),
    row("tree export {tree} --format annotations -o {copy}.ann", "file contains left_out"),
    row("tree export {tree} --format training -o {copy}.training", "file contains left_out"),
    row("import {file} --as drawloom --dry-run", "tree trees sessions nodes skipped"),
    row("tree import {file} --format drawloom --copy", "tree trees sessions nodes skipped"),
    row("search rained", "hits.tree hits.node hits.source hits.snippet hits.score ranked"),
    row(
        "tree search rained",
        "hits.tree hits.node hits.source hits.snippet hits.score hits.kind hits.old hits.tags hits.annotations \
         ranked",
    ),
    row(
        "context show {answer}",
        "window budget used zone tainted_by segments.kind segments.source segments.reason segments.chars \
         segments.tokens segments.stable segments.decision",
    ),
    row("context show --next {tree}", "window budget used zone tainted_by segments.kind"),
    row("chat --model script:echo -m hello", "session node text usage zone manifest finish calls changed"),
    row("ask --model script:echo hello", "session node text usage zone manifest finish calls changed"),
    row(
        "--workspace {project} chat --session writes --model script:{calls} -m write",
        "calls.call calls.tool calls.effects calls.status calls.node changed.path changed.added changed.removed \
         denied.call denied.tool denied.node denied.why",
    ),
    row(
        "--workspace {project} files diff --session writes",
        "changes.path changes.kind changes.added changes.removed changes.by changes.kept",
    ),
    row(
        "--workspace {project} files history a --session writes",
        "versions.node versions.at versions.bytes versions.kept",
    ),
    row("--workspace {project} files restore a --session writes --yes", "given left"),
    row("--workspace {project} tools list", "tools.name tools.source tools.effects tools.policy"),
    row("--workspace {project} mcp list", "servers not_started"),
    row(
        "--workspace {project} skills list",
        "skills.name skills.path skills.source skills.eligible skills.missing skills.shadowed_by refused",
    ),
    row("--workspace {project} skills check --strict", "ok skills problems"),
    row("--workspace {project} skills show paint", "name path text"),
    row(
        "--workspace {project} cards list",
        "cards.id cards.path cards.source cards.state cards.why cards.name cards.description cards.version cards.tags \
         cards.keywords cards.tools cards.uses cards.examples cards.threshold cards.priority cards.max_chars refused",
    ),
    row("--workspace {project} cards check", "ok cards problems"),
    row("--workspace {project} cards new vat", "id path"),
    row(
        "--workspace {project} cards select --message warp",
        "tags.tag tags.confidence cards.id cards.path cards.decision cards.score cards.threshold cards.layers.phrases \
         cards.layers.bm25 cards.layers.letters cards.layers.likeness cards.layers.names_tag cards.matched cards.tokens \
         cards.cut tokens max_tokens text",
    ),
    row(
        "handoff check {handoff}",
        "ok bytes problems.file problems.line problems.code problems.severity problems.why",
    ),
    row("--workspace {project} handoff history", "handoffs"),
    row("skills new weave", "name path text"),
    row("skills remove weave --yes", "name path"),
    row("skills export {copy}.skills", "folder written unchanged"),
    row("--workspace {project} skills disable paint", "key value source"),
    row("approvals list", "approvals"),
    row("policy list", "rules"),
    row("policy test read {\"path\":\"a\"}", "decision rule why"),
    row("--json sandbox -- true", "level exit ms changed protected"),
    row(
        "log -n 2",
        "exchanges.session exchanges.tree exchanges.node exchanges.at exchanges.question exchanges.answer",
    ),
    row("context show --next --session main", "window budget used zone tainted_by segments.kind"),
    row("context diff {answer} {answer}", "added removed changed"),
    row("context replay {answer} --dry-run", "sha256 identical node"),
    row("context replay {answer} --model script:echo", "sha256 identical node"),
    row("forget {note} --dry-run", "removed.where removed.count unreachable"),
    row("forget --text unheard --yes --yes", "removed.where removed.count unreachable"),
    row("backup -o {backup}", "file bytes seq"),
    row("restore {backup} --to {copy}.home", "home verified"),
    row("store check", "ok"),
    row("cost", "period by total currency unpriced_tokens rows limits.day limits.spent_today"),
    row("config get model.default", "key value source"),
    row("config unset model.think", "key value source"),
    row("config set log.level error", "key value source"),
    row("config check", "ok problems"),
    row("config show --defaults", "settings.key settings.value settings.source schema"),
    row("config path", "home config workspace why"),
    row(
        "doctor --quick",
        "ok checks.name checks.state checks.why checks.fix sandbox.level sandbox.abi sandbox.missing",
    ),
    row("tree purge {tree} --yes --yes", "removed.where removed.count unreachable"),
];

/// Whether an answer has a field.
fn has(answer: &Value, field: &str) -> bool {
    let (first, rest) = field.split_once('.').map_or((field, None), |(first, rest)| (first, Some(rest)));
    let Some(found) = answer.get(first) else { return false };
    match (rest, found) {
        (None, _) => true,
        (Some(rest), Value::Array(items)) => !items.is_empty() && items.iter().all(|item| has(item, rest)),
        (Some(rest), found) => has(found, rest),
    }
}

#[test]
fn each_command_takes_its_flags_and_answers_with_its_fields() {
    let world = World::new();
    world.write(
        "config.toml",
        "[model]\ndefault = \"script:echo\"\n[presets.calm]\ntemperature = 0.1\n[agents.poet]\nn = 1\n",
    );
    std::fs::write(world.path("words.txt"), "some words").unwrap();
    let (_, made) = world.json(&["tree", "new", "--title", "Tale", "--text", "It rained."]);
    let tree = made["tree"].as_str().unwrap().to_owned();
    let node = world.json(&["tree", "show", &tree]).1["nodes"][1]["id"].as_str().unwrap().to_owned();
    let note =
        world.json(&["tree", "append", &tree, " An unheard word."]).1["node"].as_str().unwrap().to_owned();
    let answer = world.json(&["tree", "generate", &tree]).1["nodes"][0]["id"].as_str().unwrap().to_owned();
    let file = text(&world.path("tale.jsonl"));
    world.ok(&["--quiet", "tree", "export", &tree, "-o", &file]);
    let handoff = "# HANDOFF.md\n## Current Work\nPaint.\n## Stopping Point\nDry.\n## Key Outcomes\n## Open Questions\n## Next Steps\n";
    std::fs::write(world.path("HANDOFF.md"), handoff).unwrap();
    std::fs::create_dir_all(world.path("project/skills/paint")).unwrap();
    std::fs::create_dir_all(world.path("project/docs/capabilities")).unwrap();
    let card =
        "---\ncapability_id: loom\ntriggers: {keywords: [warp], router_tags: [debug]}\n---\nWind a warp.\n";
    std::fs::write(world.path("project/docs/capabilities/loom.md"), card).unwrap();
    let skill = "---\nname: paint\ndescription: How to paint.\n---\n";
    std::fs::write(world.path("project/skills/paint/SKILL.md"), skill).unwrap();
    let writes = [("a", "ok"), ("AGENTS.md", "asked")].map(
        |(path, text)| serde_json::json!({"name": "write", "arguments": {"path": path, "content": text}}),
    );
    let calls = [serde_json::json!({"tool_calls": writes}), serde_json::json!({"text": "Done."})];
    std::fs::write(world.path("calls.jsonl"), calls.map(|line| format!("{line}\n")).concat()).unwrap();
    let names = [
        ("{project}", text(&world.path("project"))),
        ("{calls}", text(&world.path("calls.jsonl"))),
        ("{handoff}", text(&world.path("HANDOFF.md"))),
        ("{words}", text(&world.path("words.txt"))),
        ("{tree}", tree),
        ("{node}", node),
        ("{note}", note),
        ("{answer}", answer),
        ("{file}", file),
        ("{copy}", text(&world.path("copy"))),
        ("{backup}", text(&world.path("kept.backup"))),
    ];
    let mut wrong = Vec::new();
    for row in ROWS {
        let filled = names.iter().fold(row.words.to_owned(), |words, (name, what)| words.replace(name, what));
        let words: Vec<&str> = filled.split_whitespace().collect();
        let run = world.run(&[&words[..], &["--json"]].concat());
        match serde_json::from_str::<Value>(&run.out) {
            Ok(answer) if run.code == Some(0) => {
                let missing = row.fields.split_whitespace().filter(|field| !has(&answer, field));
                wrong.extend(missing.map(|field| format!("{}: no {field} in {answer}", row.words)));
            }
            _ => wrong.push(format!("{}: {run:?}", row.words)),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn what_is_not_there_is_told_by_its_exit_code() {
    let world = World::new();
    let nowhere = text(&world.path("nowhere"));
    world.ok(&["tree", "new", "--title", "Tale", "--text", "It rained."]);
    world.ok(&["tree", "new", "--title", "Twice"]);
    world.ok(&["tree", "new", "--title", "Twice"]);
    std::fs::write(world.path("strange"), "no export").unwrap();
    let strange = text(&world.path("strange"));
    for (words, code) in [
        (&["tree", "show", "Nothing"][..], 3),
        (&["tree", "show", "Twice"], 2),
        (&["tree", "text", "Tale", "--view", "other"], 3),
        (&["tree", "edit", "Tale", "zzzz", "--text", "x"], 3),
        (&["tree", "undo", "Nothing"], 3),
        (&["tree", "trust", "Tale"], 4),
        (&["tree", "purge", "Tale"], 4),
        (&["forget", "--text", "rained"], 4),
        (&["forget", "--text", "snowed"], 3),
        (&["tree", "generate", "Tale"], 2),
        (&["tree", "generate", "Tale", "--model", "nobody/x"], 3),
        (&["tree", "generate", "Tale", "--model", "http://127.0.0.1:1/x"], 5),
        (&["tree", "export", "Tale", "-o", &strange], 2),
        (&["tree", "export", "Nothing"], 3),
        (&["import", &nowhere], 3),
        (&["import", &strange], 2),
        (&["import", &strange, "--as", "nonsense"], 2),
        (&["tree", "verify", "--file", &strange], 2),
        (&["context", "show", "zzzz"], 3),
        (&["context", "replay", "zzzz", "--dry-run"], 3),
        (&["search", "?!"], 2),
        (&["restore", &nowhere, "--to", &nowhere], 3),
        (&["restore", &strange], 2),
        (&["config", "get", "nothing.here"], 2),
        (&["config", "set", "log.level", "loud"], 2),
        (&["bench", "nothing"], 2),
        (&["completions", "nothing"], 2),
    ] {
        let (got, answer) = world.json(words);
        assert_eq!(got, Some(code), "{words:?}: {answer}");
        assert!(answer["error"]["hint"].as_str().is_some_and(|hint| !hint.is_empty()), "{words:?}: {answer}");
    }
}

#[test]
fn the_commands_without_json_are_those_that_the_documents_name() {
    let world = World::new();
    for words in [&["demo", "--json"][..], &["completions", "bash", "--json"]] {
        let out = world.ok(words);
        assert!(serde_json::from_str::<Value>(&out).is_err(), "{words:?}: {out}");
    }
    assert_eq!(world.run(&["mcp", "serve", "--json"]).code, Some(2));
    let readme = include_str!("../../../../README.md");
    assert!(readme.contains("`--json` works with every command but `demo`, `completions` and `mcp serve`"));
    let page = include_str!("../../../../docs/cli.md");
    assert!(page.contains("`demo`, `completions`, `mcp serve`, `--help` and `--version` have no JSON form"));
}

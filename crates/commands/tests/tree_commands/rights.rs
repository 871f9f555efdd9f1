//! Who may run what: every row of the table against every kind of caller (spec: security §5, §17).

use drawloom_commands::args::chat::ChatArgs;
use drawloom_commands::chat::Conversation;
use drawloom_commands::slash::{Input, TABLE, parse};
use drawloom_commands::{Asker, Right};
use model::ScriptModel;
use model::script::ScriptOptions;
use store::Scope;

use crate::home::{TestHome, command_line, field, homes, parsed};

/// Every command as typed, with the right its row must name.
fn rows() -> Vec<(&'static str, Right)> {
    use Right::{Act, Admin, Approve, Read, Write};
    vec![
        ("chat -m x", Act),
        ("ask x", Act),
        ("log", Read),
        ("sessions list", Read),
        ("sessions show S", Read),
        ("sessions rename S T", Write),
        ("sessions archive S", Write),
        ("sessions restore S", Write),
        ("approvals list", Approve),
        ("approve Q", Approve),
        ("deny Q", Approve),
        ("policy list", Admin),
        ("policy allow write", Admin),
        ("policy ask write", Admin),
        ("policy deny write", Admin),
        ("policy remove write", Admin),
        ("policy test write", Admin),
        ("files diff", Read),
        ("files history F", Read),
        ("files restore F", Write),
        ("tools list", Read),
        ("mcp list", Read),
        ("mcp get N", Read),
        ("mcp add N -- C", Admin),
        ("mcp remove N", Admin),
        ("mcp test N", Admin),
        ("mcp accept N", Admin),
        ("mcp login N", Admin),
        ("mcp logout N", Admin),
        ("mcp serve", Admin),
        ("skills list", Read),
        ("skills check", Read),
        ("skills show N", Read),
        ("skills run N", Act),
        ("skills new N", Admin),
        ("skills add F", Admin),
        ("skills remove N", Admin),
        ("skills export /dev/null/F", Admin),
        ("skills enable N", Admin),
        ("skills disable N", Admin),
        ("cards list", Read),
        ("cards check", Read),
        ("cards new a-b", Admin),
        ("cards select -m x", Read),
        ("handoff check F", Read),
        ("handoff history", Read),
        ("tree new", Write),
        ("tree list", Read),
        ("tree show T", Read),
        ("tree text T", Read),
        ("tree append T x", Write),
        ("tree draft T x", Write),
        ("tree edit T N --text x", Write),
        ("tree merge T N", Write),
        ("tree split T N --at 0", Write),
        ("tree branch T N --at 0", Write),
        ("tree generate T", Act),
        ("tree regenerate T N", Act),
        ("tree siblings T", Read),
        ("tree versions T", Read),
        ("tree bookmarks T", Read),
        ("tree tokens T", Read),
        ("tree switch T N", Write),
        ("tree go T N", Write),
        ("tree select T N", Write),
        ("tree keep T N", Write),
        ("tree prune T N", Write),
        ("tree restore T N", Write),
        ("tree exclude T N", Write),
        ("tree include T N", Write),
        ("tree bookmark T N x", Write),
        ("tree tag T N x", Write),
        ("tree annotate T N x", Write),
        ("tree head T --text x", Write),
        ("tree note T --text x", Write),
        ("tree compact T", Write),
        ("tree undo T", Write),
        ("tree redo T", Write),
        ("tree log T", Read),
        ("tree view list T", Read),
        ("tree view new T v", Write),
        ("tree view delete T v", Write),
        ("tree compare T N N", Read),
        ("tree verify T", Read),
        ("tree seal T", Admin),
        ("tree trust T", Admin),
        ("tree rename T x", Write),
        ("tree delete T", Write),
        ("tree undelete T", Write),
        ("tree purge T", Admin),
        ("tree export T", Admin),
        ("tree import F", Admin),
        ("tree search x", Read),
        ("context show N", Read),
        ("context diff N N", Read),
        ("context replay N", Act),
        ("cost", Read),
        ("model list", Read),
        ("model pull smollm2", Admin),
        ("model use a/b", Admin),
        ("model test", Act),
        ("init", Admin),
        ("workspace list", Read),
        ("workspace trust", Admin),
        ("workspace untrust", Admin),
        ("workspace accept F", Admin),
        ("import F", Admin),
        ("search x", Read),
        ("forget N", Admin),
        ("backup", Admin),
        ("restore F", Admin),
        ("store check", Read),
        ("config get k", Admin),
        ("config set k v", Admin),
        ("config unset k", Admin),
        ("config check", Admin),
        ("config show", Admin),
        ("config path", Admin),
        ("doctor", Read),
        ("bench", Write),
        ("sandbox -- true", Admin),
    ]
}

/// Every slash command as typed, with the right its row must name.
fn slash_rows() -> Vec<(&'static str, Right)> {
    use Right::{Act, Admin, Approve, Read, Write};
    vec![
        ("/help", Read),
        ("/status", Read),
        ("/context", Read),
        ("/sessions", Read),
        ("/new", Write),
        ("/wrap", Write),
        ("/wrap undo", Write),
        ("/switch s", Read),
        ("/rename t", Write),
        ("/fork", Write),
        ("/edit x", Act),
        ("/retry", Act),
        ("/regenerate", Act),
        ("/siblings", Read),
        ("/next", Write),
        ("/prev", Write),
        ("/undo", Write),
        ("/redo", Write),
        ("/history", Read),
        ("/copy", Read),
        ("/compact", Write),
        ("/reload", Write),
        ("/file a.png", Admin),
        ("/model m", Act),
        ("/think low", Act),
        ("/plan on", Act),
        ("/system", Act),
        ("/set seed=1", Act),
        ("/zone", Read),
        ("/cost", Read),
        ("/search x", Read),
        ("/verify", Read),
        ("/diff", Read),
        ("/restore a.txt", Write),
        ("/note x", Write),
        ("/export", Admin),
        ("/doctor", Read),
        ("/tools", Read),
        ("/skills", Read),
        ("/subagents", Read),
        ("/mcp", Read),
        ("/policy", Admin),
        ("/trust n", Admin),
        ("/approve", Approve),
        ("/deny", Approve),
        ("/queue x", Act),
        ("/stop", Act),
        ("/quit", Read),
        ("/exit", Read),
    ]
}

/// Rows that tools of an agent may run: those of the loom.
const FOR_AGENTS: [&str; 14] = [
    "tree list",
    "tree show",
    "tree edit",
    "tree generate",
    "tree regenerate",
    "tree siblings",
    "tree versions",
    "tree bookmarks",
    "tree prune",
    "tree bookmark",
    "tree tag",
    "tree annotate",
    "tree note",
    "tree view list",
];

fn callers() -> Vec<(&'static str, Asker, &'static [Right])> {
    use Right::{Act, Admin, Approve, Read, Write};
    let tree = loom::TreeId::from_bytes([1; 16]);
    let read = |with_context| Scope::ReadTree { tree, with_context };
    vec![
        ("owner", Asker::owner(), &[Read, Write, Act, Approve, Admin]),
        ("agent", Asker::agent("main"), &[Read, Write, Act]),
        ("reader", Asker::reader(), &[Read]),
        ("full token", Asker::token("t", Scope::Full, false, false), &[Read, Write, Act]),
        ("approving token", Asker::token("t", Scope::Full, true, false), &[Read, Write, Act, Approve]),
        ("admin token", Asker::token("t", Scope::Full, true, true), &[Read, Write, Act, Approve, Admin]),
        ("chat token", Asker::token("t", Scope::ChatSession("s".into()), true, true), &[Read, Act]),
        ("read token", Asker::token("t", read(false), true, true), &[Read]),
        ("read token with context", Asker::token("t", read(true), true, true), &[Read]),
    ]
}

/// The names of all commands that do something, in the order of the command line.
fn leaves(command: &clap::Command, above: &str, names: &mut Vec<String>) {
    for sub in command.get_subcommands().filter(|sub| sub.get_name() != "help") {
        let name = format!("{above} {}", sub.get_name()).trim().to_owned();
        if sub.has_subcommands() { leaves(sub, &name, names) } else { names.push(name) }
    }
}

#[test]
fn every_command_is_in_this_list() {
    let mut names = Vec::new();
    leaves(&command_line(), "", &mut names);
    let listed: Vec<String> =
        rows().iter().map(|(words, _)| parsed_words(words).spec().name.to_owned()).collect();
    for name in &names {
        assert!(listed.contains(name), "{name} has no row in the test");
    }
    assert_eq!(names.len(), listed.len());
}

fn parsed_words(words: &str) -> drawloom_commands::Command {
    parsed(&words.split(' ').collect::<Vec<_>>())
}

#[test]
fn a_command_that_sets_a_text_needs_only_to_read_without_one() {
    for words in
        ["tree tag T", "tree tag T N", "tree annotate T", "tree head T", "tree note T", "tree draft T"]
    {
        assert_eq!(parsed_words(words).spec().right, Right::Read, "{words}");
    }
}

#[tokio::test]
async fn a_caller_without_the_right_is_denied_before_anything_is_done() {
    for home in homes() {
        for (words, right) in rows() {
            let command = parsed_words(words);
            assert_eq!(command.spec().right, right, "{words}");
            let gives_out = matches!(
                command.spec().name,
                "approvals list" | "policy list" | "policy test" | "mcp serve" | "tree export" | "backup"
            );
            assert_eq!(command.only_reads(), right == Right::Read || gives_out, "{words}");
            let is_marked = FOR_AGENTS.contains(&command.spec().name);
            assert_eq!(command.spec().for_agents, is_marked, "{words}");
            for (name, asker, rights) in callers() {
                assert_eq!(asker.has(right), rights.contains(&right), "{name}: {words}");
                if !rights.contains(&right) || (name == "agent" && !is_marked) {
                    let error = home.app.run(&asker, command.clone()).await.unwrap_err();
                    assert_eq!((error.code.as_ref(), error.exit), ("denied", 4), "{name}: {words}");
                }
            }
        }
        assert!(home.ok(&["tree", "list"]).await["trees"].as_array().unwrap().is_empty());
    }
}

#[tokio::test]
async fn a_slash_command_is_denied_by_the_layer_whatever_the_surface_thinks() {
    let mut names: Vec<&str> =
        slash_rows().iter().map(|(line, _)| line[1..].split(' ').next().unwrap()).collect();
    names.dedup();
    assert_eq!(names, TABLE.map(|row| row.name), "every row has one in the test");
    for home in homes() {
        home.models.set(ScriptModel::echo(ScriptOptions::default()));
        let mut conversation =
            Conversation::open(&home.app, &Asker::owner(), &ChatArgs::default()).await.unwrap();
        for (line, right) in slash_rows() {
            let Input::Command(command) = parse(line) else { panic!("{line}") };
            assert_eq!(command.row().right, right, "{line}");
            for (name, asker, rights) in callers() {
                if !rights.contains(&right) || name == "agent" {
                    let command = command.clone();
                    let done = home.app.slash(&asker, &mut conversation, command).await;
                    let error = done.unwrap_err();
                    assert_eq!((error.code.as_ref(), error.exit), ("denied", 4), "{name}: {line}");
                }
            }
        }
        // Neither is a text said for someone who may not ask a model.
        for reader in [Asker::reader(), callers().pop().unwrap().1] {
            let error = conversation.take(&home.app, &reader, "hello").await.unwrap_err();
            assert_eq!(error.code, "denied");
        }
        assert!(home.ok(&["sessions", "list"]).await["sessions"].as_array().unwrap().is_empty());
    }
}

#[test]
fn a_flag_changes_the_right_only_where_it_changes_what_is_done() {
    use Right::{Act, Admin, Read};
    for (words, right) in [
        ("context replay N --dry-run", Read),
        ("store check --repair", Admin),
        ("tree trust T N --off", Admin),
        ("tree purge T --dry-run", Admin),
        ("forget N --dry-run", Admin),
        ("import F --dry-run", Admin),
        ("tree generate T --dry-run", Act),
        ("tree undo T --files", Right::Write),
        ("tree redo T --files", Right::Write),
    ] {
        assert_eq!(parsed_words(words).spec().right, right, "{words}");
    }
    for (line, right) in [
        ("/undo --files", Right::Write),
        ("/policy reset", Admin),
        ("/trust", Admin),
        ("/trust n --off", Admin),
        ("/plan", Act),
        ("/diff session", Read),
    ] {
        let Input::Command(command) = parse(line) else { panic!("{line}") };
        assert_eq!(command.row().right, right, "{line}");
    }
}

/// The control: what is denied is denied for the right, and for nothing else.
#[tokio::test]
async fn a_caller_with_the_right_is_not_denied() {
    for home in homes() {
        for (words, right) in rows() {
            for (name, asker, _) in callers().into_iter().filter(|(.., rights)| rights.contains(&right)) {
                // What lies beyond the scope of a token is denied, too.
                let is_scoped = name.starts_with("chat token") || name.starts_with("read token");
                if is_scoped || name == "agent" && !FOR_AGENTS.contains(&parsed_words(words).spec().name) {
                    continue;
                }
                if let Err(error) = home.app.run(&asker, parsed_words(words)).await {
                    // The folder of a test may not be written to, which is denied as well.
                    let of_rights = ["needs the right", "is not open to tools"];
                    let is_of_rights = of_rights.iter().any(|said| error.message.contains(said));
                    assert!(!is_of_rights, "{name}: {words}: {error:?}");
                }
            }
        }
    }
}

#[tokio::test]
async fn a_token_for_one_tree_sees_no_other_and_changes_none() {
    for home in homes() {
        let own = home.tree("buffer", "my heron").await;
        let other = home.tree("buffer", "other heron").await;
        let scope = Scope::ReadTree { tree: own.parse().unwrap(), with_context: false };
        let reader = Asker::token("t", scope, false, false);
        let node = field(&home.nodes(&other, &[]).await[1], "id");
        let seen = |outcome| serde_json::to_string(&outcome).unwrap();
        for words in [&["tree", "list"][..], &["search", "heron"], &["tree", "text", &own]] {
            let shown = seen(home.run_as(&reader, words).await.unwrap());
            assert!(shown.contains("my heron") || shown.contains(&own), "{words:?}");
            assert!(!shown.contains(&other) && !shown.contains("other heron"), "{words:?}: {shown}");
        }
        for words in [
            &["tree", "show", &other][..],
            &["tree", "show", &own, "--from", &node],
            &["tree", "text", &other],
            &["tree", "log", &other],
            &["tree", "view", "list", &other],
            &["tree", "compare", &other, &node, &node],
            &["search", "heron", "--tree", &other],
        ] {
            let error = home.run_as(&reader, words).await.unwrap_err();
            assert_eq!((error.code.as_ref(), error.exit), ("not_found", 3), "{words:?}");
        }
        assert_eq!(home.run_as(&reader, &["tree", "append", &own, "x"]).await.unwrap_err().code, "denied");
        control(&home, &other).await;
    }
}

/// The owner is shown what the token is not.
async fn control(home: &TestHome, other: &str) {
    assert!(home.ok(&["tree", "list"]).await.to_string().contains(other));
    assert!(home.ok(&["search", "heron"]).await.to_string().contains("other heron"));
}

#[tokio::test]
async fn what_is_written_is_by_whoever_asked_and_believed_as_they_are() {
    for home in homes() {
        let tree = home.tree("buffer", "It rained. ").await;
        for (asker, kind, id, trust) in [
            (Asker::token("t", Scope::Full, false, false), "human", "token/t", "outside"),
            (Asker::owner(), "human", "owner", "owner"),
        ] {
            let by = |node: &serde_json::Value| {
                [field(node, "author_kind"), field(node, "author"), field(node, "trust")]
            };
            home.run_as(&asker, &["tree", "append", &tree, "More. "]).await.unwrap();
            let appended = home.nodes(&tree, &[]).await.pop().unwrap();
            assert_eq!(by(&appended), [kind, id, trust]);
            // What is typed first and committed later, too.
            home.run_as(&asker, &["tree", "draft", &tree, "Typed. ", "--commit"]).await.unwrap();
            assert_eq!(by(&home.nodes(&tree, &[]).await.pop().unwrap()), [kind, id, trust]);
            let log = home.ok(&["tree", "log", &tree]).await.to_string();
            assert!(log.contains(id), "{log}");
        }
    }
}

//! Tools in a turn: what is said meanwhile, and calls that nobody runs any more (spec: agent §1).

use std::path::Path;
use std::sync::Arc;

use drawloom_agent::questions::{AnswerText, Decision};
use drawloom_agent::session::{Say, SessionOperation, Sessions, TurnInput, spawn};
use drawloom_agent::{SessionEvent, TurnConfig};
use loom::path::ViewOverrides;
use loom::plan::{CallResult, NewText};
use loom::render::{tip, window};
use loom::{Author, AuthorKind, Block, Digest, Op, Role, ToolStatus, TreeId, Trust};
use model::Cancel;
use store::{
    AttachedWrites, CallId, Claim, Fence, FileState, LeaseOwner, NewCall, NewFileChange, NewFileChanges,
};
use text::mask::Masker;
use tools::{ToolRegistry, ToolScope};
use workspace::{AllowedRoots, Root, StoreGuard};

use crate::support::{House, Process, WHO, config, said, script};

/// As models are asked here, with tools that look at a folder.
pub(crate) fn with_tools(lines: &str, folder: &Path) -> TurnConfig {
    with_policy(lines, folder, policy::Policy::default())
}

/// The same by a policy.
pub(crate) fn with_policy(lines: &str, folder: &Path, policy: policy::Policy) -> TurnConfig {
    with_further(lines, folder, policy, Vec::new())
}

/// The same with tools of a test.
pub(crate) fn with_further(
    lines: &str,
    folder: &Path,
    policy: policy::Policy,
    further: Vec<tools::Tool>,
) -> TurnConfig {
    let root = Root::open(folder, &StoreGuard::new()).unwrap();
    let masker = Arc::new(Masker::new(&[]).unwrap());
    let scope = ToolScope {
        roots: AllowedRoots::within(vec![root]).into(),
        trust: Trust::Workspace,
        masker,
        policy: policy.into(),
        session: policy::SessionType::Main,
        locks: folder.with_extension("locks"),
        umask: 0o022,
        seen: tools::SeenFiles::default(),
        max_pixels: 1_000_000,
        search_time: std::time::Duration::from_secs(600),
        commands: None,
        hooks: Vec::new(),
    };
    let names: Vec<String> =
        ToolRegistry::names().into_iter().chain(further.iter().map(|tool| tool.spec.name.clone())).collect();
    let registry = ToolRegistry::new(scope, further, &names).unwrap();
    TurnConfig { tools: Some(Arc::new(registry)), ..config(&script(lines)) }
}

/// The conversation: who spoke, and how a call of a tool ended.
pub(crate) async fn spoken(process: &Process) -> Vec<(Role, Option<ToolStatus>)> {
    let tree = process.enter().await.tree;
    let read = process.runtime.read(&WHO, tree, |rows| {
        let view = loom::ViewName::default();
        let path = ViewOverrides::read(rows, &view, tip(rows, &view)?)?;
        window(rows, &view, &path, None, 1_000)
    });
    let passages = read.await.unwrap().into_iter().filter_map(|passage| {
        let ended = passage.row.node.content.iter().find_map(|block| match block {
            Block::ToolResult { status, .. } => Some(*status),
            _ => None,
        });
        Some((passage.row.node.role?, ended))
    });
    passages.collect()
}

const LOOKS: &str = r#"{"tool_calls": [{"name": "list", "arguments": {}}, {"name": "list", "arguments": {"path": "no"}}], "delay_ms": 1000}
{"text": "Done.", "expect": ["second"]}"#;

#[tokio::test(start_paused = true)]
async fn what_is_said_while_tools_run_stands_behind_their_results_in_the_same_turn() {
    let (house, folder) = (House::new(), tempfile::tempdir().unwrap());
    let process = house.process("chat");
    let talk = process.talk(with_tools(LOOKS, folder.path()), TurnInput::text("first")).await;
    talk.steer("second").await;
    let ended = talk.until_it_ends(Cancel::never()).await;
    let texts: Vec<_> = ended.into_iter().map(|(texts, turned)| (texts, turned.is_ok())).collect();
    assert!(texts.iter().all(|(_, is_ok)| *is_ok), "{texts:?}");
    let mut said = spoken(&process).await;
    let results: Vec<_> = said.drain(2..4).collect();
    assert!(results.contains(&(Role::Tool, Some(ToolStatus::Ok))));
    assert!(results.contains(&(Role::Tool, Some(ToolStatus::Error))));
    let roles: Vec<Role> = said.into_iter().map(|(role, _)| role).collect();
    assert_eq!(roles, [Role::User, Role::Assistant, Role::User, Role::Assistant]);
    assert!(process.runtime.store.running_calls(&WHO, None, 9).await.unwrap().is_empty());
    let tree = process.enter().await.tree;
    let view = loom::ViewName::default();
    process.runtime.change(&WHO, tree, &view, Op::Undo, AttachedWrites::nothing()).await.unwrap();
    assert!(spoken(&process).await.is_empty(), "one step takes back the turn, and what was said in it");
}

/// What is said elsewhere is no part of what the tools' results are sent with.
#[tokio::test(start_paused = true)]
async fn what_is_said_elsewhere_while_tools_run_waits_for_the_answer() {
    let (house, folder) = (House::new(), tempfile::tempdir().unwrap());
    let process = house.process("chat");
    process.say(&script(r#"{"text": "Yes."}"#), "before").await.unwrap();
    let tree = process.enter().await.tree;
    let read = process.runtime.read(&WHO, tree, |rows| tip(rows, &loom::ViewName::default()));
    let earlier = read.await.unwrap();
    let lines = LOOKS.replace("\"expect\": [\"second\"]", "\"expect\": [\"first\"]")
        + "\n{\"text\": \"Elsewhere.\", \"expect\": [\"second\"]}";
    let asked = with_tools(&lines, folder.path());
    let talk = process.talk(asked.clone(), TurnInput::text("first")).await;
    let say = Say {
        reply_to: Some(earlier),
        ..said(process.runtime.new_id().unwrap(), Arc::new(asked), TurnInput::text("second"))
    };
    talk.session.send(SessionOperation::Say(Box::new(say))).await.unwrap();
    let ended = talk.until_it_ends(Cancel::never()).await;
    assert_eq!(ended.len(), 2, "each has its answer");
    let roles: Vec<Role> = spoken(&process).await.into_iter().map(|(role, _)| role).collect();
    assert_eq!(roles, [Role::User, Role::Assistant, Role::User, Role::Assistant], "the branch of the second");
}

#[tokio::test]
async fn a_result_does_not_bring_a_view_back_that_went_elsewhere() {
    let house = House::new();
    let process = house.process("chat");
    begun(&process).await;
    let tree = process.enter().await.tree;
    let view = loom::ViewName::default();
    let runtime = &process.runtime;
    let at = async || runtime.read(&WHO, tree, |rows| tip(rows, &loom::ViewName::default())).await.unwrap();
    let answer = at().await;
    let text = NewText {
        content: vec![Block::ToolResult {
            call_id: "c".to_owned(),
            status: ToolStatus::Ok,
            blocks: Vec::new(),
        }],
        author: Author { kind: AuthorKind::Tool, id: "list".to_owned(), profile: None },
        role: Some(Role::Tool),
        trust: Trust::Workspace,
    };
    let taken = async || {
        let op = Op::Result(Box::new(CallResult { to: answer, text: text.clone(), part_of: None }));
        runtime.change(&WHO, tree, &view, op, AttachedWrites::nothing()).await.unwrap().nodes[0].0
    };
    let message = runtime.read(&WHO, tree, move |rows| Ok(rows.position(answer)?.unwrap().parent.unwrap()));
    let message = message.await.unwrap();
    runtime.change(&WHO, tree, &view, Op::Move(message), AttachedWrites::nothing()).await.unwrap();
    let kept = taken().await;
    assert_eq!(at().await, message, "it stands below its answer, and nobody goes there");
    assert!(runtime.read(&WHO, tree, move |rows| rows.node(kept)).await.unwrap().is_some());
    runtime.change(&WHO, tree, &view, Op::Undo, AttachedWrites::nothing()).await.unwrap();
    assert_eq!(at().await, answer, "nor is it what undo takes back");
    let followed = taken().await;
    assert_eq!(at().await, followed.as_position(), "control: the view stood there");
}

/// Asked again: the answer is another one beside the first, and its turn is one step.
#[tokio::test]
async fn a_turn_that_asks_again_is_taken_back_in_one_step_too() {
    let (house, folder) = (House::new(), tempfile::tempdir().unwrap());
    let process = house.process("chat");
    process.say(&script(r#"{"text": "Yes."}"#), "first").await.unwrap();
    let tree = process.enter().await.tree;
    let before = spoken(&process).await;
    let view = loom::ViewName::default();
    let read = process.runtime.read(&WHO, tree, |rows| {
        let tip = tip(rows, &loom::ViewName::default())?;
        Ok(rows.position(tip)?.unwrap().parent.unwrap())
    });
    let message = read.await.unwrap();
    let lines = LOOKS.replace(", \"expect\": [\"second\"]", "").replace(", \"delay_ms\": 1000", "");
    let talk = process.talk(with_tools(&lines, folder.path()), TurnInput::Again { of: message }).await;
    assert!(talk.until_it_ends(Cancel::never()).await.remove(0).1.unwrap().reply.unwrap().error.is_none());
    assert_eq!(spoken(&process).await.len(), 5);
    process.runtime.change(&WHO, tree, &view, Op::Undo, AttachedWrites::nothing()).await.unwrap();
    assert_eq!(spoken(&process).await, before);
    process.runtime.change(&WHO, tree, &view, Op::Redo, AttachedWrites::nothing()).await.unwrap();
    assert_eq!(spoken(&process).await.len(), 5);
}

/// Where somebody can be asked, a limit is a question: with a yes the turn goes on, with a no it ends.
#[tokio::test]
async fn a_limit_is_a_question_to_whoever_is_there() {
    let folder = tempfile::tempdir().unwrap();
    let call = r#"{"tool_calls": [{"name": "list", "arguments": {}}]}"#;
    let lines = format!("{call}\n{call}\n{call}\n{{\"text\": \"Done.\"}}");
    for (decision, answers) in [(Decision::Approved, 4), (Decision::Denied, 3)] {
        let house = House::new();
        let process = house.process("chat");
        let session = spawn(&process.runtime, &Sessions::default(), &process.enter().await.session);
        let mut events = session.events(1);
        let asked = Arc::new(with_tools(&lines, folder.path()));
        let key = process.runtime.new_id().unwrap();
        let say = Say {
            answer_within: Some(drawloom_agent::questions::DEADLINE),
            ..said(key, asked, TurnInput::text("first"))
        };
        session.send(SessionOperation::Say(Box::new(say))).await.unwrap();
        let outcome = loop {
            match events.next().await.unwrap().event {
                SessionEvent::Question { question } => {
                    assert!(question.text.contains("list was called 3 times"), "{question:?}");
                    let answer =
                        process.runtime.answer_question(&WHO, question.id, decision, AnswerText::default());
                    answer.await.unwrap();
                }
                SessionEvent::Finished { outcome, .. } => break outcome,
                _ => {}
            }
        };
        let ended = outcome.error.map(|error| error.0.failure().code.into_owned());
        assert_eq!(ended.as_deref(), (decision == Decision::Denied).then_some("limit"));
        let roles = spoken(&process).await;
        assert_eq!(roles.iter().filter(|(role, _)| *role == Role::Assistant).count(), answers);
    }
}

#[tokio::test]
async fn an_answer_with_many_calls_comes_to_the_limit_within_it() {
    let folder = tempfile::tempdir().unwrap();
    let call =
        |first: &str, second: &str| format!(r#"{{"name": "list", "arguments": {{{first}, {second}}}}}"#);
    let (path, ignored) = (r#""path": ".""#, r#""path2": 1"#);
    let pair = [call(path, ignored), call(ignored, path)].join(",");
    let calls = [pair.as_str(); 4].join(",");
    let lines = format!(r#"{{"tool_calls": [{calls}]}}"#);
    let house = House::new();
    let process = house.process("chat");
    let session = spawn(&process.runtime, &Sessions::default(), &process.enter().await.session);
    let mut events = session.events(1);
    let asked = Arc::new(with_tools(&lines, folder.path()));
    let key = process.runtime.new_id().unwrap();
    let say = SessionOperation::Say(Box::new(said(key, asked, TurnInput::text("first"))));
    session.send(say).await.unwrap();
    let mut results = 0;
    let outcome = loop {
        match events.next().await.unwrap().event {
            SessionEvent::Result { .. } => results += 1,
            SessionEvent::Finished { outcome, .. } => break outcome,
            _ => {}
        }
    };
    let ended = outcome.error.map(|error| error.0.failure().code.into_owned());
    assert_eq!((results, ended.as_deref()), (3, Some("limit")));
}

/// A process that began both calls of an answer, of which the first has its result.
async fn begun(process: &Process) {
    let model =
        script(r#"{"tool_calls": [{"name": "list", "arguments": {}}, {"name": "list", "arguments": {}}]}"#);
    process.say(&model, "first").await.unwrap();
    let tree = process.enter().await.tree;
    let read = process.runtime.read(&WHO, tree, |rows| tip(rows, &loom::ViewName::default()));
    let answer = read.await.unwrap().original();
    let claim = Claim { owner: LeaseOwner::new(process.runtime.instance.to_string()), fence: Fence(1) };
    let id = CallId { answer, number: 1 };
    let new = NewCall { id, claim, guards: Vec::new() };
    process.runtime.store.start_call(&WHO, tree, new).await.unwrap();
}

/// Has the call of [`begun`] write down that it makes a file in a folder; the tree.
async fn about_to_make_a_file(process: &Process, folder: &Path) -> TreeId {
    let tree = process.enter().await.tree;
    let call = process.runtime.store.running_calls(&WHO, None, 9).await.unwrap().remove(0);
    let change = NewFileChange {
        root: folder.canonicalize().unwrap(),
        path: "a.txt".into(),
        before: FileState::Absent,
        after: FileState::File { mode: None, blob: Digest::of(b"new") },
        is_outside: false,
    };
    let (guards, accepted) = (Vec::new(), Vec::new());
    let new =
        NewFileChanges { call: call.id, claim: Some(call.claim), guards, changes: vec![change], accepted };
    process.runtime.store.keep_file_changes(&WHO, tree, new).await.unwrap();
    tree
}

#[tokio::test]
async fn a_call_of_a_process_that_died_has_an_unknown_outcome_and_is_not_run_again() {
    let house = House::new();
    let process = house.process("chat");
    begun(&process).await;
    let other = house.process("chat");
    other.runtime.recover(&()).await.unwrap();
    assert_eq!(spoken(&other).await.len(), 2, "its process lives");
    process.die();
    for _ in 0..2 {
        other.runtime.recover(&()).await.unwrap();
        let said = spoken(&other).await;
        assert_eq!(said[2..], [(Role::Tool, Some(ToolStatus::Unknown))], "once");
    }
    assert!(other.runtime.store.running_calls(&WHO, None, 9).await.unwrap().is_empty());
    let tree = other.enter().await.tree;
    let view = loom::ViewName::default();
    other.runtime.change(&WHO, tree, &view, Op::Undo, AttachedWrites::nothing()).await.unwrap();
    assert!(spoken(&other).await.is_empty(), "it belongs to its turn");
}

#[tokio::test]
async fn whoever_takes_a_session_ends_what_its_last_turn_began() {
    let house = House::new();
    let process = house.process("chat");
    begun(&process).await;
    let other = house.process("chat");
    other
        .say(&script(r#"{"text": "Go on.", "expect": ["outcome of this call is unknown"]}"#), "second")
        .await
        .unwrap();
    let said = spoken(&other).await;
    assert_eq!(said[2], (Role::Tool, Some(ToolStatus::Unknown)));
    assert_eq!(said[3..], [(Role::User, None), (Role::Assistant, None)]);
    assert!(other.runtime.store.running_calls(&WHO, None, 9).await.unwrap().is_empty());
}

/// A process that is only stopped makes its changes once it is let run: they stay written down.
#[tokio::test]
async fn changes_that_were_not_made_are_taken_back_once_their_process_is_gone() {
    for is_gone in [false, true] {
        let (house, folder) = (House::new(), tempfile::tempdir().unwrap());
        let process = house.process("chat");
        begun(&process).await;
        let tree = about_to_make_a_file(&process, folder.path()).await;
        if is_gone {
            process.die();
        }
        let other = house.process("chat");
        other.say(&script(r#"{"text": "Go on."}"#), "second").await.unwrap();
        assert!(other.runtime.store.running_calls(&WHO, None, 9).await.unwrap().is_empty());
        let changes = other.runtime.store.file_changes(&WHO, tree, None, 9).await.unwrap();
        let stand = changes.iter().filter(|change| change.standing == store::ChangeStanding::Made);
        assert_eq!(stand.count(), usize::from(!is_gone), "{is_gone}: {changes:?}");
    }
}

/// What a process that died in the middle of a change left in the workspace goes with its call.
#[tokio::test]
async fn what_a_cut_off_change_left_beside_a_file_is_cleared_away() {
    let (house, folder) = (House::new(), tempfile::tempdir().unwrap());
    let process = house.process("chat");
    begun(&process).await;
    about_to_make_a_file(&process, folder.path()).await;
    let hash: String = Digest::of(b"new").0[..16].iter().map(|byte| format!("{byte:02x}")).collect();
    let ours = folder.path().join(format!(".a.txt.drawloom-0123456789abcdef-{hash}.new"));
    let other = folder.path().join(format!(".a.txt.drawloom-0123456789abcdee-{hash}.new"));
    std::fs::write(&ours, "new").unwrap();
    std::fs::write(&other, "somebody's").unwrap();
    let asked = with_tools(r#"{"text": "Go on."}"#, folder.path());
    process.talk(asked, TurnInput::text("second")).await.until_it_ends(Cancel::never()).await;
    assert!(!ours.exists() && !other.exists());
    let names: Vec<_> =
        std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
    let [kept] = names.as_slice() else { panic!("{names:?}") };
    assert_eq!(std::fs::read_to_string(kept).unwrap(), "somebody's");
}

//! While the tools of an answer run: which of them run together, and what is said meanwhile (spec: agent §1).

use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use loom::{Role, ToolStatus, Trust};
use model::Cancel;
use policy::Policy;
use tokio::sync::{mpsc, oneshot};
use tools::Tool;

use drawloom_agent::session::TurnInput;

use crate::support::{House, Talk};
use crate::tools::{spoken, with_further};

/// Arguments of a tool that takes none.
type Nothing = BTreeMap<String, String>;

/// A tool of which a call ends well once another one runs beside it.
fn meet(patience: Duration) -> Tool {
    let meeting = Arc::new((Mutex::new(0), Condvar::new()));
    Tool::of_conversation("meet", "Waits for another call.", move |_, _: Nothing| {
        let (there, more) = &*meeting;
        let mut there = there.lock().unwrap();
        *there += 1;
        more.notify_all();
        let (_there, waited) = more.wait_timeout_while(there, patience, |there| *there < 2).unwrap();
        if waited.timed_out() { Err("alone".to_owned()) } else { Ok(("met".to_owned(), Trust::Agent)) }
    })
}

const TWO: &str = r#"{"tool_calls": [{"name": "meet", "arguments": {}}, {"name": "meet", "arguments": {}}]}
{"text": "Done."}"#;

/// How each call of the answer ended.
async fn ended(tool: Tool) -> Vec<Option<ToolStatus>> {
    let (house, folder) = (House::new(), tempfile::tempdir().unwrap());
    let process = house.process("chat");
    let config = with_further(TWO, folder.path(), Policy::default(), vec![tool]);
    process.talk(config, TurnInput::text("first")).await.until_it_ends(Cancel::never()).await;
    let said = spoken(&process).await;
    said.into_iter().filter(|(role, _)| *role == Role::Tool).map(|(_, status)| status).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_of_one_answer_that_only_read_run_side_by_side_and_others_do_not() {
    let (ok, error) = (Some(ToolStatus::Ok), Some(ToolStatus::Error));
    assert_eq!(ended(meet(Duration::from_secs(30))).await, [ok, ok]);
    // The first has given up when the second begins.
    let in_turn = meet(Duration::from_millis(200)).changing_trees();
    assert_eq!(ended(in_turn).await, [error, ok]);
}

/// A tool of which a call says that it runs, and goes on when it is let.
fn gate(running: mpsc::UnboundedSender<()>, go_on: oneshot::Receiver<()>) -> Tool {
    let go_on = Mutex::new(Some(go_on));
    Tool::of_conversation("gate", "Waits.", move |_, _: Nothing| {
        let go_on = go_on.lock().unwrap().take().unwrap();
        running.send(()).unwrap();
        go_on.blocking_recv().unwrap();
        Ok(("through".to_owned(), Trust::Agent))
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_said_while_a_tool_runs_becomes_a_node_behind_the_results_of_its_batch() {
    let (house, folder) = (House::new(), tempfile::tempdir().unwrap());
    let process = house.process("chat");
    let ((running, mut runs), (let_go, go_on)) = (mpsc::unbounded_channel(), oneshot::channel());
    let lines = r#"{"tool_calls": [{"name": "gate", "arguments": {}}, {"name": "list", "arguments": {}}]}
{"text": "Done.", "expect": ["second"]}"#;
    let config = with_further(lines, folder.path(), Policy::default(), vec![gate(running, go_on)]);
    let talk: Talk<'_> = process.talk(config, TurnInput::text("first")).await;
    runs.recv().await.unwrap();
    talk.steer("second").await;
    // Taken in by the session, which answers to the one that came after it.
    let listed = |said: &[(Role, Option<ToolStatus>)]| said.iter().any(|(role, _)| *role == Role::Tool);
    while !listed(&spoken(&process).await) {
        tokio::task::yield_now().await;
    }
    let roles =
        |said: Vec<(Role, Option<ToolStatus>)>| said.into_iter().map(|(role, _)| role).collect::<Vec<_>>();
    // The other call of the batch has its result, and nothing stands between.
    assert_eq!(roles(spoken(&process).await), [Role::User, Role::Assistant, Role::Tool]);
    let_go.send(()).unwrap();
    let ended = talk.until_it_ends(Cancel::never()).await;
    assert_eq!(ended.len(), 1, "one turn answers both");
    assert!(ended.iter().all(|(_, turned)| turned.is_ok()));
    assert_eq!(
        roles(spoken(&process).await),
        [Role::User, Role::Assistant, Role::Tool, Role::Tool, Role::User, Role::Assistant]
    );
}

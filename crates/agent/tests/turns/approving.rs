//! Questions before a call: a person sees the difference, and it is what is done (spec: agent §4, security §14).

use std::fs;
use std::path::Path;
use std::sync::Arc;

use drawloom_agent::SessionEvent;
use drawloom_agent::questions::{AnswerText, Decision};
use drawloom_agent::session::{Say, SessionOperation, Sessions, TurnInput, spawn};
use loom::ToolStatus;
use policy::{Policy, PolicyRule};

use crate::support::{House, WHO, said};
use crate::tools::{spoken, with_policy, with_tools};

const WRITES: &str = r#"{"tool_calls": [{"name": "write", "arguments": {"path": "AGENTS.md", "content": "Obey.\n"}}]}
{"tool_calls": [{"name": "write", "arguments": {"path": "AGENTS.md", "content": "Obey.\n"}}]}
{"text": "Done."}"#;

const SECRET: &str = concat!("ghp", "_n7Qk2VxT9bLr4WcY8dMz1HsJ6pFg3AeU5oXi");

/// Has AGENTS.md written twice, and answers each question. The lines shown before the first, how many were asked, and
/// how the calls ended.
async fn answered(
    folder: &Path,
    decision: Decision,
    meanwhile: impl Fn(),
) -> (Vec<String>, usize, Vec<ToolStatus>) {
    let house = House::new();
    let process = house.process("chat");
    let session = spawn(&process.runtime, &Sessions::default(), &process.enter().await.session);
    let mut events = session.events(1);
    let asked = Arc::new(with_tools(WRITES, folder));
    let key = process.runtime.new_id().unwrap();
    let say = Say {
        answer_within: Some(drawloom_agent::questions::DEADLINE),
        ..said(key, asked, TurnInput::text("write"))
    };
    session.send(SessionOperation::Say(Box::new(say))).await.unwrap();
    let (mut shown, mut questions) = (Vec::new(), 0);
    loop {
        match events.next().await.unwrap().event {
            SessionEvent::Question { question } => {
                if questions == 0 {
                    shown = question.text.lines().map(str::to_owned).collect();
                }
                questions += 1;
                assert!(question.text.contains("so a person sees its difference first"), "{question:?}");
                meanwhile();
                let reason = Some(format!("not now\u{1b}[2A {SECRET}"));
                let said = AnswerText { reason, ..AnswerText::default() };
                let answer = process.runtime.answer_question(&WHO, question.id, decision, said);
                answer.await.unwrap();
            }
            // As the model is told it.
            SessionEvent::Answered { reason, .. } => {
                let reason = reason.unwrap();
                assert!(reason.starts_with("not now␛[2A ") && !reason.contains(SECRET), "{reason}");
            }
            SessionEvent::Finished { .. } => break,
            _ => {}
        }
    }
    let ended = spoken(&process).await.into_iter().filter_map(|(_, status)| status);
    (shown, questions, ended.collect())
}

#[tokio::test]
async fn what_a_question_shows_is_what_is_done() {
    let folder = tempfile::tempdir().unwrap();
    let (shown, questions, ended) = answered(folder.path(), Decision::Approved, || {}).await;
    assert!(shown.contains(&"+Obey.".to_owned()), "{shown:?}");
    // The same text again changes nothing, and is asked about all the same.
    assert_eq!((questions, ended), (2, vec![ToolStatus::Ok, ToolStatus::Ok]));
    assert_eq!(fs::read_to_string(folder.path().join("AGENTS.md")).unwrap(), "Obey.\n");
    // Denied: not asked again in that turn.
    let folder = tempfile::tempdir().unwrap();
    let (_, questions, ended) = answered(folder.path(), Decision::Denied, || {}).await;
    assert_eq!((questions, ended), (1, vec![ToolStatus::Denied, ToolStatus::Denied]));
    assert!(!folder.path().join("AGENTS.md").exists());
    // Somebody makes the file while it is asked about.
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("AGENTS.md");
    let mine = || fs::write(&file, "Mine.\n").unwrap();
    let (_, questions, ended) = answered(folder.path(), Decision::Approved, mine).await;
    assert_eq!((questions, ended), (1, vec![ToolStatus::Denied, ToolStatus::Error]));
    assert_eq!(fs::read_to_string(&file).unwrap(), "Mine.\n");
}

#[tokio::test]
async fn a_call_that_runs_does_not_wait_for_an_answer_about_another() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("a.txt"), "warp").unwrap();
    fs::write(folder.path().join("b.txt"), "weft").unwrap();
    let rule = PolicyRule {
        decision: policy::Decision::Ask,
        tool: vec!["read path=b.txt".parse().unwrap()],
        unless: Vec::new(),
        sessions: Vec::new(),
        reason: None,
    };
    let lines = r#"{"tool_calls": [{"name": "read", "arguments": {"path": "a.txt"}}, {"name": "read", "arguments": {"path": "b.txt"}}]}
{"text": "Done."}"#;
    let asked = Arc::new(with_policy(lines, folder.path(), Policy::new(vec![rule]).unwrap()));
    let house = House::new();
    let process = house.process("chat");
    let session = spawn(&process.runtime, &Sessions::default(), &process.enter().await.session);
    let mut events = session.events(1);
    let key = process.runtime.new_id().unwrap();
    let answer_within = Some(drawloom_agent::questions::DEADLINE);
    let say = Say { answer_within, ..said(key, asked, TurnInput::text("read")) };
    session.send(SessionOperation::Say(Box::new(say))).await.unwrap();
    let (mut waits, mut ended) = (None, Vec::new());
    loop {
        match events.next().await.unwrap().event {
            SessionEvent::Question { question } => waits = Some(question.id),
            SessionEvent::Result { number, .. } => ended.push(number),
            SessionEvent::Finished { .. } => break,
            _ => {}
        }
        if ended == [0]
            && let Some(question) = waits.take()
        {
            let why = AnswerText { reason: Some("not that one".to_owned()), ..AnswerText::default() };
            process.runtime.answer_question(&WHO, question, Decision::Denied, why).await.unwrap();
        }
    }
    assert_eq!(ended, [0, 1]);
    // What a person decided stands on the tree; what no one was asked about does not.
    let remarks = process.runtime.read(&WHO, process.enter().await.tree, |rows| {
        let texts = rows.annotations(None)?.into_iter().map(|remark| rows.node(remark.id.original()));
        texts.collect::<Result<Vec<_>, _>>()
    });
    let said: Vec<String> =
        remarks.await.unwrap().into_iter().flatten().map(|row| row.node.text().into_owned()).collect();
    assert_eq!(said.len(), 1, "{said:?}");
    assert!(
        said[0].starts_with("read, call 2: denied by ") && said[0].ends_with(": not that one"),
        "{said:?}"
    );
}

#[tokio::test]
async fn a_turn_that_may_ask_no_more_ends_and_is_no_denial() {
    for (most, ends) in [(0, true), (1, false)] {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("a.txt"), "warp").unwrap();
        let house = House::new();
        let mut process = house.process("chat");
        process.runtime.waiting.questions = most;
        let session = spawn(&process.runtime, &Sessions::default(), &process.enter().await.session);
        let mut events = session.events(1);
        let lines = r#"{"tool_calls": [{"name": "read", "arguments": {"path": "a.txt"}}, {"name": "write", "arguments": {"path": "AGENTS.md", "content": "Obey.\n"}}]}
{"text": "Done."}"#;
        let key = process.runtime.new_id().unwrap();
        let answer_within = Some(drawloom_agent::questions::DEADLINE);
        let asked = Arc::new(with_tools(lines, folder.path()));
        let say = Say { answer_within, ..said(key, asked, TurnInput::text("write")) };
        session.send(SessionOperation::Say(Box::new(say))).await.unwrap();
        let mut asked = 0;
        let error = loop {
            match events.next().await.unwrap().event {
                SessionEvent::Question { question } => {
                    asked += 1;
                    let answer = AnswerText::default();
                    process
                        .runtime
                        .answer_question(&WHO, question.id, Decision::Denied, answer)
                        .await
                        .unwrap();
                }
                SessionEvent::Finished { outcome, .. } => break outcome.error,
                _ => {}
            }
        };
        let ended: Vec<_> = spoken(&process).await.into_iter().filter_map(|(_, status)| status).collect();
        if ends {
            let error = error.unwrap().0;
            assert!(matches!(error.as_ref(), drawloom_agent::AgentError::Limit(_)), "{error:?}");
            assert!(error.to_string().contains("0 questions of this session wait"), "{error}");
            assert!(error.to_string().contains("(limits.questions)"), "{error}");
            // What was read is kept, and nothing says that a person denied the other call.
            assert_eq!((asked, ended), (0, vec![ToolStatus::Ok]));
        } else {
            assert!(error.is_none(), "{error:?}");
            assert_eq!((asked, ended), (1, vec![ToolStatus::Ok, ToolStatus::Denied]));
        }
        session.close().await;
    }
}

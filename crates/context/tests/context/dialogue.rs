//! What is sent for a dialogue: whole turns, newest first; calls with their results.

use drawloom_context::dialogue::{DialogueRequest, dialogue};
use drawloom_context::{Assembled, ContextError, Estimator, Kind, Source, TargetModel, TokenBudget, cover};
use loom::{Block, Mode, Role, ToolStatus, ViewName};
use model::{ChatPart, DialectName, Model, Params, Prompt};

use crate::support::{Desk, echo, prompt_text};

fn request(window: u64) -> DialogueRequest {
    let target = TargetModel {
        provider: "p".into(),
        dialect: DialectName::OpenAiChat,
        model: "m".into(),
        tools: true,
        pictures: true,
        sounds: true,
    };
    DialogueRequest::new(ViewName::default(), target, TokenBudget::new(window, 256, Some(64)))
}

fn turns(count: usize) -> Desk {
    let mut desk = Desk::of(Mode::Dialogue);
    for turn in 0..count {
        desk.say(Role::User, vec![Block::text(format!("Question {turn} about the rain and the town?"))]);
        desk.say(
            Role::Assistant,
            vec![Block::text(format!("Answer {turn}: it fell all night on the roofs."))],
        );
    }
    desk.say(Role::User, vec![Block::text("The last question")]);
    desk
}

#[test]
fn a_short_dialogue_is_sent_whole_in_order() {
    let desk = turns(2);
    let assembled = dialogue(&desk.tree, &request(8_192), &Estimator::default()).unwrap();
    let text = prompt_text(&assembled.prompt);
    let places: Vec<_> = ["Question 0", "Answer 0", "Question 1", "Answer 1", "The last"]
        .iter()
        .map(|part| text.find(part))
        .collect();
    assert!(places.iter().all(Option::is_some) && places.is_sorted(), "{text}");
}

#[test]
fn a_long_one_starts_at_a_user_turn_and_leaves_room() {
    let desk = turns(200);
    let ask = request(1_024);
    let assembled = dialogue(&desk.tree, &ask, &Estimator::default()).unwrap();
    assert!(assembled.new_start.is_some());
    assert!(assembled.tokens <= ask.budget.budget * 7 / 10, "{} of {}", assembled.tokens, ask.budget.budget);
    let Prompt::Chat(chat) = &assembled.prompt else { panic!("a dialogue is a chat") };
    assert!(matches!(chat.messages.first(), Some(ChatPart::User(_))));
    let said = chat.messages.iter().rfind(|part| !matches!(part, ChatPart::Injected(_)));
    assert!(matches!(said, Some(ChatPart::User(part)) if part.text == "The last question"));
}

#[test]
fn the_newest_turn_is_kept_or_refused_with_figures() {
    let mut desk = turns(1);
    desk.say(Role::User, vec![Block::text("word ".repeat(3_000))]);
    let refused = dialogue(&desk.tree, &request(1_024), &Estimator::default());
    assert!(
        matches!(refused, Err(ContextError::TooLong { needed, budget, .. }) if needed > budget),
        "{refused:?}"
    );
}

#[test]
fn a_call_travels_with_its_result_and_one_without_was_not_run() {
    let mut desk = turns(1);
    let call = |id: &str| Block::ToolCall {
        id: id.into(),
        name: "read".into(),
        arguments: serde_json::json!({"p": id}),
    };
    desk.say(Role::Assistant, vec![call("a"), call("b")]);
    let result = Block::ToolResult {
        call_id: "b".into(),
        status: ToolStatus::Ok,
        blocks: vec![Block::text("the content of b")],
    };
    desk.say(Role::Tool, vec![result]);
    desk.say(Role::User, vec![Block::text("and now?")]);
    let assembled = dialogue(&desk.tree, &request(8_192), &Estimator::default()).unwrap();
    let Prompt::Chat(chat) = &assembled.prompt else { panic!("a dialogue is a chat") };
    let rounds: Vec<_> = chat
        .messages
        .iter()
        .filter_map(|part| match part {
            ChatPart::ToolRound(round) => Some(round),
            _ => None,
        })
        .collect();
    assert_eq!(rounds.len(), 1);
    assert_eq!(
        rounds[0].iter().map(|exchange| exchange.result.status).collect::<Vec<_>>(),
        [ToolStatus::Denied, ToolStatus::Ok]
    );
    let encoded = echo().encode(&assembled.prompt, &Params::default()).unwrap();
    let segments = cover(&encoded, &assembled.pieces, &Estimator::default()).unwrap();
    counted(&assembled);
    let older = segments.iter().find(|segment| !segment.tools.is_empty()).unwrap();
    let [read] = older.tools.as_slice() else { panic!("{:?}", older.tools) };
    assert_eq!((read.tool.as_str(), read.calls), ("read", 2));
    assert!(read.chars == 90 && read.tokens > 20 && read.tokens < older.tokens, "{read:?} of {older:?}");
}

/// The characters of the pieces and of the runs are those that are sent, calls and results among them.
pub(crate) fn counted(assembled: &Assembled) {
    let Prompt::Chat(chat) = &assembled.prompt else { panic!("a dialogue is a chat") };
    let chars = |text: &str| text.chars().count() as u64;
    let sent = chat.messages.iter().map(|part| match part {
        ChatPart::System(part)
        | ChatPart::User(part)
        | ChatPart::Assistant(part)
        | ChatPart::Injected(part) => chars(&part.text),
        ChatPart::ToolRound(round) => {
            round.iter().map(|one| chars(&one.call.arguments) + chars(&one.result.text)).sum()
        }
        _ => 0,
    });
    let pieces = assembled.pieces.iter().filter(|piece| !piece.parts.is_empty());
    let of_pieces = pieces.filter(|piece| piece.kind != Kind::Schemas).map(|piece| piece.chars).sum::<u64>();
    assert_eq!(sent.sum::<u64>(), of_pieces);
    let history = assembled.pieces.iter().filter(|piece| matches!(piece.source, Source::Run { .. }));
    let of_runs: u64 = assembled.runs.iter().map(|run| run.chars).sum();
    assert_eq!(history.map(|piece| piece.chars).sum::<u64>(), of_runs);
}

#[test]
fn nothing_said_is_nothing_sent() {
    let desk = Desk::of(Mode::Dialogue);
    let refused = dialogue(&desk.tree, &request(1_024), &Estimator::default());
    assert!(matches!(refused, Err(ContextError::Empty)), "{refused:?}");
}

//! In which form what was said is sent: blocks in order, opaque material to its own model, rounds of tool use.

use drawloom_context::dialogue::{Dependencies, DialogueRequest, assemble, dialogue};
use drawloom_context::{
    Assembled, Estimator, Features, Kind, NothingRemembered, Pictures, RequestPiece, SegmentOutcome, Source,
    TargetModel, TokenBudget, cover,
};
use loom::{Block, Digest, Mode, Role, ToolStatus, ViewName};
use model::{ChatPart, DialectName, Media, Model, Params, Prompt};
use serde_json::json;

use crate::support::{Desk, echo, said_by};

fn target(model: &str) -> TargetModel {
    TargetModel {
        provider: "p".into(),
        dialect: DialectName::OpenAiChat,
        model: model.into(),
        tools: true,
        pictures: true,
        sounds: true,
    }
}

fn sent(desk: &Desk, target: TargetModel) -> Vec<String> {
    let request = DialogueRequest::new(ViewName::default(), target, TokenBudget::new(32_000, 1_000, None));
    drawn(&dialogue(&desk.tree, &request, &Estimator::default()).unwrap())
}

/// Each message in a word and its text.
pub(crate) fn drawn(assembled: &Assembled) -> Vec<String> {
    let Prompt::Chat(chat) = &assembled.prompt else { panic!("a dialogue is a chat") };
    let draw = |part: &ChatPart| match part {
        ChatPart::System(part) => format!("system {}", part.text),
        ChatPart::User(part) => format!("user {}", part.text),
        ChatPart::Injected(part) => format!("shown {}", part.text),
        ChatPart::Assistant(part) => format!("assistant {}", part.text),
        ChatPart::Media(part) => format!("media {}", part.media.mime),
        ChatPart::Opaque(part) => {
            format!("opaque {:?} {}", part.thinking.as_deref().unwrap_or(""), part.json)
        }
        ChatPart::ToolRound(round) => {
            let calls = round.iter().map(|exchange| {
                let before: String = exchange.before.iter().map(|part| format!("<{}>", part.json)).collect();
                format!("{before}{} {:?} {}", exchange.call.id, exchange.result.status, exchange.result.text)
            });
            format!("round {}", calls.collect::<Vec<_>>().join(" | "))
        }
    };
    chat.messages.iter().map(draw).collect()
}

fn call(id: &str) -> Block {
    Block::ToolCall { id: id.into(), name: "read".into(), arguments: json!({"path": id}) }
}

fn result(id: &str, text: &str) -> Block {
    Block::ToolResult { call_id: id.into(), status: ToolStatus::Ok, blocks: vec![Block::text(text)] }
}

fn thought(text: &str, opaque: i32) -> Block {
    Block::Thinking { text: text.into(), opaque: Some(json!(opaque)) }
}

fn opaque(model: &str, json: i32) -> Block {
    Block::Opaque { dialect: "openai_chat".into(), model: model.into(), json: json!(json) }
}

/// A question and the answer of model `m`, with everything an answer may hold.
fn answered() -> Desk {
    let mut desk = Desk::of(Mode::Dialogue);
    desk.say(Role::User, vec![Block::text("look")]);
    let content = vec![
        thought("hm", 1),
        opaque("m", 2),
        Block::text("I look."),
        opaque("m", 3),
        call("a"),
        opaque("m", 4),
        call("b"),
    ];
    desk.answer(content, said_by("m", DialectName::OpenAiChat));
    desk
}

#[test]
fn an_answer_keeps_the_order_of_its_blocks_for_the_model_that_made_it() {
    let mut desk = answered();
    desk.say(Role::Tool, vec![result("b", "second")]);
    desk.say(Role::Tool, vec![result("a", "first")]);
    assert_eq!(
        sent(&desk, target("m")),
        [
            "user look",
            "opaque \"hm\" 1",
            "opaque \"\" 2",
            "assistant I look.",
            "round <3>a Ok first | <4>b Ok second"
        ]
    );
}

#[test]
fn another_model_gets_the_words_under_the_name_and_nothing_opaque() {
    let mut desk = answered();
    desk.say(Role::Tool, vec![result("a", "first"), result("b", "second")]);
    let expected = ["user look", "user m: I look.", "round a Ok first | b Ok second"];
    assert_eq!(sent(&desk, target("other")), expected);
    let mut same_model = target("m");
    same_model.dialect = DialectName::OpenAiResponses;
    assert_eq!(
        sent(&desk, same_model),
        ["user look", "assistant I look.", "round a Ok first | b Ok second"],
        "opaque material holds for one dialect"
    );
    let elsewhere = TargetModel { provider: "other".into(), ..target("m") };
    assert_eq!(
        sent(&desk, elsewhere),
        ["user look", "assistant I look.", "round a Ok first | b Ok second"],
        "and for one provider"
    );
}

#[test]
fn the_same_model_by_another_route_stays_the_assistant() {
    let mut desk = Desk::of(Mode::Dialogue);
    desk.say(Role::User, vec![Block::text("look")]);
    let source = said_by("claude-opus-4-5", DialectName::AnthropicMessages);
    desk.answer(vec![Block::text("I look.")], source);
    for route in ["anthropic/claude-opus-4.5", "claude-opus-4-5-20251101"] {
        assert_eq!(sent(&desk, target(route)), ["user look", "assistant I look."], "{route}");
    }
    let other = sent(&desk, target("anthropic/claude-opus-4.6"));
    assert_eq!(other, ["user look", "user claude-opus-4-5: I look."], "control");
}

#[test]
fn an_edited_answer_keeps_nothing_opaque() {
    let mut desk = Desk::of(Mode::Dialogue);
    desk.say(Role::User, vec![Block::text("look")]);
    let node = desk.answer(vec![thought("hm", 1), Block::text("yes")], said_by("m", DialectName::OpenAiChat));
    assert_eq!(sent(&desk, target("m")), ["user look", "opaque \"hm\" 1", "assistant yes"]);
    desk.edit(node, "no");
    assert_eq!(sent(&desk, target("m")), ["user look", "assistant no"]);
}

#[test]
fn a_result_of_a_started_call_is_unknown_and_one_without_a_call_is_nobodys() {
    let mut desk = Desk::of(Mode::Dialogue);
    desk.say(Role::User, vec![Block::text("go")]);
    let answer = desk.say(Role::Assistant, vec![call("a"), call("a"), call("b")]);
    desk.tree.started.insert((answer, 1));
    desk.say(Role::Tool, vec![result("a", "one")]);
    desk.say(Role::Tool, vec![result("z", "nobody asked")]);
    desk.say(Role::Assistant, vec![Block::text("done")]);
    desk.say(Role::Tool, vec![result("a", "too late")]);
    let sent = sent(&desk, target("m"));
    assert_eq!(sent[..1], ["user go"]);
    assert!(
        sent[1].starts_with("round a Ok one | a Unknown [The outcome of this call is unknown"),
        "{sent:?}"
    );
    assert!(
        sent[1].ends_with("| b Denied [This call was not run: its turn ended before it began.]"),
        "{sent:?}"
    );
    assert_eq!(sent[2..], ["assistant done"]);
}

#[test]
fn a_model_without_tools_reads_what_was_called() {
    let mut desk = answered();
    desk.say(Role::Tool, vec![result("a", "first")]);
    let mut plain = target("m");
    plain.tools = false;
    let sent = sent(&desk, plain);
    assert!(sent.iter().all(|line| !line.starts_with("round")), "{sent:?}");
    assert!(sent.contains(&"user [its result]\nfirst".to_owned()), "{sent:?}");
}

struct Gallery;

impl Pictures for Gallery {
    fn size(&self, blob: Digest) -> Option<u64> {
        [Digest::of(b"png"), Digest::of(b"damaged"), Digest::of(b"wav")].contains(&blob).then_some(1_000)
    }

    fn media(&self, blob: Digest) -> Option<Media> {
        let media = |mime: &str| Media { mime: mime.into(), data: bytes::Bytes::from_static(b"x") };
        if blob == Digest::of(b"png") {
            return Some(media("image/png"));
        }
        (blob == Digest::of(b"wav")).then(|| media("audio/wav"))
    }
}

#[test]
fn a_picture_goes_to_who_takes_it_and_else_a_line_says_so() {
    let mut desk = Desk::of(Mode::Dialogue);
    let picture = Block::Image { blob: Digest::of(b"png"), mime: "image/png".into() };
    desk.say(Role::User, vec![Block::text("see"), picture]);
    let estimator = Estimator::default();
    let around = Dependencies { estimator: &estimator, coverage: &NothingRemembered, pictures: &Gallery };
    let assembled = |pictures: bool| {
        let target = TargetModel { pictures, ..target("m") };
        let request =
            DialogueRequest::new(ViewName::default(), target, TokenBudget::new(32_000, 1_000, None));
        assemble(&desk.tree, &request, &around).unwrap()
    };
    assert_eq!(drawn(&assembled(true)), ["user see", "media image/png"]);
    let without = assembled(false);
    assert_eq!(drawn(&without), ["user see[picture left out: image/png]"]);
    let said = without.pieces.iter().any(|piece| {
        matches!(&piece.decision, SegmentOutcome::LeftOut { why } if why.starts_with("1 are not sent"))
            && piece.kind == Kind::History
    });
    assert!(said, "{:?}", without.pieces);
}

#[test]
fn a_picture_that_cannot_be_read_is_left_out_with_a_reason() {
    let mut desk = Desk::of(Mode::Dialogue);
    let image = |bytes: &[u8]| Block::Image { blob: Digest::of(bytes), mime: "image/png".into() };
    desk.say(Role::User, vec![Block::text("see"), image(b"damaged"), image(b"forgotten"), image(b"png")]);
    let (sent, assembled) = shown(&desk);
    let left = "[picture left out: image/png]";
    // The one that is gone is a text from the first, the damaged one a part that became a text.
    assert_eq!(sent, ["user see", &format!("user {left}"), &format!("user {left}"), "media image/png"]);
    let why = |piece: &RequestPiece| match &piece.decision {
        SegmentOutcome::LeftOut { why } => Some(why.clone()),
        _ => None,
    };
    assert!(assembled.pieces.iter().filter_map(why).any(|why| why.starts_with("2 are not sent")));
}

#[test]
fn a_picture_of_the_models_own_goes_back_in_the_users_place_and_says_whose_it_is() {
    let mut desk = Desk::of(Mode::Dialogue);
    let blob = Digest::of(b"png");
    desk.say(Role::User, vec![Block::text("draw")]);
    desk.say(Role::Assistant, vec![Block::text("Here:"), Block::Image { blob, mime: "image/png".into() }]);
    desk.say(Role::User, vec![Block::text("redder")]);
    let label = format!("user [picture {}, made by the assistant]", loom::content::blob_name(blob));
    let sent = shown(&desk).0;
    assert_eq!(sent[sent.len() - 3..], [label, "media image/png".to_owned(), "user redder".to_owned()]);
}

#[test]
fn a_sound_goes_to_who_takes_it() {
    let mut desk = Desk::of(Mode::Dialogue);
    let sound = Block::Audio { blob: Digest::of(b"wav"), mime: "audio/wav".into() };
    desk.say(Role::User, vec![Block::text("hear"), sound]);
    assert_eq!(shown(&desk).0, ["user hear", "media audio/wav"]);
}

#[test]
fn pictures_count_in_the_budget_and_only_those_that_are_sent_are_read() {
    struct Counting(std::cell::Cell<u32>);
    impl Pictures for Counting {
        fn size(&self, _: Digest) -> Option<u64> {
            Some(1)
        }
        fn media(&self, _: Digest) -> Option<Media> {
            self.0.set(self.0.get() + 1);
            Some(Media { mime: "image/png".into(), data: bytes::Bytes::from_static(b"x") })
        }
    }
    let mut desk = Desk::of(Mode::Dialogue);
    for turn in 0..40_u8 {
        let blob = Digest::of(&[turn]);
        desk.say(Role::User, vec![Block::text("see"), Block::Image { blob, mime: "image/png".into() }]);
        desk.say(Role::Assistant, vec![Block::text("I see.")]);
    }
    desk.say(Role::User, vec![Block::text("and now?")]);
    let estimator = Estimator::default();
    let pictures = Counting(0.into());
    let around = Dependencies { estimator: &estimator, coverage: &NothingRemembered, pictures: &pictures };
    let budget = TokenBudget::new(32_000, 1_000, None);
    let request = DialogueRequest::new(ViewName::default(), target("m"), budget);
    let assembled = assemble(&desk.tree, &request, &around).unwrap();
    let sent = drawn(&assembled).iter().filter(|line| line.starts_with("media")).count() as u64;
    assert!((1..40).contains(&sent), "{sent}");
    assert_eq!(u64::from(pictures.0.get()), sent, "none is read that is not sent");
    assert!(assembled.tokens >= sent * 1_600 && assembled.tokens <= budget.budget);
    assert_eq!(Features::of(&assembled.prompt), None, "no estimate is fitted to what holds pictures");
}

/// What is sent where there are pictures, and all that is known of it.
fn shown(desk: &Desk) -> (Vec<String>, Assembled) {
    let estimator = Estimator::default();
    let around = Dependencies { estimator: &estimator, coverage: &NothingRemembered, pictures: &Gallery };
    let budget = TokenBudget::new(32_000, 1_000, None);
    let request = DialogueRequest::new(ViewName::default(), target("m"), budget);
    let assembled = assemble(&desk.tree, &request, &around).unwrap();
    (drawn(&assembled), assembled)
}

#[test]
fn every_byte_of_a_request_with_everything_in_it_has_a_piece() {
    let mut desk = answered();
    let node = desk.say(Role::Tool, vec![result("a", "first")]);
    desk.shown(node, "zone#yellow", "[half full]");
    desk.say(Role::User, vec![Block::text("and?")]);
    let request =
        DialogueRequest::new(ViewName::default(), target("x"), TokenBudget::new(32_000, 1_000, None));
    let assembled = dialogue(&desk.tree, &request, &Estimator::default()).unwrap();
    let encoded = echo().encode(&assembled.prompt, &Params::default()).unwrap();
    let segments = cover(&encoded, &assembled.pieces, &Estimator::default()).unwrap();
    let shown = segments.iter().filter(|segment| matches!(segment.source, Source::Injection { .. }));
    assert_eq!(shown.count(), 1);
}

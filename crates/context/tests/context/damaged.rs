//! Rows that lead into another branch: what stands there is not sent.

use drawloom_context::dialogue::{DialogueRequest, dialogue};
use drawloom_context::document::{DocumentRequest, document};
use drawloom_context::{
    Assembled, ContextError, ContinuationForm, Estimator, Strategy, TargetModel, TokenBudget,
};
use loom::{Block, Mode, Op, PositionId, Role, RowError, ViewName};
use loom_testing::crossings;
use model::DialectName;

use crate::support::{Desk, prompt_text};

/// A tree with two branches from its first text on, of one length; their ends, that of the view the last.
fn branches(mode: Mode) -> (Desk, PositionId, PositionId) {
    let mut desk = Desk::of(mode);
    let say = |desk: &mut Desk, index: usize, text: String| match mode {
        Mode::Buffer => desk.append(&text),
        Mode::Dialogue => desk
            .say(if index.is_multiple_of(2) { Role::User } else { Role::Assistant }, vec![Block::text(text)]),
    };
    let fork = say(&mut desk, 0, "Here the ways part.\n\n".to_owned()).as_position();
    let [other, own] = ["OTHER", "OWN"].map(|branch| {
        desk.run(Op::Move(fork));
        (1..=140)
            .map(|index| say(&mut desk, index, format!("{branch} {index}: it rained on.\n\n")))
            .last()
            .unwrap()
    });
    (desk, other.as_position(), own.as_position())
}

/// Sends what is asked from each of the trees with one damaged row, and from the sound one.
fn sends_its_own(mode: Mode, assemble: impl Fn(&Desk) -> Result<Assembled, ContextError>) {
    let (mut desk, other, own) = branches(mode);
    let whole = prompt_text(&assemble(&desk).unwrap().prompt);
    assert!(whole.contains("OWN 140:") && !whole.contains("OTHER"), "{whole}");
    let mut damages = 0;
    for damaged in crossings(&desk.tree, own, other) {
        let sound = desk.tree.positions.insert(damaged.id, damaged.clone()).unwrap();
        match assemble(&desk) {
            Ok(sent) => assert_eq!(prompt_text(&sent.prompt), whole, "{damaged:?}"),
            Err(ContextError::Rows(RowError::Damaged { .. })) => damages += 1,
            Err(error) => panic!("{error}: {damaged:?}"),
        }
        desk.tree.positions.insert(sound.id, sound);
    }
    assert!(damages > 20, "{damages}");
}

#[test]
fn the_end_of_another_document_is_not_sent() {
    for window in [2_048, 32_768] {
        let request = DocumentRequest {
            view: ViewName::default(),
            from: None,
            way: ContinuationForm::Raw,
            budget: TokenBudget::new(window, 256, Some(64)),
            drafts: false,
            system: None,
            context: Vec::new(),
            instruction: Vec::new(),
            again: None,
            before: None,
        };
        sends_its_own(Mode::Buffer, |desk| document(&desk.tree, &request, &Estimator::default()));
    }
}

#[test]
fn turns_of_another_dialogue_are_not_sent() {
    let target = TargetModel {
        provider: "p".into(),
        dialect: DialectName::OpenAiChat,
        model: "m".into(),
        tools: true,
        pictures: true,
        sounds: true,
    };
    for (window, strategy) in
        [(2_048, Strategy::default()), (2_048, Strategy::TruncateMiddle), (32_768, Strategy::default())]
    {
        let budget = TokenBudget::new(window, 256, Some(64));
        let mut request = DialogueRequest::new(ViewName::default(), target.clone(), budget);
        request.strategy = strategy;
        sends_its_own(Mode::Dialogue, |desk| dialogue(&desk.tree, &request, &Estimator::default()));
    }
}

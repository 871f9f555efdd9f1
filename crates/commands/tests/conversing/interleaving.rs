//! Conversations in whose midst something else happens.

use std::sync::Arc;

use async_trait::async_trait;
use drawloom_commands::Asker;
use drawloom_commands::args::chat::{ChatArgs, RequestArgs};
use drawloom_commands::chat::{Conversation, SteeringOutcome};
use drawloom_commands::slash::SlashOutcome;
use model::script::ScriptOptions;
use model::{
    CallOrigin, EncodeError, EncodedRequest, Exchange, Model, ModelError, ModelEvent, ModelInfo, Params,
    Prompt, RawResponse, ScriptModel,
};
use tokio::sync::Semaphore;

use crate::home::homes;
use crate::{Far, Talk};

/// A model that waits in the midst of an answer.
struct Halting {
    script: ScriptModel,
    /// Whether it has come there.
    halts: Arc<Semaphore>,
    /// Whether it may go on.
    goes_on: Arc<Semaphore>,
}

#[async_trait]
impl Model for Halting {
    fn info(&self) -> &ModelInfo {
        self.script.info()
    }

    fn encode(&self, prompt: &Prompt, params: &Params) -> Result<EncodedRequest, EncodeError> {
        self.script.encode(prompt, params)
    }

    async fn send(
        &self,
        request: &EncodedRequest,
        call: &CallOrigin,
        Exchange { spool, listener, cancel, permit }: Exchange<'_>,
    ) -> Result<RawResponse, ModelError> {
        let mut events: Vec<ModelEvent> = Vec::new();
        let mut keep = |event: ModelEvent| events.push(event);
        let sent =
            self.script.send(request, call, Exchange { spool, listener: &mut keep, cancel, permit }).await;
        let mut texts = 0;
        for event in events {
            texts += usize::from(matches!(event, ModelEvent::Text { .. }));
            if texts == 2 {
                self.halts.add_permits(1);
                self.goes_on.acquire().await.unwrap().forget();
                texts += 1;
            }
            listener.event(event);
        }
        sent
    }
}

#[tokio::test]
async fn what_is_rejected_in_the_midst_of_an_answer_is_no_gap_in_it() {
    for home in homes() {
        let line = r#"{"deltas": ["one", " two", " three"], "loop": true}"#;
        let script = ScriptModel::from_text("story.jsonl", line, ScriptOptions::default()).unwrap();
        let [halts, goes_on] = [(); 2].map(|()| Arc::new(Semaphore::new(0)));
        let (at, on) = (Arc::clone(&halts), Arc::clone(&goes_on));
        home.models.set(Halting { script, halts: at, goes_on: on });
        let mut talk = Talk::as_set(&home).await;
        assert!(matches!(talk.take("hello").await.unwrap(), SlashOutcome::Turn));
        halts.acquire().await.unwrap().forget();
        let mut steering = talk.conversation.steering(false);
        for _ in 0..=home.app.runtime.waiting.messages {
            let queued = steering.take(&home.app, &Asker::owner(), "/queue more").await.unwrap();
            assert!(matches!(queued, SteeringOutcome::Queued(_)), "{queued:?}");
        }
        goes_on.add_permits(1);
        let (mut steps, mut answered) = (Vec::new(), None);
        while answered.is_none() {
            match talk.conversation.next(&home.app, &Asker::owner()).await.unwrap() {
                drawloom_commands::chat::TurnStep::Done(done) => match *done {
                    Ok(chatted) => answered = Some(chatted.text),
                    Err(error) => steps.push(error.message),
                },
                drawloom_commands::chat::TurnStep::Rejected(error) => steps.push(error.message),
                joined => panic!("{joined:?}"),
            }
        }
        assert_eq!(answered.unwrap(), "one two three");
        assert!(steps.len() == 1 && steps[0].contains("64 messages wait"), "{steps:?}");
        let notes = home.talk.notes.lock().unwrap().join("\n");
        assert!(!notes.contains("came too fast"), "{notes}");
    }
}

#[tokio::test]
async fn a_new_conversation_is_not_the_one_another_process_began_meanwhile() {
    for home in homes() {
        home.models.set(ScriptModel::echo(ScriptOptions::default()));
        let asker = Asker::owner();
        let open = async |new| {
            let args = ChatArgs { new, ..ChatArgs::default() };
            Conversation::open(&home.app, &asker, &args).await.unwrap()
        };
        // Both find no session: what is first said begins it.
        let (mut mine, mut theirs) = (open(true).await, open(false).await);
        theirs.say(&home.app, &asker, "theirs".to_owned()).await.unwrap();
        let first = theirs.answer(&home.app, &asker).await.unwrap();
        mine.say(&home.app, &asker, "mine".to_owned()).await.unwrap();
        let second = mine.answer(&home.app, &asker).await.unwrap();
        assert_ne!(first.tree, second.tree);
        assert_eq!(home.text(&first.tree.to_string()).await.matches("mine").count(), 0);
        // Where nobody was first, there is one tree.
        let other = ChatArgs { new: true, ..ChatArgs::default() };
        let session = drawloom_commands::args::chat::SessionArg { session: Some("other".to_owned()) };
        let other = ChatArgs { session, ..other };
        let mut other = Conversation::open(&home.app, &asker, &other).await.unwrap();
        other.say(&home.app, &asker, "alone".to_owned()).await.unwrap();
        other.answer(&home.app, &asker).await.unwrap();
        let listed = home.ok(&["sessions", "show", "other"]).await;
        assert_eq!(listed["trees"].as_array().unwrap().len(), 1, "{listed}");
    }
}

#[tokio::test]
async fn the_first_message_goes_to_the_model_that_another_process_chose_as_it_began_the_session() {
    for home in homes() {
        let sound = home.dir.path().join("bell.wav");
        std::fs::write(&sound, b"RIFF\x04\0\0\0WAVEfmt ").unwrap();
        let asker = Asker::owner();
        let open = async |files| {
            let args =
                ChatArgs { request: RequestArgs { files, ..RequestArgs::default() }, ..ChatArgs::default() };
            Conversation::open(&home.app, &asker, &args).await.unwrap()
        };
        home.models.set(ScriptModel::echo(ScriptOptions::default()));
        // It finds its model, and no session.
        let mut mine = open(vec![sound]).await;
        assert!(mine.model(&home.app).await.unwrap().audio);
        let echo = ScriptModel::echo(ScriptOptions::default());
        let info = ModelInfo { audio: false, ..echo.info().clone() };
        home.models.set(Far { echo, info });
        let mut theirs = open(Vec::new()).await;
        theirs.say(&home.app, &asker, "theirs".to_owned()).await.unwrap();
        let first = theirs.answer(&home.app, &asker).await.unwrap();
        theirs.take(&home.app, &asker, "/model deaf").await.unwrap();
        let refused = mine.say(&home.app, &asker, "mine".to_owned()).await.unwrap_err();
        assert_eq!(refused.code, "not_taken", "{refused:?}");
        assert!(!home.text(&first.tree.to_string()).await.contains("mine"));
    }
}

//! Files that wait in a session's settings, as a turn finds them there.

use bytes::Bytes;
use drawloom_agent::SessionEvent;
use drawloom_agent::session::{TurnInput, WaitingFile};
use loom::plan::NewText;
use loom::{Block, Digest, Role};
use store::home::HomeDir;

use crate::support::{Gated, House, Process, WHO, config, script};

const PATH: &str = "/tmp/sea.png";
const PICTURE: &[u8] = b"the bytes of a picture";
const WAITS: &str = r#"{"files":["/tmp/sea.png"]}"#;

/// A message with a picture that waits in the session's settings.
fn with_picture() -> TurnInput {
    let picture = Block::Image { blob: Digest::of(PICTURE), mime: "image/png".to_owned() };
    let content = vec![Block::text("Picture sea.png:"), picture];
    let file = NewText { content, ..NewText::owner("", Some(Role::User)) };
    let texts = vec![file, NewText::owner("what is this?", Some(Role::User))];
    let waiting = vec![WaitingFile { text: 0, path: PATH.into() }];
    TurnInput::New { texts, media: vec![Bytes::from_static(PICTURE)], waiting }
}

async fn settings(process: &Process) -> String {
    let session = process.enter().await.session;
    process.runtime.store.session(&WHO, &session).await.unwrap().unwrap().settings
}

async fn set(process: &Process, text: &str) {
    let (session, before) = (process.enter().await.session, settings(process).await);
    let set = process.runtime.store.set_session_settings(&WHO, &session, &before, text);
    assert_eq!(set.await.unwrap(), None);
}

/// How many pictures and sounds lie in the home.
fn blobs(process: &Process) -> usize {
    let shards = std::fs::read_dir(process.runtime.home.dir(HomeDir::Blobs).unwrap()).unwrap();
    let files = shards.flat_map(|shard| std::fs::read_dir(shard.unwrap().path()).unwrap());
    files.filter(|file| file.as_ref().unwrap().file_name().len() > 60).count()
}

#[tokio::test]
async fn a_picture_that_was_taken_back_is_not_left_in_the_home() {
    // A process that listens says it; else its sender does, once the session is free.
    for (listens, is_taken_back) in [(true, true), (true, false), (false, true), (false, false)] {
        let house = House::new();
        let (owner, other) = (house.process("chat"), house.process("chat"));
        let _listener = listens.then(|| owner.listen());
        let (model, mut requests) = Gated::gated();
        let first = owner.talk(config(&model), TurnInput::text("one")).await;
        let asked = requests.recv().await.unwrap();
        let mut events = first.session.events(first.session.next_event());
        set(&owner, WAITS).await;
        let second = other.talk(config(&model), with_picture()).await;
        if listens {
            while !matches!(events.next().await.unwrap().event, SessionEvent::Queued { .. }) {}
        }
        // It is kept before the message is handed over.
        while blobs(&other) == 0 {
            tokio::task::yield_now().await;
        }
        if is_taken_back {
            set(&other, "").await;
        }
        drop(asked);
        drop(requests.recv().await.unwrap());
        let turned = second.finished().await.unwrap();
        assert!(turned.reply.is_ok(), "{turned:?}");
        let texts = owner.texts().await;
        assert!(texts.contains(&"what is this?".to_owned()), "{texts:?}");
        assert_eq!(texts.contains(&"Picture sea.png:".to_owned()), !is_taken_back, "{texts:?}");
        assert_eq!(blobs(&owner), usize::from(!is_taken_back), "{listens}");
        assert_eq!(settings(&owner).await, "");
    }
}

#[tokio::test]
async fn damaged_settings_are_named_where_a_file_of_theirs_was_sent() {
    let process = House::new().process("chat");
    process.enter().await;
    let model = script(r#"{"text":"Said.","loop":true}"#);
    for (text, is_named) in [("no settings", true), (WAITS, false)] {
        set(&process, text).await;
        let talk = process.talk(config(&model), with_picture()).await;
        talk.until_it_ends(model::Cancel::never()).await.remove(0).1.unwrap();
        let notes = std::mem::take(&mut *process.heard.notes.lock().unwrap()).join("\n");
        let is_told = notes.contains("still wait: the settings of this session cannot be read");
        assert_eq!(is_told, is_named, "{notes}");
        assert!(!notes.contains("refused"), "{notes}");
    }
}

//! What is sent from one turn to the next: what was frozen stays, what was shown is kept, what is too long is cut.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use context::{BootFile, Bootstrap, Manifest, PathRun};
use drawloom_agent::TurnConfig;
use drawloom_agent::session::TurnInput;
use loom::reader::Injection;
use loom::{Digest, Millis, Trust};
use model::script::ScriptOptions;
use model::{
    CallOrigin, Cancel, EncodeError, EncodedRequest, Exchange, Model, ModelError, ModelInfo, Params, Prompt,
    RawResponse, ScriptModel,
};
use store::{Store, WorkspaceRecord};

use crate::support::{House, Process, WHO, config, script};

fn rules(text: &str) -> Arc<Bootstrap> {
    let (text, digest) = (text.to_owned(), Digest::of(text.as_bytes()));
    let file = BootFile { name: "AGENTS.md".to_owned(), text, digest, trust: Trust::Workspace };
    Arc::new(Bootstrap { files: vec![file], ..Bootstrap::default() })
}

/// Says something below these rules, and returns what was sent.
async fn say(process: &Process, model: &Arc<dyn Model>, bootstrap: Arc<Bootstrap>) -> Manifest {
    let tree = process.enter().await.tree;
    let asked = TurnConfig { bootstrap, ..config(model) };
    let talk = process.talk(asked, TurnInput::text("Is it raining?")).await;
    let turned = talk.until_it_ends(Cancel::never()).await.remove(0).1.unwrap();
    let reply = turned.reply.unwrap();
    assert!(reply.error.is_none(), "{:?}", reply.error);
    let digest = reply.manifest;
    let bytes = process.runtime.read(&WHO, tree, move |rows| rows.manifest(digest)).await.unwrap();
    Manifest::from_bytes(&bytes.unwrap()).unwrap()
}

async fn shown(process: &Process) -> Vec<Injection> {
    let tree = process.enter().await.tree;
    process
        .runtime
        .read(&WHO, tree, |rows| rows.injections(rows.tree()?.root.original(), None))
        .await
        .unwrap()
}

const YES: &str = r#"{"text": "Yes.", "loop": true}"#;

#[tokio::test]
async fn what_stands_above_outlives_the_process_and_a_change_is_told_of_once() {
    let house = House::new();
    let first = house.process("chat");
    let before = say(&first, &script(YES), rules("Be kind.\n")).await;
    assert!(before.prefix.is_some() && before.reused_tokens.is_none());
    first.die();
    let second = house.process("chat");
    let after = say(&second, &script(YES), rules("Be bold.\n")).await;
    assert_eq!(after.prefix, before.prefix);
    let told = shown(&second).await;
    assert_eq!(told.len(), 1);
    assert!(told[0].source.starts_with("file:AGENTS.md#") && told[0].text.contains("+Be bold."), "{told:?}");
    assert!(second.heard.notes.lock().unwrap().iter().any(|note| note.contains("AGENTS.md has changed")));
    let again = say(&second, &script(YES), rules("Be bold.\n")).await;
    assert_eq!((again.prefix, shown(&second).await.len()), (before.prefix, 1));
    assert!(again.reused_tokens.unwrap() * 3 > again.tokens, "{:?} of {}", again.reused_tokens, again.tokens);
    house.pass(3 * 60 * 60 * 1_000);
    let cold = say(&second, &script(YES), rules("Be bold.\n")).await;
    assert_ne!(cold.prefix, before.prefix, "no cache has it any more");
}

#[tokio::test]
async fn what_a_provider_finds_too_long_is_cut_and_sent_once_more() {
    let house = House::new();
    let process = house.process("chat");
    for _ in 0..12 {
        say(&process, &script(YES), rules("Be kind.\n")).await;
    }
    let too_long = "{\"fault\": \"context_too_long\"}\n{\"text\": \"Yes.\"}";
    let sent = say(&process, &script(too_long), rules("Be kind.\n")).await;
    let count = |runs: &[PathRun]| runs.iter().map(|run| run.count).sum::<u64>();
    assert!(count(&sent.left) > 0, "something has left");
    let notes = process.heard.notes.lock().unwrap().clone();
    assert!(notes.iter().any(|note| note.contains("found the request too long")), "{notes:?}");
    assert_eq!(process.generations().await.len(), 14);
}

#[tokio::test]
async fn a_file_that_is_loaded_no_more_is_said_to_be_taken_out() {
    let house = House::new();
    let process = house.process("chat");
    say(&process, &script(YES), rules("Be kind.\n")).await;
    let why = ("AGENTS.md".to_owned(), "it has changed".to_owned());
    let without = Arc::new(Bootstrap { left_out: vec![why], ..Bootstrap::default() });
    say(&process, &script(YES), Arc::clone(&without)).await;
    let told = shown(&process).await;
    assert!(told[0].text.contains("holds no more") && !told[0].text.contains("kind"), "{told:?}");
    let notes = std::mem::take(&mut *process.heard.notes.lock().unwrap());
    let of_it: Vec<_> = notes.iter().filter(|note| note.contains("AGENTS.md")).collect();
    assert_eq!(
        of_it,
        ["AGENTS.md is taken out: the model is told that what it was sent of it holds no more"]
    );
    say(&process, &script(YES), without).await;
    assert!(!process.heard.notes.lock().unwrap().iter().any(|note| note.contains("AGENTS.md")), "said once");
}

/// A model that waits once a request is put together: the owner untrusts the workspace meanwhile.
struct Slow {
    script: ScriptModel,
    store: Arc<Store>,
    sent: Arc<Mutex<Vec<String>>>,
}

#[async_trait]
impl Model for Slow {
    fn info(&self) -> &ModelInfo {
        self.script.info()
    }

    fn encode(&self, prompt: &Prompt, params: &Params) -> Result<EncodedRequest, EncodeError> {
        let record = WorkspaceRecord {
            // That of the session `main` here.
            path: "".into(),
            device: 1,
            inode: 1,
            trusted: false,
            inventory: "{}".to_owned(),
            at: Millis(1),
        };
        std::thread::scope(|scope| {
            let untrusts = || {
                let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
                runtime.block_on(self.store.keep_workspace(&WHO, record))
            };
            scope.spawn(untrusts).join().unwrap().unwrap();
        });
        self.script.encode(prompt, params)
    }

    async fn send(
        &self,
        request: &EncodedRequest,
        call: &CallOrigin,
        exchange: Exchange<'_>,
    ) -> Result<RawResponse, ModelError> {
        self.sent.lock().unwrap().push(String::from_utf8(request.body().to_vec()).unwrap());
        self.script.send(request, call, exchange).await
    }
}

#[tokio::test]
async fn s4_what_was_untrusted_since_a_request_was_put_together_is_not_sent() {
    let house = House::new();
    let process = house.process("chat");
    let script = ScriptModel::from_text("script", YES, ScriptOptions::default()).unwrap();
    let sent = Arc::<Mutex<Vec<String>>>::default();
    let model: Arc<dyn Model> =
        Arc::new(Slow { script, store: Arc::clone(&process.runtime.store), sent: Arc::clone(&sent) });
    say(&process, &model, rules("Be kind.\n")).await;
    let sent = sent.lock().unwrap().clone();
    assert!(sent.len() == 1 && sent[0].contains("raining") && !sent[0].contains("kind"), "{sent:?}");
    let notes = process.heard.notes.lock().unwrap().clone();
    assert!(notes.iter().any(|note| note.contains("was withdrawn while it waited")), "{notes:?}");
}

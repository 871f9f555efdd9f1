//! What providers are told of their caches: the beginning they are to keep, and the conversation it belongs to.

use std::sync::Arc;

use context::{BootFile, Bootstrap};
use loom::plan::{NewText, NewTree};
use loom::{Digest, Mode, Op, Role, TreeId, Trust, ViewName};
use model::quirks::CacheForm;
use model::{Connection, DialectName, HttpModel, Model, ModelInfo, ModelPlace, Quirks};
use serde_json::Value;
use store::AttachedWrites;

use crate::support::{House, Process, WHO, config};

/// A cache mark, as the dialect writes it.
const MARK: &str = ",\"cache_control\":{\"type\":\"ephemeral\"}";

fn model(dialect: DialectName, place: ModelPlace, cache: CacheForm) -> Arc<dyn Model> {
    let local = ModelInfo::local("box", "m", 32_000, 1_000);
    let info = ModelInfo { dialect, place, completion_endpoint: false, ..local };
    let quirks = Quirks { cache, ..Quirks::default() };
    Arc::new(HttpModel::new(info, quirks, Connection::new("http://127.0.0.1:9/v1")).unwrap())
}

async fn tree(process: &Process) -> TreeId {
    let tree = process.runtime.new_id::<TreeId>().unwrap();
    let op = Op::Create(NewTree { mode: Mode::Dialogue, title: "talk".to_owned(), origin: None });
    process.runtime.change(&WHO, tree, &ViewName::default(), op, AttachedWrites::nothing()).await.unwrap();
    tree
}

/// Says something, or has it answered.
async fn add(process: &Process, tree: TreeId, role: Role, text: &str) {
    let op = Op::Append(NewText::owner(text.to_owned(), Some(role)));
    process.runtime.change(&WHO, tree, &ViewName::default(), op, AttachedWrites::nothing()).await.unwrap();
}

/// What would be sent now.
async fn sent(process: &Process, model: &Arc<dyn Model>, tree: TreeId) -> String {
    let (text, digest) = ("Be kind.\n".to_owned(), Digest::of(b"Be kind.\n"));
    let file = BootFile { name: "AGENTS.md".to_owned(), text, digest, trust: Trust::Workspace };
    let mut ask = config(model).request(tree, &ViewName::default());
    let path = ask.source.path_mut().unwrap();
    path.bootstrap = Arc::new(Bootstrap { files: vec![file], ..Bootstrap::default() });
    let prepared = ask.prepare(&process.runtime, &WHO).await.unwrap();
    String::from_utf8(prepared.encoded.body().to_vec()).unwrap()
}

#[tokio::test]
async fn what_is_marked_in_one_turn_begins_the_next_byte_for_byte() {
    let process = House::new().process("chat");
    let model = model(DialectName::AnthropicMessages, ModelPlace::Remote, CacheForm::Marks);
    let tree = tree(&process).await;
    let mut before: Option<String> = None;
    for turn in 0..3 {
        add(&process, tree, Role::User, &format!("Question {turn}?")).await;
        let body = sent(&process, &model, tree).await;
        let marks = body.matches(MARK).count();
        assert_eq!(marks, 2, "the boundary and the end, of the four there may be: {body}");
        let (boundary, end) = (body.find(MARK).unwrap(), body.rfind(MARK).unwrap());
        assert!(body[..boundary].ends_with("Be kind.\\n\""), "{body}");
        assert!(body[..end].ends_with(&format!("Question {turn}?\"")), "the mark rolls: {body}");
        let kept = body[..end].replace(MARK, "");
        if let Some(before) = before.replace(kept.clone()) {
            assert!(kept.starts_with(&before), "{before}\n{kept}");
        }
        add(&process, tree, Role::Assistant, "Answer.").await;
    }
}

#[tokio::test]
async fn a_conversation_has_one_key_that_names_nothing_and_stays_here_where_the_model_does() {
    let process = House::new().process("chat");
    let (one, other) = (tree(&process).await, tree(&process).await);
    for dialect in [DialectName::OpenAiChat, DialectName::OpenAiResponses] {
        let key = async |model: Arc<dyn Model>, tree: TreeId| {
            add(&process, tree, Role::User, "And now?").await;
            let body = sent(&process, &model, tree).await;
            let body: Value = serde_json::from_str(&body).unwrap();
            body["prompt_cache_key"].as_str().map(str::to_owned)
        };
        let remote = model(dialect, ModelPlace::Remote, CacheForm::Key);
        let first = key(Arc::clone(&remote), one).await.unwrap();
        assert_eq!(key(Arc::clone(&remote), one).await.as_ref(), Some(&first), "the same in every turn");
        assert_ne!(key(remote, other).await.as_ref(), Some(&first));
        assert!(first.len() == 32 && first.bytes().all(|b| b.is_ascii_hexdigit()), "{first}");
        assert!(!first.contains(&one.to_string().to_lowercase()));
        assert_eq!(key(model(dialect, ModelPlace::Local, CacheForm::Key), one).await, None);
        assert_eq!(key(model(dialect, ModelPlace::Remote, CacheForm::Implicit), one).await, None);
    }
}

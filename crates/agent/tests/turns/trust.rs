//! Trust of what is written in a conversation, whatever was done to it before (spec: security §3): a text has at most the
//! trust of every text that its request held, by the bytes that were sent.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use drawloom_agent::TurnConfig;
use drawloom_agent::session::{Say, TurnInput};
use loom::path::ViewOverrides;
use loom::plan::EditAs;
use loom::render::{Passage, tip, window};
use loom::{Op, OpTarget, TextOffset, Trust, ViewName};
use model::{
    CallOrigin, Cancel, EncodeError, EncodedRequest, Exchange, Model, ModelError, ModelInfo, Params, Prompt,
    RawResponse,
};
use policy::Policy;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use serde_json::{Value, json};
use store::AttachedWrites;
use tools::Tool;

use crate::support::{House, Process, WHO, said};
use crate::tools::with_further;

/// What a model calls in a turn.
#[derive(Debug, Clone, Copy)]
enum Look {
    /// A tool that brings a text of this trust.
    Bring(Trust),
    /// A file is written.
    Write,
    /// A file that was written before is read.
    Read(usize),
}

/// One thing that is done to a conversation. A number chooses among what there is.
#[derive(Debug, Clone)]
enum Step {
    Say { trust: Trust, looks: Vec<Look> },
    Fork,
    GoToView(usize),
    Move(usize),
    Exclude(usize),
    Include(usize),
    Compact(usize),
    Cut(usize),
    Edit(usize, EditAs),
    Undo,
    Redo,
    Restart,
}

fn look() -> impl Strategy<Value = Look> {
    prop_oneof![
        2 => Just(Look::Bring(Trust::Outside)),
        1 => Just(Look::Bring(Trust::Workspace)),
        1 => Just(Look::Bring(Trust::Agent)),
        2 => Just(Look::Write),
        2 => any::<usize>().prop_map(Look::Read),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    let any = any::<usize>;
    let edit_as = prop_oneof![Just(EditAs::Default), Just(EditAs::Version), Just(EditAs::Branch)];
    let trust = prop_oneof![5 => Just(Trust::Owner), 1 => Just(Trust::Outside)];
    prop_oneof![
        8 => (trust, prop::collection::vec(look(), 0..3)).prop_map(|(trust, looks)| Step::Say { trust, looks }),
        1 => Just(Step::Fork),
        1 => any().prop_map(Step::GoToView),
        1 => any().prop_map(Step::Move),
        2 => any().prop_map(Step::Exclude),
        1 => any().prop_map(Step::Include),
        1 => any().prop_map(Step::Compact),
        1 => any().prop_map(Step::Cut),
        2 => (any(), edit_as).prop_map(|(at, edit_as)| Step::Edit(at, edit_as)),
        1 => Just(Step::Undo),
        1 => Just(Step::Redo),
        1 => Just(Step::Restart),
    ]
}

/// A script that keeps what it was sent.
struct Recording {
    script: Arc<dyn Model>,
    sent: Arc<Mutex<Vec<String>>>,
}

#[async_trait]
impl Model for Recording {
    fn info(&self) -> &ModelInfo {
        self.script.info()
    }

    fn encode(&self, prompt: &Prompt, params: &Params) -> Result<EncodedRequest, EncodeError> {
        self.script.encode(prompt, params)
    }

    async fn send(
        &self,
        request: &EncodedRequest,
        origin: &CallOrigin,
        exchange: Exchange<'_>,
    ) -> Result<RawResponse, ModelError> {
        self.sent.lock().unwrap().push(String::from_utf8(request.body().to_vec()).unwrap());
        self.script.send(request, origin, exchange).await
    }
}

/// The word that a call asked for is what it brings, in another form.
fn brought(asked: &str) -> String {
    asked.replace("asked", "brought")
}

fn bring() -> Tool {
    Tool::of_conversation("bring", "Brings a text.", |_, call: BTreeMap<String, String>| {
        let trust = match call["from"].as_str() {
            "Outside" => Trust::Outside,
            "Workspace" => Trust::Workspace,
            _ => Trust::Agent,
        };
        Ok((brought(&call["word"]), trust))
    })
}

/// A conversation, with what is known of each word that was ever said in it: no word stands in two texts unless one was
/// made of the other.
struct Play {
    house: House,
    folder: tempfile::TempDir,
    process: Process,
    views: Vec<ViewName>,
    view: usize,
    /// The most that a text which holds the word is to be trusted.
    words: BTreeMap<String, Trust>,
    files: usize,
    /// Answers by their trust.
    answers: BTreeMap<Trust, usize>,
}

impl Play {
    fn new() -> Self {
        let house = House::new();
        let process = house.process("chat");
        Self {
            house,
            folder: tempfile::tempdir().unwrap(),
            process,
            views: vec![ViewName::default()],
            view: 0,
            words: BTreeMap::new(),
            files: 0,
            answers: BTreeMap::new(),
        }
    }

    /// A word that was never said, for a text of this trust; long enough that a file of it says something.
    fn word(&mut self, kind: &str, trust: Trust) -> String {
        let word = format!("{kind}{:04}-and-no-other", self.words.len());
        self.words.insert(word.clone(), trust);
        word
    }

    /// The most that a text is to be trusted, by the words in it.
    fn most(&self, text: &str) -> Trust {
        let found = self.words.iter().filter(|(word, _)| text.contains(word.as_str()));
        found.map(|(_, trust)| *trust).min().unwrap_or(Trust::Owner)
    }

    async fn passages(&self) -> Vec<Passage> {
        let (tree, view) = (self.process.enter().await.tree, self.views[self.view].clone());
        let read = self.process.runtime.read(&WHO, tree, move |rows| {
            let path = ViewOverrides::read(rows, &view, tip(rows, &view)?)?;
            window(rows, &view, &path, None, 1_000)
        });
        read.await.unwrap()
    }

    /// A turn; each text of it has at most the trust of what was sent for it.
    async fn say(&mut self, trust: Trust, looks: &[Look]) {
        let text = self.word("said", trust);
        let mut lines = Vec::new();
        // Words of the call, of what it brings, and of what it writes: those of the answer that calls come first.
        let (mut asked, mut shown) = (Vec::new(), Vec::new());
        let calls: Vec<Value> =
            looks.iter().filter_map(|look| self.call(*look, &mut asked, &mut shown)).collect();
        if !calls.is_empty() {
            asked.push(self.word("answered", Trust::Agent));
            lines.push(json!({"text": asked.last(), "tool_calls": calls}).to_string());
        }
        let last = self.word("answered", Trust::Agent);
        lines.push(json!({"text": last}).to_string());
        let sent = Arc::<Mutex<Vec<String>>>::default();
        let config = with_further(&lines.join("\n"), self.folder.path(), Policy::default(), vec![bring()]);
        let model = Recording { script: Arc::clone(&config.model), sent: Arc::clone(&sent) };
        let config = TurnConfig { model: Arc::new(model), ..config };
        let say = said(self.process.runtime.new_id().unwrap(), Arc::new(config), TurnInput::text(&text));
        let say = Say { view: self.views[self.view].clone(), trust, ..say };
        let ended = self.process.talk_as(say).await.until_it_ends(Cancel::never()).await;
        assert!(
            ended.iter().all(|(_, turned)| turned.as_ref().unwrap().reply.as_ref().unwrap().error.is_none())
        );
        let sent = sent.lock().unwrap().clone();
        assert_eq!(sent.len(), lines.len(), "each line answers one request");
        if sent.len() == 2 {
            let most = self.most(&sent[0]).min(Trust::Agent);
            self.words.extend(asked.into_iter().map(|word| (word, most)));
            self.words.extend(shown);
        }
        let most = self.most(sent.last().unwrap()).min(Trust::Agent);
        self.words.insert(last.clone(), most);
        let passages = self.passages().await;
        let answer = &passages.last().unwrap().row.node;
        assert!(passages.last().unwrap().text.contains(&last), "{passages:?}");
        *self.answers.entry(answer.trust).or_default() += 1;
    }

    /// A call; its words go to `asked`, and those of its result to `shown`.
    fn call(
        &mut self,
        look: Look,
        asked: &mut Vec<String>,
        shown: &mut Vec<(String, Trust)>,
    ) -> Option<Value> {
        Some(match look {
            Look::Bring(trust) => {
                let word = self.word("asked", Trust::Agent);
                shown.push((brought(&word), trust));
                asked.push(word.clone());
                json!({"name": "bring", "arguments": {"from": format!("{trust:?}"), "word": word}})
            }
            Look::Write => {
                let word = self.word("written", Trust::Agent);
                asked.push(word.clone());
                self.files += 1;
                let path = format!("{}.txt", self.files);
                json!({"name": "write", "arguments": {"path": path, "content": word}})
            }
            Look::Read(_) if self.files == 0 => return None,
            Look::Read(at) => {
                json!({"name": "read", "arguments": {"path": format!("{}.txt", at % self.files + 1)}})
            }
        })
    }

    /// Changes the tree as its owner. What is not possible there is refused, and changes nothing.
    async fn change(&self, op: Op) -> bool {
        let tree = self.process.enter().await.tree;
        let view = &self.views[self.view];
        self.process.runtime.change(&WHO, tree, view, op, AttachedWrites::nothing()).await.is_ok()
    }

    async fn does(&mut self, step: &Step) {
        let passages = self.passages().await;
        let chosen = |at: usize| &passages[at % passages.len()];
        match step {
            Step::Say { trust, looks } => self.say(*trust, looks).await,
            Step::Fork => {
                let name: ViewName = format!("view-{}", self.views.len()).parse().unwrap();
                if self.change(Op::NewView { name: name.clone(), agent: "main".to_owned() }).await {
                    self.views.push(name);
                }
            }
            Step::GoToView(at) => self.view = at % self.views.len(),
            Step::Move(at) => {
                self.change(Op::Move(chosen(*at).position.id)).await;
            }
            Step::Exclude(at) => {
                self.change(Op::Exclude(OpTarget::Position(chosen(*at).position.id))).await;
            }
            Step::Include(at) => {
                self.change(Op::Include(OpTarget::Position(chosen(*at).position.id))).await;
            }
            Step::Compact(at) => {
                let to = Some(TextOffset { position: chosen(*at).position.id, at: 0 });
                self.change(Op::Compact { to, by_hand: true }).await;
            }
            Step::Cut(at) => {
                let passage = chosen(*at);
                let (node, at) = (passage.row.node.id, passage.text.len() as u64);
                self.change(Op::BranchAt { node, at, token: None }).await;
            }
            Step::Edit(at, edit_as) => {
                let word = self.word("typed", Trust::Owner);
                let (position, text) = (chosen(*at).position.id, format!("{} {word}", chosen(*at).text));
                self.change(Op::Edit { position, text, edit_as: *edit_as }).await;
            }
            Step::Undo => {
                self.change(Op::Undo).await;
            }
            Step::Redo => {
                self.change(Op::Redo).await;
            }
            Step::Restart => {
                let next = self.house.process("chat");
                std::mem::replace(&mut self.process, next).die();
                // Ids of two processes are in order of time.
                self.house.pass(1);
            }
        }
    }

    /// Whatever stands on the path has at most the trust of its words.
    async fn check(&self) {
        for passage in self.passages().await {
            let node = &passage.row.node;
            let most = self.most(&serde_json::to_string(&*node.content).unwrap());
            assert!(
                node.trust <= most,
                "{:?} by {:?} has more than {most:?}: {node:?}",
                node.trust,
                node.author
            );
        }
    }
}

/// Plays a conversation. How many answers have which trust.
async fn play(steps: &[Step]) -> BTreeMap<Trust, usize> {
    let mut play = Play::new();
    play.say(Trust::Owner, &[]).await;
    for step in steps {
        play.does(step).await;
        play.check().await;
    }
    play.answers
}

#[test]
fn s3_a_file_of_a_branch_that_is_left_stays_from_outside() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    for at in 0..6 {
        let steps = [
            Step::Say { trust: Trust::Outside, looks: vec![Look::Write] },
            Step::Edit(at, EditAs::Branch),
            Step::Say { trust: Trust::Owner, looks: vec![Look::Read(0)] },
        ];
        let answers = runtime.block_on(play(&steps));
        assert_eq!(answers.get(&Trust::Outside), Some(&2), "{at}: {answers:?}");
    }
}

#[test]
fn s3_what_a_model_writes_is_trusted_at_most_as_what_it_was_sent() {
    let cases = Config::default().cases.div_ceil(4);
    let mut runner = TestRunner::new(Config { cases, failure_persistence: None, ..Config::default() });
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let answers = std::cell::RefCell::new(BTreeMap::<Trust, usize>::new());
    runner
        .run(&prop::collection::vec(step(), 1..16), |steps| {
            for (trust, count) in runtime.block_on(play(&steps)) {
                *answers.borrow_mut().entry(trust).or_default() += count;
            }
            Ok(())
        })
        .unwrap();
    let answers = answers.into_inner();
    for trust in [Trust::Agent, Trust::Outside] {
        assert!(answers.get(&trust).is_some_and(|count| *count > 4), "the control: {answers:?}");
    }
}

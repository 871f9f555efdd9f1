//! Processes of one home, each with a runtime of its own, and a model that says what the test tells it to.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use context::{Bootstrap, Zone};
use drawloom_agent::session::{
    EventStream, FollowUp, Handle, Name, Say, SessionOperation, Sessions, TreeChoice, TurnInput, spawn,
};
use drawloom_agent::steering::Listener;
use drawloom_agent::{
    AgentError, CommittedNode, OpenedSession, Runtime, SayId, SessionChoice, SessionEvent, TurnConfig,
    TurnOutcome,
};
use loom::path::ViewOverrides;
use loom::render::{Passage, tip, window};
use loom::{Author, Digest, Finish, NodeId, Purpose, Role, Trust};
use model::script::ScriptOptions;
use model::{
    CallOrigin, Cancel, Clock, Dialect, EncodeError, EncodedRequest, Exchange, Model, ModelError, ModelInfo,
    ModelPlace, PARSER_VERSION, Params, Prices, Prompt, Rates, RawResponse, ScriptModel, SourceKind, Timings,
};
use store::home::{Home, HomeOptions};
use store::instance::{About, Instance, InstanceId, Instances};
use store::{Generation, GenerationFilter, Principal, SessionKind, Store};
use text::mask::Masker;
use tokio::sync::{mpsc, oneshot};

/// The owner.
pub(crate) const WHO: Principal = Principal::Owner;
/// When every test begins, in ms since 1970.
const BEGINNING: i64 = 1_760_000_000_000;

/// A home with its store, in which processes work.
pub(crate) struct House {
    store: Arc<Store>,
    home: Arc<Home>,
    now: Arc<AtomicI64>,
    _folder: tempfile::TempDir,
}

impl House {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::open(&folder.path().join("home"), HomeOptions::default()).unwrap();
        Self {
            store: Arc::new(Store::in_memory().unwrap()),
            home: Arc::new(home),
            now: Arc::new(AtomicI64::new(BEGINNING)),
            _folder: folder,
        }
    }

    /// Lets time pass by the clock on the wall and the store's.
    pub(crate) fn pass(&self, ms: i64) {
        self.now.fetch_add(ms, Ordering::SeqCst);
        self.store.advance_clock(Duration::from_millis(ms.unsigned_abs()));
    }

    /// A process that begins to work here.
    pub(crate) fn process(&self, command: &str) -> Process {
        let now = Arc::clone(&self.now);
        self.process_by(command, Clock::new(move || now.load(Ordering::SeqCst)))
    }

    /// The same, by a clock of its own.
    pub(crate) fn process_by(&self, command: &str, clock: Clock) -> Process {
        let id = InstanceId::generate(BEGINNING as u64).unwrap();
        let about = About::this_process(command, "0", BEGINNING);
        let instance = Instances::of(&self.home).unwrap().start(id, &about).unwrap();
        let heard = Arc::<Heard>::default();
        let runtime = Runtime::new(
            Arc::clone(&self.store),
            Arc::clone(&self.home),
            id,
            clock,
            Arc::new(Masker::new(&[]).unwrap()),
        );
        Process { runtime, sessions: Sessions::default(), heard, instance }
    }
}

/// A process. It is dead once it is dropped.
pub(crate) struct Process {
    pub(crate) runtime: Runtime,
    pub(crate) sessions: Sessions,
    pub(crate) heard: Arc<Heard>,
    instance: Instance,
}

impl Process {
    /// The session `main`.
    pub(crate) async fn enter(&self) -> OpenedSession {
        let chosen =
            SessionChoice { workspace: String::new(), name: Name::default(), kind: SessionKind::Main };
        self.runtime.enter(&WHO, &chosen, "hello").await.unwrap()
    }

    /// Says something, and waits until nothing of the session is under way. What came of it.
    pub(crate) async fn say(&self, model: &Arc<dyn Model>, text: &str) -> Result<Turned, Arc<AgentError>> {
        self.say_until(model, text, Cancel::never()).await
    }

    /// The same, until it is stopped.
    pub(crate) async fn say_until(
        &self,
        model: &Arc<dyn Model>,
        text: &str,
        cancel: Cancel,
    ) -> Result<Turned, Arc<AgentError>> {
        let talk = self.talk(config(model), TurnInput::text(text)).await;
        talk.until_it_ends(cancel).await.remove(0).1
    }

    /// Says something; its turn begins.
    pub(crate) async fn talk(&self, config: TurnConfig, input: TurnInput) -> Talk<'_> {
        self.talk_as(said(self.runtime.new_id().unwrap(), Arc::new(config), input)).await
    }

    /// The same, in another view or on another's behalf.
    pub(crate) async fn talk_as(&self, say: Say) -> Talk<'_> {
        let session = spawn(&self.runtime, &self.sessions, &self.enter().await.session);
        let events = session.events(session.next_event());
        let key = say.key.clone();
        session.send(SessionOperation::Say(Box::new(say))).await.unwrap();
        Talk { process: self, session, events, key }
    }

    /// Listens for what other processes say.
    pub(crate) fn listen(&self) -> Listener {
        Listener::start(&self.runtime.home, self.runtime.instance, &self.sessions).unwrap()
    }

    /// The conversation: who said what, and how it ended.
    pub(crate) async fn path(&self) -> Vec<(Role, String, Option<Finish>)> {
        let tree = self.enter().await.tree;
        let read = self.runtime.read(&WHO, tree, |rows| {
            let view = loom::ViewName::default();
            let path = ViewOverrides::read(rows, &view, tip(rows, &view)?)?;
            window(rows, &view, &path, None, 1_000)
        });
        let said = |passage: Passage| {
            let node = passage.row.node;
            (!passage.text.is_empty()).then(|| (node.role.unwrap(), passage.text, node.finish))
        };
        read.await.unwrap().into_iter().filter_map(said).collect()
    }

    /// What was said, without how it ended.
    pub(crate) async fn texts(&self) -> Vec<String> {
        self.path().await.into_iter().map(|(_, text, _)| text).collect()
    }

    /// The text and end of a node, wherever it stands.
    pub(crate) async fn node(&self, node: NodeId) -> Option<(String, Option<Finish>)> {
        let tree = self.enter().await.tree;
        let read = self.runtime.read(&WHO, tree, move |rows| rows.node(node));
        read.await.unwrap().map(|row| (row.node.text().into_owned(), row.node.finish))
    }

    /// All generations, the oldest first.
    pub(crate) async fn generations(&self) -> Vec<Generation> {
        self.runtime.store.generations(&WHO, GenerationFilter::default(), None, 999).await.unwrap()
    }

    /// How many answers lie aside.
    pub(crate) fn spools(&self) -> usize {
        let spool = self.runtime.home.dir(store::home::HomeDir::Spool).unwrap();
        std::fs::read_dir(spool).unwrap().count()
    }

    /// Nothing was received: it had come to the row, and not to the spool.
    pub(crate) fn forget_spools(&self) {
        let spool = self.runtime.home.dir(store::home::HomeDir::Spool).unwrap();
        for found in std::fs::read_dir(spool).unwrap() {
            std::fs::remove_file(found.unwrap().path()).unwrap();
        }
    }

    /// The process ends without a word: what it was doing, and its hold on its leases.
    pub(crate) fn die(self) {
        drop(self.instance);
    }
}

/// Something the owner says in the session's tree.
pub(crate) fn said(key: SayId, config: Arc<TurnConfig>, input: TurnInput) -> Say {
    Say {
        key,
        input,
        tree: TreeChoice::Current,
        view: loom::ViewName::default(),
        config,
        reply_to: None,
        author: Author::owner(),
        trust: Trust::Owner,
        answer_within: None,
        hands_back: false,
        skills: tools::TurnSkills::default(),
    }
}

/// A text the owner says in the turn under way, or behind it.
pub(crate) fn follow_up(key: SayId, text: &str) -> FollowUp {
    let (view, text) = (loom::ViewName::default(), text.to_owned());
    FollowUp { key, text, view, author: Author::owner(), trust: Trust::Owner }
}

/// How a model is asked here.
pub(crate) fn config(model: &Arc<dyn Model>) -> TurnConfig {
    TurnConfig {
        purpose: Purpose::Turn,
        model: Arc::clone(model),
        agent: "main".to_owned(),
        profile: None,
        params: Params { n: 1, ..Params::default() },
        bootstrap: Arc::new(Bootstrap::default()),
        strategy: context::Strategy::default(),
        plan: false,
        tools: None,
    }
}

/// A model that answers from these lines.
pub(crate) fn script(lines: &str) -> Arc<dyn Model> {
    Arc::new(ScriptModel::from_text("script", lines, ScriptOptions::default()).unwrap())
}

/// What came of something said.
#[derive(Debug)]
pub(crate) struct Turned {
    pub(crate) reply: Result<Reply, Arc<AgentError>>,
}

/// What came of its model call.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) answer: Option<CommittedNode>,
    pub(crate) manifest: Digest,
    pub(crate) share: f64,
    pub(crate) zone: Zone,
    pub(crate) error: Option<Arc<AgentError>>,
}

impl Turned {
    fn of(outcome: TurnOutcome) -> Self {
        let error = outcome.error.map(|error| error.0);
        let reply = match (outcome.manifest, error) {
            (None, Some(error)) => Err(error),
            (manifest, error) => Ok(Reply {
                answer: outcome.answer,
                manifest: manifest.unwrap(),
                share: outcome.share,
                zone: Zone::of(outcome.share),
                error,
            }),
        };
        Self { reply }
    }
}

/// Something said, and the events since.
pub(crate) struct Talk<'a> {
    process: &'a Process,
    pub(crate) session: Handle,
    events: EventStream,
    key: SayId,
}

impl Talk<'_> {
    /// What came of what was said here.
    pub(crate) async fn finished(mut self) -> Result<Turned, Arc<AgentError>> {
        loop {
            match self.events.next().await.unwrap().event {
                SessionEvent::Finished { says, outcome } if says.contains(&self.key) => {
                    return Ok(Turned::of(*outcome));
                }
                SessionEvent::Rejected { say, error } if say == self.key => return Err(error.0),
                _ => {}
            }
        }
    }

    /// The task is dropped where it waits.
    pub(crate) async fn dies(mut self) {
        self.session.abort();
        while self.events.next().await.is_some() {}
    }

    /// Says something in the turn under way.
    pub(crate) async fn steer(&self, text: &str) {
        let text = follow_up(self.process.runtime.new_id().unwrap(), text);
        self.session.send(SessionOperation::Steer(text)).await.unwrap();
    }

    /// What came of each model call until nothing was under way, and the texts it answered: first that of what was
    /// said here.
    pub(crate) async fn until_it_ends(
        mut self,
        mut cancel: Cancel,
    ) -> Vec<(Vec<String>, Result<Turned, Arc<AgentError>>)> {
        let (mut ended, mut texts, mut stopped) = (Vec::new(), Vec::new(), false);
        loop {
            let event = tokio::select! {
                event = self.events.next() => event.unwrap().event,
                () = cancel.cancelled(), if !stopped => {
                    stopped = true;
                    self.session.send(SessionOperation::Stop).await.unwrap();
                    continue;
                }
            };
            match event {
                SessionEvent::Notice { text } => self.process.heard.notes.lock().unwrap().push(text),
                SessionEvent::Delta { text, .. } => self.process.heard.text.lock().unwrap().push_str(&text),
                SessionEvent::Accepted { text, .. } => texts.push(text),
                SessionEvent::Finished { outcome, .. } => {
                    ended.push((std::mem::take(&mut texts), Ok(Turned::of(*outcome))));
                }
                SessionEvent::Rejected { error, .. } => {
                    ended.push((Vec::new(), Err(error.0)));
                }
                SessionEvent::Idle if !ended.is_empty() => return ended,
                _ => {}
            }
        }
    }
}

/// What was heard.
#[derive(Default)]
pub(crate) struct Heard {
    pub(crate) notes: Mutex<Vec<String>>,
    pub(crate) text: Mutex<String>,
}

/// A request that waits. Dropping it lets the model go on.
pub(crate) struct Asked {
    /// The body.
    pub(crate) body: String,
    _held: oneshot::Sender<()>,
}

/// A model that says [`FIRST`], and [`REST`] when it is let go on.
pub(crate) struct Gated {
    info: ModelInfo,
    asked: mpsc::UnboundedSender<Asked>,
}

/// What it says before it waits, and after.
pub(crate) const FIRST: &str = "one two";
pub(crate) const REST: &str = " three";

impl Gated {
    /// The model, and the requests that wait.
    pub(crate) fn gated() -> (Arc<dyn Model>, mpsc::UnboundedReceiver<Asked>) {
        Self::with(|info| info)
    }

    fn with(change: impl FnOnce(ModelInfo) -> ModelInfo) -> (Arc<dyn Model>, mpsc::UnboundedReceiver<Asked>) {
        let (asked, requests) = mpsc::unbounded_channel();
        let ScriptOptions { window, output_limit, .. } = ScriptOptions::default();
        let info = ModelInfo {
            prefill: false,
            completion_endpoint: false,
            ..ModelInfo::local("test", "gated", window, output_limit)
        };
        (Arc::new(Self { info: change(info), asked }), requests)
    }

    /// The same on another machine, at a dollar for a thousand tokens of output.
    pub(crate) fn dear() -> (Arc<dyn Model>, mpsc::UnboundedReceiver<Asked>) {
        let prices = Some(Prices::flat(Rates { output: 1_000_000_000, ..Rates::FREE }));
        let (place, kind) = (ModelPlace::Remote, SourceKind::Remote);
        Self::with(|info| ModelInfo { place, kind, prices, ..info })
    }
}

fn event(delta: &str, finish: Option<&str>) -> Vec<u8> {
    let finish = finish.map_or("null".to_owned(), |finish| format!("\"{finish}\""));
    let choice = format!(r#"{{"index":0,"delta":{{"content":"{delta}"}},"finish_reason":{finish}}}"#);
    format!("data: {{\"id\":\"g\",\"choices\":[{choice}]}}\n\n").into_bytes()
}

#[async_trait]
impl Model for Gated {
    fn info(&self) -> &ModelInfo {
        &self.info
    }

    fn encode(&self, prompt: &Prompt, params: &Params) -> Result<EncodedRequest, EncodeError> {
        model::openai_chat::OpenAiChat::default().encode(prompt, params, &self.info.name)
    }

    async fn send(
        &self,
        request: &EncodedRequest,
        _: &CallOrigin,
        exchange: Exchange<'_>,
    ) -> Result<RawResponse, ModelError> {
        let mut body = Vec::new();
        let mut parser = request.dialect().parser(true);
        let Exchange { spool, listener, mut cancel, .. } = exchange;
        let mut say = |bytes: Vec<u8>| {
            spool.append(&bytes).unwrap();
            body.extend_from_slice(&bytes);
            let mut events = Vec::new();
            parser.feed(&bytes, &mut events).unwrap();
            events.into_iter().for_each(|event| listener.event(event));
        };
        say(event(FIRST, None));
        let (held, let_go) = oneshot::channel();
        let sent = String::from_utf8(request.body().to_vec()).unwrap();
        self.asked.send(Asked { body: sent, _held: held }).ok();
        let stopped = tokio::select! {
            _ = let_go => false,
            () = cancel.cancelled() => true,
        };
        if !stopped {
            say(event(REST, Some("stop")));
            say(b"data: [DONE]\n\n".to_vec());
        }
        let response = RawResponse {
            status: 200,
            headers: Vec::new(),
            removed_headers: Vec::new(),
            body: body.clone().into(),
            streamed: true,
            timings: Timings { started_at: 0, head_ms: 0, first_byte_ms: Some(0), total_ms: 0 },
            attempt: 1,
            dialect: request.dialect(),
            parser_version: PARSER_VERSION,
            parsed: model::reparse(request.dialect(), &body, true),
            source: SourceKind::Local,
        };
        if stopped {
            Err(ModelError::Cancelled { response: Some(Box::new(response)), refused: false })
        } else {
            Ok(response)
        }
    }
}

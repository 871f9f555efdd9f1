//! Random schedules of operations, steers, stops, answers, kills and reconnects over a session's task, against a plain model of
//! them (spec: agent §1).

mod step;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use drawloom_agent::questions::{AnswerText, Decision, QuestionId};
use drawloom_agent::session::{
    EventStream, FollowUp, Handle, Numbered, SessionOperation, TreeChoice, TurnInput, spawn,
};
use drawloom_agent::steering::{AttachedEvents, attach};
use drawloom_agent::{Budget, SayId, SessionEvent, SpendLimiter};
use loom::{Finish, NodeId, Role};
use model::{Model, Money};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use store::{GenerationState, Reservation, SpendLimits};
use tokio::sync::mpsc::UnboundedReceiver;

use self::step::{Step, step};
use crate::support::{Asked, FIRST, Gated, House, Process, REST, WHO, config, follow_up, said};

/// What the events of one task tell, put together by whoever reads them.
#[derive(Debug, Default, PartialEq)]
struct Seen {
    /// Texts that were accepted, in order, with their nodes.
    accepted: Vec<(SayId, NodeId, String)>,
    /// Text of each node as its deltas tell it.
    written: BTreeMap<NodeId, String>,
    committed: BTreeMap<NodeId, String>,
    finished: Vec<SayId>,
    rejected: BTreeSet<SayId>,
    asked: Vec<QuestionId>,
    answered: BTreeMap<QuestionId, Decision>,
}

impl Seen {
    fn of(events: &[Numbered]) -> Self {
        let mut seen = Self::default();
        for Numbered { event, .. } in events {
            match event.clone() {
                SessionEvent::Accepted { say, node, text, .. } => seen.accepted.push((say, node, text)),
                SessionEvent::Delta { node, offset, text } => {
                    let written = seen.written.entry(node).or_default();
                    assert_eq!(offset, written.len() as u64, "a delta goes on where the text was");
                    written.push_str(&text);
                }
                SessionEvent::Committed { node, .. } => {
                    assert!(
                        seen.committed.insert(node.id, node.text.to_string()).is_none(),
                        "committed twice"
                    );
                }
                SessionEvent::Finished { says, .. } => seen.finished.extend(says),
                SessionEvent::Rejected { say, .. } => {
                    seen.rejected.insert(say);
                }
                SessionEvent::Question { question } => seen.asked.push(question.id),
                SessionEvent::Answered { question, decision, .. } => {
                    assert!(seen.asked.contains(&question), "answered before it was asked");
                    assert!(seen.answered.insert(question, decision).is_none(), "answered twice");
                }
                SessionEvent::Started { .. } => {
                    let open = seen.asked.iter().find(|id| !seen.answered.contains_key(id));
                    assert_eq!(open, None, "it was not waited for the answer");
                }
                _ => {}
            }
        }
        seen
    }
}

/// Events of a task from somewhere on, as one connection tells them.
enum Source {
    Here(EventStream),
    Remote(Box<AttachedEvents>),
    /// Nothing was under way.
    Nowhere,
}

/// A client of a task, which comes and goes.
struct Client {
    is_remote: bool,
    /// Number of the event it wants next, and its task once it is known.
    next: u64,
    task: Option<u64>,
    source: Source,
    /// What it heard, a connection each.
    heard: Vec<Vec<Numbered>>,
}

impl Client {
    fn new(from: u64, is_remote: bool) -> Self {
        Self { is_remote, next: from.max(1), task: None, source: Source::Nowhere, heard: Vec::new() }
    }

    /// Comes, and is told where its events begin: no later than those of the generation under way.
    async fn connect(&mut self, rig: &Rig<'_>) {
        self.heard.push(Vec::new());
        let runtime = &rig.process.runtime;
        self.source = if self.is_remote {
            match attach(runtime, &WHO, rig.session.id(), (self.task, self.next)).await.unwrap() {
                None => Source::Nowhere,
                Some(events) => {
                    self.task = Some(events.task());
                    // What happened until now stands in the record.
                    let began = began(&rig.recorded).unwrap_or(u64::MAX);
                    let is_whole =
                        events.from() <= began.max(self.next) || events.from() > rig.recorded.len() as u64;
                    assert!(is_whole, "{} of {} on: {:?}", events.from(), self.next, rig.recorded);
                    Source::Remote(Box::new(events))
                }
            }
        } else {
            Source::Here(rig.session.events(self.next))
        };
        if let Source::Here(_) = self.source {
            self.read();
            let first = self.heard.last().and_then(|heard| heard.first()).map(|first| first.n);
            if let (Some(first), Some(began)) = (first, began(&rig.recorded)) {
                assert!(first <= began.max(self.next), "{first}, not {}: {:?}", self.next, rig.recorded);
            }
        }
    }

    /// Reads what is there, in this process.
    fn read(&mut self) {
        if let (Source::Here(events), Some(heard)) = (&mut self.source, self.heard.last_mut()) {
            heard.extend(std::iter::from_fn(|| events.next_held()));
            self.next = heard.last().map_or(self.next, |last| last.n + 1);
        }
    }

    /// Reads at least up to a number, or to the end.
    async fn read_to(&mut self, end: u64) {
        self.read();
        while self.next < end
            && let Source::Remote(events) = &mut self.source
            && let Some(event) = events.next().await
        {
            self.next = event.n + 1;
            self.heard.last_mut().unwrap().push(event);
        }
    }

    /// It heard what happened: on each connection all of it, once and in order.
    fn check(&self, recorded: &[Numbered]) {
        for heard in self.heard.iter().filter(|heard| !heard.is_empty()) {
            let first = heard[0].n as usize - 1;
            assert_eq!(heard[..], recorded[first..first + heard.len()], "remote: {}", self.is_remote);
        }
        let numbers: Vec<u64> = self.heard.iter().flatten().map(|heard| heard.n).collect();
        assert!(numbers.is_sorted_by(|a, b| a < b), "{numbers:?}");
    }
}

/// Where the generation under way began to be told: with the text it answers. None where nothing is under way.
fn began(recorded: &[Numbered]) -> Option<u64> {
    let started = recorded.iter().rposition(|event| matches!(event.event, SessionEvent::Started { .. }))?;
    let is_over = |event: &Numbered| matches!(event.event, SessionEvent::Finished { .. });
    if recorded[started..].iter().any(is_over) {
        return None;
    }
    let accepted =
        recorded[..started].iter().rposition(|event| matches!(event.event, SessionEvent::Accepted { .. }));
    accepted.map(|place| recorded[place].n)
}

/// A session under test, with what was said to it.
struct Rig<'a> {
    process: &'a Process,
    session: Handle,
    /// All events since its beginning, by one who reads along.
    recorder: EventStream,
    recorded: Vec<Numbered>,
    clients: Vec<Client>,
    model: Arc<dyn Model>,
    requests: UnboundedReceiver<Asked>,
    waiting: Option<Asked>,
    said: Vec<(SayId, String)>,
    /// Whether each request is over the budget, and somebody is there to be asked.
    is_dear: bool,
}

impl<'a> Rig<'a> {
    async fn new(process: &'a Process, is_dear: bool) -> Self {
        let (model, requests) = if is_dear { Gated::dear() } else { Gated::gated() };
        let session = spawn(&process.runtime, &process.sessions, &process.enter().await.session);
        let (recorder, recorded, clients) = (session.events(1), Vec::new(), Vec::new());
        let (waiting, said) = (None, Vec::new());
        Self { process, session, recorder, recorded, clients, model, requests, waiting, said, is_dear }
    }

    /// Those who read along here do.
    fn record(&mut self) {
        self.recorded.extend(std::iter::from_fn(|| self.recorder.next_held()));
        self.clients.iter_mut().for_each(Client::read);
    }

    /// Everybody has heard all that happens.
    async fn hears_out(mut self) -> Self {
        while let Some(event) = self.recorder.next().await {
            self.recorded.push(event);
        }
        let mut clients = std::mem::take(&mut self.clients);
        for client in &mut clients {
            client.read_to(u64::MAX).await;
            client.check(&self.recorded);
        }
        let numbers: Vec<u64> = self.recorded.iter().map(|numbered| numbered.n).collect();
        assert_eq!(numbers, (1..=numbers.len() as u64).collect::<Vec<_>>());
        self
    }

    /// Answers the question that stands, if one does.
    async fn answer(&self, decision: Decision, elsewhere: bool) {
        let runtime = &self.process.runtime;
        let Some(open) = runtime.open_questions(&WHO).await.unwrap().pop() else { return };
        if elsewhere {
            // It may have been answered this moment.
            let _ = runtime.answer_question(&WHO, open.id, decision, AnswerText::default()).await;
        } else {
            self.session.answer(open.id, decision).await.unwrap();
        }
    }

    fn text(&mut self, number: usize) -> FollowUp {
        let (key, text): (SayId, _) = (self.process.runtime.new_id().unwrap(), format!("text {number}"));
        self.said.push((key.clone(), text.clone()));
        follow_up(key, &text)
    }

    async fn say(&mut self, FollowUp { key, text, .. }: FollowUp, tree: TreeChoice) {
        let say = said(key, Arc::new(config(&self.model)), TurnInput::text(text));
        let say = drawloom_agent::session::Say {
            tree,
            answer_within: self.is_dear.then_some(drawloom_agent::questions::DEADLINE),
            ..say
        };
        self.session.send(SessionOperation::Say(Box::new(say))).await.unwrap();
    }

    async fn does(&mut self, number: usize, step: Step) {
        match step {
            Step::Say => {
                let text = self.text(number);
                self.say(text, TreeChoice::Current).await;
            }
            Step::SayAnew => {
                let text = self.text(number);
                self.say(text, TreeChoice::New { title: "anew".to_owned() }).await;
            }
            // Before anything was said there is no model to steer.
            Step::Steer if !self.said.is_empty() => {
                let text = self.text(number);
                self.session.send(SessionOperation::Steer(text)).await.unwrap();
            }
            Step::Queue if !self.said.is_empty() => {
                let text = self.text(number);
                self.session.send(SessionOperation::Queue(text)).await.unwrap();
            }
            Step::Repeat => {
                if let Some((key, text)) = self.said.last().cloned() {
                    self.say(follow_up(key, &text), TreeChoice::Current).await;
                }
            }
            Step::Stop => self.session.send(SessionOperation::Stop).await.unwrap(),
            Step::Answer { yes, elsewhere } => {
                self.answer(if yes { Decision::Approved } else { Decision::Denied }, elsewhere).await;
            }
            Step::GoOn => self.go_on(),
            Step::Settle => {
                for _ in 0..64 {
                    tokio::task::yield_now().await;
                }
            }
            Step::Connect { from, is_remote } => {
                let mut client = Client::new(from, is_remote);
                client.connect(self).await;
                self.clients.push(client);
            }
            Step::Reconnect(which) if !self.clients.is_empty() => {
                let mut client = self.clients.swap_remove(which % self.clients.len());
                client.read_to(self.recorded.len() as u64 + 1).await;
                client.source = Source::Nowhere;
                client.connect(self).await;
                self.clients.push(client);
            }
            Step::Steer | Step::Queue | Step::Reconnect(_) | Step::Kill => {}
        }
        self.record();
    }

    /// Lets the model go on where it waits.
    fn go_on(&mut self) {
        self.waiting.take();
        if let Ok(asked) = self.requests.try_recv() {
            self.waiting = Some(asked);
        }
    }

    /// Everything that was said is done with, and the task has ended. All events.
    async fn ends(mut self) -> (Vec<Numbered>, Vec<(SayId, String)>) {
        let open = |seen: &Seen, said: &[(SayId, String)]| {
            said.iter().any(|(key, _)| !seen.finished.contains(key) && !seen.rejected.contains(key))
        };
        let began = std::time::Instant::now();
        while open(&Seen::of(&self.recorded), &self.said) {
            assert!(began.elapsed().as_secs() < 30, "it hangs: {:?}", self.recorded);
            self.go_on();
            if self.is_dear {
                self.answer(Decision::Approved, false).await;
            }
            tokio::task::yield_now().await;
            self.record();
        }
        self.waiting.take();
        self.session.close().await;
        let Self { recorded, said, .. } = self.hears_out().await;
        (recorded, said)
    }
}

/// What was said is said once, in an order the events tell; every answer is one the model gave, whole or cut.
async fn check_tree(process: &Process, seen: &[Seen], said: &BTreeMap<SayId, String>) {
    let mut texts = BTreeMap::new();
    for (say, node, text) in seen.iter().flat_map(|seen| &seen.accepted) {
        assert_eq!(said.get(say), Some(text), "what was said is what is written");
        assert!(texts.insert(say.clone(), *node).is_none(), "{text} was said twice");
    }
    for seen in seen {
        for (node, text) in &seen.committed {
            assert_eq!(seen.written.get(node), Some(text), "a node is its deltas");
            assert!([FIRST.to_owned(), format!("{FIRST}{REST}")].contains(text), "{text}");
        }
    }
    // Only the newest tree is on the path of the session; what is there is what was told, in order.
    let path = process.path().await;
    let users: Vec<&String> =
        path.iter().filter(|(role, ..)| *role == Role::User).map(|(_, text, _)| text).collect();
    let told: Vec<&String> = seen.iter().flat_map(|seen| &seen.accepted).map(|(_, _, text)| text).collect();
    assert!(told.ends_with(&users), "{users:?} of {told:?}");
    for (role, text, finish) in &path {
        if *role == Role::Assistant && *text == FIRST {
            assert!(matches!(finish, Some(Finish::Interrupted(_))), "{finish:?}");
        }
    }
    // What was asked of a model is what is booked: nothing is left open, and no spool lies about.
    let generations = process.generations().await;
    assert!(generations.iter().all(|generation| generation.state != GenerationState::Started));
    assert_eq!(process.spools(), 0);
    let answers: BTreeSet<NodeId> =
        generations.iter().flat_map(|generation| generation.row.reserved.clone()).collect();
    assert!(seen.iter().flat_map(|seen| seen.committed.keys()).all(|node| answers.contains(node)));
}

/// What a dead process left is recovered. Its files may be on their way to the device for a moment yet.
async fn recover(process: &Process) {
    let began = std::time::Instant::now();
    let is_open = async || {
        process.generations().await.iter().any(|generation| generation.state == GenerationState::Started)
    };
    process.runtime.recover(&()).await.unwrap();
    while is_open().await {
        assert!(began.elapsed().as_secs() < 30, "it is not recovered");
        std::thread::yield_now();
        process.runtime.recover(&()).await.unwrap();
    }
}

/// Every question is answered, those that nobody waits for any more too, and nothing is reserved any more.
async fn check_answers(process: &Process, seen: &[Seen]) {
    let runtime = &process.runtime;
    assert_eq!(runtime.open_questions(&WHO).await.unwrap(), [], "nobody waits for these");
    let last = seen.last().unwrap();
    assert_eq!(last.asked.len(), last.answered.len(), "{:?} of {:?}", last.answered, last.asked);
    for (id, decision) in seen.iter().flat_map(|seen| &seen.answered) {
        let answer = runtime.store.question(&WHO, *id).await.unwrap().answer.unwrap();
        assert_eq!(answer.decision, *decision, "what was heard is what stands");
    }
    let limits = SpendLimits {
        turn: 0,
        day: 0,
        month: 0,
        tokens: 0,
        day_began: loom::Millis(0),
        month_began: loom::Millis(0),
    };
    let nothing = Reservation { turn: String::new(), micro_dollars: 0, tokens: 0, limits };
    let tree = process.enter().await.tree;
    let spending = runtime.store.spending(&WHO, tree, &nothing).await.unwrap();
    let booked = runtime.store.spent(&WHO, loom::Millis(0), None, 999).await.unwrap();
    let costs: u64 = booked.iter().filter_map(|spent| spent.row.usage.micro_cost).sum();
    assert_eq!(spending.day, costs, "what was spent, and nothing else");
}

/// A process whose day has a dollar. A request is reckoned with more than four.
fn process(house: &House) -> Process {
    let mut process = house.process("chat");
    let [turn, day, month] = [1_000.0, 1.0, 1_000.0].map(Money::from_dollars);
    process.runtime.spend = Arc::new(SpendLimiter::new(Budget { turn, day, month }));
    process
}

async fn play(is_dear: bool, steps: &[Step]) {
    let house = House::new();
    let (mut dead, mut tasks, mut said) = (Vec::new(), Vec::new(), BTreeMap::new());
    let mut process = Box::new(process(&house));
    let mut numbered = steps.iter().copied().enumerate();
    loop {
        let mut is_killed = false;
        let listener = process.listen();
        let mut rig = Rig::new(&process, is_dear).await;
        for (number, step) in numbered.by_ref() {
            if let Step::Kill = step {
                is_killed = true;
                break;
            }
            rig.does(number, step).await;
        }
        let events = if is_killed {
            rig.session.abort();
            let Rig { recorded, said: all_said, .. } = rig.hears_out().await;
            said.extend(all_said);
            recorded
        } else {
            let (events, all_said) = rig.ends().await;
            said.extend(all_said);
            events
        };
        drop(listener);
        tasks.push(Seen::of(&events));
        if !is_killed {
            break;
        }
        let next = Box::new(self::process(&house));
        std::mem::replace(&mut process, next).die();
        // Ids of two processes are in order of time.
        house.pass(1);
        recover(&process).await;
        dead.push(());
    }
    check_tree(&process, &tasks, &said).await;
    check_answers(&process, &tasks).await;
    let last = tasks.last().unwrap();
    assert!(dead.len() == tasks.len() - 1);
    assert!(last.rejected.is_empty() || last.accepted.len() + last.rejected.len() <= said.len());
}

#[test]
fn a_session_does_what_a_plain_model_of_it_does_whatever_the_schedule() {
    let mut runner = TestRunner::new(Config { cases: 1_000, failure_persistence: None, ..Config::default() });
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runner
        .run(&(any::<bool>(), prop::collection::vec(step(), 1..24)), |(is_dear, steps)| {
            runtime.block_on(play(is_dear, &steps));
            Ok(())
        })
        .unwrap();
}

//! Requests of a prompt: what an observer, a wrap or a router asks takes the way of a turn, and makes no node.

use std::sync::Arc;

use context::{Kind, Manifest, RequestPiece, Source};
use drawloom_agent::{
    AgentError, Budget, Call, CommittedNode, EventSink, GenerationOutcome, GenerationRequest, ListedModels,
    PromptRequest, SessionEvent, SpendLimiter, TurnConfig,
};
use loom::{Digest, Finish, GenerationId, Millis, NodeId, Purpose, TreeId, Trust, ViewName};
use model::retry::RetryPolicy;
use model::script::ScriptOptions;
use model::{Cancel, Chat, ChatPart, Model, Money, PartId, Prompt, ScriptModel, TextPart};
use std::sync::Mutex;
use store::{Forget, ForgottenPlace, GenerationState};
use text::mask::{Masker, Secret};

use crate::support::{FIRST, Gated, House, Process, REST, WHO, config, script};

const WORK: &str = "Say in one line what was said.";

/// The events of a request.
#[derive(Default)]
struct Events(Mutex<Vec<SessionEvent>>);

impl EventSink for Events {
    fn emit(&self, event: SessionEvent) {
        self.0.lock().unwrap().push(event);
    }
}

fn call() -> Call {
    Call::owner(Arc::new(()))
}

/// A tree of a session in which something was said and answered.
async fn conversation(process: &Process) -> TreeId {
    let said = process.say(&script(r#"{"text": "Hello you."}"#), "hello, I am Ada").await.unwrap();
    assert!(said.reply.unwrap().error.is_none());
    process.enter().await.tree
}

fn prompt(texts: &[(&str, Source, Trust)]) -> PromptRequest {
    let part = |(id, (text, ..)): (usize, &(&str, Source, Trust))| TextPart::new(PartId(id as u32), *text);
    let messages = texts.iter().enumerate().map(part).map(ChatPart::User).collect();
    let piece = |(id, (_, source, trust)): (usize, &(&str, Source, Trust))| {
        RequestPiece::sent(vec![PartId(id as u32)], Kind::History, source.clone(), "to be observed", *trust)
    };
    PromptRequest {
        prompt: Prompt::Chat(Chat { messages, ..Chat::default() }),
        pieces: texts.iter().enumerate().map(piece).collect(),
        at: None,
    }
}

fn work(said: &str) -> PromptRequest {
    let product = |name: &str| Source::Product { name: name.to_owned() };
    prompt(&[(WORK, product("observer"), Trust::Owner), (said, product("what was said"), Trust::Owner)])
}

fn ask(
    model: &Arc<dyn Model>,
    tree: TreeId,
    purpose: Purpose,
    prompt: impl Into<PromptRequest>,
) -> GenerationRequest {
    let TurnConfig { model, agent, params, .. } = config(model);
    let source = prompt.into().into();
    GenerationRequest {
        profile: None,
        part_of: None,
        guards: Vec::new(),
        purpose,
        tree,
        source,
        model,
        agent,
        params,
    }
}

fn text(outcome: &GenerationOutcome) -> &str {
    assert_eq!(outcome.nodes, Vec::<CommittedNode>::new());
    &outcome.reply.as_ref().unwrap().text
}

/// What was booked since the beginning: generation, purpose, tokens of the request and of the answer.
async fn booked(process: &Process) -> Vec<(GenerationId, Purpose, u64, u64)> {
    let spent = process.runtime.store.spent(&WHO, Millis(0), None, 100).await.unwrap();
    let row = |spent: &store::SpentRow| {
        let usage = spent.row.usage;
        (spent.row.generation, spent.purpose, usage.prompt_tokens, usage.completion_tokens)
    };
    spent.iter().map(row).collect()
}

async fn manifest(process: &Process, digest: Digest) -> Manifest {
    Manifest::from_bytes(&process.runtime.store.manifest(&WHO, digest).await.unwrap()).unwrap()
}

#[tokio::test]
async fn every_purpose_takes_the_way_of_a_turn_and_makes_no_node() {
    let house = House::new();
    let process = house.process("chat");
    let tree = conversation(&process).await;
    let path = process.path().await;
    let before = booked(&process).await.len();
    for (nth, purpose) in
        [Purpose::Observe, Purpose::Reflect, Purpose::Wrap, Purpose::Route].into_iter().enumerate()
    {
        let line = format!(
            r#"{{"for":"turn","text":"no"}}
               {{"for":"{purpose}","text":"She is Ada.","usage":{{"input":30,"output":5}}}}"#
        );
        let line = line.replace("\n               ", "\n");
        let (model, events) = (script(&line), Arc::<Events>::default());
        let call = Call::owner(Arc::clone(&events) as Arc<dyn EventSink>);
        let asked = ask(&model, tree, purpose, work("hello, I am Ada"));
        let outcome = asked.send(&process.runtime, &call).await.unwrap();
        let reply = outcome.reply.clone().unwrap();
        assert_eq!((text(&outcome), reply.finish, reply.trust), ("She is Ada.", Finish::Stop, Trust::Agent));
        assert_eq!(outcome.usage.unwrap().output, 5);
        assert!(outcome.error.is_none(), "{:?}", outcome.error);
        let generation = process.generations().await.pop().unwrap();
        assert_eq!((generation.state, generation.row.purpose), (GenerationState::Done, purpose));
        assert!(generation.row.place.is_none() && generation.row.reserved.is_empty());
        let manifest = manifest(&process, generation.row.manifest).await;
        assert_eq!((manifest.purpose, manifest.tree, manifest.view), (purpose, tree, None));
        let pieces: Vec<_> = manifest.segments.iter().filter(|one| one.kind == Kind::History).collect();
        assert_eq!(pieces.len(), 2);
        assert!(pieces.iter().all(|one| one.tokens > 0 && one.bytes.is_some()), "{pieces:?}");
        assert_eq!(pieces[0].chars, WORK.chars().count() as u64);
        let id = generation.row.id;
        let answer = process.runtime.read(&WHO, tree, move |rows| rows.answer(id)).await.unwrap().unwrap();
        assert_eq!(Digest::of(&answer.bytes), answer.digest);
        let all = booked(&process).await;
        assert_eq!((all.len(), all.last().unwrap()), (before + nth + 1, &(id, purpose, 30, 5)));
        let shown = events.0.lock().unwrap();
        assert!(matches!(&shown[..], [SessionEvent::Started { nodes, .. }] if nodes.is_empty()), "{shown:?}");
    }
    assert_eq!(process.path().await, path, "nothing of it stands in the tree");
    assert_eq!(process.spools(), 0);
}

/// A turn of the session goes on from the request of the turn before it, whatever was asked in between.
#[tokio::test]
async fn a_place_may_be_named_and_nothing_of_the_tree_moves() {
    let process = House::new().process("chat");
    let tree = conversation(&process).await;
    let view = ViewName::default();
    let tip = process.runtime.read(&WHO, tree, {
        let view = view.clone();
        move |rows| loom::render::tip(rows, &view)
    });
    let tip = tip.await.unwrap();
    let model = script(r#"{"for":"observe","text":"seen"}"#);
    let looked = PromptRequest { at: Some((view.clone(), tip)), ..work("hello") };
    let outcome = ask(&model, tree, Purpose::Observe, looked).send(&process.runtime, &call()).await.unwrap();
    assert_eq!(text(&outcome), "seen");
    let row = process.generations().await.pop().unwrap().row;
    let place = row.place.clone().unwrap();
    assert_eq!((place.view, place.parent, place.parent_node), (view.clone(), tip, tip.original()));
    assert!(!row.makes_nodes());
    let below = process.runtime.read(&WHO, tree, move |rows| rows.count_children(tip)).await.unwrap();
    assert_eq!(below, 0);
}

#[tokio::test]
async fn known_secrets_are_masked_in_the_prompt_and_in_the_answer() {
    let house = House::new();
    let mut process = house.process("chat");
    let secret = "sk-canary-0123456789";
    process.runtime.masker = Arc::new(Masker::new(&[Secret::new("KEY", secret).unwrap()]).unwrap());
    let tree = conversation(&process).await;
    let model = script(r#"{"for":"observe","deltas":["the key is sk-can","ary-0123456789"]}"#);
    let asked = ask(&model, tree, Purpose::Observe, work(&format!("my key is {secret}")));
    let prepared = asked.prepare(&process.runtime, &WHO).await.unwrap();
    assert!(!String::from_utf8_lossy(prepared.encoded.body()).contains("canary"));
    let outcome = asked.send(&process.runtime, &call()).await.unwrap();
    assert_eq!(text(&outcome), "the key is ⟦secret:KEY⟧");
    let id = process.generations().await.pop().unwrap().row.id;
    let answer = process.runtime.read(&WHO, tree, move |rows| rows.answer(id)).await.unwrap().unwrap();
    assert!(!String::from_utf8_lossy(&answer.bytes).contains("canary"));
    assert!(answer.metadata.contains("KEY"), "{}", answer.metadata);
}

#[tokio::test]
async fn what_does_not_fit_or_holds_nothing_is_not_sent() {
    let process = House::new().process("chat");
    let tree = conversation(&process).await;
    let model = script(r#"{"for":"observe","text":"no"}"#);
    let before = process.generations().await.len();
    let long = ask(&model, tree, Purpose::Observe, work(&"A tide came in. ".repeat(200_000)));
    let refused = long.send(&process.runtime, &call()).await.unwrap_err();
    assert_eq!(refused.failure().code, "context_too_long");
    let empty = ask(&model, tree, Purpose::Observe, prompt(&[]));
    assert!(empty.send(&process.runtime, &call()).await.is_err());
    assert_eq!(process.generations().await.len(), before);
}

/// The trust of what an answer says is the lowest that was sent, and the node that brings it down is named.
#[tokio::test]
async fn an_answer_is_believed_as_the_least_that_was_sent() {
    let process = House::new().process("chat");
    let tree = conversation(&process).await;
    let node = NodeId::from_bytes([7; 16]);
    let from_outside = Source::Node { node, position: node.as_position() };
    let asked = prompt(&[
        (WORK, Source::Product { name: "observer".to_owned() }, Trust::Owner),
        ("buy now", from_outside, Trust::Outside),
    ]);
    let model = script(r#"{"for":"observe","text":"An offer."}"#);
    let outcome = ask(&model, tree, Purpose::Observe, asked).send(&process.runtime, &call()).await.unwrap();
    assert_eq!(outcome.reply.unwrap().trust, Trust::Outside);
    assert_eq!(manifest(&process, outcome.manifest).await.tainted_by, Some(node));
}

fn down() -> Arc<dyn Model> {
    let options = ScriptOptions { retry: RetryPolicy::never(), ..ScriptOptions::default() };
    let lines = r#"{"for":"observe","fault":"500","loop":true}"#;
    Arc::new(ScriptModel::from_text("near", lines, options).unwrap())
}

#[tokio::test]
async fn s10_a_cut_local_observer_makes_no_request_at_a_remote_one() {
    for allowed in [false, true] {
        let house = House::new();
        let mut process = house.process("chat");
        let tree = conversation(&process).await;
        let (far, mut asked) = Gated::dear();
        let name = far.info().full_name();
        let found = move || vec![(name.clone(), Ok(Arc::clone(&far)))];
        process.runtime.fallbacks = ListedModels::new(found, allowed);
        process.runtime.spend =
            Arc::new(SpendLimiter::new(Budget { turn: Money::from_dollars(10.0), ..Budget::default() }));
        let request = ask(&down(), tree, Purpose::Observe, work("private"));
        let events = Arc::new(Events::default());
        let call = Call::owner(events.clone());
        let (sent, ()) = tokio::join!(request.send(&process.runtime, &call), async {
            // The second is the control: the owner allowed it in so many words.
            if allowed {
                drop(asked.recv().await.unwrap());
            }
        });
        let outcome = sent.unwrap();
        assert_eq!(outcome.reply.is_some(), allowed, "{outcome:?}");
        assert!(asked.try_recv().is_err(), "nobody else was asked");
        let purposes: Vec<_> = process.generations().await.iter().map(|one| one.row.purpose).collect();
        let observed = purposes.iter().filter(|purpose| **purpose == Purpose::Observe).count();
        assert_eq!(observed, 1 + usize::from(allowed), "each try has a row of its own");
        // Whoever waits is told which request brings no answer.
        let events = events.0.lock().unwrap();
        let mut waits = Vec::new();
        for event in events.iter() {
            match event {
                SessionEvent::Started { generation, .. } => waits.push(*generation),
                SessionEvent::RequestFailed { generation, .. } => waits.retain(|waits| waits != generation),
                _ => {}
            }
        }
        assert_eq!(waits.len(), usize::from(allowed), "{events:?}");
    }
}

#[tokio::test]
async fn what_it_may_cost_is_reserved_while_it_runs_and_refused_where_it_does_not_fit() {
    let house = House::new();
    let mut process = house.process("chat");
    let tree = conversation(&process).await;
    let (model, mut asked) = Gated::dear();
    let budget = |dollars| Budget { turn: Money::from_dollars(dollars), ..Budget::default() };
    process.runtime.spend = Arc::new(SpendLimiter::new(budget(1.0)));
    let request = ask(&model, tree, Purpose::Observe, work("hello"));
    let refused = request.send(&process.runtime, &call()).await.unwrap_err();
    assert!(matches!(refused, AgentError::Budget { .. }), "{refused}");
    assert!(asked.try_recv().is_err(), "nothing was sent");
    process.runtime.spend =
        Arc::new(SpendLimiter::new(Budget { day: Money::from_dollars(5.0), ..budget(10.0) }));
    let (call, second) = (call(), ask(&model, tree, Purpose::Wrap, work("hello")));
    let (sent, ()) = tokio::join!(request.send(&process.runtime, &call), async {
        let held = asked.recv().await.unwrap();
        let refused = second.send(&process.runtime, &call).await.unwrap_err();
        assert!(matches!(refused, AgentError::Budget { .. }), "what runs is reserved: {refused}");
        drop(held);
    });
    assert_eq!(text(&sent.unwrap()), format!("{FIRST}{REST}"));
    // Nobody said how many tokens it were: it is paid for, and estimated.
    let (_, purpose, input, output) = *booked(&process).await.last().unwrap();
    assert!(purpose == Purpose::Observe && input > 0 && output > 0, "{input} {output}");
}

#[tokio::test]
async fn one_that_is_stopped_ends_as_such_and_keeps_what_came() {
    let process = House::new().process("chat");
    let tree = conversation(&process).await;
    let (model, mut asked) = Gated::gated();
    let (stop, cancel) = Cancel::new();
    let (call, request) = (Call { cancel, ..call() }, ask(&model, tree, Purpose::Observe, work("hello")));
    let (sent, held) = tokio::join!(request.send(&process.runtime, &call), async {
        let held = asked.recv().await.unwrap();
        stop.cancel();
        held
    });
    drop(held);
    let outcome = sent.unwrap();
    assert_eq!(text(&outcome), FIRST);
    assert!(matches!(outcome.reply.unwrap().finish, Finish::Interrupted(_)));
    assert!(outcome.error.is_some());
    assert_eq!(process.generations().await.pop().unwrap().state, GenerationState::Done);
    assert_eq!(process.spools(), 0);
}

#[tokio::test]
async fn one_whose_process_dies_is_ended_by_the_next_booked_and_made_no_node() {
    for received in [true, false] {
        let house = House::new();
        let (mut dead, next) = (house.process("chat"), house.process("chat"));
        let tree = conversation(&dead).await;
        let path = next.path().await;
        let before = booked(&next).await.len();
        let (model, mut asked) = Gated::dear();
        let budget = Budget { turn: Money::from_dollars(10.0), ..Budget::default() };
        dead.runtime.spend = Arc::new(SpendLimiter::new(budget));
        let (runtime, request) = (dead.runtime.clone(), ask(&model, tree, Purpose::Observe, work("hello")));
        let dying = tokio::spawn(async move { request.send(&runtime, &call()).await });
        let held = asked.recv().await.unwrap();
        dying.abort();
        assert!(dying.await.unwrap_err().is_cancelled());
        drop(held);
        if !received {
            dead.forget_spools();
        }
        dead.die();
        assert_eq!(next.runtime.recover(&()).await.unwrap(), 0, "no node");
        let generation = next.generations().await.pop().unwrap();
        let ended = if received { GenerationState::Done } else { GenerationState::Cancelled };
        assert_eq!((generation.state, generation.row.purpose), (ended, Purpose::Observe));
        assert_eq!(next.path().await, path);
        assert_eq!(next.spools(), 0);
        let booked = booked(&next).await;
        assert_eq!(booked.len(), before + usize::from(received), "what came is paid for");
        let id = generation.row.id;
        let answer = next.runtime.read(&WHO, tree, move |rows| rows.answer(id)).await.unwrap();
        assert_eq!(answer.is_some(), received);
        if let Some(answer) = answer {
            assert!(answer.metadata.contains("process_ended"), "{}", answer.metadata);
            assert_eq!(booked.last().unwrap().1, Purpose::Observe);
        }
        assert_eq!(next.runtime.recover(&()).await.unwrap(), 0);
    }
}

#[tokio::test]
async fn what_is_forgotten_meanwhile_stops_it_and_later_takes_what_was_kept_of_it() {
    let house = House::new();
    let process = house.process("chat");
    let tree = conversation(&process).await;
    let (model, mut asked) = Gated::gated();
    let (call, request) = (call(), ask(&model, tree, Purpose::Observe, work("the marzipan crocodile")));
    let what = Forget::Text("marzipan".to_owned());
    let (sent, held) = tokio::join!(request.send(&process.runtime, &call), async {
        let held = asked.recv().await.unwrap();
        process.runtime.forget(&WHO, &what).await.unwrap();
        held
    });
    drop(held);
    assert!(matches!(sent.unwrap_err(), AgentError::Forgotten));
    assert_eq!(process.generations().await.pop().unwrap().state, GenerationState::Cancelled);
    assert_eq!(process.spools(), 0);
    // One that has ended is found by what it sent and by what it was answered.
    let model = script(r#"{"for":"observe","text":"a marzipan animal"}"#);
    let outcome = ask(&model, tree, Purpose::Observe, work("the marzipan crocodile"));
    let outcome = outcome.send(&process.runtime, &call).await.unwrap();
    let id = process.generations().await.pop().unwrap().row.id;
    let done = process.runtime.forget(&WHO, &what).await.unwrap();
    assert!(done.places.contains(&ForgottenPlace::Response { generation: id }), "{done:?}");
    assert!(done.places.iter().any(|place| matches!(place, ForgottenPlace::Body { .. })), "{done:?}");
    let answer = process.runtime.read(&WHO, tree, move |rows| rows.answer(id)).await.unwrap().unwrap();
    assert!(answer.purged && answer.bytes.is_empty());
    let manifest = manifest(&process, outcome.manifest).await;
    assert!(process.runtime.store.body(&WHO, manifest.body.middle).await.is_err());
    assert!(process.runtime.forget(&WHO, &what).await.unwrap().places.is_empty());
}

/// A turn of a session that another one began only says what it is for.
#[tokio::test]
async fn a_subagents_turn_makes_nodes_and_carries_its_purpose() {
    let process = House::new().process("chat");
    let model = script(r#"{"for":"subagent","text":"Done.","usage":{"input":3,"output":2}}"#);
    let asked = TurnConfig { purpose: Purpose::Subagent, agent: "helper".to_owned(), ..config(&model) };
    let talk = process.talk(asked, drawloom_agent::session::TurnInput::text("do it")).await;
    let answer = talk.finished().await.unwrap().reply.unwrap().answer.unwrap();
    assert_eq!(process.texts().await, ["do it", "Done."]);
    let generation = process.generations().await.pop().unwrap();
    assert_eq!(generation.row.purpose, Purpose::Subagent);
    assert_eq!(manifest(&process, generation.row.manifest).await.purpose, Purpose::Subagent);
    assert_eq!(booked(&process).await.last().unwrap().1, Purpose::Subagent);
    let read = process.runtime.read(&WHO, generation.row.tree, move |rows| rows.node(answer.id));
    assert_eq!(read.await.unwrap().unwrap().node.author.id, "helper");
}

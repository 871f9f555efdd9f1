//! Requests whose tokens are counted before they are sent (spec: context §4).

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use context::{ContextError, TokenBudget};
use drawloom_agent::{AgentError, Call, EventSink, SessionEvent};
use loom::Mode;
use model::{
    CallOrigin, Cancel, Connection, CountEnd, EncodeError, EncodedRequest, Exchange, HttpModel, Model,
    ModelError, ModelInfo, Params, Prompt, Quirks, RawResponse, TokenCounter,
};
use tokio::time::Instant;

use crate::limits::{ask, long};
use crate::support::{House, WHO};

const WINDOW: u32 = 8_192;
const OUTPUT: u32 = 96;
/// How long a server is waited for that is late.
const LATE: Duration = Duration::from_secs(5);

/// A counter that finds each text denser than the one before.
#[derive(Debug)]
struct Denser {
    known: Mutex<HashMap<String, u64>>,
    /// How long it takes to count, if it is a server.
    takes: Option<Duration>,
    /// Tokens of whole requests, in the order they are asked for from the end.
    requests: Mutex<Vec<u64>>,
}

impl Denser {
    fn new(takes: Option<Duration>, requests: Vec<u64>) -> Arc<Self> {
        Arc::new(Self { known: Mutex::default(), takes, requests: Mutex::new(requests) })
    }

    async fn wait(&self) {
        if let Some(takes) = self.takes {
            tokio::time::sleep(takes).await;
        }
    }
}

#[async_trait]
impl TokenCounter for Denser {
    fn name(&self) -> &'static str {
        "test"
    }

    fn known(&self, text: &str) -> Option<u64> {
        self.known.lock().unwrap().get(text).copied()
    }

    fn is_here(&self) -> bool {
        self.takes.is_none()
    }

    async fn learn(&self, texts: &[String]) -> CountEnd {
        self.wait().await;
        let mut known = self.known.lock().unwrap();
        for text in texts {
            let density = (4.0_f64 / 3.0).powi(known.len() as i32);
            known.insert(text.clone(), (text.len() as f64 / 2.0 * density) as u64);
        }
        CountEnd::InTime
    }

    async fn learn_request(&self, _: &EncodedRequest) -> CountEnd {
        self.wait().await;
        CountEnd::InTime
    }

    fn request(&self, _: &EncodedRequest) -> Option<u64> {
        self.requests.lock().unwrap().pop()
    }
}

fn call() -> Call {
    Call::owner(Arc::new(()))
}

/// How often a server was said to count.
#[derive(Default)]
struct Told(AtomicUsize);

impl EventSink for Told {
    fn emit(&self, event: SessionEvent) {
        self.0.fetch_add(usize::from(matches!(event, SessionEvent::Counting { .. })), Ordering::SeqCst);
    }
}

/// A server that counts nothing within the time it has, or was given up.
#[derive(Debug)]
struct Late(CountEnd, bool);

#[async_trait]
impl TokenCounter for Late {
    fn name(&self) -> &'static str {
        "test"
    }

    fn known(&self, _: &str) -> Option<u64> {
        None
    }

    fn may_count(&self) -> bool {
        self.1
    }

    async fn learn(&self, _: &[String]) -> CountEnd {
        tokio::time::sleep(LATE).await;
        self.0
    }

    async fn learn_request(&self, _: &EncodedRequest) -> CountEnd {
        tokio::time::sleep(LATE).await;
        CountEnd::OutOfTime
    }

    fn request(&self, _: &EncodedRequest) -> Option<u64> {
        None
    }
}

/// A model of a server that is never asked but to count.
struct Counted {
    http: HttpModel,
    counter: Arc<dyn TokenCounter>,
}

impl Counted {
    fn by<C: TokenCounter + 'static>(counter: &Arc<C>) -> Arc<dyn Model> {
        let info = ModelInfo::local("box", "m", WINDOW, 4_096);
        let http = HttpModel::new(info, Quirks::default(), Connection::new("http://127.0.0.1:9/v1")).unwrap();
        let counter = Arc::clone(counter) as Arc<dyn TokenCounter>;
        Arc::new(Self { http, counter })
    }
}

#[async_trait]
impl Model for Counted {
    fn info(&self) -> &ModelInfo {
        self.http.info()
    }

    fn encode(&self, prompt: &Prompt, params: &Params) -> Result<EncodedRequest, EncodeError> {
        self.http.encode(prompt, params)
    }

    fn counter(&self) -> Option<Arc<dyn TokenCounter>> {
        Some(Arc::clone(&self.counter))
    }

    async fn send(
        &self,
        request: &EncodedRequest,
        call: &CallOrigin,
        exchange: Exchange<'_>,
    ) -> Result<RawResponse, ModelError> {
        self.http.send(request, call, exchange).await
    }
}

#[tokio::test]
async fn a_request_whose_texts_were_counted_again_and_again_is_still_shortened() {
    let process = House::new().process("generate");
    let document = long(&process, Mode::Buffer).await;
    let budget = TokenBudget::new(WINDOW.into(), 4_096, Some(OUTPUT.into())).budget;
    let counter = Denser::new(None, vec![budget - 10, budget + 5]);
    let model = Counted::by(&counter);
    let prepared = ask(&model, document, Some(OUTPUT), None).prepare(&process.runtime, &WHO).await.unwrap();
    assert_eq!(counter.known.lock().unwrap().len(), 3, "the control: as often as texts are counted anew");
    assert_eq!(prepared.manifest.tokens, budget - 10);
    // One that never fits is too long at last.
    let counter = Denser::new(None, vec![budget + 5; 9]);
    let model = Counted::by(&counter);
    let refused = ask(&model, document, Some(OUTPUT), None).prepare(&process.runtime, &WHO).await;
    let refused = refused.err().unwrap();
    assert!(matches!(refused, AgentError::Context(ContextError::TooLong { .. })), "{refused:?}");
}

/// By the clock of the runtime, which goes on while nothing comes.
#[tokio::test(start_paused = true)]
async fn a_slow_server_is_waited_for_once_for_a_request() {
    let process = House::new().process("generate");
    let document = long(&process, Mode::Buffer).await;
    let counter = Denser::new(Some(Duration::from_secs(4)), Vec::new());
    let model = Counted::by(&counter);
    let ask = ask(&model, document, Some(OUTPUT), None);
    let began = Instant::now();
    let prepared = ask.prepare(&process.runtime, &WHO).await.unwrap();
    assert_eq!(began.elapsed(), Duration::ZERO, "where nothing is sent no server is asked");
    let estimated = prepared.manifest.tokens;
    let prepared = ask.prepare_counted(&process.runtime, &call()).await.unwrap();
    let waited = began.elapsed();
    assert!((Duration::from_secs(8)..=Duration::from_secs(11)).contains(&waited), "{waited:?}");
    assert!(prepared.manifest.tokens > 0 && estimated > 0);
}

/// By the clock of the runtime, which goes on while nothing comes.
#[tokio::test(start_paused = true)]
async fn a_server_that_was_late_is_asked_no_more_for_a_request_and_one_that_was_silent_by_no_process() {
    for (end, next) in [(CountEnd::OutOfTime, LATE), (CountEnd::Silent, Duration::ZERO)] {
        let house = House::new();
        let process = house.process("generate");
        let document = long(&process, Mode::Buffer).await;
        let model = Counted::by(&Arc::new(Late(end, true)));
        let began = Instant::now();
        let ask = ask(&model, document, Some(OUTPUT), None);
        ask.prepare_counted(&process.runtime, &call()).await.unwrap();
        assert_eq!(began.elapsed(), LATE, "{end:?}: one question");
        let began = Instant::now();
        let process = house.process("generate");
        ask.prepare_counted(&process.runtime, &call()).await.unwrap();
        assert_eq!(began.elapsed(), next, "{end:?}");
    }
}

/// By the clock of the runtime, which goes on while nothing comes.
#[tokio::test(start_paused = true)]
async fn a_request_is_cancelled_while_its_server_counts_and_nothing_is_asked() {
    let process = House::new().process("generate");
    let document = long(&process, Mode::Buffer).await;
    let model = Counted::by(&Arc::new(Late(CountEnd::Silent, true)));
    let ask = ask(&model, document, Some(OUTPUT), None);
    let (stop, cancel) = Cancel::new();
    let call = Call { cancel, ..call() };
    let began = Instant::now();
    let stops = async {
        tokio::time::sleep(LATE / 5).await;
        stop.cancel();
    };
    let (sent, ()) = tokio::join!(ask.send(&process.runtime, &call), stops);
    let error = sent.err().unwrap();
    assert!(matches!(error, AgentError::Model { code: "cancelled", elsewhere: false, .. }), "{error:?}");
    assert_eq!(began.elapsed(), LATE / 5);
    let prepared = ask.prepare_counted(&process.runtime, &call).await;
    assert!(matches!(prepared, Err(AgentError::Model { code: "cancelled", .. })));
    assert_eq!(began.elapsed(), LATE / 5);
}

/// By the clock of the runtime, which goes on while nothing comes.
#[tokio::test(start_paused = true)]
async fn a_server_that_was_given_up_is_neither_waited_for_nor_said_to_count() {
    for (may_count, times) in [(true, 1), (false, 0)] {
        let process = House::new().process("generate");
        let document = long(&process, Mode::Buffer).await;
        let model = Counted::by(&Arc::new(Late(CountEnd::OutOfTime, may_count)));
        let told = Arc::<Told>::default();
        let call = Call::owner(Arc::clone(&told) as Arc<dyn EventSink>);
        let began = Instant::now();
        ask(&model, document, Some(OUTPUT), None).prepare_counted(&process.runtime, &call).await.unwrap();
        assert_eq!((told.0.load(Ordering::SeqCst), began.elapsed()), (times, LATE * times as u32));
    }
}

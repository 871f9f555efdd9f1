//! Elicitation: what a server asks of a person while a tool of it is called.

use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::future::BoxFuture;
use rmcp::ErrorData;
use rmcp::model::{ElicitRequestParams, ElicitResult, ElicitationAction};
use serde_json::{Map, Value};
use tokio::sync::watch;
use tokio::time::Instant;

/// Questions of one call at most.
const MOST_QUESTIONS: u32 = 10;

/// What a server asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Elicitation {
    pub message: String,
    pub kind: ElicitationKind,
}

/// What a person is to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ElicitationKind {
    /// To fill in what this JSON Schema describes.
    Form(Value),
    /// To go to an address.
    Visit(String),
}

/// What a person answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ElicitationReply {
    Accepted(Map<String, Value>),
    Declined,
    /// Nobody answered.
    Cancelled,
    /// Refusal to ask, with the reason.
    Refused(String),
}

/// Asks a person.
pub type Elicit = dyn Fn(Elicitation) -> BoxFuture<'static, ElicitationReply> + Send + Sync;

/// The calls of a server that run, the newest last. Clones share them.
#[derive(Clone, Default)]
pub(crate) struct RunningCalls(Arc<Mutex<Vec<Arc<RunningCall>>>>);

/// A call that runs. Where it ends nobody is asked any more.
pub(crate) struct RunningCall {
    /// Who is asked; none where nobody is.
    elicit: Option<Arc<Elicit>>,
    waits: Mutex<PersonWaits>,
    has_ended: watch::Sender<bool>,
}

#[derive(Default)]
struct PersonWaits {
    asked: u32,
    open: u32,
    /// When a person last answered.
    answered: Option<Instant>,
}

/// A call among those that run.
pub(crate) struct ListedCall {
    all: RunningCalls,
    call: Arc<RunningCall>,
}

/// A question that stands.
struct OpenQuestion<'a>(&'a RunningCall);

impl RunningCalls {
    pub(crate) fn begin(&self, elicit: Option<Arc<Elicit>>) -> ListedCall {
        let call =
            Arc::new(RunningCall { elicit, waits: Mutex::default(), has_ended: watch::Sender::new(false) });
        self.lock().push(Arc::clone(&call));
        ListedCall { all: self.clone(), call }
    }

    /// Asks the person of the call that was begun last: a server does not say for which one it asks.
    ///
    /// # Errors
    /// What is asked cannot be.
    pub(crate) async fn elicit(&self, params: ElicitRequestParams) -> Result<ElicitResult, ErrorData> {
        let asked = Elicitation::of(params)?;
        let is_form = matches!(asked.kind, ElicitationKind::Form(_));
        let call = self.lock().iter().rev().find(|call| call.elicit.is_some()).cloned();
        let reply = match call {
            Some(call) => call.ask(asked).await,
            None => ElicitationReply::Cancelled,
        };
        match reply {
            ElicitationReply::Accepted(values) => {
                let accepted = ElicitResult::new(ElicitationAction::Accept);
                Ok(if is_form { accepted.with_content(Value::Object(values)) } else { accepted })
            }
            ElicitationReply::Declined => Ok(ElicitResult::new(ElicitationAction::Decline)),
            ElicitationReply::Cancelled => Ok(ElicitResult::new(ElicitationAction::Cancel)),
            ElicitationReply::Refused(why) => Err(ErrorData::invalid_params(why, None)),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Arc<RunningCall>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Elicitation {
    fn of(params: ElicitRequestParams) -> Result<Self, ErrorData> {
        let unknown = |why: String| ErrorData::invalid_params(why, None);
        match params {
            ElicitRequestParams::FormElicitationParams { message, requested_schema, .. } => {
                let schema =
                    serde_json::to_value(requested_schema).map_err(|error| unknown(error.to_string()))?;
                Ok(Self { message, kind: ElicitationKind::Form(schema) })
            }
            ElicitRequestParams::UrlElicitationParams { message, url, .. } => {
                Ok(Self { message, kind: ElicitationKind::Visit(url) })
            }
            _ => Err(unknown("this client knows forms and addresses alone".to_owned())),
        }
    }
}

impl RunningCall {
    /// Until when it is waited for the answer, as people were waited for meanwhile: none of that time is the server's.
    /// None where nobody was.
    pub(crate) fn extended(&self, within: Duration) -> Option<Instant> {
        let (waits, now) = (self.waits(), Instant::now());
        if waits.open > 0 {
            return Some(now + within);
        }
        waits.answered.map(|answered| answered + within).filter(|until| *until > now)
    }

    async fn ask(&self, asked: Elicitation) -> ElicitationReply {
        let Some(elicit) = &self.elicit else { return ElicitationReply::Cancelled };
        let mut has_ended = self.has_ended.subscribe();
        let question = {
            let mut waits = self.waits();
            waits.asked += 1;
            if waits.asked > MOST_QUESTIONS {
                return ElicitationReply::Refused(format!("a call asks {MOST_QUESTIONS} questions at most"));
            }
            waits.open += 1;
            OpenQuestion(self)
        };
        let reply = tokio::select! {
            biased;
            _ = has_ended.wait_for(|ended| *ended) => ElicitationReply::Cancelled,
            reply = pin!(elicit(asked)) => reply,
        };
        drop(question);
        reply
    }

    fn waits(&self) -> MutexGuard<'_, PersonWaits> {
        self.waits.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for OpenQuestion<'_> {
    fn drop(&mut self) {
        let mut waits = self.0.waits();
        waits.open -= 1;
        waits.answered = Some(Instant::now());
    }
}

impl ListedCall {
    /// As of [`RunningCall::extended`].
    pub(crate) fn extended(&self, within: Duration) -> Option<Instant> {
        self.call.extended(within)
    }
}

impl Drop for ListedCall {
    fn drop(&mut self) {
        self.call.has_ended.send_replace(true);
        self.all.lock().retain(|other| !Arc::ptr_eq(other, &self.call));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tokio::sync::Notify;

    use super::*;

    fn asked(message: &str) -> ElicitRequestParams {
        let schema = json!({"type": "object", "properties": {}});
        serde_json::from_value(json!({"mode": "form", "message": message, "requestedSchema": schema}))
            .unwrap()
    }

    fn answering(reply: ElicitationReply) -> Arc<Elicit> {
        Arc::new(move |_| {
            let reply = reply.clone();
            Box::pin(async move { reply })
        })
    }

    #[tokio::test]
    async fn the_person_of_the_newest_call_is_asked_and_nobody_without_one() {
        let calls = RunningCalls::default();
        let action = async |calls: &RunningCalls| calls.elicit(asked("?")).await.unwrap().action;
        assert_eq!(action(&calls).await, ElicitationAction::Cancel);
        let first = calls.begin(Some(answering(ElicitationReply::Declined)));
        let second = calls.begin(Some(answering(ElicitationReply::Accepted(Map::new()))));
        let _unattended = calls.begin(None);
        assert_eq!(action(&calls).await, ElicitationAction::Accept);
        drop(second);
        assert_eq!(action(&calls).await, ElicitationAction::Decline);
        drop(first);
        assert_eq!(action(&calls).await, ElicitationAction::Cancel);
    }

    #[tokio::test]
    async fn a_call_asks_so_often_and_no_more() {
        let calls = RunningCalls::default();
        let _call = calls.begin(Some(answering(ElicitationReply::Declined)));
        for _ in 0..MOST_QUESTIONS {
            assert!(calls.elicit(asked("again")).await.is_ok());
        }
        assert!(calls.elicit(asked("again")).await.unwrap_err().message.contains("10 questions"));
    }

    #[tokio::test(start_paused = true)]
    async fn time_in_which_a_person_is_asked_is_not_the_servers_and_ends_with_the_call() {
        let (calls, is_asked) = (RunningCalls::default(), Arc::new(Notify::new()));
        let asks = Arc::clone(&is_asked);
        let call = calls.begin(Some(Arc::new(move |_| {
            asks.notify_one();
            Box::pin(std::future::pending())
        })));
        let within = Duration::from_secs(5);
        assert_eq!(call.extended(within), None);
        let question = tokio::spawn({
            let calls = calls.clone();
            async move { calls.elicit(asked("?")).await.unwrap().action }
        });
        is_asked.notified().await;
        tokio::time::advance(within * 3).await;
        assert!(call.extended(within).is_some(), "a question stands");
        let running = Arc::clone(&call.call);
        drop(call);
        assert_eq!(question.await.unwrap(), ElicitationAction::Cancel);
        assert!(running.extended(within).is_some(), "it was answered now");
        tokio::time::advance(within).await;
        assert_eq!(running.extended(within), None);
    }
}

//! Questions of a server to the person of the call that it runs, and the time that they take.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use context::elicitation::{Elicit, Elicitation, ElicitationMode, ElicitationReply, QuestionEnd};
use model::{Cancel, CancelHandle};
use rmcp::ErrorData;
use rmcp::model::{ElicitRequestParams, ElicitResult, ElicitationAction};
use serde_json::Value;
use tokio::sync::Notify;
use tokio::time::Instant;

/// Questions of one call at most.
const MOST_QUESTIONS: u32 = 10;

/// The calls of a server that run, the newest last. Clones share them.
#[derive(Clone, Default)]
pub(crate) struct RunningCalls(Arc<Mutex<Vec<Arc<RunningCall>>>>);

/// Call that runs. Where it ends nobody is asked any more.
struct RunningCall {
    /// Who is asked; none where nobody is.
    person: Option<Arc<dyn Elicit>>,
    questions: Mutex<QuestionState>,
    /// Told whenever a question stands no longer.
    closed: Notify,
    end: Cancel,
}

#[derive(Default)]
struct QuestionState {
    asked: u32,
    open: u32,
    /// When a person last answered.
    answered: Option<Instant>,
}

/// Held while a call runs; its questions end when it is dropped.
pub(crate) struct CallGuard {
    all: RunningCalls,
    call: Arc<RunningCall>,
    end: CancelHandle,
}

/// Held while a question stands.
struct QuestionGuard<'a>(&'a RunningCall);

impl RunningCalls {
    pub(crate) fn begin(&self, person: Option<Arc<dyn Elicit>>) -> CallGuard {
        let (handle, end) = Cancel::new();
        let call = Arc::new(RunningCall { person, questions: Mutex::default(), closed: Notify::new(), end });
        self.lock().push(Arc::clone(&call));
        CallGuard { all: self.clone(), call, end: handle }
    }

    /// Asks the person of the call that was begun last, and says which others run: a server does not say for which one it asks.
    ///
    /// # Errors
    /// What is asked cannot be.
    pub(crate) async fn elicit(&self, params: Value, taken_back: Cancel) -> Result<ElicitResult, ErrorData> {
        let (message, mode) = elicitation(params)?;
        let is_form = matches!(mode, ElicitationMode::Form(_));
        let (call, callers) = {
            let calls = self.lock();
            let call = calls.iter().rev().find(|call| call.person.is_some()).cloned();
            (call, calls.iter().filter_map(|call| Some(call.person.as_ref()?.caller())).collect())
        };
        let asked = Elicitation { message, mode, callers };
        let reply = match call {
            Some(call) => call.ask(asked, taken_back).await,
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

fn elicitation(params: Value) -> Result<(String, ElicitationMode), ErrorData> {
    let schema = params["requestedSchema"].clone();
    match serde_json::from_value(params) {
        Ok(ElicitRequestParams::FormElicitationParams { message, .. }) => {
            Ok((message, ElicitationMode::Form(schema)))
        }
        Ok(ElicitRequestParams::UrlElicitationParams { message, url, .. }) => {
            Ok((message, ElicitationMode::Url(url)))
        }
        Ok(_) => Err(ErrorData::invalid_params("this client knows forms and addresses alone", None)),
        Err(_) => Err(ErrorData::invalid_params("its parameters are those of no elicitation", None)),
    }
}

impl RunningCall {
    async fn ask(&self, asked: Elicitation, taken_back: Cancel) -> ElicitationReply {
        let Some(person) = &self.person else { return ElicitationReply::Cancelled };
        let question = {
            let mut questions = self.questions();
            questions.asked += 1;
            if questions.asked > MOST_QUESTIONS {
                return ElicitationReply::Refused(format!("a call asks {MOST_QUESTIONS} questions at most"));
            }
            questions.open += 1;
            QuestionGuard(self)
        };
        let end = QuestionEnd { call: self.end.clone(), question: taken_back };
        let reply = person.elicit(asked, end).await;
        drop(question);
        reply
    }

    fn questions(&self) -> MutexGuard<'_, QuestionState> {
        self.questions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for QuestionGuard<'_> {
    fn drop(&mut self) {
        let mut questions = self.0.questions();
        questions.open -= 1;
        questions.answered = Some(Instant::now());
        self.0.closed.notify_one();
    }
}

impl CallGuard {
    /// Ends the questions of the call, and waits until none of them stands.
    pub(crate) async fn end(self) {
        self.end.cancel();
        while self.call.questions().open > 0 {
            self.call.closed.notified().await;
        }
    }

    /// Until when the answer is waited for, where people were asked meanwhile: none of that time is the server's. None
    /// where nobody was, or that is over.
    pub(crate) fn extended(&self, within: Duration) -> Option<Instant> {
        self.call.extended(within)
    }
}

impl RunningCall {
    fn extended(&self, within: Duration) -> Option<Instant> {
        let (questions, now) = (self.questions(), Instant::now());
        if questions.open > 0 {
            return Some(now + within);
        }
        questions.answered.map(|answered| answered + within).filter(|until| *until > now)
    }
}

impl Drop for CallGuard {
    fn drop(&mut self) {
        self.end.cancel();
        self.all.lock().retain(|other| !Arc::ptr_eq(other, &self.call));
    }
}

#[cfg(test)]
mod tests {
    use std::pin::Pin;

    use context::elicitation::ElicitationCaller;
    use serde_json::{Map, json};

    use super::*;

    fn asked(message: &str) -> Value {
        let schema = json!({"type": "object", "properties": {}});
        json!({"mode": "form", "message": message, "requestedSchema": schema})
    }

    /// A person who answers so whatever is asked.
    #[derive(Debug)]
    struct Answering(ElicitationReply);

    fn caller() -> ElicitationCaller {
        ElicitationCaller { label: None, tool: "notes:ask".to_owned() }
    }

    impl Elicit for Answering {
        fn caller(&self) -> ElicitationCaller {
            caller()
        }

        fn elicit(
            &self,
            _: Elicitation,
            _: QuestionEnd,
        ) -> Pin<Box<dyn Future<Output = ElicitationReply> + Send + '_>> {
            Box::pin(async { self.0.clone() })
        }
    }

    fn answering(reply: ElicitationReply) -> Arc<dyn Elicit> {
        Arc::new(Answering(reply))
    }

    /// A person who is asked, and does not answer.
    #[derive(Debug)]
    struct Silent(Arc<Notify>);

    impl Elicit for Silent {
        fn caller(&self) -> ElicitationCaller {
            caller()
        }

        fn elicit(
            &self,
            _: Elicitation,
            mut end: QuestionEnd,
        ) -> Pin<Box<dyn Future<Output = ElicitationReply> + Send + '_>> {
            self.0.notify_one();
            Box::pin(async move {
                tokio::select! {
                    () = end.call.cancelled() => {}
                    () = end.question.cancelled() => {}
                }
                ElicitationReply::Cancelled
            })
        }
    }

    #[tokio::test]
    async fn the_person_of_the_newest_call_is_asked_and_nobody_without_one() {
        let calls = RunningCalls::default();
        let action =
            async |calls: &RunningCalls| calls.elicit(asked("?"), Cancel::never()).await.unwrap().action;
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
            assert!(calls.elicit(asked("again"), Cancel::never()).await.is_ok());
        }
        let refused = calls.elicit(asked("again"), Cancel::never()).await.unwrap_err();
        assert!(refused.message.contains("10 questions"));
    }

    #[tokio::test(start_paused = true)]
    async fn time_in_which_a_person_is_asked_is_not_the_servers_and_ends_with_the_call() {
        let (calls, is_asked) = (RunningCalls::default(), Arc::new(Notify::new()));
        let call = calls.begin(Some(Arc::new(Silent(Arc::clone(&is_asked)))));
        let within = Duration::from_secs(5);
        assert_eq!(call.extended(within), None);
        let question = tokio::spawn({
            let calls = calls.clone();
            async move { calls.elicit(asked("?"), Cancel::never()).await.unwrap().action }
        });
        is_asked.notified().await;
        tokio::time::advance(within * 3).await;
        assert!(call.extended(within).is_some(), "a question stands");
        let running = Arc::clone(&call.call);
        call.end().await;
        assert_eq!(running.questions().open, 0);
        assert_eq!(question.await.unwrap(), ElicitationAction::Cancel);
        assert!(running.extended(within).is_some(), "it was answered now");
        tokio::time::advance(within).await;
        assert_eq!(running.extended(within), None);
    }
}

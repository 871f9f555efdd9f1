//! Trying again, with patience.
//!
//! Retries happen only while nothing of an answer was used: nothing but its start and its counts of tokens, which
//! some servers send first, has reached the listener. The wait doubles each time and is jittered, so that clients
//! cut off together do not come back together; what a server asks for is honoured when it is bearable. What may not be
//! sent any more after a wait ([`crate::SendPermit`]) is not repeated.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use crate::capture::RawResponse;
use crate::error::ModelError;
use crate::receive::Io;

/// How often and how patiently a request is repeated.
#[derive(Clone)]
pub struct RetryPolicy {
    pub most: u32,
    /// The wait before the first repetition; it doubles each time.
    pub base: Duration,
    /// The longest wait a server may ask for; beyond it the error is given at once.
    pub longest: Duration,
    /// Gives a share from 0 to 1 of the jitter.
    pub jitter: Arc<dyn Fn() -> f64 + Send + Sync>,
}

impl RetryPolicy {
    /// Two repetitions after about half a second and a second.
    pub fn patient() -> Self {
        Self {
            most: 2,
            base: Duration::from_millis(500),
            longest: Duration::from_secs(60),
            jitter: Arc::new(random_share),
        }
    }

    /// Two repetitions with hardly a wait, for servers in this process.
    pub fn quick() -> Self {
        Self { base: Duration::from_millis(1), ..Self::patient() }
    }

    pub fn never() -> Self {
        Self { most: 0, ..Self::patient() }
    }

    /// The wait before repetition `number` (from 1): between half and all of the doubled base, or
    /// what the server asks for if that is longer. `None` when it asks for too much.
    pub fn wait(&self, number: u32, asked: Option<Duration>) -> Option<Duration> {
        let full = self.base.saturating_mul(1 << number.saturating_sub(1).min(16));
        let jittered = full.mul_f64(0.5 + (self.jitter)().clamp(0.0, 1.0) / 2.0);
        let wait = asked.map_or(jittered, |asked| asked.max(jittered));
        (wait <= self.longest).then_some(wait)
    }
}

impl fmt::Debug for RetryPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RetryPolicy")
            .field("most", &self.most)
            .field("base", &self.base)
            .field("longest", &self.longest)
            .finish_non_exhaustive()
    }
}

fn random_share() -> f64 {
    let number = getrandom::u32().unwrap_or(u32::MAX / 2);
    f64::from(number) / f64::from(u32::MAX)
}

/// Something that can be sent more than once.
#[async_trait]
pub(crate) trait Attempt: Send + Sync {
    /// One attempt, counted from 1.
    async fn attempt(&self, number: u32, io: &mut Io<'_>) -> Result<RawResponse, ModelError>;

    /// Whether another attempt is possible at all.
    fn can_repeat(&self) -> bool {
        true
    }
}

/// Attempts until one succeeds, fails for good, or patience ends.
pub(crate) async fn send(
    policy: &RetryPolicy,
    request: &dyn Attempt,
    io: &mut Io<'_>,
) -> Result<RawResponse, ModelError> {
    let (mut number, mut refused) = (1, true);
    loop {
        let error = match request.attempt(number, io).await {
            Ok(response) => return Ok(response),
            Err(error) => error,
        };
        if number > policy.most || !error.is_transient() || io.used || !request.can_repeat() {
            return Err(error);
        }
        refused &= matches!(error, ModelError::Connect { .. } | ModelError::Server { status: 400.., .. });
        let Some(wait) = policy.wait(number, error.retry_after()) else { return Err(error) };
        tracing::info!(code = error.code(), number, wait_ms = wait.as_millis(), "the request is repeated");
        tokio::select! {
            biased;
            () = io.cancel.cancelled() => {
                let response = error.response().cloned().map(Box::new);
                return Err(ModelError::Cancelled { response, refused });
            }
            () = tokio::time::sleep(wait) => {}
        }
        if let Some(permit) = io.permit
            && !permit.is_granted().await
        {
            return Err(ModelError::Withdrawn { response: error.response().cloned().map(Box::new) });
        }
        if let Err(cause) = io.spool.restart() {
            return Err(match error.response().cloned() {
                Some(response) => ModelError::Spool { cause, response: Box::new(response) },
                None => error,
            });
        }
        number += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(share: f64) -> RetryPolicy {
        RetryPolicy { jitter: Arc::new(move || share), ..RetryPolicy::patient() }
    }

    #[test]
    fn the_wait_doubles_and_is_jittered_between_half_and_all() {
        assert_eq!(policy(0.0).wait(1, None), Some(Duration::from_millis(250)));
        assert_eq!(policy(1.0).wait(1, None), Some(Duration::from_millis(500)));
        assert_eq!(policy(1.0).wait(2, None), Some(Duration::from_millis(1000)));
    }

    #[test]
    fn a_server_may_ask_for_more_but_not_for_too_much() {
        assert_eq!(policy(1.0).wait(1, Some(Duration::from_secs(7))), Some(Duration::from_secs(7)));
        assert_eq!(policy(1.0).wait(1, Some(Duration::ZERO)), Some(Duration::from_millis(500)));
        assert_eq!(policy(1.0).wait(1, Some(Duration::from_secs(3600))), None);
    }

    #[test]
    fn random_shares_lie_between_nothing_and_all() {
        for _ in 0..64 {
            assert!((0.0..=1.0).contains(&random_share()));
        }
    }
}

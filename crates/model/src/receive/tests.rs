use std::collections::VecDeque;

use super::*;

const HELLO: &str = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hello\"}}]}\n\n";
const DONE: &str =
    "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";

/// A server that sends these pieces, one after each wait, and then the last one for ever.
struct Drip {
    pieces: VecDeque<&'static str>,
    last: &'static str,
    every: Duration,
}

#[async_trait]
impl Wire for Drip {
    async fn next(&mut self) -> Result<Option<Bytes>, String> {
        tokio::time::sleep(self.every).await;
        Ok(Some(Bytes::from_static(self.pieces.pop_front().unwrap_or(self.last).as_bytes())))
    }
}

/// What comes of a server, and after how many seconds by the stopped clock.
async fn received(
    pieces: &[&'static str],
    last: &'static str,
    every: Duration,
    stream: bool,
) -> (Result<RawResponse, ModelError>, f64) {
    let kind: &[u8] = if stream { b"text/event-stream" } else { b"application/json" };
    let headers = KeptHeaders::of([("content-type", kind)]);
    let head = Head { status: 200, headers, stream, retry_after: None };
    let dialect = DialectName::OpenAiChat;
    let sent = Sent { started_at: 0, since: Instant::now(), attempt: 1, dialect, source: SourceKind::Remote };
    let mut wire = Drip { pieces: pieces.iter().copied().collect(), last, every };
    let (mut spool, mut listener) = (Vec::new(), |_| {});
    let exchange =
        Exchange { spool: &mut spool, listener: &mut listener, cancel: Cancel::never(), permit: None };
    let result = receive(head, &mut wire, sent, Timeouts::default(), &mut Io::new(exchange)).await;
    (result, sent.since.elapsed().as_secs_f64())
}

const TEN: Duration = Duration::from_secs(10);

#[tokio::test(start_paused = true)]
async fn signs_of_life_are_no_progress() {
    for last in [": ping\n\n", "d", "data: {\"choices\":[]}\n\n"] {
        let (result, seconds) = received(&[], last, TEN, true).await;
        assert_eq!(result.unwrap_err().code(), "idle_timeout", "{last:?}");
        assert!((240.0..=240.1).contains(&seconds), "{last:?}: {seconds}");
        let (result, seconds) = received(&[HELLO], last, TEN, true).await;
        let error = result.unwrap_err();
        assert_eq!(error.code(), "idle_timeout", "{last:?}");
        assert_eq!(error.response().unwrap().parsed.choices[0].text(), "Hello");
        assert!((310.0..=310.1).contains(&seconds), "{last:?}: {seconds}");
    }
    let (result, seconds) = received(&[], " ", TEN, false).await;
    assert_eq!(result.unwrap_err().code(), "idle_timeout");
    assert!((310.0..=310.1).contains(&seconds), "{seconds}");
}

/// What llama.cpp sends while it reads a prompt.
fn progress(processed: u32, total: u32) -> &'static str {
    let at = format!(r#""prompt_progress":{{"total":{total},"processed":{processed},"cache":0}}"#);
    format!("data: {{\"choices\":[],{at}}}\n\n").leak()
}

#[tokio::test(start_paused = true)]
async fn a_prompt_that_is_read_no_further_is_not_waited_for() {
    let turning = [progress(5, 90), progress(10, 90), progress(0, 90), progress(9, 90)].repeat(99);
    let too_much = (91..999).map(|done| progress(done, 90)).collect::<Vec<_>>();
    for (pieces, last, end) in [
        (&[][..], progress(10, 90), 310.0),
        (&[progress(5, 90)], progress(10, 90), 320.0),
        (&turning, progress(10, 90), 320.0),
        (&too_much, progress(91, 90), 240.0),
    ] {
        let (result, seconds) = received(pieces, last, TEN, true).await;
        assert_eq!(result.unwrap_err().code(), "idle_timeout", "{end}");
        assert!((end..=end + 0.1).contains(&seconds), "{end}: {seconds}");
    }
    let mut pieces: Vec<_> = (0..=90).map(|done| progress(done, 90)).collect();
    pieces.extend([HELLO, DONE]);
    let (result, seconds) = received(&pieces, ": ping\n\n", Duration::from_secs(50), true).await;
    assert_eq!(result.unwrap().parsed.choices[0].text(), "Hello");
    assert!(seconds > 4_500.0, "the control: {seconds}");
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_goes_on_slowly_is_waited_for() {
    let mut pieces = vec![HELLO; 100];
    pieces.push(DONE);
    let (result, seconds) = received(&pieces, ": ping\n\n", Duration::from_secs(50), true).await;
    assert_eq!(result.unwrap().parsed.choices[0].text(), "Hello".repeat(100));
    assert!(seconds > 5_000.0, "{seconds}");
}

#[tokio::test(start_paused = true)]
async fn what_follows_a_complete_answer_is_not_waited_for_long() {
    let (result, seconds) = received(&[HELLO, DONE], ": ping\n\n", Duration::from_millis(100), true).await;
    assert!(result.is_ok() && seconds < 0.6, "{seconds}");
}

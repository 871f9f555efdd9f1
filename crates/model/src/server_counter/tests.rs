//! Against a server that answers as each test says.

use std::sync::{Arc, Mutex};

use axum::http::{StatusCode, Uri};
use serde_json::{Value, json};

use super::*;
use crate::prompt::PartId;
use crate::{Connection, PartRange};

/// A counter, and the paths that its server was asked at.
struct Asking {
    counter: ServerCounter,
    paths: Arc<Mutex<Vec<String>>>,
    serving: tokio::task::JoinHandle<()>,
}

impl Asking {
    /// One of a server that answers with what `answer` makes of path and body, or never.
    async fn new(
        answer: impl Fn(&str, &Value) -> Option<(u16, Value)> + Clone + Send + Sync + 'static,
    ) -> Self {
        let paths = Arc::<Mutex<Vec<String>>>::default();
        let all = Arc::clone(&paths);
        let answer = move |uri: Uri, body: Bytes| {
            all.lock().unwrap().push(uri.path().to_owned());
            let answered = answer(uri.path(), &serde_json::from_slice(&body).unwrap());
            async move {
                match answered {
                    Some((status, said)) => (StatusCode::from_u16(status).unwrap(), said.to_string()),
                    None => std::future::pending().await,
                }
            }
        };
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let routes = axum::Router::new().fallback(answer);
        let serving = tokio::spawn(async move { axum::serve(listener, routes).await.unwrap() });
        let client =
            Client::new(DialectName::OpenAiChat, Connection::new(format!("http://{address}/v1"))).unwrap();
        Self { counter: ServerCounter::new(client, "m"), paths, serving }
    }

    fn asked(&self, path: &str) -> usize {
        self.paths.lock().unwrap().iter().filter(|asked| *asked == path).count()
    }
}

impl Drop for Asking {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

fn words(body: &Value) -> Option<(u16, Value)> {
    let words = body["content"].as_str().unwrap().split_whitespace().count();
    Some((200, json!({"tokens": vec![7; words]})))
}

fn request(dialect: DialectName, body: &Value, ranges: Vec<PartRange>) -> EncodedRequest {
    EncodedRequest::new(dialect, "p", Bytes::from(body.to_string()), ranges, false).unwrap()
}

fn raw(text: &str) -> EncodedRequest {
    request(DialectName::OpenAiCompletions, &json!({"prompt": text}), Vec::new())
}

fn chat() -> EncodedRequest {
    request(DialectName::OpenAiChat, &json!({"messages": []}), Vec::new())
}

/// What is known of three texts after a server answered the questions with these statuses, and how often it was
/// asked in all, the texts being learned `times` times.
async fn learned(statuses: &'static [u16], times: usize) -> ([bool; 3], usize) {
    let left = Arc::new(Mutex::new(statuses.iter()));
    let status = move || left.lock().unwrap().next().copied().unwrap_or(200);
    let asking = Asking::new(move |_, _| Some((status(), json!({"tokens": [1]})))).await;
    let texts = ["one", "two", "three"].map(str::to_owned);
    for _ in 0..times {
        asking.counter.learn(&texts).await;
    }
    (texts.map(|text| asking.counter.known(&text).is_some()), asking.asked("/tokenize"))
}

#[tokio::test]
async fn a_text_that_is_not_taken_is_passed_over_and_a_server_that_refuses_is_left_alone() {
    assert_eq!(learned(&[400, 200, 200], 1).await, ([false, true, true], 3));
    assert_eq!(learned(&[413, 422, 200], 1).await, ([false, false, true], 3));
    // Asked again the next time.
    assert_eq!(learned(&[400], 2).await, ([true; 3], 4));
    assert_eq!(learned(&[400; 9], 3).await, ([false; 3], 3), "three in a row");
    for refused in [&[401], &[403], &[404], &[501]] {
        assert_eq!(learned(refused, 2).await, ([false; 3], 1), "{refused:?}");
    }
    // One that fails is asked once a time.
    assert_eq!(learned(&[503, 503], 3).await, ([true; 3], 5));
    assert_eq!(learned(&[503; 9], 5).await, ([false; 3], 3));
}

#[tokio::test]
async fn a_count_too_small_for_its_text_is_not_believed() {
    let line = format!("{}\n", "rain ".repeat(480));
    let text = line.repeat(48);
    assert!(chunks(&text).all(|chunk| chunk == line));
    for (of_a_line, believed) in [(1, false), (36, false), (37, true), (480, true)] {
        for lists in [true, false] {
            let asking = Asking::new(move |_, body| {
                let tokens = if body["content"].as_str()?.len() > 9 { of_a_line } else { 1 };
                Some((200, if lists { json!({"tokens": vec![7; tokens]}) } else { json!({"count": tokens}) }))
            })
            .await;
            let counter = &asking.counter;
            counter.learn(&["so".to_owned(), text.clone()]).await;
            assert_eq!(counter.known("so"), Some(1));
            let tokens = believed.then_some(48 * of_a_line as u64);
            assert_eq!((counter.known(&text), counter.gives_no_counts()), (tokens, !believed), "{of_a_line}");
            counter.learn_request(&raw(&text)).await;
            assert_eq!(counter.request(&raw(&text)).is_some(), believed, "{of_a_line}");
            // All lines are one chunk; what is not believed is asked for three times.
            let lines = if believed { 1 } else { 3 };
            assert_eq!(asking.asked("/tokenize"), 1 + lines + usize::from(believed), "{of_a_line}");
        }
    }
}

#[tokio::test]
async fn what_the_vocabulary_puts_around_a_request_counts_and_is_asked_for_once() {
    for (status, tokens, special, questions) in [
        (200, 1, 1, 1),
        (200, 4, 4, 1),
        // No vocabulary does.
        (200, 5, 0, 1),
        (400, 1, 0, 1),
        (404, 1, 0, 1),
        (503, 1, 0, 3),
    ] {
        let asking = Asking::new(move |_, body| match body["content"] == "" {
            true => Some((status, json!({"tokens": vec![1; tokens]}))),
            false => words(body),
        })
        .await;
        let counter = &asking.counter;
        counter.learn(&["so".to_owned()]).await;
        for n in 1..=5 {
            let request = raw(&format!("{} one two", "word ".repeat(n)));
            let before = asking.asked("/tokenize");
            counter.learn_request(&request).await;
            let of_special = usize::from(n <= questions);
            assert_eq!(asking.asked("/tokenize") - before, 1 + of_special, "{status} {tokens}, {n}");
            assert_eq!(counter.request(&request), Some(n as u64 + 2 + special), "{status} {tokens}, {n}");
        }
    }
}

#[tokio::test]
async fn a_server_whose_templates_fail_is_not_asked_for_them_again() {
    // Statuses of the template, and how often it is asked for in seven requests.
    for (statuses, questions) in
        [([503; 7], 3), ([400; 7], 3), ([404; 7], 1), ([501; 7], 1), ([503, 503, 200, 503, 503, 503, 200], 6)]
    {
        let left = Arc::new(Mutex::new(statuses.into_iter()));
        let asking = Asking::new(move |path, body| match path {
            "/apply-template" => Some((left.lock().unwrap().next()?, json!({"prompt": "of two"}))),
            _ => words(body),
        })
        .await;
        asking.counter.learn(&["so".to_owned()]).await;
        for n in 0..7 {
            let body = json!({"messages": [], "seed": n});
            let request = request(DialectName::OpenAiChat, &body, Vec::new());
            asking.counter.learn_request(&request).await;
            let is_counted = n < questions && statuses[n] == 200;
            assert_eq!(asking.counter.request(&request), is_counted.then_some(2), "{statuses:?}, {n}");
        }
        assert_eq!(asking.asked("/apply-template"), questions, "{statuses:?}");
    }
}

#[tokio::test]
async fn a_template_of_no_plausible_length_is_not_counted_nor_asked_for_again() {
    let body = json!({"messages": [{"role": "user", "content": "one \\ two\n"}]});
    let text = body.to_string();
    let start = text.find("one").unwrap();
    let said = PartRange { part: PartId(0), bytes: start..start + 12, kind: PartKind::User };
    let request = request(DialectName::OpenAiChat, &body, vec![said]);
    assert_eq!(request.plain_text(&request.ranges()[0]), "one \\ two\n");
    let most = 4 * text.len() + MAX_TEMPLATE_BYTES;
    for (prompt, tokens) in [
        (String::new(), None),
        ("one two".to_owned(), None),
        // Trimmed, as many templates do.
        ("one \\ two".to_owned(), Some(3)),
        ("rain ".repeat(60_000), None),
        ("x".repeat(most + 1), None),
        ("x ".repeat(most)[..most].to_owned(), Some(0)),
    ] {
        let length = prompt.len();
        let answer = Arc::new(prompt);
        let asking = Asking::new(move |path, body| match path {
            "/apply-template" => Some((200, json!({"prompt": *answer}))),
            _ => Some((200, json!({"count": body["content"].as_str()?.split_whitespace().count()}))),
        })
        .await;
        let counter = &asking.counter;
        counter.counted.keep("so", 1);
        counter.special.get_or_init(|| 0);
        counter.learn_request(&request).await;
        let is_counted = counter.request(&request).is_some();
        assert_eq!(is_counted, tokens.is_some(), "{length}");
        assert_eq!(counter.template_failures.is_given_up(), tokens.is_none(), "{length}");
        if length < 100 {
            assert_eq!(counter.request(&request), tokens);
        }
    }
}

#[tokio::test]
async fn a_template_without_what_was_answered_before_is_not_counted() {
    for (kind, is_counted) in
        [(PartKind::Assistant, false), (PartKind::System, false), (PartKind::Schema, true)]
    {
        let asking = Asking::new(|path, body| match path {
            "/apply-template" => Some((200, json!({"prompt": "one and two"}))),
            _ => words(body),
        })
        .await;
        let body = json!({"messages": [{"role": "user", "content": "one"}, {"content": "x".repeat(900)}]});
        let text = body.to_string();
        let range = |from: &str, length, kind| {
            let start = text.find(from).unwrap();
            PartRange { part: PartId(0), bytes: start..start + length, kind }
        };
        let ranges = vec![range("one", 3, PartKind::User), range("xxx", 900, kind)];
        let request = request(DialectName::OpenAiChat, &body, ranges);
        asking.counter.learn(&["so".to_owned()]).await;
        asking.counter.learn_request(&request).await;
        assert_eq!(asking.counter.request(&request).is_some(), is_counted, "{kind:?}");
    }
}

#[tokio::test]
async fn a_request_with_a_picture_stays_estimated() {
    let asking = Asking::new(|path, body| match path {
        "/apply-template" => Some((200, json!({"prompt": "of two"}))),
        _ => words(body),
    })
    .await;
    asking.counter.learn(&["so".to_owned()]).await;
    let with = |kind| {
        let body = json!({"messages": []});
        request(DialectName::OpenAiChat, &body, vec![PartRange { part: PartId(0), bytes: 2..4, kind }])
    };
    asking.counter.learn_request(&with(PartKind::Media)).await;
    assert_eq!(asking.counter.request(&with(PartKind::Media)), None);
    asking.counter.learn_request(&with(PartKind::User)).await;
    assert_eq!(asking.counter.request(&with(PartKind::User)), Some(2), "the control");
    assert_eq!(asking.asked("/apply-template"), 1);
}

/// By the clock of the runtime, which goes on while nothing comes.
#[tokio::test(start_paused = true)]
async fn a_server_that_counts_too_slowly_is_given_up() {
    let asking = Asking::new(|_, body| match body["content"].as_str().unwrap().starts_with("slow") {
        true => None,
        false => words(body),
    })
    .await;
    let learn = async |first: &str, n: u32| {
        asking.counter.learn(&[format!("fast {n}"), format!("{first} {n}")]).await;
        asking.counter.gives_no_counts()
    };
    assert!(!learn("slow", 1).await && !learn("slow", 2).await && !learn("fast too", 3).await, "in a row");
    assert!(!learn("slow", 4).await && !learn("slow", 5).await && learn("slow", 6).await);
    assert_eq!(asking.counter.known("fast 6"), Some(2), "what was counted until then is kept");
    let questions = asking.asked("/tokenize");
    learn("fast too", 7).await;
    assert_eq!(asking.asked("/tokenize"), questions);
}

/// By the clock of the runtime, which goes on while nothing comes.
#[tokio::test(start_paused = true)]
async fn a_count_that_had_too_little_time_says_whether_anything_was_answered() {
    let asking = Asking::new(|_, body| match body["content"].as_str().unwrap().starts_with("slow") {
        true => None,
        false => words(body),
    })
    .await;
    let learn = async |texts: [&str; 2]| asking.counter.learn(&texts.map(str::to_owned)).await;
    assert_eq!(learn(["fast", "fast too"]).await, CountEnd::InTime);
    assert_eq!(learn(["fast still", "slow"]).await, CountEnd::OutOfTime);
    assert_eq!(learn(["fast", "slow"]).await, CountEnd::Silent);
    assert_eq!(asking.counter.learn_request(&raw("slow")).await, CountEnd::OutOfTime);
}

/// By the clock of the runtime, which goes on while nothing comes.
#[tokio::test(start_paused = true)]
async fn a_server_that_never_answers_is_given_up() {
    let asking = Asking::new(|_, _| None).await;
    let counter = &asking.counter;
    // Otherwise it would count nothing.
    counter.counted.keep("so", 1);
    let began = tokio::time::Instant::now();
    for n in 1..=3 {
        counter.learn_request(&chat()).await;
        assert_eq!(counter.template_failures.is_given_up(), n == 3);
    }
    for n in 1..=3 {
        assert_eq!(counter.special().await, Err(CountEnd::OutOfTime));
        assert_eq!(counter.special_failures.is_given_up(), n == 3);
    }
    let waited = began.elapsed();
    assert!(waited <= 6 * PATIENCE + Duration::from_secs(1), "{waited:?}");
    counter.learn_request(&chat()).await;
    assert_eq!(counter.special().await, Ok(0));
    assert_eq!(began.elapsed(), waited, "nothing is waited for");
}

//! What the client does differently for each dialect: headers, addresses, lists of models, and when it tries again.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking, in its helpers too")]

#[path = "support/server.rs"]
#[allow(dead_code, reason = "shared with the tests of streams")]
mod server;

use std::sync::Arc;
use std::time::Duration;

use drawloom_model::model_list::ListError;
use drawloom_model::retry::RetryPolicy;
use drawloom_model::{
    ApiKey, CallOrigin, Cancel, Chat, ChatPart, Connection, DialectName, EncodedRequest, Exchange, HttpModel,
    ListedModel, Model, ModelError, ModelInfo, OpaquePart, Params, PartId, Probe, Prompt, Purpose, Quirks,
    RawResponse, TextPart, ThinkingControl, list_models, provider,
};
use server::{Reply, Server, response};

const HTTP: [DialectName; 4] = [
    DialectName::OpenAiChat,
    DialectName::OpenAiResponses,
    DialectName::AnthropicMessages,
    DialectName::Gemini,
];

fn info(dialect: DialectName) -> ModelInfo {
    ModelInfo {
        dialect,
        honours_n: true,
        logprobs: true,
        tools: true,
        images: true,
        structured: true,
        ..ModelInfo::local("test", "m", 8192, 1024)
    }
}

fn connection(url: &str, key: Option<&str>) -> Connection {
    let retry = RetryPolicy { jitter: Arc::new(|| 0.0), ..RetryPolicy::quick() };
    Connection { key: key.map(ApiKey::new), retry, ..Connection::new(url) }
}

fn model(dialect: DialectName, connection: Connection) -> HttpModel {
    HttpModel::new(info(dialect), Quirks::default(), connection).unwrap()
}

/// Sends a body to a path, as a request read back from a manifest would be.
async fn send(model: &HttpModel, path: &str) -> Result<RawResponse, ModelError> {
    let request = EncodedRequest::new(model.info().dialect, path, "{}".into(), Vec::new(), true).unwrap();
    let (mut spool, mut listener) = (Vec::new(), |_| {});
    let exchange =
        Exchange { spool: &mut spool, listener: &mut listener, cancel: Cancel::never(), permit: None };
    model.send(&request, &CallOrigin::new("s", Purpose::Turn), exchange).await
}

fn hello() -> ChatPart {
    ChatPart::User(TextPart::new(PartId(0), "Hello"))
}

fn refused(status: &str, headers: &str, body: &str) -> Reply {
    Reply::Send(response(status, headers, body))
}

/// Names of the headers of a request, sorted.
fn header_names(request: &str) -> Vec<String> {
    let head = request.split("\r\n\r\n").next().unwrap();
    let names = head.lines().skip(1).filter_map(|line| Some(line.split_once(':')?.0.to_lowercase()));
    let mut names: Vec<_> = names.collect();
    names.sort();
    names
}

#[tokio::test]
async fn the_header_names_it_tells_are_those_on_the_wire() {
    for dialect in HTTP {
        for key in [Some("sk-canary"), None] {
            let server = Server::start(vec![refused("400 Bad", "", "{}")]).await;
            let model = model(dialect, connection(&server.url, key));
            send(&model, "x").await.unwrap_err();
            let request = server.requests().remove(0);
            assert_eq!(model.header_names(), header_names(&request), "{dialect} {key:?}");
            let keys = usize::from(key.is_some());
            assert_eq!(request.matches("sk-canary").count(), keys, "in one header only: {request}");
        }
    }
}

#[tokio::test]
async fn thinking_bound_to_its_conversation_has_a_header_that_it_tells_of() {
    for (dialect, key) in HTTP.into_iter().flat_map(|dialect| [(dialect, Some("k")), (dialect, None)]) {
        let server = Server::start(vec![refused("400 Bad", "", "{}")]).await;
        let plain = model(dialect, connection(&server.url, key));
        let quirks = Quirks { thinking_bound: true, ..Quirks::default() };
        let bound = HttpModel::new(plain.info().clone(), quirks, connection(&server.url, key)).unwrap();
        send(&bound, "x").await.unwrap_err();
        let request = server.requests().remove(0);
        assert_eq!(bound.header_names(), header_names(&request), "{dialect} {key:?}");
        let said = request.contains("\r\nanthropic-beta: thinking-binding-controls-2026-08-01\r\n");
        assert_eq!(said, dialect == DialectName::AnthropicMessages, "{request}");
        assert!(!plain.header_names().contains(&"anthropic-beta"), "control");
    }
}

#[tokio::test]
async fn each_dialect_sends_its_key_in_its_own_header() {
    let expected = [
        "\r\nauthorization: Bearer sk-canary\r\n",
        "\r\nauthorization: Bearer sk-canary\r\n",
        "\r\nx-api-key: sk-canary\r\n",
        "\r\nx-goog-api-key: sk-canary\r\n",
    ];
    for (dialect, header) in HTTP.into_iter().zip(expected) {
        let server = Server::start(vec![refused("400 Bad", "", "{}")]).await;
        send(&model(dialect, connection(&server.url, Some("sk-canary"))), "x").await.unwrap_err();
        let request = server.requests().remove(0);
        assert!(request.contains(header), "{request}");
        let versioned = request.contains("\r\nanthropic-version: 2023-06-01\r\n");
        assert_eq!(versioned, dialect == DialectName::AnthropicMessages, "{request}");
    }
}

#[test]
fn a_text_that_ends_an_answer_is_asked_for_in_chat_completions_where_they_stand_beside_responses() {
    let model = |thinks: ThinkingControl, chat_beside: bool| {
        let info = ModelInfo { thinks, ..info(DialectName::OpenAiResponses) };
        let quirks = Quirks { chat_beside, ..Quirks::default() };
        HttpModel::new(info, quirks, connection("http://127.0.0.1:9/v1", None)).unwrap()
    };
    let say =
        |part: ChatPart| Prompt::Chat(Chat { messages: vec![hello(), part, hello()], ..Chat::default() });
    let answer = || say(ChatPart::Assistant(TextPart::new(PartId(1), "Yes.")));
    let asked = |model: &HttpModel, prompt: &Prompt, stop: &[&str]| {
        let params =
            Params { stop: stop.iter().map(|stop| (*stop).to_owned()).collect(), ..Params::default() };
        model.encode(prompt, &params).map(|encoded| (encoded.dialect(), encoded.path().to_owned()))
    };
    let plain = model(ThinkingControl::Untold, true);
    let chat = (DialectName::OpenAiChat, "chat/completions".to_owned());
    assert_eq!(asked(&plain, &answer(), &["END"]).unwrap(), chat);
    let responses = (DialectName::OpenAiResponses, "responses".to_owned());
    assert_eq!(asked(&plain, &answer(), &[]).unwrap(), responses, "control");
    let refused = |model: &HttpModel, prompt: &Prompt| asked(model, prompt, &["END"]).unwrap_err().code();
    assert_eq!(
        refused(&model(ThinkingControl::Untold, false), &answer()),
        "unsupported",
        "they are not there"
    );
    assert_eq!(
        refused(&model(ThinkingControl::Told, true), &answer()),
        "unsupported",
        "it would not think as it should"
    );
    let sealed = OpaquePart { id: PartId(1), thinking: None, json: serde_json::json!({"type": "reasoning"}) };
    assert_eq!(
        refused(&plain, &say(ChatPart::Opaque(sealed))),
        "unsupported",
        "it belongs to the other dialect"
    );
}

#[tokio::test]
async fn a_key_that_a_server_repeats_is_in_no_message() {
    for dialect in HTTP {
        let body = r#"{"error":{"message":"bad key sk-canary","code":401}}"#;
        let server = Server::start(vec![refused("401 No", "", body), refused("401 No", "", body)]).await;
        let connection = connection(&server.url, Some("sk-canary"));
        let error = send(&model(dialect, connection.clone()), "x").await.unwrap_err();
        assert_eq!(error.code(), "unauthorized", "{dialect}");
        assert!(!error.to_string().contains("canary") && error.to_string().contains("bad key"), "{error}");
        let error = list_models(dialect, connection, None).await.unwrap_err().to_string();
        assert!(!error.contains("canary") && error.contains("bad key"), "{error}");
    }
}

#[tokio::test]
async fn a_path_is_sent_with_its_query() {
    let server = Server::start(vec![refused("400 Bad", "", "{}")]).await;
    let base = format!("{}/v1beta", server.url);
    let model = model(DialectName::Gemini, connection(&base, None));
    send(&model, "models/x:streamGenerateContent?alt=sse").await.unwrap_err();
    let request = server.requests().remove(0);
    assert!(
        request.starts_with("POST /v1beta/models/x:streamGenerateContent?alt=sse HTTP/1.1\r\n"),
        "{request}"
    );
}

#[tokio::test]
async fn a_path_that_leaves_the_base_is_not_sent() {
    let server = Server::start(vec![]).await;
    let model = model(DialectName::Gemini, connection(&server.url, Some("sk-canary")));
    let error = send(&model, "models/../../files:generateContent").await.unwrap_err();
    assert_eq!(error.code(), "bad_path");
    assert!(server.requests().is_empty());
}

#[tokio::test]
async fn raw_text_goes_to_servers_like_openais_alone() {
    let raw = Prompt::Raw(vec![TextPart::new(PartId(1), "Once")]);
    for dialect in HTTP {
        let encoded = model(dialect, connection("http://localhost", None)).encode(&raw, &Params::default());
        match dialect {
            DialectName::AnthropicMessages | DialectName::Gemini => {
                assert_eq!(encoded.unwrap_err().code(), "unsupported", "{dialect}");
            }
            _ => assert_eq!(encoded.unwrap().path(), "completions", "{dialect}"),
        }
    }
}

#[tokio::test]
async fn quirks_hold_for_raw_text_too() {
    let quirks =
        Quirks { seed: false, min_p: false, sampling: false, stream_options: false, ..Quirks::default() };
    let client = connection("http://localhost", None);
    let model = HttpModel::new(info(DialectName::OpenAiChat), quirks, client).unwrap();
    let params = Params {
        seed: Some(1),
        min_p: Some(0.1),
        temperature: Some(0.5),
        top_p: Some(0.5),
        max_tokens: Some(8),
        ..Params::default()
    };
    let raw = Prompt::Raw(vec![TextPart::new(PartId(1), "Once")]);
    let encoded = model.encode(&raw, &params).unwrap();
    assert_eq!(encoded.body(), r#"{"model":"m","stream":true,"max_tokens":8,"prompt":"Once"}"#);
}

#[tokio::test]
async fn every_sign_of_too_much_work_is_tried_again_in_every_dialect() {
    let openai = r#"{"error":{"message":"busy"}}"#;
    let anthropic = r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#;
    let gemini = r#"{"error":{"code":503,"message":"The model is overloaded.","status":"UNAVAILABLE"}}"#;
    for dialect in HTTP {
        let body = match dialect {
            DialectName::AnthropicMessages => anthropic,
            DialectName::Gemini => gemini,
            _ => openai,
        };
        for status in ["408 Timeout", "429 Slow", "500 Oops", "502 Gateway", "503 Busy", "529 Overloaded"] {
            let body =
                if status.starts_with("503") || dialect != DialectName::Gemini { body } else { "busy" };
            let server = Server::start(vec![refused(status, "", body); 4]).await;
            let error = send(&model(dialect, connection(&server.url, None)), "x").await.unwrap_err();
            assert!(error.is_transient(), "{dialect} {status}: {}", error.code());
            assert_eq!(server.requests().len(), 3, "{dialect} {status}");
        }
    }
}

#[tokio::test]
async fn what_will_not_change_is_not_tried_again() {
    for dialect in HTTP {
        for status in ["400 Bad", "401 No", "403 No", "404 Where", "413 Large", "422 Bad"] {
            let server = Server::start(vec![refused(status, "", r#"{"error":{"message":"no"}}"#); 2]).await;
            let error = send(&model(dialect, connection(&server.url, None)), "x").await.unwrap_err();
            assert!(!error.is_transient(), "{dialect} {status}");
            assert_eq!(server.requests().len(), 1, "{dialect} {status}");
        }
    }
}

#[tokio::test]
async fn a_wait_asked_for_in_a_header_or_in_the_error_is_honoured() {
    let body = r#"{"error":{"code":429,"message":"Slow","status":"RESOURCE_EXHAUSTED","details":[{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"3600s"}]}}"#;
    for (headers, body) in
        [("", body), ("retry-after: 3600\r\n", "{}"), ("retry-after-ms: 3600000\r\n", "{}")]
    {
        let server = Server::start(vec![refused("429 Slow", headers, body); 2]).await;
        let error = send(&model(DialectName::Gemini, connection(&server.url, None)), "x").await.unwrap_err();
        assert_eq!(error.retry_after(), Some(Duration::from_secs(3600)), "{headers}");
        assert_eq!(server.requests().len(), 1, "an hour is not waited for");
    }
}

#[tokio::test]
async fn a_failure_in_mid_stream_before_any_output_is_tried_again() {
    let start = "data: {\"id\":\"1\",\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\"}}],\"usage\":{\"prompt_tokens\":3}}\n\n";
    let failed = "data: {\"error\":{\"message\":\"Provider disconnected\",\"code\":502}}\n\n";
    let text = "data: {\"id\":\"1\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hi\"}}]}\n\n";
    for (stream, requests) in [([start, failed].concat(), 3), ([start, text, failed].concat(), 1)] {
        let reply = response("200 OK", "content-type: text/event-stream\r\n", &stream);
        let server = Server::start(vec![Reply::Send(reply); 3]).await;
        let error =
            send(&model(DialectName::OpenAiChat, connection(&server.url, None)), "x").await.unwrap_err();
        assert_eq!(error.code(), "server_unavailable");
        assert_eq!(server.requests().len(), requests, "counts are no output, text is: {stream}");
    }
}

async fn listed(dialect: DialectName, body: &str) -> (Vec<ListedModel>, String) {
    let server = Server::start(vec![Reply::Send(response("200 OK", "", body))]).await;
    let models = list_models(dialect, connection(&server.url, Some("k")), None).await.unwrap();
    (models, server.requests().remove(0))
}

fn named(id: &str, window: Option<u32>, output_limit: Option<u32>) -> ListedModel {
    ListedModel { id: id.to_owned(), window, output_limit }
}

#[tokio::test]
async fn models_are_listed_with_what_servers_tell_of_them() {
    let body = r#"{"object":"list","data":[{"id":"vllm","max_model_len":4096},{"id":"plain"},{"no":"id"},
        {"id":"router","context_length":131072,"top_provider":{"max_completion_tokens":8192}},
        {"id":"groq","context_window":8192,"max_completion_tokens":0}]}"#;
    let (models, request) = listed(DialectName::OpenAiChat, body).await;
    let expected = [
        named("vllm", Some(4096), None),
        named("plain", None, None),
        named("router", Some(131_072), Some(8192)),
        named("groq", Some(8192), None),
    ];
    assert_eq!(models, expected);
    assert!(request.starts_with("GET /v1/models HTTP/1.1\r\n"), "{request}");
    let bare = listed(DialectName::OpenAiChat, r#"[{"id":"a","context_length":10}]"#).await;
    assert_eq!(bare.0, [named("a", Some(10), None)]);
}

#[tokio::test]
async fn anthropics_models_are_listed_with_its_headers() {
    let body = r#"{"data":[{"type":"model","id":"claude-x","display_name":"X","created_at":"2026-01-01T00:00:00Z",
        "max_input_tokens":200000,"max_tokens":64000}],"has_more":false,"first_id":"claude-x","last_id":"claude-x"}"#;
    let (models, request) = listed(DialectName::AnthropicMessages, body).await;
    assert_eq!(models, [named("claude-x", Some(200_000), Some(64_000))]);
    assert!(request.starts_with("GET /v1/models?limit=1000 "), "{request}");
    assert!(
        request.contains("\r\nx-api-key: k\r\n") && request.contains("\r\nanthropic-version: "),
        "{request}"
    );
}

#[tokio::test]
async fn geminis_models_are_listed_by_their_names_alone() {
    let body = r#"{"models":[
        {"name":"models/gemini-x","version":"001","displayName":"X","inputTokenLimit":1048576,"outputTokenLimit":65536,
         "supportedGenerationMethods":["generateContent","countTokens"]},
        {"name":"models/embedding-x","inputTokenLimit":2048,"outputTokenLimit":1,"supportedGenerationMethods":["embedContent"]}]}"#;
    let (models, request) = listed(DialectName::Gemini, body).await;
    assert_eq!(models, [named("gemini-x", Some(1_048_576), Some(65_536))]);
    assert!(request.contains("\r\nx-goog-api-key: k\r\n"), "{request}");
}

#[tokio::test]
async fn what_is_no_list_is_an_error() {
    for body in ["{}", "words", r#"{"data":3}"#] {
        let server = Server::start(vec![Reply::Send(response("200 OK", "", body))]).await;
        let error =
            list_models(DialectName::OpenAiChat, connection(&server.url, None), None).await.unwrap_err();
        assert!(matches!(error, ListError::Model(ModelError::Cut { .. })), "{error:?}");
    }
}

/// A server that answers by path, whatever the order of the questions.
async fn answering(answers: &'static [(&'static str, &'static str)]) -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let answer = move |uri: axum::http::Uri| async move {
        let found = answers.iter().find(|(path, _)| uri.path() == *path);
        found.map(|(_, body)| (*body).to_owned()).ok_or(axum::http::StatusCode::NOT_FOUND)
    };
    let app = axum::Router::new().fallback(answer);
    tokio::spawn(async move { axum::serve(listener, app).await });
    url
}

async fn probed(name: &str, answers: &'static [(&'static str, &'static str)]) -> Vec<(String, Option<u32>)> {
    let probe: Option<&Probe> = provider(name).unwrap().probe.as_ref();
    let url = answering(answers).await;
    let models = list_models(DialectName::OpenAiChat, connection(&url, None), probe).await.unwrap();
    models.into_iter().map(|model| (model.id, model.window)).collect()
}

#[tokio::test]
async fn servers_that_tell_windows_elsewhere_are_asked_there() {
    let two = r#"{"object":"list","data":[{"id":"a"},{"id":"b"}]}"#;
    let windows = |a, b| vec![("a".to_owned(), a), ("b".to_owned(), b)];
    let ps = r#"{"models":[{"name":"a","model":"a","size":1,"context_length":4096,"expires_at":"2026-01-01T00:00:00Z"}]}"#;
    let ollama = probed("ollama", Box::leak(Box::new([("/v1/models", two), ("/api/ps", ps)]))).await;
    assert_eq!(ollama, windows(Some(4096), None), "b is not loaded");
    let props = r#"{"default_generation_settings":{"id":0,"n_ctx":32768,"params":{}},"total_slots":1}"#;
    let llamacpp = probed("llamacpp", Box::leak(Box::new([("/v1/models", two), ("/props", props)]))).await;
    assert_eq!(llamacpp, windows(Some(32_768), Some(32_768)));
    let studio = r#"{"object":"list","data":[
        {"id":"a","state":"loaded","max_context_length":131072,"loaded_context_length":4096},
        {"id":"b","state":"not-loaded","max_context_length":32768}]}"#;
    let lmstudio =
        probed("lmstudio", Box::leak(Box::new([("/v1/models", two), ("/api/v0/models", studio)]))).await;
    assert_eq!(lmstudio, windows(Some(4096), Some(32_768)), "what is loaded counts");
}

#[tokio::test]
async fn a_probe_that_fails_changes_nothing() {
    let one = r#"{"data":[{"id":"a","max_model_len":512}]}"#;
    let expected = [("a".to_owned(), Some(512))];
    assert_eq!(probed("llamacpp", Box::leak(Box::new([("/v1/models", one)]))).await, expected);
    assert_eq!(
        probed("llamacpp", Box::leak(Box::new([("/v1/models", one), ("/props", "no")]))).await,
        expected
    );
}

#[tokio::test]
async fn a_conversation_is_written_in_the_dialect_of_chat() {
    let chat = Chat { messages: vec![ChatPart::User(TextPart::new(PartId(1), "Hi"))], ..Chat::default() };
    let model = model(DialectName::OpenAiChat, connection("http://localhost", None));
    let encoded = model.encode(&Prompt::Chat(chat), &Params::default()).unwrap();
    assert_eq!((encoded.dialect(), encoded.path()), (DialectName::OpenAiChat, "chat/completions"));
}

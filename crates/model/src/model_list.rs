//! Which models a server has, and how large their windows are.
//!
//! Lists come in three forms, and windows under as many names as there are servers; both are tables here. What a
//! server does not tell in its list it may tell elsewhere: a [`Probe`] says where. The probe is an extra: a list
//! stands without it.

use std::time::Duration;

use serde_json::Value;

use crate::connection::{Connection, SetupError};
use crate::dialect::DialectName;
use crate::error::ModelError;
use crate::http_client::{Body, Client};
use crate::model::{Exchange, SourceKind};
use crate::providers::Probe;
use crate::receive::{Io, receive};

/// The most of an answer that is read, in bytes.
const MAX_LIST_BYTES: usize = 4 * 1024 * 1024;
/// How long a list may take.
const LIST_TIMEOUT: Duration = Duration::from_secs(5);

/// Where servers tell the window of a model in their list.
const WINDOWS: [&str; 6] = [
    "/max_model_len",
    "/context_length",
    "/context_window",
    "/max_context_length",
    "/max_input_tokens",
    "/inputTokenLimit",
];
/// Where they tell the most tokens of one answer.
const OUTPUTS: [&str; 4] =
    ["/max_completion_tokens", "/top_provider/max_completion_tokens", "/max_tokens", "/outputTokenLimit"];

/// A model a server says it has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedModel {
    pub id: String,
    /// Window in tokens, where the server says so.
    pub window: Option<u32>,
    /// The most tokens of one answer, where the server says so.
    pub output_limit: Option<u32>,
}

/// Asks a server for its models, as detection does; with a probe also for their windows. Reads no more than 4 MB an
/// answer, waits no longer than five seconds and repeats nothing. A probe that fails, or takes longer than half the
/// time to the first byte, changes nothing.
///
/// # Errors
/// [`ListError::Setup`] when the connection's settings are unusable, else [`ListError::Model`].
pub async fn list_models(
    dialect: DialectName,
    connection: Connection,
    probe: Option<&Probe>,
) -> Result<Vec<ListedModel>, ListError> {
    let patience = connection.timeouts.first_byte.min(LIST_TIMEOUT) / 2;
    let client = Client::new(dialect, connection)?;
    let (asked, probed) = tokio::join!(
        tokio::time::timeout(LIST_TIMEOUT, models(&client, dialect)),
        tokio::time::timeout(patience, probed(&client, probe)),
    );
    let timeout = ModelError::FirstByteTimeout { after: LIST_TIMEOUT, response: None };
    let mut models = asked.unwrap_or(Err(timeout))?;
    if let (Some(probe), Ok(Some(answer))) = (probe, probed) {
        probe.apply(&answer, &mut models);
    }
    Ok(models)
}

/// Why a server's models could not be listed.
#[derive(Debug, thiserror::Error)]
pub enum ListError {
    /// The connection's settings are unusable.
    #[error(transparent)]
    Setup(#[from] SetupError),
    /// The server could not be asked.
    #[error(transparent)]
    Model(#[from] ModelError),
}

async fn models(client: &Client, dialect: DialectName) -> Result<Vec<ListedModel>, ModelError> {
    let path = match dialect {
        // Both give pages of a few models unless asked for more.
        DialectName::AnthropicMessages => "models?limit=1000",
        DialectName::Gemini => "models?pageSize=1000",
        _ => "models",
    };
    let unreadable =
        || ModelError::Cut { why: "the list of models is not readable".to_owned(), response: None };
    let url = client.endpoint.join(path).ok_or_else(unreadable)?;
    let sent = client.sent(1, dialect, SourceKind::Remote);
    let response = client.get(url).await?;
    let head = client.head(&response, false);
    if head.status != 200 {
        let (cancel, mut nothing) = (crate::Cancel::never(), Vec::new());
        let mut listener = |_| {};
        let mut io = Io::new(Exchange { spool: &mut nothing, listener: &mut listener, cancel, permit: None });
        let timeouts = client.connection.timeouts;
        return match receive(head, &mut Body(response), sent, timeouts, &mut io).await {
            Err(error) => Err(client.without_key(error)),
            Ok(_) => Ok(Vec::new()),
        };
    }
    listed(&read(client, response).await?).ok_or_else(unreadable)
}

/// What a probe is answered; nothing, if it is not answered as expected.
async fn probed(client: &Client, probe: Option<&Probe>) -> Option<Value> {
    let url = client.endpoint.beside(probe?.path)?;
    let response = client.get(url).await.ok().filter(|response| response.status().as_u16() == 200)?;
    serde_json::from_slice(&read(client, response).await.ok()?).ok()
}

/// A body, as far as a list may reach.
pub(crate) async fn read(client: &Client, mut response: egress::Response) -> Result<Vec<u8>, ModelError> {
    let mut body = Vec::new();
    while let Some(piece) = response.chunk().await.map_err(|error| client.failure(&error))? {
        body.extend_from_slice(&piece);
        if body.len() > MAX_LIST_BYTES {
            break;
        }
    }
    Ok(body)
}

/// `{"data": […]}` of OpenAI and Anthropic, `{"models": […]}` of Gemini, or the bare list.
fn listed(body: &[u8]) -> Option<Vec<ListedModel>> {
    let list: Value = serde_json::from_slice(body).ok()?;
    let entries = [list.get("data"), list.get("models"), Some(&list)];
    let entries = entries.into_iter().flatten().find_map(Value::as_array)?;
    Some(entries.iter().filter_map(model).collect())
}

fn model(entry: &Value) -> Option<ListedModel> {
    let id = match entry.get("id") {
        Some(id) => id.as_str()?,
        // Gemini names them by their place, and lists those that only embed too.
        None => {
            let methods = entry.get("supportedGenerationMethods").and_then(Value::as_array);
            if methods.is_some_and(|methods| !methods.iter().any(|method| method == "generateContent")) {
                return None;
            }
            entry.get("name")?.as_str()?.trim_start_matches("models/")
        }
    };
    let (window, output_limit) = (tokens(entry, &WINDOWS), tokens(entry, &OUTPUTS));
    Some(ListedModel { id: id.to_owned(), window, output_limit })
}

fn tokens(entry: &Value, pointers: &[&str]) -> Option<u32> {
    let number = pointers.iter().find_map(|pointer| entry.pointer(pointer)?.as_u64());
    number.and_then(|tokens| u32::try_from(tokens).ok()).filter(|tokens| *tokens > 0)
}

impl Probe {
    /// Writes the windows an answer tells into the models it tells them of.
    fn apply(&self, answer: &Value, models: &mut [ListedModel]) {
        let Some(list) = self.list else {
            let window = tokens(answer, &self.window);
            models.iter_mut().for_each(|model| model.window = window.or(model.window));
            return;
        };
        for entry in answer.pointer(list).and_then(Value::as_array).into_iter().flatten() {
            let Some(id) = self.id.iter().find_map(|pointer| entry.pointer(pointer)?.as_str()) else {
                continue;
            };
            for model in models.iter_mut().filter(|model| model.id == id) {
                model.window = tokens(entry, &self.window).or(model.window);
            }
        }
    }
}

//! A client at the other end of two streams, each message a line. What it sends is bounded: the length of a message, and
//! how many of its requests have no answer that it read; beyond that nothing is read from it.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use rmcp::RoleServer;
use rmcp::model::{
    ClientJsonRpcMessage, ClientNotification, ErrorCode, ErrorData, JsonRpcMessage, RequestId,
    ServerJsonRpcMessage,
};
use rmcp::service::{QuitReason, ServerInitializeError, serve_server};
use rmcp::transport::Transport;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncWrite, AsyncWriteExt as _, BufReader};
use tokio::sync::{Mutex, OwnedSemaphorePermit, Semaphore};

use crate::tool_server::ToolServer;

/// Bytes of a message of a client.
const LONGEST_REQUEST: usize = 1 << 20;
/// Messages of a client that are not answered yet.
const UNANSWERED: usize = 32;

/// Serves tools to a client until its stream ends.
///
/// # Errors
/// It could not be answered, or the protocol failed.
pub fn serve(
    server: ToolServer,
    input: impl AsyncRead + Send + Unpin + 'static,
    output: impl AsyncWrite + Send + Unpin + 'static,
) -> BoxFuture<'static, Result<(), String>> {
    Box::pin(serve_lines(server, LineTransport::new(input, output)))
}

async fn serve_lines(
    server: ToolServer,
    transport: impl Transport<RoleServer, Error = io::Error> + 'static,
) -> Result<(), String> {
    let running = match serve_server(server, transport).await {
        Ok(running) => running,
        Err(ServerInitializeError::ConnectionClosed(_)) => return Ok(()),
        Err(error) => return Err(error.to_string()),
    };
    match running.waiting().await {
        Ok(QuitReason::JoinError(error)) | Err(error) => Err(error.to_string()),
        Ok(_) => Ok(()),
    }
}

struct LineTransport<R, W> {
    input: BufReader<R>,
    /// The line as far as it was read.
    line: Vec<u8>,
    /// Whether it is too long, so that its rest is passed over.
    is_too_long: bool,
    /// Whether a request came: what stands before the first is no part of a conversation.
    has_begun: bool,
    output: Arc<Mutex<W>>,
    room: Arc<Semaphore>,
    /// Requests without an answer.
    unanswered: HashMap<RequestId, OwnedSemaphorePermit>,
}

/// Why a line is no message that is taken.
struct Refusal {
    /// Of the answer, where it can be read.
    id: Option<RequestId>,
    code: ErrorCode,
    why: String,
}

impl Refusal {
    fn invalid(id: Option<RequestId>, why: impl Into<String>) -> Self {
        Self { id, code: ErrorCode::INVALID_REQUEST, why: why.into() }
    }
}

impl<R: AsyncRead + Send + Unpin, W: AsyncWrite + Send + Unpin + 'static> LineTransport<R, W> {
    fn new(input: R, output: W) -> Self {
        Self {
            input: BufReader::new(input),
            line: Vec::new(),
            is_too_long: false,
            has_begun: false,
            output: Arc::new(Mutex::new(output)),
            room: Arc::new(Semaphore::new(UNANSWERED)),
            unanswered: HashMap::new(),
        }
    }

    /// The next line, or that it is too long; none at the end of the stream. Cancel-safe: what was read stays.
    async fn next_line(&mut self) -> Option<Result<Vec<u8>, Refusal>> {
        loop {
            let read = self.input.fill_buf().await.ok().filter(|read| !read.is_empty())?;
            let end = read.iter().position(|byte| *byte == b'\n');
            let taken = end.unwrap_or(read.len());
            self.is_too_long |= self.line.len() + taken > LONGEST_REQUEST;
            if self.is_too_long {
                self.line = Vec::new();
            } else {
                self.line.extend_from_slice(&read[..taken]);
            }
            self.input.consume(taken + usize::from(end.is_some()));
            if end.is_none() {
                continue;
            }
            let line = std::mem::take(&mut self.line);
            if std::mem::take(&mut self.is_too_long) {
                let why = format!("a message has at most {} MiB", LONGEST_REQUEST >> 20);
                return Some(Err(Refusal::invalid(None, why)));
            }
            return Some(Ok(line));
        }
    }

    /// Answers what is no message.
    fn refuse(&self, Refusal { id, code, why }: Refusal, permit: OwnedSemaphorePermit) {
        let error = ErrorData::new(code, why, None);
        let answer = json!({"jsonrpc": "2.0", "id": id, "error": error}).to_string();
        let (output, room) = (Arc::clone(&self.output), Arc::clone(&self.room));
        tokio::spawn(async move {
            // Whoever does not read the answer is not read from either.
            let _ = write(&output, &room, answer).await;
            drop(permit);
        });
    }
}

/// Writes one line whole. Nothing is read any more once that fails.
async fn write(
    output: &Mutex<impl AsyncWrite + Unpin>,
    room: &Semaphore,
    mut line: String,
) -> io::Result<()> {
    line.push('\n');
    let mut output = output.lock().await;
    let written = async {
        output.write_all(line.as_bytes()).await?;
        output.flush().await
    };
    let written = written.await;
    if written.is_err() {
        room.close();
    }
    written
}

/// A line as a message; none where it is a notification that is not known.
fn message(line: &[u8]) -> Result<Option<ClientJsonRpcMessage>, Refusal> {
    let value: Value = serde_json::from_slice(line).map_err(|error| Refusal {
        id: None,
        code: ErrorCode::PARSE_ERROR,
        why: format!("this is no JSON: {error}"),
    })?;
    let id = value.get("id").and_then(|id| serde_json::from_value::<RequestId>(id.clone()).ok());
    let is_notification = value.get("id").is_none() && value.get("method").is_some_and(Value::is_string);
    match serde_json::from_value(value) {
        Ok(message) => Ok(Some(message)),
        Err(_) if is_notification => Ok(None),
        Err(_) => Err(Refusal::invalid(id, "this is no message of the protocol")),
    }
}

impl<R: AsyncRead + Send + Unpin, W: AsyncWrite + Send + Unpin + 'static> Transport<RoleServer>
    for LineTransport<R, W>
{
    type Error = io::Error;

    fn send(
        &mut self,
        message: ServerJsonRpcMessage,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let answered = match &message {
            JsonRpcMessage::Response(response) => self.unanswered.remove(&response.id),
            JsonRpcMessage::Error(error) => error.id.as_ref().and_then(|id| self.unanswered.remove(id)),
            _ => None,
        };
        let (output, room) = (Arc::clone(&self.output), Arc::clone(&self.room));
        async move {
            let line = serde_json::to_string(&message).map_err(io::Error::other)?;
            let written = write(&output, &room, line).await;
            drop(answered);
            written
        }
    }

    /// Cancel-safe.
    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        loop {
            let permit = Arc::clone(&self.room).acquire_owned().await.ok()?;
            let read = match self.next_line().await? {
                Ok(line) if line.trim_ascii().is_empty() => Ok(None),
                Ok(line) => message(&line),
                Err(refusal) => Err(refusal),
            };
            match read {
                Ok(None) => {}
                Ok(Some(JsonRpcMessage::Request(request))) if self.unanswered.contains_key(&request.id) => {
                    let why = "a request of this id waits for its answer";
                    self.refuse(Refusal::invalid(Some(request.id), why), permit);
                }
                Ok(Some(message)) => {
                    match &message {
                        JsonRpcMessage::Request(request) => {
                            self.has_begun = true;
                            self.unanswered.insert(request.id.clone(), permit);
                        }
                        // One that is cancelled is not answered.
                        JsonRpcMessage::Notification(told) => {
                            if let ClientNotification::CancelledNotification(cancelled) = &told.notification
                                && let Some(id) = &cancelled.params.request_id
                            {
                                self.unanswered.remove(id);
                            }
                        }
                        _ => {}
                    }
                    if self.has_begun {
                        return Some(message);
                    }
                }
                Err(refusal) => self.refuse(refusal, permit),
            }
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests;

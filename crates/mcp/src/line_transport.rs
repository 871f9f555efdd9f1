//! A client at the other end of two streams, each message a line. What it sends is bounded: the length of a message, and
//! how many of its requests have no answer that it read; beyond that nothing is read from it.
//!
//! Beside the transport of lines that rmcp has ([`rmcp::transport::async_rw::AsyncRwTransport`]: bounded lines, a read that
//! may be cancelled) its own are: that it waits for the client to read; an answer with the id, where that can be read, to each
//! line that is no message, and one of one that is too long; one answer to each id that is used, however often; one
//! `initialize`; and an error where the stream cannot be read, which is not its end.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, OnceLock};

use futures_util::future::BoxFuture;
use rmcp::RoleServer;
use rmcp::model::{
    ClientJsonRpcMessage, ClientNotification, ClientRequest, ConstString as _, ErrorCode, ErrorData,
    GetMeta as _, InitializeResultMethod, JsonRpcMessage, JsonRpcRequest, PingRequestMethod, RequestId,
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
/// Requests that are answered before `initialize`.
const BEFORE_INITIALIZE: [&str; 2] = [InitializeResultMethod::VALUE, PingRequestMethod::VALUE];
/// Messages of a client that are not answered yet.
const UNANSWERED: usize = 32;

/// Why a client is served no longer before its stream has ended.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    #[error("what the client says could not be read: {0}")]
    Read(Arc<io::Error>),
    #[error("the client does not speak MCP: {0}")]
    Protocol(String),
}

/// Serves tools to a client until its stream ends.
///
/// # Errors
/// It could not be read or answered, or the protocol failed.
pub fn serve(
    server: ToolServer,
    input: impl AsyncRead + Send + Unpin + 'static,
    output: impl AsyncWrite + Send + Unpin + 'static,
) -> BoxFuture<'static, Result<(), ServeError>> {
    let transport = LineTransport::new(input, output);
    let failed_read = Arc::clone(&transport.failed_read);
    Box::pin(async move {
        serve_lines(server, transport).await.map_err(ServeError::Protocol)?;
        failed_read.get().map_or(Ok(()), |error| Err(ServeError::Read(Arc::clone(error))))
    })
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
    is_initialized: bool,
    failed_read: Arc<OnceLock<Arc<io::Error>>>,
    output: Arc<Mutex<W>>,
    room: Arc<Semaphore>,
    /// Requests without an answer, by the number that stands for their id in this process: the handler of one that was
    /// cancelled ends later, and its answer is none to a request that has the id by then.
    unanswered: HashMap<i64, UnansweredRequest>,
    /// Requests so far.
    requests: i64,
}

struct UnansweredRequest {
    /// Id that the client gave it.
    id: RequestId,
    permit: OwnedSemaphorePermit,
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
            is_initialized: false,
            failed_read: Arc::default(),
            output: Arc::new(Mutex::new(output)),
            room: Arc::new(Semaphore::new(UNANSWERED)),
            unanswered: HashMap::new(),
            requests: 0,
        }
    }

    /// The number of a request that waits for its answer.
    fn number(&self, id: &RequestId) -> Option<i64> {
        self.unanswered.iter().find(|(_, request)| request.id == *id).map(|(number, _)| *number)
    }

    /// Why a request is not taken.
    fn refusal(&self, request: &JsonRpcRequest<ClientRequest>) -> Option<Refusal> {
        let why = match () {
            () if self.number(&request.id).is_some() => "a request of this id waits for its answer",
            () if self.is_initialized && request.request.method() == InitializeResultMethod::VALUE => {
                "this client has said initialize already"
            }
            // Which version it speaks is said by it, or by each request.
            () if !self.is_initialized
                && !BEFORE_INITIALIZE.contains(&request.request.method())
                && request.request.get_meta().protocol_version().is_none() =>
            {
                "send initialize first"
            }
            () => return None,
        };
        Some(Refusal::invalid(Some(request.id.clone()), why))
    }

    /// Gives a request the number that stands for its id.
    fn admit(&mut self, request: &mut JsonRpcRequest<ClientRequest>, permit: OwnedSemaphorePermit) {
        self.has_begun = true;
        self.is_initialized |= matches!(request.request, ClientRequest::InitializeRequest(_));
        self.requests += 1;
        let id = std::mem::replace(&mut request.id, RequestId::Number(self.requests));
        self.unanswered.insert(self.requests, UnansweredRequest { id, permit });
    }

    /// The number of a request that is cancelled: it waits for no answer any more. None of one that waits for none.
    fn cancel(&mut self, id: &RequestId) -> Option<RequestId> {
        let number = self.number(id)?;
        self.unanswered.remove(&number);
        Some(RequestId::Number(number))
    }

    /// Takes a request that is answered out, and has the answer name it by its own id; none where it waits for none.
    fn answered(&mut self, id: &mut RequestId) -> Option<OwnedSemaphorePermit> {
        let RequestId::Number(number) = id else { return None };
        let UnansweredRequest { id: own, permit } = self.unanswered.remove(number)?;
        *id = own;
        Some(permit)
    }

    /// The next line, or that it is too long; none at the end of the stream. Cancel-safe: what was read stays.
    async fn next_line(&mut self) -> Option<Result<Vec<u8>, Refusal>> {
        loop {
            let read = match self.input.fill_buf().await {
                Ok([]) => return None,
                Ok(read) => read,
                Err(error) => {
                    let _ = self.failed_read.set(Arc::new(error));
                    return None;
                }
            };
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
    let has_method = value.get("method").is_some_and(Value::is_string);
    let is_notification = value.get("id").is_none() && has_method;
    let is_without_object = value.get("params").is_some_and(|params| !params.is_object());
    match serde_json::from_value(value) {
        Ok(message) => Ok(Some(message)),
        Err(_) if is_notification => Ok(None),
        Err(_) if has_method && is_without_object => Err(Refusal {
            id,
            code: ErrorCode::INVALID_PARAMS,
            why: "its parameters are no object".to_owned(),
        }),
        Err(_) => Err(Refusal::invalid(id, "this is no message of the protocol")),
    }
}

impl<R: AsyncRead + Send + Unpin, W: AsyncWrite + Send + Unpin + 'static> Transport<RoleServer>
    for LineTransport<R, W>
{
    type Error = io::Error;

    fn send(
        &mut self,
        mut message: ServerJsonRpcMessage,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let id = match &mut message {
            JsonRpcMessage::Response(response) => Some(&mut response.id),
            JsonRpcMessage::Error(error) => error.id.as_mut(),
            _ => None,
        };
        let is_answer = id.is_some();
        let permit = id.and_then(|id| self.answered(id));
        let (output, room) = (Arc::clone(&self.output), Arc::clone(&self.room));
        async move {
            if is_answer && permit.is_none() {
                return Ok(());
            }
            let line = serde_json::to_string(&message).map_err(io::Error::other)?;
            let written = write(&output, &room, line).await;
            drop(permit);
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
                Ok(Some(mut message)) => {
                    match &mut message {
                        JsonRpcMessage::Request(request) => match self.refusal(request) {
                            Some(refusal) => {
                                self.refuse(refusal, permit);
                                continue;
                            }
                            None => self.admit(request, permit),
                        },
                        JsonRpcMessage::Notification(told) => {
                            if let ClientNotification::CancelledNotification(cancelled) =
                                &mut told.notification
                            {
                                let id = cancelled.params.request_id.take();
                                cancelled.params.request_id = id.and_then(|id| self.cancel(&id));
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

//! Server of tools that only read: what a client is told of them, and the calls of them, however it is connected.

use std::sync::Arc;

use context::ToolSpec;
use model::{Cancel, CancelHandle};
use rmcp::handler::server::ServerHandler;
use rmcp::model::{
    CallToolRequestMethod, CallToolRequestParams, CallToolResponse, CallToolResult, ConstString as _,
    CustomRequest, CustomResult, ErrorCode, Implementation, InitializeResultMethod, ListToolsRequestMethod,
    ListToolsResult, PaginatedRequestParams, PingRequestMethod, ServerCapabilities, ServerConfig, Tool,
    ToolAnnotations,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer};
use serde_json::{Map, Value};
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;

use crate::content::ToolContent;

/// Calls that run at a time; others wait.
const RUNNING: usize = 4;

/// Requests that are answered.
const METHODS: [&str; 4] = [
    InitializeResultMethod::VALUE,
    PingRequestMethod::VALUE,
    ListToolsRequestMethod::VALUE,
    CallToolRequestMethod::VALUE,
];

/// Characters of a method that there is not.
const SHOWN: usize = 64;

/// What is called. Its tools only read.
pub trait ServedTools: Send + Sync {
    /// The tools there are; the list never changes.
    fn list(&self) -> Vec<ToolSpec>;

    /// Calls a tool. It blocks.
    ///
    /// # Errors
    /// There is no tool of this name.
    fn call(&self, tool: &str, arguments: Map<String, Value>, cancel: &Cancel) -> Result<ToolReply, String>;
}

/// What a call said, or why it failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolReply {
    pub content: Vec<ToolContent>,
    pub is_error: bool,
}

/// Tools with what a client is told of them together. Clones serve the same.
#[derive(Clone)]
pub struct ToolServer {
    tools: Arc<dyn ServedTools>,
    /// What a model is told of the server.
    instructions: &'static str,
    running: Arc<Semaphore>,
}

impl ToolServer {
    pub fn new(tools: Arc<dyn ServedTools>, instructions: &'static str) -> Self {
        Self { tools, instructions, running: Arc::new(Semaphore::new(RUNNING)) }
    }
}

/// Cancels a call when it is dropped.
struct CancelOnDrop(CancelHandle);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

impl ServerHandler for ToolServer {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(Implementation::new("drawloom", env!("CARGO_PKG_VERSION")))
            .with_instructions(self.instructions)
    }

    async fn list_tools(
        &self,
        asked: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        if asked.is_some_and(|asked| asked.cursor.is_some()) {
            return Err(ErrorData::invalid_params("the tools are one page: no cursor was given", None));
        }
        let told = |ToolSpec { name, description, parameters, .. }| {
            let schema = parameters.as_object().cloned().unwrap_or_default();
            let annotations = ToolAnnotations::new().read_only(true).open_world(false);
            Tool::new(name, description, schema).with_annotations(annotations)
        };
        Ok(ListToolsResult::with_all_items(self.tools.list().into_iter().map(told).collect()))
    }

    async fn call_tool(
        &self,
        asked: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let cancelled = || ErrorData::internal_error("the call was cancelled", None);
        let permit = tokio::select! {
            permit = Arc::clone(&self.running).acquire_owned() => permit.map_err(|_| cancelled())?,
            () = context.ct.cancelled() => return Err(cancelled()),
        };
        let (handle, cancel) = Cancel::new();
        let (tools, _cancels) = (Arc::clone(&self.tools), CancelOnDrop(handle));
        let work = spawn_blocking(move || {
            let _permit = permit;
            tools.call(&asked.name, asked.arguments.unwrap_or_default(), &cancel)
        });
        let done = tokio::select! {
            done = work => done,
            () = context.ct.cancelled() => return Err(cancelled()),
        };
        let ToolReply { content, is_error } = done
            .map_err(|_| ErrorData::internal_error("this is an error of the program", None))?
            .map_err(|why| ErrorData::invalid_params(why, None))?;
        let content = content.into_iter().map(Into::into).collect();
        let result = if is_error { CallToolResult::error(content) } else { CallToolResult::success(content) };
        Ok(result.into())
    }

    /// A request with parameters that do not fit its method comes here, as one of a method that is not known does.
    async fn on_custom_request(
        &self,
        CustomRequest { method, .. }: CustomRequest,
        _: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        Err(if METHODS.contains(&method.as_str()) {
            ErrorData::invalid_params(format!("the parameters do not fit {method}"), None)
        } else {
            let shown: String = method.chars().take(SHOWN).collect();
            let why = format!("there is no method {shown:?}: there are {}", METHODS.join(", "));
            ErrorData::new(ErrorCode::METHOD_NOT_FOUND, why, None)
        })
    }
}

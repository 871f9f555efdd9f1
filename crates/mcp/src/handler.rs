//! What a server asks of its client, and tells it: its roots are those of its entry, a person answers what it wants to know,
//! nothing else is answered.

use std::path::PathBuf;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use model::Cancel;
use rmcp::model::{
    ClientCapabilities, ClientResult, ErrorCode, Implementation, InitializeRequestParams, ProtocolVersion,
    ServerNotification, ServerRequest,
};
use rmcp::service::{NotificationContext, RequestContext};
use rmcp::{ErrorData, RoleClient, Service};
use serde_json::{Value, json};

use crate::elicitation::RunningCalls;
use crate::offered::file_address;
use crate::request_params::ELICITATION;

/// Version of the protocol by which servers are greeted: the newest that has a greeting.
pub(crate) const GREETED_BY: ProtocolVersion = ProtocolVersion::LATEST_WITH_INITIALIZE;

/// Answers to a server's requests.
pub(crate) struct Handler {
    /// Folders that it is told of.
    pub(crate) roots: Vec<PathBuf>,
    pub(crate) calls: RunningCalls,
    /// Whether it said that its tools are others.
    pub(crate) is_changed: Arc<AtomicBool>,
}

impl Service<RoleClient> for Handler {
    async fn handle_request(
        &self,
        request: ServerRequest,
        context: RequestContext<RoleClient>,
    ) -> Result<ClientResult, ErrorData> {
        match request {
            ServerRequest::PingRequest(_) => Ok(ClientResult::empty(())),
            ServerRequest::ListRootsRequest(_) => {
                let roots: Vec<Value> =
                    self.roots.iter().map(|root| json!({"uri": file_address(root)})).collect();
                let roots = serde_json::from_value(json!({"roots": roots}));
                roots
                    .map(ClientResult::ListRootsResult)
                    .map_err(|error| ErrorData::internal_error(error.to_string(), None))
            }
            ServerRequest::CustomRequest(request) if request.method == ELICITATION => {
                let (handle, taken_back) = Cancel::new();
                let mut asked = pin!(self.calls.elicit(request.params.unwrap_or_default(), taken_back));
                tokio::select! {
                    reply = &mut asked => reply.map(ClientResult::ElicitResult),
                    () = context.ct.cancelled() => {
                        handle.cancel();
                        // Until it stands no longer.
                        let _ = asked.await;
                        Err(ErrorData::internal_error("it was taken back", None))
                    }
                }
            }
            _ => Err(ErrorData::new(
                ErrorCode::METHOD_NOT_FOUND,
                "this client does not answer such requests",
                None,
            )),
        }
    }

    async fn handle_notification(
        &self,
        notification: ServerNotification,
        _: NotificationContext<RoleClient>,
    ) -> Result<(), ErrorData> {
        if matches!(notification, ServerNotification::ToolListChangedNotification(_)) {
            self.is_changed.store(true, Ordering::SeqCst);
        }
        Ok(())
    }

    fn get_info(&self) -> InitializeRequestParams {
        let capabilities: ClientCapabilities =
            serde_json::from_value(json!({"roots": {}, "elicitation": {"form": {}, "url": {}}}))
                .unwrap_or_default();
        let client = Implementation::new("drawloom", env!("CARGO_PKG_VERSION"));
        InitializeRequestParams::new(capabilities, client).with_protocol_version(GREETED_BY)
    }
}

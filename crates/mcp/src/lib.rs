//! Client of MCP servers that the owner named, and a server of tools that only read (spec: agent §5, security §15).
//!
//! A server is a program that runs behind walls for as long as this process, or lies at an address, which is reached through
//! the gate; how it is started is said by whoever makes a [`Server`]. It is started at the first call, and anew after it
//! ended. What it says is bounded and from outside. Its tools
//! are those that the owner accepted ([`AcceptedTools`]): one that is told otherwise than it was then is not called.
//!
//! [`ToolServer`] is the other side: what it serves is said by whoever implements [`ServedTools`], [`serve`] is its client at
//! two streams.

mod accepted;
mod address;
mod answer;
mod connection;
mod content;
mod elicitation;
mod handler;
mod http_body;
mod http_session;
mod life;
mod line_transport;
mod oauth;
mod offered;
mod request_params;
mod server;
mod streams;
mod tool_server;

pub use accepted::{AcceptedTools, SavedTools, ToolChange};
pub use address::ServerAddress;
pub use answer::ToolAnswer;
pub use connection::READY as START_TIMEOUT;
pub use content::{EmbeddedResource, ResourceBody, ResourceLink, ToolContent};
pub use line_transport::{ServeError, serve};
pub use oauth::{LoginRequest, SavedLogin, login};
pub use offered::OfferedTool;
pub use server::{CalledTool, Server, ServerOffer, ServerPlace, ServerState, StartServer, StartedServer};
pub use tool_server::{ServedTools, ToolReply, ToolServer};

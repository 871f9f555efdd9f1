//! The one gate for what leaves this machine (spec: security §10).
//!
//! A connection is opened here and nowhere else: for models, for weights, and for the web tools of an agent. The order is
//! fixed. Who is asked whether a call may run (policy, a person) judges the *name* first, so that what is refused has made
//! no lookup; the gate judges the name by the rule of its purpose, resolves it, judges every address it got, and connects
//! to these addresses alone. There is no second lookup between check and connection that could answer otherwise.
//!
//! What a rule allows follows from who chose the host. An address that the owner configured (a provider, a mirror, a
//! search engine) may lie on this machine or in its network. One that a model or a page chose may not
//! ([`Reach::Public`]), unless the owner named that host.
//!
//! Redirects of a fetch are followed by the gate itself, each of them judged as the first address was. A command of the
//! sandbox reaches the hosts that its call names through a [`Proxy`], which is this gate.

mod address;
mod client;
mod fetch;
mod gate;
mod name;
mod named_host;
mod proxy;
mod proxy_log;
mod proxy_request;
mod record;
mod resolve;
#[cfg(test)]
mod tests;
mod transfer_file;
mod visit;

pub use client::{Client, ClientOptions, Redirects, Response, SendError};
pub use fetch::{FetchError, FetchLimits, Fetched, fetch};
pub use gate::{Gate, Reach, Refusal, Rule};
pub use name::HostPort;
pub use named_host::NamedHost;
pub use proxy::Proxy;
pub use record::{Purpose, Transfer};
pub use reqwest::{Error, RequestBuilder, StatusCode, Url, header};
pub use resolve::Resolve;
pub use transfer_file::record_to;
pub use visit::{IsAwaited, Visited};

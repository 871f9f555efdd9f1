//! Tools of the web: a page by its address, and what a search engine finds (spec: agent §3).
//!
//! Policy decides on the host's name before anything is looked up; the gate (`egress`) judges what the name leads to. What
//! comes is from outside, whatever it says of itself.

mod fetch;
mod page;
mod search;

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use egress::{Client, ClientOptions, Gate, HostPort, Purpose, Reach, Redirects, Rule, Url};
use model::Cancel;
use percent_encoding::percent_decode_str;
use policy::CallMark;
use text::mask::MARK;
use tokio::runtime::Handle;

use crate::tool::{Tool, ToolScope};

pub use search::{SearchEngine, SearchService};

/// Names of these tools.
pub const WEB_TOOLS: [&str; 2] = [fetch::NAME, search::NAME];

/// Whether an address stands, as it is, in what the owner said or in a result that was shown. It blocks.
pub type IsShown = dyn Fn(&str) -> bool + Send + Sync;

/// What the web tools of a session work with.
#[derive(Clone)]
pub struct WebScope {
    pub gate: Gate,
    /// Hosts of this machine or its network that pages may be fetched from.
    pub private_hosts: Vec<HostPort>,
    /// The search engine; none where none is configured, and then there is no tool for it.
    pub search: Option<SearchService>,
    pub is_shown: Arc<IsShown>,
}

impl fmt::Debug for WebScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WebScope").field("search", &self.search).finish_non_exhaustive()
    }
}

/// What policy is told of a call that reaches out.
#[derive(Debug, Default)]
pub(crate) struct NetworkTarget {
    pub(crate) host: Option<String>,
    pub(crate) mark: Option<CallMark>,
}

/// The tools of the web.
pub fn tools(scope: &WebScope) -> Vec<Tool> {
    let fetch = fetch::tool(scope.clone());
    let search = scope.search.clone().map(|service| search::tool(scope.gate.clone(), service));
    [fetch].into_iter().chain(search).collect()
}

/// Time that a connection may take.
const CONNECT: Duration = Duration::from_secs(10);

fn client(gate: &Gate, purpose: Purpose, reach: Reach) -> Result<Client, String> {
    let options =
        ClientOptions { redirects: Redirects::No, connect_timeout: CONNECT, read_timeout: None, proxy: None };
    let client = gate.client(Rule { purpose, reach }, &options);
    client.map_err(|error| format!("this machine has no client for the web: {error}"))
}

/// Waits for what reaches out, until the call is cancelled. It blocks.
fn waiting<T>(cancel: &Cancel, work: impl Future<Output = Result<T, String>>) -> Result<T, String> {
    let mut cancel = cancel.clone();
    Handle::current().block_on(async {
        tokio::select! {
            done = work => done,
            () = cancel.cancelled() => Err("it was stopped".to_owned()),
        }
    })
}

/// Whether a text that is to be sent holds what is known to be secret, or the mark that stands for such: neither goes
/// anywhere, whoever wrote it there (spec: security §11).
fn holds_secret(scope: &ToolScope, text: &str) -> bool {
    let decoded = percent_decode_str(text).decode_utf8_lossy();
    [text, &decoded].iter().any(|text| text.contains(MARK) || scope.masker.mask(text).text != *text)
}

/// The host of an address, as policy compares hosts.
fn host(url: &Url) -> Option<String> {
    url.host_str().map(|host| host.trim_end_matches('.').to_owned())
}

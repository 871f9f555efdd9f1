//! What went through the proxy of one command, and what was refused.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::record::{Purpose, Transfer};

/// Hosts, and refusals, that are told one by one.
const MOST: usize = 16;

/// Counts of a command's connections, by host. Each host is recorded when it is dropped.
#[derive(Debug, Default)]
pub(crate) struct ProxyLog {
    reached: Mutex<BTreeMap<String, Arc<Counts>>>,
    refused: Mutex<BTreeMap<String, u64>>,
}

/// Bytes of all connections to one host.
#[derive(Debug, Default)]
struct Counts {
    connections: AtomicU64,
    sent: AtomicU64,
    received: AtomicU64,
}

/// One open connection.
pub(crate) struct Connection(Arc<Counts>);

impl ProxyLog {
    pub(crate) fn connected(&self, host: String) -> Connection {
        let of_host = Arc::clone(locked(&self.reached).entry(host).or_default());
        of_host.connections.fetch_add(1, Ordering::Relaxed);
        Connection(of_host)
    }

    /// A refusal in words. Of those that differ a bounded number is kept.
    pub(crate) fn refused(&self, why: String) {
        tracing::info!(%why, "a command was refused a connection");
        let mut refused = locked(&self.refused);
        let why = if refused.len() < MOST || refused.contains_key(&why) {
            why
        } else {
            "others are not reached either".to_owned()
        };
        *refused.entry(why).or_default() += 1;
    }

    /// Lines about all of it, so far.
    pub(crate) fn lines(&self) -> Vec<String> {
        let times = |count: u64| if count == 1 { String::new() } else { format!(" ({count} times)") };
        let refused = locked(&self.refused);
        let refused = refused.iter().map(|(why, count)| format!("{why}{}", times(*count)));
        let reached = locked(&self.reached);
        let more = reached.len().saturating_sub(MOST);
        let more = (more > 0).then(|| format!("reached {more} hosts more"));
        let reached = reached.iter().take(MOST).map(|(host, counts)| {
            let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
            let (sent, received) = (read(&counts.sent), read(&counts.received));
            let times = times(read(&counts.connections));
            format!("reached {host}{times}: {sent} bytes sent, {received} received")
        });
        reached.chain(more).chain(refused).collect()
    }
}

fn locked<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Connection {
    pub(crate) fn sent(&self, bytes: usize) {
        self.0.sent.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    pub(crate) fn received(&self, bytes: usize) {
        self.0.received.fetch_add(bytes as u64, Ordering::Relaxed);
    }
}

/// A line for each host: with one for each connection a command could push earlier lines out of the file.
impl Drop for ProxyLog {
    fn drop(&mut self) {
        for (host, counts) in std::mem::take(&mut *locked(&self.reached)) {
            let (sent, received) =
                (counts.sent.load(Ordering::Relaxed), counts.received.load(Ordering::Relaxed));
            drop(Transfer { host, purpose: Purpose::Command, sent: Some(sent), received });
        }
    }
}

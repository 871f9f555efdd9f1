//! Model servers on this machine, found by asking the addresses they are known for.
//!
//! Servers are looked for on loopback alone, and only when somebody asked (`init`, `model list --detect`), never when a
//! conversation starts: a port that answers is a program, and its name for a model is what it says (spec: security
//! §10). A local server that was named is asked for the window of its model, too ([`crate::context_windows`]).

use std::time::Duration;

use commands::CommandError;
use model::Probe;
use model::{Connection, DialectName, ListedModel, Timeouts, list_models, provider};

use crate::interrupt;
use crate::provider::ResolvedProvider;

/// Servers by the address they listen at unless told otherwise.
pub(crate) fn servers() -> Vec<(&'static str, &'static str)> {
    model::providers().iter().filter_map(|row| Some((row.name, row.detect?))).collect()
}

/// How long each may take.
const PATIENCE: Duration = Duration::from_millis(300);
/// How long a server that text is about to go to may take to tell a window: it may be at work, and without an answer a
/// window is assumed.
const WINDOW_PATIENCE: Duration = Duration::from_secs(2);

#[derive(Debug, Clone)]
pub(crate) struct FoundServer {
    /// Which program listens there by default; another may.
    pub(crate) name: &'static str,
    pub(crate) url: &'static str,
    pub(crate) models: Vec<ListedModel>,
}

/// Asks every address; those that do not answer in time, or not as such servers do, are not there.
///
/// # Errors
/// When the system gives no threads.
pub(crate) fn detect(servers: &[(&'static str, &'static str)]) -> Result<Vec<FoundServer>, CommandError> {
    let runtime = interrupt::runtime()?;
    let found = runtime.block_on(async {
        let mut asked = tokio::task::JoinSet::new();
        for (place, (name, url)) in servers.iter().copied().enumerate() {
            asked.spawn(async move {
                let timeouts = Timeouts { connect: PATIENCE, first_byte: PATIENCE, idle: PATIENCE };
                let connection = Connection { timeouts, ..Connection::new(url) };
                let probe = provider(name).and_then(|row| row.probe.as_ref());
                let asked = list_models(DialectName::OpenAiChat, connection, probe);
                let models = tokio::time::timeout(PATIENCE, asked).await.ok()?.ok()?;
                Some((place, FoundServer { name, url, models }))
            });
        }
        asked.join_all().await
    });
    runtime.shutdown_background();
    let mut found: Vec<_> = found.into_iter().flatten().collect();
    found.sort_by_key(|(place, _)| *place);
    Ok(found.into_iter().map(|(_, found)| found).collect())
}

/// The models a server says it has, or why it does not say: one on this machine answers within [`PATIENCE`].
///
/// # Errors
/// When the system gives no threads.
pub(crate) fn listed(
    reached: &ResolvedProvider<'_>,
) -> Result<Result<Vec<ListedModel>, String>, CommandError> {
    let connection = match reached.connection(reached.known_key()) {
        Ok(connection) => connection,
        Err(error) => return Ok(Err(error.to_string())),
    };
    let timeouts = Timeouts { connect: PATIENCE, first_byte: PATIENCE, idle: PATIENCE };
    let connection = Connection { timeouts, ..connection };
    let probe = reached.row.and_then(|row| row.probe.as_ref());
    let runtime = interrupt::runtime()?;
    let asked = async {
        let asked = list_models(reached.dialect(), connection, probe);
        match tokio::time::timeout(PATIENCE, asked).await {
            Ok(listed) => listed.map_err(|error| error.to_string()),
            Err(_) => Err("it did not answer in time".to_owned()),
        }
    };
    let found = runtime.block_on(asked);
    runtime.shutdown_background();
    Ok(found)
}

/// The window a server says a model of it has; none if it does not say, or not within [`WINDOW_PATIENCE`]. One of which
/// nothing is known is asked in the ways of all that are.
///
/// # Errors
/// When the system gives no threads, or Ctrl-C ended the wait.
pub(crate) fn window(reached: &ResolvedProvider<'_>, model: &str) -> Result<Option<u32>, CommandError> {
    let Ok(connection) = reached.connection(reached.known_key()) else { return Ok(None) };
    let timeouts = Timeouts { connect: WINDOW_PATIENCE, first_byte: WINDOW_PATIENCE, idle: WINDOW_PATIENCE };
    let dialect = reached.dialect();
    let probes: Vec<Option<&'static Probe>> = match reached.row {
        Some(row) => vec![row.probe.as_ref()],
        None => model::providers()
            .iter()
            .filter(|row| row.probe.is_some())
            .map(|row| row.probe.as_ref())
            .collect(),
    };
    let runtime = interrupt::runtime()?;
    let answers = runtime.block_on(async {
        let mut asked = tokio::task::JoinSet::new();
        for probe in probes {
            let connection = Connection { timeouts, ..connection.clone() };
            asked.spawn(async move {
                let asked = list_models(dialect, connection, probe);
                tokio::time::timeout(WINDOW_PATIENCE, asked).await.ok().and_then(Result::ok)
            });
        }
        tokio::select! {
            biased;
            _ = interrupt::interrupted() => None,
            answers = asked.join_all() => Some(answers),
        }
    });
    runtime.shutdown_background();
    let answers = answers.ok_or_else(interrupt::error)?;
    let told = answers.into_iter().flatten().filter_map(|listed| {
        // A server with one model has it, whatever the model is called there.
        let only = listed.len() == 1;
        listed.into_iter().find(|found| only || found.id == model)?.window
    });
    Ok(told.min())
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};

    use super::*;

    /// A server that answers one request, and one that answers none.
    #[test]
    fn a_server_that_answers_is_found_and_a_silent_one_is_not_waited_for() {
        let answers = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = |of: &std::net::TcpListener| -> &'static str {
            Box::leak(format!("http://{}", of.local_addr().unwrap()).into_boxed_str())
        };
        let servers = [("mute", address(&silent)), ("box", address(&answers))];
        std::thread::spawn(move || {
            for stream in answers.incoming() {
                let mut stream = stream.unwrap();
                let _ = stream.read(&mut [0; 2048]);
                let body = r#"{"object":"list","data":[{"id":"small:1b","object":"model"}]}"#;
                let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close";
                let _ = write!(stream, "{head}\r\ncontent-length: {}\r\n\r\n{body}", body.len());
            }
        });
        let began = std::time::Instant::now();
        let found = detect(&servers).unwrap();
        assert!(began.elapsed() < Duration::from_secs(5));
        let names: Vec<_> = found.iter().map(|found| (found.name, found.models[0].id.as_str())).collect();
        assert_eq!(names, [("box", "small:1b")]);
    }

    #[test]
    fn only_this_machine_is_asked() {
        for (_, url) in servers() {
            assert!(url.starts_with("http://127.0.0.1:"), "{url}");
        }
    }
}

//! One connection to the server.

use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures_util::TryStreamExt as _;
use futures_util::future::{join, try_join_all};
use tokio::sync::mpsc;
use tokio_postgres::error::SqlState;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{AsyncMessage, Client, Connection, NoTls, Row, Socket};

use super::statement::{Statements, translate};
use super::tables;
use super::tls::Route;
use super::value::{check, type_of};
use crate::engine::{Traffic, Value};
use crate::error::{ServerError, StoreError};
use crate::identity::StoreId;
use crate::server::ServerOptions;

/// The oldest version whose SQL the rules are written in.
const OLDEST: u32 = 15;

/// Sets of parameters from which on a statement is prepared before it runs.
const MANY: usize = 16;

/// Settings of a connection. Joins go by keys, as they do in SQLite, whatever a table without statistics suggests;
/// a process that is stopped within a transaction holds its locks no longer than this.
const SETTINGS: &str = "SET jit = off; SET enable_hashjoin = off; SET enable_mergejoin = off;
    SET lock_timeout = '5s'; SET idle_in_transaction_session_timeout = '30s'; SET client_min_messages = warning;
    SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'";

pub(super) struct Link {
    route: Route,
    /// How long a read may take.
    pub(super) read: Duration,
    round_trips: AtomicU64,
    /// Short reads, to which long ones give way.
    pub(super) traffic: Arc<Traffic>,
}

impl Link {
    pub(super) fn new(options: &ServerOptions) -> Result<Self, StoreError> {
        let route = Route::new(options)?;
        Ok(Self { route, read: options.limits.read, round_trips: AtomicU64::new(0), traffic: Arc::default() })
    }

    pub(super) fn server(&self) -> &str {
        &self.route.server
    }

    pub(super) fn round_trips(&self) -> u64 {
        self.round_trips.load(Ordering::Relaxed)
    }

    pub(super) fn trip(&self) {
        self.round_trips.fetch_add(1, Ordering::Relaxed);
    }

    /// Connects. That the server said something unasked goes to `notices`, once for all that nobody looked at yet; it ends with
    /// the connection.
    pub(super) async fn connect(&self, notices: mpsc::Sender<()>) -> Result<Client, StoreError> {
        let config = &self.route.config;
        let client = match &self.route.tls {
            Some(tls) => self.drive(config.connect(tls.clone()).await, notices),
            None => self.drive(config.connect(NoTls).await, notices),
        }?;
        client.batch_execute(SETTINGS).await.map_err(|error| failure(&error))?;
        Ok(client)
    }

    /// Serves a new connection from a task of its own.
    fn drive<S>(
        &self,
        connected: Result<(Client, Connection<Socket, S>), tokio_postgres::Error>,
        notices: mpsc::Sender<()>,
    ) -> Result<Client, StoreError>
    where
        S: tokio_postgres::tls::TlsStream + Unpin + Send + 'static,
    {
        let (client, mut connection) = connected.map_err(|error| self.unreachable(&error))?;
        let version = connection.parameter("server_version").unwrap_or_default().to_owned();
        if major(&version) < OLDEST {
            let server = self.server().to_owned();
            return Err(ServerError::TooOld { server, found: version }.into());
        }
        tokio::spawn(async move {
            while let Some(message) = poll_fn(|cx| connection.poll_message(cx)).await {
                match message {
                    Ok(AsyncMessage::Notification(_)) => drop(notices.try_send(())),
                    Ok(_) => {}
                    Err(error) => {
                        tracing::debug!(%error, "a connection to the database ended");
                        return;
                    }
                }
            }
        });
        Ok(client)
    }

    /// Why there is no connection.
    fn unreachable(&self, error: &tokio_postgres::Error) -> StoreError {
        let server = self.server().to_owned();
        let why = reason(error);
        match error.code() {
            Some(code) if code.code().starts_with("28") => ServerError::Login { server, why }.into(),
            // Without a password the library gives up before the server does.
            None if why.contains("password missing") || why.contains("authentication") => {
                ServerError::Login { server, why }.into()
            }
            _ => ServerError::Absent { server, why }.into(),
        }
    }
}

/// The major version of a server.
fn major(version: &str) -> u32 {
    version.split(|c: char| !c.is_ascii_digit()).next().and_then(|major| major.parse().ok()).unwrap_or(0)
}

/// An error with its causes.
fn reason(error: &tokio_postgres::Error) -> String {
    if let Some(error) = error.as_db_error() {
        return error.message().to_owned();
    }
    let mut reason = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(error) = source {
        reason = format!("{reason}: {error}");
        source = error.source();
    }
    reason
}

/// What a failure of a statement means.
pub(super) fn failure(error: &tokio_postgres::Error) -> StoreError {
    let why = reason(error);
    let Some(code) = error.code() else {
        let lost = error.is_closed() || why.starts_with("error communicating");
        return if lost { ServerError::Lost(why).into() } else { ServerError::Failed(why).into() };
    };
    match *code {
        SqlState::T_R_SERIALIZATION_FAILURE
        | SqlState::T_R_DEADLOCK_DETECTED
        | SqlState::LOCK_NOT_AVAILABLE => StoreError::Busy,
        SqlState::QUERY_CANCELED => StoreError::TooLong(0),
        SqlState::DISK_FULL => StoreError::DiskFull,
        SqlState::DATA_CORRUPTED | SqlState::INDEX_CORRUPTED => StoreError::Damaged(why),
        SqlState::PROGRAM_LIMIT_EXCEEDED => StoreError::Malformed(why),
        SqlState::IDLE_IN_TRANSACTION_SESSION_TIMEOUT => ServerError::Lost(why).into(),
        _ if ["08", "57"].contains(&&code.code()[..2]) => ServerError::Lost(why).into(),
        _ => ServerError::Failed(format!("{why} ({})", code.code())).into(),
    }
}

/// Whether a transaction that failed so was overtaken by another one, and would not be again.
pub(super) fn is_race(error: &tokio_postgres::Error) -> bool {
    let races =
        [SqlState::T_R_SERIALIZATION_FAILURE, SqlState::T_R_DEADLOCK_DETECTED, SqlState::UNIQUE_VIOLATION];
    error.code().is_some_and(|code| races.contains(code))
}

/// The rows of an answer, and how many rows a statement changed.
pub(super) struct Rows {
    pub(super) rows: Vec<Row>,
    pub(super) changed: u64,
}

/// A connection with its statements.
pub(super) struct Session {
    pub(super) client: Client,
    statements: Statements,
    /// The first half of the keys of locks: the number of a table, so that stores in one database have their own.
    pub(super) space: u32,
}

impl Session {
    /// Connects; of a store that is named it is checked whose tables are there, and they are made if that is said.
    pub(super) async fn open(link: &Link, named: Option<(StoreId, bool)>) -> Result<Self, StoreError> {
        let mut client = link.connect(mpsc::channel(1).0).await?;
        if let Some((store, makes_tables)) = named {
            tables::prepare(&mut client, link.server(), store, makes_tables).await?;
        }
        let space = space(&client).await?;
        Ok(Self { client, statements: Statements::default(), space })
    }

    /// Runs a statement with each of several sets of parameters, all in one round trip, with what comes before it.
    /// One that is new is prepared for the next time on the way.
    pub(super) async fn run(
        &self,
        before: Option<&str>,
        sql: &str,
        sets: &[&[Value<'_>]],
    ) -> Result<Result<Vec<Rows>, StoreError>, tokio_postgres::Error> {
        for params in sets {
            if let Err(refused) = check(params) {
                return Ok(Err(refused));
            }
        }
        let (begun, rows) = join(self.begin(before), self.all(sql, sets)).await;
        begun?;
        rows.map(Ok)
    }

    /// Runs a statement that is not prepared for the next time, with what comes before it.
    pub(super) async fn run_once(
        &self,
        before: Option<&str>,
        sql: &str,
        params: &[Value<'_>],
    ) -> Result<Result<Rows, StoreError>, tokio_postgres::Error> {
        if let Err(refused) = check(params) {
            return Ok(Err(refused));
        }
        let text = translate(sql);
        let rows = async {
            let typed = params.iter().map(|value| (as_sql(value), type_of(value)));
            collect(self.client.query_typed_raw(&text, typed).await?).await
        };
        let (begun, rows) = join(self.begin(before), rows).await;
        begun?;
        rows.map(Ok)
    }

    async fn begin(&self, before: Option<&str>) -> Result<(), tokio_postgres::Error> {
        match before {
            Some(before) => self.client.batch_execute(before).await,
            None => Ok(()),
        }
    }

    async fn all(&self, sql: &str, sets: &[&[Value<'_>]]) -> Result<Vec<Rows>, tokio_postgres::Error> {
        if sets.len() >= MANY {
            for params in sets {
                let types: Vec<Type> = params.iter().map(type_of).collect();
                if let (text, None) = self.statements.find(sql, &types) {
                    let statement = self.client.prepare_typed(&text, &types).await?;
                    self.statements.keep(sql, types, statement);
                }
            }
        }
        let mut new = Vec::new();
        let answers = sets.iter().map(|params| {
            let types: Vec<Type> = params.iter().map(type_of).collect();
            let (text, statement) = self.statements.find(sql, &types);
            if statement.is_none() && !new.contains(&types) {
                new.push(types.clone());
            }
            async move {
                let rows = match statement {
                    Some(statement) => self.client.query_raw(&statement, params.iter().map(as_sql)).await?,
                    None => {
                        let typed = params.iter().map(as_sql).zip(types);
                        self.client.query_typed_raw(&text, typed).await?
                    }
                };
                collect(rows).await
            }
        });
        let answers: Vec<_> = answers.collect();
        let prepared = try_join_all(new.into_iter().map(|types| async move {
            let (text, _) = self.statements.find(sql, &types);
            self.client.prepare_typed(&text, &types).await.map(|statement| (types, statement))
        }));
        let (rows, prepared) = join(try_join_all(answers), prepared).await;
        let rows = rows?;
        for (types, statement) in prepared? {
            self.statements.keep(sql, types, statement);
        }
        Ok(rows)
    }
}

fn as_sql<'v>(value: &'v Value<'_>) -> &'v (dyn ToSql + Sync) {
    value
}

async fn collect(rows: tokio_postgres::RowStream) -> Result<Rows, tokio_postgres::Error> {
    let mut stream = std::pin::pin!(rows);
    let mut rows = Vec::new();
    while let Some(row) = stream.as_mut().try_next().await? {
        rows.push(row);
    }
    Ok(Rows { rows, changed: stream.rows_affected().unwrap_or_default() })
}

/// The number of the table of trees.
pub(super) async fn space(client: &Client) -> Result<u32, StoreError> {
    let row = client.query_typed_one("SELECT CAST('trees' AS regclass)::oid", &[]).await;
    row.and_then(|row| row.try_get(0)).map_err(|error| failure(&error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_major_version_is_what_comes_first() {
        assert_eq!(major("15.18 (Debian 15.18-0+deb12u1)"), 15);
        assert_eq!(major("9.6.24"), 9);
        assert_eq!(major("17beta1"), 17);
        assert_eq!(major(""), 0);
    }
}

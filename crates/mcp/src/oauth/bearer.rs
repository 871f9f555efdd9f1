//! What lets a request in: the access of a login, renewed before it ends under a lock that all processes share.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use egress::header::HeaderValue;
use egress::{Gate, HostPort, Url};
use serde_json::Value;
use text::mask::{Masker, Secret};

use super::issuer::{Issuers, shown};
use super::saved::{Login, SavedLogin};

/// Seconds before its end at which an access is renewed, at most: of one that is short-lived a tenth.
const EARLY: u64 = 60;

/// The login at one server, as the file has it whenever it is asked.
pub(crate) struct Bearer {
    server: String,
    url: Url,
    saved: SavedLogin,
    issuers: Issuers,
    /// Every secret of it that this process knew.
    seen: Mutex<BTreeSet<String>>,
}

/// Why nobody is let in any more, or not now.
#[derive(Debug)]
pub(crate) struct LoginEnded {
    pub(crate) why: String,
    /// Whether no word of it is a stranger's.
    pub(crate) is_own: bool,
}

impl LoginEnded {
    /// In words of Drawloom's own alone.
    const fn own(why: String) -> Self {
        Self { why, is_own: true }
    }
}

impl Bearer {
    /// The login at the server of a name and an address. What is renewed is asked of the public network and these hosts.
    pub(crate) fn new(
        gate: &Gate,
        (server, url): (&str, Url),
        named: Vec<HostPort>,
        saved: SavedLogin,
    ) -> Result<Self, String> {
        let issuers = Issuers::new(gate, named)?;
        Ok(Self { server: server.to_owned(), url, saved, issuers, seen: Mutex::default() })
    }

    /// What a person does about it.
    pub(crate) fn way_in(&self) -> String {
        format!("`drawloom mcp login {}`", self.server)
    }

    fn ended(&self, why: &str) -> LoginEnded {
        LoginEnded::own(format!("{why}: {} begins one", self.way_in()))
    }

    /// The access, renewed if it is about to end; none where nobody logged in there.
    ///
    /// # Errors
    /// It has ended.
    pub(crate) async fn access(self: &Arc<Self>) -> Result<Option<String>, LoginEnded> {
        let Some(login) = self.read()? else { return Ok(None) };
        match login.renew_at.is_some_and(|at| at <= now()) {
            true => self.renewed(&login.access_token).await.map(Some),
            false => Ok(Some(login.access_token)),
        }
    }

    /// The access as it is; none where nobody logged in there.
    ///
    /// # Errors
    /// The login cannot be read.
    pub(crate) fn present(&self) -> Result<Option<String>, LoginEnded> {
        Ok(self.read()?.map(|login| login.access_token))
    }

    fn read(&self) -> Result<Option<Login>, LoginEnded> {
        let login = self.saved.read().map_err(LoginEnded::own)?;
        // One for an address that stood there before is for no other.
        let login = login.filter(|login| login.resource == self.url.as_str());
        if let Some(login) = &login {
            let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
            seen.extend(login.secrets().map(str::to_owned));
        }
        Ok(login)
    }

    /// The access in the place of one that ends or was refused: that which another process got meanwhile, or a new one.
    ///
    /// # Errors
    /// It is not renewed. A refused login is dropped.
    pub(crate) async fn renewed(self: &Arc<Self>, old: &str) -> Result<String, LoginEnded> {
        let (this, old) = (Arc::clone(self), old.to_owned());
        // What renews is spent once it is said: whoever asked may go, and what came of it is kept.
        let renewing = tokio::spawn(async move { this.renew(&old).await });
        let stopped = || LoginEnded::own("the login could not be renewed: it was stopped".to_owned());
        renewing.await.unwrap_or_else(|_| Err(stopped()))
    }

    async fn renew(&self, old: &str) -> Result<String, LoginEnded> {
        let _lock = self.saved.lock().await.map_err(LoginEnded::own)?;
        let login = self.read()?.ok_or_else(|| self.ended("the login is gone"))?;
        if login.access_token != old {
            return Ok(login.access_token);
        }
        let dropped = |why: &str| {
            let removed = self.saved.remove();
            removed.map_or_else(LoginEnded::own, |_| self.ended(why))
        };
        let Some(refresh) = &login.refresh_token else { return Err(dropped("the login has ended")) };
        let fields =
            [("grant_type", "refresh_token"), ("refresh_token", refresh), ("resource", self.url.as_str())];
        let place = Url::parse(&login.token_endpoint).map_err(|_| self.ended("the login is damaged"))?;
        let answered = self.issuers.token(&place, &login.client, &fields).await;
        // It may name an address of theirs.
        let (status, told) = answered.map_err(|why| LoginEnded {
            why: format!("the login could not be renewed: {why}"),
            is_own: false,
        })?;
        if matches!(status.as_u16(), 400 | 401 | 403) {
            return Err(dropped("the login was not renewed, and is dropped"));
        }
        let Some(granted) = Granted::of(&told).filter(|_| status.is_success()) else {
            let why = format!("the login could not be renewed (HTTP {})", status.as_u16());
            return Err(LoginEnded::own(why));
        };
        let renewed = Login {
            access_token: granted.access,
            refresh_token: granted.refresh.or_else(|| login.refresh_token.clone()),
            renew_at: granted.renew_at,
            ..login
        };
        self.saved.write(&renewed).map_err(LoginEnded::own)?;
        self.read()?;
        Ok(renewed.access_token)
    }

    /// A text without the secrets of the login.
    pub(crate) fn mask(&self, text: String) -> String {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if seen.is_empty() {
            return text;
        }
        let secrets: Vec<&str> = seen.iter().map(String::as_str).filter(|value| value.len() >= 8).collect();
        masked(&text, &format!("mcp.{}.login", self.server), &secrets)
    }
}

/// A text without these secrets, in whatever form; those that are too long or short for that as they stand.
fn masked(text: &str, name: &str, secrets: &[&str]) -> String {
    let known: Vec<Secret> = secrets.iter().filter_map(|value| Secret::new(name, *value).ok()).collect();
    let masked = Masker::new(&known).map(|masker| masker.mask(text).text.into_owned());
    secrets.iter().fold(masked.unwrap_or_else(|_| text.to_owned()), |text, value| {
        if text.contains(value) { text.replace(value, &format!("⟦secret:{name}⟧")) } else { text }
    })
}

pub(super) fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// What an issuer grants.
pub(super) struct Granted {
    pub(super) access: String,
    pub(super) refresh: Option<String>,
    pub(super) renew_at: Option<u64>,
}

impl Granted {
    /// Reads it; none of what is no bearer access.
    pub(super) fn of(told: &Value) -> Option<Self> {
        let text = |key: &str| told[key].as_str().filter(|text| !text.is_empty()).map(str::to_owned);
        let is_bearer = text("token_type").is_none_or(|kind| kind.eq_ignore_ascii_case("bearer"));
        let renew_at = told["expires_in"]
            .as_u64()
            .map(|seconds| now().saturating_add(seconds - EARLY.min(seconds.div_ceil(10))));
        let is_sendable = |access: &String| HeaderValue::from_str(access).is_ok();
        let access = text("access_token").filter(|access| is_bearer && is_sendable(access))?;
        Some(Self { access, refresh: text("refresh_token"), renew_at })
    }
}

/// What an issuer says of an error: its code, and in its own words, without the secrets of the login.
pub(super) fn error_told(told: &Value, secrets: &[&str]) -> String {
    let words = [&told["error"], &told["error_description"]].into_iter().filter_map(Value::as_str);
    words.map(|said| shown(&masked(said, "login", secrets))).collect::<Vec<_>>().join(": ")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_access_is_renewed_a_minute_before_its_end_or_a_tenth_of_its_life() {
        let renews = |seconds: u64| {
            let now = now();
            let granted = Granted::of(&json!({"access_token": "a", "expires_in": seconds})).unwrap();
            granted.renew_at.unwrap() - now
        };
        for (seconds, expected) in [(3600, 3540), (600, 540), (60, 54), (10, 9), (1, 0), (0, 0)] {
            let found = renews(seconds);
            // The clock may have gone on between the two.
            assert!(found == expected || found == expected + 1, "{seconds}: {found}");
        }
        assert_eq!(Granted::of(&json!({"access_token": "a"})).unwrap().renew_at, None);
    }
}

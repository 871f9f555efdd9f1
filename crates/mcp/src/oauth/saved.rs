//! A login as it is kept: a file of the home that its owner alone reads.

use std::fs::{self, DirBuilder, File};
use std::io::{self, ErrorKind};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use egress::Url;
use serde::{Deserialize, Serialize};

use super::client::RegisteredClient;

/// Bytes of the file, at most.
const LONGEST: u64 = 1 << 20;

/// What was got at a login.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Login {
    /// The server that it is for.
    pub(crate) resource: String,
    /// Where it is renewed.
    pub(crate) token_endpoint: String,
    #[serde(flatten)]
    pub(crate) client: RegisteredClient,
    pub(crate) access_token: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) refresh_token: Option<String>,
    /// Second since 1970 from which the access is renewed, where it was told when it ends.
    #[serde(alias = "renews", default, skip_serializing_if = "Option::is_none")]
    pub(crate) renew_at: Option<u64>,
}

impl Login {
    pub(crate) fn secrets(&self) -> impl Iterator<Item = &str> {
        let others = [&self.refresh_token, &self.client.secret].into_iter().flatten();
        std::iter::once(&self.access_token).chain(others).map(String::as_str)
    }
}

/// File of the login at a server.
#[derive(Debug, Clone)]
pub struct SavedLogin {
    folder: PathBuf,
    name: String,
}

impl SavedLogin {
    /// File of the server of this name, in a folder that is made when it is needed.
    pub fn of(folder: PathBuf, server: &str) -> Self {
        Self { folder, name: workspace::file_name_of_key(server) }
    }

    /// All that are kept in this folder, by their names in it.
    ///
    /// # Errors
    /// The folder cannot be read.
    pub fn within(folder: &Path) -> io::Result<Vec<Self>> {
        let entries = match fs::read_dir(folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let mut all = Vec::new();
        for entry in entries {
            let name = entry?.file_name();
            let name = name.to_str().and_then(|name| name.strip_suffix(".json"));
            all.extend(name.map(|name| Self { folder: folder.to_owned(), name: name.to_owned() }));
        }
        all.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(all)
    }

    /// Name of the file in its folder, without `.json`.
    pub fn name(&self) -> &str {
        &self.name
    }

    fn path(&self) -> PathBuf {
        self.folder.join(format!("{}.json", self.name))
    }

    /// Reads it; none where nobody logged in.
    ///
    /// # Errors
    /// It cannot be read. Nothing of it is told.
    pub(crate) fn read(&self) -> Result<Option<Login>, String> {
        let path = self.path();
        match workspace::read_small_file(&path, LONGEST) {
            Ok(bytes) => serde_json::from_slice(&bytes).map(Some).map_err(|_| {
                format!("{} holds no login: `drawloom mcp logout` takes it away", path.display())
            }),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error.to_string()),
        }
    }

    /// Whether there is a login for this address.
    pub fn is_for(&self, url: &str) -> bool {
        let login = self.read().ok().flatten();
        login.is_some_and(|login| Url::parse(url.trim()).is_ok_and(|url| url.as_str() == login.resource))
    }

    /// Secrets of it, for whoever masks them.
    ///
    /// # Errors
    /// It cannot be read. Nothing of it is told.
    pub fn secrets(&self) -> Result<Vec<String>, String> {
        let login = self.read()?;
        Ok(login.iter().flat_map(Login::secrets).map(str::to_owned).collect())
    }

    /// Writes it, with the lock held.
    pub(crate) fn write(&self, login: &Login) -> Result<(), String> {
        let written = serde_json::to_vec_pretty(login).map_err(io::Error::other);
        let written = written.and_then(|text| workspace::replace_small_file_durably(&self.path(), &text));
        written.map_err(|error| format!("cannot write {}: {error}", self.path().display()))
    }

    /// Takes it away. Whether there was one.
    ///
    /// # Errors
    /// The file could not be removed.
    pub fn remove(&self) -> Result<bool, String> {
        match fs::remove_file(self.path()) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            Err(error) => Err(format!("cannot remove {}: {error}", self.path().display())),
        }
    }

    /// Until it is dropped no other process changes the login. It is waited for on a thread of its own.
    pub(crate) async fn lock(&self) -> Result<File, String> {
        let (folder, lock) = (self.folder.clone(), self.folder.join(format!("{}.lock", self.name)));
        let locked = tokio::task::spawn_blocking(move || locked(&folder, &lock)).await;
        let locked = locked.map_err(io::Error::other).and_then(|locked| locked);
        locked.map_err(|error| format!("cannot lock the login in {}: {error}", self.folder.display()))
    }
}

fn locked(folder: &Path, lock: &Path) -> io::Result<File> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    let file = workspace::open_lock_file(lock)?;
    file.lock()?;
    Ok(file)
}

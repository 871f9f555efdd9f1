//! `models.json`: what is installed, and the hash of each file as it was made here.

use std::collections::BTreeMap;
use std::io::{self, Read};

use loom::digest::Digest;
use serde::{Deserialize, Serialize};

use crate::error::WeightsError;
use crate::files;
use crate::folders::Folders;

const VERSION: u32 = 1;
const MAX_BYTES: u64 = 1024 * 1024;

/// The whole file.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Register {
    version: u32,
    models: BTreeMap<String, Entry>,
}

/// One installed model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Entry {
    /// The SHA-256 of the converted file.
    pub(crate) sha256: Digest,
    /// Its size in bytes.
    pub(crate) bytes: u64,
    /// The SHA-256 of the file it was made of.
    pub(crate) made_of: Digest,
}

impl Register {
    /// Reads it; empty where there is none.
    pub(crate) fn read(folders: &Folders) -> Result<Self, WeightsError> {
        let path = folders.register();
        let unreadable = |why: String| WeightsError::Register { path: path.clone(), why };
        let mut bytes = Vec::new();
        match files::open(&path).and_then(|file| file.take(MAX_BYTES).read_to_end(&mut bytes)) {
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok(Self { version: VERSION, models: BTreeMap::new() });
            }
            Err(error) => return Err(unreadable(error.to_string())),
        }
        // The version first: what a later one wrote need not fit.
        let value: serde_json::Value =
            serde_json::from_slice(&bytes).map_err(|error| unreadable(error.to_string()))?;
        if value.get("version").and_then(serde_json::Value::as_u64) != Some(u64::from(VERSION)) {
            return Err(unreadable("it was written by another version of Drawloom".to_owned()));
        }
        serde_json::from_value(value).map_err(|error| unreadable(error.to_string()))
    }

    pub(crate) fn entry(&self, name: &str) -> Option<&Entry> {
        self.models.get(name)
    }

    /// Writes it with this entry; under the lock only.
    pub(crate) fn write_with(
        mut self,
        name: &str,
        entry: Entry,
        folders: &Folders,
    ) -> Result<(), WeightsError> {
        self.models.insert(name.to_owned(), entry);
        let path = folders.register();
        let mut bytes = serde_json::to_vec_pretty(&self)
            .map_err(|error| WeightsError::Register { path: path.clone(), why: error.to_string() })?;
        bytes.push(b'\n');
        files::replace(&path, &bytes)
    }
}

//! Registry of installed weights, `models.json`: the hash of each file as it was made here.

use std::collections::BTreeMap;
use std::io::{self, Read};

use loom::digest::Digest;
use serde::{Deserialize, Serialize};

use crate::error::WeightsError;
use crate::files;
use crate::weights_folders::WeightsFolders;

const VERSION: u32 = 1;
const MAX_BYTES: u64 = 1024 * 1024;

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Registry {
    version: u32,
    models: BTreeMap<String, RegistryEntry>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RegistryEntry {
    /// The SHA-256 of the converted file.
    pub(crate) sha256: Digest,
    /// Size of the converted file, in bytes.
    pub(crate) bytes: u64,
    /// The SHA-256 of the file it was made of.
    pub(crate) made_of: Digest,
}

impl Registry {
    /// Reads the registry; an absent file is an empty one.
    pub(crate) fn read(folders: &WeightsFolders) -> Result<Self, WeightsError> {
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

    pub(crate) fn entry(&self, name: &str) -> Option<&RegistryEntry> {
        self.models.get(name)
    }

    /// Writes the registry with this entry. Only under the lock.
    pub(crate) fn write_with(
        mut self,
        name: &str,
        entry: RegistryEntry,
        folders: &WeightsFolders,
    ) -> Result<(), WeightsError> {
        self.models.insert(name.to_owned(), entry);
        let path = folders.register();
        let mut bytes = serde_json::to_vec_pretty(&self)
            .map_err(|error| WeightsError::Register { path: path.clone(), why: error.to_string() })?;
        bytes.push(b'\n');
        files::replace(&path, &bytes)
    }
}

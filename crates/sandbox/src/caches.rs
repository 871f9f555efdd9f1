//! Package caches of the owner, which the commands of a session read without changing them (spec: security §1).
//!
//! At level *full* each is the lower layer of an overlay, whose upper folder lies beside the session's other files: a
//! command writes into its cache, and the owner's stays as it is. The overlay is mounted once, in the mounts of the
//! session, and each command has a copy of that mount. The upper folder is of this session alone: it is made for it, locked
//! by its process, removed with it, and after a crash by whoever opens the next session. Nothing of it is used again.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// Package cache that the commands of a session read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PackageCache {
    /// The owner's folder, absolute and without links. It is never written.
    #[serde(with = "crate::path_form")]
    pub folder: PathBuf,
    /// Path below the `HOME` of a command that it is shown at.
    #[serde(with = "crate::path_form")]
    pub place: PathBuf,
}

/// How the commands of a session have a package cache.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CacheState {
    /// Commands read the cache, and what they write to it lasts as long as the session.
    Layered,
    /// Commands read the cache; writing is refused. Why there is no layer.
    ReadOnly(String),
    /// Commands do not have the cache, and why.
    Absent(String),
}

/// What a helper makes the mount of a package cache from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct CacheLayers {
    #[serde(with = "crate::path_form")]
    pub(crate) folder: PathBuf,
    /// Empty folder of the session's for what is written.
    #[serde(with = "crate::path_form")]
    pub(crate) own: PathBuf,
    /// Files of the cache that no command sees, relative to it. Where that is not known, nothing of it is shown.
    #[serde(with = "crate::path_form")]
    pub(crate) covered: Result<Vec<PathBuf>, String>,
}

/// Package cache of a session, and where a command has it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct CachePlace {
    /// Number among the mounts of the session.
    pub(crate) number: usize,
    /// Path below `HOME`.
    #[serde(with = "crate::path_form")]
    pub(crate) place: PathBuf,
}

//! What was learned of each model's tokenizer, kept between processes (spec: context §4).
//!
//! One small file a model in the home's cache. It fails open: a file that cannot be read, or is of another version,
//! is nothing learned, and the estimate begins at its priors again. Of two processes that learn at once the last one
//! to write is kept.

use std::io;
use std::path::PathBuf;

use context::{Features, Fit};
use loom::Digest;
use model::{ModelInfo, Usage};
use serde::{Deserialize, Serialize};
use store::home::{Home, HomeDir};

/// The largest file that is read, in bytes.
const MAX_FILE: u64 = 64 * 1024;

#[derive(Serialize, Deserialize)]
struct Kept {
    /// Provider and name of the model.
    model: String,
    fit: Fit,
}

/// What is known of a model's tokenizer.
pub fn known(home: &Home, info: &ModelInfo) -> Fit {
    let name = name(info);
    let kept = file(home, &name).and_then(|file| {
        if std::fs::metadata(&file)?.len() > MAX_FILE {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        let kept: Kept = serde_json::from_slice(&std::fs::read(file)?)?;
        Ok(kept)
    });
    match kept {
        Ok(kept) if kept.model == name && kept.fit.family() == info.tokenizer => kept.fit,
        _ => Fit::new(info.tokenizer),
    }
}

/// Learns from a response: what was sent and what was reported for it.
pub fn learn(home: &Home, info: &ModelInfo, features: &Features, usage: &Usage) {
    let mut fit = known(home, info);
    fit.observe(features, usage.input_uncached + usage.cache_read + usage.cache_write);
    keep(home, info, fit);
}

/// Learns from a refusal: the request was longer than the window, although its estimate was not.
pub fn too_long(home: &Home, info: &ModelInfo, features: &Features) {
    let mut fit = known(home, info);
    fit.was_too_long(features, u64::from(info.window));
    keep(home, info, fit);
}

fn keep(home: &Home, info: &ModelInfo, fit: Fit) {
    let name = name(info);
    let written = file(home, &name).and_then(|file| {
        let bytes = serde_json::to_vec(&Kept { model: name, fit })?;
        let new = file.with_extension(format!("{}.new", std::process::id()));
        std::fs::write(&new, bytes)?;
        std::fs::rename(&new, &file)
    });
    if let Err(error) = written {
        tracing::debug!(%error, "what was learned of a tokenizer could not be kept");
    }
}

fn name(info: &ModelInfo) -> String {
    format!("{}/{}", info.provider, info.name)
}

fn file(home: &Home, name: &str) -> io::Result<PathBuf> {
    let cache = home.dir(HomeDir::Cache).map_err(io::Error::other)?;
    let folder = cache.join("estimates");
    std::fs::create_dir_all(&folder)?;
    let digest = Digest::of(name.as_bytes()).to_string();
    Ok(folder.join(format!("{}.json", &digest[..16])))
}

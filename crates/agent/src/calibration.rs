//! What was learned of each model's tokenizer, kept between processes (spec: context §4).
//!
//! One small file a model in the home's cache. It fails open: a file that cannot be read, or is of another version,
//! is nothing learned, and the estimate begins at its priors again. Of two processes that learn at once the last one
//! to write is kept.

use std::io;
use std::path::PathBuf;

use context::{Calibration, Estimator, Features};
use loom::Digest;
use model::{Model, ModelInfo, SourceKind, TokenUsage};
use serde::{Deserialize, Serialize};
use store::home::{Home, HomeDir};

/// The largest file that is read, in bytes.
const MAX_FILE: u64 = 64 * 1024;

#[derive(Serialize, Deserialize)]
struct CalibrationFile {
    /// Provider and name of the model.
    model: String,
    fit: Calibration,
}

/// What counts or estimates a model's tokens.
pub fn estimator(home: &Home, model: &dyn Model) -> Estimator {
    known(home, model.info()).estimator().counting(model.counter())
}

/// Whether nothing was learned of a model's tokenizer yet.
pub(crate) fn has_no_observations(home: &Home, info: &ModelInfo) -> bool {
    known(home, info) == Calibration::new(info.tokenizer.as_str())
}

/// What is known of a model's tokenizer.
fn known(home: &Home, info: &ModelInfo) -> Calibration {
    let name = info.full_name();
    let kept = file(home, &name).and_then(|file| {
        let kept: CalibrationFile = serde_json::from_slice(&workspace::read_regular(&file, MAX_FILE)?)?;
        Ok(kept)
    });
    match kept {
        Ok(kept) if kept.model == name && kept.fit.family() == info.tokenizer.as_str() => kept.fit,
        _ => Calibration::new(info.tokenizer.as_str()),
    }
}

/// Learns from a response: what was sent and what was reported for it. A script reports what it likes.
pub(crate) fn learn(home: &Home, info: &ModelInfo, features: &Features, usage: &TokenUsage) {
    if info.kind == SourceKind::Script {
        return;
    }
    let mut fit = known(home, info);
    fit.observe(features, usage.input());
    keep(home, info, fit);
}

/// Learns from a refusal: the request was longer than the window, although its estimate was not.
pub(crate) fn too_long(home: &Home, info: &ModelInfo, features: &Features) {
    let mut fit = known(home, info);
    fit.was_too_long(features, u64::from(info.window));
    keep(home, info, fit);
}

fn keep(home: &Home, info: &ModelInfo, fit: Calibration) {
    let name = info.full_name();
    let written = file(home, &name).and_then(|file| {
        workspace::replace_small_file(&file, &serde_json::to_vec(&CalibrationFile { model: name, fit })?)
    });
    if let Err(error) = written {
        tracing::debug!(%error, "what was learned of a tokenizer could not be kept");
    }
}

fn file(home: &Home, name: &str) -> io::Result<PathBuf> {
    let cache = home.dir(HomeDir::Cache).map_err(io::Error::other)?;
    let folder = cache.join("estimates");
    std::fs::create_dir_all(&folder)?;
    let digest = Digest::of(name.as_bytes()).to_string();
    Ok(folder.join(format!("{}.json", &digest[..16])))
}

#[cfg(test)]
mod tests {
    use store::home::HomeOptions;

    use super::*;

    fn model(name: &str) -> ModelInfo {
        ModelInfo::local("box", name, 8_192, 1_024)
    }

    fn features() -> Features {
        let mut features = Features::default();
        features.add(&"The rain is in the hand of the weaver. ".repeat(70));
        features.messages = 4;
        features
    }

    fn usage(input: u64) -> TokenUsage {
        TokenUsage { input_uncached: input, ..TokenUsage::default() }
    }

    #[test]
    fn what_was_learned_is_there_for_the_next_process_and_for_this_model_alone() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::open(&folder.path().join("home"), HomeOptions::default()).unwrap();
        let before = known(&home, &model("a")).estimator().of_features(&features());
        for _ in 0..20 {
            learn(&home, &model("a"), &features(), &usage(700));
        }
        let after = known(&home, &model("a")).estimator().of_features(&features());
        assert!((700..=770).contains(&after) && after < before, "{before} became {after}");
        assert_eq!(known(&home, &model("b")).responses(), 0);
        let script = ModelInfo { kind: SourceKind::Script, ..model("c") };
        learn(&home, &script, &features(), &usage(700));
        assert_eq!(known(&home, &script).responses(), 0, "a script teaches nothing");
    }

    #[test]
    fn a_file_that_cannot_be_read_is_nothing_learned() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::open(&folder.path().join("home"), HomeOptions::default()).unwrap();
        learn(&home, &model("a"), &features(), &usage(700));
        let kept = file(&home, "box/a").unwrap();
        assert!(kept.exists());
        // The second is of a version that had one fit for everything.
        for text in ["{", r#"{"model":"box/a","fit":{"family":"unknown","responses":9,"weights":[1.0]}}"#] {
            std::fs::write(&kept, text).unwrap();
            assert_eq!(known(&home, &model("a")).responses(), 0, "{text}");
        }
        too_long(&home, &model("a"), &features());
        assert_eq!(known(&home, &model("a")).responses(), 1);
    }
}

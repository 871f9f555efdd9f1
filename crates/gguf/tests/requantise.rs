//! Rewriting a model into a type that is fast here.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking, in its helpers too")]

#[path = "support/tiny.rs"]
#[allow(dead_code, reason = "several tests share it, none uses all of it")]
mod tiny;

use gguf::{Engine, EngineOptions, GgufHeader, TensorType, requantise};
use tiny::{TINY, Tiny};

fn header(path: &std::path::Path) -> GgufHeader {
    GgufHeader::read(&mut std::fs::File::open(path).unwrap()).unwrap()
}

#[test]
fn slow_matrices_become_8_bit_blocks_and_everything_else_stays() {
    let folder = tempfile::tempdir().unwrap();
    let (source, target) = (folder.path().join("a.gguf"), folder.path().join("b.gguf"));
    std::fs::write(&source, Tiny { kind: 3, ..TINY }.file().bytes()).unwrap();
    let mut told = Vec::new();
    let converted = requantise(&source, &target, |progress| told.push(progress)).unwrap();

    let (old, new) = (header(&source), header(&target));
    assert_eq!(old.metadata, new.metadata);
    assert_eq!(converted, old.tensors.iter().filter(|tensor| tensor.kind == TensorType::Q4_1).count());
    for (old, new) in old.tensors.iter().zip(&new.tensors) {
        assert_eq!((&old.name, &old.dimensions), (&new.name, &new.dimensions));
        assert_eq!(new.kind, if old.kind == TensorType::Q4_1 { TensorType::Q8_0 } else { old.kind });
    }
    assert!(told.iter().is_sorted_by_key(|progress| progress.done));
    assert!(told.last().is_some_and(|last| last.done == last.total));
    assert_eq!(Engine::load(&source, &EngineOptions::default()).unwrap().info().slow_matrices, 16);
    assert_eq!(Engine::load(&target, &EngineOptions::default()).unwrap().info().slow_matrices, 0);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2, "nothing is left beside");
}

#[test]
fn a_fast_model_is_copied_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let (source, target) = (folder.path().join("a.gguf"), folder.path().join("b.gguf"));
    std::fs::write(&source, TINY.file().bytes()).unwrap();
    assert_eq!(requantise(&source, &target, |_| {}).unwrap(), 0);
    assert_eq!(std::fs::read(&source).unwrap(), std::fs::read(&target).unwrap());
}

#[test]
fn a_broken_source_leaves_the_target_alone() {
    let folder = tempfile::tempdir().unwrap();
    let (source, target) = (folder.path().join("a.gguf"), folder.path().join("b.gguf"));
    let bytes = TINY.file().bytes();
    std::fs::write(&source, &bytes[..bytes.len() - 1]).unwrap();
    std::fs::write(&target, "what was there").unwrap();
    assert!(requantise(&source, &target, |_| {}).is_err());
    assert_eq!(std::fs::read(&target).unwrap(), b"what was there");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2, "nothing is left beside");
}

//! Files that lie: each is an error with a name, soon and without memory for what it claims.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking, in its helpers too")]

#[path = "support/tiny.rs"]
#[allow(dead_code, reason = "several tests share it, none uses all of it")]
mod tiny;

use std::io::Cursor;
use std::time::{Duration, Instant};

use gguf::{Engine, EngineOptions, GgufHeader, LoadError};
use proptest::prelude::*;
use tiny::{File, Meta, TINY, Tiny};

fn load_bytes(bytes: &[u8]) -> Result<Engine, LoadError> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("hostile.gguf");
    std::fs::write(&path, bytes).unwrap();
    let begun = Instant::now();
    let loaded = Engine::load(&path, &EngineOptions::default());
    assert!(begun.elapsed() < Duration::from_secs(1), "{:?}", begun.elapsed());
    loaded
}

fn refused(file: &File) -> LoadError {
    load_bytes(&file.bytes()).err().unwrap()
}

fn tiny() -> File {
    TINY.file()
}

/// The control: what the others change is sound before they do.
#[test]
fn the_tiny_model_itself_loads() {
    for family in ["llama", "qwen2", "qwen3"] {
        for kind in [0, 3, 8] {
            let file = Tiny { family, kind, ..TINY }.file();
            assert!(load_bytes(&file.bytes()).is_ok(), "{family} {kind}");
        }
    }
    assert!(load_bytes(&File { version: 2, ..tiny() }.bytes()).is_ok());
}

#[test]
fn what_is_no_gguf_is_said_to_be_none() {
    for bytes in [&b""[..], b"GG", b"ggjt\x03\0\0\0 old", b"PK\x03\x04 a zip", &[0; 4096]] {
        assert!(matches!(load_bytes(bytes), Err(LoadError::NotGguf)), "{bytes:?}");
    }
    assert!(matches!(refused(&File { version: 4, ..tiny() }), LoadError::Version(4)));
    assert!(matches!(refused(&File { version: 3_u32.swap_bytes(), ..tiny() }), LoadError::ByteOrder));
}

#[test]
fn a_file_cut_anywhere_is_an_error() {
    let bytes = tiny().bytes();
    let head = bytes.len() - 100_000;
    for length in (0..head).step_by(97).chain([bytes.len() - 1, bytes.len() - 4_000]) {
        assert!(GgufHeader::read(&mut Cursor::new(&bytes[..length])).is_err(), "{length}");
    }
    assert!(GgufHeader::read(&mut Cursor::new(&bytes)).is_ok());
}

#[test]
fn counts_and_lengths_are_claims() {
    let claim = |at: usize, number: u64| {
        let mut bytes = tiny().bytes();
        bytes[at..at + 8].copy_from_slice(&number.to_le_bytes());
        load_bytes(&bytes).err().unwrap()
    };
    for at in [8, 16] {
        for number in [u64::MAX, 1 << 40, 65_537] {
            assert!(matches!(claim(at, number), LoadError::Limit { .. }), "{at} {number}");
        }
    }
    // The length of the first key.
    assert!(matches!(claim(24, u64::MAX), LoadError::Limit { what: "a key", .. }));
    let list = |kind: u32, count: u64| {
        let value = [kind.to_le_bytes().to_vec(), count.to_le_bytes().to_vec()].concat();
        refused(&tiny().with("a.list", Meta::Raw(9, value)))
    };
    assert!(matches!(list(8, u64::MAX), LoadError::Limit { what: "the number of list elements", .. }));
    assert!(matches!(list(8, 4_000_000), LoadError::Cut(_)));
    assert!(matches!(list(9, 1), LoadError::ValueKind { kind: 9, .. }), "lists of lists");
    assert!(matches!(list(77, 1), LoadError::ValueKind { kind: 77, .. }));
    let text = Meta::Raw(8, (1_u64 << 23).to_le_bytes().to_vec());
    assert!(matches!(refused(&tiny().with("a.text", text)), LoadError::Cut(_)));
    assert!(matches!(
        refused(&tiny().with("a.kind", Meta::Raw(99, vec![0; 8]))),
        LoadError::ValueKind { .. }
    ));
    let broken = Meta::Raw(8, [1_u64.to_le_bytes().to_vec(), vec![0xff]].concat());
    assert!(matches!(refused(&tiny().with("a.text", broken)), LoadError::NotText(_)));
}

#[test]
fn keys_and_tensors_stand_once() {
    let mut file = tiny();
    file.metadata.push(file.metadata[0].clone());
    assert!(matches!(refused(&file), LoadError::DuplicateKey(key) if key == "general.architecture"));
    let mut file = tiny();
    file.tensors.push(file.tensors[0].clone());
    assert!(matches!(refused(&file), LoadError::DuplicateTensor(_)));
}

#[test]
fn missing_keys_and_tensors_are_named() {
    for key in [
        "general.architecture",
        "llama.block_count",
        "llama.attention.layer_norm_rms_epsilon",
        "tokenizer.ggml.tokens",
        "tokenizer.ggml.merges",
        "tokenizer.ggml.model",
    ] {
        assert!(matches!(refused(&tiny().without(key)), LoadError::Key(missing) if missing == key), "{key}");
    }
    for at in 0..3 {
        let mut file = tiny();
        let name = file.tensors.remove(at).name;
        let found = load_bytes(&file.bytes());
        match name.as_str() {
            // Without its own output matrix a model uses its embedding.
            "output.weight" => assert!(found.is_ok()),
            _ => assert!(matches!(found, Err(LoadError::Tensor(missing)) if missing == name)),
        }
    }
}

#[test]
fn dimensions_are_those_the_model_needs() {
    let shaped = |dimensions: &[u64]| {
        let mut file = tiny();
        file.tensors[3].dimensions = dimensions.to_vec();
        refused(&file)
    };
    for absurd in [&[0][..], &[u64::MAX, u64::MAX], &[1 << 41], &[1 << 33, 1 << 33]] {
        assert!(matches!(shaped(absurd), LoadError::Shape { .. }), "{absurd:?}");
    }
    assert!(matches!(shaped(&[32]), LoadError::Shape { .. }));
    assert!(matches!(shaped(&[1; 5]), LoadError::Limit { .. }));
    assert!(matches!(shaped(&[]), LoadError::Limit { .. }));
    let mut file = tiny();
    file.tensors[0].dimensions = vec![31, 4];
    assert!(matches!(refused(&file), LoadError::Shape { .. }), "rows of whole blocks");
    file.tensors[0].kind = 4;
    assert!(matches!(refused(&file), LoadError::TensorType { kind: 4, .. }));
}

#[test]
fn tensors_lie_in_the_file_and_not_upon_each_other() {
    let placed = |offset: u64| {
        let mut file = tiny();
        file.tensors[3].offset = Some(offset);
        refused(&file)
    };
    for offset in [u64::MAX - 31, 1 << 40, 1 << 20, 7] {
        assert!(matches!(placed(offset), LoadError::Placement(_)), "{offset}");
    }
    assert!(matches!(placed(0), LoadError::Placement(_)), "upon the first tensor");
    assert!(matches!(refused(&tiny().with("general.alignment", Meta::U32(3))), LoadError::Value { .. }));
}

#[test]
fn absurd_shapes_of_a_model_are_refused_before_memory_is_taken() {
    for (key, number) in [
        ("llama.block_count", u32::MAX),
        ("llama.block_count", 0),
        ("llama.embedding_length", u32::MAX),
        ("llama.attention.head_count", 0),
        ("llama.attention.head_count_kv", 3),
        ("llama.attention.key_length", 15),
        ("llama.rope.dimension_count", 1_000),
        ("llama.context_length", 0),
        ("llama.context_length", u32::MAX),
    ] {
        assert!(
            matches!(refused(&tiny().with(key, Meta::U32(number))), LoadError::Value { .. }),
            "{key} {number}"
        );
    }
    let base = tiny().with("llama.rope.freq_base", Meta::F32(f32::NAN));
    assert!(matches!(refused(&base), LoadError::Value { .. }));
    // More layers than there are tensors for.
    assert!(matches!(refused(&tiny().with("llama.block_count", Meta::U32(9))), LoadError::Tensor(_)));
}

#[test]
fn what_is_not_supported_is_refused_by_name() {
    assert!(matches!(refused(&tiny().with("general.architecture", "mamba")), LoadError::Architecture(_)));
    for (key, value) in [
        ("llama.expert_count", Meta::U32(8)),
        ("llama.attention.sliding_window", Meta::U32(512)),
        ("llama.rope.scaling.type", "yarn".into()),
        ("tokenizer.ggml.pre", "tekken".into()),
        ("tokenizer.ggml.model", "rwkv".into()),
    ] {
        assert!(matches!(refused(&tiny().with(key, value)), LoadError::Feature(_)), "{key}");
    }
}

#[test]
fn a_vocabulary_that_contradicts_itself_is_refused() {
    let merges = Meta::Texts(vec!["t h e".into()]);
    assert!(matches!(refused(&tiny().with("tokenizer.ggml.merges", merges)), LoadError::Vocabulary(_)));
    let merges = Meta::Texts(vec!["q q".into()]);
    assert!(matches!(refused(&tiny().with("tokenizer.ggml.merges", merges)), LoadError::Vocabulary(_)));
    let kinds = Meta::I32s(vec![1; 3]);
    assert!(matches!(refused(&tiny().with("tokenizer.ggml.token_type", kinds)), LoadError::Vocabulary(_)));
    let outside = Meta::U32(1_000_000);
    assert!(matches!(refused(&tiny().with("tokenizer.ggml.eos_token_id", outside)), LoadError::Value { .. }));
    let tokens = Meta::Texts(Vec::new());
    assert!(matches!(refused(&tiny().with("tokenizer.ggml.tokens", tokens)), LoadError::Vocabulary(_)));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]

    /// Whatever bytes of the head are changed, reading and loading it ends well.
    #[test]
    fn a_damaged_head_never_panics(changes in proptest::collection::vec((0_usize..12_000, any::<u8>()), 1..6)) {
        let mut bytes = tiny().bytes();
        for (at, byte) in changes {
            bytes[at] = byte;
        }
        let _ = load_bytes(&bytes);
    }

    #[test]
    fn foreign_bytes_never_panic(tail in proptest::collection::vec(any::<u8>(), 0..400)) {
        let mut bytes = b"GGUF\x03\0\0\0".to_vec();
        bytes.extend(tail);
        prop_assert!(load_bytes(&bytes).is_err());
    }
}

//! A pull from a hub on this machine, to a model that can be asked.

use std::io::{Read, Write};
use std::sync::atomic::{AtomicUsize, Ordering};

use weights::{Fingerprint, HubFile};

use super::*;

#[path = "../../../gguf/tests/support/tiny.rs"]
#[allow(dead_code, reason = "made for more than this")]
mod tiny;

/// A hub that gives this file to whoever asks, and counts.
fn hub(bytes: Vec<u8>) -> (String, Arc<AtomicUsize>) {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            count.fetch_add(1, Ordering::Relaxed);
            let _ = stream.read(&mut [0; 4096]);
            let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close", bytes.len());
            let _ = stream.write_all(format!("{head}\r\n\r\n").as_bytes());
            let _ = stream.write_all(&bytes);
        }
    });
    (url, asked)
}

fn pinned(bytes: &[u8]) -> Weights {
    Weights {
        name: "tiny",
        about: "a test's",
        licence: "MIT",
        file: Fingerprint { bytes: bytes.len() as u64, sha256: loom::Digest::of(bytes) },
        hub: Some(HubFile { repository: "owner/tiny", revision: "abc", path: "tiny.gguf" }),
        wheel: None,
        converted_bytes: 1_000_000,
    }
}

fn embedded(home: &Path, url: &str, auto_pull: bool) -> Embedded {
    let hub = Hub { base_url: url.to_owned(), continuations: 0, ..Hub::default() };
    Embedded {
        home: home.to_owned(),
        folders: WeightsFolders::of_home(home),
        sources: WeightsSources { hub: Some(hub), index: None },
        auto_pull,
        person: Arc::new(Terminal::new(true, false)),
        cancel: Cancel::never(),
    }
}

#[test]
fn s24_a_named_model_is_fetched_converted_and_loaded_once_and_an_unnamed_one_is_not() {
    let bytes = tiny::TINY.file().bytes();
    let (url, asked) = hub(bytes.clone());
    let (weights, home) = (pinned(&bytes), tempfile::tempdir().unwrap());
    let ours = embedded(home.path(), &url, false);
    let Err(refused) = ours.model(&weights, false) else { panic!("nobody asked") };
    assert_eq!((refused.code.as_ref(), refused.exit), ("download_not_asked", 4));
    for way in ["--model tiny", "model pull tiny", "model.auto_pull = true"] {
        assert!(refused.hint.contains(way), "{}", refused.hint);
    }
    assert_eq!(asked.load(Ordering::Relaxed), 0);
    let model = ours.model(&weights, true).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!((model.info().provider.as_str(), model.info().name.as_str()), ("embedded", "tiny"));
    assert!(!model.info().tools, "it cannot act");
    assert!(ours.model(&weights, false).is_ok(), "what is here needs no consent");
    assert_eq!(asked.load(Ordering::Relaxed), 1);
}

#[test]
fn s24_what_is_configured_is_asked_for_and_what_is_not_pinned_is_not_used() {
    let bytes = tiny::TINY.file().bytes();
    let (url, _) = hub(bytes.clone());
    let home = tempfile::tempdir().unwrap();
    let mut other = bytes.clone();
    other[100] ^= 1;
    let Err(refused) = embedded(home.path(), &url, true).model(&pinned(&other), false) else {
        panic!("another file than the pinned one")
    };
    assert_eq!(refused.exit, 5, "{refused}");
    assert!(embedded(home.path(), &url, true).model(&pinned(&bytes), false).is_ok());
}

#[test]
fn known_weights_go_by_two_names() {
    assert_eq!(known("smollm2").unwrap().name, "smollm2");
    assert_eq!(known("embedded/smollm2"), known("smollm2"));
    assert_eq!(known("openai/smollm2"), None);
}

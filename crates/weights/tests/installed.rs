//! What is installed: looked at whole, refused if a byte differs, and never half there.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test reports by failing")]

#[path = "support/home.rs"]
mod home;
#[path = "support/hub_server.rs"]
mod hub_server;

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::process::{Command, Stdio};

use drawloom_weights::{Consent, WeightsSources, installed};
use home::{Home, content, doubled, has_bytes, hub, tiny};
use hub_server::{HubServer, Reply};

fn whole() -> Reply {
    Reply::File { bytes: content(), etag: Some("\"one\"") }
}

async fn pulled() -> (HubServer, Home) {
    let server = HubServer::start(vec![whole()]).await;
    let home = Home::new(tiny(&content()));
    home.pull(&hub(&server.url)).await.unwrap();
    (server, home)
}

#[tokio::test]
async fn one_changed_byte_of_the_same_size_and_time_is_found_and_only_a_pull_mends_it() {
    let (server, home) = pulled().await;
    let path = home.folders.converted(&home.weights);
    let file = OpenOptions::new().write(true).open(&path).unwrap();
    let modified = file.metadata().unwrap().modified().unwrap();
    file.write_all_at(b"!", 12_345).unwrap();
    file.set_modified(modified).unwrap();
    let error = installed(&home.weights, &home.folders).unwrap_err();
    assert_eq!((error.code(), error.exit_code()), ("weights_damaged", 5));
    assert!(error.hint().contains("model pull tiny"));
    let named = home.obtain(&hub(&server.url), Consent::Named, doubled(), std::future::pending()).await;
    assert_eq!(named.unwrap_err().code(), "weights_damaged");
    home.pull(&hub(&server.url)).await.unwrap();
    assert_eq!(server.ranges().len(), 2);
}

#[tokio::test]
async fn a_cut_file_an_absent_one_and_an_older_pin_are_told_apart() {
    let (_server, mut home) = pulled().await;
    let path = home.folders.converted(&home.weights);
    let weights = home.weights.clone();
    home.weights.file.sha256 = loom::digest::Digest::of(b"newer");
    assert_eq!(installed(&home.weights, &home.folders).unwrap_err().code(), "weights_outdated");
    OpenOptions::new().write(true).open(&path).unwrap().set_len(10).unwrap();
    assert_eq!(installed(&weights, &home.folders).unwrap_err().code(), "weights_damaged");
    std::fs::remove_file(&path).unwrap();
    assert_eq!(installed(&weights, &home.folders).unwrap_err().code(), "weights_not_installed");
}

#[tokio::test]
async fn the_file_that_was_hashed_is_the_one_that_is_read() {
    let (_server, home) = pulled().await;
    let mut got = installed(&home.weights, &home.folders).unwrap();
    std::fs::remove_file(&got.path).unwrap();
    std::fs::write(&got.path, b"another").unwrap();
    let mut bytes = Vec::new();
    got.file.read_to_end(&mut bytes).unwrap();
    assert_eq!(loom::digest::Digest::of(&bytes), got.sha256);
}

#[tokio::test]
async fn a_register_that_cannot_be_read_is_not_written_over() {
    let (server, home) = pulled().await;
    let register = home.folder.path().join("models/models.json");
    for text in ["{", "{\"version\":2,\"models\":[]}", "[]"] {
        std::fs::write(&register, text).unwrap();
        let error = home.pull(&hub(&server.url)).await.unwrap_err();
        assert_eq!(error.code(), "models_json_unreadable");
        assert_eq!(std::fs::read_to_string(&register).unwrap(), text);
    }
    assert_eq!(server.ranges().len(), 1);
}

#[tokio::test]
async fn everything_is_the_owners_alone() {
    let (_server, home) = pulled().await;
    let folders = ["models", "cache/weights"].map(|path| (path, 0o700));
    let files = ["models/models.json", "models/tiny-q8_0.gguf"].map(|path| (path, 0o600));
    for (path, mode) in folders.into_iter().chain(files) {
        let metadata = home.folder.path().join(path).metadata().unwrap();
        assert_eq!(metadata.permissions().mode() & 0o777, mode, "{path}");
    }
}

#[tokio::test]
async fn a_failed_conversion_keeps_the_fetched_file_and_installs_nothing() {
    let server = HubServer::start(vec![whole()]).await;
    let home = Home::new(tiny(&content()));
    let failing: drawloom_weights::Converter = Box::new(|_, target, _| {
        File::create(target)?.write_all(b"half")?;
        Err("no such tensor".into())
    });
    let ended = home.obtain(&hub(&server.url), Consent::Pull, failing, std::future::pending()).await;
    assert_eq!(ended.unwrap_err().code(), "conversion_failed");
    assert_eq!(std::fs::read_dir(home.folder.path().join("models")).unwrap().count(), 0);
    // The second try needs no source at all.
    home.pull(&WeightsSources::default()).await.unwrap();
    assert_eq!(server.ranges().len(), 1);
}

const CHILD_HOME: &str = "DRAWLOOM_TEST_CHILD_HOME";
const CHILD_HUB: &str = "DRAWLOOM_TEST_CHILD_HUB";

/// Run by the test below in a process of its own, which is killed.
#[tokio::test]
async fn child_pulls() {
    let (Ok(folder), Ok(url)) = (std::env::var(CHILD_HOME), std::env::var(CHILD_HUB)) else { return };
    let weights = tiny(&content());
    let folders = drawloom_weights::WeightsFolders::of_home(folder.as_ref());
    let sources = hub(&url);
    let consent = Consent::Pull;
    let order = drawloom_weights::ObtainRequest {
        weights: &weights,
        folders: &folders,
        sources: &sources,
        consent,
        convert: doubled(),
    };
    let _ = drawloom_weights::obtain(order, std::future::pending(), &mut |_| {}).await;
}

#[tokio::test]
async fn a_killed_process_leaves_a_part_to_go_on_with_and_nothing_installed() {
    let slow = Reply::HangAfter { bytes: content(), etag: Some("\"one\""), at: 120_000 };
    let server = HubServer::start(vec![slow, whole()]).await;
    let home = Home::new(tiny(&content()));
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "child_pulls", "--nocapture"])
        .env(CHILD_HOME, home.folder.path())
        .env(CHILD_HUB, &server.url)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    has_bytes(home.part(), 120_000).await;
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(installed(&home.weights, &home.folders).unwrap_err().code(), "weights_not_installed");
    home.pull(&hub(&server.url)).await.unwrap();
    assert_eq!(server.ranges(), [None, Some("bytes=120000-".to_owned())]);
    assert_eq!(home.notices(), ["tiny: asked for by `model pull`", "resumed at 120000"]);
}

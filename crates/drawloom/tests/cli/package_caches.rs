//! Package caches of the owner (`[exec] caches`): builds without a network, and a cache that stays as it was.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::everyday::told_with;
use crate::world::text;

/// Everything about every path below a folder that writing could change.
fn state(folder: &Path) -> BTreeMap<PathBuf, (u32, i64, i64, u64, Vec<u8>)> {
    let mut state = BTreeMap::new();
    let mut waiting = vec![folder.to_owned()];
    while let Some(path) = waiting.pop() {
        let metadata = path.symlink_metadata().unwrap();
        let bytes = if metadata.is_file() { fs::read(&path).unwrap() } else { Vec::new() };
        if metadata.is_dir() {
            waiting.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
        }
        let told = (
            metadata.mode(),
            metadata.mtime_nsec() + metadata.mtime(),
            metadata.ctime(),
            metadata.ino(),
            bytes,
        );
        state.insert(path, told);
    }
    state
}

fn output(command: &mut Command) -> String {
    let done = command.output().unwrap();
    assert!(done.status.success(), "{command:?}: {done:?}");
    String::from_utf8(done.stdout).unwrap().trim().to_owned()
}

fn entries(folder: &Path) -> impl Iterator<Item = PathBuf> {
    fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path())
}

/// A crate without dependencies, that this program is built with.
const CRATE: &str = "try-lock";

/// Copies one crate of the machine's registry into that of a person: as it was downloaded, not unpacked.
fn copy_crate(to: &Path) {
    let cargo_home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let cargo_home =
        cargo_home.unwrap_or_else(|| Path::new(&std::env::var_os("HOME").unwrap()).join(".cargo"));
    let from = cargo_home.join("registry");
    let copy = |name: &Path| {
        fs::create_dir_all(to.join(name).parent().unwrap()).unwrap();
        fs::copy(from.join(name), to.join(name)).unwrap();
    };
    let mut copied = 0;
    for registry in entries(&from.join("cache")) {
        let registry = registry.file_name().unwrap().to_owned();
        let index = Path::new("index").join(&registry);
        for archive in entries(&from.join("cache").join(&registry)) {
            let name = archive.file_name().unwrap().to_str().unwrap();
            if name.starts_with(CRATE) && from.join(&index).join(".cache/tr/y-").join(CRATE).exists() {
                copy(&Path::new("cache").join(&registry).join(name));
                copy(&index.join(".cache/tr/y-").join(CRATE));
                copy(&index.join("config.json"));
                copied += 1;
            }
        }
    }
    assert!(copied > 0, "{CRATE} is in no registry below {}", from.display());
}

#[test]
fn cargo_builds_and_tests_offline_with_a_crate_of_the_owners_cache() {
    let toolchain = output(Command::new("rustc").args(["--print", "sysroot"]));
    let path = format!("PATH={toolchain}/bin:$PATH");
    let commands = [
        &format!("{path} cargo test --offline --quiet 2>&1"),
        "cat ~/.cargo/registry/src/*/try-lock-*/Cargo.toml | grep -c 'name = .try-lock'",
        "echo evil | tee -a ~/.cargo/registry/cache/*/* > ~/.cargo/registry/new && ls ~/.cargo/registry",
        "cat ~/.cargo/credentials.toml ~/.cargo/registry/credentials.toml 2>&1; ls -A ~/.cargo",
    ];
    let more = format!("[exec]\ntoolchains = [\"{toolchain}\"]\ncaches = [\"~/.cargo/registry\"]\n");
    let mut before = BTreeMap::new();
    let (world, _, told) = told_with(&more, &commands, |world| {
        let registry = world.path("user/.cargo/registry");
        copy_crate(&registry);
        for folder in [&registry, registry.parent().unwrap()] {
            fs::write(folder.join("credentials.toml"), "SECRETIVE").unwrap();
        }
        let project = world.path("project");
        let manifest =
            "[package]\nname = \"here\"\nversion = \"0.1.0\"\nedition = \"2021\"\n[dependencies]\n";
        fs::write(project.join("Cargo.toml"), format!("{manifest}{CRATE} = \"*\"\n")).unwrap();
        let main = "fn main() { assert!(lock()); }\nfn lock() -> bool { try_lock::TryLock::new(1).try_lock().is_some() }\n\
            #[test]\nfn locks() { assert!(lock()); }\n";
        fs::write(project.join("src/main.rs"), main).unwrap();
        before = state(&world.path("user"));
        project
    });
    assert!(told[0].starts_with("exit 0 (") && told[0].contains("1 passed"), "{}", told[0]);
    assert!(told[1].starts_with("exit 0 (") && told[1].ends_with("\n1"), "{}", told[1]);
    assert!(told[2].starts_with("exit 0 (") && told[2].contains("new"), "{}", told[2]);
    assert!(!told[3].contains("SECRETIVE") && told[3].contains("registry"), "{}", told[3]);
    assert!(told.iter().all(|told| !told.contains("[sandbox]")), "{told:?}");
    assert!(state(&world.path("user")) == before, "the owner's cache changed");
    let kept = text(&world.home().join("sandbox/tmp"));
    assert_eq!(entries(Path::new(&kept)).count(), 0, "what commands wrote to it is gone");
}

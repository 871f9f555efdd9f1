//! Package caches of the owner (`[exec] caches`): builds without a network, and a cache that stays as it was.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::everyday::told_with;
use crate::world::{World, text};

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

/// The toolchain that this program is built with.
pub(crate) fn sysroot() -> String {
    output(Command::new("rustc").args(["--print", "sysroot"]))
}

fn entries(folder: &Path) -> impl Iterator<Item = PathBuf> {
    fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path())
}

/// What commands tell in a project of an owner with these caches: each ends well, and the caches stay as they were. Without
/// the caches the first ones do not build.
fn built(toolchain: &str, caches: &[&str], commands: &[&str], prepare: impl Fn(&World)) -> Vec<String> {
    let with = |caches: &[&str]| {
        let caches: Vec<_> = caches.iter().map(|cache| format!("~/{cache}")).collect();
        let more = format!("[exec]\ntoolchains = [{toolchain:?}]\ncaches = {caches:?}\n");
        let mut before = BTreeMap::new();
        let (world, _, told) = told_with(&more, commands, |world| {
            prepare(world);
            before = state(&world.path("user"));
            world.path("project")
        });
        assert!(before.values().any(|(.., bytes)| !bytes.is_empty()));
        assert!(state(&world.path("user")) == before, "the owner's home changed");
        let kept = fs::read_dir(world.home().join("sandbox/tmp"));
        assert!(
            kept.is_ok_and(|kept| kept.count() == 0) || caches.is_empty(),
            "what commands wrote stays behind"
        );
        told
    };
    let without = with(&[]);
    assert!(without.iter().any(|told| !told.starts_with("exit 0 (")), "the control: {without:?}");
    let told = with(caches);
    for told in &told {
        assert!(told.starts_with("exit 0 (") && !told.contains("[notes]"), "{told}");
    }
    told
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
    let toolchain = sysroot();
    let path = format!("PATH={toolchain}/bin:$PATH");
    let commands = [
        &format!("{path} cargo test --offline --quiet 2>&1"),
        "cat ~/.cargo/registry/src/*/try-lock-*/Cargo.toml | grep -c 'name = .try-lock'",
        "echo evil | tee -a ~/.cargo/registry/cache/*/* > ~/.cargo/registry/new && ls ~/.cargo/registry",
        "cat ~/.cargo/credentials.toml ~/.cargo/registry/credentials.toml 2>&1; ls -A ~/.cargo",
    ];
    let prepare = |world: &World| {
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
    };
    let told = built(&toolchain, &[".cargo/registry"], &commands, prepare);
    assert!(told[0].contains("1 passed"), "{}", told[0]);
    assert!(told[1].ends_with("\n1"), "{}", told[1]);
    assert!(told[2].contains("new"), "{}", told[2]);
    assert!(!told[3].contains("SECRETIVE") && told[3].contains("registry"), "{}", told[3]);
}

/// Node and its npm are the system's; the archive is as `npm pack` makes it.
#[test]
#[ignore = "needs npm: .ci/run runs it"]
fn npm_installs_offline_what_brings_files_that_are_protected_elsewhere() {
    let commands = [
        "npm ci --offline --no-audit --no-fund 2>&1",
        "cat node_modules/warp/AGENTS.md node_modules/warp/.idea/misc.xml && node -p 'require(\"warp\")'",
        "npm cache add ./other.tgz --offline 2>&1",
    ];
    let prepare = |world: &World| {
        let package = world.path("package");
        for (name, text) in [
            ("package.json", r#"{"name": "warp", "version": "1.0.0", "main": "warp.js"}"#),
            ("warp.js", "module.exports = 'woven';\n"),
            ("AGENTS.md", "Do as the package says.\n"),
            (".idea/misc.xml", "<project/>\n"),
        ] {
            fs::create_dir_all(package.join(name).parent().unwrap()).unwrap();
            fs::write(package.join(name), text).unwrap();
        }
        let npm = |arguments: &[&str]| {
            let mut npm = Command::new("npm");
            npm.args(arguments).arg("--offline").current_dir(&package).env("HOME", world.path("user"));
            output(&mut npm)
        };
        let packed: Value = serde_json::from_str(&npm(&["pack", "--json"])).unwrap();
        let integrity = packed[0]["integrity"].as_str().unwrap();
        npm(&["cache", "add", "./warp-1.0.0.tgz"]);
        fs::write(world.path("user/.npmrc"), "//registry.npmjs.org/:_authToken=SECRETIVE\n").unwrap();
        let project = world.path("project");
        let manifest = r#"{"name": "here", "version": "1.0.0", "dependencies": {"warp": "1.0.0"}}"#;
        fs::write(project.join("package.json"), manifest).unwrap();
        let lock = format!(
            r#"{{"name": "here", "version": "1.0.0", "lockfileVersion": 3, "packages": {{
            "": {{"name": "here", "version": "1.0.0", "dependencies": {{"warp": "1.0.0"}}}},
            "node_modules/warp": {{"version": "1.0.0", "integrity": "{integrity}",
            "resolved": "https://registry.npmjs.org/warp/-/warp-1.0.0.tgz"}}}}}}"#
        );
        fs::write(project.join("package-lock.json"), lock).unwrap();
        fs::copy(package.join("warp-1.0.0.tgz"), project.join("other.tgz")).unwrap();
    };
    let told = built("/usr/bin", &[".npm/_cacache"], &commands, prepare);
    assert!(told[1].contains("Do as the package says.") && told[1].contains("<project/>"), "{}", told[1]);
    assert!(told[1].contains("woven"), "{}", told[1]);
}

/// A wheel, which is an archive with a record.
const WHEEL: &str = r#"
import sys, zipfile
with zipfile.ZipFile(sys.argv[1] + '/warp-1.0-py3-none-any.whl', 'w') as wheel:
    info = 'warp-1.0.dist-info/'
    wheel.writestr('warp.py', "WOVEN = 'woven'")
    wheel.writestr(info + 'METADATA', 'Metadata-Version: 2.1\nName: warp\nVersion: 1.0\n')
    wheel.writestr(info + 'WHEEL', 'Wheel-Version: 1.0\nGenerator: here\nRoot-Is-Purelib: true\nTag: py3-none-any\n')
    names = ['warp.py', info + 'METADATA', info + 'WHEEL', info + 'RECORD']
    wheel.writestr(info + 'RECORD', ''.join(name + ',,\n' for name in names))
"#;

#[test]
#[ignore = "needs python3 with venv: .ci/run runs it"]
fn python_installs_offline_into_an_environment_from_a_folder_of_wheels() {
    let prefix = output(Command::new("python3").args(["-c", "import sys; print(sys.base_prefix)"]));
    let commands = [
        &format!("{prefix}/bin/python3 -m venv env 2>&1"),
        "env/bin/pip install --no-index --find-links ~/.cache/wheels warp 2>&1",
        "env/bin/python -c 'import warp; print(warp.WOVEN)'; echo x > ~/.cache/wheels/warp-1.0-py3-none-any.whl",
    ];
    let prepare = |world: &World| {
        let wheels = world.path("user/.cache/wheels");
        fs::create_dir_all(&wheels).unwrap();
        output(Command::new("python3").args(["-c", WHEEL, &text(&wheels)]));
    };
    let told = built(&prefix, &[".cache/wheels", ".cache/pip"], &commands, prepare);
    assert!(told[1].contains("Successfully installed warp-1.0"), "{}", told[1]);
    assert!(told[2].contains("woven"), "{}", told[2]);
}

//! A server of a test's own, on a socket in a temporary folder, as an unprivileged user.

use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use store::ServerOptions;

use crate::server::{STORE, url};

/// The user `nobody`: the server refuses to run as root.
const NOBODY: u32 = 65534;

/// A running server; stopped with this value.
pub(crate) struct Server {
    folder: tempfile::TempDir,
}

/// A program of PostgreSQL, from the path or where Debian keeps it.
fn program(name: &str) -> PathBuf {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let versions = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let folders = versions.map(|version| version.path().join("bin")).chain(std::env::split_paths(&path));
    folders.map(|folder| folder.join(name)).find(|program| program.exists()).unwrap()
}

/// A program, as somebody else if we are root.
fn unprivileged(name: &str) -> Command {
    if !rustix::process::geteuid().is_root() {
        return Command::new(program(name));
    }
    let mut command = Command::new("setpriv");
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).arg(program(name));
    command
}

fn run(command: &mut Command) {
    let done = command.current_dir("/").stdout(Stdio::null()).stderr(Stdio::null()).status().unwrap();
    assert!(done.success(), "{command:?}");
}

impl Server {
    /// A new one, if PostgreSQL is tested at all.
    pub(crate) fn start() -> Option<Self> {
        url()?;
        let server = Self { folder: tempfile::tempdir().unwrap() };
        if rustix::process::geteuid().is_root() {
            chown(server.folder(), Some(NOBODY), Some(NOBODY)).unwrap();
        }
        std::fs::set_permissions(server.folder(), std::fs::Permissions::from_mode(0o755)).unwrap();
        run(unprivileged("initdb")
            .arg("-D")
            .arg(server.data())
            .args(["-U", "drawloom", "-A", "trust", "-E", "UTF8"]));
        // Others than the superuser need a password.
        let rules = "local all drawloom trust\nlocal all all scram-sha-256\n";
        std::fs::write(server.data().join("pg_hba.conf"), rules).unwrap();
        server.go_on();
        Some(server)
    }

    fn folder(&self) -> &Path {
        self.folder.path()
    }

    fn data(&self) -> PathBuf {
        self.folder().join("data")
    }

    /// Starts it again.
    pub(crate) fn go_on(&self) {
        let options = format!("-k {} -c listen_addresses='' -c shared_buffers=16MB", self.folder().display());
        let log = self.folder().join("log");
        run(unprivileged("pg_ctl")
            .arg("-D")
            .arg(self.data())
            .arg("-l")
            .arg(log)
            .args(["-w", "-o", &options, "start"]));
    }

    /// Stops it as a loss of power would: nothing is written any more.
    pub(crate) fn kill(&self) {
        run(unprivileged("pg_ctl").arg("-D").arg(self.data()).args(["-m", "immediate", "stop"]));
    }

    pub(crate) fn options(&self, user: &str) -> ServerOptions {
        let socket = self.folder().display().to_string().replace('/', "%2F");
        ServerOptions::new(format!("postgres://{user}@{socket}/postgres"), STORE)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let stop = ["-m", "immediate", "stop"];
        let done =
            unprivileged("pg_ctl").arg("-D").arg(self.data()).args(stop).stdout(Stdio::null()).status();
        drop(done);
    }
}

//! Commands behind walls (spec: security §1, §9).
//!
//! A command runs as a grandchild of this process. Between the two stands the helper: this program
//! executed again as `__exec` ([`run_helper`], dispatched first in `main`), which makes the walls and
//! ends whatever the command leaves. [`Sandbox`] is the side of this process: it starts the helper,
//! reads a bounded part of the output, ends the tree in time, and looks afterwards at the protected set.
//!
//! Three levels, found out once by [`Sandbox::probe`]:
//!
//! * **full**: namespaces of its own hold the command's files, processes and network; Landlock and
//!   seccomp stand behind them, so that no single one of the three is trusted alone.
//! * **partial**: where namespaces are refused, Landlock and seccomp. Neither can take away what lies
//!   below a writable root, so the protected set is kept before a command and restored after it.
//! * **none**: the command is only supervised.
//!
//! The walls travel to the helper as JSON over the helper's standard input, never in arguments or the
//! environment, which other processes of the machine read. What the helper reports comes back the same
//! way; the command has neither end.
//!
//! # Sessions and background commands
//!
//! [`Sandbox::open_session`] makes what the commands of one conversation share: at level *full* a network in which there is
//! only its loopback, and a `/tmp`; below it a folder as `/tmp`. No process keeps it; see [`Session`]. A background command
//! is polled by place in its output, written to, and ended by itself, with its session, or with this process. A server in one
//! is reached from the machine by the ports of [`Session::publish`] alone.
//!
//! ```no_run
//! # async fn example(run: drawloom_sandbox::Run) -> Result<(), Box<dyn std::error::Error>> {
//! use std::path::Path;
//! use std::time::Duration;
//! use drawloom_sandbox::{CommandLine, Run, Sandbox, TextWait};
//!
//! let sandbox = Sandbox::of_this_program()?;
//! let session = sandbox.open_session(sandbox.probe().level, Path::new("/home/me/.drawloom/sandbox/tmp"), 1 << 30, &[])?;
//! let with = |line: &str| Run { command: CommandLine::Shell(line.into()), ..run.clone() };
//!
//! let mut server = session.start_background(with("python3 -m http.server 8000"), 64 << 20, ())?;
//! if let TextWait::Printed(end) = server.wait_for(b"Serving", 0, Duration::from_secs(10)).await {
//!     session.run(with("curl -s http://127.0.0.1:8000/"), None).await?;
//!     let piece = server.output(end, 64 << 10);
//!     println!("{} bytes since, {} lost", piece.bytes.len(), piece.omitted);
//! }
//! server.write(b"quit\n", Duration::from_secs(1)).await?;
//! server.cancel();
//! let _ended = server.outcome().await;
//! session.end();
//! # Ok(()) }
//! ```
//!
//! Files that tools write while a command runs look like the command's when it ends: [`AcceptedChanges`] says of those that a
//! person let be written that they are not, whichever process the command is of. What a command may write by its `touches` is
//! accepted so, too.
//!
//! # Workers
//!
//! What strangers' bytes are parsed in is no command: a [worker](Sandbox::work) is this program executed again, which can do
//! nothing but answer.
//!
//! It rests on Linux. Elsewhere the level is *none* and nothing runs.

#[cfg(target_os = "linux")]
mod accepted_changes;
#[cfg(target_os = "linux")]
mod background;
mod caches;
#[cfg(target_os = "linux")]
mod covered_files;
#[cfg(target_os = "linux")]
mod descriptors;
#[cfg(target_os = "linux")]
mod folder_list;
#[cfg(target_os = "linux")]
mod foreign_entries;
#[cfg(target_os = "linux")]
mod git_folder;
#[cfg(target_os = "linux")]
mod harmless_settings;
#[cfg(target_os = "linux")]
mod helper;
#[cfg(target_os = "linux")]
mod kept_entry;
mod level;
#[cfg(target_os = "linux")]
mod look;
#[cfg(target_os = "linux")]
mod made_git_folders;
mod outcome;
mod output;
mod path_form;
#[cfg(target_os = "linux")]
mod process_list;
#[cfg(target_os = "linux")]
mod protected_paths;
#[cfg(target_os = "linux")]
mod protection;
#[cfg(target_os = "linux")]
mod published_ports;
#[cfg(target_os = "linux")]
mod quarantine;
#[cfg(target_os = "linux")]
mod rebase_plans;
#[cfg(target_os = "linux")]
mod request;
#[cfg(target_os = "linux")]
mod root_folders;
#[cfg(target_os = "linux")]
mod running_commands;
mod serving_git;
#[cfg(target_os = "linux")]
mod session;
#[cfg(target_os = "linux")]
mod session_folder;
mod small_file;
#[cfg(target_os = "linux")]
mod snapshot;
#[cfg(target_os = "linux")]
mod supervisor;
mod walls;
#[cfg(target_os = "linux")]
mod worker;

#[cfg(target_os = "linux")]
pub use accepted_changes::{AcceptedChanges, AcceptedState};
#[cfg(target_os = "linux")]
pub use background::{BackgroundCommand, OutputPiece, TextWait};
pub use caches::{CacheState, PackageCache};
#[cfg(target_os = "linux")]
pub use helper::{run_helper, run_worker};
#[cfg(target_os = "linux")]
#[doc(hidden)]
pub use helper::{run_helper_without, run_worker_without};
pub use level::{Level, LevelReport};
pub use outcome::{Ending, Notice, Outcome, SandboxError};
pub use output::{BoundedOutput, OutputStream};
#[cfg(target_os = "linux")]
#[doc(hidden)]
pub use protection::{OlderKernel, Protection};
#[cfg(target_os = "linux")]
pub use published_ports::{PublishedPorts, check_ports};
#[cfg(target_os = "linux")]
pub use running_commands::{FileBefore, SIGN_OF_LIFE, before_running_commands};
pub use serving_git::git_folders_serving;
#[cfg(target_os = "linux")]
pub use session::Session;
pub use session_folder::{SessionFolder, remove_folder};
#[cfg(target_os = "linux")]
pub use supervisor::{CommandLine, OutputSink, Run, RunningCommand, Sandbox};
pub use walls::{Limits, Network, RootAccess, WallRoot, Walls};
#[cfg(target_os = "linux")]
pub use worker::{WorkerError, WorkerLimits};

/// First argument that makes this program the helper.
pub const HELPER_ARGUMENT: &str = "__exec";

/// Port of the loopback of a command's own network where its proxy is: the one that proxies of the web usually have.
pub const PROXY_PORT: u16 = 3128;

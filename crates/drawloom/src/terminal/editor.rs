//! The person's editor.

use std::env;
use std::ffi::OsString;
use std::io::{self, IsTerminal};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

use commands::frontend::EditorError;

use super::owner_program::{BY_SIGNAL, prepared};

/// The editor of a terminal for which none is named (POSIX).
const DEFAULT: &str = "vi";
/// What a shell ends with when it finds no such program.
const NO_SUCH_PROGRAM: i32 = 127;

/// Whether an editor is open: Ctrl-C is its own then.
static IS_OPEN: AtomicBool = AtomicBool::new(false);

pub(crate) fn is_open() -> bool {
    IS_OPEN.load(Ordering::SeqCst)
}

/// Opens a file in the editor that `VISUAL` or `EDITOR` names, and waits until it ends.
///
/// # Errors
/// When there is none, or it failed.
pub(super) fn edit(file: &Path) -> Result<(), EditorError> {
    let named = ["VISUAL", "EDITOR"].iter().filter_map(env::var_os).find(|value| !value.is_empty());
    let default = || (io::stdin().is_terminal() && io::stderr().is_terminal()).then(|| DEFAULT.into());
    let editor: OsString = named.or_else(default).ok_or(EditorError::Missing)?;
    let failed = |why: String| EditorError::Failed { editor: editor.to_string_lossy().into_owned(), why };
    // The name may hold flags and quotes, as the shell reads them.
    let mut line = editor.clone();
    line.push(" \"$@\"");
    let mut command = Command::new("/bin/sh");
    command.arg("-c").arg(line).arg("sh").arg(file);
    let mut command = prepared(command);
    if !io::stdout().is_terminal() {
        // What a command prints is for whoever reads its standard output.
        let error = io::stderr();
        command.stdout(rustix::io::dup(&error).map_or_else(|_| Stdio::null(), Stdio::from));
    }
    IS_OPEN.store(true, Ordering::SeqCst);
    let ended = command.status();
    IS_OPEN.store(false, Ordering::SeqCst);
    let status = ended.map_err(|error| failed(format!("could not be started: {error}")))?;
    if status.success() { Ok(()) } else { Err(failed(reason(status))) }
}

fn reason(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(NO_SUCH_PROGRAM), _) => "was not found".to_owned(),
        (Some(code), _) if code > BY_SIGNAL => format!("was ended by signal {}", code - BY_SIGNAL),
        (Some(code), _) => format!("ended with {code}"),
        (None, Some(signal)) => format!("was ended by signal {signal}"),
        (None, None) => "did not end well".to_owned(),
    }
}

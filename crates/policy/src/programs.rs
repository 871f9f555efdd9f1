//! Programs that run other programs, in tables.
//!
//! Two questions share them. An allow rule that ends in `*` never covers a command that names another program to run; a
//! deny rule looks for its program behind them.

/// Programs that run what their arguments say, whichever these are.
const LAUNCHERS: &[&str] = &[
    // Shells, and what a shell does itself.
    "sh",
    "rbash",
    "ash",
    "bash",
    "dash",
    "zsh",
    "fish",
    "ksh",
    "mksh",
    "csh",
    "tcsh",
    "pwsh",
    "nu",
    "busybox",
    "toybox",
    "eval",
    "exec",
    "command",
    "builtin",
    "source",
    ".",
    "trap",
    // Filters with a language of their own.
    "awk",
    "gawk",
    "mawk",
    "nawk",
    "sed",
    "gsed",
    // Programs that start their arguments, with other rights, limits, names or times.
    "env",
    "xargs",
    "parallel",
    "sudo",
    "doas",
    "su",
    "runuser",
    "pkexec",
    "nohup",
    "nice",
    "ionice",
    "time",
    "timeout",
    "stdbuf",
    "setsid",
    "setarch",
    "i386",
    "linux32",
    "linux64",
    "uname26",
    "x86_64",
    "setpriv",
    "choom",
    "numactl",
    "fakeroot",
    "xvfb-run",
    "chroot",
    "unshare",
    "nsenter",
    "capsh",
    "taskset",
    "chrt",
    "prlimit",
    "flock",
    "watch",
    "entr",
    "strace",
    "ltrace",
    "valgrind",
    "perf",
    "script",
    "unbuffer",
    "systemd-run",
    "at",
    "batch",
    "crontab",
    "start-stop-daemon",
    "dbus-run-session",
    "faketime",
    "bwrap",
    "firejail",
    "proot",
    "ld",
    "ld.so",
    "ld-linux.so",
    "ld-musl-x86_64.so",
    "ld-musl-aarch64.so",
    "ld-linux-x86-64.so",
    "ld-linux-aarch64.so",
    "git-shell",
    "tmux",
    "screen",
    "hyperfine",
    // Other machines and containers.
    "ssh",
    "scp",
    "sftp",
    "rsync",
    "mosh",
    "telnet",
    "socat",
    "nc",
    "ncat",
    "docker",
    "podman",
    "nerdctl",
    "kubectl",
    "lxc",
    "vagrant",
    "wsl",
    // Package runners.
    "npx",
    "pnpx",
    "bunx",
    "uvx",
    "pipx",
    "nix",
    "nix-shell",
    "corepack",
    "conda",
    "mamba",
    "rustup",
    // Editors and pagers, which have commands of their own.
    "vi",
    "vim",
    "nvim",
    "view",
    "ex",
    "ed",
    "emacs",
    "emacsclient",
    "nano",
    "less",
    "more",
    "man",
    "info",
];

/// Launchers whose code says nothing certain of what it runs: interpreters.
const INTERPRETERS: &[&str] = &[
    "python",
    "pypy",
    "ipython",
    "perl",
    "ruby",
    "irb",
    "node",
    "nodejs",
    "deno",
    "bun",
    "php",
    "lua",
    "luajit",
    "tclsh",
    "expect",
    "R",
    "Rscript",
    "julia",
    "osascript",
    "guile",
    "jshell",
    "groovy",
    "ghci",
    "runghc",
    "iex",
    "elixir",
    "erl",
    "escript",
    "gdb",
    "lldb",
    "psql",
    "sqlite",
];

/// A program that runs others in some of its uses.
struct PartialLauncher {
    program: &'static str,
    /// Subcommands that do.
    subcommands: &'static [&'static str],
    /// Long options that do, also shortened; and short ones, as they are or with their value attached.
    options: &'static [&'static str],
}

const PARTIAL: &[PartialLauncher] = &[
    PartialLauncher {
        program: "git",
        subcommands: &[
            "bisect",
            "citool",
            "config",
            "credential",
            "daemon",
            "difftool",
            "filter-branch",
            "gui",
            "hook",
            "instaweb",
            "mergetool",
            "p4",
            "remote-ext",
            "remote-fd",
            "send-email",
            "shell",
            "submodule",
            "svn",
            "upload-pack",
            "receive-pack",
            "web--browse",
        ],
        options: &[
            "-c",
            "-C",
            "--config",
            "--config-env",
            "--exec",
            "--exec-path",
            "--ext-diff",
            "--extcmd",
            "--git-dir",
            "--open-files-in-pager",
            "--output",
            "--receive-pack",
            "--separate-git-dir",
            "--template",
            "--textconv",
            "--upload-pack",
            "--work-tree",
        ],
    },
    PartialLauncher {
        program: "cargo",
        subcommands: &["install"],
        options: &["--config", "--manifest-path", "-C", "-Z"],
    },
    PartialLauncher {
        program: "find",
        subcommands: &[],
        options: &[
            "-delete", "-exec", "-execdir", "-fls", "-fprint", "-fprint0", "-fprintf", "-ok", "-okdir",
        ],
    },
    PartialLauncher { program: "fd", subcommands: &[], options: &["-x", "-X", "--exec", "--exec-batch"] },
    PartialLauncher { program: "split", subcommands: &[], options: &["--filter"] },
    PartialLauncher { program: "ip", subcommands: &["netns", "vrf"], options: &["-b", "-batch"] },
    PartialLauncher { program: "direnv", subcommands: &["exec"], options: &[] },
    PartialLauncher { program: "mapfile", subcommands: &[], options: &["-C"] },
    PartialLauncher { program: "readarray", subcommands: &[], options: &["-C"] },
    PartialLauncher { program: "compgen", subcommands: &[], options: &["-C", "-F"] },
    PartialLauncher { program: "complete", subcommands: &[], options: &["-C", "-F"] },
    PartialLauncher { program: "bind", subcommands: &[], options: &["-x"] },
    PartialLauncher { program: "rg", subcommands: &[], options: &["--pre", "--hostname-bin"] },
    PartialLauncher { program: "sort", subcommands: &[], options: &["--compress-program", "-o", "--output"] },
    PartialLauncher {
        program: "tar",
        subcommands: &[],
        options: &[
            "-F",
            "-I",
            "--checkpoint-action",
            "--info-script",
            "--new-volume-script",
            "--rmt-command",
            "--rsh-command",
            "--to-command",
            "--use-compress-program",
        ],
    },
    PartialLauncher {
        program: "zip",
        subcommands: &[],
        options: &["-T", "-TT", "--unzip-command", "--test"],
    },
    PartialLauncher {
        program: "go",
        subcommands: &["generate", "run", "tool"],
        options: &["-exec", "--exec", "-toolexec", "--toolexec", "-vettool", "--vettool", "-C", "-overlay"],
    },
    PartialLauncher {
        program: "make",
        subcommands: &[],
        options: &["-C", "-f", "-I", "--directory", "--eval", "--file", "--include-dir", "--makefile"],
    },
    PartialLauncher { program: "cmake", subcommands: &[], options: &["-E", "-P", "-C"] },
    PartialLauncher { program: "npm", subcommands: &["exec", "explore", "x"], options: &["--script-shell"] },
    PartialLauncher { program: "pnpm", subcommands: &["dlx", "exec", "x"], options: &["--script-shell"] },
    PartialLauncher { program: "yarn", subcommands: &["dlx", "exec"], options: &[] },
    PartialLauncher { program: "uv", subcommands: &["run", "tool", "x"], options: &[] },
    PartialLauncher { program: "poetry", subcommands: &["run", "shell"], options: &[] },
    PartialLauncher { program: "pipenv", subcommands: &["run", "shell"], options: &[] },
    PartialLauncher { program: "bundle", subcommands: &["exec"], options: &[] },
    PartialLauncher { program: "gh", subcommands: &["alias", "codespace", "extension"], options: &[] },
];

/// Short options that run a program, alone or in a group (`-qu`): program, subcommand if it has any, letters. Those of a
/// launcher are here for what is attached to them.
const GROUPED: &[(&str, &str, &[char])] = &[
    ("bind", "", &['x']),
    ("compgen", "", &['C']),
    ("complete", "", &['C']),
    ("env", "", &['S']),
    ("fd", "", &['X', 'x']),
    ("flock", "", &['c']),
    ("git", "clone", &['c', 'u']),
    ("git", "difftool", &['x']),
    ("git", "grep", &['O']),
    ("git", "rebase", &['x']),
    ("man", "", &['P']),
    ("mapfile", "", &['C']),
    ("readarray", "", &['C']),
    ("rsync", "", &['e']),
    ("runuser", "", &['c']),
    ("script", "", &['c']),
    ("su", "", &['c']),
    ("tar", "", &['F', 'I']),
];

/// Variables from which no program takes a program, a library, a file or an option.
pub(crate) const HARMLESS: &[&str] = &[
    "CARGO_TERM_COLOR",
    "CI",
    "CLICOLOR",
    "COLUMNS",
    "FORCE_COLOR",
    "LANG",
    "LC_ALL",
    "LINES",
    "NO_COLOR",
    "RUST_BACKTRACE",
    "RUST_LOG",
    "TZ",
];

/// Variables from which a program takes another one, by the end of their name.
const PROGRAM_VARIABLES: &[&str] =
    &["ASKPASS", "BROWSER", "EDITOR", "PAGER", "SSH", "VISUAL", "_COMMAND", "_DIFF", "_RUNNER", "_WRAPPER"];

/// Variables in which a shell or another program finds one, whose name no other ends like.
const PROGRAM_VARIABLES_ALONE: &[&str] = &[
    "BASH_ENV",
    "ENV",
    "GIT_CONFIG_PARAMETERS",
    "LESSCLOSE",
    "LESSOPEN",
    "MAKEFLAGS",
    "PS1",
    "PS4",
    "RSYNC_RSH",
    "TAR_OPTIONS",
];

/// Beginning of the variables in which git finds values of its settings.
const GIT_SETTING: &str = "GIT_CONFIG_VALUE_";

/// Name of a program without its folder.
pub(crate) fn base_name(word: &str) -> &str {
    word.rsplit('/').next().unwrap_or(word)
}

/// Whether a program runs what its arguments say.
pub(crate) fn is_launcher(word: &str) -> bool {
    is_among(LAUNCHERS, word) || is_interpreter(word)
}

/// Whether a program runs code of a language in which any name can be made.
pub(crate) fn is_interpreter(word: &str) -> bool {
    is_among(INTERPRETERS, word)
}

/// Whether a program is one of a table, also with a version: `python3.12`, `ld-linux-x86-64.so.2`.
pub(crate) fn is_among(table: &[&str], word: &str) -> bool {
    let name = base_name(word);
    let unversioned = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    table.contains(&name) || (!unversioned.is_empty() && table.contains(&unversioned))
}

/// Whether a program may be taken from a variable.
pub(crate) fn is_program_variable(name: &str) -> bool {
    PROGRAM_VARIABLES.iter().any(|end| name.ends_with(end))
        || PROGRAM_VARIABLES_ALONE.contains(&name)
        || name.starts_with(GIT_SETTING)
}

/// Whether a command runs a program that its arguments name, so that no prefix of it can stand for all of it.
pub(crate) fn launches<'a>(words: impl Iterator<Item = &'a str> + Clone) -> bool {
    let Some(first) = words.clone().next() else { return false };
    if is_launcher(first) {
        return true;
    }
    let arguments = words.skip(1);
    let partial = PARTIAL.iter().find(|partial| partial.program == base_name(first));
    partial.is_some_and(|partial| partial.launches(arguments.clone()))
}

/// Letters of short options that run a program, for programs and subcommands that a command names.
pub(crate) fn program_letters(is_named: impl Fn(&str) -> bool) -> Vec<char> {
    let rows = GROUPED.iter().filter(|(program, of, _)| is_named(program) && (of.is_empty() || is_named(of)));
    rows.flat_map(|(_, _, letters)| letters.iter().copied()).collect()
}

/// Text that is attached to such a letter of a word, alone or in a group: `-Srm`, `-vS"rm x"`.
pub(crate) fn attached<'t>(word: &'t str, letters: &[char]) -> Option<&'t str> {
    let (group, text) = word.strip_prefix('-')?.split_once(letters)?;
    (!text.is_empty() && group.bytes().all(|byte| byte.is_ascii_alphanumeric())).then_some(text)
}

impl PartialLauncher {
    fn launches<'a>(&self, arguments: impl Iterator<Item = &'a str> + Clone) -> bool {
        let subcommand = arguments.clone().find(|word| !word.starts_with(['-', '+'])).unwrap_or_default();
        let grouped = GROUPED
            .iter()
            .filter(|(program, of, _)| *program == self.program && (of.is_empty() || *of == subcommand));
        let letters: Vec<char> = grouped.flat_map(|(_, _, letters)| letters.iter().copied()).collect();
        let launches = |(at, word): (usize, &str)| {
            // The first argument of tar is a group without a dash.
            let is_group = word.starts_with('-') || (at == 0 && self.program == "tar");
            let is_setting = self.program == "make" && word.contains('=');
            let is_transport = self.program == "git" && word.contains("::");
            let in_group = is_group && !word.starts_with("--") && word.contains(letters.as_slice());
            is_setting
                || is_transport
                || in_group
                || self.options.iter().any(|option| is_option(word, option))
        };
        self.subcommands.contains(&subcommand) || arguments.enumerate().any(launches)
    }
}

/// Whether a word is an option: with a value attached, or a long one shortened, as most parsers of options allow.
fn is_option(word: &str, option: &str) -> bool {
    match option.strip_prefix("--") {
        Some(_) => {
            let name = word.split_once('=').map_or(word, |(name, _)| name);
            name.len() > 2 && option.starts_with(name)
        }
        None if option.len() == 2 => word.starts_with(option) && !word.starts_with("--"),
        None => word == option || word.strip_prefix(option).is_some_and(|rest| rest.starts_with('=')),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn launched(line: &str) -> bool {
        launches(line.split(' '))
    }

    #[test]
    fn launchers_are_known_by_any_name() {
        for line in ["sh x", "/bin/bash x", "python3.12 x", "env", "npx x", "perl5.36", "./xargs rm", "ssh h"]
        {
            assert!(launched(line), "{line}");
        }
        for line in ["ls", "git", "grep x", "rm", "python-config", "", "."] {
            assert_eq!(launched(line), line == ".", "{line}");
        }
    }

    #[test]
    fn options_that_run_something_are_found_in_every_spelling() {
        for line in [
            "git -c a=b log",
            "git -ca=b log",
            "git fetch --upload-pack=x",
            "git fetch --upload-pa x",
            "git ls-remote --u=x y",
            "git clone -qu x y",
            "git fetch ext::sh",
            "git rebase -x make",
            "git grep -Oless x",
            "cargo test --config x",
            "cargo install x",
            "find . -exec rm",
            "tar --to-comm=x",
            "tar -Ix",
            "tar -cIf x",
            "tar cIf x",
            "make SHELL=x",
            "cmake -P x",
        ] {
            assert!(launched(line), "{line}");
        }
        for line in
            ["git log -p", "git push -u origin main", "find . -name x", "cargo test --exclude x", "tar xf a"]
        {
            assert!(!launched(line), "{line}");
        }
    }
}

//! Reading works from anything that can be read, and shows all that was acknowledged: folders that cannot be written,
//! disks that are full, logs that are not merged, stores of older programs, settings that are refused in part.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};

use clap::{FromArgMatches as _, Subcommand as _};

use crate::migrating::of_version;
use crate::program::program;
use crate::support::{Home, Ran, ended, until};

/// Every command that only reads, with arguments: `{answer}` is a node that a model made, `{node}` another one.
const READING: &[&str] = &[
    "log",
    "sessions list",
    "sessions show main",
    "approvals list",
    "policy list",
    "policy test read {\"path\":\"a.md\"}",
    "files diff",
    "tools list",
    "mcp list",
    "mcp serve",
    "skills list",
    "skills check",
    "cards list",
    "cards check",
    "cards select -m rain",
    "handoff check HANDOFF.md",
    "handoff history",
    "tree list",
    "tree show Tale --all",
    "tree text Tale --spans",
    "tree siblings Tale {answer}",
    "tree versions Tale {node}",
    "tree bookmarks Tale",
    "tree log Tale",
    "tree view list Tale",
    "tree compare Tale {node} {answer}",
    "tree verify Tale",
    "tree search rained",
    "tree export Tale -o -",
    "tree export Tale --share -o -",
    "tree export Tale --format markdown -o -",
    "context show {answer}",
    "context show --next Tale --model script:echo",
    "context diff {answer} {answer}",
    "context replay {answer} --dry-run",
    "cost",
    "workspace list",
    "model list",
    "search rained",
    "store check",
    "backup -o elsewhere/home.backup",
    "doctor --quick",
    "tree generate Tale --dry-run --model script:echo",
    "tree compact Tale --dry-run",
    "tree purge Tale --dry-run",
    "forget --text rained --dry-run",
];

/// All other commands.
const WRITING: &str = "chat; ask; sessions rename; sessions archive; sessions restore; approve; deny; policy allow; policy ask; policy deny; policy remove; files history; files restore; mcp get; mcp add; mcp remove; mcp test; mcp accept; mcp login; mcp logout; \
    skills show; skills run; skills new; skills add; skills remove; skills export; \
    skills enable; skills disable; cards new; tree new; \
    tree append; tree draft; tree edit; tree split; tree merge; tree branch; tree tokens; tree regenerate; tree switch; tree go; tree select; \
    tree keep; tree prune; tree restore; tree exclude; tree include; tree bookmark; tree tag; tree annotate; tree head; \
    tree note; tree undo; tree redo; tree view new; tree view delete; tree seal; tree trust; tree rename; \
    tree delete; tree undelete; tree import; workspace trust; workspace untrust; workspace accept; model pull; model use; \
    model test; init; import; restore; config set; config unset; config get; config check; config show; \
    config path; bench; sandbox";

/// What of an answer is the same wherever the home lies, and whatever room there is.
fn comparable(row: &str, stdout: &str) -> String {
    let keep = |line: &&str| !row.starts_with("doctor") || line.split_whitespace().nth(1) == Some("store");
    // The size of a backup depends on how its copy of the store is laid out.
    let kept = |line| if row.starts_with("backup") { str::split(line, "  ").next().unwrap() } else { line };
    stdout.lines().filter(keep).map(kept).collect::<Vec<_>>().join("\n")
}

/// A home with a document and a conversation, and the rows with the names of its nodes.
fn furnished() -> (Home, Vec<String>) {
    let home = Home::with_tale("It rained.");
    fs::create_dir(home.folder().join("elsewhere")).unwrap();
    let handoff = "# HANDOFF.md\n## Current Work\n## Stopping Point\n## Key Outcomes\n## Open Questions\n## Next Steps\n";
    fs::write(home.folder().join("HANDOFF.md"), handoff).unwrap();
    let node = home.nodes().into_iter().find(|node| node["text"] == "It rained.").unwrap();
    let node = node["id"].as_str().unwrap().to_owned();
    home.ok(&["tree", "append", "Tale", " It poured."]);
    home.ok(&["tree", "edit", "Tale", &node, "--text", "It drizzled.", "--as", "version"]);
    home.ok(&["tree", "bookmark", "Tale", &node, "here"]);
    let made = home.json(&["--model", "script:echo", "tree", "generate", "Tale"]);
    let answer = made["nodes"][0]["id"].as_str().unwrap().to_owned();
    home.ok(&["--model", "script:echo", "chat", "-m", "hello"]);
    let named = |row: &&str| row.replace("{answer}", &answer).replace("{node}", &node);
    (home, READING.iter().map(named).collect())
}

/// The program in a mount namespace of its own, after a script that makes the surroundings.
fn within(home: &Home, script: &str, arguments: &[&str]) -> Ran {
    let own: &[&str] =
        if rustix::process::geteuid().is_root() { &[] } else { &["--user", "--map-root-user"] };
    let mut command = Command::new("unshare");
    let script = format!("{script}\nexec \"$DRAWLOOM\" \"$@\"");
    command.args(own).args(["--mount", "sh", "-eu", "-c", &script, "sh"]).args(arguments);
    let mut command = home.at_home(command);
    command.env("DRAWLOOM", program()).env("FOLDER", home.folder()).env("TMPDIR", temporary(home));
    Ran::of(command.stdin(Stdio::null()).output().unwrap())
}

/// The temporary folder of a home's programs.
fn temporary(home: &Home) -> PathBuf {
    let folder = home.folder().join("tmp");
    fs::create_dir_all(&folder).unwrap();
    folder
}

const READ_ONLY: &str = r#"
    mount --bind "$DRAWLOOM_HOME" "$DRAWLOOM_HOME"
    mount -o remount,bind,ro "$DRAWLOOM_HOME"
"#;

/// The home moves to a disk that is filled to its last byte.
const FULL: &str = r#"
    mkdir -p "$FOLDER/kept"
    rm -f "$DRAWLOOM_HOME/reserve"
    mount --bind "$DRAWLOOM_HOME" "$FOLDER/kept"
    mount -t tmpfs -o size=4m,mode=700 tmpfs "$DRAWLOOM_HOME"
    cp -a "$FOLDER/kept/." "$DRAWLOOM_HOME"
    umount "$FOLDER/kept"
    dd if=/dev/zero of="$DRAWLOOM_HOME/cache/filler" bs=4096 2> /dev/null || true
"#;

const NOTHING: &str = "";

/// Asserts that each row says the same as it said before, and that it says on standard error each of `told`.
fn all_say(home: &Home, rows: &[String], expected: &[String], surroundings: &str, told: &[&str]) {
    for (row, expected) in rows.iter().zip(expected) {
        let _ = fs::remove_file(home.folder().join("elsewhere/home.backup"));
        let words: Vec<&str> = row.split(' ').collect();
        let ran = within(home, surroundings, &words);
        assert_eq!(&comparable(row, &ran.stdout), expected, "{row}: {ran:?}");
        let is_examined = row.starts_with("doctor");
        assert!(ran.status.success() || is_examined, "{row}: {ran:?}");
        // What works without the store says nothing of it.
        let needs = |word: &&&str| !is_examined && (row != "model list" || word.contains("toml"));
        for word in told.iter().filter(needs) {
            assert!(ran.stderr.contains(word), "{row}: no {word:?} in {ran:?}");
        }
        if row.starts_with("backup") {
            let to = home.folder().join("restored");
            home.ok(&["--home", to.to_str().unwrap(), "restore", "elsewhere/home.backup"]);
            let text = home.run(&["--home", to.to_str().unwrap(), "tree", "text", "Tale"]);
            assert_eq!(text.stdout, within(home, surroundings, &["tree", "text", "Tale"]).stdout);
            fs::remove_dir_all(to).unwrap();
        }
        let left: Vec<_> = temporary(home).read_dir().unwrap().flatten().map(|entry| entry.path()).collect();
        assert!(left.is_empty(), "{row} left {left:?}");
    }
}

/// What each row says in a home where nothing is wrong.
fn said(home: &Home, rows: &[String]) -> Vec<String> {
    let say = |row: &String| {
        let _ = fs::remove_file(home.folder().join("elsewhere/home.backup"));
        let words: Vec<&str> = row.split(' ').collect();
        let ran = home.run(&words);
        assert!(ran.status.success() || row.starts_with("doctor"), "{row}: {ran:?}");
        comparable(row, &ran.stdout)
    };
    rows.iter().map(say).collect()
}

fn leaves(command: &clap::Command, above: &str, names: &mut BTreeSet<String>) {
    let mut subcommands = command.get_subcommands().filter(|found| found.get_name() != "help").peekable();
    if subcommands.peek().is_none() {
        names.insert(above.trim().to_owned());
    }
    for found in subcommands {
        leaves(found, &format!("{above} {}", found.get_name()), names);
    }
}

#[test]
fn every_command_that_only_reads_is_in_the_list() {
    let cli = commands::Command::augment_subcommands(clap::Command::new("drawloom"));
    let mut all = BTreeSet::new();
    leaves(&cli, "", &mut all);
    let mut listed: BTreeSet<String> = WRITING.split(';').map(|name| name.trim().to_owned()).collect();
    for row in READING {
        let words = row.split(' ').filter(|word| !matches!(*word, "--model" | "script:echo"));
        let parsed = cli.clone().try_get_matches_from(std::iter::once("drawloom").chain(words)).unwrap();
        let command = commands::Command::from_arg_matches(&parsed).unwrap();
        assert!(command.only_reads(), "{row}");
        let name = all.iter().find(|name| *row == **name || row.starts_with(&format!("{name} ")));
        listed.insert(name.unwrap().clone());
    }
    assert_eq!(listed, all);
}

#[test]
fn a_home_that_cannot_be_written_is_read() {
    let (home, rows) = furnished();
    let expected = said(&home, &rows);
    all_say(&home, &rows, &expected, READ_ONLY, &["the home is only read", "cannot be written"]);
    for line in ["/status", "/help", "/sessions", "/history", "/zone", "/cost", "/context", "/search rained"]
    {
        let words = ["--model", "script:echo", "chat", "-m", line];
        let expected = home.run(&words);
        let read = within(&home, READ_ONLY, &words);
        assert!(
            read.status.success() && read.stdout == expected.stdout,
            "{line}: {read:?}, not {expected:?}"
        );
        assert!(read.stderr.contains("the home is only read"), "{line}: {read:?}");
    }
    let none = within(&home, READ_ONLY, &["chat", "--session", "none", "-m", "/status"]);
    assert!(none.status.success(), "{none:?}");
    for line in ["hello", "/rename other", "/system Speak."] {
        within(&home, READ_ONLY, &["chat", "-m", line]).refused(6, &["cannot be written"]);
    }
    within(&home, READ_ONLY, &["tree", "append", "Tale", " And on."]).refused(6, &["cannot be written"]);
    within(&home, READ_ONLY, &["store", "check", "--repair"]).refused(6, &["cannot be written"]);
}

#[test]
fn a_home_of_another_user_is_read_by_who_may_read_it() {
    // Only the superuser can be somebody else; the program as it runs for others has the test above.
    assert!(rustix::process::geteuid().is_root(), "run as root, or leave this test out by name");
    let (home, rows) = furnished();
    let expected = said(&home, &rows);
    let opened = Command::new("chmod").args(["-R", "a+rX"]).arg(home.folder()).status().unwrap();
    assert!(opened.success());
    for folder in ["tmp", "elsewhere"] {
        fs::create_dir_all(home.folder().join(folder)).unwrap();
        fs::set_permissions(home.folder().join(folder), PermissionsExt::from_mode(0o777)).unwrap();
    }
    for (row, expected) in rows.iter().zip(&expected) {
        let _ = fs::remove_file(home.folder().join("elsewhere/home.backup"));
        let mut command = Command::new("setpriv");
        command
            .args(["--reuid=65534", "--regid=65534", "--clear-groups"])
            .arg(program())
            .args(row.split(' '));
        let mut command = home.at_home(command);
        let ran = Ran::of(command.env("TMPDIR", temporary(&home)).output().unwrap());
        assert_eq!(&comparable(row, &ran.stdout), expected, "{row}: {ran:?}");
    }
    assert_eq!(temporary(&home).read_dir().unwrap().count(), 0);
}

#[test]
fn a_home_on_a_full_disk_is_read() {
    let (home, rows) = furnished();
    let expected = said(&home, &rows);
    fs::create_dir_all(home.path().join("cache")).unwrap();
    all_say(&home, &rows, &expected, FULL, &["the home is only read", "no space left"]);
    let refused = within(&home, FULL, &["tree", "append", "Tale", " And on."]);
    refused.refused(6, &["no space left"]);
}

/// Leaves a home as a process does that was killed: what it said last is in the log alone.
fn leave_log(home: &Home) {
    let reading = rusqlite::Connection::open(home.database()).unwrap();
    // What this reads cannot be overwritten by what comes later.
    reading.execute_batch("BEGIN").unwrap();
    let _: i64 = reading.query_row("SELECT count(*) FROM trees", [], |row| row.get(0)).unwrap();
    home.ok(&["tree", "append", "Tale", " Only in the log."]);
    let kept = home.folder().join("as-it-was");
    let copied = Command::new("cp").arg("-a").arg(home.path()).arg(&kept).status().unwrap();
    assert!(copied.success());
    drop(reading);
    fs::remove_dir_all(home.path()).unwrap();
    fs::rename(kept, home.path()).unwrap();
    assert!(home.path().join("loom.db-wal").metadata().unwrap().len() > 0);
}

/// What each row says in a copy of a home that can be written, which is then as it was.
fn said_in_a_copy(home: &Home, rows: &[String]) -> Vec<String> {
    let aside = home.folder().join("aside");
    let copied = Command::new("cp").arg("-a").arg(home.path()).arg(&aside).status().unwrap();
    assert!(copied.success());
    let expected = said(home, rows);
    fs::remove_dir_all(home.path()).unwrap();
    fs::rename(aside, home.path()).unwrap();
    expected
}

#[test]
fn what_stands_only_in_a_log_is_read() {
    let (home, rows) = furnished();
    leave_log(&home);
    let expected = said_in_a_copy(&home, &rows);
    assert!(expected.iter().any(|said| said.contains("Only in the log.")));
    all_say(&home, &rows, &expected, READ_ONLY, &["the home is only read: "]);
    fs::remove_file(home.path().join("loom.db-shm")).unwrap();
    // An answer of a process that was killed.
    fs::create_dir_all(home.path().join("spool")).unwrap();
    fs::write(home.path().join("spool/01M88GM29YP77F368BCAF9BZMW"), "half an answer").unwrap();
    let told = within(&home, READ_ONLY, &["tree", "text", "Tale"]);
    assert!(told.stderr.contains("not shown yet: 1 in spool"), "{told:?}");
    let backup = home.folder().join("lacking.tar").display().to_string();
    let told = within(&home, READ_ONLY, &["backup", "-o", &backup]);
    assert!(
        told.stderr.contains("were cut off: 1 in spool") && !told.stderr.contains("is complete"),
        "{told:?}"
    );
    all_say(&home, &rows, &expected, READ_ONLY, &["from a private copy of its store"]);
    // The control: the file alone says less.
    fs::remove_file(home.path().join("loom.db-wal")).unwrap();
    let less = within(&home, READ_ONLY, &["tree", "text", "Tale"]);
    assert!(less.stdout.contains("It poured.") && !less.stdout.contains("Only in the log."), "{less:?}");
}

#[test]
fn a_store_of_an_older_program_is_read_where_it_cannot_be_brought_up_to_date() {
    const ROWS: [&str; 8] = [
        "tree list",
        "tree text Rain",
        "tree show Rain --all",
        "tree verify Rain",
        "tree export Rain --with-context -o -",
        "tree search roof",
        "sessions list",
        "store check",
    ];
    for version in [2, 3] {
        let home = of_version(version);
        let rows = ROWS.map(str::to_owned);
        let expected = said_in_a_copy(&home, &rows);
        let before = fs::read(home.database()).unwrap();
        all_say(&home, &rows, &expected, READ_ONLY, &["from a private copy of its store"]);
        assert!(fs::read(home.database()).unwrap() == before);
        assert_eq!(home.path().read_dir().unwrap().count(), 1, "nothing was made beside it");
    }
}

#[test]
fn one_unknown_key_keeps_nothing_from_being_read() {
    let (home, rows) = furnished();
    let rows: Vec<String> = rows.into_iter().filter(|row| !row.contains("--share")).collect();
    let expected = said(&home, &rows);
    fs::write(home.path().join("config.toml"), "[model]\ndefualt = \"a/b\"\n[log]\nlevel = \"error\"\n")
        .unwrap();
    all_say(
        &home,
        &rows,
        &expected,
        NOTHING,
        &["config.toml: unknown key model.defualt: did you mean model.default?"],
    );
    for arguments in
        [&["tree", "append", "Tale", " x"][..], &["--model", "script:echo", "tree", "generate", "Tale"]]
    {
        home.run(arguments).refused(2, &["unknown key model.defualt"]);
    }
    // Who says that no known secret is in it has to know them all.
    home.run(&["tree", "export", "Tale", "--share", "-o", "-"]).refused(2, &["unknown key model.defualt"]);
    fs::write(home.path().join("config.toml"), "[model\n").unwrap();
    all_say(&home, &rows, &expected, NOTHING, &["config.toml: line 1"]);
}

#[test]
fn keys_that_others_may_read_are_used_by_nobody_and_keep_nothing_from_being_read() {
    let (home, rows) = furnished();
    home.file("home/keys.toml", "[providers.box]\nkey = \"canary-0123456789\"\n");
    home.file("home/config.toml", "[providers.box]\nbase_url = \"http://127.0.0.1:9\"\n");
    let keys = home.path().join("keys.toml");
    fs::set_permissions(&keys, PermissionsExt::from_mode(0o600)).unwrap();
    home.run(&["--model", "box/m", "tree", "generate", "Tale"]).refused(5, &[]);
    let expected = said(&home, &rows);
    // The program closes what it may; where it may not, or before it has, the keys are not used.
    let loose = format!(
        "{READ_ONLY}\nchmod 644 \"$FOLDER/keys.toml\"\nmount --bind \"$FOLDER/keys.toml\" \"$DRAWLOOM_HOME/keys.toml\""
    );
    fs::copy(&keys, home.folder().join("keys.toml")).unwrap();
    all_say(&home, &rows, &expected, &loose, &["keys.toml: others may read it (mode 0644)", "chmod 600"]);
    let loosen = || fs::set_permissions(&keys, PermissionsExt::from_mode(0o644)).unwrap();
    loosen();
    // Once it is closed, it is read: nothing answers at that address.
    let closed = home.run(&["--model", "box/m", "tree", "generate", "Tale"]);
    assert!(closed.stderr.contains("it is closed now; consider new keys"), "{closed:?}");
    assert!(!closed.stderr.contains("chmod 600"), "{closed:?}");
    closed.refused(5, &[]);
    loosen();
    home.ok(&["--model", "script:echo", "tree", "generate", "Tale"]);
    loosen();
    // It is known, so that it enters no tree and leaves none.
    let masked = home.run(&["tree", "append", "Tale", " canary-0123456789"]);
    assert!(masked.status.success() && masked.stderr.contains("a known secret was masked"), "{masked:?}");
    assert!(!home.text().contains("canary"));
}

#[test]
fn a_reader_sees_what_another_process_acknowledges_meanwhile() {
    let home = Home::with_tale("It rained.");
    for open_elsewhere in [false, true] {
        let other = rusqlite::Connection::open(home.database()).unwrap();
        if open_elsewhere {
            let _: i64 = other.query_row("SELECT count(*) FROM trees", [], |row| row.get(0)).unwrap();
        }
        for number in 0..5 {
            let text = format!(" {open_elsewhere} {number}.");
            home.ok(&["tree", "append", "Tale", &text]);
            let ran = within(&home, READ_ONLY, &["tree", "text", "Tale"]);
            assert!(ran.stdout.trim_end().ends_with(text.trim()), "{ran:?}");
        }
    }
    // While it is written all the time, a reader says all of it up to some moment, or that it is written.
    let said = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for number in 0..40 {
                home.ok(&["tree", "append", "Tale", &format!(" w{number}.")]);
                said.store(number + 1, Ordering::SeqCst);
            }
        });
        until("the writer is done", || {
            let before = said.load(Ordering::SeqCst);
            let ran = within(&home, READ_ONLY, &["tree", "text", "Tale"]);
            match ran.status.code() {
                Some(0) => {
                    assert!(before == 0 || ran.stdout.contains(&format!(" w{}.", before - 1)), "{ran:?}");
                }
                _ => ran.refused(6, &["busy"]),
            }
            said.load(Ordering::SeqCst) == 40
        });
    });
}

#[test]
fn where_no_copy_fits_the_room_that_it_needs_is_said() {
    let home = Home::with_tale("It rained.");
    leave_log(&home);
    fs::remove_file(home.path().join("loom.db-shm")).unwrap();
    let ends = ["", "-wal"];
    let size = |end: &&str| home.path().join(format!("loom.db{end}")).metadata().unwrap().len();
    let needed: u64 = ends.iter().map(size).sum::<u64>() * 2;
    // Nothing temporary has room. The program may lie there itself.
    let small = r#"
        exec 9<"$DRAWLOOM"
        DRAWLOOM=/proc/self/fd/9
        mount --bind "$FOLDER" /mnt
        export DRAWLOOM_HOME=/mnt/home TMPDIR=/tmp
        mount -o bind,ro /mnt/home /mnt/home
        mount -t tmpfs -o size=64k tmpfs /tmp
        mount -t tmpfs -o size=64k tmpfs /dev/shm
        cd /
    "#;
    let ran = within(&home, small, &["tree", "text", "Tale"]);
    ran.refused(6, &[&format!("{needed} bytes"), "/tmp", "/dev/shm", "TMPDIR"]);
    // Beside the first place there is another one.
    let one = small.replace("mount -t tmpfs -o size=64k tmpfs /dev/shm", "");
    let ran = within(&home, &one, &["tree", "text", "Tale"]);
    assert!(ran.stdout.contains("Only in the log."), "{ran:?}");
}

#[test]
fn a_private_copy_of_a_killed_reader_is_removed_by_the_next_command() {
    let home = Home::with_tale(&"It rained. ".repeat(9_000));
    leave_log(&home);
    fs::remove_file(home.path().join("loom.db-shm")).unwrap();
    let left =
        || temporary(&home).read_dir().unwrap().flatten().map(|entry| entry.path()).collect::<Vec<_>>();
    // The text waits in a pipe that nobody reads.
    let script = format!("{READ_ONLY}\nexec \"{}\" tree text Tale", program().display());
    let mut command = Command::new("unshare");
    let own: &[&str] =
        if rustix::process::geteuid().is_root() { &[] } else { &["--user", "--map-root-user"] };
    command.args(own).args(["--mount", "sh", "-eu", "-c", &script]);
    let mut child = home.at_home(command).env("TMPDIR", temporary(&home)).spawn().unwrap();
    until("a copy is made", || has_store(&left()));
    child.kill().unwrap();
    ended(child);
    assert_eq!(left().len(), 1, "the control: it was killed");
    let mode = left()[0].metadata().unwrap().permissions().mode() & 0o7777;
    assert_eq!(mode, 0o700);
    let ran = Ran::of(home.command(&["tree", "list"]).env("TMPDIR", temporary(&home)).output().unwrap());
    assert!(ran.status.success(), "{ran:?}");
    assert_eq!(left(), Vec::<PathBuf>::new());
}

fn has_store(folders: &[PathBuf]) -> bool {
    folders.iter().any(|folder| folder.join("loom.db").exists())
}

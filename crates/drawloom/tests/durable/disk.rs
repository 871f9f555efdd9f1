//! Disks that are full, small or read-only.

use std::process::{Command, Stdio};

use crate::support::{Before, DRAWLOOM, Home, Ran};

/// Runs a shell script at a home, in a mount namespace of its own. `$DRAWLOOM` is the program.
fn sh_with_mounts(home: &Home, script: &str) -> Ran {
    let own: &[&str] =
        if rustix::process::geteuid().is_root() { &[] } else { &["--user", "--map-root-user"] };
    let mut command = Command::new("unshare");
    command.args(own).args(["--mount", "sh", "-eu", "-c", script]);
    let mut command = home.at_home(command);
    command.env("DRAWLOOM", DRAWLOOM).env("FOLDER", home.folder()).stdin(Stdio::null());
    Ran::of(command.output().unwrap())
}

/// Runs the program while no file may grow beyond so many blocks of 512 bytes.
fn with_small_files(home: &Home, blocks: u32, on_signal: &str, arguments: &[&str]) -> Ran {
    let mut command = Command::new("sh");
    command
        .args(["-c", &format!("{on_signal} ulimit -f {blocks}; exec \"$@\""), "sh", DRAWLOOM])
        .args(arguments);
    Ran::of(home.at_home(command).output().unwrap())
}

#[test]
fn a_write_that_finds_no_room_is_refused_whole() {
    let home = Home::with_tale("It rained.");
    let before = Before::of(&home);
    let text = "rain ".repeat(20_000);
    let refused = with_small_files(&home, 64, "trap '' XFSZ;", &["tree", "append", "Tale", &text]);
    refused.refused(6, &[]);
    before.unharmed(&home);
    home.ok(&["tree", "append", "Tale", &text]);
    home.is_sound();
}

#[test]
fn a_process_that_dies_of_its_limit_loses_nothing_that_was_acknowledged() {
    let home = Home::with_tale("It rained.");
    let before = Before::of(&home);
    let text = "rain ".repeat(20_000);
    let died = with_small_files(&home, 64, "", &["tree", "append", "Tale", &text]);
    assert!(!died.status.success(), "{died:?}");
    before.unharmed(&home);
}

#[test]
fn a_disk_that_is_full_takes_no_write_and_loses_nothing() {
    let home = Home::new();
    // A small disk is filled to the last byte; then it is asked for more, read, and freed again.
    let ran = sh_with_mounts(
        &home,
        r#"
        mkdir "$FOLDER/small"
        mount -t tmpfs -o size=8m tmpfs "$FOLDER/small"
        export DRAWLOOM_HOME="$FOLDER/small/home"
        "$DRAWLOOM" tree new --title Tale --text 'It rained.' > /dev/null
        "$DRAWLOOM" tree append Tale ' It poured.' > /dev/null
        dd if=/dev/zero of="$FOLDER/small/filler" bs=4096 2> /dev/null || true
        set +e
        head -c 100000 /dev/zero | tr '\0' x | "$DRAWLOOM" tree append Tale - 2> "$FOLDER/refused"
        echo "exit $?"
        "$DRAWLOOM" tree text Tale
        echo
        "$DRAWLOOM" tree verify Tale
        rm "$FOLDER/small/filler"
        "$DRAWLOOM" tree append Tale ' It cleared.' > /dev/null
        echo "exit $?"
        "$DRAWLOOM" tree text Tale
        echo
        "$DRAWLOOM" --model script:echo tree generate Tale 2>> "$FOLDER/refused"
        echo "exit $?"
        "$DRAWLOOM" tree verify Tale
        "#,
    );
    let refused = std::fs::read_to_string(home.folder().join("refused")).unwrap_or_default();
    let lines: Vec<&str> = ran.stdout.lines().collect();
    assert!(ran.status.success(), "{ran:?} {refused}");
    assert_eq!(lines[..2], ["exit 6", "It rained. It poured."], "{ran:?} {refused}");
    assert!(lines[2].contains("valid"), "{ran:?}");
    let at = lines.iter().position(|line| *line == "exit 0").unwrap_or_else(|| panic!("{ran:?} {refused}"));
    assert_eq!(lines[at + 1..at + 3], ["It rained. It poured. It cleared.", "exit 6"], "{ran:?}");
    assert!(lines[at + 3].contains("valid"), "{ran:?}");
    let [full, no_turn] = refused.lines().collect::<Vec<_>>()[..] else { panic!("{refused}") };
    assert!(full.starts_with("error: no space left") && full.contains("free some"), "{full}");
    assert!(
        no_turn.starts_with("error: there is too little free space for a new turn: free some"),
        "{no_turn}"
    );
}

#[test]
fn a_home_that_cannot_be_written_is_refused() {
    let home = Home::with_tale("It rained.");
    let before = Before::of(&home);
    let ran = sh_with_mounts(
        &home,
        r#"
        mount --bind "$DRAWLOOM_HOME" "$DRAWLOOM_HOME"
        mount -o remount,bind,ro "$DRAWLOOM_HOME"
        exec "$DRAWLOOM" tree append Tale ' It poured.'
        "#,
    );
    ran.refused(6, &["cannot be written", "--home"]);
    before.unharmed(&home);
}

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

/// Fills a disk of `$SIZE` to the last byte, asks for more, reads, and frees it again. Standard output says how
/// each command ended.
const FILLED: &str = r#"
    mkdir "$FOLDER/small"
    mount -t tmpfs -o size=$SIZE tmpfs "$FOLDER/small"
    export DRAWLOOM_HOME="$FOLDER/small/home"
    "$DRAWLOOM" tree new --title Tale --text 'It rained.' > /dev/null
    "$DRAWLOOM" tree append Tale ' It poured.' > /dev/null
    dd if=/dev/zero of="$FOLDER/small/filler" bs=65536 2> /dev/null || true
    set +e
    tried() { "$DRAWLOOM" "$@" 2>> "$FOLDER/refused"; echo " ($?)"; }
    head -c 30000000 /dev/urandom | base64 -w 0 | tried tree append Tale -
    tried tree text Tale
    tried --quiet tree draft Tale ' A drop.'
    tried --model script:echo tree generate Tale
    rm "$FOLDER/small/filler"
    tried tree append Tale ' It cleared.'
    tried tree text Tale --committed
    tried tree verify Tale
"#;

fn filled(home: &Home, size: &str) -> (Vec<String>, Vec<String>) {
    let ran = sh_with_mounts(home, &format!("SIZE={size}; {FILLED}"));
    let refused = std::fs::read_to_string(home.folder().join("refused")).unwrap_or_default();
    assert!(ran.status.success(), "{ran:?} {refused}");
    let lines = |text: &str| text.lines().map(str::to_owned).collect();
    (lines(&ran.stdout), lines(&refused))
}

#[test]
fn a_disk_that_is_full_takes_no_write_and_loses_nothing() {
    let (said, refused) = filled(&Home::new(), "8m");
    let [append, _text, _draft, turn, _appended, cleared @ ..] = said.as_slice() else {
        panic!("{said:?} {refused:?}")
    };
    assert_eq!((append.as_str(), turn.as_str()), (" (6)", " (6)"), "{said:?} {refused:?}");
    assert!(
        refused[0].starts_with("error: no space left") && refused[0].contains("free some"),
        "{refused:?}"
    );
    assert_eq!(cleared[0], " (0)", "{said:?} {refused:?}");
    assert_eq!(cleared[1], "It rained. It poured. It cleared. (0)", "{said:?} {refused:?}");
    assert!(cleared[2].starts_with("valid"), "{said:?}");
}

#[test]
fn a_disk_that_fills_up_still_lets_its_owner_read_and_keep_a_draft() {
    let (said, refused) = filled(&Home::new(), "320m");
    let [append, text, _drafted, draft, turn, _appended, cleared @ ..] = said.as_slice() else {
        panic!("{said:?} {refused:?}")
    };
    assert_eq!((append.as_str(), turn.as_str()), (" (6)", " (6)"), "{said:?} {refused:?}");
    assert_eq!(text, "It rained. It poured. (0)", "{refused:?}");
    assert_eq!(draft, " (0)", "{said:?} {refused:?}");
    assert!(refused[0].starts_with("error: no space left for the store: free some"), "{refused:?}");
    let no_turn = "error: there is too little free space for a new turn: free some";
    assert!(refused.iter().any(|line| line.starts_with(no_turn)), "{refused:?}");
    assert_eq!(cleared[1], "It rained. It poured. A drop. It cleared. (0)", "{said:?} {refused:?}");
    assert!(cleared[2].starts_with("valid"), "{said:?}");
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

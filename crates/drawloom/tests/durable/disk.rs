//! Disks that are full, small or read-only.

use std::process::{Command, Stdio};

use serde_json::json;

use crate::program::program;
use crate::support::{Before, Home, Ran};

/// Runs a shell script at a home, in a mount namespace of its own. `$DRAWLOOM` is the program.
fn sh_with_mounts(home: &Home, script: &str) -> Ran {
    let own: &[&str] =
        if rustix::process::geteuid().is_root() { &[] } else { &["--user", "--map-root-user"] };
    let mut command = Command::new("unshare");
    command.args(own).args(["--mount", "sh", "-eu", "-c", script]);
    let mut command = home.at_home(command);
    command.env("DRAWLOOM", program()).env("FOLDER", home.folder()).stdin(Stdio::null());
    Ran::of(command.output().unwrap())
}

/// Runs the program while no file may grow beyond so many blocks of 512 bytes.
fn with_small_files(home: &Home, blocks: u32, on_signal: &str, arguments: &[&str]) -> Ran {
    let mut command = Command::new("sh");
    command.args(["-c", &format!("{on_signal} ulimit -f {blocks}; exec \"$@\""), "sh"]);
    command.arg(program()).args(arguments);
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
fn a_limit_on_the_size_of_files_is_an_error_and_loses_nothing() {
    let home = Home::with_tale("It rained.");
    let before = Before::of(&home);
    let text = "rain ".repeat(20_000);
    let refused = with_small_files(&home, 64, "", &["tree", "append", "Tale", &text]);
    refused.refused(6, &["beyond the limit of this process", "ulimit -f"]);
    before.unharmed(&home);
}

#[test]
fn a_full_spool_is_an_error_of_the_disk_and_keeps_what_came() {
    let home = Home::with_tale("It rained.");
    let deltas: Vec<String> = (0..4_000).map(|number| format!(" and on day {number} it rained on")).collect();
    let model = home.script(&[json!({"deltas": deltas})]);
    let ran = sh_with_mounts(
        &home,
        &format!(
            r#"
            mkdir -p "$DRAWLOOM_HOME/spool"
            mount -t tmpfs -o size=64k,mode=700 tmpfs "$DRAWLOOM_HOME/spool"
            exec "$DRAWLOOM" --model '{model}' tree generate Tale --max-tokens 100000
            "#
        ),
    );
    assert_eq!(ran.status.code(), Some(6), "{ran:?}");
    assert!(ran.stderr.contains("could not be kept") && ran.stderr.contains("free some space"), "{ran:?}");
    assert!(home.text().starts_with("It rained."));
    home.is_sound();
}

#[test]
fn a_small_disk_keeps_a_small_reserve() {
    let (ended, refused) = filled(&Home::new(), "64m");
    let [(append, _), (text, shown), (draft, _), ..] = ended.as_slice() else { panic!("{ended:?}") };
    assert_eq!((*append, *text, *draft), (6, 0, 0), "{ended:?} {refused:?}");
    assert_eq!(shown, "It rained. It poured.");
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

/// The exit code of each command behind its last line, and what was refused.
fn filled(home: &Home, size: &str) -> (Vec<(i32, String)>, Vec<String>) {
    let ran = sh_with_mounts(home, &format!("SIZE={size}; {FILLED}"));
    let refused = std::fs::read_to_string(home.folder().join("refused")).unwrap_or_default();
    assert!(ran.status.success(), "{ran:?} {refused}");
    let ended = ran.stdout.lines().filter_map(|line| {
        let (said, code) = line.strip_suffix(')')?.rsplit_once(" (")?;
        Some((code.parse().ok()?, said.to_owned()))
    });
    (ended.collect(), refused.lines().map(str::to_owned).collect())
}

#[test]
fn a_disk_that_is_full_takes_no_write_and_loses_nothing() {
    let (ended, refused) = filled(&Home::new(), "8m");
    let [append, _text, _draft, turn, appended, text, verified] = ended.as_slice() else {
        panic!("{ended:?} {refused:?}")
    };
    assert_eq!((append.0, turn.0), (6, 6), "{ended:?} {refused:?}");
    assert!(
        refused[0].starts_with("error: no space left") && refused[0].contains("free some"),
        "{refused:?}"
    );
    assert_eq!(appended.0, 0, "{ended:?} {refused:?}");
    assert!(text.1.starts_with("It rained. It poured.") && text.1.ends_with(" It cleared."), "{ended:?}");
    assert_eq!(verified.0, 0, "{ended:?}");
}

#[test]
fn a_disk_that_fills_up_still_lets_its_owner_read_and_keep_a_draft() {
    let (ended, refused) = filled(&Home::new(), "320m");
    let [append, text, draft, turn, _appended, cleared, verified] = ended.as_slice() else {
        panic!("{ended:?} {refused:?}")
    };
    assert_eq!((append.0, turn.0), (6, 6), "{ended:?} {refused:?}");
    assert_eq!(text, &(0, "It rained. It poured.".to_owned()), "{refused:?}");
    assert_eq!(draft.0, 0, "{ended:?} {refused:?}");
    assert!(refused[0].starts_with("error: no space left for the store: free some"), "{refused:?}");
    let no_turn = "error: there is too little free space for a turn or an import: free some";
    assert!(refused.iter().any(|line| line.starts_with(no_turn)), "{refused:?}");
    assert_eq!(cleared.1, "It rained. It poured. A drop. It cleared.", "{ended:?} {refused:?}");
    assert_eq!(verified.0, 0, "{ended:?}");
}

#[test]
fn a_backup_of_a_full_disk_is_made_on_another() {
    let home = Home::new();
    let ran = sh_with_mounts(
        &home,
        r#"
        mkdir "$FOLDER/small" "$FOLDER/private"
        mount -t tmpfs -o size=8m tmpfs "$FOLDER/small"
        export DRAWLOOM_HOME="$FOLDER/small/home" TMPDIR="$FOLDER/private"
        "$DRAWLOOM" tree new --title Tale --text 'It rained.' > /dev/null
        fill() { dd if=/dev/zero of="$FOLDER/small/$1" bs=4096 2> /dev/null || true; }
        # What is held back for a full disk is spent. Then there is some room, but not for a copy of the store.
        dd if=/dev/zero of="$FOLDER/small/room" bs=4096 count=30 2> /dev/null
        fill one
        "$DRAWLOOM" tree text Tale > /dev/null
        fill two
        rm "$FOLDER/small/room"
        "$DRAWLOOM" backup -o "$FOLDER/some.backup"
        fill three
        "$DRAWLOOM" backup -o "$FOLDER/none.backup"
        ls -A "$FOLDER/private"
        for made in some none; do
            export DRAWLOOM_HOME="$FOLDER/$made"
            "$DRAWLOOM" restore "$FOLDER/$made.backup" > /dev/null
            "$DRAWLOOM" tree text Tale && echo
        done
        "#,
    );
    assert!(ran.status.success(), "{ran:?}");
    assert!(ran.stderr.contains("the backup is complete, but a home that is only read"), "{ran:?}");
    assert!(ran.stdout.ends_with("It rained.\nIt rained.\n"), "{ran:?}");
    assert!(!ran.stdout.contains("drawloom-reading"), "{ran:?}");
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

#[test]
fn no_command_runs_where_it_cannot_be_written_down_what_was_there() {
    let home = Home::new();
    let ran = sh_with_mounts(
        &home,
        r#"
        mkdir "$FOLDER/project"; cd "$FOLDER/project"
        "$DRAWLOOM" sandbox -- true || exit 1
        mount --bind "$DRAWLOOM_HOME" "$DRAWLOOM_HOME"
        mount -o remount,bind,ro "$DRAWLOOM_HOME"
        exec "$DRAWLOOM" sandbox -- touch made
        "#,
    );
    ran.refused(6, &["written down"]);
}

/// What a command had changed until then is given back.
#[test]
fn a_turn_ends_by_itself_on_a_disk_that_fills_up_while_its_command_runs() {
    let home = Home::new();
    let call = json!({"tool_calls": [
        {"name": "exec", "arguments": {"command": "echo new > made; sleep 1000", "timeout": 600}}
    ]});
    let model = home.script(&[call, json!({"text": "Done."})]);
    let ran = sh_with_mounts(
        &home,
        &format!(
            r#"
            mkdir "$FOLDER/small" "$FOLDER/project"
            mount -t tmpfs -o size=400m tmpfs "$FOLDER/small"
            export DRAWLOOM_HOME="$FOLDER/small/home"
            "$DRAWLOOM" tree new --title Tale --text 'It rained.' > /dev/null
            printf '[agents.assistant]\ntools = ["exec"]\n' > "$DRAWLOOM_HOME/config.toml"
            in_project() {{ "$DRAWLOOM" --model '{model}' --workspace "$FOLDER/project" chat "$@" 2>> "$FOLDER/told"; }}
            "$DRAWLOOM" policy allow 'exec echo *' > /dev/null
            "$DRAWLOOM" policy allow 'exec sleep *' > /dev/null
            in_project -m 'Work.' --json > "$FOLDER/said" &
            turn=$!
            until [ -s "$FOLDER/project/made" ]; do kill -0 $turn; sleep .05; done
            dd if=/dev/zero of="$FOLDER/small/filler" bs=65536 2> /dev/null || true
            set +e
            wait $turn; echo "turn ($?)"
            "$DRAWLOOM" tree text Tale; echo " read ($?)"
            "$DRAWLOOM" --quiet tree draft Tale ' A drop.'; echo "draft ($?)"
            in_project -m 'And now?'; echo "said ($?)"
            rm "$FOLDER/small/filler"
            in_project -m '/undo --files'; echo "undo ($?)"
            [ -e "$FOLDER/project/made" ]; echo "made ($?)"
            "$DRAWLOOM" store check > /dev/null; echo "check ($?)"
            "#
        ),
    );
    let [told, said] =
        ["told", "said"].map(|name| std::fs::read_to_string(home.folder().join(name)).unwrap_or_default());
    let codes: Vec<&str> = ran.stdout.lines().filter(|line| line.ends_with(')')).collect();
    let expected =
        ["turn (0)", "It rained. read (0)", "draft (0)", "said (6)", "undo (0)", "made (1)", "check (0)"];
    assert_eq!(codes, expected, "{ran:?}\n{told}\n{said}");
    assert!(told.contains("limits.free_space"), "{told}");
}

/// It is written down once there is room, whether its record or the bytes that stood there found none.
#[test]
fn what_a_command_did_that_filled_the_disk_of_the_home_is_given_back() {
    for room in ["0", "1M"] {
        let home = Home::new();
        let line = format!(
            "rm lib.rs; echo new > notes; cat /dev/zero > $HOME/fill; truncate -s -{room} $HOME/fill"
        );
        let model = home.script(&[json!({"tool_calls": [{"name": "exec", "arguments": {"command": line}}]})]);
        let ran = sh_with_mounts(
            &home,
            &format!(
                r#"
                mkdir "$FOLDER/small" "$FOLDER/project"
                cd "$FOLDER/project"
                echo 'fn weave() {{}}' > lib.rs; head -c 3000000 /dev/zero > notes; cp -a . ../before
                mount -t tmpfs -o size=40m tmpfs "$FOLDER/small"
                export DRAWLOOM_HOME="$FOLDER/small/home"
                "$DRAWLOOM" tree new --title Tale --text 'It rained.' > /dev/null
                printf '[agents.assistant]\ntools = ["exec"]\n[limits]\nfree_space = 0\n' > "$DRAWLOOM_HOME/config.toml"
                in_project() {{ "$DRAWLOOM" --model '{model}' --workspace . chat "$@" 2>> "$FOLDER/told"; }}
                set +e
                in_project -m 'Work.' > /dev/null; echo "turn ($?)"
                in_project -m '/undo --files' > /dev/null; echo "undo ($?)"
                grep -q new notes; echo "new ($?)"
                find "$DRAWLOOM_HOME" -name fill -delete
                in_project -m '/undo --files' > /dev/null; echo "undo ($?)"
                diff -r . ../before; echo "differs ($?)"
                "$DRAWLOOM" store check > /dev/null; echo "check ($?)"
                "#
            ),
        );
        let told = std::fs::read_to_string(home.folder().join("told")).unwrap_or_default();
        let codes: Vec<&str> = ran.stdout.lines().filter(|line| line.ends_with(')')).collect();
        let [turn, _, rest @ ..] = codes.as_slice() else { panic!("{ran:?}\n{told}") };
        assert_eq!(*turn, "turn (6)", "{room}: {ran:?}\n{told}");
        assert_eq!(rest, ["new (0)", "undo (0)", "differs (0)", "check (0)"], "{room}: {ran:?}\n{told}");
        assert!(told.contains("1 call of a tool was cut off"), "{room}: {told}");
    }
}

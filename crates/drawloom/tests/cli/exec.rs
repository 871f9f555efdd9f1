//! Commands that a model runs: behind walls, with what they changed told and given back.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::file_tools::{listed, say};
use crate::headless::question;
use crate::tools::{calls, chat, nodes};
use crate::world::{World, lacks, text};

pub(crate) fn exec(command: &str) -> Value {
    json!({"name": "exec", "arguments": {"command": command}})
}

/// A world whose model answers from these lines, and may run commands.
pub(crate) fn world(lines: &[Value]) -> World {
    world_with(lines, "")
}

/// The same, with more in its configuration.
pub(crate) fn world_with(lines: &[Value], more: &str) -> World {
    let world = World::new();
    world.write("lines.jsonl", &lines.iter().map(|line| format!("{line}\n")).collect::<String>());
    let file = text(&world.home().join("lines.jsonl"));
    let tools = r#"["exec", "process", "read", "write"]"#;
    world.write(
        "config.toml",
        &format!("[model]\ndefault = \"script:{file}\"\n[agents.assistant]\ntools = {tools}\n{more}"),
    );
    fs::create_dir_all(world.path("project/src")).unwrap();
    fs::write(world.path("project/src/main.rs"), "fn weave() {}\n").unwrap();
    world
}

/// One turn in which the model runs a command; its result.
pub(crate) fn ran(command: &str, prepare: impl FnOnce(&World)) -> (World, String) {
    let world = world(&[calls(&json!([exec(command)])), json!({"text": "Done."})]);
    prepare(&world);
    let (code, said) = chat(&world, "Do it.");
    assert_eq!((code, said["text"].as_str()), (Some(0), Some("Done.")), "{said}");
    let result = nodes(&world).into_iter().find(|node| node["author"] == "exec").unwrap();
    let told = result["text"].as_str().unwrap().to_owned();
    (world, told)
}

#[test]
fn a_command_says_how_it_ended_what_it_printed_and_which_files_it_changed() {
    let (_, told) = ran(
        "cat src/main.rs; echo oh >&2; printf 'a\\nb\\n' > new.txt; echo '// x' >> src/main.rs; mkdir d; exit 7",
        |_| {},
    );
    let (first, rest) = told.split_once('\n').unwrap();
    assert!(first.starts_with("exit 7 (") && first.ends_with(" s, sandbox full)"), "{told}");
    assert_eq!(
        rest,
        "[output]\nfn weave() {}\n[errors]\noh\n[files]\nmade folder d\nmade new.txt (+2 −0)\n\
         changed src/main.rs (+1 −0)"
    );
}

#[test]
fn what_a_command_did_to_files_is_shown_and_given_back_byte_for_byte() {
    let command = "rm -r gone; mv src lib; echo new > lib/main.rs; chmod 755 mode; rm link; ln -s mode link; \
                   mkdir -p deep/er; printf '\\000\\001' > deep/er/bytes; echo log > x.log; echo k > target/o";
    let mut before = Vec::new();
    let (world, told) = ran(command, |world| {
        let project = world.path("project");
        for folder in ["gone", "target"] {
            fs::create_dir(project.join(folder)).unwrap();
        }
        fs::write(project.join("gone/bytes"), b"\0\x01\xff").unwrap();
        fs::write(project.join("mode"), "m").unwrap();
        fs::set_permissions(project.join("gone"), fs::Permissions::from_mode(0o750)).unwrap();
        fs::write(project.join(".gitignore"), "*.log\n").unwrap();
        fs::write(project.join("y.log"), "y").unwrap();
        symlink("src", project.join("link")).unwrap();
        before = listed(&project);
    });
    for line in
        ["deleted gone/bytes", "changed mode (mode 644 to 755)", "changed link link", "made lib/main.rs"]
    {
        assert!(told.contains(line), "{line}: {told}");
    }
    assert!(
        !told.contains("x.log") && !told.contains("target/o"),
        "what git ignores is not recorded: {told}"
    );
    let project = world.path("project");
    let shown = say(&world, "/diff").out;
    assert!(shown.contains("+new") && shown.contains("gone/bytes: bytes with"), "{shown}");
    let back = say(&world, "/undo --files");
    assert_eq!((back.code, back.err.as_str()), (Some(0), "/redo --files takes it again\n"), "{back:?}");
    // What is not recorded is not looked at, let alone cleaned.
    for left in ["x.log", "target/o"] {
        fs::remove_file(project.join(left)).unwrap();
    }
    assert_eq!(listed(&project), before);
}

/// What lies in `.git` is not recorded: that a repository went is said, and not that a command of git changed it.
#[test]
fn a_repository_that_a_command_removes_is_named() {
    if lacks(&["git"]) {
        return;
    }
    let lost = "git finds no repository in";
    let repository = |world: &World| {
        let project = world.path("project");
        crate::everyday::git(&project, &["init", "-q"]);
    };
    for command in ["rm -rf .git", "mv .git/refs .git/other"] {
        let (world, told) = ran(command, repository);
        assert!(told.contains(lost) && told.contains("cannot be given back"), "{command}: {told}");
        let shown = say(&world, "/retry");
        assert!(!shown.err.contains(lost), "it was none before: {shown:?}");
    }
    let (_, told) = ran("git checkout -q -b other && git add -A && git gc -q", repository);
    assert!(!told.contains(lost), "the control: {told}");
}

/// However many a command changed: a person is told how many.
#[test]
fn the_files_that_a_person_is_not_shown_are_counted() {
    let line = "for i in $(seq 100); do echo $i > f$i; done";
    let world = world(&[calls(&json!([exec(line)])), json!({"text": "Done."})]);
    let run = say(&world, "Do it.");
    assert!(run.err.contains("[more files: 92; /diff shows them]"), "{run:?}");
}

#[test]
fn what_a_person_changed_since_is_left() {
    let (world, _) = ran("echo agent > a; echo agent > b", |_| {});
    let project = world.path("project");
    fs::write(project.join("a"), "mine\n").unwrap();
    let back = say(&world, "/undo --files");
    assert!(back.err.contains("left as it is: a: somebody changed it since"), "{back:?}");
    assert_eq!(fs::read_to_string(project.join("a")).unwrap(), "mine\n");
    assert!(!project.join("b").exists());
}

#[test]
fn walls_hold_and_what_is_protected_is_named() {
    let (world, told) = ran(
        "echo x >> AGENTS.md; echo evil > .envrc; cat $HOME/../../loom.db; env; sleep 300 & echo end",
        |world| fs::write(world.path("project/AGENTS.md"), "ours\n").unwrap(),
    );
    assert!(told.contains("AGENTS.md: Read-only") || told.contains("AGENTS.md: read-only"), "{told}");
    assert!(told.contains(".envrc is protected: what it made there was moved to"), "{told}");
    // By the name it has: the shell may not have become it yet.
    assert!(told.contains("ended what it left running: s"), "{told}");
    assert!(
        told.contains("No such file") && !told.contains("SQLite") && !told.contains("DRAWLOOM"),
        "{told}"
    );
    assert_eq!(fs::read_to_string(world.path("project/AGENTS.md")).unwrap(), "ours\n");
    assert!(!world.path("project/.envrc").exists());
}

#[test]
fn x2_a_folder_outside_of_the_workspace_is_no_place_to_run_in() {
    for directory in ["/etc", "..", "up"] {
        let call = json!({"name": "exec", "arguments": {"command": "cat passwd", "directory": directory}});
        let world = world(&[calls(&json!([call])), json!({"text": "Done."})]);
        symlink("/etc", world.path("project/up")).unwrap();
        fs::write(world.path("passwd"), "root:").unwrap();
        assert_eq!(chat(&world, "Do it.").0, Some(0));
        let nodes = nodes(&world);
        let told = nodes.iter().find(|node| node["author"] == "exec").unwrap()["text"].as_str().unwrap();
        assert!(!told.contains("root:") && !told.starts_with("exit 0"), "{directory}: {told}");
    }
}

/// A link that leads out is held by the walls and not by its name; what only looks dangerous runs and says itself that
/// it has no network.
#[test]
fn x3_to_x6_ordinary_lines_run_and_a_link_leads_nowhere() {
    let line = "cat link; cat src/main.rs; grep -o process.env e.txt; ls *.txt | wc -l; echo a; echo b; echo $HOME; \
                curl -sS https://example.com; npm exec --offline x; git log --format=%H; echo end";
    let (_, told) = ran(line, |world| {
        fs::write(world.path("outside"), "what lies outside").unwrap();
        symlink(world.path("outside"), world.path("project/link")).unwrap();
        fs::write(world.path("project/e.txt"), "a = process.env;\n").unwrap();
    });
    assert!(told.starts_with("exit 0 ("), "{told}");
    assert!(told.contains("[output]\nfn weave() {}\nprocess.env\n1\na\nb\n/"), "{told}");
    assert!(told.contains("\nend\n") && !told.contains("what lies outside"), "{told}");
}

#[test]
fn what_touches_the_protected_set_is_asked_with_the_command_and_denied_where_nobody_is() {
    let touching =
        json!({"name": "exec", "arguments": {"command": "echo x > AGENTS.md", "touches": ["AGENTS.md"]}});
    let world = world(&[calls(&json!([touching.clone()])), json!({"text": "Done."})]);
    fs::write(world.path("project/AGENTS.md"), "ours\n").unwrap();
    let (_, said) = chat(&world, "Do it.");
    let denied = said["denied"].to_string();
    assert!(denied.contains("a file that the command touches runs, steers or remembers something"), "{said}");
    let project = text(&world.path("project"));
    let mut waits = world.command(&["--workspace", &project, "chat", "-m", "Do it.", "--wait", "60"]);
    let mut waits = waits.stdin(Stdio::null()).stdout(Stdio::null()).spawn().unwrap();
    let asked = question(&world, &mut waits);
    let about = asked["about"].as_str().unwrap();
    assert!(
        about.contains("writes AGENTS.md, in a trusted workspace loaded only once you accept"),
        "{about}"
    );
    world.ok(&["deny", asked["short_id"].as_str().unwrap()]);
    assert!(waits.wait().unwrap().success());
    assert_eq!(fs::read_to_string(world.path("project/AGENTS.md")).unwrap(), "ours\n");

    // A yes, and a person is shown what became of it; the model reads it once it was accepted.
    let ends = json!({"text": "Done."});
    world.write("lines.jsonl", &format!("{}\n{ends}\n", calls(&json!([touching]))));
    let mut waits =
        world.command(&["--workspace", &project, "chat", "-m", "Do it.", "--wait", "60", "--events"]);
    let mut waits = waits.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
    let asked = question(&world, &mut waits);
    world.ok(&["approve", asked["short_id"].as_str().unwrap()]);
    let events = String::from_utf8(waits.wait_with_output().unwrap().stdout).unwrap();
    let result = events.lines().find(|line| line.contains(r#""event":"result""#)).unwrap();
    assert!(result.contains(r#""-ours","+x""#), "{result}");
    assert_eq!(fs::read_to_string(world.path("project/AGENTS.md")).unwrap(), "x\n");
}

#[test]
fn a_line_that_edits_a_protected_file_in_place_is_told_what_to_do() {
    let (world, told) = ran("sed -i s/ours/mine/ AGENTS.md", |world| {
        fs::write(world.path("project/AGENTS.md"), "ours\n").unwrap();
    });
    assert!(
        told.contains("[errors]\nsed: ") && told.contains("run it with touches [\"AGENTS.md\"]"),
        "{told}"
    );
    assert_eq!(fs::read_to_string(world.path("project/AGENTS.md")).unwrap(), "ours\n");
}

#[test]
fn no_link_to_a_protected_file_opens_it() {
    let touching =
        json!({"name": "exec", "arguments": {"command": "echo evil >> AGENTS.md", "touches": ["one"]}});
    let world = world(&[
        calls(&json!([exec("ln -s AGENTS.md one")])),
        calls(&json!([touching])),
        json!({"text": "Done."}),
    ]);
    fs::write(world.path("project/AGENTS.md"), "ours\n").unwrap();
    assert_eq!(chat(&world, "Do it.").0, Some(0));
    let told = nodes(&world).into_iter().rfind(|node| node["author"] == "exec").unwrap()["text"].to_string();
    assert!(told.contains("one is a link"), "{told}");
    assert_eq!(fs::read_to_string(world.path("project/AGENTS.md")).unwrap(), "ours\n");
}

#[test]
fn in_plan_mode_a_command_looks_and_changes_nothing() {
    let world =
        world(&[calls(&json!([exec("cat src/main.rs; echo x > new.txt")])), json!({"text": "Done."})]);
    let project = text(&world.path("project"));
    world.ok(&["--workspace", &project, "chat", "--plan", "-m", "Look."]);
    let nodes = nodes(&world);
    let told = nodes.iter().find(|node| node["author"] == "exec").unwrap()["text"].as_str().unwrap();
    assert!(told.contains("fn weave") && told.contains("ead-only file system"), "{told}");
    assert!(!world.path("project/new.txt").exists());
}

#[test]
fn a_command_whose_time_is_over_is_ended_with_all_it_started() {
    let slow = json!({"name": "exec", "arguments": {"command": "echo a > a; sleep 300", "timeout": 1}});
    let world =
        world(&[calls(&json!([slow])), json!({"text": "Done.", "expect": ["its time was over", "made a"]})]);
    assert_eq!(chat(&world, "Do it.").1["text"], "Done.");
}

/// A server that says where it is, and its client.
const SERVER: &str = "perl -MIO::Socket::INET -e '$|=1; my $s=IO::Socket::INET->new(LocalAddr=>\"127.0.0.1\",\
                      LocalPort=>8000,Listen=>5) or die; print \"listening on 8000\\n\"; \
                      while(my $c=$s->accept){print $c \"from the server\\n\"; close $c}'";
const CLIENT: &str = "perl -MIO::Socket::INET -e 'my $s=IO::Socket::INET->new(PeerAddr=>\"127.0.0.1:8000\") \
                      or die \"nobody\"; print <$s>'; cat /tmp/left";

#[test]
fn a_server_in_the_background_answers_a_later_command_and_ends_with_its_session() {
    if lacks(&["perl"]) {
        return;
    }
    let background =
        |command: &str| json!({"name": "exec", "arguments": {"command": command, "background": true}});
    let process = |more: &Value| json!({"name": "process", "arguments": more});
    let world = world(&[
        calls(&json!([exec("echo left > /tmp/left"), background(SERVER)])),
        calls(&json!([process(&json!({"process": 1, "wait_for": "listening", "timeout": 20}))])),
        calls(&json!([exec(CLIENT), background("read line; echo got $line; sleep 300")])),
        calls(&json!([
            process(&json!({"process": 2, "input": "a word\n", "wait_for": "got a word"})),
            process(&json!({"process": 1, "kill": true})),
            process(&json!({"process": 9})),
        ])),
        calls(&json!([exec(CLIENT)])),
        json!({"text": "Done.", "expect": [
            "process 1 runs in the background", "listening on 8000", "from the server", "left", "got a word",
            "process 9 is not there", "nobody"
        ]}),
    ]);
    let (code, said) = chat(&world, "Serve.");
    assert_eq!((code, said["text"].as_str()), (Some(0), Some("Done.")), "{said}");
    assert!(std::net::TcpStream::connect("127.0.0.1:8000").is_err(), "the machine does not see it");
}

#[test]
fn secrets_that_are_known_are_masked_in_what_it_prints() {
    let world =
        world(&[calls(&json!([exec("cat key.txt")])), json!({"text": "Done.", "expect": ["secret:"]})]);
    let key = "sk-drawloom-0123456789abcdef";
    world.write("keys.toml", &format!("[providers.other]\nkey = \"{key}\"\n"));
    fs::set_permissions(world.home().join("keys.toml"), fs::Permissions::from_mode(0o600)).unwrap();
    fs::write(world.path("project/key.txt"), key).unwrap();
    let (_, said) = chat(&world, "Show it.");
    assert_eq!(said["text"], "Done.", "{said}");
    assert!(!nodes(&world).iter().any(|node| node.to_string().contains(key)));
}

#[test]
fn what_stood_in_a_folder_that_became_a_link_comes_back() {
    let (world, _) = ran("mv src s2; ln -s s2 src", |_| {});
    let project = world.path("project");
    let back = say(&world, "/undo --files");
    assert_eq!((back.code, back.err.as_str()), (Some(0), "/redo --files takes it again\n"), "{back:?}");
    assert!(!project.join("s2").exists() && project.join("src").symlink_metadata().unwrap().is_dir());
    assert_eq!(fs::read_to_string(project.join("src/main.rs")).unwrap(), "fn weave() {}\n");
}

#[test]
fn a_name_that_is_no_text_keeps_no_command_from_running() {
    let (world, told) = ran("touch \"$(printf 'caf\\351')\"; rm src/main.rs", |_| {});
    assert!(told.contains("deleted src/main.rs"), "{told}");
    say(&world, "/undo --files");
    assert_eq!(fs::read_to_string(world.path("project/src/main.rs")).unwrap(), "fn weave() {}\n");
    world.write(
        "lines.jsonl",
        &format!("{}\n{}\n", calls(&json!([exec("echo on")])), json!({"text": "Done."})),
    );
    chat(&world, "Again.");
    assert!(nodes(&world).iter().any(|node| node["text"].as_str().unwrap().contains("[output]\non")));
}

#[test]
fn nothing_that_a_command_of_a_private_conversation_wrote_is_left() {
    let canary = "canary-20-of-wool";
    let world = world(&[
        calls(&json!([exec(&format!("echo {canary} > p.txt; cat p.txt"))])),
        json!({"text": "Done."}),
    ]);
    let project = text(&world.path("project"));
    let run = world.run(&["--workspace", &project, "chat", "--private", "-m", "Do it."]);
    let left =
        format!("not forgotten with it: what commands left in {}", text(&world.home().join("sandbox")));
    assert!(run.code == Some(0) && run.err.contains(&left), "{run:?}");
    let run =
        world.run(&["--workspace", &project, "--model", "script:echo", "chat", "--private", "-m", "Hello."]);
    assert!(run.code == Some(0) && !run.err.contains("not forgotten"), "no command ran: {run:?}");
    fs::remove_file(world.path("project/p.txt")).unwrap();
    fs::remove_file(world.home().join("lines.jsonl")).unwrap();
    assert!(!holds(&world.home(), canary));
}

#[test]
fn git_works_and_a_checkout_over_a_protected_file_is_named() {
    if lacks(&["git"]) {
        return;
    }
    let git = |world: &World, arguments: &[&str]| {
        let done = Command::new("git")
            .args(["-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "init.defaultBranch=main"])
            .args(arguments)
            .current_dir(world.path("project"))
            .output()
            .unwrap();
        assert!(done.status.success(), "{done:?}");
    };
    let command = "git checkout -q other && git config --list --show-origin | head -1; \
                   git -c user.name=B -c user.email=b@example.org commit -q --allow-empty -m two && git log --oneline | wc -l";
    let (world, told) = ran(command, |world| {
        fs::write(world.path("project/AGENTS.md"), "ours\n").unwrap();
        git(world, &["init", "-q"]);
        git(world, &["add", "-A"]);
        git(world, &["commit", "-q", "-m", "one"]);
        git(world, &["checkout", "-q", "-b", "other"]);
        fs::write(world.path("project/AGENTS.md"), "theirs\n").unwrap();
        git(world, &["commit", "-q", "-a", "-m", "other"]);
        git(world, &["checkout", "-q", "main"]);
    });
    assert!(told.contains("[output]") && told.contains('3'), "{told}");
    assert!(told.contains("git has another text of") && told.contains("AGENTS.md"), "{told}");
    assert_eq!(fs::read_to_string(world.path("project/AGENTS.md")).unwrap(), "ours\n");
}

#[test]
fn what_is_forgotten_is_in_no_record_of_a_workspace_either() {
    let (world, _) = ran("echo 'the canary sang' > song.txt", |_| {});
    // The next command finds the file, and so it is recorded.
    world.write("lines.jsonl", &format!("{}\n{{\"text\": \"Done.\"}}\n", calls(&json!([exec("true")]))));
    chat(&world, "Again.");
    let records = world.home().join("cache/checkpoints");
    assert!(holds(&records, "the canary sang"));
    let said = world.run(&["forget", "--text", "the canary sang", "--yes", "--yes"]);
    assert!(!said.err.contains("bytes of files that other answers changed"), "the control: {said:?}");
    assert!(!holds(&records, "the canary sang"));
}

#[test]
fn what_stands_in_a_record_alone_is_forgotten_too() {
    let (world, _) = ran("true", |world| fs::write(world.path("project/own"), "the canary slept").unwrap());
    let records = world.home().join("cache/checkpoints");
    assert!(holds(&records, "the canary slept"));
    let said = world.ok(&["forget", "--text", "the canary slept", "--yes", "--yes"]);
    assert!(!holds(&records, "the canary slept"), "{said}");
    let again = world.run(&["forget", "--text", "the canary slept", "--yes", "--yes"]);
    assert_eq!(again.code, Some(3), "{again:?}");
}

/// Whether a file below a folder holds a text.
fn holds(folder: &Path, text: &str) -> bool {
    fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).any(|path| {
        if path.is_dir() {
            holds(&path, text)
        } else {
            String::from_utf8_lossy(&fs::read(&path).unwrap()).contains(text)
        }
    })
}

#[test]
fn a_file_that_became_a_folder_is_among_the_changed_files() {
    let command = "rm x; mkdir x; echo in > x/y; mkdir z";
    let world = world(&[calls(&json!([exec(command)])), json!({"text": "Done."})]);
    fs::write(world.path("project/x"), "was\n").unwrap();
    let (code, said) = chat(&world, "Do it.");
    assert_eq!(code, Some(0), "{said}");
    let changed = json!([
        {"path": "x", "added": null, "removed": null},
        {"path": "x/y", "added": 1, "removed": 0}
    ]);
    assert_eq!(said["changed"], changed);
}

/// A command of the owner's behind a line of a shell that was run before it.
fn behind(world: &World, line: &str, arguments: &[&str]) -> std::process::Output {
    let command = world.command(arguments);
    let mut shell = Command::new("/bin/sh");
    shell
        .args(["-c", &format!("{line}; exec \"$@\""), "-"])
        .arg(command.get_program())
        .args(command.get_args());
    shell
        .current_dir(world.path("here"))
        .env_clear()
        .envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    shell.output().unwrap()
}

#[test]
fn files_of_a_command_have_the_bits_that_its_owner_lets_new_files_have() {
    let world = world(&[]);
    let project = text(&world.path("project"));
    for (umask, bits) in [("umask 022", 0o644), ("umask 077", 0o600), ("umask 0777", 0o600)] {
        let command = ["--workspace", &project, "sandbox", "--", "sh", "-c", "rm -f new; echo > new"];
        let output = behind(&world, umask, &command);
        let mode = fs::metadata(world.path("project/new")).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, bits, "{umask} {output:?}");
    }
}

#[test]
fn commands_are_held_also_where_the_folder_of_temporary_files_is_not_there() {
    let world = world(&[]);
    let project = text(&world.path("project"));
    let output = behind(
        &world,
        "TMPDIR=/not/there; export TMPDIR",
        &["--json", "--workspace", &project, "sandbox", "--", "true"],
    );
    let told: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(told["level"], "full", "{output:?}");
}

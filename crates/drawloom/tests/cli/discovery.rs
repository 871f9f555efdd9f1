//! Which folder is the workspace, from the outside (spec: cli §1, security §4).

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::inotify;

use crate::terminal::Terminal;
use crate::trust::with_terminal;
use crate::world::{Run, World, text};

fn chosen(world: &World, here: &Path, arguments: &[&str]) -> (String, String) {
    let arguments = [&["config", "path", "--json"], arguments].concat();
    let output = world.command(&arguments).current_dir(here).output().unwrap();
    let found: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    (found["workspace"].as_str().unwrap().to_owned(), found["why"].as_str().unwrap().to_owned())
}

#[test]
fn the_nearest_marked_folder_is_taken() {
    let world = World::new();
    let deep = world.path("here/project/a/b");
    std::fs::create_dir_all(&deep).unwrap();
    std::fs::write(world.path("here/project/AGENTS.md"), "").unwrap();
    let (workspace, why) = chosen(&world, &deep, &[]);
    assert_eq!((workspace, why.as_str()), (text(&world.path("here/project")), "holds AGENTS.md"));
}

#[test]
fn s4_a_folder_anybody_may_write_to_speaks_to_nobody_below() {
    let world = World::new();
    let (shared, below) = (world.path("shared"), world.path("shared/mine"));
    std::fs::create_dir_all(&below).unwrap();
    std::fs::write(shared.join("AGENTS.md"), "obey me").unwrap();
    let own = text(&world.home().join("workspace"));
    std::fs::set_permissions(&shared, PermissionsExt::from_mode(0o1777)).unwrap();
    let (workspace, why) = chosen(&world, &below, &[]);
    assert_eq!(workspace, own);
    assert!(why.contains("anybody may write to it"), "{why}");
    std::fs::set_permissions(&shared, PermissionsExt::from_mode(0o755)).unwrap();
    assert_eq!(chosen(&world, &below, &[]).0, text(&shared), "control: the same folder, not writable by all");
}

#[test]
fn s4_the_folder_of_a_user_is_never_one_and_given_is_for_reading_only() {
    let world = World::new();
    let user = world.path("user");
    std::fs::write(user.join("AGENTS.md"), "").unwrap();
    let (workspace, why) = chosen(&world, &user, &[]);
    assert_eq!(workspace, text(&world.home().join("workspace")));
    assert!(why.contains("your home folder"), "{why}");
    let (workspace, why) = chosen(&world, &user, &["--workspace", &text(&user)]);
    assert_eq!(workspace, text(&user));
    assert!(why.starts_with("given with --workspace; for reading only"), "{why}");
}

#[test]
fn a_workspace_that_is_not_there_is_an_error() {
    let world = World::new();
    assert_eq!(world.run(&["config", "path", "--workspace", "/nowhere/at/all"]).code, Some(3));
    std::fs::write(world.path("here/file"), "").unwrap();
    assert_eq!(world.run(&["config", "path", "--workspace", "file"]).code, Some(2));
}

/// A chat in a folder, at a terminal; with `answer` to the offer of a git work tree, without an offer to none. What was
/// shown before its first prompt.
fn begun(world: &World, folder: &Path, answer: Option<&str>) -> String {
    let mut command = world.command(&["chat", "--model", "script:echo", "--color", "never"]);
    command.current_dir(folder);
    let mut terminal = Terminal::of_width(with_terminal(&command), 200);
    if let Some(answer) = answer {
        terminal.shows("Work there? [y/N]");
        terminal.types(answer);
    }
    terminal.at_prompt();
    let shown = terminal.plain();
    terminal.says("hi\r");
    terminal.types("/exit\r");
    assert_eq!(terminal.ended(), Some(0));
    shown
}

#[test]
fn a_git_work_tree_is_offered_once_and_the_answer_is_kept_both_ways() {
    for (answer, is_chosen) in [("y\r", true), ("n\r", false)] {
        let world = World::new();
        let (repo, inner) = (world.path("here/repo"), world.path("here/repo/src"));
        std::fs::create_dir_all(&inner).unwrap();
        std::fs::create_dir_all(repo.join(".git")).unwrap();
        let own = text(&world.home().join("workspace"));
        let shown = begun(&world, &inner, Some(answer));
        let top = text(&repo);
        assert!(shown.contains(&format!("{top} is a git repository and no workspace")), "{shown}");
        assert!(!begun(&world, &inner, None).contains("Work there?"), "it is asked once");
        let found = chosen(&world, &inner, &[]);
        let expected = match is_chosen {
            true => (top.clone(), "a git repository in which you chose to work".to_owned()),
            false => (own.clone(), found.1.clone()),
        };
        assert_eq!(found, expected);
        // Whatever opens the store finds the same: the conversation, too.
        let sessions = |folder: &Path| {
            let output = world.command(&["sessions", "list", "--json"]).current_dir(folder).output().unwrap();
            let found: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
            found["sessions"].as_array().unwrap().len()
        };
        assert_eq!(
            (sessions(&inner), sessions(&world.path("here"))),
            if is_chosen { (1, 0) } else { (1, 1) }
        );
        assert!(std::fs::read_dir(&repo).unwrap().count() == 2, "no file is written");
        // The other answer, by its command.
        let command = if is_chosen { "untrust" } else { "trust" };
        world.ok(&["workspace", command, &top]);
        assert_eq!(chosen(&world, &inner, &[]).0, if is_chosen { own } else { top });
    }
}

#[test]
fn s4_another_folder_at_the_path_of_a_git_work_tree_that_was_chosen_is_offered_anew() {
    let world = World::new();
    let repo = world.path("here/repo");
    std::fs::create_dir_all(repo.join(".git")).unwrap();
    begun(&world, &repo, Some("y\r"));
    assert_eq!(chosen(&world, &repo, &[]).0, text(&repo), "control");
    std::fs::rename(&repo, world.path("here/old")).unwrap();
    std::fs::create_dir_all(repo.join(".git")).unwrap();
    assert_eq!(chosen(&world, &repo, &[]).0, text(&world.home().join("workspace")));
    let shown = begun(&world, &repo, Some("n\r"));
    assert!(shown.contains(&format!("`drawloom workspace trust {}`", text(&repo))), "{shown}");
    assert_eq!(chosen(&world, &repo, &[]).0, text(&world.home().join("workspace")));
}

#[test]
fn without_a_person_a_git_work_tree_is_named_with_its_flag_and_not_entered() {
    let world = World::new();
    let repo = world.path("here/repo");
    std::fs::create_dir_all(repo.join(".git")).unwrap();
    let say = |folder: &Path, more: &[&str]| {
        let arguments = [&["chat", "-m", "hi", "--model", "script:echo"], more].concat();
        let run: Run = world.command(&arguments).current_dir(folder).output().unwrap().into();
        assert_eq!(run.code, Some(0), "{run:?}");
        run.err
    };
    let notice = "`--workspace .` works in the folder you are in";
    let said = say(&repo, &[]);
    assert!(said.contains(&text(&repo)) && said.contains(notice), "{said}");
    for quiet in [say(&repo, &["--workspace", "."]), say(&world.path("here"), &[])] {
        assert!(!quiet.contains(notice), "{quiet}");
    }
    // In the home's own workspace a repository is a part of that.
    let inside = world.home().join("workspace/repo");
    std::fs::create_dir_all(inside.join(".git")).unwrap();
    assert!(!say(&inside, &[]).contains(notice));
    assert_eq!(chosen(&world, &repo, &[]).0, text(&world.home().join("workspace")));
}

/// A git repository that is no workspace and would load a skill.
fn repository(world: &World) -> PathBuf {
    let repo = world.path("here/repo");
    std::fs::create_dir_all(repo.join(".git")).unwrap();
    std::fs::create_dir_all(repo.join("skills/run")).unwrap();
    std::fs::write(repo.join("skills/run/SKILL.md"), "Run.").unwrap();
    repo
}

#[test]
fn the_doctor_of_a_conversation_names_the_git_work_tree_that_was_chosen_in_it_and_before() {
    let world = World::new();
    let repo = repository(&world);
    for answer in [Some("y\r"), None] {
        let mut command = world.command(&["chat", "--model", "script:echo", "--color", "never"]);
        command.current_dir(&repo);
        let mut terminal = Terminal::of_width(with_terminal(&command), 200);
        if let Some(answer) = answer {
            terminal.shows("Work there? [y/N]");
            terminal.types(answer);
        }
        terminal.says("/doctor\r");
        let shown = terminal.plain();
        let expected = format!("{}: a git repository in which you chose to work; trusted", text(&repo));
        assert!(shown.contains(&expected), "{answer:?}: {shown}");
        terminal.types("/exit\r");
        assert_eq!(terminal.ended(), Some(0));
    }
}

#[test]
fn a_store_that_is_left_over_is_not_asked_where_the_store_is_on_a_server() {
    let world = World::new();
    let (repo, own) = (repository(&world), text(&world.home().join("workspace")));
    begun(&world, &repo, Some("y\r"));
    let marked = world.path("here/marked");
    std::fs::create_dir(&marked).unwrap();
    std::fs::write(marked.join("AGENTS.md"), "Obey.").unwrap();
    world.ok(&["workspace", "trust", &text(&marked)]);
    let doctor = || {
        let output = world.command(&["doctor", "--quick", "--json"]).current_dir(&marked).output().unwrap();
        let found: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        let mut checks = found["checks"].as_array().unwrap().iter();
        checks.find(|check| check["name"] == "workspace").unwrap()["why"].as_str().unwrap().to_owned()
    };
    assert_eq!(chosen(&world, &repo, &[]).0, text(&repo), "control: the store is the file");
    assert!(doctor().ends_with("; trusted"), "control: {}", doctor());
    world.write("config.toml", "[store]\nurl = \"postgres://localhost:1/none\"\n");
    assert_eq!(chosen(&world, &repo, &[]).0, own);
    assert!(
        doctor().ends_with("; whether you trusted it is known to the store on the server"),
        "{}",
        doctor()
    );
}

#[test]
fn doctor_names_a_git_repository_that_is_no_workspace_and_what_makes_it_one() {
    let world = World::new();
    let repo = repository(&world);
    let doctor = || {
        let output = world.command(&["doctor", "--quick", "--json"]).current_dir(&repo).output().unwrap();
        let found: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        let mut checks = found["checks"].as_array().unwrap().iter();
        checks.find(|check| check["name"] == "workspace").unwrap()["why"].as_str().unwrap().to_owned()
    };
    let trust = format!("`drawloom workspace trust {}` makes the repository found", text(&repo));
    assert!(doctor().contains(&trust), "{}", doctor());
    world.ok(&["workspace", "trust", &text(&repo)]);
    assert!(!doctor().contains("makes the repository found"), "{}", doctor());
}

#[test]
fn a_git_work_tree_that_is_not_offered_is_not_read() {
    let world = World::new();
    let repo = repository(&world);
    let watch = inotify::init(inotify::CreateFlags::NONBLOCK).unwrap();
    inotify::add_watch(&watch, repo.join("skills/run/SKILL.md"), inotify::WatchFlags::OPEN).unwrap();
    let is_read = || {
        let mut events = [0_u8; 4_096];
        rustix::io::read(&watch, &mut events).is_ok_and(|bytes| bytes > 0)
    };
    let said = || {
        let arguments = ["chat", "-m", "hi", "--model", "script:echo"];
        let run: Run = world.command(&arguments).current_dir(&repo).output().unwrap().into();
        assert!(run.code == Some(0) && run.err.contains("nothing is read"), "{run:?}");
    };
    said();
    assert!(!is_read());
    let shown = begun(&world, &repo, Some("n\r"));
    assert!(is_read() && shown.contains("SKILL.md"), "control: an offer says what it would load: {shown}");
    begun(&world, &repo, None);
    assert!(!is_read());
}

#[test]
#[ignore = "needs strace: .ci/run runs it"]
fn no_python_is_run_that_stands_in_a_git_work_tree_once_it_is_chosen() {
    for (folder, runs) in [("here/repo/bin", false), ("bin", true)] {
        let world = World::new();
        let (repo, bin, ran) = (repository(&world), world.path(folder), world.path("ran"));
        std::fs::create_dir_all(&bin).unwrap();
        let python = bin.join("python3");
        std::fs::write(&python, format!("#!/bin/sh\n: > {}\nexit 1\n", text(&ran))).unwrap();
        std::fs::set_permissions(&python, PermissionsExt::from_mode(0o755)).unwrap();
        let program = world.command(&["chat", "--model", "smollm2"]);
        // Nothing leaves this machine: no socket can be made.
        let mut command = std::process::Command::new("strace");
        command.args(["-f", "-o", "/dev/null", "-e", "trace=socket"]);
        command.args(["-e", "inject=socket:error=EAFNOSUPPORT"]);
        command.arg("-E").arg(format!("PATH={}", text(&bin)));
        command.arg(program.get_program()).args(program.get_args());
        command.env_clear().envs(program.get_envs().filter_map(|(name, value)| Some((name, value?))));
        command.current_dir(&repo);
        let mut terminal = Terminal::of_width(with_terminal(&command), 120);
        terminal.shows("Work there? [y/N]");
        terminal.types("y\r");
        assert_eq!(terminal.ended(), Some(5), "{}", terminal.contents());
        assert_eq!(ran.exists(), runs, "{folder}: {}", terminal.contents());
    }
}

#[test]
fn trust_in_a_folder_that_no_search_finds_says_how_to_work_there() {
    let world = World::new();
    let plain = world.path("plain");
    std::fs::create_dir_all(&plain).unwrap();
    let trusted = world.run(&["workspace", "trust", &text(&plain)]);
    assert!(trusted.code == Some(0) && trusted.err.contains("`--workspace "), "{trusted:?}");
    let repo = world.path("repo");
    std::fs::create_dir_all(repo.join(".git")).unwrap();
    let trusted = world.run(&["workspace", "trust", &text(&repo)]);
    assert!(trusted.code == Some(0) && !trusted.err.contains("`--workspace "), "the control: {trusted:?}");
}

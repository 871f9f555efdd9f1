//! The reference of commands: what `--help` says, all of it in one place for review.

use crate::world::World;

/// The commands a help text lists.
fn commands(help: &str) -> Vec<String> {
    let list = help.split_once("Commands:\n").map(|(_, rest)| rest).unwrap_or_default();
    // A description that is wrapped goes on further to the right.
    let lines = list.lines().take_while(|line| !line.is_empty()).filter(|line| !line.starts_with("   "));
    lines
        .filter_map(|line| line.split_whitespace().next())
        .filter(|name| *name != "help")
        .map(str::to_owned)
        .collect()
}

fn collect(world: &World, path: &[String], out: &mut String) {
    let mut arguments = path.to_vec();
    arguments.push("--help".to_owned());
    let run = world.run(&arguments);
    assert_eq!((run.code, run.err.as_str()), (Some(0), ""), "{path:?}");
    let help = run.out.trim_end();
    // The flags of every command stand once, at the top.
    let own = match help.split_once("\n\nEverywhere:") {
        Some((own, rest)) if !path.is_empty() => {
            let example = rest.rsplit_once("\n\nExample: ").map(|(_, line)| format!("\n\nExample: {line}"));
            own.to_owned() + &example.unwrap_or_default()
        }
        _ => help.to_owned(),
    };
    *out += &format!("──── drawloom {}\n\n{own}\n\n", path.join(" "));
    for command in commands(help) {
        collect(world, &[path, &[command]].concat(), out);
    }
}

#[test]
fn the_reference_of_commands() {
    let mut reference = String::new();
    collect(&World::new(), &[], &mut reference);
    insta::assert_snapshot!(reference);
}

#[test]
fn the_version_needs_nothing() {
    let world = World::new();
    assert_eq!(world.ok(&["--version"]), format!("drawloom {}\n", env!("CARGO_PKG_VERSION")));
    assert_eq!(world.ok(&["-V"]), world.ok(&["--json", "--version"]));
    assert!(!world.home().exists());
}

#[test]
fn shells_get_completions() {
    let world = World::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        assert!(world.ok(&["completions", shell]).contains("generate"), "{shell}");
    }
    assert!(!world.home().exists());
}

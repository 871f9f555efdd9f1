//! Commands with network: one of their own with a proxy in it, or the machine's.

use drawloom_sandbox::{Ending, Level, Limits, Network};
use serde_json::json;

use crate::sessions::{background, follow, step};
use crate::world::{User, World};

const SERVER: &str = r#"exec "$ATTEMPT" serve 8123"#;
const PROXY: &str = r#""$ATTEMPT" ask 3128"#;
const EXITED: &str = "Exited(0)";

#[test]
fn a_network_of_a_commands_own_has_its_proxy_and_nothing_else() {
    for user in User::all() {
        let world = World::new(user);
        let tries = r#""$ATTEMPT" attempt udp; "$ATTEMPT" attempt udp6
            ! "$ATTEMPT" ask 8123 && ! "$ATTEMPT" attempt tcp && ! "$ATTEMPT" attempt abstract && ! "$ATTEMPT" attempt unix"#;
        let given = follow(
            &world,
            Level::Full,
            &json!([
                background(0, SERVER, "listening"),
                step(0, "proxied", json!([format!("{PROXY} && cat /tmp/left"), "one"])),
                step(0, "run", "echo left > /tmp/left"),
                step(0, "proxied", json!([format!("{PROXY} && cat /tmp/left"), "two"])),
                step(0, "proxied", json!([tries, "three"])),
                step(0, "run", PROXY),
                step(1, "run", PROXY),
                step(0, "run", r#""$ATTEMPT" ask 8123"#),
            ]),
        );
        let text = |at: usize| given[at].text.as_str();
        assert!(text(1).starts_with("one\n"), "{user:?}: {given:?}");
        assert_eq!(text(3), "two\nleft\n", "{user:?}: the rest of the session is there: {given:?}");
        assert_eq!(given[4].ending, EXITED, "{user:?}: {given:?}");
        assert_eq!(
            (given[5].ending.as_str(), given[6].ending.as_str()),
            ("Exited(1)", "Exited(1)"),
            "{given:?}"
        );
        assert_eq!(given[7].ending, EXITED, "{user:?}: the control: {given:?}");
        assert!(!world.was_told(), "{user:?}: {given:?}");
    }
}

#[test]
fn below_full_no_command_has_a_network_of_its_own() {
    let world = World::new(User::Own);
    let given = follow(&world, Level::Partial, &json!([step(0, "proxied", json!(["true", "hello"]))]));
    assert!(given[0].ending.contains("a network of its own needs level full"), "{given:?}");
}

#[test]
fn an_open_network_is_the_machines_and_opens_nothing_else() {
    for user in User::all() {
        for level in [Level::Full, Level::Partial] {
            let world = World::new(user);
            let mut walls = world.walls(Limits::default());
            walls.network = Network::Open;
            let run = |line: &str| world.run(line, level, walls.clone(), &[]).unwrap().ending;
            let attempt = |name: &str| run(&format!(r#""$ATTEMPT" attempt {name}"#));
            for name in ["tcp", "udp"] {
                assert_eq!(attempt(name), Ending::Exited(0), "{user:?} {level}: {name}");
            }
            assert!(world.was_told(), "{user:?} {level}");
            for name in
                ["unix", "unix-datagram", "unix-raw", "abstract", "vsock", "raw-socket", "io-uring", "kill"]
            {
                assert_ne!(attempt(name), Ending::Exited(0), "{user:?} {level}: {name}");
            }
            assert!(!world.was_told(), "{user:?} {level}");
            assert_ne!(
                run("test -e \"$OUTSIDE/file\" && cat \"$OUTSIDE/file\""),
                Ending::Exited(0),
                "{level}"
            );
        }
    }
}

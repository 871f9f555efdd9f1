//! That text leaves this machine is said before it does, once (spec: security §10).

use crate::server::{self, Server};
use crate::world::World;

#[test]
fn the_first_request_of_a_document_to_each_provider_elsewhere_says_so() {
    let server = Server::start(|_, _| Some(server::chat("", " And so on.", 10)));
    let world = World::new();
    let provider = |name: &str, place: &str| {
        format!(
            "[providers.{name}]\nbase_url = \"{}\"\nplace = \"{place}\"\nwindow = 32000\ncompletion_endpoint = false\n",
            server.base()
        )
    };
    let config = [provider("far", "remote"), provider("away", "remote"), provider("near", "local")].concat();
    world.write("config.toml", &config);
    for title in ["story", "poem"] {
        world.ok(&["tree", "new", "--title", title, "--text", "It was a dark night."]);
    }
    let says = |tree: &str, model: &str, more: &[&str]| {
        let run = world.run(&[&["tree", "generate", tree, "--model", model], more].concat());
        assert_eq!(run.code, Some(0), "{run:?}");
        run.err.contains("text of this document leaves this machine: it goes to 127.0.0.1")
    };
    assert!(!says("story", "near/m", &[]), "it stays here");
    assert!(!says("story", "far/m", &["--dry-run"]), "nothing is sent");
    assert!(says("story", "far/m", &["-n", "2"]));
    assert!(!says("story", "far/m", &[]), "once");
    assert!(says("story", "away/m", &[]), "another provider");
    assert!(!says("story", "near/m", &[]) && !says("story", "far/m", &[]), "once, whatever came between");
    assert!(says("poem", "far/m", &[]), "another document");
}

//! Keys of `[mcp.NAME]` that say which program or address a server is: what was accepted and allowed is of that one.

use std::path::Path;

use commands::{CommandError, server_home};
use text::terminal::one_line;

use super::layers::{Layers, Source};
use super::path::segments;
use super::rules::of_server::allowing;

/// Name of the server whose section this is.
pub(super) fn named(path: &str) -> Option<String> {
    match &segments(path)[..] {
        [section, name] if section == "mcp" => Some(name.clone()),
        _ => None,
    }
}

/// Whether anything stands in a section, what is wrong too.
pub(super) fn is_set(section: &str, layers: &Layers) -> bool {
    let section = segments(section);
    let wrong = layers.problems().iter().filter_map(|problem| problem.key.as_deref());
    let mut paths = layers.set().map(|(path, ..)| path).chain(wrong);
    paths.any(|path| segments(path).starts_with(&section))
}

/// Name of the server whose program or address a key says.
pub(super) fn program_of(path: &str) -> Option<String> {
    match &segments(path)[..] {
        [section, name, key] if section == "mcp" && ["command", "args", "url"].contains(&&**key) => {
            Some(name.clone())
        }
        _ => None,
    }
}

/// Name of the server that is none without a key: the only one that says where it is.
pub(super) fn needs(path: &str, layers: &Layers) -> Option<String> {
    let [section, name, key] = &segments(path)[..] else { return None };
    let other = match &**key {
        "command" => "url",
        "url" => "command",
        _ => return None,
    };
    let is_in_file = |key: &str| layers.get(&format!("mcp.{name}.{key}")).1 == Source::File;
    (section == "mcp" && is_in_file(key) && !is_in_file(other)).then(|| name.clone())
}

/// The error where a server would go without what belongs to it.
pub(super) fn not_taken_out(path: &str, server: &str) -> CommandError {
    let what = one_line(path);
    CommandError::usage(
        format!(
            "{what} was not taken out: what was accepted of it and rules that allow its tools would stay"
        ),
        format!("`drawloom mcp remove {}` takes it out", one_line(server)),
    )
}

/// Says what does not hold any more, and what does, once a server is another program or address.
pub(super) fn changed(server: &str, home: &Path, note: &dyn Fn(&str)) {
    note(&format!(
        "it is another server now: `drawloom mcp accept {server}` shows its tools, and asks about them"
    ));
    if let Some(kept) = server_home::kept(home, server) {
        note(&kept);
    }
    // Rules that cannot be read allow nothing.
    for rule in allowing(home, server).unwrap_or_default() {
        note(&format!("the rule `{rule}` holds for it then: `drawloom policy remove` takes it out"));
    }
}

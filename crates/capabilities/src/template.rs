//! The text that `cards new` begins a card with.

use text::terminal::one_line;

use crate::card::is_id;

/// A card of this id to be filled; none where it is no id.
#[must_use]
pub fn template(id: &str, description: Option<&str>) -> Option<String> {
    if !is_id(id) {
        return None;
    }
    let name = id.replace('-', " ");
    let description = one_line(description.unwrap_or("Say here in one line what it lets the agent do."));
    let description = description.replace('\\', "\\\\").replace('"', "\\\"");
    Some(format!(
        "---\ncapability_id: {id}\nname: \"{name}\"\ndescription: \"{description}\"\ntriggers:\n  router_tags: []\n  \
         keywords:\n    - \"{name}\"\n  confidence_threshold: 0.6\nexamples:\n  - \"How do I use {name}?\"\n  - \"Do it \
         with {name}.\"\npriority: 5\n---\n\n# {name}\n\nSay here what can be done with it, and how: the tool or command \
         by its name in code, what it takes, what it gives back, and what it is not for. Write for an agent that has \
         never heard of it, in 200 to 800 characters. What takes longer stands in SYSTEM_ARCHITECTURE.md, which an agent \
         reads when it needs it; name the section here.\n"
    ))
}

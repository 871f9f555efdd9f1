//! `[policy]`: the owner's rules on calls of tools.

use ::policy::{Pattern, Policy, PolicyRule};
use schemars::JsonSchema;
use serde::Deserialize;

use super::path::segments;

/// The key of the rules.
pub(super) const RULES: &str = "policy.rules";

#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct PolicySection {
    /// Rules on calls of tools, in `[[policy.rules]]`: a decision (allow, ask or deny) and the patterns it is about.
    #[schemars(extend("format" = "rules"))]
    pub(crate) rules: Vec<PolicyRule>,
}

impl PolicySection {
    /// The rules, each about something there is: a tool of the program, or one of `configured`.
    ///
    /// # Errors
    /// One is about nothing: what it was to deny would be allowed.
    pub(crate) fn rules<'s>(&self, configured: impl Iterator<Item = &'s String>) -> Result<Policy, String> {
        let known = commands::tool_names(configured);
        for (rule, number) in self.rules.iter().zip(1..) {
            for pattern in rule.tool.iter().chain(&rule.unless) {
                if let Pattern::Tool { server: None, name, .. } = pattern
                    && !known.contains(name)
                {
                    let there = known.join(", ");
                    return Err(format!(
                        "policy rule {number} names {name}: there is no such tool; there are {there}"
                    ));
                }
            }
        }
        Policy::new(self.rules.clone()).map_err(|error| error.to_string())
    }
}

/// The names of the tools that keys define, as `tools.NAME.command`.
pub(super) fn configured_tools<'s>(paths: impl Iterator<Item = &'s String>) -> Vec<String> {
    let name = |path: &String| match &segments(path)[..] {
        [section, name, _] if section == "tools" => Some(name.clone()),
        _ => None,
    };
    let mut names: Vec<String> = paths.filter_map(name).collect();
    names.dedup();
    names
}

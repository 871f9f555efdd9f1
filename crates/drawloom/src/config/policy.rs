//! `[policy]`: the owner's rules on calls of tools.

use ::policy::{Pattern, Policy, PolicyRule};
use schemars::JsonSchema;
use serde::Deserialize;

use text::terminal::one_line;

use super::Config;
use super::keys;
use super::kind::Kind;
use super::path::{join, segments};

/// The key of the rules.
pub(super) const RULES: &str = "policy.rules";

#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct PolicySection {
    /// Rules on calls of tools, in `[[policy.rules]]`: a decision (allow, ask or deny) and the patterns it is about.
    #[schemars(extend("format" = "rules"))]
    pub(crate) rules: Vec<PolicyRule>,
}

/// The key of the rules: the general ones, or those of an agent.
pub(super) fn rules_key(agent: Option<&str>) -> String {
    agent.map_or_else(|| RULES.to_owned(), |agent| join(&["agents", agent, "policy"].map(str::to_owned)))
}

/// Whether a key holds rules.
pub(super) fn holds_rules(path: &str) -> bool {
    keys::find(path).is_some_and(|key| matches!(key.kind, Kind::Rules))
}

/// The rules, each about something there is: a tool of the program, or one of `configured`.
///
/// # Errors
/// One is about nothing: what it was to deny would be allowed.
pub(crate) fn known_rules<'s>(
    rules: &[PolicyRule],
    configured: impl Iterator<Item = &'s String>,
) -> Result<Policy, String> {
    let known = commands::tool_names(configured);
    for (rule, number) in rules.iter().zip(1..) {
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
    Policy::new(rules.to_vec()).map_err(|error| error.to_string())
}

/// What is said of rules that allow nothing.
pub(super) fn futile_rules(config: &Config) -> Vec<String> {
    let of_agents = config.agents.iter().map(|(name, agent)| (rules_key(Some(name)), &agent.policy));
    let all = std::iter::once((rules_key(None), &config.policy.rules)).chain(of_agents);
    let numbered = all.flat_map(|(key, rules)| rules.iter().zip(1..).map(move |rule| (key.clone(), rule)));
    let futile = |(key, (rule, number)): (String, (&PolicyRule, usize))| {
        rule.futile().map(|why| one_line(&format!("{key}, rule {number}: {why}")).into_owned())
    };
    numbered.filter_map(futile).collect()
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

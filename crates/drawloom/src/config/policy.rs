//! `[policy]`: the owner's rules on calls of tools.

use ::policy::{Decision, Pattern, PolicyRule};
use commands::CommandError;
use commands::shell::quoted;
use schemars::JsonSchema;
use serde::Deserialize;

use text::terminal::one_line;

use super::Config;
use super::file::CONFIG;
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

/// A pattern of a rule that names no tool.
pub(super) struct UnknownTool<'r> {
    pattern: &'r Pattern,
    pub(super) why: String,
    /// Whether it is nearly the name of one, or that of a server's as other clients write it.
    pub(super) is_near: bool,
}

/// The first pattern of a rule, or exception to it, that names no tool of these.
pub(super) fn unknown_tool<'r>(rule: &'r PolicyRule, known: &[String]) -> Option<UnknownTool<'r>> {
    rule.tool.iter().chain(&rule.unless).find_map(|pattern| match pattern {
        Pattern::Tool { server: None, name, .. } if !known.contains(name) => {
            let of_server = ::policy::tool_of_server(name).or_else(|| all_of_server(name));
            let of_server = of_server.map(|tool| format!("write `{tool}`"));
            let near =
                || Some(format!("did you mean {}?", commands::app::nearest(known.iter().cloned(), name)?));
            let meant = of_server.or_else(near);
            let is_near = meant.is_some();
            let meant = meant.map(|meant| format!(" ({meant})")).unwrap_or_default();
            Some(UnknownTool { pattern, why: format!("there is no such tool as {name}{meant}"), is_near })
        }
        _ => None,
    })
}

/// `SERVER:*` of a whole server that other clients name `mcp__SERVER`.
fn all_of_server(name: &str) -> Option<String> {
    name.strip_prefix("mcp__").filter(|server| !server.is_empty()).map(|server| format!("{server}:*"))
}

/// A rule that is about nothing: it allows nothing, or names a tool that is gone, of which there are no calls.
pub(super) struct IdleRule {
    /// What is said of it.
    pub(super) told: String,
    /// Whether it denies or asks about what is nearly the name of a tool, whose calls it would let pass.
    pub(super) is_slip: bool,
}

/// The rules that are about nothing.
pub(super) fn idle_rules(config: &Config) -> Vec<IdleRule> {
    let known = commands::tool_names(config.tools.keys());
    let idle = |(agent, rule, number): (Option<&str>, &PolicyRule, usize)| {
        let unknown = unknown_tool(rule, &known);
        let is_slip = rule.decision != Decision::Allow && unknown.as_ref().is_some_and(|tool| tool.is_near);
        let gone = unknown
            .map(|UnknownTool { pattern, why, .. }| format!("{why}; {}", way_out((agent, rule), pattern)));
        let why = rule.futile().or(gone)?;
        let told = one_line(&format!("{}, rule {number}: {why}", rules_key(agent))).into_owned();
        Some(IdleRule { told, is_slip })
    };
    all_rules(config).filter_map(idle).collect()
}

/// What is said of rules about servers that are not configured, where one of nearly that name is: an `mcp remove` leaves those
/// that deny or ask.
pub(super) fn rules_without_server(config: &Config) -> Vec<String> {
    let told = |(agent, rule, number): (Option<&str>, &PolicyRule, usize)| {
        let (pattern, server) = rule.tool.iter().chain(&rule.unless).find_map(|pattern| match pattern {
            Pattern::Tool { server: Some(server), .. } if !config.mcp.contains_key(server) => {
                Some((pattern, server))
            }
            _ => None,
        })?;
        let near = commands::app::nearest(config.mcp.keys().cloned(), server)?;
        let way_out = way_out((agent, rule), pattern);
        let told = format!(
            "{}, rule {number}: there is no server {server} (did you mean {near}?); {way_out}",
            rules_key(agent)
        );
        Some(one_line(&told).into_owned())
    };
    all_rules(config).filter_map(told).collect()
}

/// All rules, with the agent that they are of and their number there.
fn all_rules(config: &Config) -> impl Iterator<Item = (Option<&str>, &PolicyRule, usize)> {
    let of_agents = config.agents.iter().map(|(name, agent)| (Some(name.as_str()), &agent.policy));
    let all = std::iter::once((None, &config.policy.rules)).chain(of_agents);
    all.flat_map(|(agent, rules)| rules.iter().zip(1..).map(move |(rule, number)| (agent, rule, number)))
}

/// How a pattern is taken out of a rule.
fn way_out((agent, rule): (Option<&str>, &PolicyRule), pattern: &Pattern) -> String {
    if !rule.tool.contains(pattern) {
        return format!("take it out of `unless` in {CONFIG}");
    }
    let of = agent.map(|name| format!(" --agent {}", quoted(name))).unwrap_or_default();
    format!("`drawloom policy remove {}{of}` takes it out", quoted(&pattern.to_string()))
}

/// Refuses what is to go by rules of which one is about nothing by a slip.
///
/// # Errors
/// The first such rule.
pub(super) fn require_no_slip(idle: &[IdleRule]) -> Result<(), CommandError> {
    let slip = idle.iter().find(|rule| rule.is_slip);
    slip.map_or(Ok(()), |rule| {
        let hint = "`drawloom policy list` shows the rules";
        Err(CommandError::new("config", 2, format!("{CONFIG}: {}", rule.told), hint))
    })
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

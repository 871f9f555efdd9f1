//! `policy allow`, `ask`, `deny` and `remove`: rules in `[[policy.rules]]`, each of which is about something there is.

use std::path::Path;

use ::policy::{Decision, Pattern, Policy, PolicyRule};
use commands::CommandError;
use commands::args::policy::{PolicyCommand, RuleArgs};
use commands::results::policy::PolicyRules;
use text::terminal::one_line;
use toml_edit::{ArrayOfTables, DocumentMut, Item, Table};

use super::commands::home;
use super::file::{CONFIG, Problem, SecretRule, parse};
use super::layers::{Layers, Source};
use super::policy::{PolicySection, RULES};
use super::set::{document, rewrite, without};
use crate::paths::InvocationPaths;

/// Runs one that changes rules.
///
/// # Errors
/// A pattern that is none, a rule that would be about nothing, a pattern that no rule has, or a file that is broken or
/// cannot be written. Nothing was written.
pub(crate) fn run(
    command: PolicyCommand,
    paths: &InvocationPaths,
    layers: &Layers,
    note: &dyn Fn(&str),
) -> Result<PolicyRules, CommandError> {
    let (decision, args) = match command {
        PolicyCommand::Allow(args) => (Decision::Allow, args),
        PolicyCommand::Ask(args) => (Decision::Ask, args),
        PolicyCommand::Deny(args) => (Decision::Deny, args),
        PolicyCommand::Remove(args) => return remove(&pattern(&args.pattern)?, paths, layers, note),
        other @ (PolicyCommand::List | PolicyCommand::Test(_)) => {
            return Err(commands::Command::Policy(other).not_here());
        }
    };
    add(&rule(decision, args)?, paths, layers, note)
}

fn rule(decision: Decision, args: RuleArgs) -> Result<PolicyRule, CommandError> {
    Ok(PolicyRule {
        decision,
        tool: vec![pattern(&args.pattern)?],
        unless: args.unless.iter().map(|written| pattern(written)).collect::<Result<_, _>>()?,
        sessions: args.sessions.into_iter().map(Into::into).collect(),
        reason: args.reason.filter(|reason| !reason.trim().is_empty()),
    })
}

fn pattern(written: &str) -> Result<Pattern, CommandError> {
    written.parse().map_err(|error: ::policy::PatternError| {
        CommandError::usage(
            format!("{} is no pattern: {error}", one_line(written)),
            "write TOOL, SERVER:TOOL or effect:NAME, with path=GLOB or host=NAME if wanted, or exec WORD… [*]",
        )
    })
}

fn add(
    rule: &PolicyRule,
    paths: &InvocationPaths,
    layers: &Layers,
    note: &dyn Fn(&str),
) -> Result<PolicyRules, CommandError> {
    let alone = PolicySection { rules: vec![rule.clone()] }.rules();
    alone.map_err(|why| CommandError::usage(format!("{rule}: {why}"), "nothing was written"))?;
    let home = home(RULES, paths, layers)?;
    let (policy, is_new) = rewrite(home.root(), (CONFIG, SecretRule::Refused), |old| {
        changed(old, |tables, rules| {
            let is_new = !rules.contains(rule);
            if is_new {
                tables.push(table(rule)?);
            }
            Ok(is_new)
        })
    })?;
    for (other, number) in policy.rules().iter().zip(1..) {
        if other.decision > rule.decision && other.tool.contains(&rule.tool[0]) {
            note(&format!("rule {number} ({other}) goes before it"));
        }
    }
    let done = if is_new { "written to" } else { "it stands already in" };
    Ok(told(&policy, format!("{rule}: {done} {}", file_of(home.root())), layers, note))
}

fn remove(
    pattern: &Pattern,
    paths: &InvocationPaths,
    layers: &Layers,
    note: &dyn Fn(&str),
) -> Result<PolicyRules, CommandError> {
    let home = home(RULES, paths, layers)?;
    let (policy, gone) = rewrite(home.root(), (CONFIG, SecretRule::Refused), |old| {
        changed(old, |tables, rules| {
            let having: Vec<_> =
                rules.iter().enumerate().filter(|(_, rule)| rule.tool.contains(pattern)).collect();
            if having.is_empty() {
                let hint = "`drawloom policy list` shows the patterns that there are";
                return Err(CommandError::not_found("rule about", &pattern.to_string(), hint));
            }
            // From the last: the places of those before stay.
            for (index, rule) in having.iter().rev() {
                let left: Vec<_> = rule.tool.iter().filter(|other| *other != pattern).collect();
                match tables.get_mut(*index) {
                    Some(table) if !left.is_empty() => {
                        let left: toml_edit::Array = left.into_iter().map(ToString::to_string).collect();
                        table["tool"] = toml_edit::value(left);
                    }
                    _ => drop(tables.remove(*index)),
                }
            }
            let gone = having.iter().map(|(_, rule)| format!("{} {pattern}", rule.decision.name()));
            Ok(gone.collect::<Vec<_>>().join(", "))
        })
    })?;
    Ok(told(&policy, format!("{gone}: removed from {}", file_of(home.root())), layers, note))
}

/// What is said of a change; of rules that stand elsewhere too, that those hold.
fn told(policy: &Policy, said: String, layers: &Layers, note: &dyn Fn(&str)) -> PolicyRules {
    if let (_, above @ (Source::Environment | Source::Flag)) = layers.get(RULES) {
        note(&format!("the {} sets {RULES} too and takes precedence", above.as_str()));
    }
    PolicyRules { said: Some(said), ..PolicyRules::of(policy) }
}

fn file_of(home: &Path) -> String {
    one_line(&home.join(CONFIG).display().to_string()).into_owned()
}

/// Changes the tables of the rules in the text of a file. Returns the new text with the rules it has then.
fn changed<T>(
    old: &str,
    change: impl FnOnce(&mut ArrayOfTables, &[PolicyRule]) -> Result<T, CommandError>,
) -> Result<(String, (Policy, T)), CommandError> {
    let rules = read(old)?;
    let mut document = document(CONFIG, old)?;
    let section = document.entry("policy").or_insert_with(|| {
        let mut section = Table::new();
        section.set_implicit(true);
        Item::Table(section)
    });
    // A section may have been written in one line, `policy = { … }`.
    if let Item::Value(value) = section
        && let Some(inline) = value.as_inline_table()
    {
        *section = Item::Table(inline.clone().into_table());
    }
    let no_tables = || CommandError::usage(format!("{CONFIG}: {RULES} are no tables"), "correct it first");
    let item = section.as_table_mut().ok_or_else(no_tables)?.entry("rules").or_insert(Item::None);
    // Rules may have been written in one line, `rules = [{ … }]`.
    let mut tables = match std::mem::take(item) {
        Item::None => ArrayOfTables::new(),
        written => written.into_array_of_tables().map_err(|_| no_tables())?,
    };
    let done = change(&mut tables, rules.rules())?;
    let is_empty = tables.is_empty();
    *item = Item::ArrayOfTables(tables);
    let text = document.to_string();
    let text = if is_empty { without(CONFIG, &text, RULES)? } else { text };
    let rules = read(&text)?;
    Ok((text, (rules, done)))
}

/// The rules in the text of a file.
fn read(text: &str) -> Result<Policy, CommandError> {
    let parsed = parse(CONFIG, text, SecretRule::Refused);
    let about_rules = |problem: &&Problem| problem.key.as_deref().is_none_or(|key| key == RULES);
    if let Some(wrong) = parsed.problems.iter().find(about_rules) {
        return Err(wrong.error());
    }
    let value = parsed.values.into_iter().find(|(key, _)| key == RULES).map(|(_, value)| value);
    let rules = value.map_or(Ok(Vec::new()), toml::Value::try_into);
    let unread = |why: String| CommandError::new("config", 2, why, "`drawloom policy list` shows the rules");
    let rules = rules.map_err(|error: toml::de::Error| unread(error.message().to_owned()))?;
    PolicySection { rules }.rules().map_err(unread)
}

/// A rule as a table of the file.
fn table(rule: &PolicyRule) -> Result<Table, CommandError> {
    let written = toml::to_string(rule).ok().and_then(|text| text.parse::<DocumentMut>().ok());
    let failed = || CommandError::usage(format!("{rule} cannot be written"), "write it in another way");
    written.map(|document| document.as_table().clone()).ok_or_else(failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn added(old: &str, rule: &str, decision: Decision) -> Result<String, String> {
        let rule =
            super::rule(decision, RuleArgs { pattern: rule.to_owned(), ..RuleArgs::default() }).unwrap();
        let done = changed(old, |tables, _| {
            tables.push(table(&rule)?);
            Ok(())
        });
        done.map(|(text, _)| text).map_err(|error| error.message)
    }

    #[test]
    fn a_rule_is_a_table_behind_those_there_are() {
        let one =
            added("# mine\n[log]\nlevel = \"info\" # loud\n", "write path=docs/**", Decision::Deny).unwrap();
        let rule = "\n[[policy.rules]]\ndecision = \"deny\"\ntool = [\"write path='docs/**'\"]\n";
        assert_eq!(one, format!("# mine\n[log]\nlevel = \"info\" # loud\n{rule}"));
        let two = added(&one, "effect:write", Decision::Ask).unwrap();
        assert_eq!(two, format!("{one}\n[[policy.rules]]\ndecision = \"ask\"\ntool = [\"effect:write\"]\n"));
    }

    #[test]
    fn rules_on_one_line_become_tables() {
        let old = "policy = { rules = [{ decision = \"ask\", tool = [\"edit\"] }] }\n";
        let new = added(old, "write", Decision::Deny).unwrap();
        let names: Vec<String> = read(&new).unwrap().rules().iter().map(ToString::to_string).collect();
        assert_eq!(names, ["ask edit", "deny write"], "{new}");
    }

    #[test]
    fn a_rule_that_would_be_about_nothing_is_not_written() {
        for (rule, decision) in [("wirte", Decision::Deny), ("exec sh *", Decision::Allow)] {
            assert!(added("", rule, decision).unwrap_err().contains("policy.rules does not fit"));
        }
        let broken = "[[policy.rules]]\ndecision = \"deny\"\n";
        assert!(added(broken, "write", Decision::Deny).unwrap_err().contains("policy.rules"));
    }
}

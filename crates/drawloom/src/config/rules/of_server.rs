//! Rules about the tools of a server that is taken out of the configuration. Another program may have its name one day: what
//! allows its calls goes with it.

use std::path::Path;

use ::policy::{Decision, Pattern, PolicyRule};
use commands::CommandError;
use commands::results::mcp::ServerRules;
use toml_edit::Array;

use super::super::file::{CONFIG, SecretRule, parse};
use super::super::path::segments;
use super::super::policy::{RULES, holds_rules};
use super::super::set::rewrite;
use super::{WrittenRules, changed, read};

/// Removes the allow rules about the tools of a server, general ones and those of agents.
///
/// # Errors
/// Rules that cannot be read, or a file that cannot be written. Nothing was written.
pub(crate) fn forget_server(home: &Path, server: &str) -> Result<ServerRules, CommandError> {
    rewrite(home, (CONFIG, SecretRule::Refused), |old| forgotten(old, server))
}

/// The allow rules about the tools of a server.
///
/// # Errors
/// As [`forget_server`].
pub(crate) fn allowing(home: &Path, server: &str) -> Result<Vec<String>, CommandError> {
    rewrite(home, (CONFIG, SecretRule::Refused), |old| {
        let (_, found) = forgotten(old, server)?;
        Ok((old.to_owned(), found.removed))
    })
}

/// The text of a file without the allow rules about the tools of a server.
fn forgotten(old: &str, server: &str) -> Result<(String, ServerRules), CommandError> {
    let (mut text, mut found) = (old.to_owned(), ServerRules::default());
    let parsed = parse(CONFIG, old, SecretRule::Refused);
    // Rules of which one does not fit count for nobody, and would all count again once that is mended.
    let is_of_rules = |key: &Option<String>| key.as_deref().is_none_or(holds_rules);
    if let Some(problem) = parsed.problems.iter().find(|problem| is_of_rules(&problem.key)) {
        return Err(problem.error());
    }
    let held = parsed.values.into_iter().map(|(path, _)| path);
    let mut keys: Vec<String> = held.filter(|path| holds_rules(path)).collect();
    // General ones first.
    keys.sort_by_key(|key| key != RULES);
    for key in keys {
        if !read(&text, &key)?.rules().iter().any(|rule| is_about(rule, server)) {
            continue;
        }
        let agent = match &segments(&key)[..] {
            [_, agent, _] if key != RULES => format!(" (agent {agent})"),
            _ => String::new(),
        };
        let (new, _) = changed(&text, &key, |written, rules| {
            let mut of_key = forget(written, rules, server);
            for (all, of_key) in
                [(&mut found.removed, &mut of_key.removed), (&mut found.kept, &mut of_key.kept)]
            {
                all.extend(of_key.drain(..).map(|rule| rule + &agent));
            }
            Ok(())
        })?;
        text = new;
    }
    Ok((text, found))
}

fn is_about(rule: &PolicyRule, server: &str) -> bool {
    rule.tool.iter().chain(&rule.unless).any(|pattern| pattern.is_of_server(server))
}

fn forget(written: &mut WrittenRules<'_>, rules: &[PolicyRule], server: &str) -> ServerRules {
    let mut found = ServerRules::default();
    // From the last: the places of those before stay.
    for (index, rule) in rules.iter().enumerate().rev().filter(|(_, rule)| is_about(rule, server)) {
        let (gone, left): (Vec<&Pattern>, Vec<&Pattern>) =
            rule.tool.iter().partition(|pattern| pattern.is_of_server(server));
        if rule.decision != Decision::Allow || gone.is_empty() {
            let unless: Vec<String> = rule.unless.iter().map(Pattern::to_string).collect();
            let unless =
                if unless.is_empty() { String::new() } else { format!(" unless {}", unless.join(", ")) };
            found.kept.push(format!("{rule}{unless}"));
            continue;
        }
        let gone: Vec<String> = gone.into_iter().map(Pattern::to_string).collect();
        found.removed.push(format!("allow {}", gone.join(", ")));
        let left: Array = left.into_iter().map(Pattern::to_string).collect();
        if left.is_empty() { written.remove(index) } else { written.set_patterns(index, left) }
    }
    found.removed.reverse();
    found.kept.reverse();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_allows_calls_of_a_server_goes_and_what_denies_them_stays() {
        let old = "[[policy.rules]]\ndecision = \"allow\"\ntool = [\"me:add\", \"write\"]\n\n\
                   [[policy.rules]]\ndecision = \"deny\"\ntool = [\"me:drop\"]\n\n\
                   [[policy.rules]]\ndecision = \"allow\"\ntool = [\"me:look\"]\n\n\
                   [[policy.rules]]\ndecision = \"ask\"\ntool = [\"effect:net\"]\nunless = [\"me:look\"]\n\n\
                   [[policy.rules]]\ndecision = \"allow\"\ntool = [\"meat:add\"]\n\n\
                   [[agents.poet.policy]]\ndecision = \"allow\"\ntool = [\"me:add\"]\n";
        let (text, found) = forgotten(old, "me").unwrap();
        assert_eq!(found.removed, ["allow me:add", "allow me:look", "allow me:add (agent poet)"]);
        assert_eq!(found.kept.len(), 2, "{found:?}");
        assert!(found.kept[0].contains("deny me:drop") && found.kept[1].contains("me:look"), "{found:?}");
        let left: Vec<String> = read(&text, RULES).unwrap().rules().iter().map(ToString::to_string).collect();
        assert_eq!(left.len(), 4, "{left:?}");
        assert_eq!((&*left[0], &*left[3]), ("allow write", "allow meat:add"));
        assert!(!text.contains("poet"), "{text}");
        assert_eq!(forgotten(old, "other").unwrap(), (old.to_owned(), ServerRules::default()));
        let with_slip = old.replacen("decision = \"deny\"", "decision = \"deny\"\nreson = \"x\"", 1);
        assert!(forgotten(&with_slip, "me").is_err(), "all of them count again once it is mended");
    }
}

//! `policy allow`, `ask`, `deny` and `remove`: rules in `[[policy.rules]]`, each of which is about something there is.

pub(crate) mod of_server;

use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use ::policy::{Decision, Pattern, Policy, PolicyRule};
use agent::RuleFile;
use commands::CommandError;
use commands::args::policy::{PolicyCommand, RuleArgs};
use commands::results::policy::PolicyRules;
use loom::source::{DEFAULT_AGENT, EARLIER_DEFAULT_AGENT};
use text::terminal::one_line;
use toml_edit::{Array, ArrayOfTables, DocumentMut, Item, RawString, Table, TableLike, Value};

use super::commands::home;
use super::file::{CONFIG, Problem, SecretRule, parse};
use super::layers::{Layers, Source};
use super::path::segments;
use super::policy::{idle_rules, require_no_slip, rules_key, unknown_tool};
use super::set::{below_remarks, document, rewrite, without};
use crate::paths::InvocationPaths;

/// Rules of the configuration while commands run: read where others changed them, and written where a person gives one
/// with an answer.
pub(crate) struct ConfigRules {
    paths: InvocationPaths,
    /// Rules that were read last.
    read: Mutex<Option<ReadRules>>,
}

/// Rules for an agent as a file had them.
struct ReadRules {
    file: Option<ConfigStamp>,
    agent: String,
    rules: Result<Arc<Policy>, String>,
}

/// Device, inode, size in bytes, and the kernel's time of change in s and ns, which no program sets.
type ConfigStamp = (u64, u64, u64, i64, i64);

impl ConfigRules {
    pub(crate) fn new(paths: InvocationPaths) -> Self {
        Self { paths, read: Mutex::default() }
    }

    /// The rules as the file has them; `known` are those that it had before, which count while it is none.
    fn read_now(
        &self,
        agent: &str,
        known: Option<&Result<Arc<Policy>, String>>,
    ) -> Result<Arc<Policy>, String> {
        let layers = Layers::read(&self.paths.home, std::env::vars_os(), &[]);
        if let Some(problem) = layers.without_rules() {
            return Err(problem.to_string());
        }
        if let Some(known) = known.filter(|_| layers.is_broken()) {
            return known.clone();
        }
        let config = layers.lenient().map_err(|error| error.message)?;
        require_no_slip(&idle_rules(&config)).map_err(|error| error.message)?;
        let of_agent = config.agents.get(agent).map(|agent| agent.policy.clone()).unwrap_or_default();
        let rules = Policy::new(config.policy.rules).and_then(|rules| rules.for_agent(agent, of_agent));
        rules.map(Arc::new).map_err(|error| error.to_string())
    }
}

impl RuleFile for ConfigRules {
    fn read(&self, agent: &str) -> Result<Arc<Policy>, String> {
        let file = std::fs::metadata(self.paths.home.join(CONFIG)).ok().map(|metadata| {
            (metadata.dev(), metadata.ino(), metadata.len(), metadata.ctime(), metadata.ctime_nsec())
        });
        let mut known = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        match &*known {
            Some(read) if read.file == file && read.agent == agent => read.rules.clone(),
            known_before => {
                let of_agent = known_before.as_ref().filter(|read| read.agent == agent);
                let rules = self.read_now(agent, of_agent.map(|read| &read.rules));
                *known = Some(ReadRules { file, agent: agent.to_owned(), rules: rules.clone() });
                rules
            }
        }
    }

    fn write(&self, rule: &PolicyRule) -> Result<String, String> {
        // As the file is now, which a person may have changed since.
        let layers = Layers::read(&self.paths.home, std::env::vars_os(), &[]);
        let notes = std::cell::RefCell::new(Vec::new());
        let written =
            add((None, rule), &self.paths, &layers, &|note| notes.borrow_mut().push(note.to_owned()));
        let done = written.map_err(|error| format!("{}: {}", error.message, error.hint))?;
        let told = done.said.into_iter().chain(notes.into_inner());
        Ok(told.collect::<Vec<_>>().join("; "))
    }
}

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
        PolicyCommand::Remove(args) => {
            let agent = args.agent.as_deref().map(|name| section_of(name, layers)).transpose()?;
            return remove((agent.as_deref(), &pattern(&args.pattern, layers)?), paths, layers, note);
        }
        other @ (PolicyCommand::List(_) | PolicyCommand::Test(_)) => {
            return Err(commands::Command::Policy(other).not_here());
        }
    };
    let agent = args.agent.as_deref().map(|name| section_of(name, layers)).transpose()?;
    add((agent.as_deref(), &rule(decision, args, layers)?), paths, layers, note)
}

/// The name of the section that an agent is configured in: the default one needs none.
fn section_of(agent: &str, layers: &Layers) -> Result<String, CommandError> {
    let agents = layers.agents();
    let has = |name: &str| agents.iter().any(|other| other == name);
    match agent {
        // An earlier name of the default one.
        DEFAULT_AGENT if !has(DEFAULT_AGENT) && has(EARLIER_DEFAULT_AGENT) => {
            Ok(EARLIER_DEFAULT_AGENT.to_owned())
        }
        known if known == DEFAULT_AGENT || has(known) => Ok(known.to_owned()),
        other => {
            let hint = format!("[agents.NAME] in {CONFIG} makes one; nothing was written");
            Err(CommandError::not_found("agent", &one_line(other), hint))
        }
    }
}

fn rule(decision: Decision, args: RuleArgs, layers: &Layers) -> Result<PolicyRule, CommandError> {
    Ok(PolicyRule {
        decision,
        tool: vec![pattern(&args.pattern, layers)?],
        unless: args.unless.iter().map(|written| pattern(written, layers)).collect::<Result<_, _>>()?,
        sessions: args.sessions.into_iter().map(Into::into).collect(),
        reason: args.reason.filter(|reason| !reason.trim().is_empty()),
    })
}

fn pattern(written: &str, layers: &Layers) -> Result<Pattern, CommandError> {
    written.parse().map_err(|error: ::policy::PatternError| {
        // Words stand behind one tool alone: another name there is meant for it, or for one that is near.
        let tool = written.split_whitespace().next().unwrap_or_default();
        let known = commands::tool_names(layers.tools().iter());
        let is_name = tool.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        if is_name && !tool.is_empty() && !known.iter().any(|name| name == tool) {
            let hint = match commands::app::nearest(known.iter().cloned(), tool) {
                Some(near) => format!("did you mean {near}?"),
                None => format!("there are {}", known.join(", ")),
            };
            return CommandError::usage(format!("there is no tool {tool}"), hint);
        }
        CommandError::usage(one_line(&error.to_string()), format!("write {}", policy::PATTERN_FORMS))
    })
}

/// Adds a rule: a general one, or one of an agent.
fn add(
    (agent, rule): (Option<&str>, &PolicyRule),
    paths: &InvocationPaths,
    layers: &Layers,
    note: &dyn Fn(&str),
) -> Result<PolicyRules, CommandError> {
    let key = &*rules_key(agent);
    let known = commands::tool_names(layers.tools().iter());
    let no_tool = unknown_tool(rule, &known).map(|tool| match tool.is_near {
        true => tool.why,
        false => format!("{}; there are {}", tool.why, known.join(", ")),
    });
    if let Some(why) = no_tool.or_else(|| rule.futile()) {
        return Err(CommandError::usage(format!("{rule}: {why}"), "nothing was written"));
    }
    let home = home(key, paths, layers)?;
    let (policy, is_new) = rewrite(home.root(), (CONFIG, SecretRule::Refused), |old| {
        changed(old, key, |written, rules| {
            let is_new = !rules.contains(rule);
            if is_new {
                written.push(table(rule)?);
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
    Ok(told((key, &policy), format!("{rule}: {done} {}", file_of(home.root())), layers, note))
}

fn remove(
    (agent, pattern): (Option<&str>, &Pattern),
    paths: &InvocationPaths,
    layers: &Layers,
    note: &dyn Fn(&str),
) -> Result<PolicyRules, CommandError> {
    let key = &*rules_key(agent);
    let home = home(key, paths, layers)?;
    let (policy, gone) = rewrite(home.root(), (CONFIG, SecretRule::Refused), |old| {
        changed(old, key, |written, rules| {
            let having: Vec<_> =
                rules.iter().enumerate().filter(|(_, rule)| rule.tool.contains(pattern)).collect();
            if having.is_empty() {
                let hint = "`drawloom policy list` shows the patterns that there are";
                return Err(CommandError::not_found("rule about", &pattern.to_string(), hint));
            }
            // From the last: the places of those before stay.
            for (index, rule) in having.iter().rev() {
                let left: Array =
                    rule.tool.iter().filter(|other| *other != pattern).map(ToString::to_string).collect();
                if left.is_empty() { written.remove(*index) } else { written.set_patterns(*index, left) }
            }
            let gone = having.iter().map(|(_, rule)| format!("{} {pattern}", rule.decision.name()));
            Ok(gone.collect::<Vec<_>>().join(", "))
        })
    })?;
    Ok(told((key, &policy), format!("{gone}: removed from {}", file_of(home.root())), layers, note))
}

/// What is said of a change; of rules that stand elsewhere too, that those hold.
fn told((key, policy): (&str, &Policy), said: String, layers: &Layers, note: &dyn Fn(&str)) -> PolicyRules {
    if let (_, above @ (Source::Environment | Source::Flag)) = layers.get(key) {
        note(&format!("the {} sets {key} too and takes precedence", above.as_str()));
    }
    PolicyRules { said: Some(said), ..PolicyRules::of(policy) }
}

fn file_of(home: &Path) -> String {
    one_line(&home.join(CONFIG).display().to_string()).into_owned()
}

/// The rules as a file has them: a table each, or values of one array. What a person wrote around them stays.
enum WrittenRules<'d> {
    Tables(&'d mut ArrayOfTables),
    Array(&'d mut Array),
}

impl WrittenRules<'_> {
    fn push(&mut self, rule: Table) {
        match self {
            Self::Tables(tables) => tables.push(rule),
            Self::Array(array) => array.push(rule.into_inline_table()),
        }
    }

    fn set_patterns(&mut self, index: usize, patterns: Array) {
        let rule = match self {
            Self::Tables(tables) => tables.get_mut(index).map(|table| table as &mut dyn TableLike),
            Self::Array(array) => {
                let inline = array.get_mut(index).and_then(Value::as_inline_table_mut);
                inline.map(|inline| inline as &mut dyn TableLike)
            }
        };
        if let Some(rule) = rule {
            rule.insert("tool", toml_edit::value(patterns));
        }
    }

    /// Removes a rule. A remark above it goes to the one behind it.
    fn remove(&mut self, index: usize) {
        match self {
            Self::Array(array) => drop(array.remove(index)),
            Self::Tables(tables) => {
                let above = |table: &Table| {
                    let prefix = table.decor().prefix().and_then(RawString::as_str);
                    prefix.unwrap_or_default().to_owned()
                };
                let remark = above(&tables.remove(index));
                if let Some(next) = tables.get_mut(index).filter(|_| remark.contains('#')) {
                    let whole = remark + &above(next);
                    next.decor_mut().set_prefix(whole);
                }
            }
        }
    }

    fn is_empty(&self) -> bool {
        match self {
            Self::Tables(tables) => tables.is_empty(),
            Self::Array(array) => array.is_empty(),
        }
    }
}

/// Changes the rules in the text of a file. Returns the new text with the rules it has then.
fn changed<T>(
    old: &str,
    key: &str,
    change: impl FnOnce(&mut WrittenRules<'_>, &[PolicyRule]) -> Result<T, CommandError>,
) -> Result<(String, (Policy, T)), CommandError> {
    let rules = read(old, key)?;
    let mut document = document(CONFIG, old)?;
    let only_comments = document.as_table().is_empty();
    let no_tables = || CommandError::usage(format!("{CONFIG}: {key} are no tables"), "correct it first");
    let mut names = segments(key);
    let last = names.pop().unwrap_or_default();
    let (mut section, mut is_value) = (document.as_table_mut() as &mut dyn TableLike, false);
    for name in names {
        let new = match is_value {
            true => toml_edit::value(toml_edit::InlineTable::new()),
            false => {
                let mut section = Table::new();
                section.set_implicit(true);
                Item::Table(section)
            }
        };
        let item = section.entry(&name).or_insert(new);
        is_value = matches!(item, Item::Value(_));
        section = item.as_table_like_mut().ok_or_else(no_tables)?;
    }
    let none = match is_value {
        true => toml_edit::value(Array::new()),
        false => Item::ArrayOfTables(ArrayOfTables::new()),
    };
    let mut written = match section.entry(&last).or_insert(none) {
        Item::ArrayOfTables(tables) => WrittenRules::Tables(tables),
        item => WrittenRules::Array(item.as_array_mut().ok_or_else(no_tables)?),
    };
    let done = change(&mut written, rules.rules())?;
    let is_empty = written.is_empty();
    let text = below_remarks(old, only_comments, document.to_string());
    let text = if is_empty { without(CONFIG, &text, key)? } else { text };
    let rules = read(&text, key)?;
    Ok((text, (rules, done)))
}

/// The rules under a key in the text of a file.
fn read(text: &str, key: &str) -> Result<Policy, CommandError> {
    let parsed = parse(CONFIG, text, SecretRule::Refused);
    let about_rules = |problem: &&Problem| problem.key.as_deref().is_none_or(|other| other == key);
    if let Some(wrong) = parsed.problems.iter().find(about_rules) {
        return Err(wrong.error());
    }
    let value = parsed.values.into_iter().find(|(path, _)| path == key).map(|(_, value)| value);
    let rules = value.map_or(Ok(Vec::new()), toml::Value::try_into);
    let unread = |why: String| CommandError::new("config", 2, why, "`drawloom policy list` shows the rules");
    let rules: Vec<PolicyRule> =
        rules.map_err(|error: toml::de::Error| unread(error.message().to_owned()))?;
    Policy::new(rules).map_err(|error| unread(error.to_string()))
}

/// A rule as a table of the file.
fn table(rule: &PolicyRule) -> Result<Table, CommandError> {
    let written = toml::to_string(rule).ok().and_then(|text| text.parse::<DocumentMut>().ok());
    let failed = || CommandError::usage(format!("{rule} cannot be written"), "write it in another way");
    written.map(|document| document.as_table().clone()).ok_or_else(failed)
}

#[cfg(test)]
mod tests {
    use super::super::policy::RULES;
    use super::*;

    fn added(old: &str, rule: &str, decision: Decision) -> Result<String, String> {
        let rule = super::rule(
            decision,
            RuleArgs { pattern: rule.to_owned(), ..RuleArgs::default() },
            &Layers::default(),
        )
        .unwrap();
        let done = changed(old, RULES, |tables, _| {
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
    fn rules_in_an_array_stay_there_with_what_stands_around_them() {
        for old in [
            "policy = { rules = [{ decision = \"ask\", tool = [\"edit\"] }] } # mine\n",
            "[policy]\n# mine\nrules = [\n  # edits\n  { decision = \"ask\", tool = [\"edit\"] },\n]\n",
            "policy.rules = [{ decision = \"ask\", tool = [\"edit\"] }] # mine\n",
        ] {
            let new = added(old, "write", Decision::Deny).unwrap();
            let names: Vec<String> =
                read(&new, RULES).unwrap().rules().iter().map(ToString::to_string).collect();
            assert_eq!(names, ["ask edit", "deny write"], "{new}");
            assert_eq!(new.matches("# mine").count(), 1, "{new}");
            assert_eq!(new.contains("# edits"), old.contains("# edits"), "{new}");
        }
        for old in ["policy.rules = []\n", "[policy]\nrules = []\n", "policy = {}\n"] {
            let new = added(old, "write", Decision::Deny).unwrap();
            assert_eq!(read(&new, RULES).unwrap().rules().len(), 1, "{new}");
        }
    }

    #[test]
    fn remarks_stay() {
        let new = added("# mine\n", "write", Decision::Deny).unwrap();
        assert!(new.starts_with("# mine\n[[policy.rules]]\n"), "{new}");
        let two = added(&new, "edit", Decision::Ask).unwrap();
        let (one, _) = changed(&two, RULES, |written, _| {
            written.remove(0);
            Ok(())
        })
        .unwrap();
        assert!(one.starts_with("# mine\n") && !one.contains("deny") && one.contains("ask"), "{one}");
    }

    #[test]
    fn a_rule_is_not_written_beside_one_without_a_pattern() {
        let broken = "[[policy.rules]]\ndecision = \"deny\"\n";
        assert!(added(broken, "write", Decision::Deny).unwrap_err().contains("policy.rules"));
    }

    #[test]
    fn the_rule_of_an_answer_is_written_behind_those_there_are() {
        let folder = tempfile::tempdir().unwrap();
        let paths = InvocationPaths::of(Some(folder.path().join("home")), None).unwrap();
        std::fs::create_dir(&paths.home).unwrap();
        let (file, old) =
            (paths.home.join(CONFIG), "# mine\n[[policy.rules]]\ndecision = \"deny\"\ntool = [\"write\"]\n");
        std::fs::write(&file, old).unwrap();
        let rules = ConfigRules::new(paths);
        let rule: PolicyRule =
            toml::from_str("decision = 'allow'\ntool = ['write path=a.md']\nsessions = ['main']").unwrap();
        let told = rules.write(&rule).unwrap();
        assert!(told.starts_with("allow write path=a.md: written to"), "{told}");
        let text = std::fs::read_to_string(&file).unwrap();
        assert_eq!(
            text.strip_prefix(old).map(|new| new.contains("sessions = [\"main\"]")),
            Some(true),
            "{text}"
        );
        assert!(rules.write(&rule).unwrap().contains("stands already"));
        assert_eq!(rules.read("assistant").unwrap().rules().len(), 2, "both are read");
        std::fs::write(&file, "policy = 3\n").unwrap();
        assert!(rules.write(&rule).is_err());
        std::fs::write(&file, "[[policy.rules]]\ndecision = \"deny\"\n").unwrap();
        assert!(rules.read("assistant").unwrap_err().contains("policy.rules"));
        std::fs::write(&file, "[model]\ndefualt = \"x\"\n").unwrap();
        assert!(
            rules.read("assistant").unwrap().rules().is_empty(),
            "another key keeps none from being read"
        );
    }
}

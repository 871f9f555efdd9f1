//! Parser of patterns. Words are separated by white space and may stand in single or double quotes.

use crate::call::Effect;
use crate::pattern::{EVERY_TOOL, Limit, PATTERN_FORMS, PathGlob, Pattern, host_name};

/// Refusal of a pattern: where, what, and what to write instead.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("pattern `{pattern}`, character {at}: {problem}")]
pub struct PatternError {
    pub pattern: String,
    /// Character, from 1.
    pub at: usize,
    pub problem: String,
}

/// One word of a pattern.
struct Token {
    text: String,
    /// Character at which it begins, from 1.
    at: usize,
    /// Bytes before its first quote or backslash.
    bare: usize,
    /// Whether it holds an asterisk that is not quoted.
    has_star: bool,
}

impl Token {
    fn is_bare(&self, text: &str) -> bool {
        self.text == text && self.bare == text.len()
    }

    /// Value of `KEY=…`, if the key is not quoted.
    fn value(&self, key: &str) -> Option<&str> {
        self.text.strip_prefix(key).and_then(|rest| rest.strip_prefix('=')).filter(|_| self.bare > key.len())
    }
}

/// What is wrong, at a character.
type Problem = (usize, String);

/// Reads a pattern.
///
/// # Errors
/// The first thing that is wrong with it.
pub(crate) fn parse(pattern: &str) -> Result<Pattern, PatternError> {
    read(pattern).map_err(|(at, problem)| PatternError { pattern: pattern.to_owned(), at, problem })
}

fn read(pattern: &str) -> Result<Pattern, Problem> {
    let tokens = tokens(pattern)?;
    let Some((first, rest)) = tokens.split_first() else {
        return Err((1, format!("empty: write {PATTERN_FORMS}")));
    };
    let is_limit = |token: &Token| token.value("path").or(token.value("host")).is_some();
    if first.is_bare("exec") && rest.first().is_some_and(|token| !is_limit(token)) {
        return exec(rest);
    }
    let limit = limit(rest)?;
    match first.text.split_once(':') {
        None => Ok(Pattern::Tool { server: None, name: name(first.at, &first.text)?, limit }),
        Some(("effect", effect)) => Ok(Pattern::Effect { effect: effect_named(first, effect)?, limit }),
        Some((server, tool)) => {
            let at = first.at + server.chars().count() + 1;
            let server = Some(name(first.at, server)?);
            let name = if tool == EVERY_TOOL { tool.to_owned() } else { name(at, tool)? };
            Ok(Pattern::Tool { server, name, limit })
        }
    }
}

/// Words of a command.
fn exec(tokens: &[Token]) -> Result<Pattern, Problem> {
    let (words, more) = match tokens.split_last() {
        Some((last, words)) if last.is_bare("*") => (words, true),
        _ => (tokens, false),
    };
    if words.is_empty() {
        let advice = "`*` alone names no program: write `exec PROGRAM *`, or `exec` for every command";
        return Err((tokens.first().map_or(1, |token| token.at), advice.to_owned()));
    }
    if let Some(token) = words.iter().find(|token| token.has_star) {
        let problem = "words of a command are matched as they stand: write ` *` as the last word for any further words, \
                       or quote the word if the asterisk is part of it";
        return Err((token.at, problem.to_owned()));
    }
    if words[0].text.is_empty() {
        return Err((words[0].at, "a program has a name: write it after `exec`".to_owned()));
    }
    Ok(Pattern::Exec { words: words.iter().map(|token| token.text.clone()).collect(), more })
}

fn limit(tokens: &[Token]) -> Result<Option<Limit>, Problem> {
    let Some((token, rest)) = tokens.split_first() else { return Ok(None) };
    if let Some(next) = rest.first() {
        return Err((
            next.at,
            "one `path=GLOB` or `host=NAME` is all: write two patterns instead".to_owned(),
        ));
    }
    if let Some(glob) = token.value("path") {
        path(glob).map(Some).map_err(|problem| (token.at, problem))
    } else if let Some(host) = token.value("host") {
        host_limit(host).map(Some).map_err(|problem| (token.at, problem))
    } else {
        let problem = format!("`{}` is not known here: write `path=GLOB` or `host=NAME`", token.text);
        Err((token.at, problem))
    }
}

fn path(glob: &str) -> Result<Limit, String> {
    let below = glob.strip_prefix('/').unwrap_or(glob);
    if below.is_empty()
        || below.starts_with(['/', '~'])
        || below.split('/').any(|name| matches!(name, "." | ".."))
    {
        return Err("paths are those below the workspace, or absolute ones below a further root: write \
                    `path=src/**` or `path=/data/**`, without `~`, `.` or `..`"
            .to_owned());
    }
    PathGlob::new(glob).map(Limit::Path).map_err(|error| {
        format!("this glob cannot be read ({}): close its brackets, or quote them as `[[]`", error.kind())
    })
}

fn host_limit(host: &str) -> Result<Limit, String> {
    let name = host_name(host);
    let address =
        name.contains(':') && name.bytes().all(|byte| byte.is_ascii_hexdigit() || b":.".contains(&byte));
    let labels = name.split('.').all(|label| {
        !label.is_empty() && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
    });
    if address || labels {
        Ok(Limit::Host(name))
    } else {
        Err("a host is a name or an address: write `host=example.org`, without scheme, port, path or `*`"
            .to_owned())
    }
}

fn effect_named(token: &Token, name: &str) -> Result<Effect, Problem> {
    let effect = Effect::ALL.into_iter().find(|effect| effect.name() == name);
    effect.ok_or_else(|| {
        let names = Effect::ALL.map(Effect::name).join(", ");
        (token.at, format!("there is no effect `{name}`: write one of {names}"))
    })
}

/// Name of a tool or a server.
fn name(at: usize, name: &str) -> Result<String, Problem> {
    let is_name = !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || "_-./".contains(c));
    let problem = || {
        let shown = if name.is_empty() { "nothing".to_owned() } else { format!("`{name}`") };
        (at, format!("{shown} is no name of a tool or a server: write letters, digits and `_-./`"))
    };
    is_name.then(|| name.to_owned()).ok_or_else(problem)
}

/// Words of a pattern, quotes removed.
fn tokens(pattern: &str) -> Result<Vec<Token>, Problem> {
    let mut tokens = Vec::new();
    let mut current: Option<Token> = None;
    let mut quote: Option<(char, usize)> = None;
    let mut chars = pattern.chars().zip(1..);
    while let Some((c, at)) = chars.next() {
        if quote.is_none() && c.is_whitespace() {
            tokens.extend(current.take());
            continue;
        }
        let new = || Token { text: String::new(), at, bare: usize::MAX, has_star: false };
        let token = current.get_or_insert_with(new);
        match (quote, c) {
            (Some((open, _)), _) if c == open => quote = None,
            (None, '\'' | '"') => {
                token.bare = token.bare.min(token.text.len());
                quote = Some((c, at));
            }
            (None | Some(('"', _)), '\\') => {
                token.bare = token.bare.min(token.text.len());
                let next = chars.next();
                let (next, _) =
                    next.ok_or((at, "nothing follows the backslash: write `\\\\` for one".to_owned()))?;
                token.text.push(next);
            }
            _ => {
                token.has_star |= quote.is_none() && c == '*';
                token.text.push(c);
            }
        }
    }
    if let Some((open, at)) = quote {
        return Err((at, format!("the quote is not closed: write another {open} at its end")));
    }
    tokens.extend(current);
    tokens.iter_mut().for_each(|token| token.bare = token.bare.min(token.text.len()));
    Ok(tokens)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn printed(text: &str) -> String {
        parse(text).map_or_else(|error| error.to_string(), |pattern| pattern.to_string())
    }

    #[test]
    fn patterns_are_printed_as_they_are_written() {
        for text in [
            "write",
            "github:create_issue",
            "github:*",
            "effect:net",
            "write path=src/main.rs",
            "write path='src/**'",
            "effect:net host=example.org",
            "exec",
            "exec host=crates.io",
            "exec git *",
            "exec cargo test -p x",
            "exec git commit -m 'a b'",
            "exec x '*' *",
            "exec x 'path=y'",
            "exec echo ''",
        ] {
            assert_eq!(printed(text), text);
        }
        assert_eq!(printed("  exec  \"git\"   log\\ x * "), "exec git 'log x' *");
        assert_eq!(printed("fetch host=Example.ORG."), "fetch host=example.org");
        assert_eq!(parse("exec path=x").unwrap(), parse("exec path='x'").unwrap());
        assert!(matches!(parse("exec 'path=x'").unwrap(), Pattern::Exec { .. }));
    }

    #[test]
    fn errors_say_where_what_and_what_to_write() {
        for (text, expected) in [
            ("", "pattern ``, character 1: empty: write `TOOL`"),
            (
                "effect:fly",
                "character 1: there is no effect `fly`: write one of read, write, exec, net, message",
            ),
            ("exec *", "character 6: `*` alone names no program: write `exec PROGRAM *`"),
            ("exec cargo test*", "character 12: words of a command are matched as they stand: write ` *`"),
            ("write x=y", "character 7: `x=y` is not known here: write `path=GLOB` or `host=NAME`"),
            ("write path=a host=b", "character 14: one `path=GLOB` or `host=NAME` is all"),
            ("write path=~/x", "character 7: paths are those below the workspace"),
            ("write path=a/../b", "character 7: paths are those below the workspace"),
            ("write path=[", "character 7: this glob cannot be read"),
            ("fetch host=https://x", "character 7: a host is a name"),
            ("exec 'git", "character 6: the quote is not closed: write another '"),
            ("exec git\\", "character 9: nothing follows the backslash"),
            ("a:b:c", "character 3: `b:c` is no name"),
            ("every:add*", "character 7: `add*` is no name"),
            ("*", "character 1: `*` is no name"),
            (":x", "nothing is no name"),
            ("exec ''", "character 6: a program has a name"),
        ] {
            assert!(printed(text).contains(expected), "{text}: {}", printed(text));
        }
    }

    fn limits() -> impl Strategy<Value = Option<Limit>> {
        let path = "[a-z *?'\"]{1,8}(/[a-z *\\\\$]{1,8})?".prop_filter_map("a glob", |glob| path(&glob).ok());
        let host = "[a-z0-9-]{1,8}(\\.[a-z]{2,3})?".prop_map(Limit::Host);
        proptest::option::of(prop_oneof![path, host])
    }

    fn patterns() -> impl Strategy<Value = Pattern> {
        let name = "[a-zA-Z_][a-zA-Z0-9_.-]{0,8}".prop_filter("a server", |name| name != "effect");
        let tool = (proptest::option::of(name.clone()), name, limits());
        let effect = (proptest::sample::select(Effect::ALL.to_vec()), limits());
        let words =
            ("\\PC{1,8}", proptest::collection::vec("\\PC{0,8}|[ '\"\\\\*=$\n\t]{0,4}|path=x|\\*", 0..4));
        prop_oneof![
            tool.prop_map(|(server, name, limit)| Pattern::Tool { server, name, limit }),
            effect.prop_map(|(effect, limit)| Pattern::Effect { effect, limit }),
            (words, any::<bool>()).prop_map(|((first, mut words), more)| {
                words.insert(0, first);
                Pattern::Exec { words, more }
            }),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        #[test]
        fn a_printed_pattern_is_read_back(pattern in patterns()) {
            let printed = pattern.to_string();
            prop_assert_eq!(parse(&printed), Ok(pattern), "{}", printed);
        }

        #[test]
        fn any_text_is_read_or_refused(text in "\\PC{0,40}", near in "(exec|effect:|a:)[a-z '\"\\\\*=:/{\\[]{0,20}") {
            for text in [text, near] {
                if let Ok(pattern) = parse(&text) {
                    prop_assert_eq!(parse(&pattern.to_string()), Ok(pattern));
                }
            }
        }
    }
}

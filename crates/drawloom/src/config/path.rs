//! Paths of keys: names with dots between them, quoted as in TOML where a name has dots of its own.

use super::keys::is_name;

/// The names of a path, without their quotes.
pub(crate) fn segments(path: &str) -> Vec<String> {
    let mut names = vec![String::new()];
    let mut quoted = false;
    let mut chars = path.chars();
    while let Some(char) = chars.next() {
        let last = names.len() - 1;
        match char {
            '"' => quoted = !quoted,
            '\\' if quoted => names[last].extend(chars.next()),
            '.' if !quoted => names.push(String::new()),
            other => names[last].push(other),
        }
    }
    names
}

/// The path of names.
pub(crate) fn join(names: &[String]) -> String {
    let quoted = |name: &String| {
        if is_name(name) {
            name.clone()
        } else {
            format!("\"{}\"", name.replace('\\', "\\\\").replace('"', "\\\""))
        }
    };
    names.iter().map(quoted).collect::<Vec<_>>().join(".")
}

/// A path as it is written everywhere else.
pub(crate) fn normal(path: &str) -> String {
    join(&segments(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_may_hold_anything_when_it_is_quoted() {
        let path = "models.\"openai/gpt-5.1\".window";
        assert_eq!(segments(path), ["models", "openai/gpt-5.1", "window"]);
        assert_eq!(normal(path), path);
        assert_eq!(normal("\"log\".level"), "log.level");
        for odd in ["a.b", "a\"b", "a\\b", "", "ü"] {
            let names = ["models".to_owned(), odd.to_owned(), "window".to_owned()];
            assert_eq!(segments(&join(&names)), names, "{odd}");
        }
    }
}

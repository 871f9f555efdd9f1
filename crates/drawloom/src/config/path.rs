//! Paths of keys: names with dots between them, quoted as in TOML where a name has dots of its own.

use toml_edit::Key;

/// The names of a path, without their quotes; none, if it is no path.
pub(crate) fn segments(path: &str) -> Vec<String> {
    let keys = Key::parse(path).unwrap_or_default();
    keys.iter().map(|key| key.get().to_owned()).collect()
}

pub(crate) fn join(names: &[String]) -> String {
    names.iter().map(|name| Key::new(name).to_string()).collect::<Vec<_>>().join(".")
}

/// A path as it is written everywhere else; what is no path stays as it is.
pub(crate) fn normal(path: &str) -> String {
    Key::parse(path).map_or_else(|_| path.to_owned(), |_| join(&segments(path)))
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

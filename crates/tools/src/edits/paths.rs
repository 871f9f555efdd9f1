//! Paths in the headers of a unified diff.

/// The path that stands behind `---` or `+++`, without its time stamp; none if it is empty or wrongly quoted.
pub(super) fn header_path(text: &str) -> Option<String> {
    let text = text.trim_start();
    if text.starts_with('"') {
        return quoted(text).map(|(path, _)| path);
    }
    let path = text.split('\t').next().unwrap_or_default().trim_end();
    (!path.is_empty()).then(|| path.to_owned())
}

/// Old and new path behind `diff --git`: told apart only where they are the same but for their prefixes, or quoted.
pub(super) fn git_paths(text: &str) -> Option<(String, String)> {
    let text = text.trim_end();
    if text.starts_with('"') {
        let (old, rest) = quoted(text)?;
        return Some((old, header_path(rest)?));
    }
    let middle = text.len() / 2;
    let (old, new) = (text.get(..middle)?, text.get(middle..)?.strip_prefix(' ')?);
    let is_same = old.split_once('/')?.1 == new.split_once('/')?.1;
    is_same.then(|| (old.to_owned(), new.to_owned()))
}

/// Old and new path without the prefixes by which git tells them apart. A folder that is named as a prefix stays
/// where the other path shows that it is none.
pub(super) fn without_prefixes(old: String, new: String) -> (String, String) {
    const NONE: &str = "/dev/null";
    let split = |path: &str| path.split_once('/').map(|(prefix, rest)| (prefix.to_owned(), rest.to_owned()));
    match (split(&old), split(&new)) {
        (Some((a, rest)), _) if a == "a" && (new == NONE || new == rest) => {
            let new = if new == NONE { new } else { rest.clone() };
            (rest, new)
        }
        (_, Some((b, rest))) if b == "b" && (old == NONE || old == rest) => (old, rest),
        (Some((a, old)), Some((b, new))) if (a == "a" && b == "b") || (is_letter(&a, &b) && old == new) => {
            (old, new)
        }
        _ => (old, new),
    }
}

/// Whether two prefixes are those of git's other comparisons: of commit, index, object and worktree.
fn is_letter(a: &str, b: &str) -> bool {
    a != b && ["c", "i", "o", "w"].contains(&a) && ["c", "i", "o", "w"].contains(&b)
}

/// A path in quotes, as git writes one with bytes that are no ASCII, and what stands behind it.
fn quoted(text: &str) -> Option<(String, &str)> {
    let mut bytes = Vec::new();
    let mut rest = text.strip_prefix('"')?;
    loop {
        let at = rest.find(['"', '\\'])?;
        bytes.extend_from_slice(&rest.as_bytes()[..at]);
        if rest[at..].starts_with('"') {
            return Some((String::from_utf8(bytes).ok()?, &rest[at + 1..]));
        }
        let escape = rest[at + 1..].chars().next()?;
        rest = &rest[at + 1 + escape.len_utf8()..];
        bytes.push(match escape {
            'a' => 7,
            'b' => 8,
            'f' => 12,
            'n' => b'\n',
            'r' => b'\r',
            't' => b'\t',
            'v' => 11,
            '"' | '\\' => escape as u8,
            '0'..='3' => {
                let digits = rest.get(..2)?;
                rest = &rest[2..];
                u8::from_str_radix(&format!("{escape}{digits}"), 8).ok()?
            }
            _ => return None,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_lose_their_time_stamps_and_quotes() {
        for (text, path) in [
            ("a/x.rs", Some("a/x.rs")),
            ("a/my file.rs\t2024-01-01 00:00:00.000000000 +0000", Some("a/my file.rs")),
            (r#""a/f\303\251 \"x\".txt""#, Some("a/fé \"x\".txt")),
            (r#""a/f\30"#, None),
            ("", None),
        ] {
            assert_eq!(header_path(text).as_deref(), path, "{text}");
        }
    }

    #[test]
    fn prefixes_go_where_they_are_prefixes() {
        for (old, new, stripped) in [
            ("a/x", "b/x", ("x", "x")),
            ("a/x", "b/y", ("x", "y")),
            ("a/x", "/dev/null", ("x", "/dev/null")),
            ("/dev/null", "b/x", ("/dev/null", "x")),
            ("x", "b/x", ("x", "x")),
            ("i/x", "w/x", ("x", "x")),
            ("a/x", "a/x", ("a/x", "a/x")),
            ("src/x", "src/x", ("src/x", "src/x")),
        ] {
            let (old, new) = without_prefixes(old.to_owned(), new.to_owned());
            assert_eq!((old.as_str(), new.as_str()), stripped);
        }
    }

    #[test]
    fn paths_behind_diff_git_are_told_apart_by_their_sameness() {
        let read = git_paths;
        let pair = |old: &str, new: &str| Some((old.to_owned(), new.to_owned()));
        assert_eq!(read("a/x y b/x y"), pair("a/x y", "b/x y"));
        assert_eq!(read(r#""a/\303\251" "b/\303\251""#), pair("a/é", "b/é"));
        assert_eq!(read("a/x b/y"), None);
    }
}

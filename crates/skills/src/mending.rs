//! Frontmatter that is no YAML as its author meant it: plain values with a colon in them, and JSON in a line.

/// The file with each plain value of a key at the left edge in quotes, where it has a colon or is JSON; none where
/// there is nothing to put in quotes.
pub(crate) fn mended(bytes: &[u8]) -> Option<Vec<u8>> {
    let text = std::str::from_utf8(bytes).ok()?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut lines = text.lines().peekable();
    let mut out = vec![lines.next()?.to_owned()];
    let mut changed = false;
    while let Some(line) = lines.next() {
        if line.trim_end() == "---" {
            out.push(line.to_owned());
            break;
        }
        let Some((key, value)) = plain(line) else {
            out.push(line.to_owned());
            continue;
        };
        let mut value = value.to_owned();
        while let Some(more) = lines.next_if(|next| next.starts_with([' ', '\t']) && !next.trim().is_empty())
        {
            value.push(' ');
            value.push_str(more.trim());
        }
        out.push(format!("{key}: '{}'", value.replace('\'', "''")));
        changed = true;
    }
    out.extend(lines.map(str::to_owned));
    let end = if text.ends_with('\n') { "\n" } else { "" };
    changed.then(|| (out.join("\n") + end).into_bytes())
}

/// Key and value of a line whose value is put in quotes.
fn plain(line: &str) -> Option<(&str, &str)> {
    let (key, value) = line.split_once(':')?;
    let is_key = !key.is_empty() && key.chars().all(|c| c.is_alphanumeric() || matches!(c, '-' | '_'));
    let value = value.trim();
    let is_plain = !value.starts_with(['\'', '"', '|', '>', '{', '[', '&', '*', '!', '#', '%', '@', '`']);
    let has_colon = value.contains(": ") || value.ends_with(':');
    let is_json = || serde_json::from_str::<serde_json::Map<String, serde_json::Value>>(value).is_ok();
    (is_key && ((is_plain && has_colon) || is_json())).then_some((key, value))
}

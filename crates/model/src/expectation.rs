//! Whether a request holds what a script expects, and if not, where it departs.

/// The difference, or `None` when `sent` holds `expected`.
///
/// Names the longest beginning of `expected` that was sent and what followed it there.
pub(crate) fn difference(expected: &str, sent: &str) -> Option<String> {
    if sent.contains(expected) {
        return None;
    }
    let (mut found, mut place) = (0, None);
    let ends: Vec<usize> = expected.char_indices().map(|(at, c)| at + c.len_utf8()).collect();
    // If a beginning occurs, every shorter one does: search for the border.
    let border = ends.partition_point(|&end| sent.contains(&expected[..end]));
    if let Some(&end) = border.checked_sub(1).and_then(|last| ends.get(last)) {
        (found, place) = (end, sent.find(&expected[..end]));
    }
    let wanted = shortened(&expected[found..]);
    let Some(place) = place else {
        return Some(format!("`{wanted}` is not in the {} characters sent", sent.chars().count()));
    };
    let instead = shortened(&sent[place + found..]);
    let instead = if instead.is_empty() { "the end".to_owned() } else { format!("`{instead}`") };
    let common = shortened_end(&expected[..found]);
    Some(format!("after `{common}` comes {instead}, not `{wanted}`"))
}

fn shortened(text: &str) -> String {
    match text.char_indices().nth(60) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

fn shortened_end(text: &str) -> String {
    match text.char_indices().rev().nth(59) {
        Some((start, _)) if start > 0 => format!("…{}", &text[start..]),
        _ => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_there_has_no_difference() {
        assert_eq!(difference("a grey cat", "I saw a grey cat."), None);
        assert_eq!(difference("", "anything"), None);
    }

    #[test]
    fn the_difference_names_where_the_text_departs() {
        assert_eq!(
            difference("a grey cat", "I saw a grey dog").as_deref(),
            Some("after `a grey ` comes `dog`, not `cat`")
        );
        assert_eq!(
            difference("grey cat", "a grey").as_deref(),
            Some("after `grey` comes the end, not ` cat`")
        );
        assert_eq!(difference("xyz", "abc").as_deref(), Some("`xyz` is not in the 3 characters sent"));
    }
}

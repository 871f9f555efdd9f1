//! Titles made of what was said.

/// Characters of a title, without the mark of what is left out.
const MOST: usize = 60;

/// The title of a tree that begins with a text: its first line, cut at a word.
pub fn title(said: &str) -> String {
    let line = said.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    let line = crate::terminal::one_line(line);
    if line.chars().count() <= MOST {
        return line.into_owned();
    }
    let cut: String = line.chars().take(MOST).collect();
    let words = cut.rsplit_once(char::is_whitespace).map_or(cut.as_str(), |(words, _)| words);
    format!("{words} …")
}

#[cfg(test)]
mod tests {
    use super::title;

    #[test]
    fn a_title_is_the_first_line_cut_at_a_word() {
        assert_eq!(title("\n  What is a loom?\nAnd why?"), "What is a loom?");
        let long = title(&"word ".repeat(40));
        assert!(long.ends_with("word …") && long.chars().count() <= 62, "{long}");
    }
}

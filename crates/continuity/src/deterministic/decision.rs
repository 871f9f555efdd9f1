//! Sentences that decide something, where nobody noted it: English, German and Chinese, by their commonest words.

/// Words of a sentence that decides something or says why something is so; a stretch of whole words.
const WORDS: [&str; 58] = [
    "we use",
    "we will use",
    "we'll use",
    "we do not use",
    "we don't use",
    "we keep",
    "we go with",
    "we'll go with",
    "we stay with",
    "we stick with",
    "we switch to",
    "we decided",
    "i decided",
    "we agreed",
    "let's use",
    "let's keep",
    "let's go with",
    "from now on",
    "from here on",
    "works because",
    "fails because",
    "broke because",
    "is because",
    "was because",
    "no longer",
    "must be",
    "must not",
    "has to be",
    "always use",
    "never use",
    "is out of scope",
    "the decision is",
    "the rule is",
    "i prefer",
    "it turns out",
    "turned out",
    "wir nehmen",
    "wir nutzen",
    "wir benutzen",
    "wir verwenden",
    "wir bleiben bei",
    "wir setzen auf",
    "wir lassen",
    "wir behalten",
    "nehmen wir",
    "nutzen wir",
    "verwenden wir",
    "ab jetzt",
    "ab sofort",
    "von jetzt an",
    "von nun an",
    "künftig",
    "entschieden",
    "beschlossen",
    "nicht mehr",
    "weil",
    "darf nicht",
    "muss immer",
];

/// Words of a decision in Chinese, which has no spaces between words.
const CHINESE: [&str; 17] = [
    "我们用",
    "我们使用",
    "我们采用",
    "我们改用",
    "我们继续用",
    "我们保留",
    "我们决定",
    "决定了",
    "从现在起",
    "从现在开始",
    "今后",
    "以后都",
    "不再",
    "必须",
    "是因为",
    "因为",
    "统一用",
];

/// Whether a sentence says what is to be so, or why something is. A question does not.
pub(super) fn decides(sentence: &str) -> bool {
    let is_question = sentence
        .trim_end_matches(|c: char| !matches!(c, '.' | '!' | '?' | '？' | '。'))
        .ends_with(['?', '？']);
    if is_question {
        return false;
    }
    let words = sentence.split(|c: char| !c.is_alphanumeric() && !matches!(c, '\'' | '’'));
    let words: Vec<String> =
        words.filter(|word| !word.is_empty()).map(|word| word.to_lowercase().replace('’', "'")).collect();
    let spaced = format!(" {} ", words.join(" "));
    WORDS.iter().any(|phrase| spaced.contains(&format!(" {phrase} ")))
        || CHINESE.iter().any(|phrase| sentence.contains(phrase))
}

#[cfg(test)]
mod tests {
    use super::decides;

    #[test]
    fn what_decides_is_told_from_what_asks_or_tells() {
        for decision in [
            "We use rusqlite.",
            "OK, from now on tests run in CI!",
            "Streaming works because rows are read by line.",
            "“We’ll use tabs.”",
            "Ab jetzt nehmen wir Tabs.",
            "Das geht, weil die Zeilen einzeln gelesen werden.",
            "我们用 SQLite。",
            "从现在起测试在 CI 里跑。",
        ] {
            assert!(decides(decision), "{decision}");
        }
        for other in [
            "Shall we use rusqlite?",
            "Please fix the parser.",
            "Used rows are read.",
            "Weiler und Orte.",
            "我们用哪个？",
            "",
        ] {
            assert!(!decides(other), "{other}");
        }
    }
}

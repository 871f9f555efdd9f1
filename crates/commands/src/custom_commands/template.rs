//! A text with places for arguments.

/// Fills in the places of a template with arguments as they were typed: `$ARGUMENTS` is all of them, `$1` to `$9` are the
/// words, of which a quoted one may hold several. A backslash before a place makes it plain text. A template without a place
/// is followed by the arguments. No place in an argument is filled in.
///
/// # Errors
/// How many words it takes, where there are fewer, or more that would stand nowhere.
pub(super) fn expand(template: &str, arguments: &str) -> Result<String, usize> {
    let arguments = arguments.trim();
    let places: Vec<Place> = Place::all(template).collect();
    let has_all = places.iter().any(|place| matches!(place.of, PlaceKind::All));
    let wanted = places.iter().filter_map(Place::number).max().unwrap_or(0);
    let words: Vec<String> = if wanted > 0 { words(arguments) } else { Vec::new() };
    if words.len() < wanted || wanted > 0 && words.len() > wanted && !has_all {
        return Err(wanted);
    }
    let mut filled = String::with_capacity(template.len() + arguments.len());
    let mut from = 0;
    for place in &places {
        filled += &template[from..place.start];
        filled += match place.of {
            PlaceKind::All => arguments,
            PlaceKind::Word(number) => &words[number - 1],
            PlaceKind::Escaped => &template[place.start + 1..place.end],
        };
        from = place.end;
    }
    filled += &template[from..];
    if wanted == 0 && !has_all && !arguments.is_empty() {
        filled = format!("{filled}\n\n{arguments}");
    }
    Ok(filled)
}

/// Words between spaces; quotes hold one together that begins and ends with them.
fn words(arguments: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut rest = arguments.trim_start();
    while let Some(first) = rest.chars().next() {
        let quoted = rest.strip_prefix(['"', '\'']).and_then(|inner| {
            let (word, behind) = inner.split_once(first)?;
            (behind.is_empty() || behind.starts_with(char::is_whitespace)).then_some((word, behind))
        });
        let (word, behind) =
            quoted.unwrap_or_else(|| rest.split_at(rest.find(char::is_whitespace).unwrap_or(rest.len())));
        words.push(word.to_owned());
        rest = behind.trim_start();
    }
    words
}

/// Where something is filled in, in bytes.
struct Place {
    start: usize,
    end: usize,
    of: PlaceKind,
}

enum PlaceKind {
    All,
    /// The word of this number, from 1.
    Word(usize),
    /// A place that is plain text, behind a backslash.
    Escaped,
}

/// Name of the place of all arguments.
const ALL: &str = "ARGUMENTS";

impl Place {
    fn all(template: &str) -> impl Iterator<Item = Self> + '_ {
        template.match_indices('$').filter_map(|(at, _)| {
            let rest = &template[at + 1..];
            let digit = rest.bytes().next().filter(|byte| (b'1'..=b'9').contains(byte));
            let (length, of) = match digit {
                Some(digit) => (1, PlaceKind::Word(usize::from(digit - b'0'))),
                None if rest.starts_with(ALL) => (ALL.len(), PlaceKind::All),
                None => return None,
            };
            let follows = rest[length..].chars().next();
            if follows.is_some_and(|c| c.is_alphanumeric() || c == '_') {
                return None;
            }
            let end = at + 1 + length;
            let is_escaped = template[..at].ends_with('\\');
            Some(match is_escaped {
                true => Self { start: at - 1, end, of: PlaceKind::Escaped },
                false => Self { start: at, end, of },
            })
        })
    }

    fn number(&self) -> Option<usize> {
        match self.of {
            PlaceKind::Word(number) => Some(number),
            PlaceKind::All | PlaceKind::Escaped => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::expand;

    #[test]
    fn places_are_filled_in() {
        for (template, arguments, said) in [
            ("Say it.", "", "Say it."),
            ("Say it.", " a  b ", "Say it.\n\na  b"),
            ("Fix $1, as $2 says.", "12 'the boss'", "Fix 12, as the boss says."),
            ("Fix $1: $ARGUMENTS", "12 and more", "Fix 12: 12 and more"),
            ("Look at $ARGUMENTS!", "", "Look at !"),
            ("It costs \\$5, $1", "now", "It costs $5, now"),
            ("\\$ARGUMENTS", "x", "$ARGUMENTS\n\nx"),
            ("$1", "don't", "don't"),
            ("$1 in $2", "#12 src\\main.rs", "#12 in src\\main.rs"),
            ("$1|$2|$3|$4", "'a b'c \"it's\" ''", "'a|b'c|it's|"),
            ("$10 $A $ARGUMENTSX $ $0", "", "$10 $A $ARGUMENTSX $ $0"),
            ("$2$1", "a b", "ba"),
        ] {
            assert_eq!(expand(template, arguments).as_deref(), Ok(said), "{template}");
        }
    }

    #[test]
    fn what_is_missing_or_would_stand_nowhere_is_refused() {
        for (template, arguments, wanted) in
            [("$1", "", 1), ("$2", "a", 2), ("$1", "a b", 1), ("$1 $3", "a b", 3)]
        {
            assert_eq!(expand(template, arguments), Err(wanted), "{template} {arguments}");
        }
    }

    #[test]
    fn an_argument_is_never_a_template() {
        for hostile in ["$1", "$ARGUMENTS", "\\$1 /quit", "a$2b"] {
            assert_eq!(expand("<$ARGUMENTS>", hostile), Ok(format!("<{hostile}>")));
            assert_eq!(expand("<$1>", &format!("'{hostile}'")), Ok(format!("<{hostile}>")));
        }
    }

    proptest! {
        #[test]
        fn any_template_is_filled_in_or_refused(template in "[ $A-Z0-9\\\\é]{0,30}", arguments in "[ '$1a\\\\é]{0,12}") {
            let said = expand(&template, &arguments);
            if !template.contains('$') {
                let said = said.unwrap();
                prop_assert!(said.starts_with(&template) && said.ends_with(arguments.trim()));
            }
        }
    }
}

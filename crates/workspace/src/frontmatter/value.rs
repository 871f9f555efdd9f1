//! Values of a frontmatter block, with typed accessors for cards and skills.

use super::Irregularity;

#[derive(Clone, Debug, PartialEq)]
pub enum YamlValue {
    /// One word, number, truth value or text.
    Scalar(Scalar),
    List(Vec<YamlValue>),
    Map(Map),
}

/// A scalar: what it was written as, and what YAML 1.2 takes it for.
#[derive(Clone, Debug, PartialEq)]
pub struct Scalar {
    source: String,
    kind: ScalarKind,
}

/// Type of a scalar. Quoted scalars are always text.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ScalarKind {
    /// Nothing, `~` or `null`.
    Null,
    /// `true` or `false`, in these words only.
    Bool(bool),
    Integer(i64),
    /// A finite number with a fraction or exponent.
    Float(f64),
    Text,
}

/// Error of a typed accessor: a field of the wrong kind or range.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FieldError {
    /// The wrong kind of value.
    #[error("`{key}`: {wanted} is wanted")]
    Kind {
        /// The key as asked for.
        key: String,
        wanted: &'static str,
    },
    /// A number out of its range.
    #[error("`{key}`: a number from {least} to {most} is wanted")]
    Range {
        /// The key as asked for.
        key: String,
        least: String,
        most: String,
    },
    /// A list that is too long.
    #[error("`{key}`: at most {most} entries are wanted")]
    Count {
        /// The key as asked for.
        key: String,
        /// Largest allowed number of entries.
        most: usize,
    },
    /// An entry that is empty or white space.
    #[error("`{key}`: an entry is empty")]
    Empty {
        /// The key as asked for.
        key: String,
    },
    /// `routerTags` beside `router_tags`.
    #[error("`{key}` is given in two spellings")]
    TwoSpellings {
        /// The key as asked for.
        key: String,
    },
}

impl Scalar {
    pub(super) fn new(source: String, plain: bool) -> (Self, Option<Irregularity>) {
        if !plain {
            return (Self { source, kind: ScalarKind::Text }, None);
        }
        let kind = resolve(&source);
        let odd = kind == ScalarKind::Text && is_odd(&source);
        let oddity = odd.then(|| Irregularity::ReadAsText(source.clone()));
        (Self { source, kind }, oddity)
    }

    /// The text as written, without quotes: `1.10` stays `1.10`.
    pub fn source(&self) -> &str {
        &self.source
    }

    pub fn kind(&self) -> ScalarKind {
        self.kind
    }

    pub fn is_null(&self) -> bool {
        self.kind == ScalarKind::Null
    }
}

/// A mapping in the order it was written, keys as they were written.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Map {
    entries: Vec<(String, YamlValue)>,
}

impl Map {
    pub(super) fn push(&mut self, key: String, value: YamlValue) {
        self.entries.push((key, value));
    }

    /// Keys and values in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &YamlValue)> {
        self.entries.iter().map(|(key, value)| (key.as_str(), value))
    }

    pub fn len(&self) -> usize {
        self.entries.len()
    }

    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The value of a key, in either spelling: `router_tags` also finds `routerTags`.
    ///
    /// # Errors
    /// [`FieldError::TwoSpellings`].
    pub fn get(&self, key: &str) -> Result<Option<&YamlValue>, FieldError> {
        let folded = fold(key);
        let mut found = self.entries.iter().filter(|(name, _)| fold(name) == folded);
        match (found.next(), found.next()) {
            (first, None) => Ok(first.map(|(_, value)| value)),
            (_, Some(_)) => Err(FieldError::TwoSpellings { key: key.to_owned() }),
        }
    }

    /// The keys that are none of `known`, in either spelling: for a warning; they stay in the map.
    pub fn unknown<'a>(&'a self, known: &'a [&str]) -> impl Iterator<Item = &'a str> {
        self.entries
            .iter()
            .map(|(key, _)| key.as_str())
            .filter(|key| !known.iter().any(|known| fold(known) == fold(key)))
    }

    /// A text: any scalar as it was written. Nothing and `null` are `None`.
    ///
    /// # Errors
    /// If it is a list or mapping.
    pub fn text(&self, key: &str) -> Result<Option<&str>, FieldError> {
        Ok(self.scalar(key, "a text")?.map(Scalar::source))
    }

    /// A truth value: `true` or `false`, nothing else.
    ///
    /// # Errors
    /// For `yes`, `on`, `"true"` and everything else.
    pub fn bool(&self, key: &str) -> Result<Option<bool>, FieldError> {
        const WANTED: &str = "true or false, without quotes,";
        match self.scalar(key, WANTED)?.map(Scalar::kind) {
            None => Ok(None),
            Some(ScalarKind::Bool(value)) => Ok(Some(value)),
            Some(_) => Err(kind(key, WANTED)),
        }
    }

    /// A whole number in a range.
    ///
    /// # Errors
    /// For fractions, quoted numbers, and numbers out of range.
    pub fn integer(&self, key: &str, least: i64, most: i64) -> Result<Option<i64>, FieldError> {
        const WANTED: &str = "a whole number, without quotes,";
        match self.scalar(key, WANTED)?.map(Scalar::kind) {
            None => Ok(None),
            Some(ScalarKind::Integer(value)) if (least..=most).contains(&value) => Ok(Some(value)),
            Some(ScalarKind::Integer(_)) => Err(range(key, &least, &most)),
            Some(_) => Err(kind(key, WANTED)),
        }
    }

    /// A finite number in a range.
    ///
    /// # Errors
    /// For `.nan`, `.inf`, `1e400`, quoted numbers, and numbers out of range.
    pub fn number(&self, key: &str, least: f64, most: f64) -> Result<Option<f64>, FieldError> {
        const WANTED: &str = "a number, without quotes,";
        let value = match self.scalar(key, WANTED)?.map(Scalar::kind) {
            None => return Ok(None),
            #[allow(clippy::cast_precision_loss, reason = "ranges of settings lie far below 2^53")]
            Some(ScalarKind::Integer(value)) => value as f64,
            Some(ScalarKind::Float(value)) => value,
            Some(_) => return Err(kind(key, WANTED)),
        };
        if (least..=most).contains(&value) { Ok(Some(value)) } else { Err(range(key, &least, &most)) }
    }

    /// A list of texts; one text alone is a list of one, nothing and `null` are none.
    ///
    /// # Errors
    /// For entries that are empty, `null`, lists or mappings, and more than `most` entries.
    pub fn texts(&self, key: &str, most: usize) -> Result<Vec<&str>, FieldError> {
        let entries = match self.get(key)? {
            None => return Ok(Vec::new()),
            Some(YamlValue::Scalar(scalar)) if scalar.is_null() => return Ok(Vec::new()),
            Some(YamlValue::List(entries)) => entries.as_slice(),
            Some(single) => std::slice::from_ref(single),
        };
        if entries.len() > most {
            return Err(FieldError::Count { key: key.to_owned(), most });
        }
        entries
            .iter()
            .map(|entry| match entry {
                YamlValue::Scalar(scalar) if scalar.source.trim().is_empty() || scalar.is_null() => {
                    Err(FieldError::Empty { key: key.to_owned() })
                }
                YamlValue::Scalar(scalar) => Ok(scalar.source()),
                YamlValue::List(_) | YamlValue::Map(_) => Err(kind(key, "a list of texts")),
            })
            .collect()
    }

    /// A mapping; nothing and `null` are `None`.
    ///
    /// # Errors
    /// For any other value.
    pub fn map(&self, key: &str) -> Result<Option<&Map>, FieldError> {
        match self.get(key)? {
            None => Ok(None),
            Some(YamlValue::Scalar(scalar)) if scalar.is_null() => Ok(None),
            Some(YamlValue::Map(map)) => Ok(Some(map)),
            Some(_) => Err(kind(key, "a mapping")),
        }
    }

    fn scalar(&self, key: &str, wanted: &'static str) -> Result<Option<&Scalar>, FieldError> {
        match self.get(key)? {
            None => Ok(None),
            Some(YamlValue::Scalar(scalar)) if scalar.is_null() => Ok(None),
            Some(YamlValue::Scalar(scalar)) => Ok(Some(scalar)),
            Some(_) => Err(kind(key, wanted)),
        }
    }
}

fn kind(key: &str, wanted: &'static str) -> FieldError {
    FieldError::Kind { key: key.to_owned(), wanted }
}

fn range(key: &str, least: &impl ToString, most: &impl ToString) -> FieldError {
    FieldError::Range { key: key.to_owned(), least: least.to_string(), most: most.to_string() }
}

/// `routerTags`, `router_tags` and `router-tags` are one key.
fn fold(key: &str) -> String {
    let mut folded = String::with_capacity(key.len());
    for c in key.chars() {
        match c {
            '-' => folded.push('_'),
            c if c.is_ascii_uppercase() => {
                folded.push('_');
                folded.push(c.to_ascii_lowercase());
            }
            c => folded.push(c),
        }
    }
    folded
}

/// YAML 1.2's core schema for an unquoted scalar, less what is not finite or does not fit.
fn resolve(source: &str) -> ScalarKind {
    match source {
        "" | "~" | "null" | "Null" | "NULL" => return ScalarKind::Null,
        "true" | "True" | "TRUE" => return ScalarKind::Bool(true),
        "false" | "False" | "FALSE" => return ScalarKind::Bool(false),
        _ => {}
    }
    let digits = source.strip_prefix(['+', '-']).unwrap_or(source);
    let whole = digits.split(['.', 'e', 'E']).next().unwrap_or("");
    let looks_numeric = digits.starts_with(|c: char| c.is_ascii_digit() || c == '.')
        && digits.contains(|c: char| c.is_ascii_digit())
        && digits.chars().all(|c| c.is_ascii_digit() || matches!(c, '.' | 'e' | 'E' | '+' | '-'))
        // Octal to some readers, decimal to others: text to us.
        && !(whole.len() > 1 && whole.starts_with('0'));
    if !looks_numeric {
        return ScalarKind::Text;
    }
    if digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return source.parse().map_or(ScalarKind::Text, ScalarKind::Integer);
    }
    match source.parse::<f64>() {
        Ok(value) if value.is_finite() => ScalarKind::Float(value),
        _ => ScalarKind::Text,
    }
}

/// Whether other readers would not take this for text.
fn is_odd(source: &str) -> bool {
    let lower = source.to_ascii_lowercase();
    let unsigned = lower.strip_prefix(['+', '-']).unwrap_or(&lower);
    matches!(lower.as_str(), "yes" | "no" | "on" | "off" | "y" | "n")
        || matches!(unsigned, ".nan" | ".inf")
        || (unsigned.starts_with(|c: char| c.is_ascii_digit())
            && unsigned
                .chars()
                .all(|c| c.is_ascii_hexdigit() || matches!(c, '.' | '_' | ':' | 'x' | 'o' | '+' | '-')))
}

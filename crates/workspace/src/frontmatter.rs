//! The head of a card or skill: YAML between two `---` lines, read as data and as nothing else.
//!
//! Such files come from strangers, and YAML is a language: tags make objects, aliases grow three
//! hundred bytes into gigabytes, merge keys hide one value behind another, `no` is a boolean to
//! some readers and a country to others. Here the parser of `serde-saphyr` delivers events under
//! fixed limits, and only plain data passes: mappings, lists, scalars. A scalar keeps the text it
//! was written as, so `version: 1.10` stays `1.10` and the keyword `no` stays a word.
//!
//! Every refusal is named and has a line (spec: capabilities §2, cases: attacks §2). Whether an
//! unknown key or an odd value is an error is the caller's rule; [`Map`] has the typed questions.

mod fence;
mod value;
mod yaml;

#[cfg(test)]
mod tests;

pub use value::{FieldError, Map, Scalar, ScalarKind, YamlValue};

use fence::Split;

/// Longest block in bytes, without its fences.
pub const MAX_BYTES: usize = 16 * 1024;

/// Deepest nesting of mappings and lists, the outermost included.
pub const MAX_DEPTH: usize = 8;

/// Most values in one block.
pub const MAX_VALUES: usize = 4096;

/// Longest key in bytes.
pub const MAX_KEY: usize = 256;

/// A file with its frontmatter taken off.
#[derive(Clone, Debug, PartialEq)]
pub struct Page {
    /// The block; `None` if the file has none.
    pub fields: Option<Map>,
    /// The text after it, with `\r\n` as `\n`.
    pub body: String,
    /// Irregularities: values that other readers take differently.
    pub warnings: Vec<Warning>,
}

/// Something the author should look at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    /// Line in the file, from 1.
    pub line: usize,
    pub what: Irregularity,
}

/// A thing that readers of YAML disagree about.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Irregularity {
    /// A plain scalar that older or other readers take for a boolean, a number or a time.
    #[error("`{0}` is read as text: put it in quotes")]
    ReadAsText(String),
    /// White space after a fence.
    #[error("white space after `---`")]
    FenceSpace,
    /// The body begins with what looks like a second block.
    #[error("the text begins with a second `---` block, which is not read")]
    SecondBlock,
}

/// Refused frontmatter: the problem and its line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {why}")]
pub struct FrontmatterError {
    /// Line in the file, from 1.
    pub line: usize,
    pub why: FrontmatterProblem,
}

/// The reasons for refusing frontmatter.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FrontmatterProblem {
    /// UTF-16 or UTF-32, with or without a mark.
    #[error("the file is UTF-16 or UTF-32: save it as UTF-8")]
    WideEncoding,
    /// Bytes that are no UTF-8.
    #[error("the file is not valid UTF-8")]
    NotUtf8,
    /// A carriage return that is not part of `\r\n`.
    #[error("a lone carriage return: use \\n or \\r\\n")]
    LoneCarriageReturn,
    /// Blank lines before the opening fence.
    #[error("`---` must be the first line")]
    NotFirst,
    /// `---js` and the like ask some readers to run code.
    #[error("`---{0}` names a language: only plain `---` is read")]
    Engine(String),
    /// `+++`, which is TOML elsewhere, or `----`.
    #[error("`{0}` does not open a block: use `---`")]
    Fence(String),
    #[error("the block is not closed: a line `---` is missing")]
    NotClosed,
    /// More than [`MAX_BYTES`].
    #[error("the block is larger than {MAX_BYTES} bytes")]
    TooLarge,
    /// Not a mapping at the top.
    #[error("the block is not a mapping of keys to values")]
    NotAMapping,
    /// `...`, `%YAML` or a further document.
    #[error("the block holds more than one document")]
    SecondDocument,
    /// One key twice in a mapping.
    #[error("the key `{0}` is given twice")]
    DuplicateKey(String),
    /// `<<`.
    #[error("merge keys (`<<`) are not read")]
    MergeKey,
    /// `&name`.
    #[error("anchors (`&`) are not read")]
    Anchor,
    /// `*name`.
    #[error("aliases (`*`) are not read: put text that begins with `*` in quotes")]
    Alias,
    /// `!tag`.
    #[error("tags (`!`) are not read: put text that begins with `!` in quotes")]
    Tag,
    /// A list or mapping as a key.
    #[error("a key must be one word or text")]
    ComplexKey,
    /// A key over [`MAX_KEY`] bytes.
    #[error("a key is longer than {MAX_KEY} bytes")]
    LongKey,
    /// More than [`MAX_DEPTH`] levels.
    #[error("nested deeper than {MAX_DEPTH} levels")]
    TooDeep,
    /// More than [`MAX_VALUES`] values.
    #[error("more than {MAX_VALUES} values")]
    TooMany,
    #[error("not YAML: {0}")]
    Yaml(String),
}

impl FrontmatterProblem {
    fn at(self, line: usize) -> FrontmatterError {
        FrontmatterError { line, why: self }
    }
}

/// Takes a file apart.
///
/// # Errors
/// A named [`FrontmatterProblem`] with its line; never a panic, whatever the bytes.
pub fn read(file: &[u8]) -> Result<Page, FrontmatterError> {
    let Split { block, body, mut warnings } = fence::split(file)?;
    let fields = block.map(|block| yaml::parse(&block, &mut warnings)).transpose()?;
    Ok(Page { fields, body, warnings })
}

//! Metadata values of a GGUF file.
//!
//! Numbers are widened, so that `block_count` reads the same whether the file has it in 32 or 64 bits.

#[derive(Debug, Clone, PartialEq)]
pub enum MetadataValue {
    /// An unsigned number of any width.
    Unsigned(u64),
    /// A signed number of any width.
    Signed(i64),
    /// A floating-point number of either width.
    Float(f64),
    Bool(bool),
    Text(String),
    Texts(Vec<String>),
    /// A list of whole numbers or truth values.
    Integers(Vec<i64>),
    /// A list of floating-point numbers.
    Floats(Vec<f32>),
}

impl MetadataValue {
    /// The value as an unsigned number, if it is a whole number not below 0.
    pub fn unsigned(&self) -> Option<u64> {
        match self {
            Self::Unsigned(number) => Some(*number),
            Self::Signed(number) => u64::try_from(*number).ok(),
            _ => None,
        }
    }

    /// The value as a finite floating-point number.
    pub(crate) fn float(&self) -> Option<f64> {
        match self {
            Self::Float(number) => Some(*number).filter(|number| number.is_finite()),
            _ => None,
        }
    }

    /// The value as a truth value.
    pub fn bool(&self) -> Option<bool> {
        match self {
            Self::Bool(value) => Some(*value),
            _ => None,
        }
    }

    /// The value as a text.
    pub fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The value as a list of texts.
    pub fn texts(&self) -> Option<&[String]> {
        match self {
            Self::Texts(texts) => Some(texts),
            _ => None,
        }
    }

    /// The value as a list of whole numbers.
    pub(crate) fn integers(&self) -> Option<&[i64]> {
        match self {
            Self::Integers(numbers) => Some(numbers),
            _ => None,
        }
    }

    /// The value as a list of floating-point numbers.
    pub(crate) fn floats(&self) -> Option<&[f32]> {
        match self {
            Self::Floats(numbers) => Some(numbers),
            _ => None,
        }
    }
}

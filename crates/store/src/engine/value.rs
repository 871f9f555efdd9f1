//! Values bound to statements and read from rows, in the four types that every engine has.

use std::borrow::Cow;

use crate::error::StoreError;

/// A parameter of a statement.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Value<'a> {
    Null,
    Integer(i64),
    Text(Cow<'a, str>),
    Blob(Cow<'a, [u8]>),
    /// Bytes of an id or a digest, which stand in place.
    Short {
        bytes: [u8; SHORT],
        len: u8,
    },
}

/// Bytes of the longest array that is a parameter.
const SHORT: usize = 32;

macro_rules! from_integer {
    ($($type:ty),+) => {$(
        impl From<$type> for Value<'_> {
            fn from(number: $type) -> Self {
                Self::Integer(i64::from(number))
            }
        }
    )+};
}

from_integer!(i64, i32, u32, u8, bool);

impl<'a> From<&'a str> for Value<'a> {
    fn from(text: &'a str) -> Self {
        Self::Text(Cow::Borrowed(text))
    }
}

impl<'a> From<&'a String> for Value<'a> {
    fn from(text: &'a String) -> Self {
        Self::Text(Cow::Borrowed(text))
    }
}

impl From<String> for Value<'_> {
    fn from(text: String) -> Self {
        Self::Text(Cow::Owned(text))
    }
}

impl<'a> From<&'a [u8]> for Value<'a> {
    fn from(bytes: &'a [u8]) -> Self {
        Self::Blob(Cow::Borrowed(bytes))
    }
}

impl<'a> From<&'a Vec<u8>> for Value<'a> {
    fn from(bytes: &'a Vec<u8>) -> Self {
        Self::Blob(Cow::Borrowed(bytes))
    }
}

impl<'a> From<Cow<'a, [u8]>> for Value<'a> {
    fn from(bytes: Cow<'a, [u8]>) -> Self {
        Self::Blob(bytes)
    }
}

impl From<Vec<u8>> for Value<'_> {
    fn from(bytes: Vec<u8>) -> Self {
        Self::Blob(Cow::Owned(bytes))
    }
}

impl<const N: usize> From<[u8; N]> for Value<'_> {
    fn from(bytes: [u8; N]) -> Self {
        const { assert!(N <= SHORT, "bytes of more than a digest are given as a slice") };
        let mut short = [0; SHORT];
        short[..N].copy_from_slice(&bytes);
        Self::Short { bytes: short, len: N as u8 }
    }
}

impl<'a> From<&'a Value<'_>> for Value<'a> {
    fn from(value: &'a Value<'_>) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Integer(number) => Self::Integer(*number),
            Value::Text(text) => Self::Text(Cow::Borrowed(text)),
            Value::Blob(bytes) => Self::Blob(Cow::Borrowed(bytes)),
            Value::Short { bytes, len } => Self::Short { bytes: *bytes, len: *len },
        }
    }
}

impl<'a, T: Into<Value<'a>>> From<Option<T>> for Value<'a> {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}

pub(crate) const NONE: [Value<'static>; 0] = [];

/// Parameters of one statement: a tuple, an array or [`params!`](params).
pub(crate) trait Params {
    fn with<R>(self, use_them: impl FnOnce(&mut [Value<'_>]) -> R) -> R;
}

impl<'a, T: Into<Value<'a>>, const N: usize> Params for [T; N] {
    fn with<R>(self, use_them: impl FnOnce(&mut [Value<'_>]) -> R) -> R {
        use_them(&mut self.map(Into::into))
    }
}

macro_rules! tuple_params {
    ($($name:ident),+) => {
        impl<'a, $($name: Into<Value<'a>>),+> Params for ($($name,)+) {
            #[allow(non_snake_case, reason = "the names of the types serve as names of the values")]
            fn with<R>(self, use_them: impl FnOnce(&mut [Value<'_>]) -> R) -> R {
                let ($($name,)+) = self;
                use_them(&mut [$($name.into()),+])
            }
        }
    };
}

tuple_params!(A, B);
tuple_params!(A, B, C);
tuple_params!(A, B, C, D);
tuple_params!(A, B, C, D, E);
tuple_params!(A, B, C, D, E, F);
tuple_params!(A, B, C, D, E, F, G);

/// An array of [`Value`]s out of expressions of several types.
macro_rules! params {
    ($($value:expr),* $(,)?) => { [$($crate::engine::Value::from($value)),*] };
}
pub(crate) use params;

/// A column of a row, borrowed from it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum ValueRef<'r> {
    Null,
    Integer(i64),
    Text(&'r str),
    Blob(&'r [u8]),
}

/// A row of an answer.
pub(crate) enum Row<'r> {
    Sqlite(&'r rusqlite::Row<'r>),
    #[cfg(feature = "postgres")]
    Postgres(&'r tokio_postgres::Row),
}

impl Row<'_> {
    /// A column.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] when it is not of one of the four types, or no UTF-8.
    pub(crate) fn value(&self, index: usize) -> Result<ValueRef<'_>, StoreError> {
        match self {
            Self::Sqlite(row) => crate::sqlite::column(row, index),
            #[cfg(feature = "postgres")]
            Self::Postgres(row) => crate::postgres::column(row, index),
        }
    }
}

/// What a column is read as.
pub(crate) trait FromValue: Sized {
    /// The value; none when the column is of another type.
    fn from_value(value: ValueRef<'_>) -> Option<Self>;
}

impl FromValue for i64 {
    fn from_value(value: ValueRef<'_>) -> Option<Self> {
        if let ValueRef::Integer(number) = value { Some(number) } else { None }
    }
}

impl FromValue for u32 {
    fn from_value(value: ValueRef<'_>) -> Option<Self> {
        i64::from_value(value).and_then(|number| number.try_into().ok())
    }
}

impl FromValue for u8 {
    fn from_value(value: ValueRef<'_>) -> Option<Self> {
        i64::from_value(value).and_then(|number| number.try_into().ok())
    }
}

impl FromValue for bool {
    fn from_value(value: ValueRef<'_>) -> Option<Self> {
        i64::from_value(value).map(|number| number != 0)
    }
}

impl FromValue for String {
    fn from_value(value: ValueRef<'_>) -> Option<Self> {
        if let ValueRef::Text(text) = value { Some(text.to_owned()) } else { None }
    }
}

impl FromValue for Vec<u8> {
    fn from_value(value: ValueRef<'_>) -> Option<Self> {
        if let ValueRef::Blob(bytes) = value { Some(bytes.to_vec()) } else { None }
    }
}

impl<T: FromValue> FromValue for Option<T> {
    fn from_value(value: ValueRef<'_>) -> Option<Self> {
        match value {
            ValueRef::Null => Some(None),
            value => T::from_value(value).map(Some),
        }
    }
}

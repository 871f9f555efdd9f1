//! Parameters and columns in PostgreSQL's binary form.

use std::error::Error;

use tokio_postgres::Row;
use tokio_postgres::types::{FromSql, IsNull, ToSql, Type, to_sql_checked};

use crate::engine::{Value, ValueRef};
use crate::error::StoreError;

/// The type a parameter is sent as; what has no value takes the type of its place.
pub(super) const fn type_of(value: &Value<'_>) -> Type {
    match value {
        Value::Null => Type::UNKNOWN,
        Value::Integer(_) => Type::INT8,
        Value::Text(_) => Type::TEXT,
        Value::Blob(_) | Value::Short { .. } => Type::BYTEA,
    }
}

/// Refuses what PostgreSQL cannot keep.
pub(super) fn check(params: &[Value<'_>]) -> Result<(), StoreError> {
    let bad = params.iter().any(|value| matches!(value, Value::Text(text) if text.contains('\0')));
    if bad {
        return Err(StoreError::Malformed("PostgreSQL keeps no text with a NUL character".to_owned()));
    }
    Ok(())
}

impl ToSql for Value<'_> {
    fn to_sql(
        &self,
        ty: &Type,
        out: &mut tokio_postgres::types::private::BytesMut,
    ) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        match self {
            Self::Null => Ok(IsNull::Yes),
            Self::Integer(number) => number.to_sql(ty, out),
            Self::Text(text) => text.as_ref().to_sql(ty, out),
            Self::Blob(bytes) => bytes.as_ref().to_sql(ty, out),
            Self::Short { bytes, len } => (&bytes[..usize::from(*len)]).to_sql(ty, out),
        }
    }

    /// Types are those of [`type_of`]; one without a value may be of any.
    fn accepts(_ty: &Type) -> bool {
        true
    }

    to_sql_checked!();
}

/// A column as it came.
struct Column<'r>(ValueRef<'r>);

impl<'r> FromSql<'r> for Column<'r> {
    fn from_sql(ty: &Type, raw: &'r [u8]) -> Result<Self, Box<dyn Error + Sync + Send>> {
        Ok(Self(match *ty {
            Type::INT8 => ValueRef::Integer(i64::from_sql(ty, raw)?),
            Type::INT4 => ValueRef::Integer(i32::from_sql(ty, raw)?.into()),
            Type::BYTEA => ValueRef::Blob(raw),
            _ => ValueRef::Text(str::from_utf8(raw)?),
        }))
    }

    fn from_sql_null(_: &Type) -> Result<Self, Box<dyn Error + Sync + Send>> {
        Ok(Self(ValueRef::Null))
    }

    fn accepts(ty: &Type) -> bool {
        [Type::INT8, Type::INT4, Type::BYTEA, Type::TEXT].contains(ty)
    }
}

/// A column of a row of PostgreSQL.
pub(crate) fn column(row: &Row, index: usize) -> Result<ValueRef<'_>, StoreError> {
    let column: Result<Column<'_>, _> = row.try_get(index);
    column.map(|column| column.0).map_err(|error| StoreError::Damaged(format!("column {index}: {error}")))
}

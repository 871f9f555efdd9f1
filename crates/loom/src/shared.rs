//! What several hold, as JSON of itself: for `#[serde(with = "…")]`.

use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// # Errors
/// As the value's own.
pub fn serialize<T: Serialize + ?Sized, S: Serializer>(value: &Arc<T>, to: S) -> Result<S::Ok, S::Error> {
    value.as_ref().serialize(to)
}

/// # Errors
/// As the value's own.
pub fn deserialize<'de, T: ?Sized, D: Deserializer<'de>>(from: D) -> Result<Arc<T>, D::Error>
where
    Box<T>: Deserialize<'de>,
{
    Box::<T>::deserialize(from).map(Arc::from)
}

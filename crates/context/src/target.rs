//! Who a request is for: what it may hold depends on it.

use model::{DialectName, ModelInfo};

/// The model a request is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// Who serves it.
    pub provider: String,
    /// The dialect it is asked in.
    pub dialect: DialectName,
    /// Its name.
    pub model: String,
    /// Whether it calls tools.
    pub tools: bool,
    /// Whether it takes pictures.
    pub pictures: bool,
}

impl Target {
    /// As a model says of itself. Pictures are kept from it until it says that it takes them.
    pub fn of(model: &ModelInfo) -> Self {
        Self {
            provider: model.provider.clone(),
            dialect: model.dialect,
            model: model.name.clone(),
            tools: model.tools,
            pictures: false,
        }
    }
}

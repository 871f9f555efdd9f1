//! Consent to a download (spec: agent §2, cli *First run*).

use crate::error::WeightsError;
use crate::table::Weights;

/// Consent to a download. Nothing is fetched unasked, so there is no default.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Consent {
    /// The model was named: `--model NAME`.
    Named,
    /// `model pull NAME`. Alone also fetches anew what is damaged.
    Pull,
    /// `model.auto_pull = true`.
    AutoPull,
    /// The owner was asked at a terminal.
    Answered {
        /// Whether the answer was yes.
        yes: bool,
    },
    Missing,
}

impl Consent {
    /// Reason of the download, for the owner.
    pub fn reason(self) -> &'static str {
        match self {
            Self::Named => "the model was named",
            Self::Pull => "asked for by `model pull`",
            Self::AutoPull => "model.auto_pull = true",
            Self::Answered { .. } => "the answer was yes",
            Self::Missing => "there was no consent",
        }
    }

    /// Fails unless the download was asked for.
    pub(crate) fn permit(self, weights: &Weights) -> Result<(), WeightsError> {
        match self {
            Self::Named | Self::Pull | Self::AutoPull | Self::Answered { yes: true } => Ok(()),
            Self::Answered { yes: false } | Self::Missing => {
                Err(WeightsError::NotAsked { name: weights.name.to_owned(), bytes: weights.file.bytes })
            }
        }
    }
}

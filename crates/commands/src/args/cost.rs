//! Arguments of `cost`.

use clap::{Args, ValueEnum};
use serde::{Deserialize, Serialize};

/// `cost`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Args, Serialize, Deserialize)]
pub struct Cost {
    /// The period. Days and months are in UTC.
    #[arg(default_value = "month")]
    #[serde(default)]
    pub period: Period,
    /// What each row adds up.
    #[arg(long, default_value = "model")]
    #[serde(default)]
    pub by: CostGrouping,
}

/// Since when.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Period {
    /// Since midnight.
    Today,
    /// Since the first of the month.
    #[default]
    Month,
    /// Since the home was made.
    All,
}

/// What the rows are about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CostGrouping {
    /// Each model.
    #[default]
    Model,
    /// Each purpose of a request.
    Purpose,
    /// Each conversation or document.
    Session,
}

impl Cost {
    /// Arguments of `/cost`: `[today|month|all] [by model|purpose|session]`.
    pub(crate) fn parse(words: &str) -> Option<Self> {
        let mut cost = Self::default();
        let mut words = words.split_whitespace();
        while let Some(word) = words.next() {
            match word {
                "by" => cost.by = CostGrouping::from_str(words.next()?, false).ok()?,
                period => cost.period = Period::from_str(period, false).ok()?,
            }
        }
        Some(cost)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_words_may_be_left_out() {
        let read = |words| Cost::parse(words).map(|cost| (cost.period, cost.by));
        assert_eq!(read(""), Some((Period::Month, CostGrouping::Model)));
        assert_eq!(read("today by session"), Some((Period::Today, CostGrouping::Session)));
        assert_eq!(read("by purpose"), Some((Period::Month, CostGrouping::Purpose)));
        for wrong in ["yesterday", "by", "by mood"] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
    }
}

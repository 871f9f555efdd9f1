//! How full a session is (spec: context §5). Boundaries are shares of the window, never token counts.

use std::fmt;

use serde::{Deserialize, Serialize};

/// How full the window of a dialogue is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Zone {
    Green,
    /// From a quarter to two fifths.
    Yellow,
    /// From two fifths to a half.
    Orange,
    Red,
}

impl Zone {
    /// The zone of a used share of the window, 0 to 1.
    pub fn of(share: f64) -> Self {
        match share {
            share if share < 0.25 => Self::Green,
            share if share < 0.40 => Self::Yellow,
            share if share <= 0.50 => Self::Orange,
            _ => Self::Red,
        }
    }

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Green => "green",
            Self::Yellow => "yellow",
            Self::Orange => "orange",
            Self::Red => "red",
        }
    }
}

impl fmt::Display for Zone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::Zone;

    #[test]
    fn a_boundary_belongs_to_the_zone_the_table_says() {
        let zones: Vec<&str> =
            [0.0, 0.2499, 0.25, 0.3999, 0.4, 0.5, 0.5001, 2.0].map(|share| Zone::of(share).as_str()).into();
        assert_eq!(zones, ["green", "green", "yellow", "yellow", "orange", "orange", "red", "red"]);
    }
}

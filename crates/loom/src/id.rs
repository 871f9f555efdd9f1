//! Identifiers: a newtype a kind, so that a node is never taken for a position.
//!
//! Everything is a ULID, monotonic within a process (spec: loom §7). Time and randomness come in as
//! arguments: [`IdSource`] is the only place ids are made.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use ulid::Ulid;

/// Milliseconds since 1970-01-01 UTC. Shown to people, never used to order nodes (spec: loom §3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Millis(pub i64);

/// The number of an operation in its tree: gapless from 1, given inside the transaction that stores it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Seq(pub u64);

impl fmt::Display for Seq {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A text that is not a valid id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not an id: an id has 26 letters and digits")]
pub struct NotAnId;

/// Declares a ULID newtype with text and serde forms.
macro_rules! id_type {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(Ulid);

        impl $name {
            /// The id with these 16 bytes.
            pub const fn from_bytes(bytes: [u8; 16]) -> Self {
                Self(Ulid::from_bytes(bytes))
            }

            /// The 16 bytes of the id, in order of time.
            pub const fn to_bytes(self) -> [u8; 16] {
                self.0.to_bytes()
            }
        }

        impl From<Ulid> for $name {
            fn from(ulid: Ulid) -> Self {
                Self(ulid)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(&self.0, f)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "({})"), self.0)
            }
        }

        impl FromStr for $name {
            type Err = NotAnId;
            fn from_str(text: &str) -> Result<Self, NotAnId> {
                Ulid::from_string(text).map(Self).map_err(|_| NotAnId)
            }
        }

        impl Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
                text.parse().map_err(serde::de::Error::custom)
            }
        }
    };
}
pub(crate) use id_type;

id_type!(TreeId);
id_type!(
    /// One immutable content by one author at one position: a version.
    NodeId
);
id_type!(
    /// A logical place in the tree. Equal to the id of the node first written there, its *original*.
    PositionId
);

impl PositionId {
    /// The original: the node first written here.
    pub const fn original(self) -> NodeId {
        NodeId(self.0)
    }
}

impl NodeId {
    /// The position this node is the original of, if it is one.
    pub const fn as_position(self) -> PositionId {
        PositionId(self.0)
    }
}

/// The name of a view, unique in its tree: 1 to 64 characters, no control characters.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct ViewName(String);

impl ViewName {
    /// The view that comes with every tree.
    pub const MAIN: &'static str = "main";

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Default for ViewName {
    fn default() -> Self {
        Self(Self::MAIN.to_owned())
    }
}

impl fmt::Display for ViewName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A text that cannot name a view.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not a view name: use 1 to 64 characters without control characters")]
pub struct BadViewName;

impl FromStr for ViewName {
    type Err = BadViewName;
    fn from_str(text: &str) -> Result<Self, BadViewName> {
        let chars = text.chars().count();
        if chars == 0 || chars > 64 || text.chars().any(char::is_control) {
            return Err(BadViewName);
        }
        Ok(Self(text.to_owned()))
    }
}

impl<'de> Deserialize<'de> for ViewName {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// Makes ids, each greater than the one before, whatever the clock does.
#[derive(Debug, Clone, Default)]
pub struct IdSource {
    last: Option<Ulid>,
}

impl IdSource {
    /// The next id at time `now`, with `random` for its 80 random bits. When the clock has not moved (or went back),
    /// the last id is counted up by 48 of them, so that ids keep the order they were made in, and sources that
    /// started from the same id do not meet.
    pub fn next<I: From<Ulid>>(&mut self, now: Millis, random: u128) -> I {
        let ms = u64::try_from(now.0).unwrap_or(0);
        let fresh = Ulid::from_parts(ms, random);
        let next = match self.last {
            Some(last) if last.timestamp_ms() >= fresh.timestamp_ms() => {
                let step = 1 + (random & 0xffff_ffff_ffff);
                // The random bits may be at their end: the time is not counted up with them.
                let counted = Ulid(last.0.saturating_add(step));
                if counted.timestamp_ms() == last.timestamp_ms() { counted } else { fresh }
            }
            _ => fresh,
        };
        self.last = Some(next);
        next.into()
    }

    /// Makes further ids greater than those that another source made.
    pub fn catch_up(&mut self, with: &Self) {
        self.last = self.last.max(with.last);
    }
}

/// Ids made within one plan: the source, the time and the randomness of that moment.
#[derive(Debug)]
pub struct Entropy<'a> {
    /// Where ids come from; one a process.
    pub ids: &'a mut IdSource,
    /// 128 random bits; used for the first id, mixed for further ones.
    pub random: u128,
}

impl Entropy<'_> {
    /// The next id at `now`.
    pub fn next<I: From<Ulid>>(&mut self, now: Millis) -> I {
        let id = self.ids.next(now, self.random);
        self.random = self.random.wrapping_mul(0xda94_2042_e4dd_58b5).wrapping_add(0x9e37_79b9_7f4a_7c15);
        id
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_keep_order_when_the_clock_stands_still_or_goes_back() {
        let mut ids = IdSource::default();
        let a: NodeId = ids.next(Millis(1_000), 7);
        let b: NodeId = ids.next(Millis(1_000), 1);
        let c: NodeId = ids.next(Millis(10), 3);
        assert!(a < b && b < c);
    }

    #[test]
    fn ids_survive_text_and_refuse_noise() {
        let id: TreeId = IdSource::default().next(Millis(1_700_000_000_000), 42);
        assert_eq!(id.to_string().parse::<TreeId>(), Ok(id));
        assert_eq!("nonsense".parse::<TreeId>(), Err(NotAnId));
    }

    #[test]
    fn a_view_name_has_bounds() {
        assert!("".parse::<ViewName>().is_err());
        assert!("a\u{1b}b".parse::<ViewName>().is_err());
        assert!("x".repeat(65).parse::<ViewName>().is_err());
        assert!("reading".parse::<ViewName>().is_ok());
    }
}

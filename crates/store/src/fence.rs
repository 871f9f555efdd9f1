//! Owners and fencing numbers: who works on something, and proof that it is still theirs.
//!
//! A number grows each time work changes hands. A result that comes with an old number is refused, so that a
//! process that slept through its lease can never write over the one that took over (spec: security §7).

use std::time::Duration;

use loom::Millis;

/// Who holds a lease or owns running work: an instance of the program.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LeaseOwner(pub String);

impl LeaseOwner {
    /// A holder of this name.
    pub fn new(name: impl Into<String>) -> Self {
        Self(name.into())
    }
}

impl std::fmt::Display for LeaseOwner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

/// The number of a claim: greater for each new one of the same thing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Fence(pub u64);

impl Fence {
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

/// An owner with its number: what a result has to show.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    pub owner: LeaseOwner,
    pub fence: Fence,
}

/// A lease as it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lease {
    /// Name, as `session/NAME`.
    pub name: String,
    /// Who holds it; none once released.
    pub holder: Option<LeaseOwner>,
    /// The number of this or the last claim.
    pub fence: Fence,
    /// When it ends by itself, by the engine's clock.
    pub expires: Millis,
    /// Whether that is past, by the engine's clock.
    pub has_ended: bool,
}

impl Lease {
    /// What `holder` gets that asks for this lease: none if another has it and it has not ended.
    pub(crate) fn granted(&self, holder: &LeaseOwner) -> Option<Fence> {
        let taken = self.holder.as_ref().is_some_and(|by| by != holder) && !self.has_ended;
        (!taken).then(|| self.fence.next())
    }

    /// Whether it still is the claim with this number.
    pub(crate) fn is_current(&self, fence: Fence) -> bool {
        self.holder.is_some() && self.fence == fence
    }
}

/// A lease a change depends on: the change is refused unless it still has this number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Guard {
    pub lease: String,
    pub fence: Fence,
}

/// When a lease taken at `now` ends by itself.
pub(crate) fn end_of(now: Millis, ttl: Duration) -> Millis {
    Millis(now.0.saturating_add(i64::try_from(ttl.as_millis()).unwrap_or(i64::MAX)))
}

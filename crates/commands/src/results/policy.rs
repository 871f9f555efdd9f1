//! Results of `policy`.

use policy::{Decision, Permission, Policy, PolicyRule};
use serde::Serialize;

/// `policy list`, `allow`, `ask`, `deny`, `remove`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PolicyRules {
    pub rules: Vec<RuleShown>,
    /// Calls that are allowed for the rest of a session.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub allowed: Vec<Permission>,
    /// What was done, and where it is written.
    #[serde(skip)]
    pub said: Option<String>,
}

/// A rule with its number.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RuleShown {
    /// Number by which messages name it, from 1.
    pub number: usize,
    #[serde(flatten)]
    pub rule: PolicyRule,
}

/// `policy test`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PolicyTested {
    pub decision: Decision,
    /// Number of the rule that decided, from 1; none where the default table did.
    pub rule: Option<usize>,
    pub why: String,
}

impl PolicyRules {
    /// All of them.
    pub fn of(policy: &Policy) -> Self {
        let numbered = policy.rules().iter().cloned().zip(1..);
        Self {
            rules: numbered.map(|(rule, number)| RuleShown { number, rule }).collect(),
            allowed: Vec::new(),
            said: None,
        }
    }
}

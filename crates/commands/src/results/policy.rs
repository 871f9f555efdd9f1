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
    /// The agent for which alone it holds, whose rules have numbers of their own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    #[serde(flatten)]
    pub rule: PolicyRule,
}

/// `policy test`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PolicyTested {
    pub decision: Decision,
    /// Number of the rule that decided, from 1; none where the default table did.
    pub rule: Option<usize>,
    /// The agent whose rule it is; none of a general rule.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    pub why: String,
}

impl PolicyRules {
    /// All of them.
    pub fn of(policy: &Policy) -> Self {
        let shown = |(agent, index, rule): (Option<&str>, usize, &PolicyRule)| RuleShown {
            number: index + 1,
            agent: agent.map(str::to_owned),
            rule: rule.clone(),
        };
        Self { rules: policy.placed_rules().map(shown).collect(), allowed: Vec::new(), said: None }
    }
}

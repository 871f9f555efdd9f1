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
    /// With general rules that were written behind those there are since they were read.
    #[must_use]
    pub fn with_written(mut self, written: Vec<PolicyRule>) -> Self {
        for rule in written {
            let general = self.rules.iter().filter(|shown| shown.agent.is_none());
            let number = general.clone().map(|shown| shown.number).max().unwrap_or_default() + 1;
            if !general.clone().any(|shown| shown.rule == rule) {
                let behind = general.count();
                self.rules.insert(behind, RuleShown { number, agent: None, rule });
            }
        }
        self
    }

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_that_was_written_since_stands_behind_the_general_ones_once() {
        let rule = |text: &str| serde_json::from_str::<PolicyRule>(text).unwrap();
        let (deny, allow) = (
            rule(r#"{"decision": "deny", "tool": ["write"]}"#),
            rule(r#"{"decision": "allow", "tool": ["exec ls"]}"#),
        );
        let mut rules = PolicyRules::of(&Policy::new(vec![deny.clone()]).unwrap());
        rules.rules.push(RuleShown { number: 1, agent: Some("poet".to_owned()), rule: deny });
        let shown = rules.with_written(vec![allow.clone(), allow]);
        let told: Vec<_> = shown
            .rules
            .iter()
            .map(|shown| (shown.number, shown.agent.as_deref(), shown.rule.to_string()))
            .collect();
        let told: Vec<_> =
            told.iter().map(|(number, agent, rule)| (*number, *agent, rule.as_str())).collect();
        assert_eq!(
            told,
            [(1, None, "deny write"), (2, None, "allow exec ls"), (1, Some("poet"), "deny write")]
        );
    }
}

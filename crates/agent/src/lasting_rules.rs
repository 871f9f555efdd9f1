//! Rules that a person gives for good while they answer a question: where they are written, and those that this process
//! has seen written since it read its configuration.

use std::sync::{Arc, Mutex, PoisonError};

use loom::source::DEFAULT_AGENT;
use policy::{Permission, Policy, PolicyRule, SessionType};

use crate::blocking::on_disk;

/// File that rules stand in.
pub trait RuleFile: Send + Sync {
    /// The rules for an agent as they stand now. It blocks.
    ///
    /// # Errors
    /// Why they cannot be read.
    fn read(&self, agent: &str) -> Result<Arc<Policy>, String>;

    /// Writes a rule behind those there are. Returns what a person is told. It blocks.
    ///
    /// # Errors
    /// Why it is not written.
    fn write(&self, rule: &PolicyRule) -> Result<String, String>;
}

/// Rules given for good by answers. Cheap to clone.
#[derive(Clone, Default)]
pub struct LastingRules {
    file: Option<Arc<dyn RuleFile>>,
    /// What they allow, by the type of sessions they hold in, with the rules that were written.
    given: Arc<Mutex<Vec<(SessionType, Permission, PolicyRule)>>>,
}

impl LastingRules {
    pub fn new(file: Arc<dyn RuleFile>) -> Self {
        Self { file: Some(file), given: Arc::default() }
    }

    /// The file that rules stand in, if there is one.
    pub fn file(&self) -> Option<Arc<dyn RuleFile>> {
        self.file.clone()
    }

    /// Whether rules can be written: no answer is for good otherwise.
    pub(crate) fn can_write(&self) -> bool {
        self.file.is_some()
    }

    /// What was allowed for good in sessions of a type since the configuration was read, and still is. It blocks.
    pub(crate) fn permissions(&self, session: SessionType) -> Vec<Permission> {
        let held = self.standing().into_iter().filter(|(kind, ..)| session.falls_under(*kind));
        held.map(|(_, permission, _)| permission).collect()
    }

    /// The rules that were written since the configuration was read and still stand, in that order. It blocks.
    pub fn written(&self) -> Vec<PolicyRule> {
        self.standing().into_iter().map(|(.., rule)| rule).collect()
    }

    /// What was given, without what was taken out of the file since. Of rules that cannot be read none stands.
    fn standing(&self) -> Vec<(SessionType, Permission, PolicyRule)> {
        let mut given = self.given.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(file) = self.file.as_ref().filter(|_| !given.is_empty()) {
            let now = file.read(DEFAULT_AGENT).unwrap_or_default();
            given.retain(|(.., rule)| now.rules().contains(rule));
        }
        given
    }

    /// Writes a rule on a thread that may wait for the disk. What it allows holds in this process from now on.
    ///
    /// # Errors
    /// Why it is not written.
    pub(crate) async fn write(
        &self,
        session: SessionType,
        permission: Permission,
        rule: PolicyRule,
    ) -> Result<String, String> {
        let Some(file) = self.file.clone() else { return Err("nothing is configured here".to_owned()) };
        let to_write = rule.clone();
        let told = on_disk(move || file.write(&to_write)).await?;
        self.given.lock().unwrap_or_else(PoisonError::into_inner).push((session, permission, rule));
        Ok(told)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file in which one rule finds room.
    #[derive(Default)]
    struct Once(Mutex<Vec<PolicyRule>>);

    impl RuleFile for Once {
        fn read(&self, _agent: &str) -> Result<Arc<Policy>, String> {
            let rules = self.0.lock().unwrap().clone();
            Policy::new(rules).map(Arc::new).map_err(|error| error.to_string())
        }

        fn write(&self, rule: &PolicyRule) -> Result<String, String> {
            let mut written = self.0.lock().unwrap();
            if !written.is_empty() {
                return Err("the disk is full".to_owned());
            }
            written.push(rule.clone());
            Ok("written".to_owned())
        }
    }

    #[tokio::test]
    async fn a_rule_holds_here_once_it_is_written_in_sessions_of_its_type() {
        let permission =
            |text: &str| serde_json::from_value::<Permission>(serde_json::json!([text])).unwrap();
        let rule = || PolicyRule {
            decision: policy::Decision::Allow,
            tool: permission("write").patterns().to_vec(),
            unless: Vec::new(),
            sessions: vec![SessionType::Main],
            reason: None,
        };
        let none = LastingRules::default();
        assert!(
            !none.can_write() && none.write(SessionType::Main, permission("write"), rule()).await.is_err()
        );
        let writer = Arc::<Once>::default();
        let rules = LastingRules::new(Arc::clone(&writer) as Arc<dyn RuleFile>);
        rules.write(SessionType::Main, permission("write"), rule()).await.unwrap();
        assert_eq!(*writer.0.lock().unwrap(), [rule()]);
        assert!(rules.write(SessionType::Main, permission("edit"), rule()).await.is_err());
        assert_eq!(rules.permissions(SessionType::Main), [permission("write")]);
        assert_eq!(rules.written(), [rule()]);
        assert_eq!(rules.permissions(SessionType::Private), [permission("write")]);
        assert_eq!(rules.permissions(SessionType::Isolated), []);
        writer.0.lock().unwrap().clear();
        assert_eq!(
            (rules.permissions(SessionType::Main), rules.written()),
            (vec![], vec![]),
            "taken out of the file"
        );
    }
}

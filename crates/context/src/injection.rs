//! What is shown once, where the request ends at that moment, and sent again unchanged (spec: context §2
//! *Injections*, §5).

use std::collections::HashMap;

use loom::reader::Injection;
use loom::{Digest, Trust};

use crate::signals::Signal;
use crate::skills::RefusedSkill;
use crate::zone::Zone;

/// Something to be shown, unless it stands in the window already.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offer {
    /// What it is about: `zone`, `file:AGENTS.md`, `card:ID`. Without `#`.
    pub topic: String,
    pub version: String,
    /// How far it is believed.
    pub trust: Trust,
    pub text: String,
}

impl Offer {
    /// The notice that the window is this full; none while there is room.
    pub fn zone(zone: Zone) -> Option<Self> {
        let text = match zone {
            Zone::Green => return None,
            Zone::Yellow => {
                "[More than a quarter of the context window is in use. Load on purpose: read what you need of a file, \
                 not the whole of it.]"
            }
            Zone::Orange => {
                "[More than two fifths of the context window are in use. Load nothing that is not needed, and bring \
                 what is under way to an end.]"
            }
            Zone::Red => {
                "[More than half of the context window is in use. Finish the step you are at before anything new, and \
                 keep answers short.]"
            }
        };
        let (topic, version) = (ZONE.to_owned(), zone.as_str().to_owned());
        Some(Self { topic, version, trust: Trust::Owner, text: text.to_owned() })
    }

    /// The notice that plan mode begins, or that it ended where it stands that it began.
    pub(crate) fn plan(is_on: bool, standing: &Standing<'_>) -> Option<Self> {
        let (version, text) = if is_on {
            let text = "[Plan mode is on: nothing is changed. Calls that write, send or reach the network are refused until \
                        the owner ends it. Look, think, and say what you would do.]";
            ("on", text)
        } else if standing.version(PLAN) == Some("on") {
            ("off", "[Plan mode is off: changes may be made again.]")
        } else {
            return None;
        };
        let (topic, version) = (PLAN.to_owned(), version.to_owned());
        Some(Self { topic, version, trust: Trust::Owner, text: text.to_owned() })
    }

    /// The notice which folders tools reach beside the workspace, or that they reach them no more where it stands that
    /// they do.
    pub(crate) fn folders(said: &str, standing: &Standing<'_>) -> Option<Self> {
        let (version, text) = if !said.is_empty() {
            (Digest::of(said.as_bytes()).to_string(), format!("[{said}]"))
        } else if standing.version(FOLDERS).is_some_and(|version| version != NONE) {
            (NONE.to_owned(), "[Tools reach no folder beside the workspace any more.]".to_owned())
        } else {
            return None;
        };
        Some(Self { topic: FOLDERS.to_owned(), version, trust: Trust::Owner, text })
    }

    /// The notice which skills of the list above are not accepted, or that all are again where it stands that some are not.
    pub(crate) fn skills(refused: &[&RefusedSkill], standing: &Standing<'_>) -> Option<Self> {
        let (version, text) = if !refused.is_empty() {
            let named = refused.iter().map(|skill| match &skill.accepted {
                Some(accepted) => format!("{} (read {accepted} in its place)", skill.path),
                None => format!("{} (its text is not accepted)", skill.path),
            });
            let refused = named.collect::<Vec<_>>().join(", ");
            let text = format!("[Do not use these files of the list of skills: {refused}.]");
            (Digest::of(refused.as_bytes()).to_string(), text)
        } else if standing.version(SKILLS).is_some_and(|version| version != NONE) {
            (NONE.to_owned(), "[Use all files of the list of skills again.]".to_owned())
        } else {
            return None;
        };
        Some(Self { topic: SKILLS.to_owned(), version, trust: Trust::Owner, text })
    }

    /// The notice that a session goes in circles, which counts as that of this zone.
    pub(crate) fn circling(zone: Zone, signal: Signal) -> Self {
        let sign = match signal {
            Signal::RepeatedAnswer => "the last answer says again what was answered before",
            Signal::RepeatedQuestion => "the same question was asked again",
            Signal::FailingCall => "the same call failed three times",
        };
        let text = format!(
            "[This may be going in circles: {sign}. Say what is different now, or what is missing; do not do again what \
             did not help.]"
        );
        let (topic, version) = (ZONE.to_owned(), zone.as_str().to_owned());
        Self { topic, version, trust: Trust::Owner, text }
    }

    pub(crate) fn source(&self) -> String {
        format!("{}#{}", self.topic, self.version)
    }
}

/// The topic of notices of zones.
pub(crate) const ZONE: &str = "zone";

/// The topic of notices of plan mode.
const PLAN: &str = "plan";

/// The topic of notices of skills that are not accepted.
const SKILLS: &str = "skills";

/// The topic of notices of further folders, and the version of a topic where there are none.
const FOLDERS: &str = "folders";
const NONE: &str = "none";

/// The version of each topic that was shown last and still stands in the window.
#[derive(Debug, Default)]
pub(crate) struct Standing<'a>(HashMap<&'a str, &'a str>);

impl<'a> Standing<'a> {
    /// Of what stands in the window, oldest first.
    pub(crate) fn of(injections: impl Iterator<Item = &'a Injection>) -> Self {
        Self(injections.filter_map(|injection| injection.source.split_once('#')).collect())
    }

    /// The version of a topic that stands.
    pub(crate) fn version(&self, topic: &str) -> Option<&'a str> {
        self.0.get(topic).copied()
    }

    /// Whether something is to be shown.
    pub(crate) fn lacks(&self, offer: &Offer) -> bool {
        self.version(&offer.topic) != Some(offer.version.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use loom::NodeId;

    #[test]
    fn what_was_shown_last_is_not_shown_again_and_a_change_back_is() {
        let shown = |source: &str| Injection {
            node: NodeId::from_bytes([1; 16]),
            ordinal: 0,
            source: source.into(),
            trust: Trust::Owner,
            text: String::new(),
        };
        let all = [shown("zone#yellow"), shown("zone#orange")];
        let standing = Standing::of(all.iter());
        assert!(!standing.lacks(&Offer::zone(Zone::Orange).unwrap()));
        assert!(standing.lacks(&Offer::zone(Zone::Yellow).unwrap()));
        assert!(Offer::zone(Zone::Green).is_none());
    }

    #[test]
    fn further_folders_are_told_once_and_so_is_that_they_are_gone() {
        let none = Standing::default();
        assert_eq!(Offer::folders("", &none), None);
        let offer = Offer::folders("Tools reach /d.", &none).unwrap();
        assert_eq!(offer.text, "[Tools reach /d.]");
        let standing = |version: &str| Injection {
            node: NodeId::from_bytes([1; 16]),
            ordinal: 0,
            source: format!("folders#{version}"),
            trust: Trust::Owner,
            text: String::new(),
        };
        let told = [standing(&offer.version)];
        let told = Standing::of(told.iter());
        assert!(!told.lacks(&offer));
        assert!(told.lacks(&Offer::folders("Tools reach /e.", &told).unwrap()));
        let gone = Offer::folders("", &told).unwrap();
        assert!(gone.text.contains("no folder beside the workspace"));
        let told = [standing(&gone.version)];
        assert_eq!(Offer::folders("", &Standing::of(told.iter())), None);
    }
}

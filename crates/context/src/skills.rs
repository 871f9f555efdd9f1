//! The list of skills: what there is to be read, never its text (spec: context §3, agent §6).

use loom::Trust;

/// Most characters of the list, whatever the window leaves.
pub const MOST_CHARACTERS: usize = 18_000;

/// Fewest characters of a shortened description: with fewer it says nothing that the name does not.
const LEAST: usize = 10;

/// The skills of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkillsIndex {
    /// Each skill, in the order it is listed.
    pub entries: Vec<SkillEntry>,
    /// The lowest trust of what they say.
    pub trust: Trust,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkillEntry {
    pub name: String,
    /// When it is of use, in one line.
    pub description: String,
    /// The file that is read when it is.
    pub path: String,
}

/// A file of a skill that an earlier list names and that is not used as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefusedSkill {
    pub path: String,
    /// The file with the accepted text; none where there is none.
    pub accepted: Option<String>,
}

/// How much of the list is sent, from the most to the least.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SkillListing {
    Whole,
    /// Descriptions of at most so many characters: every longer one is shortened to just as many.
    Short(usize),
    Names,
    Nothing,
}

impl SkillListing {
    /// Most characters of a description; none where all are whole.
    pub fn most_characters(self) -> Option<usize> {
        match self {
            Self::Whole => None,
            Self::Short(most) => Some(most),
            Self::Names | Self::Nothing => Some(0),
        }
    }

    /// What is sent, for the owner.
    pub(crate) fn said(self) -> String {
        match self {
            Self::Whole => "whole".to_owned(),
            Self::Short(most) => format!("with descriptions of at most {most} characters"),
            Self::Names => "names only".to_owned(),
            Self::Nothing => "not at all".to_owned(),
        }
    }
}

impl SkillsIndex {
    /// The most of the list that has at most [`MOST_CHARACTERS`] and whose text `fits`.
    pub fn listed(&self, fits: impl Fn(&str) -> bool) -> SkillListing {
        let sendable = |listed: SkillListing| {
            let text = self.text(listed);
            text.chars().count() <= MOST_CHARACTERS && fits(&text)
        };
        if sendable(SkillListing::Whole) {
            return SkillListing::Whole;
        }
        let longest = self.entries.iter().map(|entry| entry.description.chars().count()).max();
        let (mut fitting, mut above) = (LEAST - 1, longest.unwrap_or(0).max(LEAST));
        while fitting + 1 < above {
            let middle = fitting.midpoint(above);
            match sendable(SkillListing::Short(middle)) {
                true => fitting = middle,
                false => above = middle,
            }
        }
        match fitting {
            LEAST.. => SkillListing::Short(fitting),
            _ if sendable(SkillListing::Names) => SkillListing::Names,
            _ => SkillListing::Nothing,
        }
    }

    /// The list as it is sent; empty for none.
    pub(crate) fn text(&self, listed: SkillListing) -> String {
        if self.entries.is_empty() || listed == SkillListing::Nothing {
            return String::new();
        }
        let mut text = "# Skills\n\nRead the file of a skill before you do what it is for.\n".to_owned();
        for SkillEntry { name, description, path } in &self.entries {
            text.push_str(&format!("\n- {name} ({path})"));
            match listed {
                SkillListing::Short(most) if description.chars().count() > most => {
                    text.push_str(": ");
                    text.extend(description.chars().take(most.saturating_sub(1)));
                    text.push('…');
                }
                SkillListing::Whole | SkillListing::Short(_) => text.push_str(&format!(": {description}")),
                SkillListing::Names | SkillListing::Nothing => {}
            }
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn index(descriptions: &[String]) -> SkillsIndex {
        let entry = |(n, description): (usize, &String)| SkillEntry {
            name: format!("skill-{n}"),
            description: description.clone(),
            path: format!("skills/skill-{n}/SKILL.md"),
        };
        SkillsIndex { entries: descriptions.iter().enumerate().map(entry).collect(), trust: Trust::Owner }
    }

    /// Characters of each description in a text, and whether it is shortened.
    fn lengths(text: &str) -> Vec<(usize, bool)> {
        let described = text.lines().filter_map(|line| line.split_once("SKILL.md): "));
        described.map(|(_, short)| (short.chars().count(), short.ends_with('…'))).collect()
    }

    #[test]
    fn a_list_that_fits_is_whole_and_the_least_is_nothing() {
        let skills = index(&["do it".to_owned(), "ü".repeat(500)]);
        assert_eq!(skills.listed(|_| true), SkillListing::Whole);
        assert_eq!(skills.listed(|_| false), SkillListing::Nothing);
        let names = skills.text(SkillListing::Names);
        assert_eq!(skills.listed(|text| text.len() <= names.len()), SkillListing::Names);
        assert_eq!(lengths(&names), Vec::new());
        assert_eq!(index(&[]).listed(|_| true), SkillListing::Whole);
    }

    #[test]
    fn three_hundred_skills_have_one_length_within_the_most() {
        let skills = index(&vec!["when something is to be done ".repeat(20); 300]);
        let listed = skills.listed(|_| true);
        let text = skills.text(listed);
        let SkillListing::Short(most) = listed else { panic!("{listed:?}") };
        assert_eq!(lengths(&text), vec![(most, true); 300]);
        assert!(text.chars().count() <= MOST_CHARACTERS);
        assert!(skills.text(SkillListing::Short(most + 1)).chars().count() > MOST_CHARACTERS);
    }

    proptest! {
        #[test]
        fn what_is_sent_is_the_widest_equal_length(
            sizes in prop::collection::vec(0_usize..400, 1..60),
            room in 0_usize..20_000,
        ) {
            let descriptions: Vec<String> = sizes.iter().map(|size| "é".repeat(*size)).collect();
            let skills = index(&descriptions);
            let fits = |text: &str| text.chars().count() <= room;
            let sendable = |listed| {
                let text = skills.text(listed);
                fits(&text) && text.chars().count() <= MOST_CHARACTERS
            };
            let listed = skills.listed(fits);
            let text = skills.text(listed);
            prop_assert!(listed == SkillListing::Nothing || sendable(listed));
            match listed {
                SkillListing::Whole => {}
                SkillListing::Short(most) => {
                    prop_assert!(most >= LEAST && !sendable(SkillListing::Short(most + 1)));
                    let wanted: Vec<_> = sizes.iter().map(|size| ((*size).min(most), *size > most)).collect();
                    prop_assert_eq!(lengths(&text), wanted);
                }
                SkillListing::Names => prop_assert!(!sendable(SkillListing::Short(LEAST))),
                SkillListing::Nothing => prop_assert!(!sendable(SkillListing::Names)),
            }
        }
    }
}

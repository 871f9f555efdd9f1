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

    /// The list as it is sent; empty for none. A folder with the files of several is named once, above these.
    pub(crate) fn text(&self, listed: SkillListing) -> String {
        if self.entries.is_empty() || listed == SkillListing::Nothing {
            return String::new();
        }
        let mut in_folders: Vec<(&str, Vec<&SkillEntry>)> = Vec::new();
        for entry in &self.entries {
            let Some((folder, _)) = place(&entry.path).filter(|(_, name)| *name == entry.name) else {
                continue;
            };
            match in_folders.iter_mut().find(|(other, _)| *other == folder) {
                Some((_, entries)) => entries.push(entry),
                None => in_folders.push((folder, vec![entry])),
            }
        }
        in_folders.retain(|(_, entries)| entries.len() > 1);
        let is_alone = |entry: &&SkillEntry| {
            place(&entry.path).is_none_or(|(folder, name)| {
                name != entry.name || in_folders.iter().all(|(other, _)| *other != folder)
            })
        };
        let mut text = "# Skills\n\nRead the file of a skill before you do what it is for.\n".to_owned();
        for entry in self.entries.iter().filter(is_alone) {
            text.push_str(&format!("\n- {} ({})", entry.name, entry.path));
            describe(&mut text, &entry.description, listed);
        }
        for (folder, entries) in in_folders {
            text.push_str(if text.ends_with('\n') { "\n" } else { "\n\n" });
            text.push_str(&heading(folder));
            for entry in entries {
                text.push_str(&format!("\n- {}", entry.name));
                describe(&mut text, &entry.description, listed);
            }
        }
        text
    }
}

/// Adds a description to its entry, as much of it as is sent.
fn describe(text: &mut String, description: &str, listed: SkillListing) {
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

/// The folder in which the folder of a skill stands, and the name of that, of the path of its file.
fn place(path: &str) -> Option<(&str, &str)> {
    path.strip_suffix("/SKILL.md")?.rsplit_once('/')
}

/// What stands above the entries whose files are in folders of this one, each of the name of its skill.
fn heading(folder: &str) -> String {
    format!("In {folder}/NAME/SKILL.md:")
}

/// Whether a list that was sent names a file.
pub fn names_file(list: &str, path: &str) -> bool {
    if list.contains(&format!(" ({path})")) {
        return true;
    }
    let Some((folder, name)) = place(path) else { return false };
    let (heading, entry) = (heading(folder), format!("- {name}"));
    let below = list.lines().skip_while(|line| *line != heading).skip(1);
    below
        .take_while(|line| line.starts_with("- "))
        .any(|line| line.strip_prefix(&entry).is_some_and(|rest| rest.is_empty() || rest.starts_with(": ")))
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
        let described = text.lines().filter_map(|line| line.strip_prefix("- ")?.split_once(": "));
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

    #[test]
    fn three_hundred_names_fit_wherever_their_folder_is() {
        let folder = format!("/home/owner/{}/skills", "a-long-name-of-a-folder/".repeat(5));
        let entry = |n: usize| {
            let name = format!("name-of-20-letters-{n:03}");
            SkillEntry { path: format!("{folder}/{name}/SKILL.md"), name, description: String::new() }
        };
        let skills = SkillsIndex { entries: (0..300).map(entry).collect(), trust: Trust::Owner };
        let names = skills.text(SkillListing::Names);
        assert!(names.chars().count() <= MOST_CHARACTERS, "{}", names.chars().count());
        assert_eq!(names.matches(&folder).count(), 1);
    }

    #[test]
    fn a_folder_is_named_once_above_its_skills_and_each_file_is_found_again() {
        let entry = |name: &str, path: &str| SkillEntry {
            name: name.to_owned(),
            description: "do it".to_owned(),
            path: path.to_owned(),
        };
        let skills = SkillsIndex {
            entries: vec![
                entry("one", "skills/one/SKILL.md"),
                entry("two", "/home/skills/two/SKILL.md"),
                entry("renamed", "/home/skills/old/SKILL.md"),
                entry("three", "/home/skills/three/SKILL.md"),
            ],
            trust: Trust::Owner,
        };
        for (listed, described) in [(SkillListing::Whole, ": do it"), (SkillListing::Names, "")] {
            let text = skills.text(listed);
            let list = text.split_once("for.\n").unwrap().1;
            assert_eq!(
                list,
                format!(
                    "\n- one (skills/one/SKILL.md){described}\n- renamed (/home/skills/old/SKILL.md){described}\n\n\
                     In /home/skills/NAME/SKILL.md:\n- two{described}\n- three{described}"
                )
            );
            assert!(skills.entries.iter().all(|entry| names_file(&text, &entry.path)), "{text}");
            for other in ["/home/skills/tw/SKILL.md", "/home/skills/one/SKILL.md", "skills/two/SKILL.md"] {
                assert!(!names_file(&text, other), "{other}: {text}");
            }
        }
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

//! The list of skills: what there is to be read, never its text (spec: context §3).

/// The skills of a session.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SkillsIndex {
    /// Each skill, in the order it is listed.
    pub entries: Vec<SkillEntry>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkillEntry {
    pub name: String,
    /// When it is of use.
    pub description: String,
    /// The file that is read when it is.
    pub path: String,
}

/// How much of the list is sent, from the most to the least.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Listed {
    Whole,
    Short,
    Names,
    Nothing,
}

/// Characters of a description that is shortened.
const SHORT: usize = 80;

impl Listed {
    pub(crate) const fn less(self) -> Self {
        match self {
            Self::Whole => Self::Short,
            Self::Short => Self::Names,
            Self::Names | Self::Nothing => Self::Nothing,
        }
    }

    /// What is sent, for the manifest and the owner.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Whole => "whole",
            Self::Short => "with short descriptions",
            Self::Names => "names only",
            Self::Nothing => "not at all",
        }
    }
}

impl SkillsIndex {
    /// The list as it is sent; empty for none.
    pub(crate) fn text(&self, listed: Listed) -> String {
        if self.entries.is_empty() || listed == Listed::Nothing {
            return String::new();
        }
        let mut text = "# Skills\n\nRead the file of a skill before you do what it is for.\n".to_owned();
        for SkillEntry { name, description, path } in &self.entries {
            text.push_str(&format!("\n- {name} ({path})"));
            match listed {
                Listed::Whole => text.push_str(&format!(": {description}")),
                Listed::Short => {
                    let short: String = description.chars().take(SHORT).collect();
                    let cut = if short.len() < description.len() { "…" } else { "" };
                    text.push_str(&format!(": {short}{cut}"));
                }
                Listed::Names | Listed::Nothing => {}
            }
        }
        text
    }
}

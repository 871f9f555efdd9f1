//! Skills of Drawloom's own, carried in the binary: built-in ones, which are offered, and those for other programs, whose
//! work the runtime does itself (spec: agent §6, continuity §6).

use text::fold::folded;
use unicode_normalization::UnicodeNormalization as _;

/// A skill of Drawloom's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OwnSkill {
    pub name: &'static str,
    /// Text of the `SKILL.md`.
    pub text: &'static str,
    /// Whether models are told of it here.
    pub is_built_in: bool,
}

/// All of them, as `skills export` writes them.
pub const OWN: [OwnSkill; 5] = [
    OwnSkill { name: "buffer", text: include_str!("../own/buffer/SKILL.md"), is_built_in: false },
    OwnSkill {
        name: "buffer-optimizer",
        text: include_str!("../own/buffer-optimizer/SKILL.md"),
        is_built_in: false,
    },
    OwnSkill { name: "loom", text: include_str!("../own/loom/SKILL.md"), is_built_in: false },
    OwnSkill {
        name: "skill-creator",
        text: include_str!("../own/skill-creator/SKILL.md"),
        is_built_in: true,
    },
    OwnSkill { name: "summarize", text: include_str!("../own/summarize/SKILL.md"), is_built_in: true },
];

/// Name of a skill of Drawloom's own that there is not yet.
const RESERVED: &str = "reminders";

/// The built-in skills.
pub fn built_in() -> impl Iterator<Item = &'static OwnSkill> {
    OWN.iter().filter(|own| own.is_built_in)
}

/// Whether the name is that of a built-in skill, by its letters.
pub fn is_built_in(name: &str) -> bool {
    built_in().any(|own| own.name == name)
}

/// Whether no other skill may have the name, in whatever spelling.
pub(crate) fn is_reserved(name: &str) -> bool {
    let name = folded(&name.nfkc().collect::<String>());
    name == RESERVED || OWN.iter().any(|own| own.name == name)
}

/// Whether the bytes are those of a skill of Drawloom's own.
pub(crate) fn is_own_text(bytes: &[u8]) -> bool {
    OWN.iter().any(|own| own.text.as_bytes() == bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{SkillFile, strict};

    #[test]
    fn each_keeps_to_the_letter_and_asks_for_little_room() {
        for own in OWN {
            assert_eq!(strict::check(own.text.as_bytes(), own.name), [], "{}", own.name);
            let file = SkillFile::read(own.text.as_bytes(), own.name);
            assert!(file.is_own_copy && file.refusal().is_none(), "{file:?}");
            assert!(file.description.chars().count() <= 300 && own.text.len() <= 4_096, "{}", own.name);
        }
    }

    #[test]
    fn the_names_are_kept_in_every_spelling() {
        for name in ["summarize", "SUMMARIZE", "\u{ff53}ummarize", "reminders", "loom"] {
            assert!(is_reserved(name), "{name}");
        }
        assert!(!is_reserved("summary") && is_built_in("summarize") && !is_built_in("loom"));
    }
}

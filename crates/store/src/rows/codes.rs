//! The numbers that stand for words in rows. Once released, a number keeps its meaning.

use loom::{KeepScope, Mode, OpKind, OriginRole, PositionKind, Role, SourceKind, Trust};

use crate::error::StoreError;
use crate::outcome::OutcomeKind;

/// An enum written as a number.
pub(crate) trait Code: Copy + Sized + 'static {
    /// Members of the enum with their numbers.
    const TABLE: &'static [(Self, u8)];

    /// The number of a member; checked against the table by the tests below.
    fn code(self) -> u8;

    /// The member with a number.
    fn from_code(code: u8) -> Result<Self, StoreError> {
        let found = Self::TABLE.iter().find(|(_, number)| *number == code);
        found.map(|(member, _)| *member).ok_or_else(|| StoreError::Damaged(format!("an unknown code {code}")))
    }
}

/// Declares the numbers of an enum's members once, both ways. The match keeps it complete.
macro_rules! codes {
    ($($enum:ident { $($member:ident = $number:literal),+ $(,)? })+) => {$(
        impl Code for $enum {
            const TABLE: &'static [(Self, u8)] = &[$(($enum::$member, $number)),+];
            fn code(self) -> u8 {
                match self { $($enum::$member => $number),+ }
            }
        }
    )+};
}

codes! {
    Mode { Dialogue = 0, Buffer = 1 }
    Role { System = 1, User = 2, Assistant = 3, Tool = 4 }
    Trust { Owner = 0, Agent = 1, Workspace = 2, Outside = 3 }
    PositionKind { Path = 0, Head = 1, Note = 2, Annotation = 3 }
    SourceKind { Remote = 0, Local = 1, Script = 2, Replay = 3 }
    KeepScope { Here = 0, Below = 1 }
    OutcomeKind { Decision = 0, Outcome = 1, Correction = 2, Question = 3, Step = 4 }
    OriginRole { Parent = 0, Context = 1, Instruction = 2, Annotation = 3, Head = 4, Note = 5 }
    OpKind {
        Create = 0, Commit = 1, Generate = 2, Answer = 3, Edit = 4, Branch = 5, Switch = 6, Select = 7, Move = 8,
        Keep = 9, Prune = 10, Restore = 11, Exclude = 12, Include = 13, Compact = 14, Bookmark = 15, Tag = 16,
        Annotate = 17, Pin = 18, NewView = 19, DeleteView = 20, Rename = 21, Archive = 22, Unarchive = 23,
        Undo = 24, Redo = 25, Import = 26, Forget = 27, Trust = 28,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holds<C: Code + PartialEq + std::fmt::Debug>() {
        for (member, code) in C::TABLE {
            assert_eq!(member.code(), *code);
            assert_eq!(C::from_code(*code).unwrap(), *member);
        }
        assert!(C::from_code(255).is_err());
    }

    #[test]
    fn every_code_leads_back() {
        holds::<Mode>();
        holds::<Role>();
        holds::<Trust>();
        holds::<PositionKind>();
        holds::<SourceKind>();
        holds::<KeepScope>();
        holds::<OriginRole>();
        holds::<OpKind>();
        holds::<OutcomeKind>();
    }
}

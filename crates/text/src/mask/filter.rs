//! Whether a value may stand in bytes at all, told in a fraction of the time that finding it takes.
//!
//! Most texts hold no secret, and the automaton takes a step for each of their bytes. Every form of a value has at
//! least [`END`] bytes. So wherever one stands, its last [`END`] bytes stand whole, and of any [`STRIDE`] places in a
//! row one begins [`GRAM`] of those: only every [`STRIDE`]th place is looked at. What is found there is compared with
//! all [`END`] bytes, so that text which resembles a value at one place is not searched for it.

use std::collections::HashMap;

/// Bytes at the end of a form that are looked for.
const END: usize = super::MIN_CHARS;
/// Bytes that are looked at in one place.
const GRAM: usize = 4;
const STRIDE: usize = END - GRAM + 1;
/// Bits of a hash of a gram.
const BITS: u32 = 14;

/// What tells at once that no value of a masker stands in a text.
pub(super) struct Filter {
    /// A bit for the hash of each gram.
    seen: Box<[u64]>,
    /// Where in which ends a gram stands.
    grams: HashMap<[u8; GRAM], Vec<(usize, [u8; END])>>,
}

impl Filter {
    /// A filter of forms; none of forms that are too short for it.
    pub(super) fn new<'f>(forms: impl Iterator<Item = &'f str>) -> Option<Self> {
        let mut filter = Self { seen: vec![0; 1 << (BITS - 6)].into(), grams: HashMap::new() };
        for form in forms {
            let end = *form.as_bytes().last_chunk::<END>()?;
            for (at, gram) in end.windows(GRAM).enumerate() {
                let gram: [u8; GRAM] = gram.try_into().ok()?;
                let (word, bit) = place(gram);
                filter.seen[word] |= bit;
                let same = filter.grams.entry(gram).or_default();
                if !same.contains(&(at, end)) {
                    same.push((at, end));
                }
            }
        }
        Some(filter)
    }

    /// Whether a form may stand in `bytes`; never false where one does.
    pub(super) fn may_find_in(&self, bytes: &[u8]) -> bool {
        if self.grams.is_empty() {
            return false;
        }
        (0..bytes.len()).step_by(STRIDE).any(|at| {
            let Some(gram) = bytes[at..].first_chunk::<GRAM>() else { return false };
            let (word, bit) = place(*gram);
            self.seen[word] & bit != 0 && self.stands_around(bytes, at, *gram)
        })
    }

    fn stands_around(&self, bytes: &[u8], at: usize, gram: [u8; GRAM]) -> bool {
        let ends = self.grams.get(&gram).into_iter().flatten();
        ends.into_iter()
            .any(|(within, end)| at.checked_sub(*within).is_some_and(|start| bytes[start..].starts_with(end)))
    }
}

/// The bit of a gram: its word, and its place there.
fn place(gram: [u8; GRAM]) -> (usize, u64) {
    let hash = u32::from_le_bytes(gram).wrapping_mul(0x9E37_79B1) >> (32 - BITS);
    ((hash >> 6) as usize, 1 << (hash & 63))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_stands_somewhere_is_never_passed_over(
            forms in prop::collection::vec("[ab]{8,12}", 1..4), before in "[ab]{0,30}", after in "[ab]{0,9}",
        ) {
            let filter = Filter::new(forms.iter().map(String::as_str)).unwrap();
            for form in &forms {
                let text = format!("{before}{form}{after}");
                prop_assert!(filter.may_find_in(text.as_bytes()));
            }
            let ends = |text: &str| forms.iter().any(|form| text.contains(&form[form.len() - END..]));
            prop_assert!(ends(&before) || !filter.may_find_in(before.as_bytes()), "it is no reason to search");
        }
    }

    #[test]
    fn forms_that_are_too_short_have_no_filter_and_none_are_nowhere() {
        assert!(Filter::new(["1234567"].into_iter()).is_none());
        assert!(!Filter::new(std::iter::empty()).unwrap().may_find_in(b"12345678"));
    }
}

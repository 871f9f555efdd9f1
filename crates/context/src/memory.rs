//! What is remembered, as a value: facts, and observations that give way by value (spec: context §3 *Give way*).

use loom::Trust;

/// Most characters of observations.
const MOST: usize = 14_000;
/// Most characters of facts and observations together.
const TOGETHER: usize = 20_000;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Memory {
    /// Facts and whatever else stands in the file besides observations.
    pub text: String,
    /// Observations, in the order they are sent.
    pub observations: Vec<Observation>,
    /// How far it is believed.
    pub trust: Trust,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Observation {
    pub text: String,
    /// What it is worth: the least gives way first, of equals the older one.
    pub value: i64,
}

impl Memory {
    /// Most characters of observations, beside boot files of so many.
    pub(crate) fn cap(&self, files: usize) -> usize {
        let rest = TOGETHER.saturating_sub(self.text.chars().count());
        MOST.min(rest).min(crate::bootstrap::TOTAL_CAP.saturating_sub(files))
    }

    /// The places of the observations that stay in at most `cap` characters, as `size` counts them.
    pub(crate) fn kept(&self, cap: u64, size: impl Fn(&str) -> u64) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.observations.len()).collect();
        order.sort_by_key(|index| std::cmp::Reverse((self.observations[*index].value, *index)));
        let mut left = cap;
        order.retain(|index| {
            let size = size(&self.observations[*index].text) + 1;
            let fits = size <= left;
            left = if fits { left - size } else { 0 };
            fits
        });
        order.sort_unstable();
        order
    }

    /// Observations as they are sent; empty for none.
    pub(crate) fn observed(&self, kept: &[usize]) -> String {
        if kept.is_empty() {
            return String::new();
        }
        let lines = kept.iter().map(|index| format!("\n- {}", self.observations[*index].text));
        "# Observations\n".to_owned() + &lines.collect::<String>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_valued_give_way_and_the_rest_keep_their_order() {
        let observation = |text: &str, value| Observation { text: text.into(), value };
        let observations = vec![observation("aaaa", 1), observation("bbbb", 9), observation("cccc", 5)];
        let memory = Memory { text: String::new(), observations, trust: Trust::Agent };
        assert_eq!(memory.kept(10, |text| text.len() as u64), [1, 2]);
        assert_eq!(memory.observed(&[1, 2]), "# Observations\n\n- bbbb\n- cccc");
        assert_eq!(memory.observed(&[]), "");
    }
}

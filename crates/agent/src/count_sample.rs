//! What the texts of a request that are counted say of those that are not.

use context::Estimator;

/// The least part of a prior's estimate that a text has in tokens.
pub(crate) const MIN_TOKEN_RATIO: f64 = 0.3;
/// How many times as long as the texts that were counted all may be, where those speak for all.
const MAX_TIMES: u64 = 10;

/// Tokens of those of several texts that are counted now.
#[derive(Clone, Copy)]
pub(crate) struct CountSample {
    counted: u64,
    /// What had been estimated for the same texts.
    estimated: u64,
    /// What is estimated for all of them.
    of_all: u64,
}

impl CountSample {
    /// None if nothing was counted.
    pub(crate) fn of(texts: &[String], estimator: &Estimator) -> Option<Self> {
        Self::by(texts, |text| estimator.counted(text), |text| estimator.estimated(text))
    }

    fn by(
        texts: &[String],
        counted: impl Fn(&str) -> Option<u64>,
        estimated: impl Fn(&str) -> u64,
    ) -> Option<Self> {
        let mut sample = Self { counted: 0, estimated: 0, of_all: 0 };
        for text in texts {
            let tokens = estimated(text);
            sample.of_all += tokens;
            if let Some(counted) = counted(text) {
                sample.counted += counted;
                sample.estimated += tokens;
            }
        }
        (sample.counted > 0 && sample.estimated > 0).then_some(sample)
    }

    /// How many times as many tokens as estimated the texts have that are not counted; no fewer, as they may be of another
    /// kind.
    pub(crate) fn scale_of_rest(self) -> f64 {
        self.ratio().max(1.0)
    }

    /// How many times as many tokens as estimated all have, and no fewer than a vocabulary may need. None where too little
    /// is counted: a short text may be of any kind, and a server may say anything of it.
    pub(crate) fn ratio_of_all(self) -> Option<f64> {
        let is_enough = self.estimated.saturating_mul(MAX_TIMES) >= self.of_all;
        is_enough.then(|| self.ratio().max(MIN_TOKEN_RATIO))
    }

    fn ratio(self) -> f64 {
        self.counted as f64 / self.estimated as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of texts of so many estimated tokens, the first being counted.
    fn sample(estimated: &[usize], counted: u64) -> Option<CountSample> {
        let texts = estimated.iter().enumerate().map(|(n, tokens)| format!("{n}").repeat(*tokens));
        let texts: Vec<String> = texts.collect();
        CountSample::by(&texts, |text| text.starts_with('0').then_some(counted), |text| text.len() as u64)
    }

    #[test]
    fn what_is_counted_speaks_for_all_where_it_is_a_tenth_of_it() {
        for (estimated, counted, of_rest, of_all) in [
            (&[100][..], 50, 1.0, Some(0.5)),
            (&[100], 250, 2.5, Some(2.5)),
            (&[100, 900], 50, 1.0, Some(0.5)),
            (&[100, 901], 50, 1.0, None),
            (&[100, 500, 401], 300, 3.0, None),
            // No vocabulary needs so few.
            (&[100, 100], 1, 1.0, Some(MIN_TOKEN_RATIO)),
        ] {
            let sample = sample(estimated, counted).unwrap();
            assert_eq!((sample.scale_of_rest(), sample.ratio_of_all()), (of_rest, of_all), "{estimated:?}");
        }
        assert!(sample(&[100, 100], 0).is_none());
        assert!(sample(&[], 0).is_none());
    }
}

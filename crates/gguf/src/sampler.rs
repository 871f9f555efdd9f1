//! Sampling: which token comes next.
//!
//! The order is that of llama.cpp: the unlikely are left out, then the temperature is applied and one is drawn. A seed gives the same draw on every machine.

use crate::error::RunError;

#[derive(Debug, Clone, PartialEq)]
pub struct SamplingParams {
    /// 0 takes the likeliest token always; 1 draws by the model's own probabilities.
    pub temperature: f64,
    /// The likeliest tokens that together have this share are drawn from; 1 is all.
    pub top_p: f64,
    /// Tokens less likely than this share of the likeliest are left out; 0 is none.
    pub min_p: f64,
    pub seed: u64,
}

impl Default for SamplingParams {
    fn default() -> Self {
        Self { temperature: 0.0, top_p: 1.0, min_p: 0.0, seed: 0 }
    }
}

impl SamplingParams {
    pub(crate) fn check(&self) -> Result<(), RunError> {
        let within = [
            ("temperature", self.temperature, 100.0),
            ("top_p", self.top_p, 1.0),
            ("min_p", self.min_p, 1.0),
        ];
        match within.into_iter().find(|(_, number, most)| !(0.0..=*most).contains(number)) {
            Some((name, ..)) => Err(RunError::Parameter(name)),
            None => Ok(()),
        }
    }
}

/// A token with the logarithm of its probability.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct TokenScore {
    pub(crate) token: u32,
    pub(crate) logprob: f64,
}

/// The model's own log-probabilities of `token` and of the `count` likeliest, likeliest first.
pub(crate) fn log_probabilities(logits: &[f32], token: u32, count: usize) -> (TokenScore, Vec<TokenScore>) {
    let most = f64::from(logits.iter().copied().fold(f32::NEG_INFINITY, f32::max));
    let sum: f64 = logits.iter().map(|&logit| (f64::from(logit) - most).exp()).sum();
    let base = most + sum.ln();
    let logprob =
        |token: u32| f64::from(logits.get(token as usize).copied().unwrap_or(f32::NEG_INFINITY)) - base;
    let mut order: Vec<u32> = (0_u32..).take(logits.len()).collect();
    let likelier = |a: &u32, b: &u32| compare(logits, *a, *b);
    if count < order.len() {
        order.select_nth_unstable_by(count, likelier);
        order.truncate(count);
    }
    order.sort_unstable_by(likelier);
    let top = order.into_iter().map(|token| TokenScore { token, logprob: logprob(token) }).collect();
    (TokenScore { token, logprob: logprob(token) }, top)
}

/// Likelier first; of equal ones the smaller number.
fn compare(logits: &[f32], a: u32, b: u32) -> std::cmp::Ordering {
    let of = |token: u32| logits.get(token as usize).copied().unwrap_or(f32::NEG_INFINITY);
    of(b).total_cmp(&of(a)).then(a.cmp(&b))
}

/// Sampler of one answer: draws its tokens one after the other.
#[derive(Debug, Clone)]
pub(crate) struct Sampler {
    sampling: SamplingParams,
    state: u64,
}

impl Sampler {
    pub(crate) fn new(sampling: SamplingParams) -> Self {
        Self { state: sampling.seed, sampling }
    }

    /// The next token. Logits that are no numbers are never chosen.
    pub(crate) fn next(&mut self, logits: &[f32]) -> Option<u32> {
        let logits: Vec<f32> =
            logits.iter().map(|logit| if logit.is_nan() { f32::NEG_INFINITY } else { *logit }).collect();
        if self.sampling.temperature == 0.0 {
            return (0_u32..).take(logits.len()).min_by(|a, b| compare(&logits, *a, *b));
        }
        let (_, likeliest) = log_probabilities(&logits, 0, logits.len());
        let candidates = self.candidates(&likeliest);
        let most = candidates.first()?.logprob;
        let weight = |scored: &TokenScore| ((scored.logprob - most) / self.sampling.temperature).exp();
        let sum: f64 = candidates.iter().map(weight).sum();
        let mut left = random(&mut self.state) * sum;
        for candidate in candidates {
            left -= weight(candidate);
            if left < 0.0 {
                return Some(candidate.token);
            }
        }
        candidates.last().map(|candidate| candidate.token)
    }

    fn candidates<'s>(&self, likeliest: &'s [TokenScore]) -> &'s [TokenScore] {
        let (mut sum, mut end) = (0.0, likeliest.len());
        if self.sampling.top_p < 1.0 {
            for (at, scored) in likeliest.iter().enumerate() {
                sum += scored.logprob.exp();
                if sum >= self.sampling.top_p {
                    end = at + 1;
                    break;
                }
            }
        }
        let likeliest = &likeliest[..end];
        if self.sampling.min_p == 0.0 {
            return likeliest;
        }
        let least = likeliest.first().map_or(0.0, |first| first.logprob) + self.sampling.min_p.ln();
        &likeliest[..likeliest.partition_point(|scored| scored.logprob >= least).max(1).min(likeliest.len())]
    }
}

/// A number from 0 up to 1 (SplitMix64).
fn random(state: &mut u64) -> f64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut mixed = *state;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^= mixed >> 31;
    (mixed >> 11) as f64 / (1_u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draws(sampling: SamplingParams, logits: &[f32]) -> Vec<u32> {
        let mut sampler = Sampler::new(sampling);
        (0..400).filter_map(|_| sampler.next(logits)).collect()
    }

    fn warm() -> SamplingParams {
        SamplingParams { temperature: 1.0, seed: 7, ..SamplingParams::default() }
    }

    #[test]
    fn without_temperature_the_likeliest_is_taken_and_of_equals_the_first() {
        assert_eq!(Sampler::new(SamplingParams::default()).next(&[0.0, 3.0, 3.0, f32::NAN]), Some(1));
    }

    #[test]
    fn a_seed_gives_the_same_draws() {
        let logits = [0.1, 0.2, 0.3, 0.4];
        assert_eq!(draws(warm(), &logits), draws(warm(), &logits));
        assert_ne!(draws(warm(), &logits), draws(SamplingParams { seed: 8, ..warm() }, &logits));
    }

    #[test]
    fn draws_follow_the_probabilities() {
        let logits = [0.75_f32.ln(), 0.25_f32.ln()];
        let ones = draws(warm(), &logits).iter().filter(|token| **token == 1).count();
        assert!((70..130).contains(&ones), "{ones}");
    }

    #[test]
    fn the_unlikely_are_left_out() {
        let logits = [0.5_f32.ln(), 0.3_f32.ln(), 0.15_f32.ln(), 0.05_f32.ln()];
        let most = |sampling| draws(sampling, &logits).into_iter().max();
        assert_eq!(most(SamplingParams { top_p: 0.7, ..warm() }), Some(1));
        assert_eq!(most(SamplingParams { min_p: 0.25, ..warm() }), Some(2));
        assert_eq!(most(SamplingParams { top_p: 0.0, ..warm() }), Some(0));
        assert_eq!(most(warm()), Some(3));
    }

    #[test]
    fn log_probabilities_are_the_models_own() {
        let logits = [0.5_f32.ln(), 0.3_f32.ln(), 0.2_f32.ln()];
        let (chosen, top) = log_probabilities(&logits, 2, 2);
        assert!((chosen.logprob - 0.2_f64.ln()).abs() < 1e-6);
        assert_eq!(top.iter().map(|scored| scored.token).collect::<Vec<_>>(), [0, 1]);
    }

    #[test]
    fn numbers_out_of_range_are_refused() {
        for wrong in [f64::NAN, -1.0, f64::INFINITY] {
            let sampling = SamplingParams { temperature: wrong, ..SamplingParams::default() };
            assert_eq!(sampling.check(), Err(RunError::Parameter("temperature")));
        }
    }
}

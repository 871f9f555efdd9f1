//! The estimate, fitted to what a provider reports (spec: context §4).
//!
//! Bounded recursive least squares with forgetting, one per model: each response whose request held text alone is
//! one observation of the whole input. Errors are relative, so that a small request counts as much as a large one.
//! The weights stay within a range around the priors, so that a server that reports nonsense can do only so much;
//! the last residual corrects the next estimate, since most of a session's next request was in its last; the
//! spread of what even that leaves sets the safety factor.

use serde::{Deserialize, Serialize};

use crate::estimate::{Estimator, FEATURES, Features};

/// How much of the past each observation keeps.
const FORGETTING: f64 = 0.98;
/// The first response from which on the fit is used.
const FIRST_USED: u32 = 3;
/// How many deviations the estimate stays above the middle.
const DEVIATIONS: f64 = 2.4;
/// How much of the earlier residuals each observation keeps.
const RESIDUALS: f64 = 0.9;
/// Weights stay between the prior divided by this and multiplied with it.
const BOUND: f64 = 4.0;
/// How far a prior is off, as a share of it, one deviation.
const PRIOR_SPREAD: f64 = 0.3;
/// The spread is taken for no smaller than this.
const LEAST_SPREAD: f64 = 0.015;
/// The spread of residuals before any was seen.
const FIRST_SPREAD: f64 = 0.08;
/// A report this many times off is no count of this request.
const ABSURD: f64 = 8.0;
/// What no linear model explains of one request, as a share of it.
const NOISE: f64 = 0.05;
/// How far one residual may correct the next estimate.
const LAST: (f64, f64) = (-0.5, 1.0);

/// What was learned of one model's tokenizer. Serializable; made anew from the priors if it is lost.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Calibration {
    family: String,
    responses: u32,
    weights: [f64; FEATURES],
    covariance: [[f64; FEATURES]; FEATURES],
    /// How far the last request was from its estimate, as a share of the estimate.
    last: f64,
    /// Mean square of the relative residuals, the last one's correction applied.
    spread: f64,
}

impl Calibration {
    /// Nothing learned yet of a tokenizer of this family.
    pub fn new(family: &str) -> Self {
        let weights = Estimator::prior(family).as_array();
        let mut covariance = [[0.0; FEATURES]; FEATURES];
        for (index, weight) in weights.iter().enumerate() {
            covariance[index][index] = (weight * PRIOR_SPREAD).powi(2);
        }
        Self {
            family: family.to_owned(),
            responses: 0,
            weights,
            covariance,
            last: 0.0,
            spread: FIRST_SPREAD.powi(2),
        }
    }

    /// The family of the tokenizer it is about.
    pub fn family(&self) -> &str {
        &self.family
    }

    /// How many responses it has learned from.
    pub fn responses(&self) -> u32 {
        self.responses
    }

    /// Learns from a response: what the request held and the input tokens that were reported for it. A report that
    /// cannot be a count of this request is not learned from.
    pub fn observe(&mut self, features: &Features, reported: u64) {
        let x = features.as_array();
        let expected = dot(&self.weights, &x);
        let reported = reported as f64;
        if expected < 1.0 || reported * ABSURD < expected || reported > expected * ABSURD {
            return;
        }
        let surprise = 1.0 - expected * (1.0 + self.last) / reported;
        // In units of what was reported, the target is 1 and the error is relative.
        self.learn(&x.map(|feature| feature / reported));
        self.last = (reported / dot(&self.weights, &x) - 1.0).clamp(LAST.0, LAST.1);
        self.responses = self.responses.saturating_add(1);
        // The first residuals are those of the priors.
        if self.responses > FIRST_USED {
            self.spread = RESIDUALS * self.spread + (1.0 - RESIDUALS) * surprise * surprise;
        }
    }

    /// One step of recursive least squares towards 1.
    fn learn(&mut self, x: &[f64; FEATURES]) {
        let prior = Estimator::prior(&self.family).as_array();
        let residual = 1.0 - dot(&self.weights, x);
        let px = self.covariance.map(|row| dot(&row, x));
        let gain = FORGETTING * NOISE.powi(2) + dot(&px, x);
        for (row, px_row) in self.covariance.iter_mut().zip(px) {
            for (cell, px_column) in row.iter_mut().zip(px) {
                *cell = (*cell - px_row * px_column / gain) / FORGETTING;
            }
        }
        // What is never seen would be forgotten for ever and then believed at once.
        for (index, prior) in prior.iter().enumerate() {
            let over = self.covariance[index][index] / (prior * PRIOR_SPREAD).powi(2);
            if over > 1.0 {
                let shrink = over.sqrt().recip();
                for other in 0..FEATURES {
                    self.covariance[index][other] *= shrink;
                    self.covariance[other][index] *= shrink;
                }
            }
        }
        for ((weight, prior), px) in self.weights.iter_mut().zip(prior).zip(px) {
            *weight = (*weight + px / gain * residual).clamp(prior / BOUND, prior * BOUND);
        }
    }

    /// The request was longer than its window although the estimate said it fits: every weight was too small.
    pub fn was_too_long(&mut self, features: &Features, window: u64) {
        let expected = dot(&self.weights, &features.as_array());
        let factor = (window as f64 / expected.max(1.0)).clamp(1.05, 2.0);
        let prior = Estimator::prior(&self.family).as_array();
        for (weight, prior) in self.weights.iter_mut().zip(prior) {
            *weight = (*weight * factor).min(prior * BOUND);
        }
        self.last = self.last.max(0.0);
        self.responses = self.responses.max(FIRST_USED);
        self.spread = self.spread.max(FIRST_SPREAD.powi(2));
    }

    /// The estimate as far as it is learned: the priors until the third response.
    pub fn estimator(&self) -> Estimator {
        let corrected = 1.0 + self.last;
        if self.responses < FIRST_USED {
            let mut prior = Estimator::prior(&self.family);
            prior.factor *= corrected;
            return prior;
        }
        let spread = self.spread.sqrt().max(LEAST_SPREAD);
        let name = format!("fit/{}/{}", self.family, self.responses);
        Estimator::new(name, self.weights, (1.0 + DEVIATIONS * spread) * corrected)
    }
}

fn dot(a: &[f64; FEATURES], b: &[f64; FEATURES]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

#[cfg(test)]
mod tests {
    use text::class::ClassCounts;

    use super::*;

    /// A tokenizer that is linear in other weights than the priors', with a little noise.
    struct Provider {
        weights: [f64; FEATURES],
        state: u64,
    }

    impl Provider {
        fn new(scale: f64) -> Self {
            let weights = Estimator::prior("qwen").as_array().map(|weight| weight * scale);
            Self { weights, state: 0x5EED }
        }

        fn draw(&mut self) -> f64 {
            self.state = self.state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (self.state >> 33) as f64 / f64::from(u32::MAX >> 1)
        }

        fn reported(&mut self, features: &Features) -> u64 {
            let noise = 0.97 + 0.06 * self.draw();
            (dot(&self.weights, &features.as_array()) * noise).round() as u64
        }
    }

    fn text(index: u64) -> Features {
        let (prose, han) = (400 + index * 173 % 900, index % 3 * 200);
        let counts = ClassCounts {
            latin: prose,
            digits: prose / 40,
            spaces: prose / 5,
            punctuation: prose / 30,
            cjk: han,
            runs: prose / 5,
            ..ClassCounts::default()
        };
        Features { counts, messages: 1 + index % 4, schema_chars: 0 }
    }

    #[test]
    fn the_priors_hold_until_the_third_response() {
        let mut fit = Calibration::new("qwen");
        assert_eq!(fit.estimator(), Estimator::prior("qwen"));
        let mut provider = Provider::new(1.0);
        for index in 0..3 {
            assert!(fit.estimator().fit.starts_with("prior/"));
            let features = text(index);
            fit.observe(&features, provider.reported(&features));
        }
        assert_eq!(fit.estimator().fit, "fit/qwen/3");
    }

    #[test]
    fn an_unknown_tokenizer_is_learned_from_what_is_reported() {
        for scale in [0.6, 1.0, 1.5] {
            let (mut fit, mut provider) = (Calibration::new("qwen"), Provider::new(scale));
            let (mut above, mut near) = (0, 0);
            for index in 0..120 {
                let features = text(index);
                let reported = provider.reported(&features);
                if index >= 20 {
                    let ratio = fit.estimator().of_features(&features) as f64 / reported as f64;
                    above += u32::from(ratio >= 1.0);
                    near += u32::from(ratio <= 1.15);
                }
                fit.observe(&features, reported);
            }
            assert!(above >= 97 && near >= 95, "{scale}: {above} above and {near} near of 100");
        }
    }

    #[test]
    fn a_report_of_nonsense_teaches_nothing() {
        let mut fit = Calibration::new("llama");
        let before = fit.clone();
        fit.observe(&text(1), 0);
        fit.observe(&text(1), 10_000_000);
        fit.observe(&Features::default(), 5);
        assert_eq!(fit, before);
    }

    #[test]
    fn weights_stay_in_their_bounds_whatever_is_reported() {
        let mut fit = Calibration::new("llama");
        for index in 0..500 {
            let features = text(index);
            let expected = Estimator::prior("llama").of_features(&features);
            fit.observe(&features, if index % 2 == 0 { expected * 4 } else { expected / 4 });
        }
        let prior = Estimator::prior("llama").as_array();
        for (weight, prior) in fit.weights.iter().zip(prior) {
            assert!(weight.is_finite() && (prior / BOUND..=prior * BOUND).contains(weight));
        }
        assert!(fit.covariance.iter().flatten().all(|cell| cell.is_finite()));
    }

    #[test]
    fn a_request_that_was_too_long_raises_the_estimate_above_the_window() {
        let mut fit = Calibration::new("llama");
        let features = text(4);
        let window = Estimator::prior("llama").of_features(&features);
        fit.was_too_long(&features, window);
        assert!(fit.estimator().of_features(&features) > window);
    }
}

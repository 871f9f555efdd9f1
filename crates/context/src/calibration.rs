//! The estimate, fitted to what a provider reports (spec: context §4).
//!
//! Each kind of text has a weight of its own, and learns only from requests in which it prevails: so a Russian letter does
//! not change what English costs, whatever order they come in. What is kept of a kind are the last ratios of what was
//! reported to what the prior said, and the highest of them counts, with a margin that shrinks as they become more:
//! texts of a kind differ little, and an estimate that is too low costs a request. Ratios beyond bounds are no count
//! of this request and teach nothing, so that a server that reports nonsense can do only so much.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::estimate::{Estimator, Features, UNFITTED, middle};
use crate::priors::Prior;
use crate::units::{KINDS, LATIN, name};

/// How much of a request's text must be of one kind for that kind to learn from it.
const PREVAILING: f64 = 0.8;
/// How much of a request messages and schemas, which are estimated always, may be for it to teach anything.
const AROUND: f64 = 0.5;
/// How much of their estimate messages and schemas have at least.
const AROUND_LEAST: f64 = 0.85;
/// How many ratios are kept of a kind.
const KEPT: usize = 8;
/// How far the weight of a kind is above its highest ratio, by how many there are.
const MARGINS: [f64; KEPT] = [0.20, 0.16, 0.12, 0.09, 0.07, 0.05, 0.04, 0.03];
/// The least ratio to the prior of a kind in Latin letters, and of a script: vocabularies that know a script have a tenth
/// of the tokens of those that spell it in bytes.
const LEAST: (f64, f64) = (0.25, 0.08);
/// The highest.
const MOST: f64 = 4.0;
/// Of a request that was too long, a kind is raised that has this share of it.
const TAKES_PART: f64 = 0.05;

/// What was learned of one model's tokenizer. Serializable; made anew from the priors if it is lost.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Calibration {
    family: String,
    responses: u32,
    /// Tokens reported to tokens of the prior, by kind, the newest last.
    ratios: BTreeMap<String, Vec<f64>>,
}

impl Calibration {
    /// Nothing learned yet of a tokenizer of this family.
    pub fn new(family: &str) -> Self {
        Self { family: family.to_owned(), responses: 0, ratios: BTreeMap::new() }
    }

    /// The family of the tokenizer it is about.
    pub fn family(&self) -> &str {
        &self.family
    }

    /// How many responses it has learned from.
    pub fn responses(&self) -> u32 {
        self.responses
    }

    /// Learns from a response: what the request held and the input tokens that were reported for it. The kind of text that
    /// prevails learns from it, if one does. A report that cannot be a count of this request is not learned from.
    pub fn observe(&mut self, features: &Features, reported: u64) {
        let prior = Prior::of(&self.family);
        let priors = middle(&prior);
        let weights = self.weights(&priors, 1.0);
        let tokens = |kind: usize| features.units[kind] * weights[kind];
        let text: f64 = (0..KINDS).map(tokens).sum();
        let messages = features.messages as f64 * prior.message;
        let around = messages + features.schema_chars as f64 * prior.schema;
        let Some(kind) = (0..KINDS).find(|kind| tokens(*kind) >= PREVAILING * text && text > 0.0) else {
            return;
        };
        if around * AROUND_LEAST > reported as f64 * AROUND {
            return;
        }
        let own = reported as f64 - around * AROUND_LEAST - (text - tokens(kind));
        let ratio = own / (features.units[kind] * priors[kind]);
        if (least(kind)..=MOST).contains(&ratio) {
            self.push(kind, ratio);
            self.responses = self.responses.saturating_add(1);
        }
    }

    /// The request was longer than its window although the estimate said it fits: the weights of what it held were too
    /// small.
    pub fn was_too_long(&mut self, features: &Features, window: u64) {
        let estimator = self.estimator();
        let expected = estimator.of_features(features);
        let factor = (window as f64 / (expected as f64).max(1.0)).clamp(1.0, 2.0) * 1.05;
        let priors = middle(&Prior::of(&self.family));
        for (kind, prior) in priors.iter().enumerate() {
            let tokens = features.units[kind] * estimator.weights[kind];
            if tokens < TAKES_PART * expected as f64 {
                continue;
            }
            let count = self.ratios.get(&name(kind)).map_or(0, Vec::len);
            let raised = estimator.weights[kind] * factor / prior / (1.0 + margin(count + 1));
            self.push(kind, raised.min(MOST));
        }
        self.responses = self.responses.saturating_add(1);
    }

    fn push(&mut self, kind: usize, ratio: f64) {
        let ratios = self.ratios.entry(name(kind)).or_default();
        ratios.push(ratio);
        let over = ratios.len().saturating_sub(KEPT);
        ratios.drain(..over);
    }

    /// Tokens a unit: what was learned, else the prior times `unfitted`.
    fn weights(&self, priors: &[f64; KINDS], unfitted: f64) -> [f64; KINDS] {
        let mut weights = *priors;
        for (kind, weight) in weights.iter_mut().enumerate() {
            let ratios = self.ratios.get(&name(kind)).map_or(&[][..], Vec::as_slice);
            let highest = ratios.iter().copied().filter(|ratio| ratio.is_finite()).reduce(f64::max);
            // A file may hold anything.
            *weight *= highest
                .map_or(unfitted, |ratio| ratio.clamp(least(kind), MOST) * (1.0 + margin(ratios.len())));
        }
        weights
    }

    /// The estimate as far as it is learned: the prior for every kind that has prevailed in no request.
    pub fn estimator(&self) -> Estimator {
        if self.ratios.is_empty() {
            return Estimator::prior(&self.family);
        }
        let prior = Prior::of(&self.family);
        let name = format!("fit/{}/{}", self.family, self.responses);
        Estimator::new(name, self.weights(&middle(&prior), UNFITTED), &prior)
    }
}

fn least(kind: usize) -> f64 {
    if kind < LATIN { LEAST.0 } else { LEAST.1 }
}

fn margin(count: usize) -> f64 {
    MARGINS[count.clamp(1, KEPT) - 1]
}

#[cfg(test)]
mod tests {
    use super::*;

    const ENGLISH: &str =
        "The rain had not stopped for three days, and the shuttle lay still in the hand of the weaver. ";
    const RUSSIAN: &str = "Дождь не прекращался три дня, и челнок неподвижно лежал в руке ткачихи у окна. ";

    fn text(text: &str, times: usize) -> Features {
        let mut features = Features { messages: 2, ..Features::default() };
        features.add(&text.repeat(times));
        features
    }

    fn reports(fit: &Calibration, features: &Features, times: f64) -> u64 {
        (Estimator::prior(fit.family()).of_features(features) as f64 * times) as u64
    }

    #[test]
    fn a_kind_learns_from_the_first_response_and_others_keep_their_prior() {
        let mut fit = Calibration::new("qwen");
        assert_eq!(fit.estimator(), Estimator::prior("qwen"));
        let (english, russian) = (text(ENGLISH, 9), text(RUSSIAN, 9));
        let before = fit.estimator().of_features(&russian);
        for learned in 1..=9 {
            fit.observe(&english, reports(&fit, &english, 0.5));
            assert_eq!(fit.estimator().fit, format!("fit/qwen/{learned}"));
        }
        let half = reports(&fit, &english, 0.5);
        let now = fit.estimator().of_features(&english);
        assert!((half..half * 115 / 100).contains(&now), "{now} of {half}");
        let after = fit.estimator().of_features(&russian);
        assert!(before >= after && after * 100 > before * 95, "{before} became {after}");
    }

    #[test]
    fn a_mixture_teaches_nothing() {
        let mut fit = Calibration::new("qwen");
        let mut both = text(ENGLISH, 9);
        both.add(&RUSSIAN.repeat(9));
        fit.observe(&both, reports(&fit, &both, 0.5));
        let schemas = Features { schema_chars: 40_000, ..text(ENGLISH, 9) };
        fit.observe(&schemas, reports(&fit, &schemas, 0.8));
        assert_eq!(fit, Calibration::new("qwen"));
    }

    #[test]
    fn a_report_of_nonsense_teaches_nothing() {
        let mut fit = Calibration::new("llama");
        let before = fit.clone();
        fit.observe(&text(ENGLISH, 9), 0);
        fit.observe(&text(ENGLISH, 9), 10_000_000);
        fit.observe(&Features::default(), 5);
        assert_eq!(fit, before);
    }

    #[test]
    fn weights_stay_in_their_bounds_whatever_is_reported() {
        let mut fit = Calibration::new("llama");
        let features = text(ENGLISH, 9);
        let expected = Estimator::prior("llama").of_features(&features);
        for index in 0..500 {
            fit.observe(&features, if index % 2 == 0 { expected * 3 } else { expected / 3 });
        }
        let now = fit.estimator().of_features(&features);
        assert!((expected..expected * 4).contains(&now));
        fit.ratios.insert(name(0), vec![f64::NAN, -3.0, 1e300]);
        assert!(fit.estimator().weights.iter().all(|weight| (0.001..100.0).contains(weight)));
    }

    #[test]
    fn a_request_that_was_too_long_raises_the_estimate_above_the_window() {
        let mut fit = Calibration::new("llama");
        let (features, russian) = (text(ENGLISH, 9), text(RUSSIAN, 9));
        let (window, before) =
            (fit.estimator().of_features(&features), fit.estimator().of_features(&russian));
        fit.was_too_long(&features, window);
        assert!(fit.estimator().of_features(&features) > window);
        assert!(fit.estimator().of_features(&russian) * 100 < before * 110, "it held none of that");
    }
}

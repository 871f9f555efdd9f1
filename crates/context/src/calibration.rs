//! The estimate, fitted to what a provider reports (spec: context §4).
//!
//! Each kind of text has a weight of its own, and learns only from requests in which it prevails: so a Russian letter does
//! not change what English costs, whatever order they come in. What is kept of a kind are the last ratios of what was
//! reported to what the prior said, and the highest of them counts, with a margin that shrinks as they become more:
//! texts of a kind differ little, and an estimate that is too low costs a request.
//!
//! A text may be taken for another kind than it is, and teaches that one. So no ratio counts by itself: the weight is at
//! most a step above the second highest, and the prior stands in for the second until there are two. One response moves
//! the estimate of a text by less than a tenth, unless another that is kept points the same way. The weight
//! depends on the ratios that are kept and not on their order. Ratios beyond bounds are no count of this request and
//! teach nothing, so that a server that reports nonsense can do only so much.

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
/// How far the weight of a kind is above its confirmed ratio (the highest, at most a step above the second), by how many
/// ratios there are.
const MARGINS: [f64; KEPT] = [0.20, 0.16, 0.12, 0.10, 0.08, 0.06, 0.05, 0.04];
/// How much farther that of a kind in Latin letters is: such texts differ more than those of one script.
const LATIN_MARGIN: f64 = 0.03;
/// How far one ratio, which no other confirms, moves the weight of a kind.
const STEP: f64 = 1.09;
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
    /// small. They are raised at once, as the same request would be refused again: the ratio stands twice and so confirms
    /// itself.
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
            let raised = estimator.weights[kind] * factor / prior / (1.0 + margin(kind, count + 2));
            self.push(kind, raised.min(MOST));
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
            // A file may hold anything.
            let finite = ratios.iter().filter(|ratio| ratio.is_finite());
            *weight *= factor(kind, finite.map(|ratio| ratio.clamp(least(kind), MOST)).collect(), unfitted);
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

/// The weight of a kind as a multiple of its prior: by these ratios, where nothing is confirmed `unfitted`.
fn factor(kind: usize, mut ratios: Vec<f64>, unfitted: f64) -> f64 {
    ratios.sort_by(|one, other| other.total_cmp(one));
    let upper = 1.0 + margin(kind, ratios.len());
    let confirmed = |first: f64, second: f64| first.min(second * STEP) * upper;
    match *ratios.as_slice() {
        [] => unfitted,
        [only] => (only * upper).clamp(unfitted / STEP, unfitted * STEP),
        // If they point to the two sides of the prior, it remains.
        [first, second] => unfitted.clamp(confirmed(first, second), first * upper),
        [first, second, ..] => confirmed(first, second),
    }
}

fn least(kind: usize) -> f64 {
    if kind < LATIN { LEAST.0 } else { LEAST.1 }
}

fn margin(kind: usize, count: usize) -> f64 {
    MARGINS[count.clamp(1, KEPT) - 1] + if kind < LATIN { LATIN_MARGIN } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

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

    #[test]
    fn a_kept_calibration_is_read_and_its_order_does_not_matter() {
        let read = |ratios: &str| -> Calibration {
            let json = format!(r#"{{"family":"qwen","responses":3,"ratios":{{"English":{ratios}}}}}"#);
            serde_json::from_str(&json).unwrap()
        };
        let fit = read("[0.9,0.8,1.4]");
        assert_eq!(serde_json::from_str::<Calibration>(&serde_json::to_string(&fit).unwrap()).unwrap(), fit);
        for ratios in ["[0.9,1.4,0.8]", "[1.4,0.8,0.9]", "[0.8,1.4,0.9]"] {
            assert_eq!(read(ratios).estimator(), fit.estimator());
        }
        let english = text(ENGLISH, 99);
        let times =
            fit.estimator().of_features(&english) as f64 / reports(&fit, &english, 1.0 / UNFITTED) as f64;
        assert!((times / (0.9 * STEP * (1.0 + margin(0, 3))) - 1.0).abs() < 0.01, "{times}");
    }

    /// A response in which one kind alone prevails, with this ratio to the prior.
    fn respond(fit: &mut Calibration, kind: usize, ratio: f64) {
        let mut features = Features::default();
        features.units[kind] = 1e6;
        let reported = middle(&Prior::of(&fit.family))[kind] * 1e6 * ratio;
        fit.observe(&features, reported as u64);
    }

    proptest! {
        #[test]
        fn one_response_moves_its_kind_by_less_than_a_tenth_unless_another_confirms_it(
            kind in 0..KINDS,
            before in prop_oneof![
                prop::collection::vec(0.05..4.2, 0..=10),
                (0.05..4.0, prop::collection::vec(0.95..1.05, 0..=10))
                    .prop_map(|(ratio, times): (f64, Vec<f64>)| times.iter().map(|times| ratio * times).collect()),
            ],
            ratio in 0.05..4.2,
        ) {
            let mut fit = Calibration::new("unknown");
            before.iter().for_each(|ratio| respond(&mut fit, kind, *ratio));
            let old = fit.estimator().weights;
            respond(&mut fit, kind, ratio);
            let new = fit.estimator().weights;
            for other in (0..KINDS).filter(|other| *other != kind) {
                prop_assert_eq!(old[other], new[other]);
            }
            let moved = new[kind] / old[kind];
            // What each of the ratios that are kept would have the weight be, the newest last.
            let ratios = fit.ratios.get(&name(kind)).cloned().unwrap_or_default();
            let upper = middle(&Prior::of("unknown"))[kind] * (1.0 + margin(kind, ratios.len()));
            let mut asked = ratios.iter().map(|ratio| ratio * upper > old[kind]);
            let newest = asked.next_back();
            let is_confirmed = asked.any(|up| Some(up) == newest);
            prop_assert!((0.9..1.1).contains(&moved) || is_confirmed && Some(moved > 1.0) == newest, "{}", moved);
        }
    }
}

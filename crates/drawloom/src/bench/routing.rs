//! How well cards are found: each layer of the router alone, all of them fused, and plain BM25, on labelled requests.
//!
//! A folder of data has three files of lines in JSON: `tools.jsonl` (`id`, `description`), `tool_queries.jsonl` (`query`,
//! `tool`) and `intents.jsonl` (`split`: `train`, `validation` or `out_of_scope`; `intent`, `query`). Of each tool and intent
//! ten utterances are the examples of its card, drawn anew for each of five seeds; what is asked are others.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Instant;

use capabilities::layers::{Bm25, Letters, Likeness};
use capabilities::{
    CARD_FOLDER, Card, CardFolder, CardSource, LoadingRules, Registry, Router, SelectionRules, SessionType,
    select,
};
use commands::CommandError;
use loom::Digest;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use workspace::{RelativePath, Root, StoreGuard};

use super::corpus::Corpus;
use super::harness::failed;
use super::metrics::ms;
use super::report::Report;
use super::scratch::Scratch;

const SEEDS: u64 = 5;
const EXAMPLES: usize = 10;

/// Part of the messages that a card is for that stays above the threshold of a rejection.
const KEPT: f64 = 0.95;

#[derive(Deserialize)]
struct Tool {
    id: String,
    description: String,
}

#[derive(Deserialize)]
struct ToolQuery {
    query: String,
    tool: String,
}

#[derive(Deserialize)]
struct Intent {
    split: String,
    intent: Option<String>,
    query: String,
}

/// Scores of all cards for each message.
type Scored = Vec<Vec<f64>>;

/// A way of scoring cards.
const WAYS: [&str; 5] = ["fused", "bm25", "letters", "likeness", "plain BM25"];

/// Measures everything.
///
/// # Errors
/// The data cannot be read.
pub(super) fn measure(report: &mut Report<'_>, scratch: &Scratch, data: &Path) -> Result<(), CommandError> {
    measure_tools(report, data)?;
    measure_intents(report, data)?;
    measure_times(report, scratch)
}

fn measure_tools(report: &mut Report<'_>, data: &Path) -> Result<(), CommandError> {
    let tools: Vec<Tool> = lines(&data.join("tools.jsonl"))?;
    let queries: Vec<ToolQuery> = lines(&data.join("tool_queries.jsonl"))?;
    let mut hits = [[0.0; 2]; WAYS.len()];
    for seed in 0..SEEDS {
        let mut of_tools: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for query in &queries {
            of_tools.entry(&query.tool).or_default().push(&query.query);
        }
        let (mut cards, mut asked) = (Vec::new(), Vec::new());
        let mut draw = Corpus::new(seed + 1);
        for tool in &tools {
            let mut utterances = of_tools.remove(tool.id.as_str()).unwrap_or_default();
            shuffle(&mut utterances, &mut draw);
            let rest = utterances.split_off(EXAMPLES.min(utterances.len()));
            asked.extend(rest.into_iter().map(|query| (query, cards.len())));
            cards.push(card(cards.len(), &tool.description, &utterances));
        }
        let messages: Vec<&str> = asked.iter().map(|(query, _)| *query).collect();
        for (way, scores) in scored(&cards, &messages).iter().enumerate() {
            for (most, sum) in [1, 5].into_iter().zip(&mut hits[way]) {
                *sum += share(scores.iter().zip(&asked), |(scores, (_, card))| rank(scores, *card) < most);
            }
        }
        report.note(&format!("tools, seed {seed}"));
    }
    for (way, [first, fifth]) in WAYS.iter().zip(hits) {
        let is_fused = *way == "fused";
        let cards = tools.len();
        for (most, sum, least) in [(1, first, 75.0), (5, fifth, 89.0)] {
            let name = format!("{cards} tools, {way}: the right card is among the first {most}");
            report.row(&name, 100.0 * sum / SEEDS as f64, "% found", is_fused.then_some(least));
        }
    }
    Ok(())
}

fn measure_intents(report: &mut Report<'_>, data: &Path) -> Result<(), CommandError> {
    let all: Vec<Intent> = lines(&data.join("intents.jsonl"))?;
    let mut sums = [[0.0; 4]; WAYS.len()];
    let (mut sent, mut wrongly_sent, mut error) = (0.0, 0.0, 0.0);
    let mut number = 0;
    for seed in 0..SEEDS {
        let mut draw = Corpus::new(seed + 1);
        let mut of_intents: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for line in all.iter().filter(|line| line.split == "train") {
            of_intents.entry(line.intent.as_deref().unwrap_or_default()).or_default().push(&line.query);
        }
        let (mut cards, mut index) = (Vec::new(), BTreeMap::new());
        for (intent, mut utterances) in of_intents {
            shuffle(&mut utterances, &mut draw);
            utterances.truncate(EXAMPLES);
            index.insert(intent, cards.len());
            cards.push(card(cards.len(), "", &utterances));
        }
        number = cards.len();
        let asked = all.iter().filter(|line| line.split == "validation");
        let mut wanted: Vec<(&str, usize)> = asked
            .filter_map(|line| Some((line.query.as_str(), *index.get(line.intent.as_deref()?)?)))
            .collect();
        let mut unwanted: Vec<&str> =
            all.iter().filter(|line| line.split == "out_of_scope").map(|line| line.query.as_str()).collect();
        shuffle(&mut wanted, &mut draw);
        shuffle(&mut unwanted, &mut draw);
        let messages: Vec<&str> =
            wanted.iter().map(|(query, _)| *query).chain(unwanted.iter().copied()).collect();
        for (way, scores) in scored(&cards, &messages).iter().enumerate() {
            let (of_wanted, of_unwanted) = scores.split_at(wanted.len());
            let best =
                |scores: &[Vec<f64>]| -> Vec<f64> { scores.iter().map(|scores| highest(scores)).collect() };
            let (best_wanted, best_unwanted) = (best(of_wanted), best(of_unwanted));
            let right = share(of_wanted.iter().zip(&wanted), |(scores, (_, card))| rank(scores, *card) == 0);
            let (kept, rejected) = rejection(&best_wanted, &best_unwanted);
            let found = [right, auroc(&best_wanted, &best_unwanted), kept, rejected];
            sums[way].iter_mut().zip(found).for_each(|(sum, found)| *sum += found);
            if way == 0 {
                sent += share(of_wanted.iter().zip(&wanted), |(scores, (_, card))| {
                    scores[*card] >= capabilities::DEFAULT_THRESHOLD
                });
                wrongly_sent += share(best_unwanted.iter(), |best| *best >= capabilities::DEFAULT_THRESHOLD);
                let told = of_wanted
                    .iter()
                    .zip(&wanted)
                    .map(|(scores, (_, card))| (highest(scores), rank(scores, *card) == 0));
                let told = told.chain(best_unwanted.iter().map(|best| (*best, false)));
                error += calibration_error(&told.collect::<Vec<_>>());
            }
        }
        report.note(&format!("intents, seed {seed}"));
    }
    let mean = |sum: f64| 100.0 * sum / SEEDS as f64;
    for (way, [right, area, kept, rejected]) in WAYS.iter().zip(sums) {
        let least = (*way == "fused").then_some(60.0);
        let name = |what: &str| format!("{number} intents, {way}: {what}");
        report.row(&name("the right card is the first"), mean(right), "% found", None);
        report.row(&name("area under the curve of wanted and unwanted"), mean(area), "% found", None);
        report.row(&name("kept by the threshold of the other half"), mean(kept), "% found", None);
        report.row(&name("out of scope and rejected by it"), mean(rejected), "% found", least);
    }
    let name = |what: &str| {
        format!("{number} intents, fused, threshold of {}: {what}", capabilities::DEFAULT_THRESHOLD)
    };
    report.row(&name("the right card is sent"), mean(sent), "% found", None);
    report.row(&name("out of scope and a card is sent"), mean(wrongly_sent), "%", Some(5.0));
    report.row(
        &format!("{number} intents, fused: calibration error of the first card"),
        mean(error),
        "%",
        Some(5.0),
    );
    Ok(())
}

/// Scores by each of [`WAYS`].
fn scored(cards: &[Card], messages: &[&str]) -> [Scored; WAYS.len()] {
    let router = Router::of(cards);
    let (bm25, letters, likeness) = (Bm25::of(cards), Letters::of(cards), Likeness::of(cards));
    let plain: Vec<Card> = cards
        .iter()
        .map(|card| Card {
            body: format!("{}\n{}", card.description, card.examples.join("\n")),
            description: String::new(),
            examples: Vec::new(),
            ..card.clone()
        })
        .collect();
    let plain = Bm25::of(&plain);
    let fused = |message: &&str| router.route(message).cards.iter().map(|card| card.score).collect();
    let all = |scores: &dyn Fn(&str) -> Vec<f64>| messages.iter().map(|message| scores(message)).collect();
    [
        messages.iter().map(fused).collect(),
        all(&|message| bm25.scores(message)),
        all(&|message| letters.scores(message)),
        all(&|message| likeness.scores(message)),
        all(&|message| plain.scores(message)),
    ]
}

fn measure_times(report: &mut Report<'_>, scratch: &Scratch) -> Result<(), CommandError> {
    let mut corpus = Corpus::new(1);
    let mut cards = Vec::new();
    for number in 0..200 {
        let examples: Vec<String> = (0..EXAMPLES).map(|_| words(&mut corpus, 60)).collect();
        let examples: Vec<&str> = examples.iter().map(String::as_str).collect();
        cards.push(card(number, &words(&mut corpus, 100), &examples));
    }
    let router = Router::of(&cards);
    let messages: Vec<String> = (0..200).map(|_| words(&mut corpus, 80)).collect();
    let begun = Instant::now();
    let routed: Vec<_> = messages.iter().map(|message| router.route(message)).collect();
    report.row("router, 200 cards with 10 examples", ms(begun.elapsed()) / 200.0, "ms", Some(1.0));
    let force: Vec<String> = cards.iter().take(3).map(|card| card.id.clone()).collect();
    let rules = SelectionRules {
        session_type: SessionType::Main,
        max_tokens: 1_500,
        force_include: &force,
        exclude: &[],
        tokens: &|text| text.len() as u64 / 4,
    };
    let begun = Instant::now();
    let sent: usize = routed.iter().map(|routing| select(&cards, routing, &rules).order.len()).sum();
    report.row("selection of 200 cards", ms(begun.elapsed()) / 200.0, "ms", Some(1.0));
    report.note(&format!("{sent} cards selected"));
    let repo = scratch.at("repo");
    let folder = repo.join(CARD_FOLDER);
    std::fs::create_dir_all(&folder).map_err(|error| CommandError::file("cannot make", &folder, &error))?;
    for number in 0..100 {
        let body = words(&mut corpus, 600);
        let text = format!(
            "---\ncapability_id: card-{number}\ntriggers:\n  keywords: [word{number}]\n---\n\n{body}\n"
        );
        let path = folder.join(format!("{number}.md"));
        std::fs::write(&path, text).map_err(|error| CommandError::file("cannot write", &path, &error))?;
    }
    let begun = Instant::now();
    let root = Root::open(&repo, &StoreGuard::new()).map_err(|error| failed("open a folder", error))?;
    let folder = RelativePath::parse(CARD_FOLDER).map_err(|error| failed("name a folder", error))?;
    let folder = CardFolder { source: CardSource::Repo, root: &root, folder };
    let read = Registry::read(&[folder], &LoadingRules { refuses: &|_| None }).cards.len();
    report.row(&format!("registry of {read} cards"), ms(begun.elapsed()), "ms", Some(100.0));
    Ok(())
}

/// Words of about so many bytes.
fn words(corpus: &mut Corpus, bytes: usize) -> String {
    let mut text = String::new();
    while text.len() < bytes {
        text += &corpus.token();
    }
    text
}

fn card(number: usize, description: &str, examples: &[&str]) -> Card {
    Card {
        id: format!("card-{number}"),
        name: String::new(),
        description: description.to_owned(),
        version: String::new(),
        tags: Vec::new(),
        keywords: Vec::new(),
        tools: Vec::new(),
        session_types: vec![SessionType::Main],
        threshold: capabilities::DEFAULT_THRESHOLD,
        examples: examples.iter().map(|&example| example.to_owned()).collect(),
        uses: Vec::new(),
        priority: 5,
        max_chars: capabilities::DEFAULT_MAX_CHARS,
        body: String::new(),
        digest: Digest::ZERO,
        source: CardSource::Repo,
        path: PathBuf::new(),
    }
}

fn lines<T: DeserializeOwned>(path: &Path) -> Result<Vec<T>, CommandError> {
    let text =
        std::fs::read_to_string(path).map_err(|error| CommandError::file("cannot read", path, &error))?;
    let read = |(number, line): (usize, &str)| {
        serde_json::from_str(line).map_err(|error| {
            let place = format!("{}:{}", path.display(), number + 1);
            CommandError::usage(format!("{place}: {error}"), "one object a line is wanted")
        })
    };
    text.lines().enumerate().map(read).collect()
}

fn shuffle<T>(items: &mut [T], draw: &mut Corpus) {
    for last in (1..items.len()).rev() {
        items.swap(last, draw.below(last + 1));
    }
}

fn share<T>(items: impl Iterator<Item = T>, is_so: impl Fn(T) -> bool) -> f64 {
    let (mut so, mut all) = (0.0_f64, 0.0_f64);
    for item in items {
        all += 1.0;
        so += f64::from(u8::from(is_so(item)));
    }
    so / all.max(1.0)
}

fn highest(scores: &[f64]) -> f64 {
    scores.iter().copied().fold(0.0, f64::max)
}

/// How many cards go before one: those with a higher score, and of those with the same one the earlier ones.
fn rank(scores: &[f64], card: usize) -> usize {
    let goes_before =
        |(other, score): (usize, &f64)| *score > scores[card] || (*score == scores[card] && other < card);
    scores.iter().enumerate().filter(|found| goes_before((found.0, found.1))).count()
}

/// How often a wanted message scores more than an unwanted one.
fn auroc(wanted: &[f64], unwanted: &[f64]) -> f64 {
    let mut sorted = unwanted.to_vec();
    sorted.sort_by(f64::total_cmp);
    let below = |score: &f64| {
        let less = sorted.partition_point(|other| other < score);
        let not_more = sorted.partition_point(|other| other <= score);
        (less + not_more) as f64 / 2.0
    };
    wanted.iter().map(below).sum::<f64>() / (wanted.len() * unwanted.len()).max(1) as f64
}

/// What of the second half is kept and rejected by the threshold that keeps [`KEPT`] of the first one.
fn rejection(wanted: &[f64], unwanted: &[f64]) -> (f64, f64) {
    let (tuned, measured) = wanted.split_at(wanted.len() / 2);
    let mut tuned = tuned.to_vec();
    tuned.sort_by(f64::total_cmp);
    let threshold = tuned.get((tuned.len() as f64 * (1.0 - KEPT)) as usize).copied().unwrap_or(0.0);
    let unwanted = &unwanted[unwanted.len() / 2..];
    (share(measured.iter(), |score| *score >= threshold), share(unwanted.iter(), |score| *score < threshold))
}

/// Mean difference of score and share of right ones, over ten bins of scores.
fn calibration_error(told: &[(f64, bool)]) -> f64 {
    let mut bins = [(0.0, 0.0); 10];
    for (score, is_right) in told {
        let bin = &mut bins[((score * 10.0) as usize).min(9)];
        *bin = (bin.0 + score, bin.1 + f64::from(u8::from(*is_right)));
    }
    bins.iter().map(|(score, right): &(f64, f64)| (score - right).abs()).sum::<f64>()
        / told.len().max(1) as f64
}

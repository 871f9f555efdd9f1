//! Scores of cards for a message: each layer alone, and fused.

use drawloom_capabilities::layers::{Bm25, Letters, Likeness, Phrases};
use drawloom_capabilities::{Card, Router};

use crate::{card, text};

fn cards() -> Vec<Card> {
    let of = |id: &str, keywords: &str, tags: &str, examples: &str, body: &str| {
        let frontmatter = format!(
            "capability_id: {id}\ntriggers:\n  keywords: [{keywords}]\n  router_tags: [{tags}]\nexamples: [{examples}]"
        );
        card(&text(&frontmatter, body))
    };
    vec![
        of(
            "kiln",
            "firing schedule, 窯",
            "deployment",
            "How hot does the kiln get?, When is the glaze fired?",
            "The kiln fires clay.",
        ),
        of(
            "loom",
            "warp, C++",
            "Token_Economy",
            "Thread the heddles of the loom, Wind a warp for me",
            "The loom weaves cloth.",
        ),
        of(
            "press",
            "linocut",
            "debug, integrations",
            "Print ten posters, Mix the ink for the press",
            "The press prints.",
        ),
    ]
}

#[test]
fn a_phrase_is_found_as_whole_words_whatever_their_case_accents_and_hidden_characters() {
    let cards = cards();
    let phrases = Phrases::of(&cards);
    let found = |message: &str| -> Vec<String> {
        phrases
            .find(message)
            .into_iter()
            .map(|found| format!("{} {}", cards[found.card].id, found.phrase))
            .collect()
    };
    assert_eq!(found("What is the FIRING\n schedule?"), ["kiln firing schedule"]);
    assert_eq!(found("a w\u{200B}a\u{301}rp and ﬁring schedule"), ["kiln firing schedule", "loom warp"]);
    assert_eq!(found("Warped, rewarp, firing of a schedule, fire schedules"), [""; 0]);
    assert_eq!(found("電気窯です"), ["kiln 窯"], "such words have no blanks between");
    assert_eq!(found("linocut-warp"), ["loom warp", "press linocut"], "both at once");
    assert_eq!(found("c"), ["loom C++"], "signs are not compared");
    assert_eq!(found(""), [""; 0]);
}

#[test]
fn more_words_say_more_and_a_shared_phrase_says_less() {
    let cards = cards();
    let one = Phrases::of(&cards).find("warp")[0].score;
    let two = Phrases::of(&cards).find("firing schedule")[0].score;
    let mut shared = cards.clone();
    shared[2].keywords.push("Warp".to_owned());
    let found = Phrases::of(&shared).find("warp");
    assert_eq!(found.len(), 2);
    assert!(two > one && one > found[0].score, "{two} {one} {found:?}");
    assert!(one >= 0.6 && found[0].score >= 0.6, "alone, and of two cards");
    let one_more = shared[1].clone();
    shared.extend(std::iter::repeat_n(one_more, 50));
    assert!(Phrases::of(&shared).find("warp")[0].score >= 0.6, "of fifty");
}

#[test]
fn each_layer_finds_the_card_that_the_words_are_of() {
    let cards = cards();
    let best = |scores: Vec<f64>| {
        assert!(scores.iter().all(|score| (0.0..=1.0).contains(score)), "{scores:?}");
        let best = scores.iter().enumerate().max_by(|one, other| one.1.total_cmp(other.1)).unwrap();
        (*best.1 > 0.0).then(|| cards[best.0].id.clone())
    };
    for (message, wanted) in
        [("how hot is it in there", "kiln"), ("thread these heddles", "loom"), ("posters with ink", "press")]
    {
        assert_eq!(best(Bm25::of(&cards).scores(message)).as_deref(), Some(wanted), "{message}");
        assert_eq!(best(Letters::of(&cards).scores(message)).as_deref(), Some(wanted), "{message}");
        assert_eq!(best(Likeness::of(&cards).scores(message)).as_deref(), Some(wanted), "{message}");
    }
    assert_eq!(best(Letters::of(&cards).scores("glazing")).as_deref(), Some("kiln"), "by a piece of `glaze`");
    assert_eq!(best(Bm25::of(&cards).scores("glazing")), None);
    assert_eq!(best(Likeness::of(&cards).scores("xylophone")), None);
}

#[test]
fn no_cards_and_no_words_have_no_scores() {
    let router = Router::of(&[]);
    assert_eq!(router.route("warp").cards, []);
    let cards = cards();
    let routing = Router::of(&cards).route("");
    assert!(routing.cards.iter().all(|card| card.score == 0.0), "{routing:?}");
}

#[test]
fn a_keyword_or_an_utterance_passes_the_threshold_and_small_talk_does_not() {
    let cards = cards();
    let router = Router::of(&cards);
    let sent = |message: &str| -> Vec<&str> {
        let routing = router.route(message);
        let scored = cards.iter().zip(routing.cards);
        scored.filter(|(card, scores)| scores.score >= card.threshold).map(|(card, _)| &*card.id).collect()
    };
    assert_eq!(sent("Does it matter which warp I take?"), ["loom"]);
    assert_eq!(sent("How hot will the kiln get today?"), ["kiln"]);
    for casual in [
        "Good morning!",
        "How are you today?",
        "Thanks, that was all.",
        "Guten Morgen, wie geht es dir?",
        "はい、ありがとう",
        "What is the weather like, and who won the game last night?",
    ] {
        assert_eq!(sent(casual), [""; 0], "{casual}");
    }
}

#[test]
fn tags_are_one_in_every_spelling_and_likely_by_a_name_or_by_a_card() {
    let cards = cards();
    let tags = |message: &str| -> Vec<(String, bool)> {
        let routing = Router::of(&cards).route(message);
        routing.tags.into_iter().map(|tag| (tag.tag, tag.confidence >= 0.6)).collect()
    };
    assert_eq!(tags("two deployments failed")[0], ("deployment".to_owned(), true));
    assert_eq!(tags("our token economy")[0], ("token-economy".to_owned(), true));
    assert_eq!(tags("the integration")[0], ("integration".to_owned(), true));
    assert_eq!(tags("configs")[0], ("config".to_owned(), true), "also without a card that has it");
    assert!(tags("a linocut").contains(&("debug".to_owned(), true)), "by its card");
    assert_eq!(tags("hello"), []);
}

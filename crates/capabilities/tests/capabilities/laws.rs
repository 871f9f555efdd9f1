//! Laws of cards, whatever their texts.

use drawloom_capabilities::{
    Card, Decision, LeftOut, Router, SelectionRules, SessionType, sanitised_body, select,
};
use proptest::prelude::*;

use crate::files::Repo;
use crate::{card, file};

/// A text of pieces that mean something to somebody.
fn bodies() -> impl Strategy<Value = String> {
    "([a-z .,!?\n`#|<>\\[\\]:漢é]|```|\n\n|<system>|<\\|im_start\\|>|System: |\\[INST\\]|\u{200b}|\u{202e}|e\u{301}|👩\u{200d}💻|<!--|-->|&#105;){0,80}"
}

fn with(body: &str, max_chars: usize) -> Card {
    Card { body: body.to_owned(), max_chars, ..card(&file("a", "warp")) }
}

/// Tokens as the shortest estimate has them.
fn tokens(text: &str) -> u64 {
    (text.chars().count() as u64).div_ceil(4)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn a_sanitised_body_stays_as_it_is_and_fits(body in bodies(), max_chars in 1_usize..120) {
        let card = with(&body, max_chars);
        let once = sanitised_body(&card);
        prop_assert!(once.text.chars().count() <= max_chars.max(body.chars().count()));
        if once.is_cut {
            prop_assert!(once.text.chars().count() <= max_chars, "{:?}", once);
        }
        let again = sanitised_body(&Card { body: once.text.clone(), max_chars: 10_000, ..card });
        prop_assert_eq!(again.text.trim(), once.text.trim());
    }

    #[test]
    fn a_body_grows_by_two_brackets_a_line_at_most_and_what_is_sent_by_its_frame(body in bodies()) {
        let lines = body.split(['\n', '\r', '\u{2028}', '\u{85}']).count();
        let card = with(&body, 10_000);
        let sanitised = sanitised_body(&card).text;
        prop_assert!(sanitised.len() <= body.len() + 2 * lines);
        let force = ["a".to_owned()];
        let rules = SelectionRules { max_tokens: u64::MAX, ..rules(&force, &[]) };
        let cards = [card];
        let sent = select(&cards, &Router::of(&cards).route(""), &rules).text;
        let longest = sanitised.split(|c| c != '`').map(str::len).max().unwrap_or(0);
        prop_assert!(sent.len() <= sanitised.len() + 2 * (longest + 3) + 200, "{}", sent);
    }

    #[test]
    fn what_is_sent_is_within_the_budget_and_exclude_goes_before_force(
        max_tokens in 0_u64..600,
        cards in prop::collection::vec((bodies(), 1_u8..=10, 0_usize..4), 0..8),
        message in "(warp|weft|hello| ){0,6}",
        force in prop::collection::vec(0_usize..8, 0..4),
        exclude in prop::collection::vec(0_usize..8, 0..4),
    ) {
        let cards: Vec<Card> = cards.iter().enumerate().map(|(index, (body, priority, keyword))| {
            let keyword = ["warp", "weft", "shed", "heddle"][*keyword];
            Card { body: body.clone(), priority: *priority, ..card(&file(&format!("c{index}"), keyword)) }
        }).collect();
        let named = |indices: Vec<usize>| indices.iter().map(|index| format!("c{index}")).collect::<Vec<_>>();
        let (force, exclude) = (named(force), named(exclude));
        let rules = SelectionRules { max_tokens, ..rules(&force, &exclude) };
        let router = Router::of(&cards);
        let selection = select(&cards, &router.route(&message), &rules);
        prop_assert!(tokens(&selection.text) <= max_tokens && selection.tokens == tokens(&selection.text));
        prop_assert_eq!(selection.order.is_empty(), selection.text.is_empty());
        for index in &selection.order {
            prop_assert!(!exclude.contains(&cards[*index].id));
        }
        for (card, decision) in cards.iter().zip(&selection.decisions) {
            prop_assert_eq!(*decision == Decision::LeftOut(LeftOut::Excluded), exclude.contains(&card.id));
        }
        prop_assert_eq!(select(&cards, &Router::of(&cards).route(&message), &rules), selection, "the same again");
    }

    #[test]
    fn every_score_is_a_likelihood(message in "(warp|weft|kiln|c3po|漢字|[a-z]{1,6}| |\u{301}){0,40}") {
        let cards = [card(&file("a", "warp")), card(&file("b", "kiln weft"))];
        for scores in Router::of(&cards).route(&message).cards {
            prop_assert!((0.0..=1.0).contains(&scores.score), "{:?}", scores);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn cards_are_the_same_in_whichever_order_their_files_were_made(
        order in Just((0..8_usize).collect::<Vec<_>>()).prop_shuffle(),
    ) {
        let made = |order: &[usize]| {
            let repo = Repo::new();
            for number in order {
                // Two files of each id.
                repo.put(&format!("f{number}.md"), &file(&format!("id-{}", number / 2), &format!("word{number}")));
            }
            let registry = repo.registry();
            (registry.cards, registry.refused)
        };
        prop_assert_eq!(made(&order), made(&(0..8).collect::<Vec<_>>()));
    }
}

fn rules<'a>(force_include: &'a [String], exclude: &'a [String]) -> SelectionRules<'a> {
    SelectionRules {
        session_type: SessionType::Main,
        max_tokens: 1_500,
        force_include,
        exclude,
        tokens: &tokens,
    }
}

//! Which cards are sent, and why others are not.

use drawloom_capabilities::{
    Card, CardSource, Decision, LeftOut, Router, Selection, SelectionRules, SessionType, select,
};

use crate::{BODY, card, file, text};

/// Tokens as the shortest estimate has them.
fn tokens(text: &str) -> u64 {
    (text.chars().count() as u64).div_ceil(4)
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

fn selected(cards: &[Card], message: &str, rules: &SelectionRules<'_>) -> Selection {
    select(cards, &Router::of(cards).route(message), rules)
}

fn ids(cards: &[Card], selection: &Selection) -> Vec<String> {
    selection.order.iter().map(|index| cards[*index].id.clone()).collect()
}

#[test]
fn nothing_is_sent_where_nothing_is_of_use() {
    let cards = [card(&file("a", "warp"))];
    let selection = selected(&cards, "hello", &rules(&[], &[]));
    assert_eq!((&*selection.text, selection.tokens), ("", 0));
    assert_eq!(selection.decisions, [Decision::LeftOut(LeftOut::Threshold)]);
}

#[test]
fn a_card_is_left_out_by_the_first_step_that_says_so() {
    let with = |id: &str, more: &str| {
        card(&text(&format!("capability_id: {id}\ntriggers:\n  keywords: [warp]\n{more}"), BODY))
    };
    let cards = [
        with("a", ""),
        with("b", "  session_types: [isolated]"),
        with("c", "  confidence_threshold: 1"),
        with("d", "max_chars: 2"),
    ];
    let exclude = ["a".to_owned()];
    let left_out = |rules: &SelectionRules<'_>| -> Vec<Option<LeftOut>> {
        let decisions = selected(&cards, "warp", rules).decisions.into_iter();
        decisions
            .map(|decision| match decision {
                Decision::LeftOut(why) => Some(why),
                Decision::Sent { .. } => None,
            })
            .collect()
    };
    use LeftOut::{Budget, Excluded, NothingFits, SessionType as OtherSession, Threshold};
    let found = left_out(&SelectionRules { max_tokens: 0, ..rules(&[], &exclude) });
    assert_eq!(found, [Excluded, OtherSession, Threshold, NothingFits].map(Some));
    let found = left_out(&SelectionRules { max_tokens: 0, ..rules(&[], &[]) });
    assert_eq!(found[0], Some(Budget));
    let isolated = SelectionRules { session_type: SessionType::Isolated, ..rules(&[], &[]) };
    assert_eq!(left_out(&isolated)[..2], [None, None]);
}

#[test]
fn exclude_goes_before_force_which_passes_over_score_and_session_and_nothing_else() {
    let isolated = text("capability_id: b\ntriggers:\n  keywords: [weft]\n  session_types: [isolated]", BODY);
    let cards = [card(&file("a", "warp")), card(&isolated)];
    let force = ["a".to_owned(), "b".to_owned()];
    let selection = selected(&cards, "hello", &rules(&force, &force[..1]));
    assert_eq!(ids(&cards, &selection), ["b"]);
    assert_eq!(selection.decisions[0], Decision::LeftOut(LeftOut::Excluded));
    let small = SelectionRules { max_tokens: 20, ..rules(&force, &[]) };
    assert_eq!(selected(&cards, "hello", &small).order, [0; 0], "the budget stays");
}

#[test]
fn what_is_forced_goes_first_then_what_scores_more_by_priority_then_by_id() {
    let with = |id: &str, keyword: &str, priority: u8| {
        card(&text(
            &format!("capability_id: {id}\npriority: {priority}\ntriggers:\n  keywords: [{keyword}]"),
            BODY,
        ))
    };
    let cards = [with("a", "warp", 5), with("b", "warp", 5), with("c", "warp", 9), with("d", "never", 1)];
    let force = ["d".to_owned()];
    assert_eq!(ids(&cards, &selected(&cards, "warp", &rules(&force, &[]))), ["d", "c", "a", "b"]);
}

#[test]
fn the_budget_holds_heading_and_frames_and_what_does_not_fit_ends_it() {
    let cards = [
        card(&file("a", "warp")),
        card(&file("b", "warp")),
        card(&text("capability_id: c\nexamples: [none]\ntriggers: {keywords: [warp]}", "Short.")),
    ];
    let all = selected(&cards, "warp", &rules(&[], &[]));
    assert_eq!(ids(&cards, &all).len(), 3);
    assert_eq!(all.tokens, tokens(&all.text));
    let exact = SelectionRules { max_tokens: all.tokens, ..rules(&[], &[]) };
    assert_eq!(selected(&cards, "warp", &exact).order.len(), 3);
    let one = SelectionRules { max_tokens: tokens(BODY) + 60, ..rules(&[], &[]) };
    let selection = selected(&cards, "warp", &one);
    assert_eq!((selection.order.len(), selection.tokens <= one.max_tokens), (1, true));
    assert_eq!(
        selection.decisions[2],
        Decision::LeftOut(LeftOut::Budget),
        "a card behind one that does not fit"
    );
}

#[test]
fn a_long_text_is_cut_with_a_mark_that_counts() {
    let long = card(&text("capability_id: a\nmax_chars: 60\ntriggers: {keywords: [warp]}", BODY));
    let body = drawloom_capabilities::sanitised_body(&long);
    assert!(body.is_cut && body.text.ends_with("\n[…]") && body.text.chars().count() <= 60, "{body:?}");
    let selection = selected(std::slice::from_ref(&long), "warp", &rules(&[], &[]));
    assert!(matches!(selection.decisions[0], Decision::Sent { is_cut: true, .. }));
}

#[test]
fn the_frame_names_id_and_hash_and_says_what_nobody_reviews() {
    let mut user = card(&file("a", "warp"));
    user.source = CardSource::User;
    let cards = [user, card(&file("b", "warp"))];
    let selection = selected(&cards, "warp", &rules(&[], &[]));
    let hash = cards[1].digest.to_string();
    assert!(selection.text.starts_with("# Capabilities\n"), "{}", selection.text);
    assert!(selection.text.contains("```text untrusted card a "), "{}", selection.text);
    assert!(selection.text.contains(&format!("```text card b {}\n", &hash[..12])), "{}", selection.text);
}

//! What is read of a card's file.

use drawloom_capabilities::{SessionType, template};

use crate::{BODY, card, file, found, read, text};

const WHOLE: &str = "capability_id: deploy-preview
name: Previews
description: Builds a branch.
version: 1.10
triggers:
  router_tags: [deployment]
  keywords: [preview, \"staging site\"]
  tools: [exec]
  session_types: [main]
  confidence_threshold: 0
examples: [\"Show me this branch.\"]
uses: [deploy_preview]
priority: 8
max_chars: 500";

#[test]
fn both_spellings_are_read_and_what_is_left_out_has_its_default() {
    let snake = card(&text(WHOLE, BODY));
    let camel = WHOLE
        .replace("router_tags", "routerTags")
        .replace("session_types", "sessionTypes")
        .replace("confidence_threshold", "confidenceThreshold")
        .replace("max_chars", "maxChars")
        .replace("capability_id", "capabilityId");
    let camel = card(&text(&camel, BODY));
    assert_eq!(drawloom_capabilities::Card { digest: snake.digest, ..camel }, snake);
    assert_eq!((&*snake.version, snake.threshold, snake.priority, snake.max_chars), ("1.10", 0.0, 8, 500));
    assert_eq!(
        (&snake.session_types[..], &snake.uses[..]),
        (&[SessionType::Main][..], &["deploy_preview".to_owned()][..])
    );
    let least = card(&file("least", "preview"));
    assert_eq!((&*least.name, &*least.description, least.threshold), ("least", "", 0.6));
    assert_eq!((least.priority, least.max_chars, least.session_types.len()), (5, 2_400, 2));
    assert_eq!(least.uses, ["deploy_preview"], "names in code spans of the body");
    let budget = card(&text("capability_id: a\ntoken_budget: 100\ntriggers: {keywords: [b]}", BODY));
    assert_eq!(budget.max_chars, 400);
}

#[test]
fn each_finding_has_the_line_of_its_key() {
    assert_eq!(found(&text(WHOLE, BODY)), []);
    let cases = [
        ("priority: 8", "priority: 11", (14, "wrong_value", true)),
        ("max_chars: 500", "token_budget: 2001", (15, "wrong_value", true)),
        ("confidence_threshold: 0", "confidenceThreshold: 1.1", (11, "wrong_value", true)),
        ("session_types: [main]", "session_types: [main, cron]", (10, "wrong_value", true)),
        ("preview, ", "\".*\", ", (8, "keyword_without_words", false)),
        ("version: 1.10", "colour: red", (5, "unknown_key", false)),
        ("  tools: [exec]", "  tool: [exec]", (9, "unknown_key", false)),
    ];
    for (old, new, (line, code, is_error)) in cases {
        assert_eq!(found(&text(&WHOLE.replace(old, new), BODY)), [(Some(line), code, is_error)], "{new}");
    }
    let short = text(WHOLE, "Short, with <|im_start|> in it.");
    assert_eq!(found(&short), [(Some(17), "body_length", false), (Some(18), "role_tag", false)]);
    assert_eq!(
        found(&text(WHOLE, "")),
        [(Some(17), "no_body", true)].map(|(_, code, is_error)| (None, code, is_error))
    );
    assert_eq!(found("no frontmatter"), [(Some(1), "no_frontmatter", true)]);
    assert_eq!(found("---\na: [\n---\n")[0].1, "unparsable");
}

#[test]
fn what_nothing_triggers_is_refused() {
    let without = |triggers: &str| found(&text(&format!("capability_id: a\ntriggers: {triggers}"), BODY));
    assert_eq!(without("{}"), [(Some(3), "no_trigger", true)]);
    assert_eq!(without("{keywords: []}"), [(Some(3), "no_trigger", true)]);
    for enough in ["{keywords: [], tools: [exec]}", "{routerTags: [debug]}", "{keywords: [a]}"] {
        assert_eq!(without(enough), [], "{enough}");
    }
    assert_eq!(found(&text("capability_id: a\nexamples: [do it]", BODY)), []);
}

#[test]
fn frontmatter_2_26_ids_have_one_form() {
    let long = "a".repeat(64);
    for id in ["a", "0", "a-b-0", long.as_str()] {
        assert_eq!(found(&file(id, "b")), [], "{id}");
    }
    let too_long = "a".repeat(65);
    for id in ["../a", "A", "\u{430}bc", "-a", "a_b", "a/b", "a.md", too_long.as_str()] {
        assert_eq!(found(&file(id, "b")), [(Some(2), "id_form", true)], "{id}");
    }
    assert_eq!(found(&text("triggers: {keywords: [a]}", BODY)), [(None, "no_id", true)]);
    assert_eq!(found(&text("name: a", BODY)), [(None, "no_id", true)], "one thing at a time");
}

#[test]
fn frontmatter_2_22_to_2_25_lists_and_numbers_have_their_bounds() {
    let of = |triggers: &str| found(&text(&format!("capability_id: a\ntriggers: {{{triggers}}}"), BODY));
    let many = |number: usize| (0..number).map(|number| format!("k{number}")).collect::<Vec<_>>().join(", ");
    assert_eq!(of(&format!("keywords: [{}]", many(200))), []);
    assert_eq!(of(&format!("keywords: [{}]", many(201)))[0].1, "wrong_value");
    assert_eq!(of("keywords: [a, \"  \"]")[0].1, "wrong_value");
    assert_eq!(of("keywords: [a], confidenceThreshold: -0.1")[0].1, "wrong_value");
    assert!(of("keywords: [a], confidenceThreshold: .nan").contains(&(Some(3), "wrong_value", true)));
    let examples = format!("capability_id: a\nexamples: [{}]", many(51));
    assert_eq!(found(&text(&examples, BODY))[0].1, "wrong_value");
}

#[test]
fn a_card_of_security_needs_a_word_of_its_owner_and_is_read_strictly() {
    assert_eq!(found(&file("security-rules", "secret")), [(Some(2), "needs_approval", true)]);
    let unknown = file("security-rules", "secret").replace("triggers:", "colour: red\ntriggers:");
    assert_eq!(found(&unknown), [(Some(2), "needs_approval", true), (Some(3), "unknown_key", true)]);
}

#[test]
fn a_new_card_is_valid_and_is_found_by_its_examples() {
    for (id, description) in [("deploy-preview", None), ("a", Some("Says \"hello\" \\ and\ngoes on."))] {
        let text = template(id, description).unwrap();
        assert_eq!(found(&text), [], "{text}");
        let card = read(&text).card.unwrap();
        assert_eq!((&*card.id, card.examples.len(), card.uses.len()), (id, 2, 0));
    }
    assert_eq!(template("../a", None), None);
}

use std::collections::HashSet;

use super::*;
use crate::quirks::{LeastEffort, ThinkingForm, ThinkingOff};

fn entry(provider: &str, name: &str) -> Entry {
    find(provider, name).unwrap_or_else(|| panic!("{provider}/{name} is not known")).entry
}

#[test]
fn the_longest_row_a_name_goes_on_from_counts() {
    let row = |provider, name| entry(provider, name).name;
    assert_eq!(row("openai", "gpt-5.1"), "gpt-5.1");
    assert_eq!(row("openai", "gpt-5.1-2025-11-13"), "gpt-5.1");
    assert_eq!(row("openai", "gpt-5-mini"), "gpt-5-mini");
    assert_eq!(row("anthropic", "claude-sonnet-4-5-20250929"), "claude-sonnet-4-5");
    assert_eq!(row("anthropic", "claude-opus-9"), "claude-");
    assert_eq!(row("gemini", "gemini-3.1-pro-preview"), "gemini-3.1-pro");
    assert_eq!(row("ollama", "qwen3:8b"), "qwen3");
    assert_eq!(row("ollama", "gemma3:1b"), "gemma3:1b");
    assert_eq!(row("box", "meta-llama/Llama-3.3-70B-Instruct"), "llama-3.3-");
    assert_eq!(row("anthropic", "claude-opus-5-6"), "claude-", "a new version is a new model");
    // A row does not stand for a longer number.
    assert_eq!(find("openai", "gpt-5.10"), None);
    assert_eq!(find("openai", "gpt-55"), None);
    assert_eq!(find("nobody", "nothing"), None);
}

#[test]
fn a_gateway_is_looked_through_and_only_openrouter_passes_prices_on() {
    let own = entry("anthropic", "claude-opus-4-5");
    let through = find("openrouter", "anthropic/claude-opus-4.5").unwrap();
    assert_eq!((through.entry, through.family, through.own), (own, "anthropic", false));
    assert_eq!(entry("openrouter", "openai/gpt-5.1").prices, entry("openai", "gpt-5.1").prices);
    let elsewhere = entry("somewhere", "openai/gpt-5.1");
    assert_eq!((elsewhere.window, elsewhere.prices), (400_000, None));
    assert_eq!(entry("openrouter", "openai/gpt-oss-20b:free").prices, None);
    assert_eq!(entry("openrouter", "openai/gpt-5.1:nitro").prices, None);
}

#[test]
fn a_price_that_is_not_known_is_none_and_not_zero() {
    assert_eq!(entry("openai", "gpt-5.4-pro").prices, None);
    // A variant may cost anything; a release costs what the model costs.
    assert_eq!(entry("google", "gemini-3.8-flash-lite").prices, None);
    assert!(entry("google", "gemini-3.8-flash-preview-09-2026").prices.is_some());
    for family in &CATALOGUE.families {
        for entry in &family.entries {
            let rates = entry.prices.map(|prices| prices.base);
            assert!(rates.is_none_or(|rates| rates.input > 0 && rates.output > 0), "{}", entry.name);
            // No token has ever cost a thousandth of a dollar.
            assert!(rates.is_none_or(|rates| rates.output < 1_000_000_000), "{}", entry.name);
        }
    }
    assert!(CATALOGUE.open.iter().all(|entry| entry.prices.is_none()), "weights have no price");
}

#[test]
fn every_row_is_sound() {
    let parsed: Catalogue = serde_json::from_str(include_str!("../../catalogue.json")).unwrap();
    assert_eq!(parsed.families.len(), 7);
    assert!(date() >= "2026-10", "{}", date());
    for family in &parsed.families {
        let usual = family.usual.map(|usual| longest(&family.entries, usual).unwrap());
        let priced = usual.is_none_or(|usual| usual.prices.is_some());
        assert!(priced, "{}: what is proposed has a price", family.provider);
    }
    for entries in parsed.families.iter().map(|family| &family.entries).chain([&parsed.open]) {
        let mut names = HashSet::new();
        for entry in entries {
            let name = entry.name;
            assert!(names.insert(name), "{name} stands twice");
            assert_eq!(name, name.to_ascii_lowercase());
            assert!(entry.output <= entry.window && entry.output > 0, "{name}");
            let (year, month) = entry.as_of.split_once('-').unwrap();
            assert!(
                year.parse::<u32>().unwrap() >= 2025 && (1..=12).contains(&month.parse::<u32>().unwrap()),
                "{name}"
            );
            if let Some(fast) = entry.fast {
                let found = longest(entries, fast).unwrap_or_else(|| panic!("{name}: no {fast}"));
                let price = |entry: &Entry| entry.prices.map(|prices| prices.base.output);
                if let (Some(own), Some(fast)) = (price(entry), price(&found)) {
                    // The small ones of one family may differ a little among each other.
                    assert!(fast <= own.max(5_000_000), "{name}: its fast model is dearer");
                }
            }
            if let Some(Prices { base, long: Some(long) }) = entry.prices {
                assert!(
                    long.rates.input > base.input && long.above < u64::from(entry.window.max(1_000_000)),
                    "{name}"
                );
            }
        }
    }
}

#[test]
fn a_bare_name_is_its_makers() {
    assert_eq!(makers("gpt-5.1"), ["openai"]);
    assert_eq!(makers("claude-opus-5-5"), ["anthropic"]);
    assert_eq!(makers("llama-3.3-70b-versatile"), ["groq"]);
    assert_eq!(makers("nothing"), [""; 0]);
}

#[test]
fn a_model_adds_its_own_wants_to_its_providers() {
    let provider = Quirks { thinking: ThinkingForm::ReasoningObject, ..Quirks::default() };
    let told = entry("openai", "gpt-5.1").quirks(provider);
    assert_eq!((told.thinking, told.sampling), (ThinkingForm::Effort, false));
    let left = entry("openai", "gpt-4o").quirks(provider);
    assert_eq!((left.thinking, left.sampling), (ThinkingForm::None, true), "it cannot be told");
    let plain = entry("deepseek", "deepseek-v4-pro").quirks(provider);
    assert_eq!(
        plain.thinking,
        ThinkingForm::ReasoningObject,
        "nothing else is known than what its provider wants"
    );
    // What the provider does not take at all, no model of it takes.
    assert!(!entry("openai", "gpt-4o").quirks(Quirks { sampling: false, ..provider }).sampling);
}

#[test]
fn models_of_one_provider_want_different_things() {
    let wants = |provider: &str, name: &str| entry(provider, name).wants;
    let claude = |name| wants("anthropic", name);
    assert_eq!(claude("claude-sonnet-4-5").thinking, Some(ThinkingForm::Budget));
    assert_eq!(claude("claude-sonnet-4-6").thinking, Some(ThinkingForm::Level));
    assert_eq!(claude("claude-sonnet-4-6").sampling, None);
    assert_eq!(claude("claude-sonnet-5").sampling, Some(false));
    assert_eq!(claude("claude-sonnet-5-5").thinking_off, Some(ThinkingOff::BetweenTools));
    assert_eq!(claude("claude-opus-5-5").thinking_always, Some(true));
    let bound = |name| claude(name).thinking_bound;
    assert_eq!((bound("claude-sonnet-5-5"), bound("claude-fable-5-1")), (Some(true), Some(true)));
    assert_eq!((bound("claude-opus-5"), bound("claude-fable-5")), (None, None));
    assert_eq!(
        (claude("claude-opus-4-7").instructions_inside, claude("claude-opus-4-8").instructions_inside),
        (None, Some(true))
    );
    assert_eq!(wants("openai", "gpt-5.1").least_effort, Some(LeastEffort::None));
    assert_eq!(wants("openai", "gpt-5-mini").least_effort, Some(LeastEffort::Minimal));
    assert_eq!(wants("openai", "gpt-5-pro").least_effort, Some(LeastEffort::High));
    assert_eq!(wants("openai", "o3").least_effort, None);
    let gemini = |name| wants("google", name);
    assert_eq!(gemini("gemini-3.5-flash").signature_stand_in, Some(true));
    assert_eq!(
        (gemini("gemini-3.1-pro").thinking_always, gemini("gemini-3-flash").thinking_always),
        (Some(true), None)
    );
    assert_eq!(
        (gemini("gemini-2.5-pro").thinking_always, gemini("gemini-2.5-flash").thinking_always),
        (Some(true), None)
    );
    assert_eq!(gemini("gemini-2.5-pro").signature_stand_in, None);
    assert_eq!(
        gemini("gemini-9-flash").media_in_results,
        Some(true),
        "what is not known yet is as the last are"
    );
}

#[test]
fn no_model_takes_a_beginning_of_its_answer_since_it_measures_its_thinking_itself() {
    let anthropic = family("anthropic").unwrap();
    for entry in anthropic.entries.iter().filter(|entry| entry.wants.thinking == Some(ThinkingForm::Level)) {
        assert!(!entry.abilities.prefill, "{}", entry.name);
    }
}

#[test]
fn a_model_is_the_same_by_every_route_and_under_every_date() {
    for (one, other) in [
        ("claude-opus-4-5", "anthropic/claude-opus-4.5"),
        ("claude-sonnet-4-5-20250929", "claude-sonnet-4-5"),
        ("claude-sonnet-4-5@20250929", "anthropic/claude-sonnet-4.5:beta"),
        ("gpt-5.1-2025-11-13", "openai/gpt-5.1"),
        ("openai/gpt-oss-120b", "gpt-oss-120b"),
        ("gemini-3.1-pro-preview", "google/gemini-3.1-pro"),
        ("meta-llama/llama-3.3-70b-instruct:free", "Llama-3.3-70B-Instruct"),
        ("maker/of-my-own", "of-my-own"),
    ] {
        assert!(is_same(one, other) && is_same(other, one), "{one} and {other}");
    }
    for (one, other) in [
        ("claude-opus-4-5", "claude-opus-4-6"),
        ("claude-opus-4", "claude-opus-4-5"),
        ("claude-2", "claude-3"),
        ("gpt-5", "gpt-5-mini"),
        ("gpt-5", "gpt-5.1"),
        ("qwen3:8b", "qwen3:32b"),
        ("llama-3.3-70b-instruct", "llama-3.3-70b-versatile"),
        ("one", "another"),
    ] {
        assert!(!is_same(one, other), "{one} and {other}");
    }
}

//! Models of providers, with their prices in US dollars. Facts of the providers' own pages, as of the month each row
//! names; where a page did not say, nothing is claimed.

use super::{Entry, Family, Tokenizer, Wants};
use crate::prices::{LongInput, Prices, Rates};
use crate::quirks::{InstructionRole, LeastEffort, ThinkingForm, ThinkingOff};

use Tokenizer::{Claude, Gemini, Llama, OpenaiCl100k, OpenaiO200k, Qwen, Unknown};

/// A rate of so many micro-dollars for a million tokens each: input, cache read, cache write, output.
const fn rates(input: u64, cache_read: u64, cache_write: u64, output: u64) -> Rates {
    Rates { input, cache_read, cache_write, output }
}

/// The same price at any length, where writing to the cache costs what input does.
const fn flat(input: u64, cache_read: u64, output: u64) -> Option<Prices> {
    Some(Prices::flat(rates(input, cache_read, input, output)))
}

/// Another price above a length of input.
const fn tiered(base: Rates, above: u64, rates: Rates) -> Option<Prices> {
    Some(Prices { base, long: Some(LongInput { above, rates }) })
}

/// What OpenAI's reasoning models want.
const REASONING: Wants =
    Wants { thinking: Some(ThinkingForm::Effort), sampling: Some(false), ..Wants::NOTHING };

/// OpenAI's reasoning models: no sampling, effort.
const fn gpt(
    name: &'static str,
    window: u32,
    output: u32,
    prices: Option<Prices>,
    as_of: &'static str,
) -> Entry {
    Entry {
        prices,
        images: true,
        wants: REASONING,
        n: true,
        fast: Some("gpt-5.4-nano"),
        ..Entry::plain(name, window, output, OpenaiO200k, as_of)
    }
}

/// The least effort a reasoning model knows, where it is not a low one.
const fn least(least_effort: LeastEffort, entry: Entry) -> Entry {
    Entry { wants: Wants { least_effort: Some(least_effort), ..entry.wants }, ..entry }
}

/// OpenAI's models without reasoning.
const fn gpt4(name: &'static str, window: u32, output: u32, prices: Option<Prices>) -> Entry {
    Entry {
        wants: Wants {
            thinking: Some(ThinkingForm::None),
            instructions: Some(InstructionRole::System),
            ..Wants::NOTHING
        },
        logprobs: true,
        fast: Some("gpt-4.1-nano"),
        ..gpt(name, window, output, prices, "2026-01")
    }
}

const OPENAI: &[Entry] = &[
    gpt(
        "gpt-6-astra",
        1_050_000,
        128_000,
        tiered(
            rates(10_000_000, 1_000_000, 12_500_000, 50_000_000),
            272_000,
            rates(20_000_000, 2_000_000, 25_000_000, 75_000_000),
        ),
        "2026-09",
    ),
    least(
        LeastEffort::None,
        gpt(
            "gpt-5.6",
            1_050_000,
            128_000,
            tiered(
                rates(2_000_000, 200_000, 2_500_000, 10_000_000),
                272_000,
                rates(4_000_000, 400_000, 5_000_000, 15_000_000),
            ),
            "2026-09",
        ),
    ),
    // Its own price changed since it came; it is not known for sure.
    least(LeastEffort::None, gpt("gpt-5.6-sol", 1_050_000, 128_000, None, "2026-09")),
    least(
        LeastEffort::None,
        gpt("gpt-5.6-terra", 1_050_000, 128_000, flat(2_500_000, 250_000, 15_000_000), "2026-07"),
    ),
    least(
        LeastEffort::None,
        gpt("gpt-5.6-luna", 1_050_000, 128_000, flat(1_000_000, 100_000, 6_000_000), "2026-07"),
    ),
    least(
        LeastEffort::None,
        gpt(
            "gpt-5.5",
            1_050_000,
            128_000,
            tiered(
                rates(5_000_000, 500_000, 5_000_000, 30_000_000),
                272_000,
                rates(10_000_000, 1_000_000, 10_000_000, 45_000_000),
            ),
            "2026-06",
        ),
    ),
    gpt("gpt-5.5-pro", 1_050_000, 128_000, flat(30_000_000, 30_000_000, 180_000_000), "2026-06"),
    least(
        LeastEffort::None,
        gpt(
            "gpt-5.4",
            1_050_000,
            128_000,
            tiered(
                rates(2_500_000, 250_000, 2_500_000, 15_000_000),
                272_000,
                rates(5_000_000, 500_000, 5_000_000, 22_500_000),
            ),
            "2026-03",
        ),
    ),
    gpt("gpt-5.4-mini", 400_000, 128_000, flat(750_000, 75_000, 4_500_000), "2026-03"),
    gpt("gpt-5.4-nano", 400_000, 128_000, flat(200_000, 20_000, 1_250_000), "2026-03"),
    gpt("gpt-5.4-pro", 1_050_000, 128_000, None, "2026-03"),
    gpt("gpt-5.3-codex", 400_000, 128_000, flat(1_750_000, 175_000, 14_000_000), "2026-02"),
    least(
        LeastEffort::None,
        gpt("gpt-5.2", 400_000, 128_000, flat(1_750_000, 175_000, 14_000_000), "2026-03"),
    ),
    gpt("gpt-5.2-pro", 400_000, 128_000, flat(21_000_000, 21_000_000, 168_000_000), "2026-03"),
    least(
        LeastEffort::None,
        gpt("gpt-5.1", 400_000, 128_000, flat(1_250_000, 125_000, 10_000_000), "2026-03"),
    ),
    gpt("gpt-5.1-codex", 400_000, 128_000, flat(1_250_000, 125_000, 10_000_000), "2025-12"),
    gpt("gpt-5.1-codex-mini", 400_000, 128_000, flat(250_000, 25_000, 2_000_000), "2025-12"),
    least(
        LeastEffort::Minimal,
        gpt("gpt-5", 400_000, 128_000, flat(1_250_000, 125_000, 10_000_000), "2026-03"),
    ),
    least(
        LeastEffort::Minimal,
        gpt("gpt-5-mini", 400_000, 128_000, flat(250_000, 25_000, 2_000_000), "2026-03"),
    ),
    least(LeastEffort::Minimal, gpt("gpt-5-nano", 400_000, 128_000, flat(50_000, 5_000, 400_000), "2026-03")),
    least(
        LeastEffort::High,
        gpt("gpt-5-pro", 400_000, 272_000, flat(15_000_000, 15_000_000, 120_000_000), "2026-03"),
    ),
    gpt("o3", 200_000, 100_000, flat(2_000_000, 500_000, 8_000_000), "2026-01"),
    gpt("o3-pro", 200_000, 100_000, flat(20_000_000, 20_000_000, 80_000_000), "2026-01"),
    gpt("o3-mini", 200_000, 100_000, flat(1_100_000, 550_000, 4_400_000), "2026-01"),
    gpt("o4-mini", 200_000, 100_000, flat(1_100_000, 275_000, 4_400_000), "2026-01"),
    gpt4("gpt-4.1", 1_047_576, 32_768, flat(2_000_000, 500_000, 8_000_000)),
    gpt4("gpt-4.1-mini", 1_047_576, 32_768, flat(400_000, 100_000, 1_600_000)),
    gpt4("gpt-4.1-nano", 1_047_576, 32_768, flat(100_000, 25_000, 400_000)),
    gpt4("gpt-4o", 128_000, 16_384, flat(2_500_000, 1_250_000, 10_000_000)),
    gpt4("gpt-4o-mini", 128_000, 16_384, flat(150_000, 75_000, 600_000)),
    Entry {
        tokenizer: OpenaiCl100k,
        ..gpt4("gpt-4-turbo", 128_000, 4_096, flat(10_000_000, 10_000_000, 30_000_000))
    },
    Entry {
        images: false,
        structured: false,
        tokenizer: OpenaiCl100k,
        ..gpt4("gpt-3.5-turbo", 16_385, 4_096, flat(500_000, 500_000, 1_500_000))
    },
];

/// Anthropic's models; writing to the cache for five minutes costs a quarter more.
const fn claude(
    name: &'static str,
    window: u32,
    output: u32,
    input: u64,
    out: u64,
    as_of: &'static str,
) -> Entry {
    Entry {
        prices: Some(Prices::flat(rates(input, input / 10, input + input / 4, out))),
        images: true,
        wants: Wants { thinking: Some(ThinkingForm::Budget), ..Wants::NOTHING },
        fast: Some("claude-haiku-4-5"),
        ..Entry::plain(name, window, output, Claude, as_of)
    }
}

/// What models want that measure their thinking themselves.
const ADAPTIVE: Wants =
    Wants { thinking: Some(ThinkingForm::Level), sampling: Some(false), ..Wants::NOTHING };
/// Those that think only where they are asked to, and refuse to be told not to.
const ON_DEMAND: Wants = Wants { thinking_off: Some(ThinkingOff::Unsaid), ..ADAPTIVE };
/// Those that cannot do without.
const ALWAYS: Wants = Wants { thinking_always: Some(true), ..ADAPTIVE };

/// Whose thinking is bound to the conversation it came from.
const fn bound(wants: Wants) -> Wants {
    Wants { thinking_bound: Some(true), ..wants }
}

/// With instructions inside a conversation.
const fn inside(wants: Wants) -> Wants {
    Wants { instructions_inside: Some(true), ..wants }
}

/// Those that measure their thinking themselves and take no beginning of their answer.
const fn adaptive(name: &'static str, wants: Wants, input: u64, out: u64, as_of: &'static str) -> Entry {
    Entry { wants, ..claude(name, 1_000_000, 128_000, input, out, as_of) }
}

/// With reading from the cache at a twentieth.
const fn cached_at(entry: Entry, cache_read: u64, input: u64, out: u64) -> Entry {
    Entry { prices: Some(Prices::flat(rates(input, cache_read, input + input / 4, out))), ..entry }
}

/// Sonnet 4 and 4.5: a longer window costs more.
const fn long_sonnet(name: &'static str) -> Entry {
    Entry {
        prices: tiered(
            rates(3_000_000, 300_000, 3_750_000, 15_000_000),
            200_000,
            rates(6_000_000, 600_000, 7_500_000, 22_500_000),
        ),
        prefill: true,
        ..claude(name, 200_000, 64_000, 3_000_000, 15_000_000, "2026-01")
    }
}

const ANTHROPIC: &[Entry] = &[
    cached_at(
        adaptive("claude-opus-5-5", bound(inside(ALWAYS)), 4_000_000, 20_000_000, "2026-10"),
        200_000,
        4_000_000,
        20_000_000,
    ),
    cached_at(
        adaptive(
            "claude-sonnet-5-5",
            bound(inside(Wants { thinking_off: Some(ThinkingOff::BetweenTools), ..ADAPTIVE })),
            2_000_000,
            10_000_000,
            "2026-10",
        ),
        100_000,
        2_000_000,
        10_000_000,
    ),
    Entry {
        prices: tiered(
            rates(100_000, 10_000, 125_000, 500_000),
            100_000,
            rates(500_000, 50_000, 625_000, 2_500_000),
        ),
        ..adaptive("claude-haiku-5-5", bound(inside(ADAPTIVE)), 0, 0, "2026-10")
    },
    adaptive("claude-fable-5-1", bound(ALWAYS), 10_000_000, 50_000_000, "2026-10"),
    adaptive("claude-fable-5", ALWAYS, 10_000_000, 50_000_000, "2026-06"),
    adaptive("claude-opus-5", ADAPTIVE, 5_000_000, 25_000_000, "2026-08"),
    adaptive("claude-sonnet-5", ADAPTIVE, 2_000_000, 10_000_000, "2026-06"),
    adaptive("claude-opus-4-8", inside(ON_DEMAND), 5_000_000, 25_000_000, "2026-05"),
    adaptive("claude-opus-4-7", ON_DEMAND, 5_000_000, 25_000_000, "2026-05"),
    adaptive("claude-opus-4-6", Wants { sampling: None, ..ON_DEMAND }, 5_000_000, 25_000_000, "2026-03"),
    adaptive("claude-sonnet-4-6", Wants { sampling: None, ..ON_DEMAND }, 3_000_000, 15_000_000, "2026-03"),
    Entry { prefill: true, ..claude("claude-opus-4-5", 200_000, 64_000, 5_000_000, 25_000_000, "2026-03") },
    long_sonnet("claude-sonnet-4-5"),
    Entry { prefill: true, ..claude("claude-haiku-4-5", 200_000, 64_000, 1_000_000, 5_000_000, "2026-10") },
    Entry { prefill: true, ..claude("claude-opus-4-1", 200_000, 32_000, 15_000_000, 75_000_000, "2026-01") },
    Entry { prefill: true, ..claude("claude-opus-4", 200_000, 32_000, 15_000_000, 75_000_000, "2026-01") },
    long_sonnet("claude-sonnet-4"),
    Entry { prefill: true, ..claude("claude-3-7-sonnet", 200_000, 64_000, 3_000_000, 15_000_000, "2026-01") },
    Entry {
        prefill: true,
        wants: Wants { thinking: Some(ThinkingForm::None), ..Wants::NOTHING },
        structured: false,
        ..claude("claude-3-5-haiku", 200_000, 8_192, 800_000, 4_000_000, "2026-01")
    },
    // A family whose names go on; of new members nothing is known but what the last of them have in common.
    Entry { prices: None, wants: ON_DEMAND, ..claude("claude-", 200_000, 32_000, 0, 0, "2026-10") },
];

/// What Gemini 3 and later want.
const GEMINI_3: Wants = Wants {
    thinking: Some(ThinkingForm::Level),
    signature_stand_in: Some(true),
    media_in_results: Some(true),
    ..Wants::NOTHING
};
/// Those of them that cannot do without thinking.
const GEMINI_3_THINKS: Wants = Wants { thinking_always: Some(true), ..GEMINI_3 };

/// A model of Gemini 3 or later that cannot do without thinking.
const fn thinks(entry: Entry) -> Entry {
    Entry { wants: GEMINI_3_THINKS, ..entry }
}

/// Google's models: all of them see and hear.
const fn gemini(name: &'static str, prices: Option<Prices>, as_of: &'static str) -> Entry {
    Entry {
        prices,
        images: true,
        audio: true,
        wants: GEMINI_3,
        n: true,
        fast: Some("gemini-3.1-flash-lite"),
        ..Entry::plain(name, 1_048_576, 65_536, Gemini, as_of)
    }
}

const GOOGLE: &[Entry] = &[
    // From 2027 on it is twice this.
    thinks(gemini("gemini-3.8-flash", flat(750_000, 75_000, 3_750_000), "2026-09")),
    gemini("gemini-3.5-flash", flat(1_500_000, 150_000, 9_000_000), "2026-05"),
    thinks(gemini(
        "gemini-3.1-pro",
        tiered(
            rates(2_000_000, 200_000, 2_000_000, 12_000_000),
            200_000,
            rates(4_000_000, 400_000, 4_000_000, 18_000_000),
        ),
        "2026-05",
    )),
    gemini("gemini-3.1-flash-lite", flat(250_000, 25_000, 1_500_000), "2026-05"),
    thinks(gemini(
        "gemini-3-pro",
        tiered(
            rates(2_000_000, 200_000, 2_000_000, 12_000_000),
            200_000,
            rates(4_000_000, 400_000, 4_000_000, 18_000_000),
        ),
        "2025-12",
    )),
    gemini("gemini-3-flash", flat(500_000, 50_000, 3_000_000), "2025-12"),
    Entry {
        wants: Wants { thinking: Some(ThinkingForm::Budget), thinking_always: Some(true), ..Wants::NOTHING },
        ..gemini(
            "gemini-2.5-pro",
            tiered(
                rates(1_250_000, 125_000, 1_250_000, 10_000_000),
                200_000,
                rates(2_500_000, 250_000, 2_500_000, 15_000_000),
            ),
            "2026-01",
        )
    },
    Entry {
        wants: Wants { thinking: Some(ThinkingForm::Budget), ..Wants::NOTHING },
        ..gemini("gemini-2.5-flash", flat(300_000, 30_000, 2_500_000), "2026-01")
    },
    Entry {
        wants: Wants { thinking: Some(ThinkingForm::Budget), ..Wants::NOTHING },
        ..gemini("gemini-2.5-flash-lite", flat(100_000, 10_000, 400_000), "2026-01")
    },
    Entry {
        output: 8_192,
        wants: Wants { thinking: Some(ThinkingForm::None), ..Wants::NOTHING },
        ..gemini("gemini-2.0-flash", flat(100_000, 25_000, 400_000), "2026-01")
    },
    thinks(gemini("gemini-", None, "2026-10")),
];

const fn deepseek(name: &'static str, output: u32, prices: Option<Prices>, as_of: &'static str) -> Entry {
    Entry {
        prices,
        prefill: true,
        logprobs: true,
        fast: Some("deepseek-flash"),
        ..Entry::plain(name, 1_000_000, output, Unknown, as_of)
    }
}

const DEEPSEEK: &[Entry] = &[
    // The dearer of the two prices of a day.
    deepseek("deepseek-v4-pro", 384_000, flat(1_320_000, 44_000, 3_960_000), "2026-08"),
    Entry { images: true, ..deepseek("deepseek-flash", 384_000, flat(300_000, 6_000, 1_200_000), "2026-09") },
    Entry {
        images: true,
        ..deepseek("deepseek-v4-flash", 384_000, flat(300_000, 6_000, 1_200_000), "2026-09")
    },
    // Names that stand for whatever is newest: what they cost changes with it.
    deepseek("deepseek-chat", 8_192, None, "2026-02"),
    deepseek("deepseek-reasoner", 65_536, None, "2026-02"),
];

const fn mistral(name: &'static str, window: u32, prices: Option<Prices>, as_of: &'static str) -> Entry {
    Entry {
        prices,
        images: true,
        prefill: true,
        n: true,
        fast: Some("mistral-small-latest"),
        ..Entry::plain(name, window, 32_768, Unknown, as_of)
    }
}

const MISTRAL: &[Entry] = &[
    mistral("mistral-large-4", 262_144, flat(1_360_000, 140_000, 4_180_000), "2026-10"),
    mistral("mistral-large-2512", 262_144, flat(500_000, 500_000, 1_500_000), "2025-12"),
    mistral("mistral-large-latest", 262_144, None, "2026-10"),
    mistral("mistral-medium-3.5", 262_144, flat(1_500_000, 1_500_000, 7_500_000), "2026-08"),
    mistral("mistral-medium-2604", 262_144, flat(1_500_000, 1_500_000, 7_500_000), "2026-08"),
    mistral("mistral-medium-2508", 131_072, flat(400_000, 400_000, 2_000_000), "2026-01"),
    mistral("mistral-medium-latest", 131_072, None, "2026-10"),
    mistral("mistral-small-2506", 128_000, flat(100_000, 100_000, 300_000), "2026-01"),
    mistral("mistral-small-latest", 128_000, None, "2026-10"),
    Entry { images: false, ..mistral("codestral-", 256_000, flat(300_000, 300_000, 900_000), "2026-01") },
    mistral("mistral-", 131_072, None, "2026-10"),
    mistral("ministral-", 131_072, None, "2026-10"),
    mistral("magistral-", 131_072, None, "2026-10"),
    Entry { images: false, ..mistral("devstral-", 131_072, None, "2026-10") },
];

const fn grok(
    name: &'static str,
    window: u32,
    output: u32,
    prices: Option<Prices>,
    as_of: &'static str,
) -> Entry {
    Entry { prices, images: true, n: true, ..Entry::plain(name, window, output, Unknown, as_of) }
}

const XAI: &[Entry] = &[
    grok(
        "grok-4.7",
        500_000,
        64_000,
        tiered(
            rates(2_000_000, 500_000, 2_000_000, 6_000_000),
            200_000,
            rates(4_000_000, 1_000_000, 4_000_000, 12_000_000),
        ),
        "2026-09",
    ),
    grok(
        "grok-4.5",
        500_000,
        64_000,
        tiered(
            rates(2_000_000, 500_000, 2_000_000, 6_000_000),
            200_000,
            rates(4_000_000, 1_000_000, 4_000_000, 12_000_000),
        ),
        "2026-07",
    ),
    grok(
        "grok-4.3",
        1_000_000,
        30_000,
        tiered(
            rates(1_250_000, 200_000, 1_250_000, 2_500_000),
            200_000,
            rates(2_500_000, 400_000, 2_500_000, 5_000_000),
        ),
        "2026-05",
    ),
    grok("grok-4-1-fast", 2_000_000, 30_000, flat(200_000, 50_000, 500_000), "2026-01"),
    grok("grok-4-fast", 2_000_000, 30_000, flat(200_000, 50_000, 500_000), "2026-01"),
    grok("grok-4", 256_000, 64_000, flat(3_000_000, 750_000, 15_000_000), "2026-01"),
    Entry {
        images: false,
        ..grok("grok-code-fast-1", 256_000, 10_000, flat(200_000, 20_000, 1_500_000), "2026-01")
    },
    grok("grok-", 131_072, 16_384, None, "2026-10"),
];

const fn groq(
    name: &'static str,
    output: u32,
    tokenizer: Tokenizer,
    prices: Option<Prices>,
    as_of: &'static str,
) -> Entry {
    Entry {
        prices,
        wants: Wants { thinking: Some(ThinkingForm::None), ..Wants::NOTHING },
        fast: Some("llama-3.1-8b-instant"),
        ..Entry::plain(name, 131_072, output, tokenizer, as_of)
    }
}

const GROQ: &[Entry] = &[
    Entry {
        wants: Wants { thinking: Some(ThinkingForm::Effort), ..Wants::NOTHING },
        ..groq("openai/gpt-oss-120b", 65_536, OpenaiO200k, flat(150_000, 75_000, 600_000), "2026-05")
    },
    Entry {
        wants: Wants { thinking: Some(ThinkingForm::Effort), ..Wants::NOTHING },
        ..groq("openai/gpt-oss-20b", 65_536, OpenaiO200k, flat(75_000, 37_500, 300_000), "2026-05")
    },
    groq("llama-3.3-70b-versatile", 32_768, Llama, flat(590_000, 590_000, 790_000), "2026-01"),
    groq("llama-3.1-8b-instant", 131_072, Llama, flat(50_000, 50_000, 80_000), "2026-01"),
    groq("qwen/qwen3-32b", 40_960, Qwen, flat(290_000, 290_000, 590_000), "2026-01"),
    Entry {
        images: true,
        ..groq("qwen/qwen3.8-27b", 16_384, Qwen, flat(800_000, 400_000, 4_000_000), "2026-08")
    },
];

/// The providers whose models are known.
pub(super) const FAMILIES: &[Family] = &[
    Family { provider: "openai", also: &["azure"], usual: Some("gpt-5.6"), entries: OPENAI },
    Family { provider: "anthropic", also: &["claude"], usual: Some("claude-sonnet-5-5"), entries: ANTHROPIC },
    Family { provider: "google", also: &["gemini"], usual: Some("gemini-3.8-flash"), entries: GOOGLE },
    Family { provider: "deepseek", also: &[], usual: Some("deepseek-flash"), entries: DEEPSEEK },
    Family { provider: "mistral", also: &["mistralai"], usual: Some("mistral-medium-3.5"), entries: MISTRAL },
    Family { provider: "xai", also: &["x-ai", "grok"], usual: Some("grok-4.7"), entries: XAI },
    Family { provider: "groq", also: &[], usual: Some("openai/gpt-oss-120b"), entries: GROQ },
];

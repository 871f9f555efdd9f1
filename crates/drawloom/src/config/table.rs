//! Every key there is. The reference in `docs/configuration.md`, `config show --defaults`, the check of files
//! and the suggestion for a misspelt key are all made of this table (spec: cli §5).

use loom::plan::MAX_NODE_BYTES;
use toml::Value;

use super::key::{ANY, Key, Kind, toml_value};

use Kind::{Address, Bytes, Choice, Flag, Number, Text, Texts, Variable, Whole};

const TOKENS: Kind = Whole(1, u32::MAX as i64);
const SECONDS: Kind = Whole(1, 86_400);
const DOLLARS: Kind = Number(0.0, 1_000_000.0);
const PRICE: Kind = Number(0.0, 100_000.0);
const THINKING: Kind = Choice(&[
    "none",
    "effort",
    "reasoning_object",
    "template_switch",
    "budget",
    "level",
    "switch_and_effort",
]);
const A_MILLION: &str = "dollars a million tokens";

/// The table, by section.
pub(crate) const KEYS: &[Key] = &[
    Key::new(
        "model.default",
        Text,
        "The model used when none is named: PROVIDER/NAME, smollm2, script:FILE or an address.",
    ),
    Key::new(
        "model.auto_pull",
        Flag,
        "Whether a model that is named but not here may be downloaded unasked.",
    )
    .or("false"),
    Key::new(
        "model.fallbacks",
        Texts,
        "Models asked in this order when one cannot be reached, is overloaded, or its quota is spent: PROVIDER/NAME.",
    )
    .or("[]"),
    Key::new(
        "model.fallback_remote",
        Flag,
        "Whether a remote model of `fallbacks` may take over from a local one.",
    )
    .or("false"),
    Key::new(
        "model.replay",
        Texts,
        "Remote models that `context replay` may send to what went to this machine or to another provider: PROVIDER/NAME.",
    )
    .or("[]"),
    Key::new(
        "model.think",
        Choice(&["off", "low", "high"]),
        "How much models think before they answer, unless --think, /think or a preset says otherwise.",
    ),
    Key::new(
        "providers.NAME.base_url",
        Address,
        "Address of the server, with or without its version. Needed, unless the provider is known by its name or kind.",
    ),
    Key::new("providers.NAME.kind", Text, "The known provider whose ways the server has, as vllm or openai."),
    Key::new(
        "providers.NAME.dialect",
        Choice(&["openai_chat", "openai_responses", "anthropic_messages", "gemini"]),
        "What the server speaks; without it what its kind speaks, else openai_chat.",
    ),
    Key::new(
        "providers.NAME.place",
        Choice(&["local", "remote"]),
        "Whether text sent there stays on machines of yours; without it only loopback addresses are local.",
    ),
    Key::new("providers.NAME.key_env", Variable, "The environment variable that holds the key."),
    Key::new("providers.NAME.key", Text, "The key. It is kept in keys.toml.").secret(),
    Key::new("providers.NAME.insecure_http", Flag, "Allow plain http to a public host.").or("false"),
    Key::new(
        "providers.NAME.proxy",
        Address,
        "A proxy to go through; those of the environment are not used.",
    ),
    Key::new("providers.NAME.window", TOKENS, "Window of its models, instead of what the catalogue says.")
        .in_unit("tokens"),
    Key::new("providers.NAME.output_limit", TOKENS, "Longest answer of its models.").in_unit("tokens"),
    Key::new("providers.NAME.honours_n", Flag, "Whether one request gives several choices."),
    Key::new(
        "providers.NAME.prefill",
        Flag,
        "Whether its models continue a given beginning of their answer.",
    ),
    Key::new(
        "providers.NAME.prefill_form",
        Choice(&["trailing", "continue_final_message", "prefix_flag"]),
        "How they are told to: by a trailing message alone (llama.cpp), by a field of the request (vLLM), or by one of \
         the message (DeepSeek, Mistral).",
    ),
    Key::new("providers.NAME.logprobs", Flag, "Whether it gives log-probabilities when asked."),
    Key::new("providers.NAME.completion_endpoint", Flag, "Whether it continues raw text."),
    Key::new("providers.NAME.tools", Flag, "Whether its models can call tools."),
    Key::new("providers.NAME.images", Flag, "Whether its models take pictures."),
    Key::new(
        "providers.NAME.limit_field",
        Choice(&["max_tokens", "max_completion_tokens"]),
        "What the limit of an answer is called in a request.",
    ),
    Key::new(
        "providers.NAME.thinking_form",
        THINKING,
        "How its models are told how much to think; `none` if they cannot be told.",
    ),
    Key::new("providers.NAME.connect_timeout", SECONDS, "How long a connection may take.")
        .or("5")
        .in_unit("s"),
    Key::new("providers.NAME.first_byte_timeout", SECONDS, "How long a model may read before it answers.")
        .or("120")
        .in_unit("s"),
    Key::new("providers.NAME.idle_timeout", SECONDS, "How long an answer may pause.").or("60").in_unit("s"),
    Key::new("models.MODEL.window", TOKENS, "Its window.").in_unit("tokens"),
    Key::new("models.MODEL.output_limit", TOKENS, "Its longest answer.").in_unit("tokens"),
    Key::new("models.MODEL.price_input", PRICE, "What input costs that came from no cache.").in_unit(A_MILLION),
    Key::new("models.MODEL.price_output", PRICE, "What output costs.").in_unit(A_MILLION),
    Key::new("models.MODEL.price_cache_read", PRICE, "What input from the cache costs; as input without it.")
        .in_unit(A_MILLION),
    Key::new("models.MODEL.price_cache_write", PRICE, "What writing to the cache costs; as input without it.")
        .in_unit(A_MILLION),
    Key::new("models.MODEL.tools", Flag, "Whether it can call tools."),
    Key::new("models.MODEL.images", Flag, "Whether it takes pictures."),
    Key::new("models.MODEL.audio", Flag, "Whether it takes sound."),
    Key::new("models.MODEL.structured", Flag, "Whether it keeps to a schema."),
    Key::new("models.MODEL.prefill", Flag, "Whether it continues a given beginning of its answer."),
    Key::new("models.MODEL.honours_n", Flag, "Whether one request gives several choices."),
    Key::new("models.MODEL.logprobs", Flag, "Whether it gives log-probabilities when asked."),
    Key::new("models.MODEL.completion_endpoint", Flag, "Whether it continues raw text."),
    Key::new("models.MODEL.fast", Text, "The cheap model of the same provider for small work."),
    Key::new(
        "models.MODEL.tokenizer",
        Choice(&["openai_o200k", "openai_cl100k", "llama", "qwen", "claude", "gemini", "smollm", "unknown"]),
        "How it cuts text into tokens, for estimates.",
    ),
    Key::new(
        "models.MODEL.thinking_form",
        THINKING,
        "How it is told how much to think; `none` if it cannot be told.",
    ),
    Key::new("presets.NAME.model", Text, "The model; the default one without it."),
    Key::new("presets.NAME.n", Whole(1, 64), "Siblings.").in_unit("nodes"),
    Key::new("presets.NAME.temperature", Number(0.0, 5.0), "Sampling temperature."),
    Key::new("presets.NAME.top_p", Number(0.0, 1.0), "Nucleus sampling."),
    Key::new("presets.NAME.min_p", Number(0.0, 1.0), "Least probability, relative to the likeliest token."),
    Key::new("presets.NAME.max_tokens", TOKENS, "Tokens an answer may have; in a document 96, unless the model can be told how much to think.").in_unit("tokens"),
    Key::new("presets.NAME.stop", Texts, "Texts to stop at; also `sentence` and `paragraph`.").or("[]"),
    Key::new("presets.NAME.seed", Whole(i64::MIN, i64::MAX), "Seed of the sampling."),
    Key::new("presets.NAME.logprobs", Whole(0, 20), "Alternatives a token to keep probabilities of."),
    Key::new(
        "presets.NAME.think",
        Choice(&["off", "low", "high"]),
        "How much the model thinks before it answers.",
    ),
    Key::new("agents.NAME.model", Text, "The model of this agent; the default one without it."),
    Key::new("agents.NAME.n", Whole(1, 64), "Siblings it adds.").in_unit("nodes"),
    Key::new("agents.NAME.preset", Text, "The preset by which it is asked."),
    Key::new("budget.turn", DOLLARS, "What one turn may cost: its model calls together.").or("1.0").in_unit("dollars"),
    Key::new("budget.day", DOLLARS, "What a day may cost, by UTC.").or("5.0").in_unit("dollars"),
    Key::new("budget.month", DOLLARS, "What a month may cost, by UTC.").or("50.0").in_unit("dollars"),
    Key::new(
        "store.allow_network_fs",
        Flag,
        "Open a home on a network file system, where locks may lose saved work.",
    )
    .or("false"),
    Key::new(
        "limits.free_space",
        Bytes(0, ANY),
        "Less free space than this: no new generations and imports.",
    )
    .or("\"256 MiB\"")
    .in_unit("bytes"),
    Key::new("limits.home_warn", Bytes(0, ANY), "A home larger than this is worth a notice.")
        .or("\"5 GiB\"")
        .in_unit("bytes"),
    Key::new(
        "limits.wal",
        Bytes(1 << 20, ANY),
        "A log of the store (loom.db-wal) longer than this is reported.",
    )
    .or("\"64 MiB\"")
    .in_unit("bytes"),
    Key::new(
        "limits.picture",
        Whole(1, 1_000_000_000),
        "A picture whose header says more is refused before it is decoded.",
    )
    .or("50000000")
    .in_unit("pixels"),
    Key::new(
        "limits.search",
        Number(0.05, 600.0),
        "A search ends after this time with what it found by then.",
    )
    .or("2.0")
    .in_unit("s"),
    Key::new(
        "limits.show_all",
        Whole(1, 10_000),
        "Rows of a page at most; the next one is asked for by --from.",
    )
    .or("1000")
    .in_unit("rows"),
    Key::new(
        "limits.node",
        Bytes(1 << 10, MAX_NODE_BYTES),
        "A longer text is no node: at the default a document's becomes several, any other is refused.",
    )
    .or("\"16 MiB\"")
    .in_unit("bytes"),
    Key::new(
        "limits.paste",
        Bytes(1 << 10, 1 << 30),
        "A longer text is not taken in at once: typed, from a file or from standard input.",
    )
    .or("\"64 MiB\"")
    .in_unit("bytes"),
    Key::new(
        "limits.input_wait",
        Number(0.05, 86_400.0),
        "Standard input, or a pipe named as a file, is given up when nothing came for so long.",
    )
    .or("300.0")
    .in_unit("s"),
    Key::new(
        "context.changed_files",
        Choice(&["inject", "next_session", "activate"]),
        "A boot file that changes in mid-session: its difference is sent, the next session has it, or all is read anew.",
    )
    .or("\"inject\""),
    Key::new(
        "context.strategy",
        Choice(&["rolling", "truncate_middle", "stop_at_limit"]),
        "A conversation that is too long: its oldest turns leave, those between the first and the recent ones leave, or it ends.",
    )
    .or("\"rolling\""),
    Key::new(
        "log.level",
        Choice(&["error", "warn", "info", "debug", "trace"]),
        "What is logged to standard error; --verbose means debug.",
    )
    .or("\"warn\""),
];

/// The default of a key; none where there is none.
pub(crate) fn default(path: &str) -> Option<Value> {
    row(path)?.default.and_then(toml_value)
}

/// The row of a key.
pub(crate) fn row(path: &str) -> Option<&'static Key> {
    KEYS.iter().find(|key| key.is(path))
}

/// The key someone may have meant.
pub(crate) fn nearest(path: &str) -> Option<String> {
    KEYS.iter()
        .map(|key| key.named_as(path))
        .map(|name| (strsim::damerau_levenshtein(&name, path), name))
        .min()
        .filter(|(distance, name)| *distance <= name.len() / 3)
        .map(|(_, name)| name)
}

/// What to do about a key that is not in the table.
pub(crate) fn hint_for_unknown(path: &str) -> String {
    if let Some(meant) = nearest(path) {
        return format!("did you mean {meant}?");
    }
    let section = path.split('.').next().unwrap_or_default();
    let prefix = format!("{section}.");
    let known: Vec<_> = KEYS.iter().filter(|key| key.path.starts_with(&prefix)).map(|key| key.path).collect();
    if known.is_empty() {
        return "`drawloom config show --defaults` lists every key".to_owned();
    }
    format!("[{section}] has {}", known.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_are_values_their_keys_take() {
        for (path, written) in KEYS.iter().filter_map(|key| Some((key.path, key.default?))) {
            let value = default(path).unwrap_or_else(|| panic!("{path}: {written} is no TOML"));
            assert_eq!(row(path).unwrap().kind.check(&value), Ok(()), "{path}");
        }
    }

    #[test]
    fn no_key_stands_twice_and_secrets_have_no_default() {
        for (place, key) in KEYS.iter().enumerate() {
            assert!(!KEYS[..place].iter().any(|other| other.path == key.path), "{}", key.path);
            assert!(!(key.secret && key.default.is_some()), "{}", key.path);
        }
    }

    #[test]
    fn a_misspelt_key_finds_its_neighbour() {
        assert_eq!(nearest("model.defualt").as_deref(), Some("model.default"));
        assert_eq!(nearest("providers.box.base_ulr").as_deref(), Some("providers.box.base_url"));
        assert_eq!(nearest("weather.tomorrow"), None);
        assert!(hint_for_unknown("providers").contains("providers.NAME.base_url"));
    }
}

//! Families of open weights, wherever they are served. Their windows are what the weights were made for; a server may
//! give them less, and says so if it can. They have no price here: on machines of the owner's there is none, elsewhere
//! it is the server's.

use super::{Entry, Tokenizer, Wants};
use crate::quirks::ThinkingForm;

use Tokenizer::{Gemini, Llama, OpenaiO200k, Qwen, Smollm, Unknown};

/// When all of it was looked up.
const AS_OF: &str = "2026-10";

/// Local servers continue a beginning and give probabilities.
const fn open(name: &'static str, window: u32, tokenizer: Tokenizer) -> Entry {
    let output = if window < 8_192 { window } else { 8_192 };
    Entry { prefill: true, logprobs: true, ..Entry::plain(name, window, output, tokenizer, AS_OF) }
}

const fn seeing(name: &'static str, window: u32, tokenizer: Tokenizer) -> Entry {
    Entry { images: true, ..open(name, window, tokenizer) }
}

const fn without_tools(entry: Entry) -> Entry {
    Entry { tools: false, ..entry }
}

/// The families, in the spellings of Hugging Face, Ollama and llama.cpp.
pub(super) const ENTRIES: &[Entry] = &[
    // Llama.
    seeing("llama-4-", 131_072, Llama),
    seeing("llama4", 131_072, Llama),
    open("llama-3.3-", 131_072, Llama),
    open("llama3.3", 131_072, Llama),
    open("llama-3.2-", 131_072, Llama),
    open("llama3.2", 131_072, Llama),
    seeing("llama3.2-vision", 131_072, Llama),
    open("llama-3.1-", 131_072, Llama),
    open("llama3.1", 131_072, Llama),
    open("meta-llama-3.1-", 131_072, Llama),
    without_tools(open("meta-llama-3-", 8_192, Llama)),
    without_tools(open("llama3", 8_192, Llama)),
    without_tools(open("llama2", 4_096, Unknown)),
    // Qwen.
    open("qwen3", 40_960, Qwen),
    open("qwen3-", 40_960, Qwen),
    open("qwen3-coder", 262_144, Qwen),
    open("qwen3-next", 262_144, Qwen),
    seeing("qwen3-vl", 262_144, Qwen),
    seeing("qwen3.5", 262_144, Qwen),
    seeing("qwen3.8", 262_144, Qwen),
    open("qwen2.5", 32_768, Qwen),
    open("qwen2.5-coder", 32_768, Qwen),
    seeing("qwen2.5-vl", 131_072, Qwen),
    seeing("qwen2.5vl", 131_072, Qwen),
    open("qwq", 40_960, Qwen),
    // Gemma.
    seeing("gemma-4-", 131_072, Gemini),
    seeing("gemma4", 131_072, Gemini),
    without_tools(seeing("gemma-3-", 131_072, Gemini)),
    without_tools(seeing("gemma3", 131_072, Gemini)),
    without_tools(open("gemma-3-1b", 32_768, Gemini)),
    without_tools(open("gemma3:1b", 32_768, Gemini)),
    without_tools(open("gemma-2-", 8_192, Gemini)),
    without_tools(open("gemma2", 8_192, Gemini)),
    // Mistral.
    seeing("mistral-small", 131_072, Unknown),
    open("mistral-nemo", 131_072, Unknown),
    open("mistral-7b", 32_768, Unknown),
    open("mistral", 32_768, Unknown),
    open("mixtral", 32_768, Unknown),
    open("devstral", 131_072, Unknown),
    open("magistral", 40_960, Unknown),
    seeing("ministral-3", 262_144, Unknown),
    without_tools(open("codestral", 32_768, Unknown)),
    // Phi.
    open("phi-4-mini", 131_072, OpenaiO200k),
    open("phi4-mini", 131_072, OpenaiO200k),
    without_tools(open("phi-4", 16_384, Unknown)),
    without_tools(open("phi4", 16_384, Unknown)),
    without_tools(open("phi-3", 4_096, Unknown)),
    without_tools(open("phi3", 4_096, Unknown)),
    // gpt-oss.
    Entry {
        wants: Wants { thinking: Some(ThinkingForm::Effort), ..Wants::NOTHING },
        prefill: false,
        ..open("gpt-oss", 131_072, OpenaiO200k)
    },
    // DeepSeek and others that are served by many.
    open("deepseek-r1", 131_072, Unknown),
    open("deepseek-v3", 131_072, Unknown),
    open("glm-4", 131_072, Unknown),
    open("glm-4.", 131_072, Unknown),
    open("glm-5", 131_072, Unknown),
    open("kimi-k2", 262_144, Unknown),
    open("granite", 131_072, Unknown),
    without_tools(open("smollm2", 8_192, Smollm)),
    open("smollm3", 65_536, Llama),
    open("hermes-3-llama-3.1-", 131_072, Llama),
];

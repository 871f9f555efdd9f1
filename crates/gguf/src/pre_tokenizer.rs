//! Pre-tokenizers: where a text is cut before its pieces are made into tokens.
//!
//! A file only *names* its rule (`tokenizer.ggml.pre`); the rules themselves are facts of the model families.
//! An unknown name is refused: tokens cut otherwise than in training make a model quietly worse.

use fancy_regex::Regex;

use crate::error::{LoadError, RunError};

const GPT2: &str = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+";
const NUMERAL: &str = r"\p{N}";
const LLAMA3: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
const QWEN2: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";

/// Pre-tokenizer of a vocabulary: one or more patterns, each applied to the pieces of the one before.
#[derive(Debug)]
pub(crate) struct PreTokenizer(Vec<Regex>);

impl PreTokenizer {
    pub(crate) fn named(name: &str) -> Result<Self, LoadError> {
        let patterns: &[&str] = match name {
            "default" | "gpt-2" | "gpt2" => &[GPT2],
            "smollm" | "starcoder" | "refact" | "codeshell" | "command-r" => &[NUMERAL, GPT2],
            "llama3" | "llama-v3" | "llama-bpe" => &[LLAMA3],
            "qwen2" | "deepseek-r1-qwen" => &[QWEN2],
            other => return Err(LoadError::Feature(format!("the pre-tokenizer `{other}`"))),
        };
        let compiled = patterns.iter().map(|pattern| Regex::new(pattern));
        let compiled: Result<Vec<_>, _> = compiled.collect();
        compiled.map(Self).map_err(|error| LoadError::Feature(error.to_string()))
    }

    /// The pieces, in order; together they are the text.
    pub(crate) fn pieces<'t>(&self, text: &'t str) -> Result<Vec<&'t str>, RunError> {
        let mut pieces = vec![text];
        for pattern in &self.0 {
            let mut finer = Vec::new();
            for piece in pieces {
                cut(pattern, piece, &mut finer)?;
            }
            pieces = finer;
        }
        Ok(pieces)
    }
}

fn cut<'t>(pattern: &Regex, text: &'t str, pieces: &mut Vec<&'t str>) -> Result<(), RunError> {
    let mut at = 0;
    for found in pattern.find_iter(text) {
        let found = found.map_err(|error| RunError::Tokens(error.to_string()))?;
        if found.start() > at {
            pieces.push(&text[at..found.start()]);
        }
        if found.end() > found.start() {
            pieces.push(found.as_str());
        }
        at = found.end();
    }
    if at < text.len() {
        pieces.push(&text[at..]);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pieces(rule: &str, text: &str) -> Vec<String> {
        PreTokenizer::named(rule).unwrap().pieces(text).unwrap().into_iter().map(str::to_owned).collect()
    }

    #[test]
    fn words_take_the_space_before_them() {
        assert_eq!(pieces("gpt-2", "I'll go  there 1234!"), ["I", "'ll", " go", " ", " there", " 1234", "!"]);
    }

    #[test]
    fn smollm_takes_numerals_one_by_one() {
        assert_eq!(pieces("smollm", "in 1984."), ["in", " ", "1", "9", "8", "4", "."]);
    }

    #[test]
    fn llama_takes_three_numerals_and_qwen_one() {
        assert_eq!(pieces("llama-bpe", "12345 X\n\nY"), ["123", "45", " X", "\n\n", "Y"]);
        assert_eq!(pieces("qwen2", "12 x"), ["1", "2", " x"]);
    }

    #[test]
    fn an_unknown_rule_is_refused() {
        assert!(matches!(PreTokenizer::named("tekken"), Err(LoadError::Feature(_))));
    }
}

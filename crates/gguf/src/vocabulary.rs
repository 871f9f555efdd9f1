//! Vocabulary of a model: texts to tokens and back.
//!
//! Control tokens are written by the engine alone. A text that *spells* one, such as `<|im_end|>` typed by a
//! user, is made of ordinary tokens, so nothing that is said can end its own message.

use std::collections::{HashMap, HashSet};

use crate::error::{LoadError, RunError};
use crate::header::GgufHeader;
use crate::merge::{Rank, merge};
use crate::metadata_value::MetadataValue;
use crate::pre_tokenizer::PreTokenizer;

/// A piece of a prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PromptPiece {
    /// Text of the chat template. Markers of the vocabulary in it become control tokens.
    Template(String),
    /// Text of a message or a document: never becomes a control token.
    Text(String),
}

impl PromptPiece {
    pub fn as_str(&self) -> &str {
        match self {
            Self::Template(text) | Self::Text(text) => text,
        }
    }
}

/// Markers by which models end a turn. A control token of such a spelling ends an answer, whatever else the file
/// says.
const END_MARKERS: [&str; 8] = [
    "<|im_end|>",
    "<|endoftext|>",
    "<|eot_id|>",
    "<|end_of_text|>",
    "<|eom_id|>",
    "<end_of_turn>",
    "<|end|>",
    "</s>",
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TokenKind {
    Normal,
    Control,
    /// Text that was given a token of its own after training.
    Own,
    Byte,
    Unused,
}

#[derive(Debug)]
pub(crate) struct Vocabulary {
    /// Bytes each token stands for.
    bytes: Vec<Vec<u8>>,
    kinds: Vec<TokenKind>,
    markers: Vec<(String, u32)>,
    ends: HashSet<u32>,
    first: Option<u32>,
    longest: usize,
    scheme: Scheme,
}

#[derive(Debug)]
enum Scheme {
    Bytes {
        split: PreTokenizer,
        of_byte: Box<[Option<u32>; 256]>,
        merges: HashMap<(u32, u32), (u32, u32)>,
        /// Tokens that a piece of their spelling becomes without joining, in the order of their bytes. Some are
        /// in models for which no joins lead to them.
        whole: Vec<u32>,
    },
    /// Characters, joined by score, with bytes for what no token covers (SentencePiece).
    Characters {
        ids: HashMap<String, u32>,
        scores: Vec<f32>,
        of_byte: Box<[Option<u32>; 256]>,
        space_first: bool,
    },
}

/// Letter for a space in SentencePiece vocabularies.
const SPACE: &str = "\u{2581}";

impl Vocabulary {
    pub(crate) fn of(header: &GgufHeader) -> Result<Self, LoadError> {
        let texts = header.require("tokenizer.ggml.tokens", MetadataValue::texts)?;
        if texts.is_empty() || u32::try_from(texts.len()).is_err() {
            return Err(LoadError::Vocabulary(format!("it has {} tokens", texts.len())));
        }
        let kinds = kinds(header, texts.len())?;
        let model = header.require("tokenizer.ggml.model", MetadataValue::text)?;
        let flag = |key: &str| header.get(key).and_then(MetadataValue::bool);
        let (scheme, bytes, first_by_default) = match model {
            "gpt2" => {
                let name =
                    header.get("tokenizer.ggml.pre").and_then(MetadataValue::text).unwrap_or("default");
                let llama3 = matches!(name, "llama3" | "llama-v3" | "llama-bpe");
                let (scheme, bytes) =
                    bytes_scheme(header, texts, &kinds, PreTokenizer::named(name)?, llama3)?;
                (scheme, bytes, llama3)
            }
            "llama" => {
                let space_first = flag("tokenizer.ggml.add_space_prefix").unwrap_or(true);
                let (scheme, bytes) = characters_scheme(header, texts, &kinds, space_first)?;
                (scheme, bytes, true)
            }
            other => return Err(LoadError::Feature(format!("a tokenizer of the kind `{other}`"))),
        };
        let token = |key: &str| -> Result<Option<u32>, LoadError> {
            let Some(value) = header.get(key) else { return Ok(None) };
            let number = value.unsigned().filter(|&number| number < texts.len() as u64);
            let number = number.and_then(|number| u32::try_from(number).ok());
            number
                .map(Some)
                .ok_or_else(|| LoadError::Value { key: key.to_owned(), found: format!("{value:?}") })
        };
        let adds_first = flag("tokenizer.ggml.add_bos_token").unwrap_or(first_by_default);
        let first = token("tokenizer.ggml.bos_token_id")?.filter(|_| adds_first);
        let mut ends = HashSet::new();
        for key in ["eos_token_id", "eot_token_id", "eom_token_id"] {
            ends.extend(token(&format!("tokenizer.ggml.{key}"))?);
        }
        let mut markers: Vec<(String, u32)> = Vec::new();
        for ((text, kind), number) in texts.iter().zip(&kinds).zip(0_u32..) {
            if matches!(kind, TokenKind::Control | TokenKind::Own) && !text.is_empty() {
                markers.push((text.clone(), number));
            }
            if *kind == TokenKind::Control && END_MARKERS.contains(&text.as_str()) {
                ends.insert(number);
            }
        }
        markers.sort_by_key(|(text, _)| std::cmp::Reverse(text.len()));
        let longest = bytes.iter().map(Vec::len).max().unwrap_or(1).max(1);
        Ok(Self { bytes, kinds, markers, ends, first, longest, scheme })
    }

    /// The bytes a token adds to a text: none for control tokens.
    pub(crate) fn text_of(&self, token: u32) -> &[u8] {
        match self.kinds.get(token as usize) {
            Some(TokenKind::Control | TokenKind::Unused) | None => &[],
            Some(_) => self.spelling(token),
        }
    }

    /// The bytes a token is written with, control tokens included.
    pub(crate) fn spelling(&self, token: u32) -> &[u8] {
        self.bytes.get(token as usize).map_or(&[], Vec::as_slice)
    }

    /// Whether a token ends an answer.
    pub(crate) fn ends(&self, token: u32) -> bool {
        self.ends.contains(&token)
    }

    /// Whether the vocabulary has a marker of this spelling.
    pub(crate) fn has_marker(&self, text: &str) -> bool {
        self.markers.iter().any(|(marker, _)| marker == text)
    }

    /// Fewest tokens a text of so many bytes can have.
    pub(crate) fn min_tokens(&self, bytes: usize) -> u64 {
        bytes.div_ceil(self.longest) as u64
    }

    /// The tokens of a prompt.
    pub(crate) fn tokens(&self, pieces: &[PromptPiece]) -> Result<Vec<u32>, RunError> {
        let mut tokens: Vec<u32> = self.first.into_iter().collect();
        let mut run = String::new();
        let mut after_marker = true;
        for piece in pieces {
            let PromptPiece::Template(template) = piece else {
                run.push_str(piece.as_str());
                continue;
            };
            let mut rest = template.as_str();
            while let Some((at, marker, token)) = self.next_marker(rest) {
                run.push_str(&rest[..at]);
                self.plain(&run, after_marker, &mut tokens)?;
                run.clear();
                if tokens.is_empty() || Some(token) != self.first || tokens != [token] {
                    tokens.push(token);
                }
                after_marker = true;
                rest = &rest[at + marker.len()..];
            }
            run.push_str(rest);
        }
        self.plain(&run, after_marker, &mut tokens)?;
        Ok(tokens)
    }

    /// How many tokens a text is by itself, wherever it stands.
    pub(crate) fn count(&self, text: &str) -> Result<u64, RunError> {
        let mut tokens = Vec::new();
        self.plain(text, false, &mut tokens)?;
        Ok(tokens.len() as u64)
    }

    fn next_marker<'m>(&'m self, text: &str) -> Option<(usize, &'m str, u32)> {
        let found = self
            .markers
            .iter()
            .filter_map(|(marker, token)| Some((text.find(marker.as_str())?, marker, *token)));
        // Of markers at one place the longest, which comes first, is meant.
        found.min_by_key(|(at, ..)| *at).map(|(at, marker, token)| (at, marker.as_str(), token))
    }

    /// Appends the tokens of plain text.
    fn plain(&self, text: &str, after_marker: bool, tokens: &mut Vec<u32>) -> Result<(), RunError> {
        if text.is_empty() {
            return Ok(());
        }
        match &self.scheme {
            Scheme::Bytes { split, of_byte, merges, whole } => {
                for piece in split.pieces(text)? {
                    let found = whole.binary_search_by(|&token| self.spelling(token).cmp(piece.as_bytes()));
                    if let Ok(found) = found {
                        tokens.push(whole[found]);
                        continue;
                    }
                    let symbols =
                        piece.bytes().map(|byte| of_byte[usize::from(byte)].ok_or_else(|| no_token(byte)));
                    let symbols = symbols.collect::<Result<Vec<u32>, _>>()?;
                    tokens.extend(merge(symbols, |&a, &b| {
                        merges.get(&(a, b)).map(|&(rank, joined)| (Rank(f64::from(rank)), joined))
                    }));
                }
                Ok(())
            }
            Scheme::Characters { ids, scores, of_byte, space_first } => {
                let mut marked = text.replace(' ', SPACE);
                if *space_first && after_marker {
                    marked.insert_str(0, SPACE);
                }
                let symbols = marked.chars().map(String::from).collect();
                let joined = merge(symbols, |a: &String, b: &String| {
                    let whole = format!("{a}{b}");
                    let id = *ids.get(&whole)?;
                    Some((Rank(-f64::from(*scores.get(id as usize)?)), whole))
                });
                for symbol in joined {
                    match ids.get(&symbol) {
                        Some(id) => tokens.push(*id),
                        None => {
                            for byte in symbol.bytes() {
                                tokens.push(of_byte[usize::from(byte)].ok_or_else(|| no_token(byte))?);
                            }
                        }
                    }
                }
                Ok(())
            }
        }
    }
}

fn no_token(byte: u8) -> RunError {
    RunError::Tokens(format!("the model has no token for the byte 0x{byte:02x}"))
}

fn kinds(header: &GgufHeader, count: usize) -> Result<Vec<TokenKind>, LoadError> {
    let Some(value) = header.get("tokenizer.ggml.token_type") else {
        return Ok(vec![TokenKind::Normal; count]);
    };
    let numbers = value.integers().ok_or_else(|| LoadError::Key("tokenizer.ggml.token_type".to_owned()))?;
    if numbers.len() != count {
        return Err(LoadError::Vocabulary(format!("{count} tokens have {} kinds", numbers.len())));
    }
    let kind = |number: &i64| match number {
        2 | 3 => TokenKind::Control,
        4 => TokenKind::Own,
        5 => TokenKind::Unused,
        6 => TokenKind::Byte,
        _ => TokenKind::Normal,
    };
    Ok(numbers.iter().map(kind).collect())
}

fn bytes_scheme(
    header: &GgufHeader,
    texts: &[String],
    kinds: &[TokenKind],
    split: PreTokenizer,
    takes_whole: bool,
) -> Result<(Scheme, Vec<Vec<u8>>), LoadError> {
    let alphabet: HashMap<char, u8> = (0..=u8::MAX).map(|byte| (letter(byte), byte)).collect();
    let mut ids = HashMap::new();
    let mut bytes = Vec::with_capacity(texts.len());
    for ((text, kind), number) in texts.iter().zip(kinds).zip(0_u32..) {
        let spelled: Option<Vec<u8>> = text.chars().map(|letter| alphabet.get(&letter).copied()).collect();
        bytes.push(match (kind, spelled) {
            (TokenKind::Normal, Some(spelled)) => {
                ids.entry(text.as_str()).or_insert(number);
                spelled
            }
            _ => text.clone().into_bytes(),
        });
    }
    let mut of_byte = Box::new([None; 256]);
    for byte in 0..=u8::MAX {
        of_byte[usize::from(byte)] = ids.get(letter(byte).to_string().as_str()).copied();
    }
    let all: HashSet<&str> = texts.iter().map(String::as_str).collect();
    let mut merges = HashMap::new();
    let pairs = header.require("tokenizer.ggml.merges", MetadataValue::texts)?;
    for (pair, rank) in pairs.iter().zip(0_u32..) {
        let broken = || LoadError::Vocabulary(format!("the merge `{pair}` joins no two tokens to a third"));
        let (a, b) = pair.split_once(' ').ok_or_else(broken)?;
        let joined = format!("{a}{b}");
        let id = |text: &str| ids.get(text).copied();
        // Merges that would make a control token are left out: it is written by the engine alone.
        match (id(a), id(b), id(&joined)) {
            (Some(a), Some(b), Some(joined)) => {
                merges.entry((a, b)).or_insert((rank, joined));
            }
            _ if all.contains(joined.as_str()) && all.contains(a) && all.contains(b) => {}
            _ => return Err(broken()),
        }
    }
    let mut whole: Vec<u32> = if takes_whole { ids.into_values().collect() } else { Vec::new() };
    whole.sort_unstable_by_key(|&token| &bytes[token as usize]);
    Ok((Scheme::Bytes { split, of_byte, merges, whole }, bytes))
}

fn characters_scheme(
    header: &GgufHeader,
    texts: &[String],
    kinds: &[TokenKind],
    space_first: bool,
) -> Result<(Scheme, Vec<Vec<u8>>), LoadError> {
    let scores = header.require("tokenizer.ggml.scores", MetadataValue::floats)?;
    if scores.len() != texts.len() || scores.iter().any(|score| score.is_nan()) {
        return Err(LoadError::Vocabulary(format!("{} tokens have {} scores", texts.len(), scores.len())));
    }
    let mut ids = HashMap::new();
    let mut of_byte = Box::new([None; 256]);
    let mut bytes = Vec::with_capacity(texts.len());
    for ((text, kind), number) in texts.iter().zip(kinds).zip(0_u32..) {
        let byte = text.strip_prefix("<0x").and_then(|rest| rest.strip_suffix('>'));
        let byte = byte.and_then(|digits| u8::from_str_radix(digits, 16).ok());
        match (kind, byte) {
            (TokenKind::Byte, Some(byte)) => {
                of_byte[usize::from(byte)] = Some(number);
                bytes.push(vec![byte]);
            }
            (TokenKind::Normal, _) => {
                ids.entry(text.clone()).or_insert(number);
                bytes.push(text.replace(SPACE, " ").into_bytes());
            }
            _ => bytes.push(text.clone().into_bytes()),
        }
    }
    Ok((Scheme::Characters { ids, scores: scores.to_vec(), of_byte, space_first }, bytes))
}

/// The letter by which byte-level vocabularies write a byte: itself where it is printable, else one above 255.
pub(crate) fn letter(byte: u8) -> char {
    let printable = |byte: u8| matches!(byte, b'!'..=b'~' | 0xa1..=0xac | 0xae..=0xff);
    if printable(byte) {
        return char::from(byte);
    }
    let place = (0..byte).filter(|&before| !printable(before)).count();
    u32::try_from(place)
        .ok()
        .and_then(|place| char::from_u32(256 + place))
        .unwrap_or(char::REPLACEMENT_CHARACTER)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_have_letters_of_their_own() {
        let letters: HashSet<char> = (0..=u8::MAX).map(letter).collect();
        assert_eq!(letters.len(), 256);
        assert_eq!((letter(b' '), letter(b'\n'), letter(b'a'), letter(0xad)), ('Ġ', 'Ċ', 'a', 'Ń'));
    }
}

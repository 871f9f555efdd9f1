//! Known secret values, and what looks like one, become `⟦secret:NAME⟧` (spec: security §11).
//!
//! Values the owner's programs hold are replaced when text enters, before it is stored or sent, so that what is
//! stored is what is sent. A value is found plain, percent-encoded, as JSON writes it inside a string, and
//! base64-encoded at any of the three alignments, also where a stream splits it at any byte. Of text that comes from
//! outside of the conversation ([`Masker::mask_entering`]) what looks like a secret is replaced, too, by
//! `⟦secret:guessed.KIND.IDENTITY⟧`, where another value has another identity whatever text it stands in; of what a person
//! typed or a model answered only *known* values are.
//!
//! Matches that overlap are masked as one span, named by the one that begins first (the longest of those): a mask
//! that chose among overlapping matches would leave the rest of a value standing.
//!
//! Not found: a value in another encoding (hex, gzip, UTF-16), base64 wrapped into lines, one value percent-encoded
//! in two ways at once. Of an unaligned base64 value up to four bits stay visible in the characters beside the mask.

mod filter;
mod find;
mod forms;
mod guess;
mod scan;
mod stream;

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use aho_corasick::Anchored;
use aho_corasick::automaton::{Automaton as _, StateID};
use aho_corasick::nfa::contiguous::NFA;

use filter::Filter;
use scan::Scan;

pub use find::TextFinder;
pub use guess::GuessStream;
pub use stream::{MaskStream, MaskTextStream, Tail};

/// Shortest value that is masked, in characters: a shorter one would be found in honest text.
pub(crate) const MIN_CHARS: usize = 8;
/// Longest value that is masked, in bytes.
pub const MAX_BYTES: usize = 8 * 1024;
/// Longest name, in characters.
pub(crate) const NAME_CHARS: usize = 64;

/// Error of making a masker.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum MaskError {
    /// The value has fewer than [`MIN_CHARS`] characters.
    #[error("secret {name} is too short to be masked: use a value of at least {MIN_CHARS} characters")]
    TooShort { name: String },
    /// The value has more than [`MAX_BYTES`] bytes.
    #[error("secret {name} is too long to be masked: use a value of at most {MAX_BYTES} bytes")]
    TooLong { name: String },
    /// The name is empty, too long, or has other characters than letters, digits and `-_.:/`.
    #[error("a secret's name has 1 to {NAME_CHARS} ASCII letters, digits and -_.:/")]
    Name,
    /// The values together are too many for one search.
    #[error("too many or too long secrets to search for at once")]
    TooMany(#[source] aho_corasick::BuildError),
    /// The search cannot begin. Nothing may be let through unmasked instead.
    #[error("the search for secrets cannot begin")]
    Search(#[source] aho_corasick::MatchError),
}

/// A value to be masked, and the name it is masked by. Its `Debug` does not show the value.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret {
    name: String,
    value: String,
}

impl Secret {
    /// A secret with a name and a value that can be masked.
    ///
    /// # Errors
    /// [`MaskError::Name`], [`MaskError::TooShort`], [`MaskError::TooLong`]. No message holds the value.
    pub fn new(name: impl Into<String>, value: impl Into<String>) -> Result<Self, MaskError> {
        let (name, value) = (name.into(), value.into());
        let fits = (1..=NAME_CHARS).contains(&name.len());
        if !fits || !name.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.:/".contains(&b)) {
            return Err(MaskError::Name);
        }
        if value.len() > MAX_BYTES {
            return Err(MaskError::TooLong { name });
        }
        if value.chars().count() < MIN_CHARS {
            return Err(MaskError::TooShort { name });
        }
        Ok(Self { name, value })
    }

    /// The name the value is masked by.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Secret").field("name", &self.name).finish_non_exhaustive()
    }
}

/// Encoding of a secret value where it was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum SecretForm {
    Plain,
    /// Percent-encoded, as in a URL or a form.
    Percent,
    /// Escaped as within a JSON string, once or twice.
    Json,
    /// Base64, standard or URL alphabet, perhaps percent- or JSON-escaped once more.
    Base64,
}

/// A place where a value stood.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MaskedSpan {
    /// Name of the secret; where several overlapped, of the first. `guessed.KIND` of one that is guessed.
    pub name: String,
    pub form: SecretForm,
    /// Byte range in the input.
    pub input: Range<usize>,
    /// Byte range of the mark in the output.
    pub output: Range<usize>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Masked<'a> {
    /// The text to keep; borrowed when nothing was found.
    pub text: Cow<'a, str>,
    /// Masked places, in order.
    pub spans: Vec<MaskedSpan>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MaskedBytes {
    /// The bytes to keep.
    pub bytes: Vec<u8>,
    /// Masked places, in order.
    pub spans: Vec<MaskedSpan>,
}

/// Masks a fixed set of secrets. Cheap to clone; its `Debug` shows no value.
#[derive(Clone)]
pub struct Masker {
    inner: Arc<Inner>,
    /// Whether what looks like a secret is masked where text enters.
    guesses: bool,
    key: guess::IdentityKey,
}

struct Inner {
    search: NFA,
    /// Tells of a whole text that nothing is to be searched for; none where a form is too short for that.
    filter: Option<Filter>,
    /// The state of `search` that has read nothing.
    start: StateID,
    /// For each pattern of `search`: the secret's place in `marks`, and the form.
    patterns: Vec<(usize, SecretForm)>,
    marks: Vec<Mark>,
}

struct Mark {
    name: String,
    text: String,
}

impl Masker {
    /// A masker of `secrets`. Of two with one value the first gives the name.
    ///
    /// # Errors
    /// [`MaskError::TooMany`] if the search would outgrow its automaton; [`MaskError::Search`].
    pub fn new(secrets: &[Secret]) -> Result<Self, MaskError> {
        let mut texts = Vec::new();
        let mut patterns = Vec::new();
        let mut known = HashSet::new();
        for (secret, Secret { value, .. }) in secrets.iter().enumerate() {
            for (form, text) in forms::of(value) {
                if known.insert(text.clone()) {
                    texts.push(text);
                    patterns.push((secret, form));
                }
            }
        }
        let search = NFA::builder().prefilter(false).build(&texts).map_err(MaskError::TooMany)?;
        let start = search.start_state(Anchored::No).map_err(MaskError::Search)?;
        let filter = Filter::new(texts.iter().map(String::as_str));
        let marks = secrets.iter().map(Mark::of).collect();
        Ok(Self {
            inner: Arc::new(Inner { search, filter, start, patterns, marks }),
            guesses: true,
            key: [0; 16],
        })
    }

    #[must_use]
    pub fn mask<'a>(&self, text: &'a str) -> Masked<'a> {
        if !self.may_find_in(text.as_bytes()) {
            return Masked { text: Cow::Borrowed(text), spans: Vec::new() };
        }
        let mut scan = Scan::new(self);
        scan.feed(self, text.as_bytes());
        if scan.spans.is_empty() {
            return Masked { text: Cow::Borrowed(text), spans: Vec::new() };
        }
        let mut out = String::with_capacity(text.len());
        let mut spans = Vec::with_capacity(scan.spans.len());
        let mut copied = 0;
        for found in scan.spans {
            let mark = &self.inner.marks[found.secret];
            // Patterns are whole characters, so spans begin and end on character boundaries.
            out.push_str(&text[copied..found.range.start]);
            copied = found.range.end;
            let start = out.len();
            out.push_str(&mark.text);
            spans.push(found.reported(mark, start));
        }
        out.push_str(&text[copied..]);
        Masked { text: Cow::Owned(out), spans }
    }

    /// A masker of the same values that guesses nothing.
    #[must_use]
    pub fn without_guesses(self) -> Self {
        Self { guesses: false, ..self }
    }

    /// A masker by whose marks a guessed value is told from every other one, and by nobody who does not know the key confirmed.
    #[must_use]
    pub const fn identifying_by(mut self, key: [u8; 16]) -> Self {
        self.key = key;
        self
    }

    /// Masks a text that a tool, a file, a server or a page brought: known values, and what looks like a secret.
    #[must_use]
    pub fn mask_entering<'a>(&self, text: &'a str) -> Masked<'a> {
        let known = self.mask(text);
        let guesses = if self.guesses { guess::find(text) } else { Vec::new() };
        if guesses.is_empty() {
            return known;
        }
        let guessed = guesses.into_iter().map(|guess| {
            let span = |mark: &str| MaskedSpan {
                name: format!("{}{}", guess::PREFIX, guess.kind),
                form: SecretForm::Plain,
                input: guess.range.clone(),
                output: 0..mark.len(),
            };
            let mark = guess::mark(&guess, text, &self.key);
            (span(&mark), mark, true)
        });
        let known = known.spans.into_iter().map(|span| {
            let mark = mark(&span.name);
            (span, mark, false)
        });
        let mut places: Vec<(MaskedSpan, String, bool)> = guessed.chain(known).collect();
        places.sort_by_key(|(span, ..)| span.input.start);
        places.dedup_by(|later, earlier| {
            let overlaps = later.0.input.start < earlier.0.input.end;
            if overlaps {
                let input = earlier.0.input.start..earlier.0.input.end.max(later.0.input.end);
                // What is known has the better name.
                if earlier.2 && !later.2 {
                    std::mem::swap(later, earlier);
                }
                earlier.0.input = input;
            }
            overlaps
        });
        let mut out = String::with_capacity(text.len());
        let (mut spans, mut copied) = (Vec::with_capacity(places.len()), 0);
        for (mut span, mark, _) in places {
            out.push_str(&text[copied..span.input.start]);
            copied = span.input.end;
            span.output = out.len()..out.len() + mark.len();
            out.push_str(&mark);
            spans.push(span);
        }
        out.push_str(&text[copied..]);
        Masked { text: Cow::Owned(out), spans }
    }

    /// Replaces what looks like a secret in text as it arrives, behind [`Self::stream`].
    #[must_use]
    pub fn guess_stream(&self) -> GuessStream {
        GuessStream::new(self.guesses, self.key)
    }

    /// Masks whole bytes, which need not be UTF-8.
    #[must_use]
    pub fn mask_bytes(&self, bytes: &[u8]) -> MaskedBytes {
        let mut stream = self.stream();
        let mut masked = stream.push(bytes);
        let Tail { rest, spans } = stream.finish();
        masked.extend(rest);
        MaskedBytes { bytes: masked, spans }
    }

    /// Whether any value occurs in `bytes`, in any form.
    #[must_use]
    pub fn finds_in(&self, bytes: &[u8]) -> bool {
        if !self.may_find_in(bytes) {
            return false;
        }
        let mut scan = Scan::new(self);
        // In pieces, so that a find at the beginning does not cost reading to the end.
        bytes.chunks(4096).any(|piece| {
            scan.feed(self, piece);
            !scan.spans.is_empty()
        })
    }

    fn may_find_in(&self, bytes: &[u8]) -> bool {
        self.inner.filter.as_ref().is_none_or(|filter| filter.may_find_in(bytes))
    }

    /// Masks bytes as they arrive.
    #[must_use]
    pub fn stream(&self) -> MaskStream {
        MaskStream::new(self.clone())
    }

    /// Masks text as it arrives.
    #[must_use]
    pub fn text_stream(&self) -> MaskTextStream {
        MaskTextStream::new(self.clone())
    }

    /// Length in bytes of the longest form of any value; 0 without secrets. A stream holds back less.
    #[must_use]
    pub fn longest(&self) -> usize {
        if self.inner.patterns.is_empty() { 0 } else { self.inner.search.max_pattern_len() }
    }
}

impl fmt::Debug for Masker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.inner.marks.iter().map(|mark| &mark.name);
        f.write_str("Masker ")?;
        f.debug_list().entries(names).finish()
    }
}

impl Mark {
    fn of(secret: &Secret) -> Self {
        Self { name: secret.name.clone(), text: mark(&secret.name) }
    }
}

/// How every mark begins, and ends.
pub const MARK: &str = "⟦secret:";
const MARK_END: char = '⟧';

/// Where marks stand in a text, also those that lack their end.
pub fn marks_in(text: &str) -> impl Iterator<Item = Range<usize>> {
    let of_name = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.:/ ".contains(byte);
    memchr::memmem::find_iter(text.as_bytes(), MARK).filter_map(move |start| {
        let name = start + MARK.len();
        let length =
            text.as_bytes()[name..].iter().take(2 * NAME_CHARS).take_while(|byte| of_name(byte)).count();
        let end = name + length;
        let closed = if text[end..].starts_with(MARK_END) { end + MARK_END.len_utf8() } else { end };
        (length > 0).then_some(start..closed)
    })
}

fn mark(name: &str) -> String {
    format!("{MARK}{name}{MARK_END}")
}

//! Responses and request bodies on disk: zstd with a dictionary per dialect.
//!
//! A provider's stream repeats the same 200 bytes of JSON around every token. Within one response zstd finds
//! that by itself; what it cannot know is the first occurrence, and in a short answer that is most of what is
//! left. A dictionary trained on the shapes of a dialect gives it that for nothing.
//!
//! - Dictionaries are bytes in the repository (`dict/`), trained by `examples/train` from generated samples.
//!   A published one is never changed: it gets a successor with a new id, and stays for reading.
//! - A frame carries its dictionary's id, its size and a checksum, so that reading needs nothing else.
//! - Reading is bounded by the caller: a frame that would grow beyond the limit is refused, whatever it
//!   claims.

use std::io::Read;
use std::sync::OnceLock;

use zstd::bulk::Compressor;
use zstd::dict::{DecoderDictionary, EncoderDictionary};
use zstd::stream::read::Decoder;
use zstd::zstd_safe::{self, CParameter};

/// The strength at which 14 KB cost well under a millisecond.
const LEVEL: i32 = 9;
/// Decoding never takes a window above 8 MiB; no level below 20 writes a larger one.
const MAX_WINDOW_LOG: u32 = 23;

/// Why a body could not be compressed or read back.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CompressError {
    /// zstd refused to compress: out of memory.
    #[error("a body of {bytes} bytes could not be compressed: free memory and try again")]
    Compress {
        bytes: usize,
        #[source]
        source: std::io::Error,
    },
    /// Bytes that are no zstd frame, or a damaged one.
    #[error("a stored body is damaged: restore it from a backup, or run `drawloom store check`")]
    Damaged {
        /// What zstd said, if it did.
        #[source]
        source: Option<std::io::Error>,
    },
    /// The frame needs a dictionary that this version does not have.
    #[error("a stored body needs compression dictionary {id}: read it with the newer version that wrote it")]
    UnknownDictionary { id: u32 },
    /// A body that exceeds the limit once it is decompressed.
    #[error("a stored body is larger than the {max} bytes allowed: raise the limit to read it")]
    TooLarge {
        /// The limit, in bytes.
        max: u64,
    },
}

impl CompressError {
    fn damaged(source: std::io::Error) -> Self {
        Self::Damaged { source: Some(source) }
    }
}

/// A trained dictionary: one for each dialect whose bodies are worth it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Dictionary {
    /// OpenAI's chat completions and the many servers that speak it.
    OpenAiChat,
    OpenAiCompletions,
}

/// One dictionary in one version.
struct Entry {
    dictionary: Dictionary,
    /// In the frame and in the dictionary itself. 40,000 + 100 × dialect + version: two bytes in a frame, and
    /// outside the ranges that the format reserves.
    id: u32,
    bytes: &'static [u8],
    encoder: OnceLock<EncoderDictionary<'static>>,
    decoder: OnceLock<DecoderDictionary<'static>>,
}

impl Entry {
    const fn new(dictionary: Dictionary, id: u32, bytes: &'static [u8]) -> Self {
        Self { dictionary, id, bytes, encoder: OnceLock::new(), decoder: OnceLock::new() }
    }

    fn encoder(&self) -> &EncoderDictionary<'static> {
        self.encoder.get_or_init(|| EncoderDictionary::copy(self.bytes, LEVEL))
    }

    fn decoder(&self) -> &DecoderDictionary<'static> {
        self.decoder.get_or_init(|| DecoderDictionary::copy(self.bytes))
    }
}

/// All versions; the last of a dialect is the one that writes.
static ENTRIES: [Entry; 2] = [
    Entry::new(Dictionary::OpenAiChat, 40_101, include_bytes!("../dict/openai_chat.1.zdict")),
    Entry::new(Dictionary::OpenAiCompletions, 40_201, include_bytes!("../dict/openai_completions.1.zdict")),
];

impl Dictionary {
    pub const ALL: [Self; 2] = [Self::OpenAiChat, Self::OpenAiCompletions];

    /// The id that frames written with it carry.
    #[must_use]
    pub fn id(self) -> Option<u32> {
        self.newest().map(|entry| entry.id)
    }

    /// The dictionary for a dialect by its name in the store (`openai_chat`); `None` for a dialect that has
    /// none yet: its bodies are compressed without.
    #[must_use]
    pub fn for_dialect(name: &str) -> Option<Self> {
        match name {
            "openai_chat" => Some(Self::OpenAiChat),
            "openai_completions" => Some(Self::OpenAiCompletions),
            _ => None,
        }
    }

    fn newest(self) -> Option<&'static Entry> {
        ENTRIES.iter().rev().find(|entry| entry.dictionary == self)
    }
}

/// Compresses a body; with a dictionary if its dialect has one.
///
/// # Errors
/// [`CompressError::Compress`].
pub fn compress(body: &[u8], dictionary: Option<Dictionary>) -> Result<Vec<u8>, CompressError> {
    let failed = |source| CompressError::Compress { bytes: body.len(), source };
    let mut compressor = match dictionary.and_then(Dictionary::newest) {
        Some(entry) => Compressor::with_prepared_dictionary(entry.encoder()),
        None => Compressor::new(LEVEL),
    }
    .map_err(failed)?;
    compressor.set_parameter(CParameter::ChecksumFlag(true)).map_err(failed)?;
    compressor.compress(body).map_err(failed)
}

/// The body that [`compress`] was given. At most `max` bytes are produced, and memory is taken only as they
/// are.
///
/// # Errors
/// [`CompressError::Damaged`] also for bytes after the frame; [`CompressError::UnknownDictionary`];
/// [`CompressError::TooLarge`].
pub fn decompress(frame: &[u8], max: u64) -> Result<Vec<u8>, CompressError> {
    let claimed = zstd_safe::get_frame_content_size(frame)
        .map_err(|_| CompressError::Damaged { source: None })?
        .unwrap_or(0);
    if claimed > max {
        return Err(CompressError::TooLarge { max });
    }
    match dictionary_id(frame) {
        None => read(Decoder::with_buffer(frame), max),
        Some(id) => {
            let entry = ENTRIES.iter().find(|entry| entry.id == id);
            let entry = entry.ok_or(CompressError::UnknownDictionary { id })?;
            read(Decoder::with_prepared_dictionary(frame, entry.decoder()), max)
        }
    }
}

/// The id of the dictionary that a frame needs, if it needs one.
#[must_use]
pub fn dictionary_id(frame: &[u8]) -> Option<u32> {
    zstd_safe::get_dict_id_from_frame(frame).map(std::num::NonZero::get)
}

fn read(decoder: std::io::Result<Decoder<'_, &[u8]>>, max: u64) -> Result<Vec<u8>, CompressError> {
    let mut decoder = decoder.map_err(CompressError::damaged)?.single_frame();
    decoder.window_log_max(MAX_WINDOW_LOG).map_err(CompressError::damaged)?;
    let mut body = Vec::new();
    let produced =
        (&mut decoder).take(max.saturating_add(1)).read_to_end(&mut body).map_err(CompressError::damaged)?;
    if produced as u64 > max {
        return Err(CompressError::TooLarge { max });
    }
    if decoder.finish().is_empty() { Ok(body) } else { Err(CompressError::Damaged { source: None }) }
}

#[cfg(test)]
mod tests;

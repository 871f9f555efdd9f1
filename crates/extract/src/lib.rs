//! Text of PDF, DOCX and EPUB files by page, and HTML as Markdown (spec: agent §3 *Files*).
//!
//! Such a file is a stranger's. What is unpacked and made of it is bounded here, but a parser may still run out of stack,
//! memory or time: [`extract`] is called in a process that has nothing else to lose (`sandbox::run_worker`), and what it
//! answers is checked by whoever asked. Pure.

mod archive;
mod docx;
mod epub;
pub mod html;
mod pdf;
mod xml;

use std::fmt;

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// First argument that makes the program a worker that extracts.
pub const WORKER_ARGUMENT: &str = "__extract";

/// Bytes that all that is unpacked of a file may have.
const UNPACKED: usize = 128 << 20;

/// Bytes of text that are made of a file at most.
const MOST: usize = 16 << 20;

/// Characters of a page that is no PDF's; a longer one stands in parts.
const PAGE: usize = 8_000;

/// Kind of a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Format {
    Pdf,
    Docx,
    Epub,
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Pdf => "PDF",
            Self::Docx => "DOCX",
            Self::Epub => "EPUB",
        })
    }
}

/// What the first bytes of a file say of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Container {
    Pdf,
    /// An archive, as DOCX, EPUB and many others are.
    Zip,
    /// Office files of the old form, and those of the new one that have a password.
    CompoundFile,
}

/// The container of a document; none of what can be none.
pub fn detect(bytes: &[u8]) -> Option<Container> {
    const SIGNATURES: [(&[u8], Container); 3] = [
        (b"%PDF-", Container::Pdf),
        (b"PK\x03\x04", Container::Zip),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", Container::CompoundFile),
    ];
    SIGNATURES.iter().find(|(signature, _)| bytes.starts_with(signature)).map(|(_, container)| *container)
}

/// The text of a document.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Extracted {
    pub format: Format,
    pub title: Option<String>,
    /// Text of each page: those of a PDF; those of a DOCX where it says where they begin; chapters of an EPUB. What is longer
    /// than a page of some thousand characters, and no PDF's, stands in parts.
    pub pages: Vec<String>,
}

/// Why a file has no text that is shown. Each says what can be done.
#[derive(Debug, Clone, PartialEq, Eq, Error, Serialize, Deserialize)]
pub enum ExtractError {
    #[error("it is a ZIP archive, and neither DOCX nor EPUB: unpack it, and read what is in it")]
    OtherArchive,
    #[error(
        "it is an Office file of the old form or one with a password: save it as DOCX without a password"
    )]
    CompoundFile,
    #[error("it is no document")]
    NoDocument,
    #[error(
        "it is encrypted: a copy without a password, or without a protection against copies, can be read"
    )]
    Encrypted,
    #[error("it is damaged, and no text is read from it: {0}")]
    Damaged(String),
    #[error("more than {0} MiB are packed in it: a part of it, saved on its own, can be read")]
    TooLarge(usize),
    #[error(
        "it has no text ({0} pages): where they are pictures of one, as scanned pages are, a program for OCR such as ocrmypdf \
         makes it text"
    )]
    NoText(usize),
}

/// The text of a file.
///
/// # Errors
/// It has none, or none that can be read. It may as well overflow the stack, or need more memory than there is.
pub fn extract(bytes: &[u8]) -> Result<Extracted, ExtractError> {
    let extracted = match detect(bytes) {
        Some(Container::Zip) => of_archive(bytes)?,
        Some(Container::CompoundFile) => return Err(ExtractError::CompoundFile),
        Some(Container::Pdf) => pdf::extract(bytes)?,
        None => return Err(ExtractError::NoDocument),
    };
    if extracted.pages.iter().all(|page| page.trim().is_empty()) {
        return Err(ExtractError::NoText(extracted.pages.len()));
    }
    Ok(extracted)
}

fn of_archive(bytes: &[u8]) -> Result<Extracted, ExtractError> {
    let mut archive = archive::Archive::open(bytes)?;
    if archive.has(epub::CONTAINER) {
        return epub::extract(&mut archive);
    }
    match docx::body(&mut archive)? {
        Some(body) => docx::extract(&mut archive, &body),
        None => Err(ExtractError::OtherArchive),
    }
}

/// Pages of what has none of its own, or longer ones than are shown at once: each in parts, cut where a line ends if one does.
fn in_parts(pages: Vec<String>) -> Vec<String> {
    let mut parts = Vec::new();
    for page in pages {
        let (mut part, mut chars) = (String::new(), 0);
        for line in page.split_inclusive('\n') {
            let long = line.chars().count();
            if chars > 0 && chars + long > PAGE {
                parts.push(std::mem::take(&mut part));
                chars = 0;
            }
            for char in line.chars() {
                if chars == PAGE {
                    parts.push(std::mem::take(&mut part));
                    chars = 0;
                }
                part.push(char);
                chars += 1;
            }
        }
        parts.push(part);
    }
    parts
}

#[cfg(test)]
mod tests;

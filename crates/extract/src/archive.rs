//! Members of a ZIP archive, unpacked one by one within a bound on all of them.
//!
//! What an archive says of its sizes is not believed: a member is read until it ends or the bound is met, so that neither a
//! long row of zeros nor members that lie over each other come to more (spec: security §23).

use std::collections::BTreeMap;
use std::io::Read as _;

use flate2::read::DeflateDecoder;
use rawzip::{CompressionMethod, ZipArchive, ZipArchiveEntryWayfinder, ZipSliceArchive};

use crate::{ExtractError, UNPACKED};

/// Members that an archive may have.
const MEMBERS: usize = 100_000;

pub(crate) struct Archive<'a> {
    archive: ZipSliceArchive<&'a [u8]>,
    /// By name; of members of one name the first.
    members: BTreeMap<String, Member>,
    /// Bytes that may still be unpacked.
    left: usize,
}

#[derive(Clone, Copy)]
struct Member {
    place: ZipArchiveEntryWayfinder,
    method: CompressionMethod,
    is_encrypted: bool,
}

impl<'a> Archive<'a> {
    pub(crate) fn open(bytes: &'a [u8]) -> Result<Self, ExtractError> {
        let archive = ZipArchive::from_slice(bytes).map_err(|error| damaged(&error))?;
        let mut members = BTreeMap::new();
        let mut entries = archive.entries();
        while let Some(entry) = entries.next_entry().map_err(|error| damaged(&error))? {
            if members.len() >= MEMBERS {
                return Err(ExtractError::Damaged(format!("it has more than {MEMBERS} members")));
            }
            let name = String::from_utf8_lossy(entry.file_path().as_ref()).into_owned();
            let member = Member {
                place: entry.wayfinder(),
                method: entry.compression_method(),
                is_encrypted: entry.flags().is_encrypted(),
            };
            members.entry(name).or_insert(member);
        }
        Ok(Self { archive, members, left: UNPACKED })
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.members.contains_key(name)
    }

    /// The bytes of a member.
    pub(crate) fn read(&mut self, name: &str) -> Result<Vec<u8>, ExtractError> {
        let missing = || ExtractError::Damaged(format!("{name} is not in it"));
        let member = *self.members.get(name).ok_or_else(missing)?;
        if member.is_encrypted {
            return Err(ExtractError::Encrypted);
        }
        let entry = self.archive.get_entry(member.place).map_err(|error| damaged(&error))?;
        let mut bytes = Vec::new();
        // One byte more than there may be, to see that there is more.
        let most = self.left as u64 + 1;
        let read = match member.method {
            CompressionMethod::STORE => entry.data().take(most).read_to_end(&mut bytes),
            CompressionMethod::DEFLATE => {
                DeflateDecoder::new(entry.data()).take(most).read_to_end(&mut bytes)
            }
            other => {
                let why = format!("{name} is packed in a way that is not known ({})", other.as_u16());
                return Err(ExtractError::Damaged(why));
            }
        };
        read.map_err(|error| ExtractError::Damaged(format!("{name}: {error}")))?;
        if bytes.len() > self.left {
            return Err(ExtractError::TooLarge(UNPACKED >> 20));
        }
        self.left -= bytes.len();
        Ok(bytes)
    }
}

fn damaged(error: &impl ToString) -> ExtractError {
    ExtractError::Damaged(error.to_string())
}

//! Compact bytes for rows that are read as a whole: varints, zigzag, length-prefixed text.

use crate::compress::{self, Dictionary};
use crate::error::StoreError;

#[derive(Debug, Default)]
pub(crate) struct Out(pub(crate) Vec<u8>);

impl Out {
    pub(crate) fn byte(&mut self, byte: u8) {
        self.0.push(byte);
    }

    pub(crate) fn number(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.0.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.0.push(number as u8);
    }

    pub(crate) fn signed(&mut self, number: i64) {
        self.number(((number << 1) ^ (number >> 63)) as u64);
    }

    pub(crate) fn fixed(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    pub(crate) fn text(&mut self, text: &str) {
        self.number(text.len() as u64);
        self.fixed(text.as_bytes());
    }

    /// A number or none, in one varint.
    pub(crate) fn optional(&mut self, number: Option<u64>) {
        self.number(number.map_or(0, |number| number + 1));
    }
}

/// Bytes being read. What does not fit is damage, named by `what`.
#[derive(Debug)]
pub(crate) struct In<'a> {
    left: &'a [u8],
    what: &'static str,
}

impl<'a> In<'a> {
    pub(crate) const fn new(bytes: &'a [u8], what: &'static str) -> Self {
        Self { left: bytes, what }
    }

    pub(crate) fn damaged(&self) -> StoreError {
        StoreError::Damaged(format!("a row cannot be read: {}", self.what))
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.left.is_empty()
    }

    pub(crate) fn byte(&mut self) -> Result<u8, StoreError> {
        let (first, rest) = self.left.split_first().ok_or_else(|| self.damaged())?;
        self.left = rest;
        Ok(*first)
    }

    pub(crate) fn number(&mut self) -> Result<u64, StoreError> {
        let mut number = 0_u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
        Err(self.damaged())
    }

    pub(crate) fn signed(&mut self) -> Result<i64, StoreError> {
        let number = self.number()?;
        Ok((number >> 1) as i64 ^ -((number & 1) as i64))
    }

    pub(crate) fn slice(&mut self, len: usize) -> Result<&'a [u8], StoreError> {
        let (taken, rest) = self.left.split_at_checked(len).ok_or_else(|| self.damaged())?;
        self.left = rest;
        Ok(taken)
    }

    pub(crate) fn fixed<const N: usize>(&mut self) -> Result<[u8; N], StoreError> {
        let taken = self.slice(N)?;
        taken.try_into().map_err(|_| self.damaged())
    }

    pub(crate) fn text(&mut self) -> Result<String, StoreError> {
        let len = usize::try_from(self.number()?).map_err(|_| self.damaged())?;
        let bytes = self.slice(len)?.to_vec();
        String::from_utf8(bytes).map_err(|_| self.damaged())
    }

    pub(crate) fn optional(&mut self) -> Result<Option<u64>, StoreError> {
        Ok(self.number()?.checked_sub(1))
    }
}

/// Bytes shorter than this are kept as they are.
const WORTH_PACKING: usize = 128;

/// How packed bytes are written, in their first byte.
const RAW: u8 = 0;
const ZSTD: u8 = 1;

/// Large bytes as stored: compressed where that helps, with the dictionary of their dialect if there is one.
pub(crate) fn pack(bytes: &[u8], dictionary: Option<Dictionary>) -> Result<Vec<u8>, StoreError> {
    if bytes.len() >= WORTH_PACKING {
        let mut squeezed = compress::compress(bytes, dictionary)
            .map_err(|error| StoreError::io("compress", std::io::Error::other(error)))?;
        if squeezed.len() < bytes.len() {
            squeezed.insert(0, ZSTD);
            return Ok(squeezed);
        }
    }
    Ok([&[RAW], bytes].concat())
}

/// Bytes that are unpacked at most: more than any response or request has.
const MAX_UNPACKED: u64 = 1 << 30;

pub(crate) fn unpack(packed: &[u8]) -> Result<Vec<u8>, StoreError> {
    match packed.split_first() {
        Some((&RAW, bytes)) => Ok(bytes.to_vec()),
        Some((&ZSTD, frame)) => compress::decompress(frame, MAX_UNPACKED)
            .map_err(|error| StoreError::Damaged(format!("stored bytes cannot be unpacked: {error}"))),
        _ => Err(StoreError::Damaged("stored bytes are written in an unknown way".to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_written_is_read(number: u64, signed: i64, text: String, optional in proptest::option::of(0..u64::MAX)) {
            let mut out = Out::default();
            out.number(number);
            out.signed(signed);
            out.text(&text);
            out.optional(optional);
            let mut read = In::new(&out.0, "test");
            prop_assert_eq!(read.number().unwrap(), number);
            prop_assert_eq!(read.signed().unwrap(), signed);
            prop_assert_eq!(read.text().unwrap(), text);
            prop_assert_eq!(read.optional().unwrap(), optional);
            prop_assert!(read.byte().is_err());
        }

        #[test]
        fn noise_is_refused_without_a_panic(noise: Vec<u8>) {
            let mut read = In::new(&noise, "test");
            while read.text().is_ok() {}
            drop(unpack(&noise));
        }

        #[test]
        fn what_is_packed_is_unpacked(bytes in prop::collection::vec(0_u8..4, 0..2000)) {
            prop_assert_eq!(unpack(&pack(&bytes, Some(Dictionary::OpenAiChat)).unwrap()).unwrap(), bytes);
        }
    }
}

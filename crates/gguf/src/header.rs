//! Header of a GGUF file: metadata and the list of tensors, within limits.
//!
//! Every count and length in the file is a claim. A claim is compared with a limit and with the bytes that are
//! left before anything is allocated for it, so that memory grows with what the file *holds*, never with what
//! it *says* (spec: security §24). Tensors may not lie upon each other either: a small file could otherwise
//! have the same bytes loaded a thousand times.

use std::collections::{BTreeMap, HashSet};
use std::io::{BufReader, Read, Seek, SeekFrom};
use std::ops::Range;

use crate::error::LoadError;
use crate::metadata_value::MetadataValue;
use crate::tensor_type::TensorType;

const MAGIC: [u8; 4] = *b"GGUF";
/// Most tensors, and most metadata entries.
const MAX_ENTRIES: u64 = 65_536;
/// Most bytes of a key or a tensor's name.
const MAX_NAME: u64 = 65_535;
/// Most bytes of one text value.
const MAX_TEXT: u64 = 16 << 20;
/// Most elements of all lists together: four times the largest vocabulary with its merges.
const MAX_ELEMENTS: u64 = 4 << 20;
/// Most bytes of the header.
const MAX_HEAD: u64 = 256 << 20;
const MAX_DIMENSIONS: u32 = 4;
/// Most numbers in one tensor.
const MAX_NUMBERS: u64 = 1 << 40;
const DEFAULT_ALIGNMENT: u64 = 32;

/// A tensor as the file lists it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TensorEntry {
    pub name: String,
    /// Dimensions, fastest first, as they stand in the file.
    pub dimensions: Vec<u64>,
    /// How its numbers are stored.
    pub kind: TensorType,
    /// Range of its bytes in the file.
    pub bytes: Range<u64>,
}

impl TensorEntry {
    pub fn numbers(&self) -> u64 {
        self.dimensions.iter().product()
    }
}

/// Header of a GGUF file.
#[derive(Debug, Clone, PartialEq)]
pub struct GgufHeader {
    /// Version of the format: 2 or 3.
    pub version: u32,
    pub metadata: BTreeMap<String, MetadataValue>,
    /// The tensors, in the order of the file.
    pub tensors: Vec<TensorEntry>,
    /// Alignment of the starts of tensors, in bytes.
    pub alignment: u64,
    /// Range of the metadata in the file, by which it is copied as it stands.
    pub(crate) metadata_bytes: Range<u64>,
    pub(crate) metadata_count: u64,
}

impl GgufHeader {
    /// Reads the header of a file.
    ///
    /// # Errors
    /// A [`LoadError`] that names what is wrong with the file.
    pub fn read(file: &mut (impl Read + Seek)) -> Result<Self, LoadError> {
        let length = file.seek(SeekFrom::End(0))?;
        file.seek(SeekFrom::Start(0))?;
        let source = BufReader::with_capacity(1 << 16, file);
        Reader { source, at: 0, end: length.min(MAX_HEAD), elements: 0 }.header(length)
    }

    /// The value of a key.
    pub fn get(&self, key: &str) -> Option<&MetadataValue> {
        self.metadata.get(key)
    }

    pub(crate) fn require<'a, T>(
        &'a self,
        key: &str,
        read: impl FnOnce(&'a MetadataValue) -> Option<T>,
    ) -> Result<T, LoadError> {
        self.get(key).and_then(read).ok_or_else(|| LoadError::Key(key.to_owned()))
    }

    /// A tensor by its name.
    pub fn tensor(&self, name: &str) -> Option<&TensorEntry> {
        self.tensors.iter().find(|tensor| tensor.name == name)
    }
}

/// Reader of a header that never reads beyond `end`, a place in bytes.
struct Reader<R> {
    source: R,
    at: u64,
    end: u64,
    /// List elements read so far.
    elements: u64,
}

impl<R: Read> Reader<R> {
    fn header(mut self, length: u64) -> Result<GgufHeader, LoadError> {
        let magic: [u8; 4] = self.bytes("the magic number").map_err(|error| match error {
            LoadError::Cut(_) => LoadError::NotGguf,
            other => other,
        })?;
        if magic != MAGIC {
            return Err(LoadError::NotGguf);
        }
        let version = self.u32("the version")?;
        match version {
            2 | 3 => {}
            _ if matches!(version.swap_bytes(), 1..=3) => return Err(LoadError::ByteOrder),
            other => return Err(LoadError::Version(other)),
        }
        let tensor_count = self.count("the number of tensors", MAX_ENTRIES)?;
        let metadata_count = self.count("the number of metadata entries", MAX_ENTRIES)?;
        let metadata_from = self.at;
        let metadata = self.metadata(metadata_count)?;
        let metadata_bytes = metadata_from..self.at;
        let alignment = alignment(&metadata)?;
        let mut tensors = Vec::new();
        for _ in 0..tensor_count {
            tensors.push(self.tensor(alignment)?);
        }
        let data = self.at.next_multiple_of(alignment);
        place(&mut tensors, data, length)?;
        Ok(GgufHeader { version, metadata, tensors, alignment, metadata_bytes, metadata_count })
    }

    fn metadata(&mut self, count: u64) -> Result<BTreeMap<String, MetadataValue>, LoadError> {
        let mut metadata = BTreeMap::new();
        for _ in 0..count {
            let key = self.text("a key", MAX_NAME)?;
            let kind = self.u32("the kind of a value")?;
            let value = self.value(&key, kind)?;
            if metadata.contains_key(&key) {
                return Err(LoadError::DuplicateKey(key));
            }
            metadata.insert(key, value);
        }
        Ok(metadata)
    }

    fn value(&mut self, key: &str, kind: u32) -> Result<MetadataValue, LoadError> {
        const WHAT: &str = "a metadata value";
        Ok(match kind {
            8 => MetadataValue::Text(self.text(WHAT, MAX_TEXT)?),
            9 => self.list(key)?,
            6 => MetadataValue::Float(f64::from(f32::from_le_bytes(self.bytes(WHAT)?))),
            12 => MetadataValue::Float(f64::from_le_bytes(self.bytes(WHAT)?)),
            7 => MetadataValue::Bool(self.integer(kind)? != Some(0)),
            0 | 2 | 4 => {
                MetadataValue::Unsigned(self.integer(kind)?.and_then(|n| u64::try_from(n).ok()).unwrap_or(0))
            }
            10 => MetadataValue::Unsigned(u64::from_le_bytes(self.bytes(WHAT)?)),
            _ => match self.integer(kind)? {
                Some(number) => MetadataValue::Signed(number),
                None => return Err(LoadError::ValueKind { key: key.to_owned(), kind }),
            },
        })
    }

    /// A whole number or truth value of a kind; `None` where the kind is no such thing.
    fn integer(&mut self, kind: u32) -> Result<Option<i64>, LoadError> {
        const WHAT: &str = "a metadata value";
        Ok(Some(match kind {
            0 | 7 => i64::from(u8::from_le_bytes(self.bytes(WHAT)?)),
            1 => i64::from(i8::from_le_bytes(self.bytes(WHAT)?)),
            2 => i64::from(u16::from_le_bytes(self.bytes(WHAT)?)),
            3 => i64::from(i16::from_le_bytes(self.bytes(WHAT)?)),
            4 => i64::from(u32::from_le_bytes(self.bytes(WHAT)?)),
            5 => i64::from(i32::from_le_bytes(self.bytes(WHAT)?)),
            10 => i64::try_from(u64::from_le_bytes(self.bytes(WHAT)?)).unwrap_or(i64::MAX),
            11 => i64::from_le_bytes(self.bytes(WHAT)?),
            _ => return Ok(None),
        }))
    }

    fn list(&mut self, key: &str) -> Result<MetadataValue, LoadError> {
        const WHAT: &str = "a list";
        let kind = self.u32(WHAT)?;
        let count = self.u64(WHAT)?;
        let unsupported = || LoadError::ValueKind { key: key.to_owned(), kind };
        let smallest = match kind {
            0 | 1 | 7 => 1,
            2 | 3 => 2,
            4..=6 => 4,
            8 | 10..=12 => 8,
            _ => return Err(unsupported()),
        };
        self.elements = self.elements.saturating_add(count);
        if self.elements > MAX_ELEMENTS {
            return Err(LoadError::Limit {
                what: "the number of list elements",
                found: self.elements,
                limit: MAX_ELEMENTS,
            });
        }
        if count * smallest > self.left() {
            return Err(LoadError::Cut(WHAT));
        }
        Ok(match kind {
            8 => MetadataValue::Texts(
                (0..count).map(|_| self.text("a list of texts", MAX_TEXT)).collect::<Result<_, _>>()?,
            ),
            6 => MetadataValue::Floats((0..count).map(|_| self.float()).collect::<Result<_, _>>()?),
            12 => MetadataValue::Floats((0..count).map(|_| self.double()).collect::<Result<_, _>>()?),
            _ => {
                let mut numbers = Vec::new();
                for _ in 0..count {
                    numbers.push(self.integer(kind)?.ok_or_else(unsupported)?);
                }
                MetadataValue::Integers(numbers)
            }
        })
    }

    fn tensor(&mut self, alignment: u64) -> Result<TensorEntry, LoadError> {
        const WHAT: &str = "the list of tensors";
        let name = self.text(WHAT, MAX_NAME)?;
        let dimensions = self.u32(WHAT)?;
        if !(1..=MAX_DIMENSIONS).contains(&dimensions) {
            return Err(LoadError::Limit {
                what: "the number of a tensor's dimensions",
                found: u64::from(dimensions),
                limit: u64::from(MAX_DIMENSIONS),
            });
        }
        let dimensions = (0..dimensions).map(|_| self.u64(WHAT)).collect::<Result<Vec<_>, _>>()?;
        let kind = self.u32(WHAT)?;
        let offset = self.u64(WHAT)?;
        let Some(kind) = TensorType::from_number(kind) else {
            return Err(LoadError::TensorType { name, kind });
        };
        let numbers = dimensions
            .iter()
            .try_fold(1_u64, |product, &dimension| product.checked_mul(dimension))
            .filter(|numbers| (1..=MAX_NUMBERS).contains(numbers));
        let rows_fit = dimensions.first().is_some_and(|row| row.is_multiple_of(kind.block()));
        let Some(numbers) = numbers.filter(|_| rows_fit) else {
            return Err(LoadError::Shape { name, found: dimensions });
        };
        let bytes = numbers / kind.block() * kind.block_bytes();
        match offset.checked_add(bytes) {
            Some(end) if offset.is_multiple_of(alignment) => {
                Ok(TensorEntry { name, dimensions, kind, bytes: offset..end })
            }
            _ => Err(LoadError::Placement(name)),
        }
    }

    fn count(&mut self, what: &'static str, limit: u64) -> Result<u64, LoadError> {
        let found = self.u64(what)?;
        if found > limit { Err(LoadError::Limit { what, found, limit }) } else { Ok(found) }
    }

    fn text(&mut self, what: &'static str, limit: u64) -> Result<String, LoadError> {
        let length = self.count(what, limit)?;
        if length > self.left() {
            return Err(LoadError::Cut(what));
        }
        let mut bytes = vec![0; usize::try_from(length).map_err(|_| LoadError::Cut(what))?];
        self.fill(&mut bytes, what)?;
        String::from_utf8(bytes).map_err(|_| LoadError::NotText(what))
    }

    fn float(&mut self) -> Result<f32, LoadError> {
        Ok(f32::from_le_bytes(self.bytes("a list")?))
    }

    #[expect(
        clippy::cast_possible_truncation,
        reason = "scores of tokens need no more than single precision"
    )]
    fn double(&mut self) -> Result<f32, LoadError> {
        Ok(f64::from_le_bytes(self.bytes("a list")?) as f32)
    }

    fn u32(&mut self, what: &'static str) -> Result<u32, LoadError> {
        Ok(u32::from_le_bytes(self.bytes(what)?))
    }

    fn u64(&mut self, what: &'static str) -> Result<u64, LoadError> {
        Ok(u64::from_le_bytes(self.bytes(what)?))
    }

    fn bytes<const N: usize>(&mut self, what: &'static str) -> Result<[u8; N], LoadError> {
        let mut bytes = [0; N];
        self.fill(&mut bytes, what)?;
        Ok(bytes)
    }

    fn fill(&mut self, bytes: &mut [u8], what: &'static str) -> Result<(), LoadError> {
        if bytes.len() as u64 > self.left() {
            return Err(LoadError::Cut(what));
        }
        self.source.read_exact(bytes)?;
        self.at += bytes.len() as u64;
        Ok(())
    }

    fn left(&self) -> u64 {
        self.end.saturating_sub(self.at)
    }
}

fn alignment(metadata: &BTreeMap<String, MetadataValue>) -> Result<u64, LoadError> {
    const KEY: &str = "general.alignment";
    let Some(value) = metadata.get(KEY) else { return Ok(DEFAULT_ALIGNMENT) };
    match value.unsigned() {
        Some(alignment) if alignment.is_power_of_two() && (8..=65_536).contains(&alignment) => Ok(alignment),
        found => Err(LoadError::Value { key: KEY.to_owned(), found: format!("{found:?}") }),
    }
}

/// Moves offsets to places in the file and checks that tensors lie in it, one beside the other.
fn place(tensors: &mut [TensorEntry], data: u64, length: u64) -> Result<(), LoadError> {
    let mut names = HashSet::new();
    for tensor in &mut *tensors {
        if !names.insert(tensor.name.as_str()) {
            return Err(LoadError::DuplicateTensor(tensor.name.clone()));
        }
        let moved = data.checked_add(tensor.bytes.start).zip(data.checked_add(tensor.bytes.end));
        match moved {
            Some((start, end)) if end <= length => tensor.bytes = start..end,
            _ => return Err(LoadError::Placement(tensor.name.clone())),
        }
    }
    let mut order: Vec<&TensorEntry> = tensors.iter().collect();
    order.sort_by_key(|tensor| tensor.bytes.start);
    for pair in order.windows(2) {
        if let [before, after] = pair
            && before.bytes.end > after.bytes.start
        {
            return Err(LoadError::Placement(after.name.clone()));
        }
    }
    Ok(())
}

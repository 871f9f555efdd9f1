//! Conversion of a file's slow tensor types to 8-bit blocks.
//!
//! Some types are unpacked bit by bit at every product; a model stored in them answers slower than in 8-bit
//! blocks, and a conversion once costs a second. The new file is there whole or not at all.

use std::fs::File;
use std::io::{self, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::Path;

use crate::blocks::{dequantise, quantise_q8_0};
use crate::error::LoadError;
use crate::header::{GgufHeader, TensorEntry};
use crate::tensor_type::TensorType;

/// Numbers converted at a time: a multiple of every block, and little memory.
const SLAB: u64 = 1 << 18;

/// Progress of a conversion, in bytes of the source's tensors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequantiseProgress {
    pub done: u64,
    /// Bytes to read in all.
    pub total: u64,
}

/// Copies a model and converts the matrices of slow types ([`TensorType::is_fast`]) to 8-bit blocks; gives how many
/// tensors were converted. Metadata is copied byte for byte. The target appears at once and complete; memory stays
/// small.
///
/// # Errors
/// When the source is no sound GGUF file or the target cannot be written. The target is then as it was.
pub fn requantise(
    source: &Path,
    target: &Path,
    mut progress: impl FnMut(RequantiseProgress),
) -> Result<usize, LoadError> {
    let mut input = File::open(source)?;
    let header = GgufHeader::read(&mut input)?;
    let folder = target.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let beside = tempfile::Builder::new().prefix(".gguf-").suffix(".part").tempfile_in(folder)?;
    let mut output = BufWriter::new(beside);
    let plan: Vec<PlannedTensor<'_>> = header.tensors.iter().map(PlannedTensor::of).collect();
    write_head(&header, &plan, &mut input, &mut output)?;
    let total = plan.iter().map(|planned| planned.source.bytes.end - planned.source.bytes.start).sum();
    let mut done = 0;
    for planned in &plan {
        let written = output.stream_position()?;
        let padding = written.next_multiple_of(header.alignment) - written;
        io::copy(&mut io::repeat(0).take(padding), &mut output)?;
        planned.write(&mut input, &mut output)?;
        done += planned.source.bytes.end - planned.source.bytes.start;
        progress(RequantiseProgress { done, total });
    }
    let beside = output.into_inner().map_err(io::IntoInnerError::into_error)?;
    beside.as_file().sync_all()?;
    beside.persist(target).map_err(|error| error.error)?;
    File::open(folder)?.sync_all()?;
    Ok(plan.iter().filter(|planned| planned.converts()).count())
}

/// A tensor and the type it will have.
struct PlannedTensor<'a> {
    source: &'a TensorEntry,
    kind: TensorType,
}

impl<'a> PlannedTensor<'a> {
    fn of(source: &'a TensorEntry) -> Self {
        let slow_matrix = source.dimensions.len() > 1 && !source.kind.is_fast();
        Self { source, kind: if slow_matrix { TensorType::Q8_0 } else { source.kind } }
    }

    fn converts(&self) -> bool {
        self.kind != self.source.kind
    }

    fn bytes(&self) -> u64 {
        self.source.numbers() / self.kind.block() * self.kind.block_bytes()
    }

    fn write(&self, input: &mut File, output: &mut impl Write) -> Result<(), LoadError> {
        let from = self.source.kind;
        input.seek(SeekFrom::Start(self.source.bytes.start))?;
        let mut left = self.source.numbers();
        while left > 0 {
            let count = left.min(SLAB);
            let length = usize::try_from(count / from.block() * from.block_bytes()).unwrap_or(usize::MAX);
            let mut slab = vec![0; length];
            input.read_exact(&mut slab)?;
            if self.converts() {
                output.write_all(&converted(&slab, from, count))?;
            } else {
                output.write_all(&slab)?;
            }
            left -= count;
        }
        Ok(())
    }
}

fn converted(slab: &[u8], from: TensorType, count: u64) -> Vec<u8> {
    let mut numbers = vec![0.0; usize::try_from(count).unwrap_or_default()];
    dequantise(from, slab, &mut numbers);
    quantise_q8_0(&numbers)
}

fn write_head(
    header: &GgufHeader,
    plan: &[PlannedTensor<'_>],
    input: &mut File,
    output: &mut impl Write,
) -> Result<(), LoadError> {
    output.write_all(b"GGUF")?;
    output.write_all(&header.version.to_le_bytes())?;
    output.write_all(&(plan.len() as u64).to_le_bytes())?;
    output.write_all(&header.metadata_count.to_le_bytes())?;
    input.seek(SeekFrom::Start(header.metadata_bytes.start))?;
    io::copy(&mut input.take(header.metadata_bytes.end - header.metadata_bytes.start), output)?;
    let mut offset: u64 = 0;
    for planned in plan {
        output.write_all(&(planned.source.name.len() as u64).to_le_bytes())?;
        output.write_all(planned.source.name.as_bytes())?;
        output.write_all(&u32::try_from(planned.source.dimensions.len()).unwrap_or(0).to_le_bytes())?;
        for dimension in &planned.source.dimensions {
            output.write_all(&dimension.to_le_bytes())?;
        }
        output.write_all(&planned.kind.number().to_le_bytes())?;
        output.write_all(&offset.to_le_bytes())?;
        offset = (offset + planned.bytes()).next_multiple_of(header.alignment);
    }
    Ok(())
}

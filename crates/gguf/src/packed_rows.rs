//! Matrices of 8-bit blocks, laid out for multiplication.
//!
//! The file holds row after row in blocks of 32 numbers with one scale each. Here [`COLUMNS`] rows are a tile
//! and lie side by side: for each place of the inner dimension their numbers at that place follow each other, so one vector
//! instruction serves them all, and none ever has to add up its own lanes. It takes as many bytes as in the
//! file and holds the same numbers.

use half::f16;

/// Rows of a tile, which are columns of a product.
pub(crate) const COLUMNS: usize = 16;
pub(crate) const BLOCK: usize = 32;
/// Bytes of a block in the file: the scale and the numbers.
const BLOCK_BYTES: usize = 2 + BLOCK;

/// A matrix of 8-bit blocks.
pub(crate) struct PackedRows {
    /// Tile by tile, and in it place by place.
    numbers: Vec<[i8; COLUMNS]>,
    /// Tile by tile, and in it block by block.
    scales: Vec<[f16; COLUMNS]>,
    inner: usize,
    rows: usize,
}

impl PackedRows {
    /// `bytes` are `rows` rows of `inner / 32` blocks; places after the last row become zeros.
    pub(crate) fn new(bytes: &[u8], inner: usize, rows: usize) -> Self {
        let (tiles, blocks) = (rows.div_ceil(COLUMNS), inner / BLOCK);
        let mut numbers = vec![[0; COLUMNS]; tiles * inner];
        let mut scales = vec![[f16::ZERO; COLUMNS]; tiles * blocks];
        let tile_bytes = bytes.chunks((blocks * BLOCK_BYTES * COLUMNS).max(1));
        let targets = numbers.chunks_exact_mut(inner.max(1)).zip(scales.chunks_exact_mut(blocks.max(1)));
        for (bytes, (numbers, scales)) in tile_bytes.zip(targets) {
            for (column, row) in bytes.chunks_exact(blocks * BLOCK_BYTES).enumerate() {
                let blocks = row.as_chunks::<BLOCK_BYTES>().0;
                let places = numbers.as_chunks_mut::<BLOCK>().0.iter_mut().zip(&mut *scales);
                for (&[low, high, ref block @ ..], (places, scale)) in blocks.iter().zip(places) {
                    scale[column] = f16::from_le_bytes([low, high]);
                    for (place, number) in places.iter_mut().zip(block) {
                        place[column] = number.cast_signed();
                    }
                }
            }
        }
        Self { numbers, scales, inner, rows }
    }

    pub(crate) fn inner(&self) -> usize {
        self.inner
    }

    pub(crate) fn rows(&self) -> usize {
        self.rows
    }

    /// The numbers of a tile without their scales, as they lie: place after place.
    pub(crate) fn numbers(&self, tile: usize) -> &[i8] {
        let at = tile * self.inner;
        self.numbers[at..at + self.inner].as_flattened()
    }

    /// The scales of a tile, block after block.
    pub(crate) fn scales(&self, tile: usize) -> &[f16] {
        let (at, blocks) = (tile * self.inner / BLOCK, self.inner / BLOCK);
        self.scales[at..at + blocks].as_flattened()
    }

    /// The row with this number.
    pub(crate) fn row(&self, number: usize) -> impl Iterator<Item = f32> {
        let (tile, column) = (number / COLUMNS, number % COLUMNS);
        let numbers = self.numbers.get(tile * self.inner..).unwrap_or_default().chunks_exact(BLOCK);
        let scales = self.scales.get(tile * self.inner / BLOCK..).unwrap_or_default();
        numbers.zip(scales).take(self.inner / BLOCK).flat_map(move |(block, scales)| {
            let scale = scales[column].to_f32();
            block.iter().map(move |place| f32::from(place[column]) * scale)
        })
    }
}

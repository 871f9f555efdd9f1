//! The tensor types of GGUF files that the engine can read.

/// How the numbers of a tensor are stored; with the type's number in the file format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum TensorType {
    F32 = 0,
    F16 = 1,
    /// 16-bit floating point with the range of 32 bits.
    BF16 = 30,
    /// 4-bit blocks with a scale.
    Q4_0 = 2,
    /// 4-bit blocks with a scale and a minimum.
    Q4_1 = 3,
    /// 5-bit blocks with a scale.
    Q5_0 = 6,
    /// 5-bit blocks with a scale and a minimum.
    Q5_1 = 7,
    /// 8-bit blocks with a scale.
    Q8_0 = 8,
    Q2K = 10,
    Q3K = 11,
    Q4K = 12,
    Q5K = 13,
    Q6K = 14,
}

impl TensorType {
    const ALL: [Self; 13] = [
        Self::F32,
        Self::F16,
        Self::BF16,
        Self::Q4_0,
        Self::Q4_1,
        Self::Q5_0,
        Self::Q5_1,
        Self::Q8_0,
        Self::Q2K,
        Self::Q3K,
        Self::Q4K,
        Self::Q5K,
        Self::Q6K,
    ];

    /// The type with a number of the file format.
    pub(crate) fn from_number(number: u32) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.number() == number)
    }

    /// The type's number in the file format.
    pub fn number(self) -> u32 {
        self as u32
    }

    /// Numbers of a block.
    pub fn block(self) -> u64 {
        match self {
            Self::F32 | Self::F16 | Self::BF16 => 1,
            Self::Q4_0 | Self::Q4_1 | Self::Q5_0 | Self::Q5_1 | Self::Q8_0 => 32,
            Self::Q2K | Self::Q3K | Self::Q4K | Self::Q5K | Self::Q6K => 256,
        }
    }

    pub(crate) fn block_bytes(self) -> u64 {
        match self {
            Self::F32 => 4,
            Self::F16 | Self::BF16 => 2,
            Self::Q4_0 => 18,
            Self::Q4_1 => 20,
            Self::Q5_0 => 22,
            Self::Q5_1 => 24,
            Self::Q8_0 => 34,
            Self::Q2K => 84,
            Self::Q3K => 110,
            Self::Q4K => 144,
            Self::Q5K => 176,
            Self::Q6K => 210,
        }
    }

    /// Whether computing with it is fast on common processors. The others are slower than [`TensorType::Q8_0`], to
    /// which [`crate::requantise`] converts them.
    pub(crate) fn is_fast(self) -> bool {
        !matches!(self, Self::Q4_1 | Self::Q5_0 | Self::Q5_1)
    }
}

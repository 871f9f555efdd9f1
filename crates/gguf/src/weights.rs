//! The tensors of a model, read from the file one by one and checked against the shape they must have.

use std::cell::OnceCell;
use std::io::{Read, Seek, SeekFrom};
use std::sync::Arc;

use crate::blocks::dequantise;
use crate::error::LoadError;
use crate::header::{GgufHeader, TensorEntry};
use crate::matmul::MatmulKernel;
use crate::model_config::ModelConfig;
use crate::packed_rows::{BLOCK, PackedRows};
use crate::stored_rows::StoredRows;
use crate::tensor_type::TensorType;

/// A matrix that rows are multiplied with.
#[derive(Clone)]
pub(crate) enum Matrix {
    /// 8-bit blocks, which have kernels of their own here.
    Packed(Arc<PackedRows>),
    /// Any other type, as it is stored.
    Stored(Arc<StoredRows>),
}

impl Matrix {
    /// The products of rows, one after the other.
    pub(crate) fn apply(&self, rows: &Activations) -> Vec<f32> {
        match self {
            Self::Packed(packed) => rows.kernel.product(rows.grouped(), rows.count(), packed),
            Self::Stored(stored) => stored.product(rows.kernel, &rows.numbers),
        }
    }

    /// The matrix' rows with these numbers.
    pub(crate) fn pick(&self, numbers: &[u32]) -> Vec<f32> {
        match self {
            Self::Packed(packed) => numbers.iter().flat_map(|&number| packed.row(number as usize)).collect(),
            Self::Stored(stored) => numbers.iter().flat_map(|&number| stored.row(number as usize)).collect(),
        }
    }
}

/// Activations, ready to be multiplied with several matrices.
pub(crate) struct Activations {
    numbers: Vec<f32>,
    width: usize,
    grouped: OnceCell<Vec<f32>>,
    kernel: MatmulKernel,
}

impl Activations {
    pub(crate) fn new(numbers: Vec<f32>, width: usize, kernel: MatmulKernel) -> Self {
        Self { numbers, width, grouped: OnceCell::new(), kernel }
    }

    fn count(&self) -> usize {
        self.numbers.len() / self.width
    }

    fn grouped(&self) -> &[f32] {
        match self.count() {
            1 => &self.numbers,
            _ => self.grouped.get_or_init(|| self.kernel.grouped(&self.numbers, self.width)),
        }
    }
}

pub(crate) struct Layer {
    pub(crate) attention_norm: Vec<f32>,
    pub(crate) query: Matrix,
    pub(crate) key: Matrix,
    pub(crate) value: Matrix,
    pub(crate) query_bias: Option<Vec<f32>>,
    pub(crate) key_bias: Option<Vec<f32>>,
    pub(crate) value_bias: Option<Vec<f32>>,
    pub(crate) query_norm: Option<Vec<f32>>,
    pub(crate) key_norm: Option<Vec<f32>>,
    pub(crate) output: Matrix,
    pub(crate) inner_norm: Vec<f32>,
    pub(crate) gate: Matrix,
    pub(crate) up: Matrix,
    pub(crate) down: Matrix,
}

/// All tensors of a model.
pub(crate) struct ModelWeights {
    pub(crate) embedding: Matrix,
    pub(crate) layers: Vec<Layer>,
    pub(crate) norm: Vec<f32>,
    pub(crate) output: Matrix,
    /// What each pair's rotation is divided by, where the model says so.
    pub(crate) rotation_factors: Option<Vec<f32>>,
}

impl ModelWeights {
    pub(crate) fn read(
        header: &GgufHeader,
        config: &ModelConfig,
        file: &mut (impl Read + Seek),
    ) -> Result<Self, LoadError> {
        let mut tensors = TensorReader { header, file };
        let embedding = tensors.matrix("token_embd.weight", config.width, config.vocabulary)?;
        let output = match header.tensor("output.weight") {
            Some(_) => tensors.matrix("output.weight", config.width, config.vocabulary)?,
            None => embedding.clone(),
        };
        let norm = tensors.vector("output_norm.weight", config.width)?;
        let rotation_factors = tensors.optional_vector("rope_freqs.weight", config.rotated / 2)?;
        let mut layers = Vec::new();
        for number in 0..config.layers {
            layers.push(tensors.layer(number, config)?);
        }
        Ok(Self { embedding, layers, norm, output, rotation_factors })
    }
}

struct TensorReader<'a, F> {
    header: &'a GgufHeader,
    file: &'a mut F,
}

impl<'a, F: Read + Seek> TensorReader<'a, F> {
    fn layer(&mut self, number: usize, config: &ModelConfig) -> Result<Layer, LoadError> {
        let name = |part: &str| format!("blk.{number}.{part}");
        let (width, inner) = (config.width, config.inner);
        let (queries, keys) = (config.heads * config.head, config.kv_heads * config.head);
        Ok(Layer {
            attention_norm: self.vector(&name("attn_norm.weight"), width)?,
            query: self.matrix(&name("attn_q.weight"), width, queries)?,
            key: self.matrix(&name("attn_k.weight"), width, keys)?,
            value: self.matrix(&name("attn_v.weight"), width, keys)?,
            query_bias: self.optional_vector(&name("attn_q.bias"), queries)?,
            key_bias: self.optional_vector(&name("attn_k.bias"), keys)?,
            value_bias: self.optional_vector(&name("attn_v.bias"), keys)?,
            query_norm: self.optional_vector(&name("attn_q_norm.weight"), config.head)?,
            key_norm: self.optional_vector(&name("attn_k_norm.weight"), config.head)?,
            output: self.matrix(&name("attn_output.weight"), queries, width)?,
            inner_norm: self.vector(&name("ffn_norm.weight"), width)?,
            gate: self.matrix(&name("ffn_gate.weight"), width, inner)?,
            up: self.matrix(&name("ffn_up.weight"), width, inner)?,
            down: self.matrix(&name("ffn_down.weight"), inner, width)?,
        })
    }

    fn matrix(&mut self, name: &str, inner: usize, rows: usize) -> Result<Matrix, LoadError> {
        let entry = self.entry(name, &[inner, rows])?;
        let bytes = bytes(entry, self.file)?;
        if entry.kind == TensorType::Q8_0 && inner.is_multiple_of(BLOCK) {
            return Ok(Matrix::Packed(Arc::new(PackedRows::new(&bytes, inner, rows))));
        }
        Ok(Matrix::Stored(Arc::new(StoredRows::new(entry.kind, bytes, inner, rows))))
    }

    fn vector(&mut self, name: &str, length: usize) -> Result<Vec<f32>, LoadError> {
        let entry = self.entry(name, &[length])?;
        let mut numbers = vec![0.0; length];
        dequantise(entry.kind, &bytes(entry, self.file)?, &mut numbers);
        Ok(numbers)
    }

    fn optional_vector(&mut self, name: &str, length: usize) -> Result<Option<Vec<f32>>, LoadError> {
        match self.header.tensor(name) {
            Some(_) => self.vector(name, length).map(Some),
            None => Ok(None),
        }
    }

    fn entry(&self, name: &str, dimensions: &[usize]) -> Result<&'a TensorEntry, LoadError> {
        let entry = self.header.tensor(name).ok_or_else(|| LoadError::Tensor(name.to_owned()))?;
        let expected = dimensions.iter().map(|&dimension| dimension as u64);
        if entry.dimensions.iter().copied().eq(expected) {
            Ok(entry)
        } else {
            Err(LoadError::Shape { name: name.to_owned(), found: entry.dimensions.clone() })
        }
    }
}

/// A tensor's bytes. They were found to lie in the file, so the file is as large as what is allocated.
fn bytes(entry: &TensorEntry, file: &mut (impl Read + Seek)) -> Result<Vec<u8>, LoadError> {
    let length = usize::try_from(entry.bytes.end - entry.bytes.start)
        .map_err(|_| LoadError::Placement(entry.name.clone()))?;
    let mut bytes = vec![0; length];
    file.seek(SeekFrom::Start(entry.bytes.start))?;
    file.read_exact(&mut bytes)?;
    Ok(bytes)
}

//! The forward pass: tokens in, the next token's logits out.
//!
//! One decoder serves every architecture. Its products with weights are elsewhere ([`crate::weights`]); attention and
//! the small steps are here, over a cache of our own ([`crate::kv_cache`]): it can be truncated to any common
//! prefix and copied, so that siblings of a tree share their prompt.
//!
//! Numbers of a row do not depend on the rows computed beside it. So a prompt read in chunks, or continued
//! from a cached prefix, gives the same logits as one read at once.

use std::fs::File;

use crate::error::LoadError;
use crate::header::GgufHeader;
use crate::kv_cache::KvCache;
use crate::matmul::MatmulKernel;
use crate::model_config::ModelConfig;
use crate::simd::{add, add_scaled, dot, gated, normalise, softmax, wide};
use crate::weights::{Activations, Layer, ModelWeights};

/// A model, ready to compute.
pub(crate) struct Decoder {
    pub(crate) config: ModelConfig,
    weights: ModelWeights,
    /// Cosine and sine of each pair at each position.
    rotations: Vec<(f32, f32)>,
    kernel: MatmulKernel,
}

/// The job was stopped before its tokens were decoded.
pub(crate) struct Cancelled;

impl Decoder {
    pub(crate) fn read(
        header: &GgufHeader,
        config: ModelConfig,
        file: &mut File,
        window: u32,
    ) -> Result<Self, LoadError> {
        let weights = ModelWeights::read(header, &config, file)?;
        let rotations = rotations(&config, weights.rotation_factors.as_deref(), window);
        Ok(Self { config, weights, rotations, kernel: MatmulKernel::new() })
    }

    /// Reads tokens that follow what the cache holds, and gives the logits after the last one.
    ///
    /// `stop` is asked before every layer; when it says so the cache is left as it was.
    pub(crate) fn read_on(
        &self,
        tokens: &[u32],
        kv: &mut KvCache,
        stop: &dyn Fn() -> bool,
    ) -> Result<Vec<f32>, Cancelled> {
        let from = kv.len();
        self.layers(tokens, kv, stop).inspect_err(|_| kv.truncate(from))
    }

    fn layers(
        &self,
        tokens: &[u32],
        kv: &mut KvCache,
        stop: &dyn Fn() -> bool,
    ) -> Result<Vec<f32>, Cancelled> {
        let (config, from) = (&self.config, kv.len());
        let mut state = self.weights.embedding.pick(tokens);
        kv.reserve(tokens.len());
        for (number, layer) in self.weights.layers.iter().enumerate() {
            if stop() {
                return Err(Cancelled);
            }
            let attended = self.attention(number, layer, &state, from, kv);
            add(&mut state, &attended);
            let rows = self.normalised(&state, &layer.inner_norm);
            let (mut gate, up) = (layer.gate.apply(&rows), layer.up.apply(&rows));
            wide(self.kernel.arch, || gated(&mut gate, &up));
            add(&mut state, &layer.down.apply(&Activations::new(gate, config.inner, self.kernel)));
        }
        kv.set_len(from + tokens.len());
        let last = &state[state.len().saturating_sub(config.width)..];
        let rows = self.normalised(last, &self.weights.norm);
        Ok(self.weights.output.apply(&rows))
    }

    fn normalised(&self, state: &[f32], weights: &[f32]) -> Activations {
        let mut rows = state.to_vec();
        wide(self.kernel.arch, || normalise(&mut rows, weights, self.config.epsilon));
        Activations::new(rows, weights.len(), self.kernel)
    }

    fn attention(
        &self,
        number: usize,
        layer: &Layer,
        state: &[f32],
        from: usize,
        kv: &mut KvCache,
    ) -> Vec<f32> {
        let config = &self.config;
        let rows = self.normalised(state, &layer.attention_norm);
        let mut queries = layer.query.apply(&rows);
        let mut keys = layer.key.apply(&rows);
        let mut values = layer.value.apply(&rows);
        for (row, bias) in [
            (&mut queries, &layer.query_bias),
            (&mut keys, &layer.key_bias),
            (&mut values, &layer.value_bias),
        ] {
            if let Some(bias) = bias {
                add(row, bias);
            }
        }
        for (row, norm) in [(&mut queries, &layer.query_norm), (&mut keys, &layer.key_norm)] {
            if let Some(norm) = norm {
                wide(self.kernel.arch, || normalise(row, norm, config.epsilon));
            }
        }
        self.rotate(&mut queries, config.heads, from);
        self.rotate(&mut keys, config.kv_heads, from);
        kv.append(number, &keys, &values);
        let (keys, values) = kv.layer(number);
        let attend = Attention {
            keys,
            values,
            head: config.head,
            heads: config.heads,
            kv_heads: config.kv_heads,
            from,
        };
        let mut attended = vec![0.0; queries.len()];
        wide(self.kernel.arch, || attend.rows(&queries, &mut attended));
        layer.output.apply(&Activations::new(attended, config.heads * config.head, self.kernel))
    }

    fn rotate(&self, rows: &mut [f32], heads: usize, from: usize) {
        let (head, pairs) = (self.config.head, self.config.rotated / 2);
        let neighbours = self.config.family.rotates_neighbours();
        for (row, part) in rows.chunks_exact_mut(heads * head).enumerate() {
            let at = (from + row) * pairs;
            let Some(rotations) = self.rotations.get(at..at + pairs) else { continue };
            for head in part.chunks_exact_mut(head) {
                for (pair, &(cos, sin)) in rotations.iter().enumerate() {
                    let (a, b) = if neighbours { (2 * pair, 2 * pair + 1) } else { (pair, pair + pairs) };
                    let (x, y) = (head[a], head[b]);
                    head[a] = x * cos - y * sin;
                    head[b] = x * sin + y * cos;
                }
            }
        }
    }
}

/// Attention of one layer over its cache.
struct Attention<'a> {
    keys: &'a [f32],
    values: &'a [f32],
    head: usize,
    heads: usize,
    kv_heads: usize,
    /// Position of the first query.
    from: usize,
}

impl Attention<'_> {
    #[inline(always)]
    fn rows(&self, queries: &[f32], attended: &mut [f32]) {
        let width = self.heads * self.head;
        let mut scores = Vec::new();
        let rows = queries.chunks_exact(width).zip(attended.chunks_exact_mut(width));
        for (row, (queries, attended)) in rows.enumerate() {
            let heads = queries.chunks_exact(self.head).zip(attended.chunks_exact_mut(self.head));
            for (head, (query, attended)) in heads.enumerate() {
                self.one(
                    query,
                    head / (self.heads / self.kv_heads),
                    self.from + row + 1,
                    &mut scores,
                    attended,
                );
            }
        }
    }

    /// One head of one query over the first `seen` positions.
    #[inline(always)]
    fn one(&self, query: &[f32], kv_head: usize, seen: usize, scores: &mut Vec<f32>, attended: &mut [f32]) {
        let (stride, at) = (self.kv_heads * self.head, kv_head * self.head);
        let scale = 1.0 / (self.head as f32).sqrt();
        scores.clear();
        let keys = self.keys.chunks_exact(stride).take(seen);
        scores.extend(keys.map(|key| dot(query, &key[at..at + self.head]) * scale));
        softmax(scores);
        for (share, value) in scores.iter().zip(self.values.chunks_exact(stride)) {
            add_scaled(attended, *share, &value[at..at + self.head]);
        }
    }
}

#[expect(clippy::cast_possible_truncation, reason = "computed in double precision, kept in single")]
fn rotations(config: &ModelConfig, factors: Option<&[f32]>, window: u32) -> Vec<(f32, f32)> {
    let pairs = config.rotated / 2;
    let speeds: Vec<f64> = (0..pairs)
        .map(|pair| {
            let factor = factors.and_then(|factors| factors.get(pair)).copied().unwrap_or(1.0);
            config.rotation_base.powf(-2.0 * pair as f64 / config.rotated as f64) / f64::from(factor)
        })
        .collect();
    let mut rotations = Vec::with_capacity(window as usize * pairs);
    for position in 0..window {
        rotations.extend(speeds.iter().map(|speed| {
            let angle = f64::from(position) / config.rotation_scale * speed;
            (angle.cos() as f32, angle.sin() as f32)
        }));
    }
    rotations
}

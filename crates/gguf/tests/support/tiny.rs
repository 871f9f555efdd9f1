//! Small GGUF files made in the test: a random model that is a real one in everything but its size.

/// A metadata value to write.
#[derive(Clone)]
pub(crate) enum Meta {
    U32(u32),
    F32(f32),
    Bool(bool),
    Text(String),
    Texts(Vec<String>),
    I32s(Vec<i32>),
    /// A value of a kind and bytes that no writer would make.
    Raw(u32, Vec<u8>),
}

impl From<&str> for Meta {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

/// A tensor to write.
#[derive(Clone)]
pub(crate) struct Tensor {
    pub(crate) name: String,
    pub(crate) dimensions: Vec<u64>,
    pub(crate) kind: u32,
    pub(crate) bytes: Vec<u8>,
    /// An offset that is not where the bytes are.
    pub(crate) offset: Option<u64>,
}

/// A file to write.
#[derive(Clone)]
pub(crate) struct File {
    pub(crate) version: u32,
    pub(crate) metadata: Vec<(String, Meta)>,
    pub(crate) tensors: Vec<Tensor>,
}

impl File {
    pub(crate) fn bytes(&self) -> Vec<u8> {
        let mut bytes = b"GGUF".to_vec();
        bytes.extend(self.version.to_le_bytes());
        bytes.extend((self.tensors.len() as u64).to_le_bytes());
        bytes.extend((self.metadata.len() as u64).to_le_bytes());
        for (key, value) in &self.metadata {
            text(&mut bytes, key);
            meta(&mut bytes, value);
        }
        let mut offset = 0_u64;
        for tensor in &self.tensors {
            text(&mut bytes, &tensor.name);
            bytes.extend((tensor.dimensions.len() as u32).to_le_bytes());
            for dimension in &tensor.dimensions {
                bytes.extend(dimension.to_le_bytes());
            }
            bytes.extend(tensor.kind.to_le_bytes());
            bytes.extend(tensor.offset.unwrap_or(offset).to_le_bytes());
            offset = (offset + tensor.bytes.len() as u64).next_multiple_of(32);
        }
        for tensor in &self.tensors {
            bytes.resize(bytes.len().next_multiple_of(32), 0);
            bytes.extend(&tensor.bytes);
        }
        bytes
    }

    /// Replaces or adds a metadata value.
    #[must_use]
    pub(crate) fn with(mut self, key: &str, value: impl Into<Meta>) -> Self {
        self.metadata.retain(|(known, _)| known != key);
        self.metadata.push((key.to_owned(), value.into()));
        self
    }

    #[must_use]
    pub(crate) fn without(mut self, key: &str) -> Self {
        self.metadata.retain(|(known, _)| known != key);
        self
    }

    /// Spells the three control tokens, 0 to 2, otherwise.
    #[must_use]
    pub(crate) fn with_markers(mut self, markers: [&str; 3]) -> Self {
        for (key, value) in &mut self.metadata {
            if let ("tokenizer.ggml.tokens", Meta::Texts(tokens)) = (key.as_str(), value) {
                tokens.splice(..3, markers.map(str::to_owned));
            }
        }
        self
    }
}

fn text(bytes: &mut Vec<u8>, text: &str) {
    bytes.extend((text.len() as u64).to_le_bytes());
    bytes.extend(text.as_bytes());
}

fn meta(bytes: &mut Vec<u8>, value: &Meta) {
    let mut list = |kind: u32, count: usize| {
        bytes.extend(9_u32.to_le_bytes());
        bytes.extend(kind.to_le_bytes());
        bytes.extend((count as u64).to_le_bytes());
    };
    match value {
        Meta::U32(number) => {
            bytes.extend(4_u32.to_le_bytes());
            bytes.extend(number.to_le_bytes());
        }
        Meta::F32(number) => {
            bytes.extend(6_u32.to_le_bytes());
            bytes.extend(number.to_le_bytes());
        }
        Meta::Bool(value) => {
            bytes.extend(7_u32.to_le_bytes());
            bytes.push(u8::from(*value));
        }
        Meta::Text(value) => {
            bytes.extend(8_u32.to_le_bytes());
            text(bytes, value);
        }
        Meta::Texts(values) => {
            list(8, values.len());
            for value in values {
                text(bytes, value);
            }
        }
        Meta::I32s(values) => {
            list(5, values.len());
            for value in values {
                bytes.extend(value.to_le_bytes());
            }
        }
        Meta::Raw(kind, value) => {
            bytes.extend(kind.to_le_bytes());
            bytes.extend(value);
        }
    }
}

/// What a tiny model is like.
#[derive(Clone, Copy)]
pub(crate) struct Tiny {
    /// `llama`, `qwen2` or `qwen3`.
    pub(crate) family: &'static str,
    /// 0 for 32-bit floats, 8 for 8-bit blocks, 3 for 4-bit blocks with a minimum.
    pub(crate) kind: u32,
    pub(crate) context: u32,
    pub(crate) seed: u64,
}

pub(crate) const TINY: Tiny = Tiny { family: "llama", kind: 8, context: 512, seed: 1 };

const WIDTH: u64 = 64;
const HEADS: u64 = 4;
const KV_HEADS: u64 = 2;
const HEAD: u64 = 16;
const INNER: u64 = 128;
const LAYERS: u64 = 2;

/// ChatML as SmolLM2's file has it.
pub(crate) const TEMPLATE: &str = "{% for message in messages %}{{'<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n'}}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}";

impl Tiny {
    pub(crate) fn file(self) -> File {
        let mut metadata: Vec<(String, Meta)> = vec![
            ("general.architecture".into(), self.family.into()),
            ("general.name".into(), "tiny".into()),
            ("tokenizer.ggml.model".into(), "gpt2".into()),
            ("tokenizer.ggml.pre".into(), "smollm".into()),
            ("tokenizer.ggml.eos_token_id".into(), Meta::U32(2)),
            ("tokenizer.ggml.bos_token_id".into(), Meta::U32(1)),
            ("tokenizer.ggml.add_bos_token".into(), Meta::Bool(false)),
            ("tokenizer.chat_template".into(), TEMPLATE.into()),
        ];
        let numbers = [
            ("context_length", u64::from(self.context)),
            ("embedding_length", WIDTH),
            ("block_count", LAYERS),
            ("feed_forward_length", INNER),
            ("attention.head_count", HEADS),
            ("attention.head_count_kv", KV_HEADS),
            ("attention.key_length", HEAD),
            ("attention.value_length", HEAD),
            ("rope.dimension_count", HEAD),
        ];
        for (name, number) in numbers {
            metadata.push((format!("{}.{name}", self.family), Meta::U32(number as u32)));
        }
        metadata.push((format!("{}.attention.layer_norm_rms_epsilon", self.family), Meta::F32(1e-5)));
        metadata.push((format!("{}.rope.freq_base", self.family), Meta::F32(10_000.0)));
        let (tokens, kinds, merges) = vocabulary();
        let count = tokens.len() as u64;
        metadata.push(("tokenizer.ggml.tokens".into(), Meta::Texts(tokens)));
        metadata.push(("tokenizer.ggml.token_type".into(), Meta::I32s(kinds)));
        metadata.push(("tokenizer.ggml.merges".into(), Meta::Texts(merges)));
        File { version: 3, metadata, tensors: self.tensors(count) }
    }

    fn tensors(self, vocabulary: u64) -> Vec<Tensor> {
        let mut random = Random(self.seed);
        let mut tensors = vec![
            self.matrix(&mut random, "token_embd.weight", WIDTH, vocabulary, 1.0),
            vector(&mut random, "output_norm.weight", WIDTH, 1.0),
            self.matrix(&mut random, "output.weight", WIDTH, vocabulary, 0.5),
        ];
        for layer in 0..LAYERS {
            let name = |part: &str| format!("blk.{layer}.{part}");
            let (queries, keys) = (HEADS * HEAD, KV_HEADS * HEAD);
            tensors.push(vector(&mut random, &name("attn_norm.weight"), WIDTH, 1.0));
            tensors.push(self.matrix(&mut random, &name("attn_q.weight"), WIDTH, queries, 0.3));
            tensors.push(self.matrix(&mut random, &name("attn_k.weight"), WIDTH, keys, 0.3));
            tensors.push(self.matrix(&mut random, &name("attn_v.weight"), WIDTH, keys, 0.3));
            tensors.push(self.matrix(&mut random, &name("attn_output.weight"), queries, WIDTH, 0.3));
            tensors.push(vector(&mut random, &name("ffn_norm.weight"), WIDTH, 1.0));
            tensors.push(self.matrix(&mut random, &name("ffn_gate.weight"), WIDTH, INNER, 0.3));
            tensors.push(self.matrix(&mut random, &name("ffn_up.weight"), WIDTH, INNER, 0.3));
            tensors.push(self.matrix(&mut random, &name("ffn_down.weight"), INNER, WIDTH, 0.3));
            if self.family == "qwen2" {
                tensors.push(vector(&mut random, &name("attn_q.bias"), queries, 0.0));
                tensors.push(vector(&mut random, &name("attn_k.bias"), keys, 0.0));
                tensors.push(vector(&mut random, &name("attn_v.bias"), keys, 0.0));
            }
            if self.family == "qwen3" {
                tensors.push(vector(&mut random, &name("attn_q_norm.weight"), HEAD, 1.0));
                tensors.push(vector(&mut random, &name("attn_k_norm.weight"), HEAD, 1.0));
            }
        }
        tensors
    }

    fn matrix(self, random: &mut Random, name: &str, inner: u64, rows: u64, spread: f32) -> Tensor {
        let numbers: Vec<f32> = (0..inner * rows).map(|_| random.next() * spread).collect();
        let bytes = match self.kind {
            0 => numbers.iter().flat_map(|number| number.to_le_bytes()).collect(),
            8 => numbers.chunks(32).flat_map(block_of_8_bits).collect(),
            3 => numbers.chunks(32).flat_map(block_of_4_bits).collect(),
            other => unreachable!("type {other}"),
        };
        Tensor { name: name.into(), dimensions: vec![inner, rows], kind: self.kind, bytes, offset: None }
    }
}

fn vector(random: &mut Random, name: &str, length: u64, base: f32) -> Tensor {
    let numbers = (0..length).map(|_| base + random.next() * 0.2);
    let bytes = numbers.flat_map(f32::to_le_bytes).collect();
    Tensor { name: name.into(), dimensions: vec![length], kind: 0, bytes, offset: None }
}

fn block_of_8_bits(numbers: &[f32]) -> Vec<u8> {
    let most = numbers.iter().fold(0.0_f32, |most, number| most.max(number.abs()));
    let (scale, half) = half(most / 127.0);
    let mut bytes = half.to_vec();
    bytes.extend(numbers.iter().map(|number| (number / scale).round().clamp(-127.0, 127.0) as i8 as u8));
    bytes
}

fn block_of_4_bits(numbers: &[f32]) -> Vec<u8> {
    let least = numbers.iter().copied().fold(f32::INFINITY, f32::min);
    let most = numbers.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let ((scale, scale_half), (least, least_half)) = (half((most - least) / 15.0), half(least));
    let digit = |number: f32| ((number - least) / scale).round().clamp(0.0, 15.0) as u8;
    let mut bytes = [scale_half, least_half].concat();
    bytes.extend((0..16).map(|at| digit(numbers[at]) | (digit(numbers[at + 16]) << 4)));
    bytes
}

/// A number as 16-bit floating point (cut off, normal numbers only): what it becomes, and its bytes.
fn half(number: f32) -> (f32, [u8; 2]) {
    let bits = number.to_bits();
    let exponent = ((bits >> 23) & 0xff) as i32 - 127 + 15;
    assert!((1..31).contains(&exponent), "{number} is not normal in 16 bits");
    let half = ((bits >> 16) & 0x8000) as u16 | ((exponent as u16) << 10) | ((bits >> 13) & 0x3ff) as u16;
    (f32::from_bits(bits & !0x1fff), half.to_le_bytes())
}

/// The control tokens, a letter for each byte, and a few words.
fn vocabulary() -> (Vec<String>, Vec<i32>, Vec<String>) {
    let mut tokens: Vec<String> = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"].map(str::to_owned).to_vec();
    let mut kinds = vec![3; tokens.len()];
    let printable = |byte: u32| matches!(byte, 0x21..=0x7e | 0xa1..=0xac | 0xae..=0xff);
    let mut others = 256..;
    for byte in 0..256 {
        let letter = if printable(byte) { byte } else { others.next().unwrap_or_default() };
        tokens.push(char::from_u32(letter).unwrap_or('?').to_string());
    }
    let merges = ["Ġ t", "h e", "Ġt he", "i n", "a n", "an d", "Ġ and", "Ġ a", "e r"];
    tokens.extend(merges.iter().map(|merge| merge.replace(' ', "")));
    kinds.resize(tokens.len(), 1);
    (tokens, kinds, merges.map(str::to_owned).to_vec())
}

struct Random(u64);

impl Random {
    /// From -1 to 1.
    fn next(&mut self) -> f32 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 40) as f32 / (1_u64 << 23) as f32) - 1.0
    }
}

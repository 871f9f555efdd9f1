//! What a unit of each kind of text is in tokens, by family of tokenizers, before any usage was reported
//! (spec: context §4).
//!
//! Measured on the Universal Declaration of Human Rights in each language, on code, identifiers, JSON, hex, base64 and
//! emoji (decision 11). A row of several languages has the dearest of them.

use crate::units::{KINDS, LATIN};

/// The weights of one family.
#[derive(Clone, Copy)]
pub(crate) struct Prior {
    /// The family, as [`model::ModelInfo`] names it.
    pub(crate) family: &'static str,
    /// Tokens a unit, in the order of [`text::kind::LatinKind`].
    pub(crate) latin: [f64; LATIN],
    /// Tokens a character, in the order of [`text::class::Script`]; what is Japanese counts as kana.
    pub(crate) scripts: [f64; KINDS - LATIN],
    /// Tokens a message costs besides its text.
    pub(crate) message: f64,
    /// Tokens a character of a tool's schema.
    pub(crate) schema: f64,
}

const MEASURED: [Prior; 5] = [
    Prior {
        family: "openai_o200k",
        latin: [
            2.00, 1.96, 1.89, 1.94, 2.24, 2.06, 2.44, 2.72, 2.87, 2.79, 2.71, 2.53, 2.49, 1.92, 2.23, 1.66,
            2.87, 2.66, 2.47, 2.65, 4.79, 4.63,
        ],
        scripts: [0.35, 0.40, 0.37, 0.44, 0.32, 0.38, 0.42, 0.73, 0.86, 0.84, 1.85, 2.01],
        message: 4.0,
        schema: 0.24,
    },
    Prior {
        family: "openai_cl100k",
        latin: [
            2.59, 2.31, 2.29, 2.47, 2.60, 2.77, 2.96, 3.53, 3.56, 3.30, 3.70, 2.98, 3.36, 3.39, 2.87, 1.66,
            3.70, 2.65, 2.46, 2.63, 4.79, 4.87,
        ],
        scripts: [0.64, 1.05, 0.90, 1.16, 1.19, 1.53, 0.99, 1.29, 1.42, 1.18, 2.56, 2.98],
        message: 4.0,
        schema: 0.24,
    },
    Prior {
        family: "llama",
        latin: [
            2.59, 2.31, 2.28, 2.46, 2.60, 2.77, 2.95, 3.53, 3.51, 3.27, 2.57, 2.97, 2.42, 1.80, 2.86, 1.66,
            3.53, 2.64, 2.46, 2.63, 4.79, 4.86,
        ],
        scripts: [0.31, 0.42, 0.42, 1.16, 0.61, 1.53, 0.46, 0.74, 0.83, 0.71, 2.49, 2.98],
        message: 5.0,
        schema: 0.26,
    },
    Prior {
        family: "qwen",
        latin: [
            2.58, 2.30, 2.27, 2.45, 2.59, 2.79, 2.97, 3.55, 3.55, 3.05, 3.64, 2.99, 2.89, 1.87, 2.89, 1.67,
            3.64, 2.69, 2.50, 3.15, 6.10, 5.03,
        ],
        scripts: [0.53, 0.99, 0.67, 0.43, 1.11, 1.24, 0.56, 0.79, 0.68, 0.67, 1.20, 1.13],
        message: 5.0,
        schema: 0.26,
    },
    Prior {
        family: "smollm",
        latin: [
            3.58, 2.91, 3.15, 3.20, 3.37, 3.61, 3.86, 4.24, 4.43, 4.74, 4.62, 3.97, 4.26, 5.76, 3.71, 1.76,
            4.74, 3.24, 3.12, 3.43, 6.18, 5.47,
        ],
        scripts: [0.95, 1.01, 1.25, 1.32, 1.30, 2.20, 1.90, 2.80, 1.94, 1.79, 2.85, 3.03],
        message: 5.0,
        schema: 0.32,
    },
];

/// Claude's tokenizers are not public: its first one has about as many tokens as the dearest of the others, later ones
/// have more.
const CLAUDE: (f64, f64) = (1.15, 0.30);

/// How much dearer other scripts than Latin may be in a vocabulary that was not measured.
const UNSEEN: f64 = 1.12;

impl Prior {
    /// The weights of a family; of one that nobody knows those of the dearest it may be.
    pub(crate) fn of(family: &str) -> Self {
        if let Some(known) = MEASURED.iter().find(|prior| prior.family == family) {
            return *known;
        }
        let mut dearest = MEASURED[0];
        for prior in &MEASURED {
            let pairs = dearest.latin.iter_mut().zip(prior.latin);
            for (most, weight) in pairs.chain(dearest.scripts.iter_mut().zip(prior.scripts)) {
                *most = most.max(weight);
            }
            dearest.message = dearest.message.max(prior.message);
            // Schemas are English: the small vocabulary, which is always known by name, is not asked about them.
            if prior.family != "smollm" {
                dearest.schema = dearest.schema.max(prior.schema);
            }
        }
        dearest.scripts = dearest.scripts.map(|weight| weight * UNSEEN);
        match family {
            "claude" => Self {
                family: "claude",
                latin: dearest.latin.map(|weight| weight * CLAUDE.0),
                schema: CLAUDE.1,
                ..dearest
            },
            "gemini" => Self { family: "gemini", ..dearest },
            _ => Self { family: "unknown", ..dearest },
        }
    }
}

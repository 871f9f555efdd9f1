//! Cards: short texts that tell an agent what it can do, sent only where they are of use (spec: capabilities §1–5).
//!
//! ```text
//! files → Registry (cards by id, refused files) → Router (a score per card and message) → select (texts that are sent)
//! ```
//!
//! Files are read here, beneath a root and by fixed rules ([`Registry`]); everything behind that is a pure function of
//! cards and a message: equal cards and an equal message give equal texts, in whichever order a folder lists them. Layers
//! of the router ([`layers`]) are independent of each other, so that each can be measured alone; [`fusion`] makes one
//! score of them. What the owner allows, accepts and configures comes in as arguments.

mod card;
mod card_file;
pub mod fusion;
pub mod layers;
mod loading;
mod registry;
mod router;
mod sanitising;
mod selection;
mod template;

pub use card::{Card, DEFAULT_MAX_CHARS, DEFAULT_THRESHOLD, MAX_TOKEN_BUDGET, SessionType};
pub use card_file::CardFile;
pub use loading::{
    CARD_FOLDER, CardFolder, CardSource, CardText, LoadingRules, MAX_BYTES, RefusedPlace, card_files,
};
pub use registry::{CheckedCard, RefusedCard, Registry};
pub use router::{CardScores, DEFAULT_TAGS, Router, Routing, TagScore};
pub use sanitising::{SanitisedBody, sanitised_body};
pub use selection::{Decision, LeftOut, Selection, SelectionRules, select};
pub use template::template;

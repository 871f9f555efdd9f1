//! Where rows live: the concrete [`Store`], whose rules stand once over a transaction of an engine.
//!
//! The tree core (`loom`) plans; the store applies. [`change`] ties the two: it reads what a plan needs within one
//! snapshot, plans, applies, and plans again when something changed meanwhile. Reads are functions over
//! [`loom::Rows`] that run on the store's own threads, next to the rows ([`read`]).
//!
//! Every method takes a [`Principal`]; what a principal may not see does not exist for it (spec: security §17).

mod adopt;
mod apply;
mod basis;
pub mod blobs;
mod change;
pub mod compress;
mod db;
mod disk;
mod draft;
mod engine;
mod error;
mod event;
mod fence;
mod follow;
mod forget;
mod generation;
pub mod home;
pub mod instance;
mod job;
mod limits;
mod listing;
#[cfg(feature = "postgres")]
mod postgres;
mod principal;
mod question;
mod rows;
mod schema;
mod search;
mod server;
mod session;
pub mod spool;
mod sqlite;
mod store;
mod workspace;

pub use adopt::{Adopted, AdoptedGeneration, AdoptedManifest, Import, ImportNote};
pub use apply::{Applied, AppliedDraft, With};
pub use basis::Basis;
pub use change::{Ids, Prepared, change, prepare};
pub use draft::{DraftEdit, DraftName};
pub use error::{Changed, ServerError, StoreError};
pub use event::{Cursor, Event, Events, Happening, KEPT};
pub use fence::{Fence, Guard, Holder, Lease, Tenure};
pub use follow::{Follower, follow};
pub use forget::{Forget, Forgotten, Place, QuotedAs, SHORTEST_TEXT};
pub use generation::{
    Bytes, Generation, GenerationFilter, GenerationState, LimitUse, NewGeneration, Outcome, Received,
    Reservation, SpendLimits, Spending, SpentAfter, SpentRow, Usage, UsageRow,
};
pub use job::{Job, JobEnd, JobFilter, JobId, JobState, NewJob};
pub use limits::Limits;
pub use listing::{NodeName, TreeEntry, TreeFilter};
pub use principal::{Principal, Scope};
pub use question::{Answer, Decision, NewAnswer, NewQuestion, Question, QuestionId};
pub use search::{Hit, Hits, RANKED, SearchScope};
pub use server::ServerOptions;
pub use session::{NewSession, Session, SessionFilter, SessionId, SessionKind};
pub use sqlite::{Faults, Options};
pub use store::{Backup, Identity, Store, StoreId, read};
pub use workspace::WorkspaceRecord;

//! Where rows live: the concrete [`Store`], whose rules stand once over a transaction of an engine.
//!
//! The tree core (`loom`) plans; the store applies. [`change`] ties the two: it reads what a plan needs within one
//! snapshot, plans, applies, and plans again when something changed meanwhile. Reads are functions over
//! [`loom::TreeReader`] that run on the store's own threads, next to the rows ([`read`]).
//!
//! Every method takes a [`Principal`]; what a principal may not see does not exist for it (spec: security §17).

mod apply;
pub mod blobs;
mod call;
mod change;
pub mod compress;
mod db;
mod disk;
mod draft;
mod engine;
mod error;
mod event;
mod fence;
mod file_change;
mod follow;
mod forget;
mod generation;
pub mod home;
mod identity;
mod import_tree;
pub mod instance;
mod job;
mod limits;
mod listing;
mod outcome;
#[cfg(feature = "postgres")]
mod postgres;
mod preconditions;
mod principal;
mod question;
mod rows;
mod schema;
mod search;
mod server;
mod session;
mod shared_events;
pub mod spool;
mod sqlite;
mod store;
mod workspace;

pub use apply::{Applied, AppliedDraft, AttachedWrites, ImportNote};
pub use call::{CallEnd, CallId, NewCall, RunningCall};
pub use change::{Ids, PreparedChange, change, change_announced, prepare};
pub use draft::{DraftEdit, DraftName};
pub use engine::StatementCounts;
pub use error::{ServerError, StaleRead, StoreError};
pub use event::{Cursor, EVENT_RETENTION, EventKind, Events, StoreEvent};
pub use fence::{Claim, Fence, Guard, Lease, LeaseOwner};
pub use file_change::{
    AcceptedInventory, ChangeStanding, FileChange, FileChangeId, FileState, GivingBack, KeptFile, KeptFiles,
    NewFileChange, NewFileChanges,
};
pub use follow::{Follower, follow};
pub use forget::{
    Forget, Forgotten, ForgottenBlob, ForgottenPlace, QuotedAs, SHORTEST_TEXT, UnfinishedRemoval,
};
pub use generation::{
    Generation, GenerationCost, GenerationEnd, GenerationFilter, GenerationState, HashedBytes, KnownCost,
    LimitUse, NewGeneration, Received, Reservation, SpendLimits, Spending, SpentAfter, SpentRow, UsageRow,
};
pub use identity::{Backup, Identity, StoreId};
pub use import_tree::{Import, ImportedGeneration, ImportedManifest, ImportedTree};
pub use job::{EndedJob, Job, JobEnd, JobFilter, JobId, JobState, NewJob};
pub use limits::StoreLimits;
pub use listing::{LIST_PAGE, NodeName, TreeEntry, TreeFilter, all_pages, split_name};
pub use outcome::{NewOutcome, OUTCOME_CHARS, Outcome, OutcomeError, OutcomeId, OutcomeKind};
pub use preconditions::Preconditions;
pub use principal::{Principal, Scope};
pub use question::{
    Decision, MAX_OPEN_QUESTIONS, NewAnswer, NewQuestion, Question, QuestionAnswer, QuestionId,
};
pub use rows::forget::Forgetting;
pub use search::{DraftHit, Hit, Hits, RANKED, SearchScope};
pub use server::ServerOptions;
pub use session::{NewSession, OWN_WORKSPACE, Session, SessionFilter, SessionId, SessionKind};
pub use sqlite::{Faults, Options};
pub use store::{Store, read};
pub use workspace::WorkspaceRecord;

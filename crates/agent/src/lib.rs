//! The turn engine: from what was said to an answer that is kept.
//!
//! Every request to a model takes one way, whoever asks for it and whatever for: it is assembled of a path or a prompt
//! ([`request`]) and encoded, made durable with its manifest ([`PreparedRequest`]), sent with every received byte in a
//! spool first ([`exchange`]), and turned into nodes or a reply together with its response and usage ([`commit`]). What a process that died had received is made a node by the
//! next one ([`recover`]). A command that continues a document and a turn of a conversation ([`session`]) differ only
//! in what is around that way.
//!
//! Invariants: no model call without a durable manifest and generation row; no received byte is looked at before it
//! is in the spool; no lock is held across an await; a second process never takes over work whose owner lives.

mod accepted_changes;
mod accepted_texts;
mod admission;
mod answer_end;
mod blocking;
pub mod bootstrap;
mod budget;
pub mod calibration;
pub mod call;
mod call_recovery;
pub mod commit;
mod count_sample;
mod counter_silence;
pub mod error;
mod estimated_usage;
pub mod event;
pub mod exchange;
mod failure;
pub mod fallback;
pub mod file_states;
mod forget;
mod given_back;
mod kept_files;
mod lasting_rules;
mod lease;
mod masking;
mod media;
mod prepared_request;
mod previous_request;
pub mod questions;
mod recent_requests;
mod recover;
pub mod replay;
mod reported_usage;
pub mod request;
mod request_permit;
pub mod runtime;
mod scoped_counter;
pub mod send;
mod sent_sampling;
pub mod session;
pub mod spend;
mod stop_cutter;
pub mod stored;
mod turn_bounds;
mod unmade_changes;
pub mod variant;
mod workspace_trust;
pub mod wrap;

pub use self::media::{MediaFacts, MediaHold};
pub use admission::expected_output;
pub use blocking::on_disk;
pub use budget::{Budget, Limit};
pub use call::Call;
pub use call_recovery::left_by;
pub use commit::{GenerationOutcome, TextReply};
pub use error::AgentError;
pub use event::{CommittedNode, EventSink, SayId, SessionEvent, TurnOutcome};
pub use exchange::{CacheGate, SiblingGate};
pub use failure::Failure;
pub use fallback::ListedModels;
pub use forget::RemovalOutcome;
pub use kept_files::{FileRetention, KeptFileBounds};
pub use lasting_rules::{LastingRules, RuleFile};
pub use prepared_request::{PreparedRequest, window_notice};
pub use questions::{DECISION, in_subagent};
pub use request::{GenerationRequest, PathRequest, PromptRequest, RequestSource, WindowNotice};
pub use runtime::{LEASE, ReadMasker, Runtime, command_records};
pub use send::resend;
pub use session::{OpenedSession, SessionChoice, TurnConfig, steering};
pub use spend::{SpendLimiter, TurnSpending};
pub use turn_bounds::{SubagentBounds, TurnBounds, WaitingBounds};
pub use variant::RequestVariant;

//! The program as people and scripts meet it: the real binary, in a home and a world of its own.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout, reason = "tests")]

#[path = "cli/accepted_skills.rs"]
mod accepted_skills;
#[path = "cli/agents.rs"]
mod agents;
#[path = "cli/answering_oneself.rs"]
mod answering_oneself;
#[path = "cli/answers.rs"]
mod answers;
#[path = "cli/answers_told.rs"]
mod answers_told;
#[path = "cli/approvals.rs"]
mod approvals;
#[path = "cli/attaching.rs"]
mod attaching;
#[path = "cli/attack_cases.rs"]
mod attack_cases;
#[path = "cli/background_changes.rs"]
mod background_changes;
#[path = "cli/benchmarks.rs"]
mod benchmarks;
#[path = "cli/browsing.rs"]
mod browsing;
#[path = "cli/built_in_skills.rs"]
mod built_in_skills;
#[path = "cli/cache_setup.rs"]
mod cache_setup;
#[path = "cli/call_results.rs"]
mod call_results;
#[path = "cli/calls_shown.rs"]
mod calls_shown;
#[path = "cli/cards.rs"]
mod cards;
#[path = "cli/care.rs"]
mod care;
#[path = "cli/chat_flags.rs"]
mod chat_flags;
#[path = "cli/chatting.rs"]
mod chatting;
#[path = "cli/checkpoint_sequences.rs"]
mod checkpoint_sequences;
#[path = "cli/coding.rs"]
mod coding;
#[path = "cli/coding_with_help.rs"]
mod coding_with_help;
#[path = "cli/command_tools.rs"]
mod command_tools;
#[path = "cli/configuration.rs"]
mod configuration;
#[path = "cli/contract.rs"]
mod contract;
#[path = "cli/control_keys.rs"]
mod control_keys;
#[path = "cli/conversation.rs"]
mod conversation;
#[path = "cli/conversation_tools.rs"]
mod conversation_tools;
#[path = "cli/counting.rs"]
mod counting;
#[path = "cli/custom_commands.rs"]
mod custom_commands;
#[path = "cli/damaged_settings.rs"]
mod damaged_settings;
#[path = "cli/dangling_store.rs"]
mod dangling_store;
#[cfg(feature = "postgres")]
#[path = "cli/database.rs"]
mod database;
#[path = "cli/departure.rs"]
mod departure;
#[path = "cli/dialects.rs"]
mod dialects;
#[path = "cli/discovery.rs"]
mod discovery;
#[path = "cli/documents.rs"]
mod documents;
#[path = "cli/editing.rs"]
mod editing;
#[path = "cli/editing_files.rs"]
mod editing_files;
#[path = "cli/editing_later.rs"]
mod editing_later;
#[path = "cli/editing_meanwhile.rs"]
mod editing_meanwhile;
#[path = "cli/editing_passages.rs"]
mod editing_passages;
#[path = "cli/elicitation.rs"]
mod elicitation;
#[path = "cli/errors.rs"]
mod errors;
#[path = "cli/everyday.rs"]
mod everyday;
#[path = "cli/everyday_hundred.rs"]
mod everyday_hundred;
#[path = "cli/exec.rs"]
mod exec;
#[path = "cli/exec_network.rs"]
mod exec_network;
#[path = "cli/file_commands.rs"]
mod file_commands;
#[path = "cli/file_tools.rs"]
mod file_tools;
#[path = "cli/files.rs"]
mod files;
#[path = "cli/finding.rs"]
mod finding;
#[path = "cli/folder_instructions.rs"]
mod folder_instructions;
#[path = "cli/followed_skills.rs"]
mod followed_skills;
#[path = "cli/foreign_text.rs"]
mod foreign_text;
#[path = "cli/further_roots.rs"]
mod further_roots;
#[path = "cli/giving_back.rs"]
mod giving_back;
#[path = "cli/guessing.rs"]
mod guessing;
#[path = "cli/handoff.rs"]
mod handoff;
#[path = "cli/headless.rs"]
mod headless;
#[path = "cli/headless_faults.rs"]
mod headless_faults;
#[path = "cli/home_files.rs"]
mod home_files;
#[path = "cli/hooks.rs"]
mod hooks;
#[path = "cli/hooks_of_approved_calls.rs"]
mod hooks_of_approved_calls;
#[path = "cli/hooks_that_guard.rs"]
mod hooks_that_guard;
#[path = "cli/illustrations.rs"]
mod illustrations;
#[path = "cli/keeping.rs"]
mod keeping;
#[path = "cli/killed_commands.rs"]
mod killed_commands;
#[path = "cli/large_files.rs"]
mod large_files;
#[path = "cli/larger_repository.rs"]
mod larger_repository;
#[path = "cli/lasting_answers.rs"]
mod lasting_answers;
#[path = "cli/laundering.rs"]
mod laundering;
#[path = "cli/laundering_matrix.rs"]
mod laundering_matrix;
#[path = "cli/laundering_sinks.rs"]
mod laundering_sinks;
#[path = "../../sandbox/tests/support/left_out.rs"]
mod left_out;
#[path = "cli/limits.rs"]
mod limits;
#[path = "cli/long_turn.rs"]
mod long_turn;
#[path = "cli/loom_changes.rs"]
mod loom_changes;
#[path = "cli/loom_tools.rs"]
mod loom_tools;
#[cfg(target_os = "linux")]
#[path = "cli/mcp.rs"]
mod mcp;
#[path = "cli/mcp_entries.rs"]
mod mcp_entries;
#[path = "cli/mcp_failures.rs"]
mod mcp_failures;
#[path = "cli/mcp_http.rs"]
mod mcp_http;
#[path = "cli/mcp_login.rs"]
mod mcp_login;
#[path = "cli/mcp_published.rs"]
mod mcp_published;
#[path = "cli/mcp_removal.rs"]
mod mcp_removal;
#[path = "cli/mcp_serve.rs"]
mod mcp_serve;
#[path = "cli/mcp_server.rs"]
mod mcp_server;
#[path = "cli/mcp_site.rs"]
mod mcp_site;
#[path = "cli/memory.rs"]
mod memory;
#[cfg(feature = "embedded-model")]
#[path = "cli/mid_turn.rs"]
mod mid_turn;
#[path = "cli/models.rs"]
mod models;
#[path = "cli/narrow.rs"]
mod narrow;
#[path = "cli/no_restrict.rs"]
mod no_restrict;
#[path = "cli/not_run.rs"]
mod not_run;
#[path = "cli/outcomes.rs"]
mod outcomes;
#[path = "cli/own_skills.rs"]
mod own_skills;
#[path = "cli/package_caches.rs"]
mod package_caches;
#[path = "cli/paging.rs"]
mod paging;
#[path = "cli/partial.rs"]
mod partial;
#[path = "cli/passages.rs"]
mod passages;
#[path = "cli/permissions.rs"]
mod permissions;
#[path = "cli/pictures.rs"]
mod pictures;
#[path = "cli/planning.rs"]
mod planning;
#[path = "cli/policy.rs"]
mod policy;
#[path = "cli/process_hours.rs"]
mod process_hours;
#[path = "cli/processes.rs"]
mod processes;
#[path = "shared/program.rs"]
mod program;
#[path = "cli/promises.rs"]
mod promises;
#[path = "cli/publishing.rs"]
mod publishing;
#[path = "cli/reading_pictures.rs"]
mod reading_pictures;
#[path = "cli/reference.rs"]
mod reference;
#[path = "cli/refused_arguments.rs"]
mod refused_arguments;
#[path = "cli/regenerating.rs"]
mod regenerating;
#[path = "cli/replaying.rs"]
mod replaying;
#[path = "cli/running_commands.rs"]
mod running_commands;
#[path = "cli/sandbox.rs"]
mod sandbox;
#[path = "cli/secret_entries.rs"]
mod secret_entries;
#[path = "cli/secrets.rs"]
mod secrets;
#[path = "cli/seeing.rs"]
mod seeing;
#[path = "cli/seer.rs"]
mod seer;
#[path = "cli/server.rs"]
mod server;
#[path = "cli/server_windows.rs"]
mod server_windows;
#[path = "cli/session_settings.rs"]
mod session_settings;
#[path = "cli/sharing.rs"]
mod sharing;
#[path = "cli/siblings_at_once.rs"]
mod siblings_at_once;
#[path = "cli/skills.rs"]
mod skills;
#[path = "cli/skills_meanwhile.rs"]
mod skills_meanwhile;
#[path = "cli/speaking.rs"]
mod speaking;
#[path = "cli/spending.rs"]
mod spending;
#[path = "cli/stopping_tools.rs"]
mod stopping_tools;
#[path = "cli/stops.rs"]
mod stops;
#[path = "cli/streams.rs"]
mod streams;
#[path = "cli/subagent_models.rs"]
mod subagent_models;
#[path = "cli/subagents.rs"]
mod subagents;
#[path = "cli/subagents_ended.rs"]
mod subagents_ended;
#[path = "cli/subagents_together.rs"]
mod subagents_together;
#[path = "cli/terminal.rs"]
mod terminal;
#[path = "cli/thinking.rs"]
mod thinking;
#[cfg(feature = "embedded-model")]
#[allow(dead_code, reason = "made for more than these tests")]
#[path = "../../gguf/tests/support/tiny.rs"]
mod tiny;
#[path = "cli/tools.rs"]
mod tools;
#[path = "cli/tools_by_default.rs"]
mod tools_by_default;
#[path = "cli/trust.rs"]
mod trust;
#[path = "cli/trusting.rs"]
mod trusting;
#[path = "cli/typed_at_questions.rs"]
mod typed_at_questions;
#[path = "cli/typed_meanwhile.rs"]
mod typed_meanwhile;
#[path = "cli/typing.rs"]
mod typing;
#[path = "cli/unanswered.rs"]
mod unanswered;
#[path = "cli/undo_kills.rs"]
mod undo_kills;
#[path = "cli/undo_states.rs"]
mod undo_states;
#[path = "cli/undo_walls.rs"]
mod undo_walls;
#[path = "cli/unfinished_turns.rs"]
mod unfinished_turns;
#[path = "cli/untrusting.rs"]
mod untrusting;
#[path = "cli/waiting.rs"]
mod waiting;
#[path = "cli/web.rs"]
mod web;
#[path = "cli/windows.rs"]
mod windows;
#[path = "cli/work.rs"]
mod work;
#[path = "cli/world.rs"]
mod world;
#[path = "cli/wrapping.rs"]
mod wrapping;
#[path = "cli/writing.rs"]
mod writing;
#[path = "cli/zones.rs"]
mod zones;

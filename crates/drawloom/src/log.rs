//! What the program logs, on standard error: for whoever looks for a fault, not for programs.

use std::fmt::{self, Write as _};

use text::terminal::one_line;
use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

use crate::config::Level;

/// Begins to log what is at least as grave as `level`.
pub(crate) fn start(level: Level) {
    let level = match level {
        Level::Error => LevelFilter::ERROR,
        Level::Warn => LevelFilter::WARN,
        Level::Info => LevelFilter::INFO,
        Level::Debug => LevelFilter::DEBUG,
        Level::Trace => LevelFilter::TRACE,
    };
    // Fails only if something logs already, as in a test.
    let _ = tracing::subscriber::set_global_default(Lines { level });
}

struct Lines {
    level: LevelFilter,
}

impl Subscriber for Lines {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        // Libraries of others log bodies and addresses; only our own lines are known to hold no secrets.
        metadata.is_event() && *metadata.level() <= self.level && is_ours(metadata.target())
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(self.level)
    }

    fn event(&self, event: &Event<'_>) {
        let mut line = Line(event.metadata().level().as_str().to_ascii_lowercase());
        let _ = write!(line.0, " {}:", event.metadata().target());
        event.record(&mut line);
        crate::output::to_stderr(&one_line(&line.0));
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

/// Whether a module is of one of our crates: `drawloom`, `drawloom_agent` and so on.
fn is_ours(target: &str) -> bool {
    let name = target.split("::").next().unwrap_or(target);
    name.strip_prefix("drawloom").is_some_and(|rest| rest.is_empty() || rest.starts_with('_'))
}

struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        // Writing to a string does not fail.
        let _ = match field.name() {
            "message" => write!(self.0, " {value:?}"),
            name => write!(self.0, " {name}={value:?}"),
        };
    }
}

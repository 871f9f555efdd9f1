//! Answers as people read them: terse, aligned, one thing a line.
//!
//! What is foreign in an answer (text, titles, names of models and files) passes through [`OutputStyle::text`] or
//! [`OutputStyle::line`]; what is ours does not. The match over [`Outcome`] is exhaustive, so that a new command cannot
//! be forgotten here.

mod approvals;
mod care;
mod chat;
mod columns;
mod context;
mod cost;
mod model;
mod slash;
mod tree;
mod workspace;

use std::borrow::Cow;

use commands::Outcome;
use loom::AuthorKind;
use text::terminal::{one_line, visible};

pub(crate) use chat::{cost, picture};
pub(crate) use workspace::inventory;

/// What is printed of an answer.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct RenderedOutcome {
    pub(crate) body: Vec<u8>,
    /// To standard error, a line each.
    pub(crate) notices: Vec<String>,
}

impl RenderedOutcome {
    fn new(body: String) -> Self {
        Self { body: body.into_bytes(), notices: Vec::new() }
    }

    fn noting(self, notices: impl IntoIterator<Item = String>) -> Self {
        Self { notices: notices.into_iter().collect(), ..self }
    }
}

#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct OutputStyle {
    /// To a terminal, which obeys what it prints.
    pub(crate) terminal: bool,
    pub(crate) color: bool,
}

impl OutputStyle {
    /// A text of several lines that is not ours.
    fn text<'a>(&self, foreign: &'a str) -> Cow<'a, str> {
        if self.terminal { visible(foreign) } else { Cow::Borrowed(foreign) }
    }

    /// A name or title that is not ours.
    fn line<'a>(&self, foreign: &'a str) -> Cow<'a, str> {
        if self.terminal { one_line(foreign) } else { Cow::Borrowed(foreign) }
    }

    /// In the colour of an author; a person's text is ink, and has none.
    fn by(&self, kind: AuthorKind, text: &str) -> String {
        match kind {
            AuthorKind::Human => text.to_owned(),
            AuthorKind::Model => self.paint("34", text),
            AuthorKind::Tool => self.paint("36", text),
        }
    }

    /// In a colour, by its number.
    fn paint(&self, color: &str, text: &str) -> String {
        if self.color && !text.is_empty() { format!("\x1b[{color}m{text}\x1b[0m") } else { text.to_owned() }
    }

    pub(crate) fn dim(&self, text: &str) -> String {
        self.paint("2", text)
    }
}

/// An answer in plain form.
pub(crate) fn plain(outcome: &Outcome, to: OutputStyle) -> RenderedOutcome {
    match outcome {
        Outcome::TreeMade(made) => RenderedOutcome::new(format!("{}\n", made.short_id)),
        Outcome::Trees(found) => RenderedOutcome::new(tree::list(found, to)),
        Outcome::Shown(found) => tree::show(found, to),
        Outcome::Text(found) => RenderedOutcome::new(tree::text(found, to)),
        Outcome::Node(done) => RenderedOutcome::new(format!("{}\n", done.short_id)),
        Outcome::Draft(done) => RenderedOutcome::new(tree::draft(done)),
        Outcome::Edited(done) => RenderedOutcome::new(format!("{}\n", done.short_id)),
        Outcome::Branched(done) => RenderedOutcome::new(format!("{}\n", done.short_id)),
        Outcome::Generated(done) => tree::generated(done, to),
        Outcome::Estimate(found) => RenderedOutcome::new(tree::estimate(found, to)),
        Outcome::Moved(done) => RenderedOutcome::new(format!("{}\n", done.tip)),
        Outcome::Compacted(done) => RenderedOutcome::new(tree::compacted(done)),
        Outcome::Stepped(done) => tree::stepped(done),
        Outcome::Operations(found) => tree::log(found, to),
        Outcome::Views(found) => RenderedOutcome::new(tree::views(found, to)),
        Outcome::Compared(found) => RenderedOutcome::new(tree::compared(found, to)),
        Outcome::Verified(found) => RenderedOutcome::new(tree::verified(found, to)),
        Outcome::Sealed(done) => RenderedOutcome::new(format!(
            "operations to {} sealed: {} by {}\n",
            done.seq, done.head, done.key
        )),
        Outcome::TreeNamed(done) => RenderedOutcome::new(format!("{}\n", done.tree)),
        Outcome::Chatted(done) => chat::chatted(done, to),
        Outcome::Sessions(found) => RenderedOutcome::new(chat::sessions(found, to)),
        Outcome::Approvals(found) => RenderedOutcome::new(approvals::list(found, to)),
        Outcome::Session(found) => RenderedOutcome::new(chat::session(found, to)),
        Outcome::Models(found) => RenderedOutcome::new(model::models(found, to)),
        Outcome::Tested(found) => RenderedOutcome::new(model::tested(found, to)),
        Outcome::Begun(found) => RenderedOutcome::new(model::begun(found, to)),
        Outcome::Workspaces(found) => RenderedOutcome::new(workspace::workspaces(found, to)),
        Outcome::Help(found) => RenderedOutcome::new(slash::help(found, to)),
        Outcome::Status(found) => RenderedOutcome::new(slash::status(found, to)),
        Outcome::Standing(found) => RenderedOutcome::new(slash::standing(found, to)),
        Outcome::Model(found) => slash::model(found, to),
        Outcome::Reloaded(done) => RenderedOutcome::new(slash::reloaded(done, to)),
        Outcome::Think(found) => slash::think(found),
        Outcome::Zone(found) => RenderedOutcome::new(slash::zone(found, to)),
        Outcome::Stood(done) => slash::stood(done, to),
        Outcome::Went(done) => RenderedOutcome::new(slash::went(done, to)),
        Outcome::Exported(done) => care::exported(done, to),
        Outcome::Imported(done) => care::imported(done, to),
        Outcome::Hits(found) => care::hits(found, to),
        Outcome::Removed(done) => care::removed(done, to),
        Outcome::BackedUp(done) => {
            let line = format!("{}  {}\n", to.line(&done.file), commands::settings::size(done.bytes));
            RenderedOutcome::new(line)
                .noting(done.problems.iter().map(|problem| to.line(problem).into_owned()))
        }
        Outcome::Restored(done) => RenderedOutcome::new(care::restored(done, to)),
        Outcome::Checked(found) => RenderedOutcome::new(care::checked(found, to)),
        Outcome::Setting(found) => RenderedOutcome::new(care::setting(found, to)),
        Outcome::Settings(found) => RenderedOutcome::new(care::settings(found, to)),
        Outcome::Paths(found) => RenderedOutcome::new(care::paths(found, to)),
        Outcome::Health(found) => RenderedOutcome::new(care::health(found, to)),
        Outcome::Rows(found) => RenderedOutcome::new(care::rows(found, to)),
        Outcome::Context(found) => RenderedOutcome::new(context::show(found, to)),
        Outcome::ContextDiff(found) => RenderedOutcome::new(context::diff(found, to)),
        Outcome::Replayed(done) => RenderedOutcome::new(context::replayed(done, to)),
        Outcome::Cost(found) => RenderedOutcome::new(cost::costs(found, to)),
        Outcome::Done(_) => RenderedOutcome::default(),
    }
}

#[cfg(test)]
mod tests;

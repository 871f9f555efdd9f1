//! Answers as people read them: terse, aligned, one thing a line.
//!
//! What is foreign in an answer (text, titles, names of models and files) passes through [`Plain::text`] or
//! [`Plain::line`]; what is ours does not. The match over [`Outcome`] is exhaustive, so that a new command cannot
//! be forgotten here.

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
pub(crate) struct Shown {
    /// To standard output.
    pub(crate) body: Vec<u8>,
    /// To standard error, a line each.
    pub(crate) notices: Vec<String>,
}

impl Shown {
    fn new(body: String) -> Self {
        Self { body: body.into_bytes(), notices: Vec::new() }
    }

    fn noting(self, notices: impl IntoIterator<Item = String>) -> Self {
        Self { notices: notices.into_iter().collect(), ..self }
    }
}

/// Where plain output goes.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Plain {
    /// To a terminal, which obeys what it prints.
    pub(crate) terminal: bool,
    /// In colour.
    pub(crate) color: bool,
}

impl Plain {
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
pub(crate) fn plain(outcome: &Outcome, to: Plain) -> Shown {
    match outcome {
        Outcome::TreeMade(made) => Shown::new(format!("{}\n", made.short_id)),
        Outcome::Trees(found) => Shown::new(tree::list(found, to)),
        Outcome::Shown(found) => tree::show(found, to),
        Outcome::Text(found) => Shown::new(tree::text(found, to)),
        Outcome::Node(done) => Shown::new(format!("{}\n", done.short_id)),
        Outcome::Draft(done) => Shown::new(tree::draft(done)),
        Outcome::Edited(done) => Shown::new(format!("{}\n", done.short_id)),
        Outcome::Branched(done) => Shown::new(format!("{}\n", done.short_id)),
        Outcome::Generated(done) => tree::generated(done, to),
        Outcome::Estimate(found) => Shown::new(tree::estimate(found, to)),
        Outcome::Moved(done) => Shown::new(format!("{}\n", done.tip)),
        Outcome::Compacted(done) => Shown::new(tree::compacted(done)),
        Outcome::Stepped(done) => tree::stepped(done),
        Outcome::Operations(found) => tree::log(found, to),
        Outcome::Views(found) => Shown::new(tree::views(found, to)),
        Outcome::Compared(found) => Shown::new(tree::compared(found, to)),
        Outcome::Verified(found) => Shown::new(tree::verified(found, to)),
        Outcome::Sealed(done) => {
            Shown::new(format!("operations to {} sealed: {} by {}\n", done.seq, done.head, done.key))
        }
        Outcome::TreeNamed(done) => Shown::new(format!("{}\n", done.tree)),
        Outcome::Chatted(done) => chat::chatted(done, to),
        Outcome::Sessions(found) => Shown::new(chat::sessions(found, to)),
        Outcome::Session(found) => Shown::new(chat::session(found, to)),
        Outcome::Models(found) => Shown::new(model::models(found, to)),
        Outcome::Tested(found) => Shown::new(model::tested(found, to)),
        Outcome::Begun(found) => Shown::new(model::begun(found, to)),
        Outcome::Workspaces(found) => Shown::new(workspace::workspaces(found, to)),
        Outcome::Help(found) => Shown::new(slash::help(found, to)),
        Outcome::Status(found) => Shown::new(slash::status(found, to)),
        Outcome::Standing(found) => Shown::new(slash::standing(found, to)),
        Outcome::Model(found) => slash::model(found, to),
        Outcome::Reloaded(done) => Shown::new(slash::reloaded(done, to)),
        Outcome::Think(found) => slash::think(found),
        Outcome::Zone(found) => Shown::new(slash::zone(found, to)),
        Outcome::Stood(done) => slash::stood(done, to),
        Outcome::Went(done) => Shown::new(slash::went(done, to)),
        Outcome::Exported(done) => care::exported(done, to),
        Outcome::Imported(done) => care::imported(done, to),
        Outcome::Hits(found) => care::hits(found, to),
        Outcome::Removed(done) => care::removed(done, to),
        Outcome::BackedUp(done) => {
            let line = format!("{}  {}\n", to.line(&done.file), commands::settings::size(done.bytes));
            Shown::new(line).noting(done.problems.iter().map(|problem| to.line(problem).into_owned()))
        }
        Outcome::Restored(done) => Shown::new(care::restored(done, to)),
        Outcome::Checked(found) => Shown::new(care::checked(found, to)),
        Outcome::Setting(found) => Shown::new(care::setting(found, to)),
        Outcome::Settings(found) => Shown::new(care::settings(found, to)),
        Outcome::Paths(found) => Shown::new(care::paths(found, to)),
        Outcome::Health(found) => Shown::new(care::health(found, to)),
        Outcome::Rows(found) => Shown::new(care::rows(found, to)),
        Outcome::Context(found) => Shown::new(context::show(found, to)),
        Outcome::ContextDiff(found) => Shown::new(context::diff(found, to)),
        Outcome::Replayed(done) => Shown::new(context::replayed(done, to)),
        Outcome::Cost(found) => Shown::new(cost::costs(found, to)),
        Outcome::Done(_) => Shown::default(),
    }
}

#[cfg(test)]
mod tests;

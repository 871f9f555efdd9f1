//! Answers as people read them: terse, aligned, one thing a line.
//!
//! What is foreign in an answer (text, titles, names of models and files) passes through [`OutputStyle::text`] or
//! [`OutputStyle::line`]; what is ours does not. The match over [`CommandOutcome`] is exhaustive, so that a new command cannot
//! be forgotten here.

mod approvals;
mod authors;
mod calls;
mod cards;
mod chat;
mod checks;
mod columns;
mod context;
mod cost;
mod diff;
mod file_changes;
mod findings;
mod handoff;
mod maintenance;
mod mcp;
mod model;
mod outcomes;
mod policy;
mod siblings;
mod skills;
mod slash;
mod subagents;
mod table;
mod tree;
mod tree_view;
mod workspace;

use std::borrow::Cow;

use commands::CommandOutcome;
use loom::AuthorKind;
use text::terminal::{one_line, visible};

pub(crate) use chat::{first_words, footer, limit, picture, recap};
pub(crate) use columns::filled;
pub(crate) use file_changes::difference_color;
pub(crate) use workspace::inventory;

/// Problems of a file or a tree that are listed to people; what follows from the first is seldom worth reading.
const LISTED: usize = 5;

/// What is printed of an answer.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct RenderedOutcome {
    pub(crate) body: Vec<u8>,
    /// To standard error, a line each.
    pub(crate) notices: Vec<String>,
    /// Whether they are about what stands above them, and come after the body.
    pub(crate) are_behind: bool,
}

impl RenderedOutcome {
    fn new(body: String) -> Self {
        Self { body: body.into_bytes(), ..Self::default() }
    }

    /// A sentence, which is broken between words.
    fn sentence(sentence: &str, to: OutputStyle) -> Self {
        Self::new(columns::wrapped(sentence, "", to))
    }

    fn noting(self, notices: impl IntoIterator<Item = String>) -> Self {
        Self { notices: notices.into_iter().collect(), ..self }
    }

    /// With what is said at a terminal where nothing else is.
    fn or_saying(self, to: OutputStyle, what: &str) -> Self {
        let says_nothing = self.body.is_empty() && self.notices.is_empty();
        if to.terminal && says_nothing { self.noting([what.to_owned()]) } else { self }
    }

    fn behind(self) -> Self {
        Self { are_behind: true, ..self }
    }
}

#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct OutputStyle {
    /// To a terminal, which obeys what it prints.
    pub(crate) terminal: bool,
    pub(crate) color: bool,
    /// Cells of a line, at a terminal.
    pub(crate) columns: Option<usize>,
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

    /// In a colour, by its number; as it is where that is empty.
    fn paint(&self, color: &str, text: &str) -> String {
        if self.color && !text.is_empty() && !color.is_empty() {
            format!("\x1b[{color}m{text}\x1b[0m")
        } else {
            text.to_owned()
        }
    }

    pub(crate) fn dim(&self, text: &str) -> String {
        self.paint("2", text)
    }
}

/// A text of ours, broken between words.
pub(crate) fn in_columns(text: &str, columns: Option<usize>) -> String {
    columns::wrapped(text, "", OutputStyle { columns, ..OutputStyle::default() })
}

/// A line that is not ours, of which no further row stands at the margin.
pub(crate) fn foreign_in_columns(line: &str, columns: Option<usize>) -> String {
    columns::hanging(line, "", OutputStyle { columns, ..OutputStyle::default() })
}

/// An answer in plain form.
pub(crate) fn plain(outcome: &CommandOutcome, to: OutputStyle) -> RenderedOutcome {
    match outcome {
        CommandOutcome::TreeMade(made) => done(&made.result.short_id, &made.sentence, to),
        CommandOutcome::Trees(found) => RenderedOutcome::new(tree::list(found, to))
            .or_saying(to, "no trees: `drawloom tree new` makes one"),
        CommandOutcome::Shown(found) => tree_view::show(found, to),
        CommandOutcome::Text(found) => authors::text(found, to),
        CommandOutcome::Node(told) => done(&told.result.short_id, &told.sentence, to),
        CommandOutcome::Draft(told) => done(&told.result.short_ids.join("\n"), &told.sentence, to),
        CommandOutcome::Edited(told) => {
            let tail = told.result.tail.iter().map(|tail| tail.short_id.as_str());
            let names: Vec<&str> = std::iter::once(&*told.result.short_id).chain(tail).collect();
            done(&names.join("\n"), &told.sentence, to)
        }
        CommandOutcome::PathEdited(done) => tree::path_edited(done, to),
        CommandOutcome::Branched(told) => done(&told.result.short_id, &told.sentence, to),
        CommandOutcome::Generated(done) => tree::generated(done, to),
        CommandOutcome::Estimate(found) => RenderedOutcome::new(tree::estimate(found, to)),
        CommandOutcome::Moved(told) => done(&told.result.short_id, &told.sentence, to),
        CommandOutcome::StoredText(found) => tree::stored(found, to),
        CommandOutcome::Listed(found) => siblings::list(found, to),
        CommandOutcome::Reached(done) => RenderedOutcome::new(siblings::reached(done, to)),
        CommandOutcome::Exchanges(found) => {
            let (out, nothing) =
                (RenderedOutcome::new(chat::exchanges(found, to)), "nothing was said here yet");
            // A conversation answers, also in a pipe.
            match found.of_conversation && out.body.is_empty() {
                true => out.noting([nothing.to_owned()]),
                false => out.or_saying(to, nothing),
            }
        }
        CommandOutcome::Copied(done) => chat::copied(done, to),
        CommandOutcome::Compacted(done) => RenderedOutcome::sentence(&tree::compacted(done, to), to),
        CommandOutcome::Stepped(done) => tree::stepped(done, to),
        CommandOutcome::Operations(found) => tree::log(found, to),
        CommandOutcome::Views(found) => {
            RenderedOutcome::new(tree::views(found, to)).noting(found.sentence.clone())
        }
        CommandOutcome::Compared(found) => RenderedOutcome::new(findings::compared(found, to)),
        CommandOutcome::Tokens(found) => RenderedOutcome::new(findings::tokens(found, to)),
        CommandOutcome::Verified(found) => RenderedOutcome::new(tree::verified(found, to)),
        CommandOutcome::Sealed(done) => {
            let said = format!("operations 1 to {} are sealed: {} by {}", done.seq, done.head, done.key);
            RenderedOutcome::sentence(&said, to)
        }
        CommandOutcome::TreeNamed(told) => done(&told.result.short_id, &told.sentence, to),
        CommandOutcome::Trusted(done) => RenderedOutcome::new(tree::trusted(done, to)),
        CommandOutcome::SessionNamed(told) => done(&told.result.name, &told.sentence, to),
        CommandOutcome::Chatted(done) => chat::chatted(done, to),
        CommandOutcome::Sessions(found) => {
            let empty = "no sessions: `drawloom chat` begins one";
            RenderedOutcome::new(chat::sessions(found, to)).or_saying(to, empty)
        }
        CommandOutcome::Approvals(found) => {
            RenderedOutcome::new(approvals::list(found, to)).or_saying(to, "no question waits")
        }
        CommandOutcome::PolicyRules(found) => RenderedOutcome::new(policy::rules(found, to))
            .or_saying(to, "no rules: the default table decides"),
        CommandOutcome::PolicyTested(found) => RenderedOutcome::new(policy::tested(found, to)),
        CommandOutcome::Decided(done) => RenderedOutcome::sentence(&approvals::decided(done, to), to),
        CommandOutcome::Session(found) => chat::session(found, to),
        CommandOutcome::Models(found) => RenderedOutcome::new(model::models(found, to)),
        CommandOutcome::Tested(found) => RenderedOutcome::new(model::tested(found, to)),
        CommandOutcome::Setup(found) => RenderedOutcome::new(model::setup(found, to)),
        CommandOutcome::Workspaces(found) => RenderedOutcome::new(workspace::workspaces(found, to))
            .or_saying(to, "no workspaces: `drawloom workspace trust DIR` makes a folder one"),
        CommandOutcome::FilesAccepted(done) => RenderedOutcome::new(workspace::accepted(done, to)),
        CommandOutcome::Help(found) => RenderedOutcome::new(slash::help(found, to)),
        CommandOutcome::Status(found) => RenderedOutcome::new(slash::status(found, to)),
        CommandOutcome::Standing(found) => RenderedOutcome::new(slash::standing(found, to)),
        CommandOutcome::Model(found) => slash::model(found, to),
        CommandOutcome::Reloaded(done) => RenderedOutcome::new(slash::reloaded(done, to)),
        CommandOutcome::Think(found) => slash::think(found, to),
        CommandOutcome::Tools(found) => RenderedOutcome::new(slash::tools(found, to)),
        CommandOutcome::Plan(found) => RenderedOutcome::new(slash::plan(found, to)),
        CommandOutcome::Subagents(found) => subagents::list(found, to),
        CommandOutcome::Servers(found) => mcp::list(found, to),
        CommandOutcome::ServerTested(found) => mcp::tested(found, to),
        CommandOutcome::ServerDetail(found) => mcp::detail(found, to),
        CommandOutcome::Skills(found) => skills::list(found, to),
        CommandOutcome::Skill(found) => RenderedOutcome::new(skills::show(found, to)),
        CommandOutcome::SkillsExported(written) => RenderedOutcome::new(skills::exported(written, to)),
        CommandOutcome::SkillRemoved(removed) => RenderedOutcome::new(skills::removed(removed, to)),
        CommandOutcome::SkillsChecked(found) => {
            let amount = columns::count(found.skills as u64, "skill", "skills");
            RenderedOutcome::new(checks::checked(&found.problems, &amount, to))
        }
        CommandOutcome::Cards(found) => cards::list(found, to),
        CommandOutcome::CardsChecked(found) => {
            let amount = columns::count(found.cards as u64, "card", "cards");
            RenderedOutcome::new(checks::checked(&found.problems, &amount, to))
        }
        CommandOutcome::CardWritten(told) => done(&told.result.path, &told.sentence, to),
        CommandOutcome::CardsSelected(found) => cards::selected(found, to),
        CommandOutcome::HandoffChecked(found) => {
            let amount = columns::count(found.bytes as u64, "byte", "bytes");
            RenderedOutcome::new(checks::checked(&found.problems, &amount, to))
        }
        CommandOutcome::HandoffHistory(found) => RenderedOutcome::new(handoff::history(found, to))
            .or_saying(to, "no earlier handoffs: /wrap replaces the one that stands"),
        CommandOutcome::Wrapped(told) => handoff::wrapped(told, to),
        CommandOutcome::WrapUndone(told) => handoff::undone(told, to),
        CommandOutcome::OutcomeNoted(told) => done(&told.result.id.to_string(), &told.sentence, to),
        CommandOutcome::Outcomes(found) => {
            RenderedOutcome::new(outcomes::list(found, to)).or_saying(to, "nothing is noted in this session")
        }
        CommandOutcome::System(found) => RenderedOutcome::new(slash::system(found, to)),
        CommandOutcome::Sampling(found) => RenderedOutcome::new(slash::sampling(found, to)),
        CommandOutcome::Zone(found) => RenderedOutcome::new(slash::zone(found, to)),
        CommandOutcome::Stood(done) => slash::stood(done, to),
        CommandOutcome::FilesChanged(found) => file_changes::changed(found, to),
        CommandOutcome::FileHistory(found) => file_changes::history(found, to),
        CommandOutcome::FilesGivenBack(done) => file_changes::given_back(done, to),
        CommandOutcome::Went(done) => RenderedOutcome::new(slash::went(done, to)),
        CommandOutcome::Exported(done) => maintenance::exported(done, to),
        CommandOutcome::Imported(done) => maintenance::imported(done, to),
        CommandOutcome::Hits(found) => findings::hits(found, to),
        CommandOutcome::Removed(done) => maintenance::removed(done, to),
        CommandOutcome::BackedUp(done) => {
            let line = format!("{}  {}\n", to.line(&done.file), text::bytes::size(done.bytes));
            RenderedOutcome::new(line)
                .noting(done.problems.iter().map(|problem| to.line(problem).into_owned()))
        }
        CommandOutcome::Restored(done) => RenderedOutcome::new(maintenance::restored(done, to)),
        CommandOutcome::Checked(found) => RenderedOutcome::new(maintenance::checked(found, to)),
        CommandOutcome::Setting(found) => RenderedOutcome::new(maintenance::setting(found, to)),
        CommandOutcome::Settings(found) => RenderedOutcome::new(maintenance::settings(found, to)),
        CommandOutcome::Paths(found) => RenderedOutcome::new(maintenance::paths(found, to)),
        CommandOutcome::Health(found) => RenderedOutcome::new(maintenance::health(found, to)),
        CommandOutcome::Rows(found) => RenderedOutcome::new(maintenance::rows(found, to)),
        // What it printed was shown as it came.
        CommandOutcome::Sandboxed(done) => {
            RenderedOutcome::default().noting(maintenance::sandboxed(done, to))
        }
        CommandOutcome::Context(found) => RenderedOutcome::new(context::show(found, to)),
        CommandOutcome::ContextDiff(found) => {
            RenderedOutcome::new(context::differences(found, to)).or_saying(to, "the two requests are equal")
        }
        CommandOutcome::Replayed(done) => context::replayed(done, to),
        CommandOutcome::Cost(found) => RenderedOutcome::new(cost::costs(found, to)),
        CommandOutcome::Done(_) => RenderedOutcome::default(),
    }
}

/// What a command made or moved to. At a terminal it is a sentence, which says what was done. Elsewhere a program reads: it
/// gets the name alone, as `ID=$(drawloom tree append …)` takes it, and the sentence is a notice. Where there is no name the
/// sentence is the answer.
fn done(name: &str, sentence: &str, to: OutputStyle) -> RenderedOutcome {
    if to.terminal || name.is_empty() {
        return RenderedOutcome::sentence(&to.line(sentence), to);
    }
    RenderedOutcome::new(format!("{name}\n")).noting([sentence.to_owned()])
}

#[cfg(test)]
mod tests;

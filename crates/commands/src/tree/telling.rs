//! What a command did, in words for people: the passage it made or moved to, and how many words of the text came or
//! went.

use std::fmt;

use loom::attribution::matching;
use loom::path::{ViewOverrides, common_ancestor, is_ancestor};
use loom::render::{tip, window};
use loom::{
    CellChange, CellKey, CellValue, NodeId, NodeRow, OpTarget, Position, PositionId, RowError, Seq, TreeId,
    TreeReader, ViewName, resolve,
};
use text::terminal::one_line;

use super::look;
use super::siblings::sibling_numbers;
use crate::app::App;
use crate::error::CommandError;
use crate::results::tree::{AnswerPlace, NextAnswer};
use crate::rights::Asker;
use crate::shell::quoted;

/// Characters of a text by which it is known again.
const GLIMPSE: usize = 40;

/// Passages whose words are counted; of a step over more of them no words are told.
const MOST_PASSAGES: u32 = 4_096;

/// Characters of the longest title that is written in a command.
const LONGEST_TITLE: usize = 40;

/// The first words of a text between quotation marks, on one line.
pub(crate) fn first_words(text: &str) -> String {
    format!("“{}”", glimpse(text))
}

/// The first words of a text, on one line.
pub(super) fn glimpse(text: &str) -> String {
    let mut words = text.split_whitespace().flat_map(|word| [" ", word]).skip(1).flat_map(str::chars);
    let mut cut: String = words.by_ref().take(GLIMPSE).collect();
    if words.next().is_some() {
        cut.push('…');
    }
    cut
}

/// A passage by its short id and its first words; one without words, like the beginning of a tree, by what it is.
pub(crate) fn passage(short_id: &str, text: &str) -> String {
    if text.trim().is_empty() { short_id.to_owned() } else { format!("{short_id} {}", first_words(text)) }
}

/// The passage a view shows at a position.
pub(super) fn passage_at(rows: &dyn TreeReader, view: &ViewName, at: PositionId) -> Result<String, RowError> {
    if rows.tree()?.root == at {
        return Ok("the beginning".to_owned());
    }
    let row = shown_at(rows, view, at)?;
    Ok(passage(&row.short_id, &row.node.text()))
}

/// The node a view shows at a position.
pub(crate) fn shown_at(rows: &dyn TreeReader, view: &ViewName, at: PositionId) -> Result<NodeRow, RowError> {
    node(rows, resolve::shown(rows, view, at)?)
}

fn node(rows: &dyn TreeReader, id: NodeId) -> Result<NodeRow, RowError> {
    rows.node(id)?.ok_or_else(|| RowError::missing("node", id))
}

/// A tree by its short id and its title.
pub(crate) fn tree(short_id: &str, title: &str) -> String {
    if title.is_empty() { short_id.to_owned() } else { format!("{short_id} “{title}”") }
}

/// A number of things.
pub(crate) fn count(number: u64, one: &str, many: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { many })
}

/// A tree as a command takes it: by its title, else by its short id.
pub(crate) async fn tree_argument(app: &App, asker: &Asker, tree: TreeId) -> Result<String, CommandError> {
    let store = &app.runtime.store;
    let entry = store.tree(&asker.principal, tree).await?;
    let title = entry.title;
    let is_plain = !title.is_empty() && !title.starts_with('-') && one_line(&title) == title;
    if is_plain && title.chars().count() <= LONGEST_TITLE {
        // Of two trees with one title neither is named by it.
        if store.resolve(&asker.principal, &title).await.is_ok_and(|found| found == tree) {
            return Ok(quoted(&title));
        }
    }
    Ok(entry.short_id)
}

/// The option that names a view in a command, with a space before it; nothing where a command means that view anyhow.
pub(super) fn view_option(view: &ViewName) -> String {
    if *view == ViewName::default() { String::new() } else { format!(" --view {}", quoted(view.as_str())) }
}

/// Where a view stands after an answer was asked for: at the answer, or where it was, with the command that goes there.
pub(crate) async fn answer_place(
    app: &App,
    asker: &Asker,
    (tree, view): (TreeId, &ViewName),
    (answer, short_id): (NodeId, &str),
    another: Option<(NodeId, &str)>,
) -> Result<AnswerPlace, CommandError> {
    let at = answer.as_position();
    let look =
        look(app, asker, tree, view, move |rows, tip| Ok((tip, loom::path::hidden(rows, at)?.is_none())));
    let (tip, is_visible) = look.await?;
    let named = tree_argument(app, asker, tree).await?;
    let of = view_option(view);
    // It may have been pruned, or what stands above it, while it was written.
    let go = (tip != at && is_visible).then(|| format!("drawloom tree go {named} {short_id}{of}"));
    let mut next = None;
    if let Some((another, short_id)) = another.filter(|_| tip == at) {
        let positions = vec![at, another.as_position()];
        let (numbers, count) = sibling_numbers(app, asker, (tree, view), positions).await?;
        if let [from, number] = numbers[..] {
            let to = if number == from + 1 { "--next" } else { short_id };
            let command = format!("drawloom tree switch {named} {to}{of}");
            next = Some(NextAnswer { command, number, from, of: count });
        }
    }
    Ok(AnswerPlace { tip, view: view.to_string(), go, next })
}

/// Words of the text of a view that came and went.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct WordChange {
    pub came: u64,
    pub went: u64,
}

impl fmt::Display for WordChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.came, self.went) {
            (0, 0) => Ok(()),
            (came, 0) => write!(f, "; {} came", count(came, "word", "words")),
            (0, went) => write!(f, "; {} went", count(went, "word", "words")),
            (came, went) => write!(f, "; {} came, {went} went", count(came, "word", "words")),
        }
    }
}

/// What an operation that was just done changed in the text of a view.
pub(super) async fn word_change(
    app: &App,
    asker: &Asker,
    (tree, view): (TreeId, &ViewName),
    seq: Option<Seq>,
) -> Result<WordChange, CommandError> {
    let Some(seq) = seq else { return Ok(WordChange::default()) };
    let view = view.clone();
    app.read(asker, tree, move |rows| changed_by(rows, &view, seq)).await
}

/// Words that an operation, the newest of its view, brought into the text of the view and took out of it: told from its
/// cells, so that it costs what was changed, whatever stands around that.
pub(super) fn changed_by(rows: &dyn TreeReader, view: &ViewName, seq: Seq) -> Result<WordChange, RowError> {
    let cells = rows.operation(seq)?.map(|record| record.op.cells).unwrap_or_default();
    let (mut change, mut budget) = (WordChange::default(), WordBudget::default());
    let tips = cells.iter().find_map(|cell| match &cell.key {
        CellKey::Tip { view: of } if of == view => Some((cell.old.as_position()?, cell.new.as_position()?)),
        _ => None,
    });
    let end = match tips {
        Some((old, new)) => {
            let common = common_ancestor(rows, old, new)?;
            let went = words_below(rows, view, (old, &common), &cells, &mut budget)?;
            let came = words_below(rows, view, (new, &common), &[], &mut budget)?;
            let (Some(went), Some(came)) = (went, came) else { return Ok(change) };
            change = WordChange { came, went };
            common.id
        }
        None => tip(rows, view)?,
    };
    for cell in &cells {
        match &cell.key {
            CellKey::Selected { view: of, position } if of == view && is_ancestor(rows, *position, end)? => {
                let text = |value: &CellValue| {
                    Ok::<_, RowError>(node(rows, selected(value, *position))?.node.text().into_owned())
                };
                let between = budget.words_between(&text(&cell.old)?, &text(&cell.new)?);
                let Some(between) = between else { return Ok(WordChange::default()) };
                change.came += between.came;
                change.went += between.went;
            }
            CellKey::Excluded { target: OpTarget::Position(position) }
                if is_ancestor(rows, *position, end)? =>
            {
                let words = budget.words_of(&shown_at(rows, view, *position)?.node.text());
                let Some(words) = words else { return Ok(WordChange::default()) };
                match (cell.old.is_set(), cell.new.is_set()) {
                    (false, true) => change.went += words,
                    (true, false) => change.came += words,
                    _ => {}
                }
            }
            _ => {}
        }
    }
    Ok(change)
}

/// The version a selection shows: the original where there is none.
fn selected(value: &CellValue, position: PositionId) -> NodeId {
    value.as_node().unwrap_or_else(|| position.original())
}

/// Words of the path to a position below one above it, with the versions that stood there before these cells changed.
/// None where the path is too long to be read for that.
fn words_below(
    rows: &dyn TreeReader,
    view: &ViewName,
    (end, above): (PositionId, &Position),
    cells: &[CellChange],
    budget: &mut WordBudget,
) -> Result<Option<u64>, RowError> {
    let path = ViewOverrides::read(rows, view, end)?;
    let passages = path.tip.depth.saturating_sub(above.depth);
    if passages > MOST_PASSAGES {
        return Ok(None);
    }
    if passages == 0 {
        return Ok(Some(0));
    }
    let mut words = 0;
    for passage in window(rows, view, &path, None, passages as usize)?.iter().filter(|one| !one.excluded) {
        let before = cells.iter().find_map(|cell| match &cell.key {
            CellKey::Selected { view: of, position } if of == view && *position == passage.position.id => {
                Some(selected(&cell.old, *position))
            }
            _ => None,
        });
        let counted = match before {
            Some(version) => budget.words_of(&node(rows, version)?.node.text()),
            None => budget.words_of(&passage.row.node.text()),
        };
        let Some(counted) = counted else { return Ok(None) };
        words += counted;
    }
    Ok(Some(words))
}

pub(crate) fn words_of(text: &str) -> u64 {
    text.split_whitespace().count() as u64
}

/// What may be read and compared to tell the words that one command changed. It is work, not time, so that every machine
/// tells the same.
#[derive(Debug, Clone)]
pub(super) struct WordBudget {
    /// Bytes of texts.
    bytes: usize,
    /// Steps of comparing words.
    steps: usize,
}

impl Default for WordBudget {
    fn default() -> Self {
        Self { bytes: 4 * 1024 * 1024, steps: 2_000_000 }
    }
}

impl WordBudget {
    /// Words of a text; none past the budget.
    fn words_of(&mut self, text: &str) -> Option<u64> {
        self.bytes = self.bytes.checked_sub(text.len())?;
        Some(words_of(text))
    }

    /// Words that came and words that went between two texts; none past the budget.
    pub(super) fn words_between(&mut self, old: &str, new: &str) -> Option<WordChange> {
        self.bytes = self.bytes.checked_sub(old.len())?.checked_sub(new.len())?;
        let (old, new): (Vec<&str>, Vec<&str>) =
            (old.split_whitespace().collect(), new.split_whitespace().collect());
        let kept = matching(&old, &new, &mut self.steps)?.len();
        Some(WordChange { came: (new.len() - kept) as u64, went: (old.len() - kept) as u64 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_words_are_counted() {
        let between = |old, new| WordBudget::default().words_between(old, new);
        let change = between("The gulls cried, in silence.", "The crows cried in noise.");
        assert_eq!(change, Some(WordChange { came: 3, went: 3 }));
        assert_eq!(between("", "Two words"), Some(WordChange { came: 2, went: 0 }));
        assert_eq!(between("", ""), Some(WordChange::default()));
    }

    #[test]
    fn words_are_told_only_as_far_as_the_work_of_a_command_reaches() {
        let words = |word: &str| -> String { (0..400).map(|n| format!("{word}{n} ")).collect() };
        let (old, new) = (words("a"), words("b"));
        let mut budget = WordBudget::default();
        let changes: Vec<_> = (0..10).map(|_| budget.words_between(&old, &new)).collect();
        assert_eq!(changes[0], Some(WordChange { came: 400, went: 400 }));
        assert_eq!(changes[9], None, "the work of all passages counts together");
        let long = "a ".repeat(1024 * 1024);
        let mut budget = WordBudget::default();
        assert!(budget.words_of(&long).is_some() && budget.words_of(&long).is_some());
        assert_eq!(budget.words_of("a"), None);
    }

    #[test]
    fn a_change_says_what_came_and_what_went_and_nothing_of_neither() {
        let told = |came, went| WordChange { came, went }.to_string();
        assert_eq!(told(0, 0), "");
        assert_eq!(told(1, 0), "; 1 word came");
        assert_eq!(told(0, 12), "; 12 words went");
        assert_eq!(told(3, 1), "; 3 words came, 1 went");
    }

    #[test]
    fn first_words_are_one_line_and_end_where_they_are_cut() {
        assert_eq!(first_words(" It\nrained. "), "“It rained.”");
        assert_eq!(first_words(&"abc ".repeat(20)).chars().count(), GLIMPSE + 3);
        assert_eq!(passage("9c3d", " \n"), "9c3d");
    }
}

//! Operations in the words of a writer: what was done, and to which passage, by its first words and its short id.

use loom::path::{child_toward, common_ancestor};
use loom::{
    Block, CellChange, CellKey, CellValue, NodeId, NodeRow, OpKind, OpRecord, OpTarget, PositionId, Role,
    RowError, TreeReader, ViewName, resolve,
};

use super::telling::{count, first_words};
use super::wording;

/// Nodes of one operation that are looked through for one with words.
const NODES_READ: usize = 20;

/// What an operation did: a step of undo or redo with what it took back or did again.
pub(super) fn operation(rows: &dyn TreeReader, record: &OpRecord) -> Result<String, RowError> {
    let Narration { told, .. } = Narration::of(rows, record)?;
    Ok(told)
}

/// What operations that count as one did, the oldest first: the first of them that made words says it, else the first.
pub(super) fn operations(rows: &dyn TreeReader, records: &[OpRecord]) -> Result<String, RowError> {
    let mut first = None;
    for record in records {
        let Narration { told, has_words } = Narration::of(rows, record)?;
        if has_words {
            return Ok(told);
        }
        first.get_or_insert(told);
    }
    Ok(first.unwrap_or_default())
}

/// Whether an operation only moved text from a passage to one beside it, so that the text of the path stayed.
pub(super) fn moves_text(rows: &dyn TreeReader, record: &OpRecord) -> Result<bool, RowError> {
    Ok(Passages { rows, record }.joined_or_parted()?.is_some())
}

struct Narration {
    told: String,
    /// Whether it names a passage with words.
    has_words: bool,
}

impl Narration {
    fn of(rows: &dyn TreeReader, record: &OpRecord) -> Result<Self, RowError> {
        let passages = Passages { rows, record };
        let made = passages.made()?;
        let has_words = made.is_some();
        Ok(Self { told: passages.told(made.as_ref())?, has_words })
    }
}

/// The passages an operation is about.
struct Passages<'a> {
    rows: &'a dyn TreeReader,
    record: &'a OpRecord,
}

impl Passages<'_> {
    /// What tools said, and an answer that says nothing but which to call.
    fn acted(&self) -> Result<Option<String>, RowError> {
        let Some((node, _)) = self.record.op.nodes.first() else { return Ok(None) };
        let Some(row) = self.rows.node(*node)?.filter(|row| !row.purged) else { return Ok(None) };
        if row.node.role == Some(Role::Tool) {
            return Ok(Some(format!("result of {} {}", row.node.author.id, row.short_id)));
        }
        let calls = row.node.content.iter().filter_map(|block| match block {
            Block::ToolCall { name, .. } => Some(name.as_str()),
            _ => None,
        });
        let calls: Vec<&str> = calls.collect();
        let told = |run: &[&str]| match run {
            [one] => (*one).to_owned(),
            run => format!("{} ×{}", run[0], run.len()),
        };
        let named: Vec<String> = calls.chunk_by(|one, next| one == next).map(told).collect();
        let says_more = calls.is_empty() || !row.node.text().trim().is_empty();
        Ok((!says_more).then(|| format!("{} calls {}", row.short_id, named.join(", "))))
    }

    fn told(&self, made: Option<&NodeRow>) -> Result<String, RowError> {
        let wrote = made.map(named);
        let of = |what: &str| wrote.as_ref().map(|passage| format!("{what} {passage}"));
        let told = match self.record.op.kind {
            OpKind::Create => Some(of("made the tree with").unwrap_or_else(|| "made the tree".to_owned())),
            OpKind::Commit => of("wrote"),
            OpKind::Generate => Some(match &wrote {
                Some(passage) => format!("wrote {passage} and asked a model"),
                None => "asked a model".to_owned(),
            }),
            OpKind::Answer => self.acted()?.or_else(|| of("answer")),
            OpKind::Edit => match self.joined_or_parted()? {
                Some(told) => Some(told),
                None => match of("edit of") {
                    None => self.selected()?.map(|passage| format!("edit of {passage}")),
                    told => told,
                },
            },
            OpKind::Branch => match of("branched off with") {
                None => self.moved()?.map(|passage| format!("branched off behind {passage}")),
                told => told,
            },
            OpKind::Switch => self.gone_to()?.map(|passage| format!("went to {passage}")),
            OpKind::Move => match (self.moved()?, &self.record.op.view) {
                (Some(passage), Some(view)) => Some(format!("moved the end of {view} to {passage}")),
                _ => None,
            },
            OpKind::Select => self.selected()?.map(|passage| format!("showed the version {passage}")),
            OpKind::Keep => self.on("accepted what stands above")?,
            OpKind::Prune => self.on("pruned")?,
            OpKind::Restore => self.on("restored")?,
            OpKind::Exclude => self.on("left out")?,
            OpKind::Include => self.on("took in again")?,
            OpKind::Compact => self.window()?,
            OpKind::Bookmark => {
                let is_set = self.first(|cell| cell.new.as_text().map(drop)).is_some();
                self.on(if is_set { "bookmarked" } else { "took the bookmark from" })?
            }
            OpKind::Tag => self.tagged()?,
            OpKind::Trust => {
                let is_on = self.first(|cell| cell.new.is_set().then_some(())).is_some();
                let told = self.on(if is_on { "answered for" } else { "answers no more for" })?;
                match self.record.op.cells.len() {
                    0 | 1 => told,
                    nodes => told.map(|told| format!("{told}, and {} more", nodes - 1)),
                }
            }
            OpKind::Annotate => of("remark"),
            OpKind::Pin => self.pinned(wrote.as_deref()),
            OpKind::NewView => {
                self.view(|cell| !cell.new.is_none()).map(|view| format!("made the view {view}"))
            }
            OpKind::DeleteView => {
                self.view(|cell| cell.new.is_none()).map(|view| format!("deleted the view {view}"))
            }
            OpKind::Rename => {
                self.first(|cell| matches!(cell.key, CellKey::Title).then_some(&cell.new)).map(|title| {
                    match title.as_text().filter(|_| !self.record.purged) {
                        Some(title) => format!("named the tree {}", first_words(title)),
                        None if title.is_none() => "took the title away".to_owned(),
                        None => "named the tree".to_owned(),
                    }
                })
            }
            OpKind::Archive => Some("archived the tree".to_owned()),
            OpKind::Unarchive => Some("took the tree out of the archive".to_owned()),
            OpKind::Import => Some(match (&wrote, self.record.op.nodes.len() as u64) {
                (Some(passage), 1) => format!("took in {passage}"),
                (wrote, nodes) => {
                    let first = wrote.iter().map(|passage| format!(", first {passage}")).collect::<String>();
                    format!("took in {}{first}", count(nodes, "node", "nodes"))
                }
            }),
            OpKind::Forget => Some("forgot contents for good".to_owned()),
            OpKind::Undo | OpKind::Redo => None,
        };
        match told {
            Some(told) => Ok(told),
            None => self.plainly(),
        }
    }

    /// What no other words were found for: the kind, and the first cell it set.
    fn plainly(&self) -> Result<String, RowError> {
        let kind = format!("{:?}", self.record.op.kind).to_lowercase();
        Ok(match self.record.op.cells.first() {
            Some(cell) => format!("{kind} ({})", wording::cell(self.rows, &cell.key)?),
            None => kind,
        })
    }

    /// The first node with words that it made.
    fn made(&self) -> Result<Option<NodeRow>, RowError> {
        for (node, _) in self.record.op.nodes.iter().take(NODES_READ) {
            if let Some(row) = self.rows.node(*node)?.filter(|row| !row.node.text().trim().is_empty()) {
                return Ok(Some(row));
            }
        }
        Ok(None)
    }

    fn first<'a, T>(&'a self, what: impl Fn(&'a CellChange) -> Option<T>) -> Option<T> {
        self.record.op.cells.iter().find_map(what)
    }

    /// The ends a view had before and has now.
    fn ends(&self) -> Option<(Option<PositionId>, PositionId)> {
        self.first(|cell| match &cell.key {
            CellKey::Tip { view } if self.record.op.view.as_ref() == Some(view) => {
                Some((cell.old.as_position(), cell.new.as_position()?))
            }
            _ => None,
        })
    }

    fn moved(&self) -> Result<Option<String>, RowError> {
        self.ends().map(|(_, new)| self.at(new)).transpose()
    }

    /// Where it went: the passage with which the path parts from the one before.
    fn gone_to(&self) -> Result<Option<String>, RowError> {
        let Some((old, new)) = self.ends() else { return Ok(None) };
        let parts = match old {
            Some(old) => child_toward(self.rows, common_ancestor(self.rows, old, new)?.id, new)?,
            None => None,
        };
        self.at(parts.unwrap_or(new)).map(Some)
    }

    /// The version it made a view show.
    fn selected(&self) -> Result<Option<String>, RowError> {
        let found = self.first(|cell| match &cell.key {
            CellKey::Selected { position, .. } => Some(version(&cell.new, *position)),
            _ => None,
        });
        Ok(found.map(|node| self.rows.node(node)).transpose()?.flatten().as_ref().map(named))
    }

    /// What a flag or a mark was set on.
    fn on(&self, what: &str) -> Result<Option<String>, RowError> {
        let target = self.first(|cell| match &cell.key {
            CellKey::Pruned { target } | CellKey::Excluded { target } => Some(*target),
            CellKey::Trusted { node } => Some(OpTarget::Position(node.as_position())),
            CellKey::Keep { position, .. }
            | CellKey::Bookmark { position }
            | CellKey::Tag { position, .. } => Some(OpTarget::Position(*position)),
            _ => None,
        });
        Ok(match target {
            None => None,
            Some(OpTarget::Position(position)) => Some(format!("{what} {}", self.at(position)?)),
            Some(OpTarget::Version(node)) => {
                self.rows.node(node)?.map(|row| format!("{what} the version {}", named(&row)))
            }
        })
    }

    fn tagged(&self) -> Result<Option<String>, RowError> {
        let tag = self.first(|cell| match &cell.key {
            CellKey::Tag { tag, .. } => Some((tag, cell.new.is_set())),
            _ => None,
        });
        match tag {
            Some((tag, true)) => self.on(&format!("put the tag #{tag} on")),
            Some((tag, false)) => self.on(&format!("took the tag #{tag} from")),
            None => Ok(None),
        }
    }

    fn window(&self) -> Result<Option<String>, RowError> {
        let start = self.first(|cell| match &cell.key {
            CellKey::WindowStart { .. } => Some(&cell.new),
            _ => None,
        });
        Ok(match start {
            None => None,
            Some(start) => Some(match start.as_place() {
                Some(place) => format!("moved the start of the window to {}", self.at(place.position)?),
                None => "moved the start of the window to the beginning".to_owned(),
            }),
        })
    }

    fn pinned(&self, wrote: Option<&str>) -> Option<String> {
        let what = self.first(|cell| match &cell.key {
            CellKey::Head => Some("head"),
            CellKey::Note | CellKey::NoteDepth => Some("note"),
            CellKey::Selected { .. } => Some("head or note"),
            _ => None,
        })?;
        Some(wrote.map_or_else(|| format!("changed the {what}"), |text| format!("wrote the {what} {text}")))
    }

    fn view(&self, is: impl Fn(&CellChange) -> bool) -> Option<&ViewName> {
        self.first(|cell| match &cell.key {
            CellKey::View { view } if is(cell) => Some(view),
            _ => None,
        })
    }

    /// A passage as the view of the operation shows it.
    fn at(&self, at: PositionId) -> Result<String, RowError> {
        if self.rows.tree()?.root == at {
            return Ok("the beginning".to_owned());
        }
        let view = self.record.op.view.clone().unwrap_or_default();
        let row = self.rows.node(resolve::shown(self.rows, &view, at)?)?;
        Ok(row.as_ref().map_or_else(|| at.to_string(), named))
    }

    /// A merge or a split: two passages show other texts, and both together say what they said.
    fn joined_or_parted(&self) -> Result<Option<String>, RowError> {
        let mut shown = Vec::new();
        for cell in &self.record.op.cells {
            if let CellKey::Selected { position, .. } = cell.key {
                shown.push((version(&cell.old, position), version(&cell.new, position)));
            }
        }
        let text = |node: NodeId| {
            let row = self.rows.node(node)?.filter(|row| !row.purged);
            Ok::<_, RowError>(row.map(|row| row.node.text().into_owned()))
        };
        let (upper, lower) = match shown.as_slice() {
            [upper, lower] => (*upper, Some(*lower)),
            [upper] => (*upper, None),
            _ => return Ok(None),
        };
        let (Some(old), Some(new)) = (text(upper.0)?, text(upper.1)?) else { return Ok(None) };
        let below = match lower {
            Some((old, new)) => text(old)?.zip(text(new)?),
            // The tail of the last passage of a path became one of its own.
            None => match (&self.record.op.nodes.last(), self.ends()) {
                (Some((node, _)), Some((_, end))) if end.original() == *node => {
                    Some(String::new()).zip(text(*node)?)
                }
                _ => None,
            },
        };
        let Some((old_below, new_below)) = below else { return Ok(None) };
        let what = match (old_below.is_empty(), new_below.is_empty()) {
            (false, true) if new == format!("{old}{old_below}") => "merge into",
            (true, false) if old == format!("{new}{new_below}") => "split of",
            _ => return Ok(None),
        };
        Ok(self.rows.node(upper.1)?.map(|row| format!("{what} {}", named(&row))))
    }
}

/// The version a selection shows: the original where there is none.
fn version(value: &CellValue, position: PositionId) -> NodeId {
    value.as_node().unwrap_or_else(|| position.original())
}

/// A passage by its short id and its first words, or what it is instead of words.
fn named(row: &NodeRow) -> String {
    let text = row.node.text();
    let words = match (row.purged, text.trim().is_empty(), row.node.content.is_empty()) {
        (true, ..) => "(forgotten)".to_owned(),
        (false, false, _) => first_words(&text),
        (false, true, _) if row.node.content.iter().all(|block| matches!(block, Block::Text { .. })) => {
            "(empty)".to_owned()
        }
        _ => return row.short_id.clone(),
    };
    format!("{} {words}", row.short_id)
}

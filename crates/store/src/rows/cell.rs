//! A cell as a row, and back.

use crate::engine::{Row, params};
use loom::cell::{CellScope, TextOffset};
use loom::{Cell, CellKey, CellValue, KeepScope, NodeId, OpTarget, PositionId, Seq, Slot, ViewName};

use super::codes::Code;
use crate::db::{Db, TreeKey, get, optional_id16, unsigned};
use crate::error::StoreError;

/// The numbers of the kinds of cells.
pub(crate) mod kind {
    pub(in crate::rows) const TITLE: u8 = 0;
    pub(in crate::rows) const ARCHIVED: u8 = 1;
    pub(in crate::rows) const HEAD: u8 = 2;
    pub(in crate::rows) const NOTE: u8 = 3;
    pub(in crate::rows) const NOTE_DEPTH: u8 = 4;
    pub(in crate::rows) const VIEW: u8 = 5;
    pub(in crate::rows) const TIP: u8 = 6;
    pub(in crate::rows) const WINDOW_START: u8 = 7;
    pub(in crate::rows) const SELECTED: u8 = 8;
    pub(in crate::rows) const LAST_TIP: u8 = 9;
    pub(in crate::rows) const KEEP: u8 = 10;
    pub(in crate::rows) const PRUNED: u8 = 11;
    pub(in crate::rows) const EXCLUDED: u8 = 12;
    pub(in crate::rows) const BOOKMARK: u8 = 13;
    pub(in crate::rows) const TAG: u8 = 14;
    pub(in crate::rows) const DRAFT: u8 = 15;
    pub(in crate::rows) const TRUSTED: u8 = 16;

    /// Kinds of cells that hide what they are about, as SQL.
    macro_rules! flags {
        () => {
            "11, 12"
        };
    }

    /// Kinds of cells that are a choice made on a path, as SQL: their rows name a place in a lane.
    macro_rules! choices {
        () => {
            "8, 10, 11, 12"
        };
    }

    /// Kinds of cells that hold a text, as SQL.
    macro_rules! texts {
        () => {
            "0, 2, 3, 13, 14"
        };
    }

    pub(in crate::rows) use {choices, flags, texts};

    /// Whether it is one of [`choices`].
    pub(in crate::rows) const fn is_choice(kind: u8) -> bool {
        matches!(kind, SELECTED | KEEP | PRUNED | EXCLUDED)
    }
}

/// The parts of a cell's name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Parts<'k> {
    pub(crate) kind: u8,
    pub(crate) view: Option<&'k ViewName>,
    pub(crate) target: Option<OpTarget>,
    pub(crate) tag: &'k str,
}

/// Takes a cell's name apart.
pub(crate) fn parts(key: &CellKey) -> Parts<'_> {
    let at = |position: &PositionId| Some(OpTarget::Position(*position));
    let (kind, view, target, tag) = match key {
        CellKey::Title => (kind::TITLE, None, None, ""),
        CellKey::Archived => (kind::ARCHIVED, None, None, ""),
        CellKey::Head => (kind::HEAD, None, None, ""),
        CellKey::Note => (kind::NOTE, None, None, ""),
        CellKey::NoteDepth => (kind::NOTE_DEPTH, None, None, ""),
        CellKey::View { view } => (kind::VIEW, Some(view), None, ""),
        CellKey::Tip { view } => (kind::TIP, Some(view), None, ""),
        CellKey::WindowStart { view } => (kind::WINDOW_START, Some(view), None, ""),
        CellKey::Selected { view, position } => (kind::SELECTED, Some(view), at(position), ""),
        CellKey::LastTip { view, position } => (kind::LAST_TIP, Some(view), at(position), ""),
        CellKey::Keep { view, position } => (kind::KEEP, Some(view), at(position), ""),
        CellKey::Pruned { target } => (kind::PRUNED, None, Some(*target), ""),
        CellKey::Excluded { target } => (kind::EXCLUDED, None, Some(*target), ""),
        CellKey::Bookmark { position } => (kind::BOOKMARK, None, at(position), ""),
        CellKey::Tag { position, tag } => (kind::TAG, None, at(position), tag.as_str()),
        CellKey::Trusted { node } => (kind::TRUSTED, None, Some(OpTarget::Version(*node)), ""),
        CellKey::Draft { view, slot: Slot::Buffer } => (kind::DRAFT, Some(view), None, ""),
        CellKey::Draft { view, slot: Slot::Edit(position) } => (kind::DRAFT, Some(view), at(position), ""),
    };
    Parts { kind, view, target, tag }
}

/// Puts a cell's name together.
pub(crate) fn key(
    kind: u8,
    view: Option<ViewName>,
    target: Option<OpTarget>,
    tag: String,
) -> Result<CellKey, StoreError> {
    let position = match target {
        Some(OpTarget::Position(position)) => Some(position),
        _ => None,
    };
    Ok(match (kind, view, target, position) {
        (kind::TITLE, None, None, None) => CellKey::Title,
        (kind::ARCHIVED, None, None, None) => CellKey::Archived,
        (kind::HEAD, None, None, None) => CellKey::Head,
        (kind::NOTE, None, None, None) => CellKey::Note,
        (kind::NOTE_DEPTH, None, None, None) => CellKey::NoteDepth,
        (kind::VIEW, Some(view), None, None) => CellKey::View { view },
        (kind::TIP, Some(view), None, None) => CellKey::Tip { view },
        (kind::WINDOW_START, Some(view), None, None) => CellKey::WindowStart { view },
        (kind::SELECTED, Some(view), _, Some(position)) => CellKey::Selected { view, position },
        (kind::LAST_TIP, Some(view), _, Some(position)) => CellKey::LastTip { view, position },
        (kind::KEEP, Some(view), _, Some(position)) => CellKey::Keep { view, position },
        (kind::PRUNED, None, Some(target), _) => CellKey::Pruned { target },
        (kind::EXCLUDED, None, Some(target), _) => CellKey::Excluded { target },
        (kind::BOOKMARK, None, _, Some(position)) => CellKey::Bookmark { position },
        (kind::TAG, None, _, Some(position)) => CellKey::Tag { position, tag },
        (kind::TRUSTED, None, Some(OpTarget::Version(node)), _) => CellKey::Trusted { node },
        (kind::DRAFT, Some(view), None, None) => CellKey::Draft { view, slot: Slot::Buffer },
        (kind::DRAFT, Some(view), _, Some(position)) => CellKey::Draft { view, slot: Slot::Edit(position) },
        _ => return Err(StoreError::Damaged(format!("a cell of an unknown kind {kind}"))),
    })
}

/// A cell's name as columns.
struct Columns<'k> {
    kind: u8,
    view: i64,
    target: i64,
    tag: &'k str,
}

/// The number of what a cell is about: positions even, versions odd.
fn target_number(db: &Db<'_>, tree: TreeKey, target: Option<OpTarget>) -> Result<Option<i64>, StoreError> {
    Ok(match target {
        None => Some(0),
        Some(OpTarget::Position(position)) => {
            db.node_number(tree, position.original())?.map(|number| number << 1)
        }
        Some(OpTarget::Version(node)) => db.node_number(tree, node)?.map(|number| number << 1 | 1),
    })
}

/// The columns of a cell's name; none when it names a view or node there is no row of, so that it was never set.
fn columns<'k>(db: &Db<'_>, tree: TreeKey, key: &'k CellKey) -> Result<Option<Columns<'k>>, StoreError> {
    let parts = parts(key);
    let view = match parts.view {
        None => Some(0),
        Some(view) => db.name_number(tree, view.as_str())?,
    };
    let target = target_number(db, tree, parts.target)?;
    Ok(view.zip(target).map(|(view, target)| Columns { kind: parts.kind, view, target, tag: parts.tag }))
}

macro_rules! pair_columns {
    () => {
        "c.kind, c.view, c.target, c.tag, c.form, c.number, c.text, c.seq, v.id, t.id"
    };
}

/// The node that a value names. For `form IN (2, 3, 7)` SQLite would make a table each time.
macro_rules! value_join {
    () => {
        "LEFT JOIN nodes v ON v.pk = (c.tree << 32) + c.number AND (c.form BETWEEN 2 AND 3 OR c.form = 7)"
    };
}

macro_rules! pair_joins {
    () => {
        concat!("LEFT JOIN nodes t ON t.pk = (c.tree << 32) + (c.target >> 1) ", value_join!())
    };
}

/// A cell; one never set is the default.
pub(crate) fn one(db: &Db<'_>, tree: TreeKey, key: &CellKey) -> Result<Cell, StoreError> {
    let Some(columns) = columns(db, tree, key)? else { return Ok(Cell::default()) };
    let sql = concat!(
        "SELECT c.form, c.number, c.text, c.seq, v.id FROM cells c ",
        value_join!(),
        " WHERE c.tree = ?1 AND c.kind = ?2 AND c.view = ?3 AND c.target = ?4 AND c.tag = ?5"
    );
    let names = params![tree.0, columns.kind, columns.view, columns.target, columns.tag];
    let found = db.one(sql, names, |row| read_cell(row, 0))?;
    Ok(found.unwrap_or_default())
}

/// Bookmarks at positions, by their numbers.
pub(crate) fn bookmarks(
    db: &Db<'_>,
    tree: TreeKey,
    positions: &[(PositionId, i64)],
) -> Result<Vec<(CellKey, Cell)>, StoreError> {
    let sql =
        format!("{PAIRS} WHERE c.tree = ?1 AND c.kind = ?2 AND c.view = 0 AND c.target = ?3 AND c.tag = ''");
    let sets = positions.iter().map(|(_, number)| params![tree.0, kind::BOOKMARK, number << 1]);
    db.all_of(&sql, sets, |row| read_pair(db, tree, row))
}

/// The cells of tags at positions that were ever set.
pub(crate) fn tags(
    db: &Db<'_>,
    tree: TreeKey,
    positions: &[PositionId],
) -> Result<Vec<(CellKey, Cell)>, StoreError> {
    let sql = format!(
        "{PAIRS} WHERE c.tree = ?1 AND c.kind = ?2 AND c.view = 0 AND c.target =
            (SELECT (a.pk - ?4) << 1 FROM nodes a WHERE a.id = ?3 AND a.pk BETWEEN ?4 AND ?5)"
    );
    let sets = positions
        .iter()
        .map(|position| params![tree.0, kind::TAG, position.to_bytes(), tree.first(), tree.last()]);
    let mut found = db.all_of(&sql, sets, |row| read_pair(db, tree, row))?;
    found.sort_by(|a, b| a.0.cmp(&b.0));
    Ok(found)
}

pub(crate) fn set(
    db: &Db<'_>,
    tree: TreeKey,
    key: &CellKey,
    value: &CellValue,
    seq: Seq,
) -> Result<(), StoreError> {
    if let Some(view) = parts(key).view {
        db.intern(tree, view.as_str())?;
    }
    let unknown = || StoreError::Malformed(format!("the cell {key} names a node this tree does not have"));
    let columns = columns(db, tree, key)?.ok_or_else(unknown)?;
    let node = |id: NodeId| db.node_number(tree, id)?.ok_or_else(unknown);
    let at;
    let (form, number, text) = match value {
        CellValue::None => (0, 0, None),
        CellValue::Set => (1, 0, None),
        CellValue::Position(position) => (2, node(position.original())?, None),
        CellValue::Node(id) => (3, node(*id)?, None),
        CellValue::Keep(scope) => (4, i64::from(scope.code()), None),
        CellValue::Text(text) => (5, 0, Some(text.as_str())),
        CellValue::Number(number) => (6, crate::db::signed(*number)?, None),
        CellValue::Place(place) => {
            at = place.at.to_string();
            (7, node(place.position.original())?, Some(at.as_str()))
        }
        CellValue::Draft { .. } => return Err(unknown()),
    };
    let chosen_at = kind::is_choice(columns.kind).then(|| place_of(db, tree, columns.target >> 1));
    let (lane, depth) = chosen_at.transpose()?.flatten().unzip();
    db.run(
        "INSERT INTO cells (tree, kind, view, target, tag, form, number, text, seq, lane, depth)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)
         ON CONFLICT (tree, kind, view, target, tag)
         DO UPDATE SET form = excluded.form, number = excluded.number, text = excluded.text, seq = excluded.seq",
        params![tree.0, columns.kind, columns.view, columns.target, columns.tag, form, number, text, seq.0 as i64, lane, depth],
    )?;
    match (key, value) {
        (CellKey::Title, value) => {
            let title = value.as_text().unwrap_or_default();
            db.run("UPDATE trees SET title = ?2 WHERE pk = ?1", (tree.0, title))?;
        }
        (CellKey::Archived, value) => {
            db.run("UPDATE trees SET archived = ?2 WHERE pk = ?1", (tree.0, value.is_set()))?;
        }
        _ => {}
    }
    Ok(())
}

/// Cells with the ids of the nodes that their names and values name: the columns of [`read_pair`].
pub(crate) const PAIRS: &str = concat!("SELECT ", pair_columns!(), " FROM cells c ", pair_joins!());

/// The lanes of the path that ends at the position with key ?2 in tree ?1, upwards, each with the depth where the path
/// leaves it.
macro_rules! lanes {
    () => {
        "WITH RECURSIVE lanes (lane, depth) AS (
            SELECT lane, depth FROM positions WHERE pk = ?2
            UNION ALL SELECT up.lane, up.depth FROM lanes JOIN positions head ON head.pk = (?1 << 32) + lanes.lane
                JOIN positions up ON up.pk = (?1 << 32) + head.parent WHERE up.depth < lanes.depth)
        SELECT "
    };
}

/// The choices on that path, those of the view numbered ?3 and those of all: lane by lane.
const CHOICES: &str = concat!(
    lanes!(),
    pair_columns!(),
    " FROM lanes CROSS JOIN cells c ",
    pair_joins!(),
    " WHERE c.tree = ?1 AND c.lane = lanes.lane AND c.depth <= lanes.depth AND (c.view = 0 OR c.view = ?3)"
);

/// Of what is pruned or left out in the tree, that on the path.
const FLAGS: &str = concat!(
    lanes!(),
    pair_columns!(),
    " FROM cells c CROSS JOIN lanes ",
    pair_joins!(),
    " WHERE c.tree = ?1 AND c.kind IN (",
    kind::flags!(),
    ") AND c.lane = lanes.lane AND c.depth <= lanes.depth"
);

/// So many flags of a tree are looked at one by one, rather than what its path chose.
const FEW: i64 = 32;

/// Reads `form, number, text, seq, v.id` from column `first` on.
fn read_cell(row: &Row<'_>, first: usize) -> Result<Cell, StoreError> {
    let number: i64 = get(row, first + 1)?;
    let node = || named(row, first + 4);
    let value = match get::<u8>(row, first)? {
        0 => CellValue::None,
        1 => CellValue::Set,
        2 => CellValue::Position(node()?.as_position()),
        3 => CellValue::Node(node()?),
        4 => CellValue::Keep(KeepScope::from_code(u8::try_from(number).unwrap_or(u8::MAX))?),
        5 => CellValue::Text(get(row, first + 2)?),
        6 => CellValue::Number(number as u64),
        7 => {
            let at: String = get(row, first + 2)?;
            let at =
                at.parse().map_err(|_| StoreError::Damaged("a place in a text cannot be read".to_owned()))?;
            CellValue::Place(TextOffset { position: node()?.as_position(), at })
        }
        other => return Err(StoreError::Damaged(format!("a cell of an unknown form {other}"))),
    };
    Ok(Cell { value, seq: Seq(unsigned(row, first + 3)?) })
}

/// The cells of a scope that were ever set, in the order of their keys: one set back to nothing says when.
pub(crate) fn all(db: &Db<'_>, tree: TreeKey, scope: &CellScope) -> Result<Vec<(CellKey, Cell)>, StoreError> {
    let (kind, view, position) = match scope {
        CellScope::Views => (kind::VIEW, None, None),
        CellScope::Selected(view) => (kind::SELECTED, Some(view), None),
        CellScope::Keeps(view) => (kind::KEEP, Some(view), None),
        CellScope::Pruned => (kind::PRUNED, None, None),
        CellScope::Excluded => (kind::EXCLUDED, None, None),
        CellScope::Bookmarks => (kind::BOOKMARK, None, None),
        CellScope::AllTags => (kind::TAG, None, None),
        CellScope::Tags(position) => (kind::TAG, None, Some(*position)),
    };
    let columns = format!("{PAIRS} WHERE c.tree = ?1 AND c.kind = ?2");
    let read = |row: &Row<'_>| read_pair(db, tree, row);
    let mut found = match (view, position) {
        (Some(view), _) => {
            let Some(view) = db.name_number(tree, view.as_str())? else { return Ok(Vec::new()) };
            let sql = format!("{columns} AND c.view = ?3");
            db.all(&sql, (tree.0, kind, view), read)?
        }
        (None, Some(position)) => {
            let target = Some(OpTarget::Position(position));
            let Some(target) = target_number(db, tree, target)? else { return Ok(Vec::new()) };
            db.all(&format!("{columns} AND c.view = 0 AND c.target = ?3"), (tree.0, kind, target), read)?
        }
        (None, None) => db.all(&columns, (tree.0, kind), read)?,
    };
    found.sort_by(|a, b| a.0.cmp(&b.0));
    Ok(found)
}

/// The choices on the path that ends at the position whose original has a number; without a view, what is pruned or left
/// out there.
pub(crate) fn choices(
    db: &Db<'_>,
    tree: TreeKey,
    view: Option<&ViewName>,
    end: i64,
) -> Result<Vec<(CellKey, Cell)>, StoreError> {
    let read = |row: &Row<'_>| read_pair(db, tree, row);
    let view = match view {
        Some(view) => db.name_number(tree, view.as_str())?,
        None => {
            let sql = concat!(
                "SELECT count(*) FROM (SELECT 1 FROM cells WHERE tree = ?1 AND kind IN (",
                kind::flags!(),
                ") LIMIT ?2) few"
            );
            match db.one(sql, (tree.0, FEW + 1), |row| get::<i64>(row, 0))? {
                None | Some(0) => return Ok(Vec::new()),
                Some(..=FEW) => return db.all(FLAGS, (tree.0, tree.node(end)), read),
                Some(_) => None,
            }
        }
    };
    db.all(CHOICES, (tree.0, tree.node(end), view.unwrap_or(0)), read)
}

/// The lane and the depth of the position that the node with a number stands at.
fn place_of(db: &Db<'_>, tree: TreeKey, number: i64) -> Result<Option<(i64, i64)>, StoreError> {
    let sql = "SELECT p.lane, p.depth FROM nodes n JOIN positions p ON p.pk = ?2 + coalesce(n.position, ?3)
        WHERE n.pk = ?1";
    db.one(sql, (tree.node(number), tree.first(), number), |row| Ok((get(row, 0)?, get(row, 1)?)))
}

/// Removes the cells of a tree that hold a text.
pub(crate) fn remove_texts(db: &Db<'_>, tree: TreeKey) -> Result<(), StoreError> {
    let sql = concat!(
        "DELETE FROM cells WHERE tree = ?1 AND kind IN (",
        kind::texts!(),
        ") AND (text <> '' OR tag <> '')"
    );
    db.run(sql, [tree.0]).map(drop)
}

/// The cells that a view alone has: what it shows, where it last was, what it accepted.
pub(crate) fn of_view(db: &Db<'_>, tree: TreeKey, view: i64) -> Result<Vec<(CellKey, Cell)>, StoreError> {
    let sql = format!("{PAIRS} WHERE c.tree = ?1 AND c.kind = ?2 AND c.view = ?3");
    let mut found = Vec::new();
    for kind in [kind::SELECTED, kind::LAST_TIP, kind::KEEP] {
        found.extend(db.all(&sql, (tree.0, kind, view), |row| read_pair(db, tree, row))?);
    }
    found.sort_by(|a, b| a.0.cmp(&b.0));
    Ok(found)
}

/// Reads a cell with its name.
pub(crate) fn read_pair(db: &Db<'_>, tree: TreeKey, row: &Row<'_>) -> Result<(CellKey, Cell), StoreError> {
    let (view, target): (i64, i64) = (get(row, 1)?, get(row, 2)?);
    let view = match view {
        0 => None,
        pk => Some(view_name(db, tree, pk)?),
    };
    let target = match target {
        0 => None,
        number if number & 1 == 1 => Some(OpTarget::Version(named(row, 9)?)),
        _ => Some(OpTarget::Position(named(row, 9)?.as_position())),
    };
    Ok((key(get(row, 0)?, view, target, get(row, 3)?)?, read_cell(row, 4)?))
}

/// The id of a node that a row names; it must be there.
fn named(row: &Row<'_>, index: usize) -> Result<NodeId, StoreError> {
    let missing = || StoreError::Damaged("a cell names a node that is missing".to_owned());
    optional_id16(row, index)?.map(NodeId::from_bytes).ok_or_else(missing)
}

/// The view whose name has a number.
pub(crate) fn view_name(db: &Db<'_>, tree: TreeKey, number: i64) -> Result<ViewName, StoreError> {
    db.name(tree, number)?.parse().map_err(|_| StoreError::Damaged(format!("name {number} is no view's")))
}

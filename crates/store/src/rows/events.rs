//! Events as rows, in the order of commits.

use loom::{GenerationId, OpKind, Seq, Slot, TreeId};

use super::bytes::{In, Out};
use super::cell::view_name;
use super::codes::Code;
use super::trees::{self, seen};
use crate::db::{Db, TreeKey, bytes_of, get, signed, unsigned};
use crate::engine::{Lock, NONE, params};
use crate::error::StoreError;
use crate::event::{Cursor, EVENT_RETENTION, EventKind, Events, StoreEvent};
use crate::principal::Principal;
use crate::question::QuestionId;
use crate::shared_events::{SharedEvent, SharedPage};

/// How often old events are removed, in events.
const SWEEP: i64 = 1024;

/// Appends an event, which gets its number when the transaction is about to end.
pub(crate) fn append(db: &Db<'_>, tree: TreeKey, what: &EventKind) -> Result<(), StoreError> {
    db.happened(tree, write(db, tree, what)?);
    Ok(())
}

/// Numbers the events appended so far, in the order of commits: whoever numbers waits for those that did before.
/// Returns the newest.
pub(crate) fn number(db: &Db<'_>) -> Result<Cursor, StoreError> {
    let happened = db.take_happened();
    if happened.is_empty() {
        return last(db);
    }
    db.engine().lock(Lock::Events)?;
    let before = signed(last(db)?.0)?;
    let sets = (before + 1..).zip(&happened).map(|(number, (tree, what))| params![number, tree.0, what]);
    db.all_of("INSERT INTO events (pk, tree, what) VALUES (?1, ?2, ?3)", sets, |_| Ok(()))?;
    let newest = before + happened.len() as i64;
    if newest / SWEEP > before / SWEEP {
        db.run("DELETE FROM events WHERE pk <= ?1", [newest - EVENT_RETENTION as i64])?;
    }
    Ok(Cursor(newest.unsigned_abs()))
}

pub(crate) fn last(db: &Db<'_>) -> Result<Cursor, StoreError> {
    let last = db.one("SELECT coalesce(max(pk), 0) FROM events", NONE, |row| unsigned(row, 0))?;
    Ok(Cursor(last.unwrap_or_default()))
}

/// Whether something of a tree, or of any, was removed after an event, or may have been: events that are no longer kept may
/// say so.
pub(crate) fn removed_since(db: &Db<'_>, tree: Option<TreeKey>, cursor: Cursor) -> Result<bool, StoreError> {
    let sql = "SELECT (SELECT coalesce(min(pk), 1) FROM events),
        (SELECT count(*) FROM events WHERE pk > ?1 AND (tree = ?2 OR ?2 = 0) AND what = ?3)";
    let from = signed(cursor.0)?;
    let tree = tree.unwrap_or(TreeKey(0));
    let removed = write(db, tree, &EventKind::Removed)?;
    let found = db.one(sql, (from, tree.0, removed), |row| {
        let (first, count): (i64, i64) = (get(row, 0)?, get(row, 1)?);
        Ok(count > 0 || from + 1 < first)
    })?;
    Ok(found.unwrap_or_default())
}

/// As [`crate::Store::removed_since`].
pub(crate) fn removed_from(
    db: &Db<'_>,
    who: &Principal,
    tree: TreeId,
    cursor: Cursor,
) -> Result<bool, StoreError> {
    removed_since(db, Some(trees::find(db, who, tree)?.key), cursor)
}

/// As [`crate::Store::events_after`].
pub(crate) fn after(db: &Db<'_>, who: &Principal, after: Cursor, limit: usize) -> Result<Events, StoreError> {
    let from = i64::try_from(after.0).unwrap_or(i64::MAX);
    let first =
        db.one("SELECT coalesce(min(pk), 1) FROM events", NONE, |row| get::<i64>(row, 0))?.unwrap_or(1);
    let end = last(db)?;
    let (seen, param) = seen(who);
    let sql = format!(
        "SELECT e.pk, t.id, e.what, e.tree FROM events e JOIN trees t ON t.pk = e.tree
         WHERE e.pk > ?2 AND {seen} ORDER BY e.pk LIMIT ?3"
    );
    let events = db.all(&sql, (param, from, super::reader::limit_of(limit)), |row| {
        Ok(StoreEvent {
            cursor: Cursor(unsigned(row, 0)?),
            tree: TreeId::from_bytes(crate::db::id16(row, 1)?),
            what: read(db, TreeKey(get(row, 3)?), bytes_of(row, 2)?)?,
        })
    })?;
    let full = events.len() == limit;
    let next = events.last().filter(|_| full).map_or(end, |last| last.cursor);
    Ok(Events { events, next: next.max(after), missed: from + 1 < first })
}

/// As [`crate::Store::read_events`].
pub(crate) fn shared(db: &Db<'_>, after: Option<Cursor>, limit: usize) -> Result<SharedPage, StoreError> {
    let Some(after) = after else { return Ok(SharedPage { events: Vec::new(), end: last(db)? }) };
    let sql = "SELECT e.pk, t.id, e.what, e.tree, t.session FROM events e JOIN trees t ON t.pk = e.tree
         WHERE e.pk > ?1 ORDER BY e.pk LIMIT ?2";
    let events = db.all(sql, (signed(after.0)?, super::reader::limit_of(limit)), |row| {
        let event = StoreEvent {
            cursor: Cursor(unsigned(row, 0)?),
            tree: TreeId::from_bytes(crate::db::id16(row, 1)?),
            what: read(db, TreeKey(get(row, 3)?), bytes_of(row, 2)?)?,
        };
        Ok(SharedEvent { event, session: get(row, 4)? })
    })?;
    let end = events.last().map_or(after, |last| last.event.cursor);
    Ok(SharedPage { events, end })
}

fn write(db: &Db<'_>, tree: TreeKey, what: &EventKind) -> Result<Vec<u8>, StoreError> {
    let mut out = Out::default();
    match what {
        EventKind::Operation { seq, kind, view } => {
            out.byte(if view.is_some() { 1 } else { 0 });
            out.number(seq.0);
            out.byte(kind.code());
            if let Some(view) = view {
                out.signed(db.intern(tree, view.as_str())?);
            }
        }
        EventKind::Draft { view, slot, revision } => {
            out.byte(2);
            out.signed(db.intern(tree, view.as_str())?);
            out.optional(match slot {
                Slot::Buffer => None,
                Slot::Edit(position) => {
                    db.node_number(tree, position.original())?.map(|number| number as u64)
                }
            });
            out.optional(*revision);
        }
        EventKind::Generation { id } => {
            out.byte(3);
            out.fixed(&id.to_bytes());
        }
        EventKind::Removed => out.byte(4),
        EventKind::Question { id } => {
            out.byte(5);
            out.fixed(&id.to_bytes());
        }
    }
    Ok(out.0)
}

fn read(db: &Db<'_>, tree: TreeKey, bytes: &[u8]) -> Result<EventKind, StoreError> {
    let mut read = In::new(bytes, "an event");
    Ok(match read.byte()? {
        form @ (0 | 1) => {
            let seq = Seq(read.number()?);
            let kind = OpKind::from_code(read.byte()?)?;
            let view = if form == 0 { None } else { Some(view_name(db, tree, read.signed()?)?) };
            EventKind::Operation { seq, kind, view }
        }
        2 => {
            let view = view_name(db, tree, read.signed()?)?;
            let slot = match read.optional()? {
                None => Slot::Buffer,
                Some(number) => Slot::Edit(db.node_id(tree, number as i64)?.as_position()),
            };
            EventKind::Draft { view, slot, revision: read.optional()? }
        }
        3 => EventKind::Generation { id: GenerationId::from_bytes(read.fixed()?) },
        4 => EventKind::Removed,
        5 => EventKind::Question { id: QuestionId::from_bytes(read.fixed()?) },
        _ => return Err(read.damaged()),
    })
}

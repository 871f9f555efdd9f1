//! A node as a row, and back.

use std::borrow::Cow;

use loom::content::content_hash;
use loom::reader::AnswerRow;
use loom::{
    Block, Counts, Digest, Finish, GenerationId, ModelSource, Node, NodeId, NodeRow, Origin, OriginRole,
    PathDigest, PositionId, Quote, ResponsePart, Role, Seq, SourceKind, Trust,
};

use super::bytes::{In, Out};
use super::codes::Code;
use super::trees::TreeRef;
use crate::db::{Db, TreeKey, bytes_of, digest, get, id16, number_of, optional_id16, unsigned};
use crate::engine::{Row, ValueRef, params};
use crate::error::StoreError;

/// How a content is written.
mod form {
    /// One text block: its text.
    pub(crate) const TEXT: u8 = 0;
    /// Anything else: JSON.
    pub(crate) const JSON: u8 = 1;
    pub(crate) const EMPTY: u8 = 2;
}

const PURGED: u8 = 4;

/// The columns of [`read`], for a `FROM` of [`TABLES`].
pub(crate) const COLUMNS: &str = "n.id, n.seq, n.place, n.short, n.author, n.flags, n.created, n.bytes, n.chars, \
    n.graphemes, n.content, n.content_hash, n.chain_hash, n.term, p.id, o.id, o.chain_hash, e.id, n.generation, n.extra";

/// The tables a node's row is read from.
pub(crate) const TABLES: &str = "nodes n LEFT JOIN nodes p ON p.pk = (n.pk & -4294967296) + n.position \
    LEFT JOIN nodes o ON o.pk = (n.pk & -4294967296) + n.origin \
    LEFT JOIN nodes e ON e.pk = (n.pk & -4294967296) + n.edited_from";

/// Where a node stands in its tree.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NodePlace<'a> {
    /// Number of the node: 1 for the first one of the tree.
    pub(crate) number: i64,
    pub(crate) seq: Seq,
    pub(crate) place: u32,
    pub(crate) short: &'a str,
    /// Whether its content is removed at once.
    pub(crate) purged: bool,
}

pub(crate) fn insert(db: &Db<'_>, tree: TreeKey, node: &Node, at: NodePlace<'_>) -> Result<(), StoreError> {
    let link = |id: Option<NodeId>| match id {
        None => Ok(None),
        Some(id) => db.node_number(tree, id)?.map(Some).ok_or_else(|| {
            StoreError::Malformed(format!("node {} names {id}, which this tree does not have", node.id))
        }),
    };
    let position = (!node.is_original()).then(|| node.position.original());
    let (origin, extra_origins) = match plain_origin(db, tree, node)? {
        Some(origin) => (Some(origin), false),
        None => (None, !node.origins.is_empty()),
    };
    let extra = extra(db, tree, node, extra_origins)?;
    let (content, form) = write_content(&node.content)?;
    let flags = form | node.role.map_or(0, Code::code) << 3 | node.trust.code() << 6;
    let counts = node.counts;
    let len = content.as_deref().unwrap_or_default().len() as u64;
    // A version is looked for by what it says; a hash outlives its content.
    let kept = at.purged || !node.is_original();
    let hash = || node.content_hash().map_err(|error| StoreError::Malformed(error.to_string()));
    let content_hash = if kept { Some(hash()?.0) } else { None };
    let differs = |number: u64, from: u64| (number != from).then_some(number as i64);
    db.run(
        "INSERT INTO nodes (pk, id, position, seq, place, short, author, flags, created, bytes, chars, graphemes,
            content, content_hash, chain_hash, term, origin, edited_from, generation, extra)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20)",
        params![
            tree.node(at.number),
            node.id.to_bytes(),
            link(position)?,
            at.seq.0 as i64,
            at.place,
            at.short,
            db.intern_author(tree, &node.author)?,
            flags,
            node.created_at.0.wrapping_sub(time_of(node.id)),
            differs(counts.bytes, len),
            differs(counts.chars, counts.bytes),
            differs(counts.graphemes, counts.chars),
            content,
            content_hash,
            node.chain_hash.0,
            node.term.0.to_be_bytes(),
            origin,
            link(node.edited_from)?,
            node.generation.map(GenerationId::to_bytes),
            extra,
        ],
    )?;
    db.note_key(node.id, tree.node(at.number));
    Ok(())
}

/// The milliseconds within a node's id.
fn time_of(id: NodeId) -> i64 {
    let bytes = id.to_bytes();
    bytes[..6].iter().fold(0, |ms, byte| ms << 8 | i64::from(*byte))
}

/// The number of the node that is the one parent a node follows from, if there is nothing more to say.
fn plain_origin(db: &Db<'_>, tree: TreeKey, node: &Node) -> Result<Option<i64>, StoreError> {
    let [Origin { role: OriginRole::Parent, node: parent, chain }] = &node.origins[..] else {
        return Ok(None);
    };
    let sql = "SELECT pk, chain_hash FROM nodes WHERE id = ?1";
    let found = db.one(sql, [parent.to_bytes()], |row| Ok((get::<i64>(row, 0)?, digest(row, 1)?)))?;
    if let Some((key, _)) = found {
        db.note_key(*parent, key);
    }
    Ok(found.filter(|(key, held)| TreeKey::of(*key) == tree && held == chain).map(|(key, _)| number_of(key)))
}

/// Bytes of a content, if it has any, and the form they are written in.
type WrittenContent<'a> = (Option<Cow<'a, [u8]>>, u8);

fn write_content(content: &[Block]) -> Result<WrittenContent<'_>, StoreError> {
    Ok(match content {
        [] => (None, form::EMPTY),
        [Block::Text { text }] => (Some(Cow::Borrowed(text.as_bytes())), form::TEXT),
        blocks => {
            let json =
                serde_json::to_vec(blocks).map_err(|error| StoreError::Malformed(error.to_string()))?;
            (Some(Cow::Owned(json)), form::JSON)
        }
    })
}

/// The content of a node out of its column.
pub(crate) fn read_content(row: &Row<'_>, index: usize, flags: u8) -> Result<Vec<Block>, StoreError> {
    let ValueRef::Blob(bytes) = row.value(index)? else { return Ok(Vec::new()) };
    let damaged = |error: &dyn std::fmt::Display| {
        StoreError::Damaged(format!("the content of a node cannot be read: {error}"))
    };
    Ok(match flags & 3 {
        form::TEXT => {
            let text = str::from_utf8(bytes).map_err(|error| damaged(&error))?;
            vec![Block::Text { text: text.to_owned() }]
        }
        form::JSON => serde_json::from_slice(bytes).map_err(|error| damaged(&error))?,
        _ => Vec::new(),
    })
}

/// What has no column: quote, finish, source, origins that are not one plain parent.
fn extra(db: &Db<'_>, tree: TreeKey, node: &Node, origins: bool) -> Result<Option<Vec<u8>>, StoreError> {
    let parts = [node.quote.is_some(), node.finish.is_some(), node.source.is_some(), origins];
    if !parts.contains(&true) {
        return Ok(None);
    }
    let mut out = Out::default();
    out.byte(parts.iter().rev().fold(0, |bits, part| bits << 1 | u8::from(*part)));
    if let Some(quote) = &node.quote {
        out.fixed(&quote.node.to_bytes());
        out.fixed(&quote.chain.0);
        for number in [quote.from, quote.to, quote.at] {
            out.number(number);
        }
    }
    match &node.finish {
        None => {}
        Some(Finish::Stop) => out.byte(0),
        Some(Finish::Length) => out.byte(1),
        Some(Finish::ToolUse) => out.byte(2),
        Some(Finish::Refused) => out.byte(3),
        Some(Finish::Interrupted(reason)) => {
            out.byte(4);
            out.text(reason);
        }
    }
    if let Some(source) = &node.source {
        for name in [&source.provider, &source.model, &source.dialect] {
            out.signed(db.intern(tree, name)?);
        }
        out.byte(source.kind.code());
        out.fixed(&source.manifest.0);
        out.byte(u8::from(source.response.is_some()));
        out.fixed(source.response.as_ref().map_or(&[], |response| &response.0));
        match source.choice {
            ResponsePart::Index(index) => {
                out.byte(0);
                out.number(u64::from(index));
            }
            ResponsePart::Token { index, rank } => {
                out.byte(1);
                out.number(u64::from(index));
                out.number(u64::from(rank));
            }
        }
    }
    if origins {
        out.number(node.origins.len() as u64);
        for origin in &node.origins {
            out.byte(origin.role.code());
            out.fixed(&origin.node.to_bytes());
            out.fixed(&origin.chain.0);
        }
    }
    Ok(Some(out.0))
}

fn read_extra(db: &Db<'_>, tree: TreeKey, bytes: &[u8], node: &mut Node) -> Result<(), StoreError> {
    let mut read = In::new(bytes, "what a node has besides its content");
    let parts = read.byte()?;
    if parts & 1 != 0 {
        let (quoted, chain) = (NodeId::from_bytes(read.fixed()?), Digest(read.fixed()?));
        let (from, to, at) = (read.number()?, read.number()?, read.number()?);
        node.quote = Some(Quote { node: quoted, chain, from, to, at });
    }
    if parts & 2 != 0 {
        node.finish = Some(match read.byte()? {
            0 => Finish::Stop,
            1 => Finish::Length,
            2 => Finish::ToolUse,
            3 => Finish::Refused,
            4 => Finish::Interrupted(read.text()?),
            _ => return Err(read.damaged()),
        });
    }
    if parts & 4 != 0 {
        node.source = Some(read_source(db, tree, &mut read)?);
    }
    if parts & 8 != 0 {
        for _ in 0..read.number()? {
            let role = OriginRole::from_code(read.byte()?)?;
            let (id, chain) = (NodeId::from_bytes(read.fixed()?), Digest(read.fixed()?));
            node.origins.push(Origin { role, node: id, chain });
        }
    }
    Ok(())
}

fn read_source(db: &Db<'_>, tree: TreeKey, read: &mut In<'_>) -> Result<ModelSource, StoreError> {
    let mut name = || Ok::<_, StoreError>(db.name(tree, read.signed()?)?.to_string());
    let (provider, model, dialect) = (name()?, name()?, name()?);
    let kind = SourceKind::from_code(read.byte()?)?;
    let manifest = Digest(read.fixed()?);
    let response = match read.byte()? {
        0 => None,
        _ => Some(Digest(read.fixed()?)),
    };
    let token = read.byte()? != 0;
    let mut index = || u32::try_from(read.number()?).map_err(|_| read.damaged());
    let choice = if token {
        ResponsePart::Token { index: index()?, rank: index()? }
    } else {
        ResponsePart::Index(index()?)
    };
    Ok(ModelSource { provider, model, dialect, kind, manifest, response, choice })
}

/// Reads the columns of [`COLUMNS`].
pub(crate) fn read(db: &Db<'_>, tree: TreeRef, row: &Row<'_>) -> Result<NodeRow, StoreError> {
    let id = NodeId::from_bytes(id16(row, 0)?);
    let flags: u8 = get(row, 5)?;
    let purged = flags & PURGED != 0;
    let len = if let ValueRef::Blob(bytes) = row.value(10)? { bytes.len() as u64 } else { 0 };
    let counts = read_counts(row, 7, len)?;
    let position = optional_id16(row, 14)?.map_or(id.as_position(), PositionId::from_bytes);
    let content = read_content(row, 10, flags)?;
    let kept_hash = match row.value(11)? {
        ValueRef::Null => None,
        _ => Some(digest(row, 11)?),
    };
    let mut node = Node {
        id,
        tree: tree.id,
        position,
        author: db.author(tree.key, get(row, 4)?)?,
        role: read_role(flags)?,
        created_at: loom::Millis(time_of(id).wrapping_add(get(row, 6)?)),
        content: content.into(),
        edited_from: optional_id16(row, 17)?.map(NodeId::from_bytes),
        quote: None,
        origins: Vec::new(),
        source: None,
        generation: optional_id16(row, 18)?.map(GenerationId::from_bytes),
        trust: Trust::from_code(flags >> 6)?,
        finish: None,
        counts,
        term: PathDigest(u128::from_be_bytes(id16(row, 13)?)),
        kept_hash,
        chain_hash: digest(row, 12)?,
    };
    if let Some(parent) = optional_id16(row, 15)? {
        let chain = digest(row, 16)?;
        node.origins.push(Origin { role: OriginRole::Parent, node: NodeId::from_bytes(parent), chain });
    }
    let extra = row.value(19)?;
    if let ValueRef::Blob(extra) = extra {
        read_extra(db, tree.key, extra, &mut node)?;
    }
    let place = get(row, 2)?;
    Ok(NodeRow { node, seq: Seq(unsigned(row, 1)?), place, short_id: get(row, 3)?, purged })
}

/// Whether flags say that a content was removed.
pub(crate) const fn is_purged(flags: u8) -> bool {
    flags & PURGED != 0
}

/// The role within a node's flags.
pub(crate) fn read_role(flags: u8) -> Result<Option<Role>, StoreError> {
    match flags >> 3 & 7 {
        0 => Ok(None),
        code => Role::from_code(code).map(Some),
    }
}

/// Counts in three columns from `first` on, of a content of `len` bytes.
pub(crate) fn read_counts(row: &Row<'_>, first: usize, len: u64) -> Result<Counts, StoreError> {
    let column = |index, default| {
        let number: Option<i64> = get(row, index)?;
        Ok::<_, StoreError>(number.map_or(default, |number| number as u64))
    };
    let bytes = column(first, len)?;
    let chars = column(first + 1, bytes)?;
    Ok(Counts { bytes, chars, graphemes: column(first + 2, chars)? })
}

/// Removes the content of a node, leaving its hashes and its size. Of one that cannot be read the hash is that of its
/// bytes: it fits nothing.
pub(crate) fn purge(db: &Db<'_>, key: i64) -> Result<(), StoreError> {
    let sql = "SELECT content, flags FROM nodes WHERE pk = ?1 AND content_hash IS NULL";
    let hash = db.one(sql, [key], |row| match get(row, 1).and_then(|flags| read_content(row, 0, flags)) {
        Err(error) if error.is_damage() => Ok(Digest::of(bytes_of(row, 0).unwrap_or_default())),
        content => content_hash(&content?)
            .map_err(|error| StoreError::Damaged(format!("the content of a node cannot be hashed: {error}"))),
    })?;
    db.run(
        "UPDATE nodes SET bytes = coalesce(bytes, octet_length(content), 0), content = NULL,
            content_hash = coalesce(content_hash, ?4), flags = (flags & ~3) | ?2 | ?3 WHERE pk = ?1",
        (key, form::EMPTY, PURGED, hash.map(|hash| hash.0)),
    )?;
    Ok(())
}

/// Gives a node another trust where it has `from`. Returns how many were changed.
pub(crate) fn set_trust(db: &Db<'_>, key: i64, from: Trust, to: Trust) -> Result<u64, StoreError> {
    db.run(
        "UPDATE nodes SET flags = (flags & 63) | (?2 << 6) WHERE pk = ?1 AND flags >> 6 = ?3 AND ?2 <> ?3",
        (key, to.code(), from.code()),
    )
}

/// Has a node from outside, and what was shown with it, count as an accepted file does, or as from outside again.
pub(crate) fn answer_for(db: &Db<'_>, tree: TreeKey, id: NodeId, is_trusted: bool) -> Result<(), StoreError> {
    let number = db.node_number(tree, id)?.ok_or(StoreError::NotFound("node"))?;
    let (from, to) =
        if is_trusted { (Trust::Outside, Trust::Workspace) } else { (Trust::Workspace, Trust::Outside) };
    set_trust(db, tree.node(number), from, to)?;
    super::injections::set_trust(db, tree, number, from, to)
}

/// As [`loom::TreeReader::answers`], of the nodes between two keys, at most so many.
pub(crate) fn answers(db: &Db<'_>, keys: (i64, i64, i64)) -> Result<Vec<AnswerRow>, StoreError> {
    let sql = "SELECT id, seq, place, generation, created FROM nodes WHERE pk > ?1 AND pk < ?2
        AND generation IS NOT NULL AND position IS NULL ORDER BY pk DESC LIMIT ?3";
    db.all(sql, keys, |row| {
        let node = NodeId::from_bytes(id16(row, 0)?);
        let place = u32::try_from(unsigned(row, 2)?);
        Ok(AnswerRow {
            node,
            order: (
                Seq(unsigned(row, 1)?),
                place.map_err(|_| StoreError::Damaged("a place is none".to_owned()))?,
            ),
            generation: GenerationId::from_bytes(id16(row, 3)?),
            created_at: loom::Millis(time_of(node).wrapping_add(get(row, 4)?)),
        })
    })
}

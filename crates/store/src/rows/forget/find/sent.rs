//! What was sent and received that is to go: responses, manifests, bodies, and what is being answered to them.

use std::collections::BTreeSet;

use loom::{Digest, GenerationId};

use super::super::super::bytes::unpack;
use super::super::Removal;
use super::Finder;
use crate::db::{Db, bytes_of, digest, get, id16};
use crate::engine::{NONE, Row, params};
use crate::error::StoreError;

/// Generations that one round asks for.
const ROUND: usize = 64;

impl Finder<'_, '_> {
    /// Calls `visit` with each row of a statement about generations of the tree ?1 that are looked at, and of `more`;
    /// `{}` in it stands for the condition that names one.
    fn each_looked_at(
        &self,
        sql: &str,
        more: &BTreeSet<GenerationId>,
        mut visit: impl FnMut(&Row<'_>) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let tree = self.tree.key.0;
        let Some(these) = &self.part.generations else {
            return self.db.scan(&sql.replace("{}", ""), [tree], |row| visit(row).map(|()| true));
        };
        let sql = sql.replace("{}", "AND g.id = ?2");
        let looked_at: Vec<_> = these.union(more).collect();
        for some in looked_at.chunks(ROUND) {
            let sets = some.iter().map(|id| params![tree, id.to_bytes()]);
            self.db.all_of(&sql, sets, &mut visit)?;
        }
        Ok(())
    }

    pub(super) fn responses(&mut self) -> Result<(), StoreError> {
        let sql = "SELECT r.generation, r.bytes, r.metadata FROM generations g
            JOIN responses r ON r.generation = g.id WHERE g.tree = ?1 AND r.purged = 0 {}";
        let mut found = Vec::new();
        self.each_looked_at(sql, self.made_by, |row| {
            let generation = GenerationId::from_bytes(id16(row, 0)?);
            let goes = self.is_whole()
                || self.made_by.contains(&generation)
                || self.target.is_in_bytes(&unpack(bytes_of(row, 1)?)?)
                || self.target.is_in_bytes(get::<String>(row, 2)?.as_bytes());
            if goes {
                found.push(Removal::Response(generation));
            }
            Ok(())
        })?;
        self.found.extend(found);
        Ok(())
    }

    /// Manifests and bodies of the tree: those that hold what is searched for, and those of a purged tree that no
    /// other tree sent. What is being answered to one of them is stopped.
    pub(super) fn sent(&mut self) -> Result<(), StoreError> {
        let manifests = self.going(MANIFESTS, |bytes, _| self.target.is_in_bytes(bytes))?;
        let mut cited = BTreeSet::new();
        if self.target.is_short() {
            self.each_looked_at(CITATIONS, &BTreeSet::new(), |row| {
                if manifests.contains(&digest(row, 0)?) {
                    cited.insert(digest(row, 1)?);
                }
                Ok(())
            })?;
        }
        let bodies = self.going(BODIES, |bytes, of| {
            self.target.is_in_bytes(bytes) || cited.contains(&of) && self.target.is_in_sent(bytes)
        })?;
        let mut holding = manifests.clone();
        if !bodies.is_empty() {
            self.each_looked_at(CITATIONS, &BTreeSet::new(), |row| {
                if bodies.contains(&digest(row, 1)?) {
                    holding.insert(digest(row, 0)?);
                }
                Ok(())
            })?;
        }
        let is_whole = self.is_whole();
        let sql = "SELECT g.id, g.manifest FROM generations g WHERE g.tree = ?1 AND g.state = 0";
        let running = self.db.all(sql, [self.tree.key.0], |row| {
            Ok((GenerationId::from_bytes(id16(row, 0)?), digest(row, 1)?))
        })?;
        let running = running.into_iter().filter(|(_, manifest)| is_whole || holding.contains(manifest));
        self.found.extend(manifests.into_iter().map(Removal::Manifest));
        self.found.extend(bodies.into_iter().map(Removal::Body));
        self.found.extend(running.map(|(generation, _)| Removal::Running(generation)));
        Ok(())
    }

    /// Digests of the bytes read by `sql` that are to be removed: of those that `holds` is true of, or, where the
    /// whole tree goes, of those that no other tree has.
    fn going(
        &self,
        sql: &str,
        holds: impl Fn(&[u8], Digest) -> bool,
    ) -> Result<BTreeSet<Digest>, StoreError> {
        let (mut looked_at, mut going) = (BTreeSet::new(), BTreeSet::new());
        self.each_looked_at(sql, &BTreeSet::new(), |row| {
            let of = digest(row, 0)?;
            let is_elsewhere: bool = get(row, 2)?;
            let goes = looked_at.insert(of)
                && (self.is_whole() && !is_elsewhere || holds(&unpack(bytes_of(row, 1)?)?, of));
            if goes {
                going.insert(of);
            }
            Ok(())
        })?;
        Ok(going)
    }

    /// Whether the whole tree goes.
    pub(super) fn is_whole(&self) -> bool {
        self.target.tree == Some(self.tree.id)
    }
}

/// Bodies that no manifest cites, whatever they say: nobody can read them.
pub(super) fn uncited_bodies(db: &Db<'_>) -> Result<Vec<Digest>, StoreError> {
    let sql =
        "SELECT digest FROM bodies b WHERE NOT EXISTS (SELECT 1 FROM citations c WHERE c.body = b.digest)";
    db.all(sql, NONE, |row| digest(row, 0))
}

/// Manifests of generations, and whether another tree sent them too.
const MANIFESTS: &str = "SELECT m.digest, m.bytes, CASE WHEN EXISTS (
        SELECT 1 FROM generations o WHERE o.manifest = m.digest AND o.tree <> ?1) THEN 1 ELSE 0 END
    FROM manifests m WHERE m.digest IN (SELECT g.manifest FROM generations g WHERE g.tree = ?1 {})";

/// Bodies of generations, and whether another tree sent them too.
const BODIES: &str = "SELECT b.digest, b.bytes, CASE WHEN EXISTS (
        SELECT 1 FROM citations o JOIN generations og ON og.manifest = o.manifest
        WHERE o.body = b.digest AND og.tree <> ?1) THEN 1 ELSE 0 END
    FROM bodies b WHERE b.digest IN (SELECT c.body FROM generations g
        JOIN citations c ON c.manifest = g.manifest WHERE g.tree = ?1 {})";

/// Which bodies the manifests of generations cite.
const CITATIONS: &str = "SELECT c.manifest, c.body FROM generations g
    JOIN citations c ON c.manifest = g.manifest WHERE g.tree = ?1 {}";

//! What hangs on a tree: its history and its bytes. Each record is taken or skipped alone.

use loom::reader::Injection;
use loom::{Digest, TreeReader, Trust};

use super::{Reader, Why};
use crate::own::bytes::Data;
use crate::own::record::{BodyRecord, BytesRecord, GenerationRecord, InjectionRecord, ResponseRecord};
use crate::own::source::{ArchivedResponse, FileBody, StoredGeneration};

impl Reader {
    pub(super) fn injection(&mut self, record: InjectionRecord) -> Result<(), Why> {
        self.tally.injections += 1;
        let InjectionRecord { node, ordinal, source, text } = record;
        let order = |id| self.file.tree.node(id).ok().flatten().map(|row| (row.seq, row.place));
        let Some(at) = order(node) else {
            return Err(format!("what was shown with {node} has no node; it was skipped"));
        };
        let last = self.file.injections.last().map(|last| (order(last.node), last.ordinal));
        if last.is_some_and(|last| last >= (Some(at), ordinal)) {
            return Err(format!("what was shown with {node} is out of order; it was skipped"));
        }
        if text.len() as u64 > self.limits.node {
            return Err(format!("what was shown with {node} is longer than a node; it was skipped"));
        }
        self.file.injections.push(Injection { node, ordinal, source, trust: Trust::Outside, text });
        Ok(())
    }

    pub(super) fn generation(&mut self, record: GenerationRecord) -> Result<(), Why> {
        self.tally.generations += 1;
        let GenerationRecord { row, response, metadata } = record;
        let tree = &self.file.tree;
        let has = |id| tree.position(id).is_ok_and(|held| held.is_some());
        let stands_there = |place: &loom::GenerationPlace| {
            has(place.parent) && tree.node(place.parent_node).is_ok_and(|held| held.is_some())
        };
        let stands = row.tree == self.file.header.tree.id
            && row.place.as_ref().map_or(row.reserved.is_empty(), stands_there)
            && row.runs.iter().all(|run| has(run.from) && has(run.to));
        if !stands {
            return Err(format!("generation {} names what is not in the tree; it was skipped", row.id));
        }
        if self.file.generations.contains_key(&row.id) {
            return Err(format!("generation {} is in the file twice", row.id));
        }
        self.file.tree.add_generation(row.clone());
        self.file.generations.insert(row.id, StoredGeneration { row, response, metadata });
        Ok(())
    }

    pub(super) fn manifest(&mut self, record: BytesRecord) -> Result<(), Why> {
        self.tally.manifests += 1;
        if let Some(bytes) = held("manifest", record.digest, record.length, record.data)? {
            self.file.materials.manifests.insert(record.digest, bytes);
        }
        Ok(())
    }

    pub(super) fn body(&mut self, record: BodyRecord) -> Result<(), Why> {
        self.tally.bodies += 1;
        let BodyRecord { manifest, name, digest, length, data } = record;
        if !self.file.materials.manifests.contains_key(&manifest) {
            return Err(format!("the manifest of body {digest} is not in the lines before; it was skipped"));
        }
        if let Some(bytes) = held("body", digest, length, data)? {
            self.file.materials.bodies.insert(digest, bytes);
        }
        self.file.materials.bodies_of.entry(manifest).or_default().push(FileBody { name, digest, length });
        Ok(())
    }

    pub(super) fn response(&mut self, record: ResponseRecord) -> Result<(), Why> {
        self.tally.responses += 1;
        let ResponseRecord { digest, metadata, purged, length, data } = record;
        let bytes = held("response", digest, length, data)?;
        if purged && bytes.is_some() {
            return Err(format!("response {digest} is forgotten and has a body; it was skipped"));
        }
        if purged || bytes.is_some() {
            let response = ArchivedResponse { metadata, bytes: bytes.unwrap_or_default(), purged };
            self.file.materials.responses.insert(digest, response);
        }
        Ok(())
    }

    pub(super) fn blob(&mut self, record: BytesRecord) -> Result<(), Why> {
        self.tally.blobs += 1;
        if let Some(bytes) = held("blob", record.digest, record.length, record.data)? {
            self.file.materials.blobs.insert(record.digest, bytes);
        }
        Ok(())
    }
}

/// The bytes of a record, which must have the digest and length it says.
fn held(what: &str, digest: Digest, length: u64, data: Option<Data>) -> Result<Option<Vec<u8>>, Why> {
    let Some(data) = data else { return Ok(None) };
    let bytes = data.bytes().ok_or_else(|| format!("{what} {digest} is no base 64; it was skipped"))?;
    if Digest::of(&bytes) != digest || bytes.len() as u64 != length {
        return Err(format!("{what} {digest} has other bytes than its digest says; it was skipped"));
    }
    Ok(Some(bytes.into_owned()))
}

//! Reading a file: line by line, nothing believed.
//!
//! A record that does not stand is named with its line. Bytes and generations are skipped alone; without a
//! position, node or operation the tree does not stand, so the file is then refused by
//! [`crate::import::plan_import`]. So is a file without its last line: what followed is not known to be none.
//! What such records carry is dropped here, and with it what hangs on them.

mod attached;

use std::collections::BTreeSet;
use std::io::BufRead;

use loom::memory::MemoryTree;
use loom::position::Sums;
use loom::{CellKey, Digest, OpRecord, Position, Seq, TreeReader, ViewName};
use sha2::{Digest as _, Sha256};

use super::check::{self, Why};
use super::contents::RecordCounts;
use super::imported::{ImportedFile, Materials, ReadProblem};
use super::line::{Line, ReadLimits, depth, next_line};
use super::record::{Absence, End, FORMAT, FileHeader, NodeRecord, Record, VERSION};

/// Error of reading a file as a whole.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The file could not be read.
    #[error("the file could not be read: {0}")]
    Io(#[from] std::io::Error),
    /// The first line is not a header of the own format.
    #[error("this is not a drawloom export: its first line is no header")]
    NotOurs,
    /// The version is unknown to this program.
    #[error("this export is of version {0}; this drawloom reads up to {VERSION}: update it")]
    Version(u32),
}

/// Reads a file in the own format.
///
/// # Errors
/// [`ReadError`] when it is no such file; what is wrong within it is in [`ImportedFile::problems`].
pub fn read(input: &mut dyn BufRead, limits: ReadLimits) -> Result<ImportedFile, ReadError> {
    let mut buffer = Vec::new();
    let header = first_line(input, &mut buffer, limits)?;
    let mut reader = Reader::new(header, limits);
    reader.hasher.update(&buffer);
    reader.hasher.update(b"\n");
    while let Some(line) = next_line(input, &mut buffer, limits.line)? {
        reader.line += 1;
        match line {
            // Without its line end too it may be whole, as some editors leave the last one.
            Line::Whole(bytes) | Line::Cut(bytes) => reader.take(bytes),
            Line::TooLong => {
                reader.report(reader.rank <= STRUCTURE, format!("it is longer than {} bytes", limits.line));
            }
        }
    }
    Ok(reader.finish())
}

fn first_line(
    input: &mut dyn BufRead,
    buffer: &mut Vec<u8>,
    limits: ReadLimits,
) -> Result<FileHeader, ReadError> {
    let Some(Line::Whole(line)) = next_line(input, buffer, limits.line.min(1 << 20))? else {
        return Err(ReadError::NotOurs);
    };
    let Ok(probe) = serde_json::from_slice::<Probe>(line) else { return Err(ReadError::NotOurs) };
    if probe.record != "header" || probe.format != FORMAT {
        return Err(ReadError::NotOurs);
    }
    if probe.version != VERSION {
        return Err(ReadError::Version(probe.version));
    }
    match serde_json::from_slice(line) {
        Ok(Record::Header(header)) => Ok(*header),
        _ => Err(ReadError::NotOurs),
    }
}

/// Fields of the first line in every version.
#[derive(serde::Deserialize)]
struct Probe {
    record: String,
    format: String,
    version: u32,
}

/// An error of parsing a line as people read it: without the number of a line that is always the first.
fn plain(error: &serde_json::Error) -> String {
    use serde_json::error::Category;
    match error.classify() {
        Category::Eof => "it ends within a value".to_owned(),
        Category::Data => {
            let why = error.to_string();
            why.split(" at line ").next().unwrap_or(&why).to_owned()
        }
        Category::Syntax | Category::Io => {
            format!("it is not JSON from byte {} on", error.column().max(1))
        }
    }
}

struct Reader {
    limits: ReadLimits,
    line: u64,
    /// The last line that a problem was found in.
    reported: u64,
    hasher: Sha256,
    file: ImportedFile,
    /// A position whose original is the next line.
    pending: Option<Position>,
    /// The newest place in the order of the tree.
    last_node: Option<(Seq, u32)>,
    last_op: Option<(Seq, Digest)>,
    head: Digest,
    named: BTreeSet<loom::NodeId>,
    tally: RecordCounts,
    rank: u8,
    end: Option<End>,
}

impl Reader {
    fn new(header: FileHeader, limits: ReadLimits) -> Self {
        let mut tree = MemoryTree::default();
        tree.restore_tree(header.tree.clone());
        let head = loom::seal::first_head(header.tree.id);
        Self {
            limits,
            line: 1,
            reported: 0,
            hasher: Sha256::new(),
            file: ImportedFile {
                header,
                tree,
                injections: Vec::new(),
                generations: Default::default(),
                materials: Materials::default(),
                problems: Vec::new(),
                further: 0,
                lines_left_out: 0,
                digest: Digest::ZERO,
                withheld: BTreeSet::new(),
            },
            pending: None,
            last_node: None,
            last_op: None,
            head,
            named: BTreeSet::new(),
            tally: RecordCounts::default(),
            rank: 0,
            end: None,
        }
    }

    /// Whether a line that could not be parsed belongs to what the tree stands on.
    fn is_structure(&self, bytes: &[u8]) -> bool {
        const ALONE: [&[u8]; 8] =
            [b"seal", b"injection", b"generation", b"manifest", b"body", b"response", b"blob", b"end"];
        let kind = bytes.strip_prefix(b"{\"record\":\"").unwrap_or_default();
        self.rank <= STRUCTURE && !ALONE.iter().any(|alone| kind.starts_with(alone))
    }

    fn report(&mut self, breaks: bool, why: impl Into<String>) {
        if self.line > self.reported {
            self.reported = self.line;
            self.file.lines_left_out += 1;
        }
        let listed = self.file.problems.len() < self.limits.problems;
        // The first problem that breaks the tree is listed whatever the bound: the refusal names it.
        if listed || (breaks && self.file.broken().is_none()) {
            self.file.problems.push(ReadProblem { line: self.line, why: why.into(), breaks });
        } else {
            self.file.further += 1;
        }
    }

    fn take(&mut self, bytes: &[u8]) {
        if self.end.is_some() {
            if bytes.trim_ascii().is_empty() {
                return;
            }
            self.report(false, "it follows the end of the file and was skipped");
            return;
        }
        let nesting = depth(bytes);
        if nesting > self.limits.depth {
            self.hash(bytes);
            let breaks = self.is_structure(bytes);
            self.report(breaks, format!("it nests {nesting} deep; {} is the limit", self.limits.depth));
            return;
        }
        match serde_json::from_slice::<Record>(bytes) {
            Ok(Record::End(end)) => self.end = Some(end),
            Ok(record) => {
                self.hash(bytes);
                self.record(record);
            }
            Err(error) => {
                self.hash(bytes);
                let breaks = self.is_structure(bytes);
                self.report(breaks, format!("it is no record of this format: {}", plain(&error)));
            }
        }
    }

    fn hash(&mut self, bytes: &[u8]) {
        self.hasher.update(bytes);
        self.hasher.update(b"\n");
    }

    fn record(&mut self, record: Record) {
        let rank = rank(&record);
        if rank < self.rank {
            self.report(rank <= STRUCTURE, "it is out of order");
            return;
        }
        self.rank = rank;
        let waiting = self.pending.take();
        let follows =
            |position: &Position| matches!(&record, Record::Node(node) if node.id == position.id.original());
        if let Some(position) = waiting.as_ref().filter(|position| !follows(position)) {
            self.report(true, format!("position {} lacks its original on the next line", position.id));
        }
        let waiting = waiting.filter(|position| follows(position));
        let breaks = rank <= STRUCTURE;
        let done = match record {
            Record::Header(_) => Err("a second header".into()),
            Record::Position(record) => {
                self.tally.positions += 1;
                check::placed(&self.file.tree, &self.file.header.tree, &record)
                    .map(|position| self.pending = Some(position))
            }
            Record::Node(record) => self.node(*record, waiting),
            Record::Operation(record) => self.operation(*record),
            Record::Seal(seal) => {
                self.tally.seals += 1;
                self.file.tree.add_seal(seal);
                Ok(())
            }
            Record::Injection(record) => self.injection(record),
            Record::Generation(record) => self.generation(*record),
            Record::Manifest(record) => self.manifest(record),
            Record::Body(record) => self.body(record),
            Record::Response(record) => self.response(record),
            Record::Blob(record) => self.blob(record),
            Record::End(_) => Ok(()),
        };
        if let Err(why) = done {
            self.report(breaks, why);
        }
    }

    fn node(&mut self, record: NodeRecord, waiting: Option<Position>) -> Result<(), Why> {
        self.tally.nodes += 1;
        let order = (record.seq, record.place);
        if record.seq == Seq(0) || self.last_node.is_some_and(|last| order <= last) {
            return Err(format!("node {} is out of order", record.id));
        }
        let here = match &waiting {
            Some(position) if position.id == record.position => position.clone(),
            _ => {
                let id = record.position;
                let held = self.file.tree.position(id).ok().flatten();
                held.ok_or_else(|| format!("position {id} is not in the lines before"))?
            }
        };
        let absent = record.absent;
        let id = record.id;
        let row = check::read_node(&self.file.tree, &self.file.header.tree, &here, record, &self.limits)
            .map_err(|why| format!("node {id}: {why}"))?;
        if let Some(mut position) = waiting {
            position.own = Sums { counts: row.node.counts, digest: row.node.term };
            self.file.tree.restore_position(position);
        }
        if absent == Some(Absence::Shared) {
            self.file.withheld.insert(id);
        }
        self.last_node = Some(order);
        self.file.tree.restore_node(row);
        Ok(())
    }

    fn operation(&mut self, record: OpRecord) -> Result<(), Why> {
        self.tally.operations += 1;
        let seq = record.seq;
        let chained = check::chained(&record, self.last_op);
        self.last_op = Some((seq, record.hash));
        self.head = loom::seal::next_head(self.head, record.hash);
        let name = |why: Why| format!("operation {seq}: {why}");
        chained.map_err(name)?;
        check::op_rows(&self.file.tree, &self.file.header.tree, &record).map_err(name)?;
        self.named.extend(record.op.nodes.iter().map(|(id, _)| *id));
        self.file.tree.restore_operation(record);
        Ok(())
    }
}

/// Ranks up to this one are what the tree stands on.
const STRUCTURE: u8 = 2;

/// The order of records in a file.
const fn rank(record: &Record) -> u8 {
    match record {
        Record::Header(_) => 0,
        Record::Position(_) | Record::Node(_) => 1,
        Record::Operation(_) => 2,
        Record::Seal(_) => 3,
        Record::Injection(_) => 4,
        Record::Generation(_) => 5,
        Record::Manifest(_) | Record::Body(_) => 6,
        Record::Response(_) => 7,
        Record::Blob(_) => 8,
        Record::End(_) => 9,
    }
}

impl Reader {
    fn finish(mut self) -> ImportedFile {
        self.file.digest = Digest(std::mem::take(&mut self.hasher).finalize().into());
        self.line = 0;
        if let Some(position) = self.pending.take() {
            self.report(true, format!("position {} lacks its original", position.id));
        }
        let nodes = self.tally.nodes;
        if self.named.len() as u64 != nodes {
            self.report(
                true,
                format!("{} of {nodes} nodes are in no operation", nodes.abs_diff(self.named.len() as u64)),
            );
        }
        let main = CellKey::Tip { view: ViewName::default() };
        if self.file.tree.cell(&main).map_or(true, |cell| cell.value.as_position().is_none()) {
            self.report(true, "the tree has no view main");
        }
        match self.end.take() {
            None => self.report(true, "the last line is missing: the file was cut"),
            Some(end) => {
                let seq = self.last_op.map_or(Seq(0), |(seq, _)| seq);
                if end.digest != self.file.digest {
                    self.report(
                        false,
                        "the lines are not those that were written: the file was changed or damaged",
                    );
                }
                let structure = |counts: &RecordCounts| (counts.positions, counts.nodes, counts.operations);
                let of_tree = structure(&end.counts) == structure(&self.tally);
                let breaks = !of_tree || end.seq != seq;
                if breaks || end.counts != self.tally || end.head != self.head {
                    self.report(breaks, "the last line counts other records than there are");
                }
            }
        }
        self.file
    }
}

//! A disk that loses power: of each file and folder, what was synced, and what came after that.
//!
//! Certain is what an fsync of the file or of the folder covered, and nothing else: a new file is certain only
//! once its bytes *and* its name are. What came after may be there or not. Bytes survive by pages of 4 KiB, in any
//! order. Changes of one folder survive in their order, as a journal keeps them; those of different folders and
//! files do not wait for each other.

use std::collections::{BTreeMap, HashMap};
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::{DirBuilderExt as _, FileExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use super::recording::Call;
use crate::support::Seeded;

const PAGE: u64 = 4096;

/// What of the unsynced is found after the loss.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Survives {
    Nothing,
    Everything,
    /// Names, but no bytes.
    Names,
    /// Bytes, but no names.
    Bytes,
    /// What came before some moment.
    Prefix,
    /// Any of it, page by page.
    Pieces,
}

/// A number of a file or folder.
type Inode = usize;

/// The bytes of a file; a page that was never written is zeros.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Content {
    length: u64,
    pages: BTreeMap<u64, Vec<u8>>,
}

#[derive(Debug, Clone)]
enum Change {
    /// Within one page.
    Bytes {
        at: u64,
        bytes: Vec<u8>,
    },
    Length(u64),
    /// At least this long.
    Extend(u64),
}

#[derive(Debug, Clone)]
enum Entry {
    Set(OsString, Inode),
    Remove(OsString),
    Rename(OsString, OsString),
    Exchange(OsString, OsString),
}

type Names = BTreeMap<OsString, Inode>;

/// Changes with the number of the call that made them.
#[derive(Debug, Clone)]
enum Node {
    File { synced: Content, after: Vec<(usize, Change)>, length: u64 },
    Folder { synced: Names, after: Vec<(usize, Entry)>, now: Names },
}

#[derive(Debug, Clone, Copy)]
struct Descriptor {
    inode: Inode,
    at: u64,
    appends: bool,
}

/// The files below one folder.
#[derive(Debug, Clone)]
pub(super) struct Disk {
    root: PathBuf,
    nodes: Vec<Node>,
    descriptors: HashMap<u64, Descriptor>,
    /// Names of files and folders whose syncs do nothing: for controls.
    deaf: Vec<String>,
    calls: usize,
    /// Calls before the program that runs now.
    before: usize,
}

impl Disk {
    /// A folder as it is, all of it certain.
    pub(super) fn of(root: &Path) -> Self {
        let mut disk = Self {
            root: root.to_owned(),
            nodes: Vec::new(),
            descriptors: HashMap::new(),
            deaf: Vec::new(),
            calls: 0,
            before: 0,
        };
        disk.take_in(root);
        disk
    }

    /// A disk that ignores syncs of what has this name.
    pub(super) fn deaf_to(mut self, name: &str) -> Self {
        self.deaf.push(name.to_owned());
        self
    }

    fn take_in(&mut self, path: &Path) -> Inode {
        let inode = self.nodes.len();
        if path.is_dir() {
            self.nodes.push(folder(Names::new()));
            let entries = fs::read_dir(path).unwrap().flatten();
            let names: Names =
                entries.map(|entry| (entry.file_name(), self.take_in(&entry.path()))).collect();
            self.nodes[inode] = folder(names);
        } else {
            let bytes = fs::read(path).unwrap();
            let mut synced = Content::default();
            pieces(0, &bytes).for_each(|piece| synced.change(&piece));
            self.nodes.push(Node::File { length: synced.length, synced, after: Vec::new() });
        }
        inode
    }

    /// A program begins.
    pub(super) fn start(&mut self) {
        self.descriptors.clear();
        self.before = self.calls;
    }

    /// Does a call.
    pub(super) fn call(&mut self, call: &Call) {
        self.calls += 1;
        match call {
            Call::Open { path, flags, fd } => {
                self.descriptors.remove(fd);
                self.open(path, flags, *fd);
            }
            Call::Close { fd } => {
                self.descriptors.remove(fd);
            }
            Call::Duplicate { fd, as_fd } => match self.descriptors.get(fd).copied() {
                Some(descriptor) => {
                    self.descriptors.insert(*as_fd, descriptor);
                }
                None => {
                    self.descriptors.remove(as_fd);
                }
            },
            Call::Write { fd, at, bytes } => self.write(*fd, *at, bytes),
            Call::Seek { fd, to } => {
                self.descriptors.entry(*fd).and_modify(|descriptor| descriptor.at = *to);
            }
            Call::Length { fd, bytes } => self.change_at(*fd, Change::Length(*bytes)),
            Call::Allocate { fd, end } => self.change_at(*fd, Change::Extend(*end)),
            Call::Sync { fd, began } => self.sync(*fd, self.before + began),
            Call::Rename { from, to, exchange } => self.rename(from, to, *exchange),
            Call::Link { from, to } => {
                if let (Some(inode), Some((folder, name))) = (self.find(from), self.place(to)) {
                    self.enter(folder, Entry::Set(name, inode));
                }
            }
            Call::Unlink { path } => {
                if let Some((folder, name)) = self.place(path) {
                    self.enter(folder, Entry::Remove(name));
                }
            }
            Call::MakeFolder { path } => {
                if let Some((parent, name)) = self.place(path) {
                    self.nodes.push(folder(Names::new()));
                    self.enter(parent, Entry::Set(name, self.nodes.len() - 1));
                }
            }
        }
    }

    fn open(&mut self, path: &Path, flags: &str, fd: u64) {
        let has = |flag: &str| flags.split('|').any(|set| set == flag);
        let inode = match (self.find(path), self.place(path)) {
            (Some(inode), _) => inode,
            (None, Some((folder, name))) if has("O_CREAT") => {
                self.nodes.push(Node::File { synced: Content::default(), after: Vec::new(), length: 0 });
                self.enter(folder, Entry::Set(name, self.nodes.len() - 1));
                self.nodes.len() - 1
            }
            _ => return,
        };
        self.descriptors.insert(fd, Descriptor { inode, at: 0, appends: has("O_APPEND") });
        if has("O_TRUNC") {
            self.change(inode, Change::Length(0));
        }
    }

    fn write(&mut self, fd: u64, at: Option<u64>, bytes: &[u8]) {
        let Some(descriptor) = self.descriptors.get(&fd).copied() else { return };
        let start = match (at, &self.nodes[descriptor.inode]) {
            (Some(at), _) => at,
            (None, Node::File { length, .. }) if descriptor.appends => *length,
            _ => descriptor.at,
        };
        pieces(start, bytes).for_each(|piece| self.change(descriptor.inode, piece));
        if at.is_none() {
            let end = start + bytes.len() as u64;
            self.descriptors.entry(fd).and_modify(|descriptor| descriptor.at = end);
        }
    }

    fn change_at(&mut self, fd: u64, change: Change) {
        if let Some(descriptor) = self.descriptors.get(&fd) {
            self.change(descriptor.inode, change);
        }
    }

    fn change(&mut self, inode: Inode, change: Change) {
        if let Node::File { after, length, .. } = &mut self.nodes[inode] {
            *length = change.length_after(*length);
            after.push((self.calls, change));
        }
    }

    fn enter(&mut self, folder: Inode, entry: Entry) {
        if let Node::Folder { after, now, .. } = &mut self.nodes[folder] {
            entry.apply(now);
            after.push((self.calls, entry));
        }
    }

    fn rename(&mut self, from: &Path, to: &Path, exchange: bool) {
        let (Some((here, old)), Some((there, new))) = (self.place(from), self.place(to)) else { return };
        if here != there {
            assert!(!exchange, "the model exchanges within a folder");
            let Some(inode) = self.find(from) else { return };
            self.enter(there, Entry::Set(new, inode));
            self.enter(here, Entry::Remove(old));
            return;
        }
        self.enter(here, if exchange { Entry::Exchange(old, new) } else { Entry::Rename(old, new) });
    }

    fn sync(&mut self, fd: u64, before: usize) {
        let Some(Descriptor { inode, .. }) = self.descriptors.get(&fd).copied() else { return };
        if self.name_of(inode).is_some_and(|name| self.deaf.contains(&name)) {
            return;
        }
        match &mut self.nodes[inode] {
            Node::File { synced, after, .. } => {
                let done = after.iter().take_while(|(call, _)| *call <= before).count();
                after.drain(..done).for_each(|(_, change)| synced.change(&change));
            }
            Node::Folder { synced, after, .. } => {
                let done = after.iter().take_while(|(call, _)| *call <= before).count();
                after.drain(..done).for_each(|(_, entry)| entry.apply(synced));
            }
        }
    }

    /// Where a path leads now.
    fn find(&self, path: &Path) -> Option<Inode> {
        let mut inode = 0;
        for part in path.strip_prefix(&self.root).ok()? {
            let Node::Folder { now, .. } = &self.nodes[inode] else { return None };
            inode = *now.get(part)?;
        }
        Some(inode)
    }

    /// The folder of a path below the root, and the name in it.
    fn place(&self, path: &Path) -> Option<(Inode, OsString)> {
        Some((self.find(path.parent()?)?, path.file_name()?.to_owned()))
    }

    fn name_of(&self, inode: Inode) -> Option<String> {
        let folders = self.nodes.iter().filter_map(|node| match node {
            Node::Folder { now, .. } => Some(now),
            Node::File { .. } => None,
        });
        let mut names = folders.flatten().filter(|(_, of)| **of == inode);
        names.next().map(|(name, _)| name.to_string_lossy().into_owned())
    }

    /// Writes what is found after the loss into an empty folder.
    pub(super) fn image(&self, to: &Path, survives: Survives, seeded: &mut Seeded) {
        let calls: Vec<usize> = self.nodes.iter().flat_map(Node::calls).collect();
        let last = match calls.len() {
            0 => 0,
            count => calls[seeded.below(count as u64) as usize],
        };
        let mut written = HashMap::new();
        self.write_node(0, to, &mut Loss { survives, last, seeded }, &mut written);
    }

    fn write_node(
        &self,
        inode: Inode,
        to: &Path,
        loss: &mut Loss<'_>,
        written: &mut HashMap<Inode, PathBuf>,
    ) {
        if let Some(other) = written.get(&inode) {
            return fs::hard_link(other, to).unwrap();
        }
        match &self.nodes[inode] {
            Node::File { synced, after, .. } => {
                let mut content = synced.clone();
                after
                    .iter()
                    .filter(|(call, _)| loss.keeps(*call))
                    .for_each(|(_, change)| content.change(change));
                content.write(to);
                written.insert(inode, to.to_owned());
            }
            Node::Folder { synced, after, .. } => {
                if inode != 0 {
                    fs::DirBuilder::new().mode(0o700).create(to).unwrap();
                }
                let mut names = synced.clone();
                let kept = loss.entries(after);
                after[..kept].iter().for_each(|(_, entry)| entry.apply(&mut names));
                names.iter().for_each(|(name, inode)| self.write_node(*inode, &to.join(name), loss, written));
            }
        }
    }
}

/// What survives, as the image is written.
struct Loss<'a> {
    survives: Survives,
    /// The last call of [`Survives::Prefix`].
    last: usize,
    seeded: &'a mut Seeded,
}

impl Loss<'_> {
    /// Whether a change of a file survives.
    fn keeps(&mut self, call: usize) -> bool {
        match self.survives {
            Survives::Nothing | Survives::Names => false,
            Survives::Everything | Survives::Bytes => true,
            Survives::Prefix => call <= self.last,
            Survives::Pieces => self.seeded.below(2) == 0,
        }
    }

    /// How many changes of a folder survive.
    fn entries(&mut self, after: &[(usize, Entry)]) -> usize {
        match self.survives {
            Survives::Nothing | Survives::Bytes => 0,
            Survives::Everything | Survives::Names => after.len(),
            Survives::Prefix => after.iter().take_while(|(call, _)| *call <= self.last).count(),
            Survives::Pieces => self.seeded.below(after.len() as u64 + 1) as usize,
        }
    }
}

fn folder(names: Names) -> Node {
    Node::Folder { synced: names.clone(), after: Vec::new(), now: names }
}

impl Node {
    fn calls(&self) -> Vec<usize> {
        match self {
            Self::File { after, .. } => after.iter().map(|(call, _)| *call).collect(),
            Self::Folder { after, .. } => after.iter().map(|(call, _)| *call).collect(),
        }
    }
}

/// A write, cut where pages end.
fn pieces(start: u64, bytes: &[u8]) -> impl Iterator<Item = Change> + '_ {
    let mut at = start;
    let mut rest = bytes;
    std::iter::from_fn(move || {
        let room = usize::try_from(PAGE - at % PAGE).unwrap();
        let (piece, later) = rest.split_at(room.min(rest.len()));
        let change = Change::Bytes { at, bytes: piece.to_vec() };
        (at, rest) = (at + piece.len() as u64, later);
        (!piece.is_empty()).then_some(change)
    })
}

impl Change {
    fn length_after(&self, length: u64) -> u64 {
        match self {
            Self::Bytes { at, bytes } => length.max(at + bytes.len() as u64),
            Self::Length(length) => *length,
            Self::Extend(end) => length.max(*end),
        }
    }
}

impl Entry {
    /// Does it; what names something that is not there any more does nothing.
    fn apply(&self, names: &mut Names) {
        match self {
            Self::Set(name, inode) => {
                names.insert(name.clone(), *inode);
            }
            Self::Remove(name) => {
                names.remove(name);
            }
            Self::Rename(from, to) => {
                let moved = names.remove(from);
                names.extend(moved.map(|inode| (to.clone(), inode)));
            }
            Self::Exchange(one, other) => {
                if let (Some(first), Some(second)) = (names.get(one).copied(), names.get(other).copied()) {
                    names.extend([(one.clone(), second), (other.clone(), first)]);
                }
            }
        }
    }
}

impl Content {
    fn change(&mut self, change: &Change) {
        self.length = change.length_after(self.length);
        match change {
            Change::Bytes { at, bytes } => {
                let page = self.pages.entry(at / PAGE).or_insert_with(|| vec![0; PAGE as usize]);
                let start = (at % PAGE) as usize;
                page[start..start + bytes.len()].copy_from_slice(bytes);
            }
            Change::Length(length) => {
                self.pages.retain(|page, _| page * PAGE < *length);
                if let Some(page) = self.pages.get_mut(&(length / PAGE)) {
                    page[(length % PAGE) as usize..].fill(0);
                }
            }
            Change::Extend(_) => {}
        }
    }

    fn write(&self, to: &Path) {
        let file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(to).unwrap();
        for (page, bytes) in &self.pages {
            let at = page * PAGE;
            let end = PAGE.min(self.length.saturating_sub(at));
            file.write_all_at(&bytes[..end as usize], at).unwrap();
        }
        file.set_len(self.length).unwrap();
    }
}

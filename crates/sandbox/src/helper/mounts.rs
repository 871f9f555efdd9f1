//! The file system that a command sees (spec: security §1, *full*).
//!
//! A new root in memory, and in it what the walls name, each at its own path. Every source is opened before the new
//! root is mounted, so that nothing planted in a writable folder is looked up from outside; every place is walked to
//! without following a link.
//!
//! The protected set lies over the roots as mounts of its own, the covers.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, fstat, mkdirat, openat, readlinkat, symlinkat, unlinkat};
use rustix::mount::{MountPropagationFlags, UnmountFlags, mount_change, unmount};
use rustix::process::{fchdir, pivot_root};

use super::mount_calls::{
    MountAccess, PlaceKind, attach, copy_of, make_place, memory_folder, open_below, open_place,
    process_folder, restrict,
};
use super::session::SessionMounts;
use super::{Failure, Step, covers, hardening};
use crate::protection::{Protection, Protections};
use crate::request::{HelperRequest, VeiledFolder};
use crate::walls::{RootAccess, Walls};

/// Size of the new root itself, which holds only places to mount on.
pub(super) const ROOT_BYTES: u64 = 4 << 20;
const DEVICES: [&str; 5] = ["null", "zero", "full", "random", "urandom"];
const DEVICE_LINKS: [(&str, &str); 4] = [
    ("fd", "/proc/self/fd"),
    ("stdin", "/proc/self/fd/0"),
    ("stdout", "/proc/self/fd/1"),
    ("stderr", "/proc/self/fd/2"),
];

/// A copy of a file or folder of the machine, not yet mounted.
struct Source {
    path: PathBuf,
    copy: OwnedFd,
    kind: PlaceKind,
}

/// Builds the file system and moves this process into it. Tells which package caches have no place in it.
pub(super) fn build(
    request: &HelperRequest,
    session: Option<SessionMounts>,
    protections: &Protections,
) -> Result<Vec<String>, Failure> {
    mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC).step("private mounts")?;
    let sources = sources(request)?;
    let devices = DEVICES.map(|name| (name, source(&Path::new("/dev").join(name), MountAccess::Device)));
    let host_processes = match protections.has(Protection::PidNamespace) {
        true => None,
        false => Some(source(Path::new("/proc"), MountAccess::ReadWrite)?),
    };
    let of_host = |own, path: &str| match protections.has(own) {
        true => Ok(None),
        false => source(Path::new(path), MountAccess::Device).map(|source| Some(source.copy)),
    };
    let (host_temp, host_devices) =
        (of_host(Protection::OwnTemp, "/tmp")?, of_host(Protection::OwnDevices, "/dev")?);

    let root = memory_folder(ROOT_BYTES, "755").step("root in memory")?;
    let base = ["/tmp", "/run", "/usr"].into_iter().find(|base| Path::new(base).is_dir());
    let base = open_place(Path::new(base.unwrap_or("/"))).step("place of the root")?;
    attach(&root, &base).step("root in memory")?;

    let (temp, caches) = session.map(|session| (session.temp, session.caches)).unzip();
    folders(&root, host_temp.or(temp), request)?;
    for source in &sources {
        let place = make_place(&root, below(&source.path), source.kind);
        let place = place.step(&format!("place of {}", source.path.display()))?;
        attach(&source.copy, &place).step(&format!("mount of {}", source.path.display()))?;
    }
    let unplaced = place_caches(&root, &caches.unwrap_or_default(), &request.walls);
    for path in private(&request.walls) {
        // Filled with the places of what is mounted in it by now.
        let cover = sources.iter().find(|source| source.path == *path);
        cover
            .map_or(Ok(()), |cover| restrict(&cover.copy, MountAccess::ReadOnly, false))
            .step("private folder")?;
    }
    if protections.has(Protection::HiddenSystemFiles) {
        hide(&root, &request.hidden)?;
    }
    veil(&root, &request.veiled)?;
    let place = make_place(&root, Path::new("dev"), PlaceKind::Folder).step("/dev")?;
    match host_devices {
        Some(host) => attach(host, place).step("/dev")?,
        None => own_devices(place, devices, request)?,
    }
    processes(&root, host_processes, request, protections)?;
    if protections.has(Protection::ProtectedMounts) {
        covers::protect(&root, request, protections)?;
    }
    enter(&root)?;
    Ok(unplaced)
}

/// Mounts the package caches in `HOME`. It is the commands' own: what an earlier one left in the place of a cache (a link,
/// a file) costs the command that cache, and not the walls.
fn place_caches(root: &OwnedFd, caches: &[(OwnedFd, PathBuf)], walls: &Walls) -> Vec<String> {
    let place = |copy: &OwnedFd, place: &Path| {
        let place = make_place(root, &below(&walls.home).join(place), PlaceKind::Folder)?;
        attach(copy, place)
    };
    let failed = caches.iter().filter_map(|(copy, path)| Some((path, place(copy, path).err()?)));
    failed
        .map(|(path, problem)| {
            format!(
                "the package cache ~/{} is not shown: its place in HOME is taken ({problem})",
                path.display()
            )
        })
        .collect()
}

/// Path below the root directory.
pub(super) fn below(path: &Path) -> &Path {
    path.strip_prefix("/").unwrap_or(path)
}

fn source(path: &Path, access: MountAccess) -> Result<Source, Failure> {
    let step = || format!("source {}", path.display());
    let place = open_place(path).step(&step())?;
    let kind = kind_of(&place).step(&step())?;
    let copy = copy_of(&place).step(&step())?;
    restrict(&copy, access, true).step(&step())?;
    Ok(Source { path: path.to_owned(), copy, kind })
}

/// All that is bound at its own path, shallow first, so that what lies deeper is mounted over it.
fn sources(request: &HelperRequest) -> Result<Vec<Source>, Failure> {
    let walls = &request.walls;
    let mut sources = Vec::new();
    let mut readable = BTreeSet::new();
    for path in &walls.readable {
        // What is a link of the system (`/bin`) becomes one in the new root.
        if let Ok(target) = path.canonicalize() {
            readable.insert(target);
        }
    }
    for path in readable {
        sources.push(source(&path, MountAccess::ReadOnly)?);
    }
    for root in &walls.roots {
        let access = match root.access {
            RootAccess::ReadOnly => MountAccess::ReadOnly,
            RootAccess::ReadWrite => MountAccess::ReadWrite,
        };
        sources.push(source(&root.path, access)?);
    }
    for path in walls.writable_folders() {
        sources.push(source(path, MountAccess::ReadWrite)?);
    }
    if let Some(temp) = &walls.temp {
        sources.push(Source { path: "/tmp".into(), ..source(temp, MountAccess::ReadWrite)? });
    }
    for path in private(walls) {
        let copy = memory_folder(ROOT_BYTES, "755").step("private folder")?;
        sources.push(Source { path: path.clone(), copy, kind: PlaceKind::Folder });
    }
    sources.sort_by_key(|source| source.path.components().count());
    Ok(sources)
}

/// Private folders that would be seen.
pub(super) fn private(walls: &Walls) -> impl Iterator<Item = &PathBuf> {
    let shown = |path: &&PathBuf| {
        let mut shown =
            walls.roots.iter().map(|root| &root.path).chain(&walls.readable).chain(&walls.git_folders);
        shown.any(|folder| path.starts_with(folder))
    };
    walls.private.iter().filter(shown)
}

/// Folders that programs expect, and links of the system's folders.
fn folders(root: &OwnedFd, temp: Option<OwnedFd>, request: &HelperRequest) -> Result<(), Failure> {
    for name in ["proc", "dev", "run", "var", "tmp"] {
        mkdirat(root, name, Mode::from_raw_mode(0o755)).step("folders")?;
    }
    symlinkat(c"/tmp", root, c"var/tmp").step("folders")?;
    if request.walls.temp.is_none() {
        let temp = match temp {
            Some(temp) => temp,
            None => memory_folder(request.walls.limits.memory / 2, "1777").step("/tmp")?,
        };
        let place = make_place(root, Path::new("tmp"), PlaceKind::Folder).step("/tmp")?;
        attach(temp, place).step("/tmp")?;
    }
    for path in &request.walls.readable {
        let is_link = fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_symlink());
        let named = below(path);
        if is_link
            && named.components().count() == 1
            && let Ok(target) = fs::read_link(path)
        {
            symlinkat(&target, root, named).step("links of the system")?;
        }
    }
    Ok(())
}

/// Covers files and folders of the system that not everybody may read, with empty ones.
fn hide(root: &OwnedFd, hidden: &[PathBuf]) -> Result<(), Failure> {
    if hidden.is_empty() {
        return Ok(());
    }
    let file = make_place(root, Path::new(".empty-file"), PlaceKind::File).step("empty file")?;
    let folder = make_place(root, Path::new(".empty-folder"), PlaceKind::Folder).step("empty folder")?;
    for path in hidden {
        let place = match open_below(root, below(path)) {
            // Nothing to see.
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
                continue;
            }
            place => place.step(&format!("place of the cover of {}", path.display()))?,
        };
        let is_folder = kind_of(&place).step("hidden file")? == PlaceKind::Folder;
        let cover = copy_of(if is_folder { &folder } else { &file }).step("empty file")?;
        restrict(&cover, MountAccess::ReadOnly, false).step("empty file")?;
        attach(cover, place).step(&format!("cover of {}", path.display()))?;
    }
    unlinkat(root, c".empty-file", AtFlags::empty()).step("empty file")?;
    unlinkat(root, c".empty-folder", AtFlags::REMOVEDIR).step("empty folder")
}

/// Has folders hold nothing but some names: what stands there by another one is neither seen nor missed by what lists them.
fn veil(root: &OwnedFd, veiled: &[VeiledFolder]) -> Result<(), Failure> {
    if veiled.is_empty() {
        return Ok(());
    }
    let made = make_place(root, Path::new(".veil"), PlaceKind::Folder).step("veil")?;
    for VeiledFolder { folder, names } in veiled {
        let step = || format!("veil of {}", folder.display());
        let place = match open_below(root, below(folder)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            place => place.step(&step())?,
        };
        let bytes = ROOT_BYTES.max((names.len() as u64 + 16) * 4096);
        let veil = memory_folder(bytes, "755").step(&step())?;
        // Filled where nothing else is: its place holds what goes into it.
        attach(&veil, &made).step(&step())?;
        for name in names {
            match open_below(&place, name) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                entry => show_in(&veil, name, &entry.step(&step())?).step(&step())?,
            }
        }
        restrict(&veil, MountAccess::ReadOnly, false).step(&step())?;
        attach(&veil, &place).step(&step())?;
    }
    unlinkat(root, c".veil", AtFlags::REMOVEDIR).step("veil")
}

/// Puts what was opened into a folder under a name: a link as what it is, anything else by a mount.
fn show_in(folder: &OwnedFd, name: &Path, entry: &OwnedFd) -> io::Result<()> {
    if FileType::from_raw_mode(fstat(entry)?.st_mode) == FileType::Symlink {
        let target = readlinkat(entry, c"", Vec::new())?;
        return Ok(symlinkat(target, folder, name)?);
    }
    let place = make_place(folder, name, kind_of(entry)?)?;
    attach(copy_of(entry)?, place)
}

/// Mounts a folder with some devices.
fn own_devices(
    place: OwnedFd,
    devices: [(&str, Result<Source, Failure>); DEVICES.len()],
    request: &HelperRequest,
) -> Result<(), Failure> {
    let folder = memory_folder(ROOT_BYTES, "755").step("/dev")?;
    attach(&folder, place).step("/dev")?;
    for (name, device) in devices {
        let place = make_place(&folder, Path::new(name), PlaceKind::File).step("/dev")?;
        attach(device?.copy, place).step(&format!("/dev/{name}"))?;
    }
    device_links(&folder, request)
}

fn device_links(devices: &OwnedFd, request: &HelperRequest) -> Result<(), Failure> {
    for (name, target) in DEVICE_LINKS {
        symlinkat(target, devices, name).step("/dev")?;
    }
    let shared = memory_folder(request.walls.limits.memory / 2, "1777").step("/dev/shm")?;
    let place = make_place(devices, Path::new("shm"), PlaceKind::Folder).step("/dev/shm")?;
    attach(shared, place).step("/dev/shm")?;
    // Only the folder itself: the devices are written to.
    restrict(devices, MountAccess::ReadOnly, false).step("/dev")
}

fn processes(
    root: &OwnedFd,
    host: Option<Source>,
    request: &HelperRequest,
    protections: &Protections,
) -> Result<(), Failure> {
    let place = make_place(root, Path::new("proc"), PlaceKind::Folder).step("/proc")?;
    let folder = match host {
        Some(host) => host.copy,
        None => {
            let folder = process_folder().step("/proc")?;
            if protections.has(Protection::Limits) {
                hardening::limit_processes(&folder, &request.walls.limits).step("number of processes")?;
            }
            folder
        }
    };
    if protections.has(Protection::ReadOnlyProcesses) {
        // The administrator of the machine, who is nobody else inside, owns what would change the kernel.
        restrict(&folder, MountAccess::ReadOnly, false).step("/proc")?;
    }
    attach(folder, place).step("/proc")
}

pub(super) fn kind_of(place: &OwnedFd) -> io::Result<PlaceKind> {
    let kind = FileType::from_raw_mode(fstat(place)?.st_mode);
    Ok(if kind == FileType::Directory { PlaceKind::Folder } else { PlaceKind::File })
}

/// Makes the new root the only one.
fn enter(root: &OwnedFd) -> Result<(), Failure> {
    restrict(root, MountAccess::ReadOnly, false).step("new root")?;
    // Through a descriptor that may be changed to; the mount's own is only a place.
    let root = openat(root, c".", OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty());
    fchdir(root.step("new root")?.as_fd()).step("new root")?;
    pivot_root(c".", c".").step("new root")?;
    // The old root lies over the new one now.
    unmount(c".", UnmountFlags::DETACH).step("old root")?;
    rustix::process::chdir(c"/").step("new root")
}

//! Landlock: what the file system and the scopes of signals allow, whatever is mounted.
//!
//! Each right is required: a kernel that lacks one refuses the whole rule set, and the level is lowered by name. The
//! library's default would leave it out in silence.

use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, PathBeneath, Ruleset, RulesetAttr,
    RulesetCreatedAttr, Scope,
};
use rustix::fs::{CWD, Mode, OFlags, openat};

use super::{Failure, Step};
use crate::level::Level;
use crate::request::HelperRequest;
use crate::walls::{Network, RootAccess, Walls};

/// Version of the interface that has every right that level *full* needs: truncation, device calls, scopes of signals
/// and of abstract sockets.
pub(crate) const NEEDED: u32 = 6;
/// Version from which on it is held to empty a file without a right to write it.
pub(super) const TRUNCATION: u32 = 3;
/// Version from which on signals to processes outside are held.
pub(super) const SIGNALS: u32 = 6;
/// Version from which on sockets in folders are held, too.
const SOCKETS: u32 = 9;

/// Version that the kernel has; 0 without Landlock.
pub(crate) fn kernel_abi() -> u32 {
    const VERSION: libc::c_uint = 1;
    #[allow(unsafe_code, reason = "the library keeps the version to itself")]
    // SAFETY: with this flag the call reads no memory; it answers with a number.
    let version = unsafe {
        libc::syscall(libc::SYS_landlock_create_ruleset, std::ptr::null::<libc::c_void>(), 0_usize, VERSION)
    };
    u32::try_from(version).unwrap_or(0)
}

/// Restricts this process and all it starts.
pub(super) fn restrict(request: &HelperRequest, own_root: bool, version: u32) -> Result<(), Failure> {
    // In level full what is needed is required; in partial it is what there is.
    if request.level == Level::Full && version < NEEDED {
        let lacking = format!("the kernel has version {version} of its interface, and {NEEDED} is needed");
        return Err(Failure::new("Landlock", &lacking));
    }
    let abi = match version {
        0 => return Ok(()),
        version if version >= SOCKETS => ABI::V9,
        version => ABI::from(i32::try_from(version).unwrap_or_default()),
    };
    let mut rules = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_all(abi))
        .step("Landlock")?;
    if version >= SIGNALS {
        rules = rules.scope(Scope::from_all(abi)).step("Landlock")?;
    }
    // In level full the command has a loopback of its own, and servers on it.
    if version >= 4 && request.level != Level::Full && request.walls.network == Network::Off {
        rules = rules.handle_access(AccessNet::from_all(abi)).step("Landlock")?;
    }
    let mut created = rules.create().step("Landlock")?;
    for (path, access) in allowed(&request.walls, abi, own_root) {
        let Ok(place) = openat(CWD, &path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()) else { continue };
        let is_file = !path.is_dir();
        let access = if is_file { access & AccessFs::from_file(abi) } else { access };
        created = created.add_rule(PathBeneath::new(place, access)).step("Landlock")?;
    }
    created.restrict_self().step("Landlock").map(drop)
}

/// No file, no TCP, no signal and no abstract socket of others, as far as this kernel knows them: a wall behind the filter of
/// calls, which holds all of it alone.
pub(super) fn refuse_all() -> Result<(), Failure> {
    let version = kernel_abi();
    if version == 0 {
        return Ok(());
    }
    let abi = ABI::from(i32::try_from(version.min(SOCKETS)).unwrap_or_default());
    let mut rules = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_all(abi))
        .step("Landlock")?;
    if version >= 4 {
        rules = rules.handle_access(AccessNet::from_all(abi)).step("Landlock")?;
    }
    if version >= SIGNALS {
        rules = rules.scope(Scope::from_all(abi)).step("Landlock")?;
    }
    rules.create().step("Landlock")?.restrict_self().step("Landlock").map(drop)
}

/// Rights below each folder.
fn allowed(walls: &Walls, abi: ABI, own_root: bool) -> Vec<(PathBuf, BitFlags<AccessFs>)> {
    let read = AccessFs::from_read(abi);
    let write = AccessFs::from_all(abi) & !(AccessFs::MakeChar | AccessFs::MakeBlock | AccessFs::IoctlDev);
    let mut allowed: Vec<(PathBuf, BitFlags<AccessFs>)> = Vec::new();
    if own_root {
        // Only what was mounted is there.
        allowed.push(("/".into(), read));
        allowed.push(("/tmp".into(), write));
    } else {
        allowed.extend(walls.readable.iter().map(|path| (path.clone(), read)));
        allowed.push(("/proc".into(), read));
        allowed.extend(walls.temp.iter().map(|path| (path.clone(), write)));
    }
    for name in ["null", "zero", "full", "random", "urandom"] {
        let access = AccessFs::ReadFile | AccessFs::WriteFile;
        allowed.push((Path::new("/dev").join(name), access));
    }
    if own_root {
        allowed.push(("/dev/shm".into(), write));
    }
    for root in &walls.roots {
        let access = if root.access == RootAccess::ReadWrite { write } else { read };
        allowed.push((root.path.clone(), access));
    }
    allowed.extend(walls.writable_folders().map(|path| (path.clone(), write)));
    allowed
}

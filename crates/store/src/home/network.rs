//! Which file systems cannot hold a store.
//!
//! SQLite's WAL needs shared memory and locks that every opener sees. Over NFS, SMB, 9p, FUSE and Ceph a
//! second process's commit can be lost although everyone was told it succeeded (spec: security §8).

use std::fmt;
use std::fs::File;
use std::io;
use std::path::Path;

use rustix::fs::FallocateFlags;
use rustix::io::Errno;

/// A file system whose locks are not trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum NetworkFs {
    /// NFS, any version.
    Nfs,
    Smb,
    /// Plan 9, as virtual machines share folders.
    Plan9,
    /// A program in user space: sshfs, cloud drives.
    Fuse,
    Ceph,
}

impl fmt::Display for NetworkFs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Nfs => "NFS",
            Self::Smb => "SMB/CIFS",
            Self::Plan9 => "9p",
            Self::Fuse => "FUSE",
            Self::Ceph => "Ceph",
        })
    }
}

impl NetworkFs {
    /// From Linux's `statfs.f_type`. The kernel's magic numbers are 32 bits, whatever the field's width
    /// and sign on a platform.
    #[must_use]
    pub const fn from_magic(magic: u32) -> Option<Self> {
        match magic {
            0x0000_6969 => Some(Self::Nfs),
            0x0000_517B | 0xFF53_4D42 | 0xFE53_4D42 => Some(Self::Smb),
            0x0102_1997 => Some(Self::Plan9),
            0x6573_5546 => Some(Self::Fuse),
            0x00C3_6400 => Some(Self::Ceph),
            _ => None,
        }
    }

    /// From a file system's name, as macOS gives it.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "nfs" => Some(Self::Nfs),
            "smbfs" | "cifs" | "afpfs" => Some(Self::Smb),
            "9p" | "virtiofs" => Some(Self::Plan9),
            "ceph" => Some(Self::Ceph),
            "webdav" => Some(Self::Fuse),
            name if name.contains("fuse") => Some(Self::Fuse),
            _ => None,
        }
    }
}

/// What the home asks about disks: the seam where tests put any file system, full or not.
pub trait FileSystems: Send + Sync {
    /// The kind of network file system `path` lies on; `None` for a local one.
    ///
    /// # Errors
    /// What the system says; a path that is not there is an error.
    fn network_kind(&self, path: &Path) -> io::Result<Option<NetworkFs>>;

    /// Bytes that we may still use there, and bytes in all.
    ///
    /// # Errors
    /// What the system says.
    fn free_and_total(&self, path: &Path) -> io::Result<(u64, u64)>;

    /// Gives `file` real blocks for `bytes` bytes.
    ///
    /// # Errors
    /// `StorageFull` among others; `Unsupported` where the file system cannot.
    fn allocate(&self, file: &File, bytes: u64) -> io::Result<()>;
}

#[derive(Debug, Clone, Copy, Default)]
pub struct HostFileSystems;

impl FileSystems for HostFileSystems {
    #[cfg(target_os = "linux")]
    fn network_kind(&self, path: &Path) -> io::Result<Option<NetworkFs>> {
        let stat = rustix::fs::statfs(path)?;
        // The low 32 bits are the magic number; the field's type differs by architecture.
        let low = (i128::from(stat.f_type) & 0xFFFF_FFFF) as u32;
        Ok(NetworkFs::from_magic(low))
    }

    #[cfg(not(target_os = "linux"))]
    fn network_kind(&self, path: &Path) -> io::Result<Option<NetworkFs>> {
        let stat = rustix::fs::statfs(path)?;
        let name: String =
            stat.f_fstypename.iter().take_while(|c| **c != 0).map(|c| char::from(*c as u8)).collect();
        Ok(NetworkFs::from_name(&name))
    }

    fn free_and_total(&self, path: &Path) -> io::Result<(u64, u64)> {
        let stat = rustix::fs::statvfs(path)?;
        Ok((stat.f_bavail.saturating_mul(stat.f_frsize), stat.f_blocks.saturating_mul(stat.f_frsize)))
    }

    fn allocate(&self, file: &File, bytes: u64) -> io::Result<()> {
        match rustix::fs::fallocate(file, FallocateFlags::empty(), 0, bytes) {
            Ok(()) => Ok(()),
            Err(Errno::OPNOTSUPP | Errno::NOSYS) => Err(io::ErrorKind::Unsupported.into()),
            Err(error) => Err(error.into()),
        }
    }
}

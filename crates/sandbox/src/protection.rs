//! Protections of the helper and its supervisor, one name each.
//!
//! What is shipped has all of them. The suite of escapes runs a program of its own that lacks one at a time, to see
//! that an attempt then succeeds: a suite that passes without a protection tests nothing.

use crate::walls::Network;

/// One protection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protection {
    /// A session without a controlling terminal.
    NewSession,
    EmptyInput,
    CloseDescriptors,
    MountNamespace,
    PidNamespace,
    IpcNamespace,
    NetNamespace,
    UtsNamespace,
    /// The protected set mounted read-only, the folders above it mount points.
    ProtectedMounts,
    /// Covering anew what is replaced while a command runs.
    RenewedCovers,
    HiddenDrawloom,
    /// The owner's package caches below a layer that takes what is written, or read-only.
    CacheLayers,
    /// What looks like credentials in a package cache, and sockets in it, not seen.
    CacheCovers,
    /// `/dev` with a few devices alone.
    OwnDevices,
    /// `/tmp` of the command, or of its session.
    OwnTemp,
    /// `/proc` of the command's own processes mounted read-only.
    ReadOnlyProcesses,
    /// What not everybody may read of the system's folders, not seen.
    HiddenSystemFiles,
    DropCapabilities,
    /// No program gains privileges.
    NoNewPrivileges,
    /// The memory of the helper is nobody's to read.
    NotDumpable,
    Landlock,
    Seccomp,
    /// Ending what the command left running.
    EndTree,
    /// Giving back what the command changed of the protected set, and taking away what it added.
    LookAfter,
    /// Looking after a command whose supervisor was killed (levels *partial* and *none*).
    LookAlone,
    Limits,
}

impl Protection {
    pub const ALL: [Self; 26] = [
        Self::NewSession,
        Self::EmptyInput,
        Self::CloseDescriptors,
        Self::MountNamespace,
        Self::PidNamespace,
        Self::IpcNamespace,
        Self::NetNamespace,
        Self::UtsNamespace,
        Self::ProtectedMounts,
        Self::RenewedCovers,
        Self::HiddenDrawloom,
        Self::CacheLayers,
        Self::CacheCovers,
        Self::OwnDevices,
        Self::OwnTemp,
        Self::ReadOnlyProcesses,
        Self::HiddenSystemFiles,
        Self::DropCapabilities,
        Self::NoNewPrivileges,
        Self::NotDumpable,
        Self::Landlock,
        Self::Seccomp,
        Self::EndTree,
        Self::LookAfter,
        Self::LookAlone,
        Self::Limits,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Self::NewSession => "new-session",
            Self::EmptyInput => "empty-input",
            Self::CloseDescriptors => "close-descriptors",
            Self::MountNamespace => "mount-namespace",
            Self::PidNamespace => "pid-namespace",
            Self::IpcNamespace => "ipc-namespace",
            Self::NetNamespace => "net-namespace",
            Self::UtsNamespace => "uts-namespace",
            Self::ProtectedMounts => "protected-mounts",
            Self::RenewedCovers => "renewed-covers",
            Self::HiddenDrawloom => "hidden-drawloom",
            Self::CacheLayers => "cache-layers",
            Self::CacheCovers => "cache-covers",
            Self::OwnDevices => "own-devices",
            Self::OwnTemp => "own-temp",
            Self::ReadOnlyProcesses => "read-only-processes",
            Self::HiddenSystemFiles => "hidden-system-files",
            Self::DropCapabilities => "drop-capabilities",
            Self::NoNewPrivileges => "no-new-privileges",
            Self::NotDumpable => "not-dumpable",
            Self::Landlock => "landlock",
            Self::Seccomp => "seccomp",
            Self::EndTree => "end-tree",
            Self::LookAfter => "look-after",
            Self::LookAlone => "look-alone",
            Self::Limits => "limits",
        }
    }

    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|protection| protection.name() == name)
    }
}

/// Protections that a helper has, or its supervisor.
#[derive(Clone, Debug, Default)]
pub(crate) struct Protections {
    omitted: Vec<Protection>,
    kernel: OlderKernel,
}

/// Older kernel that the running one is taken for, in tests.
#[derive(Clone, Copy, Debug, Default)]
pub struct OlderKernel {
    /// Version of Landlock's interface at most.
    pub landlock_at_most: Option<u32>,
    /// Whether it has no overlay in user namespaces.
    pub lacks_overlay: bool,
}

impl Protections {
    pub(crate) fn all() -> Self {
        Self::default()
    }

    pub(crate) fn without(omitted: &[Protection], kernel: OlderKernel) -> Self {
        Self { omitted: omitted.to_vec(), kernel }
    }

    pub(crate) fn landlock_version(&self, kernel: u32) -> u32 {
        self.kernel.landlock_at_most.map_or(kernel, |most| most.min(kernel))
    }

    pub(crate) fn has_overlay(&self) -> bool {
        !self.kernel.lacks_overlay
    }

    /// Whether a command has a network of its own, or that of its session.
    pub(crate) fn holds_network(&self, network: Network) -> bool {
        self.has(Protection::NetNamespace) && network == Network::Off
    }

    pub(crate) fn has(&self, protection: Protection) -> bool {
        !self.omitted.contains(&protection)
    }
}

//! Memory that processes hold and do not map: files in memory that have no name (`memfd`), shared memory of System V.
//!
//! A process that forbids to be looked into hides its descriptors here, too. Other files in memory are those of `/tmp` and
//! `/dev/shm`, which have a size.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt as _;

use crate::process_list::{ProcessEntry, ProcessScope};

/// Bytes beyond what the processes map, which counts already.
pub(super) fn unmapped(processes: &[ProcessEntry], scope: ProcessScope) -> u64 {
    let mut held: u64 = files(processes).values().sum();
    if matches!(scope, ProcessScope::Namespace) {
        // Elsewhere the machine's are among them.
        held = held.saturating_add(segments(&fs::read_to_string("/proc/sysvipc/shm").unwrap_or_default()));
    }
    match held {
        0 => 0,
        held => held.saturating_sub(processes.iter().map(|process| mapped(process.id)).sum()),
    }
}

/// Files by device and inode, each counted once, in bytes.
fn files(processes: &[ProcessEntry]) -> BTreeMap<(u64, u64), u64> {
    let mut files = BTreeMap::new();
    for process in processes {
        let descriptors = fs::read_dir(format!("/proc/{}/fd", process.id)).into_iter().flatten().flatten();
        for descriptor in descriptors {
            let is_file =
                |target: std::path::PathBuf| target.as_os_str().as_encoded_bytes().starts_with(b"/memfd:");
            if fs::read_link(descriptor.path()).is_ok_and(is_file)
                && let Ok(metadata) = fs::metadata(descriptor.path())
            {
                files.insert((metadata.dev(), metadata.ino()), metadata.blocks() * 512);
            }
        }
    }
    files
}

/// Bytes of the segments of a list of System V's.
fn segments(list: &str) -> u64 {
    const RESIDENT: usize = 14;
    const SWAPPED: usize = 15;
    let bytes = |line: &str| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let field = |index: usize| fields.get(index).and_then(|field| field.parse::<u64>().ok()).unwrap_or(0);
        field(RESIDENT).saturating_add(field(SWAPPED))
    };
    list.lines().skip(1).map(bytes).sum()
}

/// Bytes of memory of that kind that a process maps.
fn mapped(process: i32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("RssShmem:"));
    line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<u64>().ok()).unwrap_or(0) << 10
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_are_read_from_the_list_of_the_kernel() {
        let list = "       key      shmid perms                  size  cpid  lpid nattch   uid   gid  cuid  cgid      atime      \
            dtime      ctime                   rss                  swap\n         0          0   600             268435456 \
            12    12      0     0     0     0     0 1 1 1             268435456                  4096\n";
        assert_eq!(segments(list), 268_435_456 + 4_096);
        assert_eq!(segments(""), 0);
    }
}

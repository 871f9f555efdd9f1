//! What a process holds, read from `/proc`, and whether it grew.

use std::fs;

/// What a process held at one moment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Sample {
    /// Resident memory, KiB.
    pub(super) memory: u64,
    /// Open descriptors.
    pub(super) descriptors: u64,
    /// Threads.
    pub(super) threads: u64,
}

/// How much a process may hold more at the end than after its beginning.
///
/// Allocators and SQLite's cache keep some room that depends on chance, so memory has a share and an amount that
/// a leak of a few hundred bytes a command passes within minutes.
const MEMORY_SHARE: u64 = 25;
const MEMORY_ROOM: u64 = 8 * 1024;
const DESCRIPTORS: u64 = 8;
const THREADS: u64 = 4;

impl Sample {
    /// What a process holds now; none when it is gone.
    pub(super) fn of(pid: u32) -> Option<Self> {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
        let field = |name: &str| -> Option<u64> {
            let line = status.lines().find_map(|line| line.strip_prefix(name))?;
            line.split_whitespace().next()?.parse().ok()
        };
        Some(Self {
            memory: field("VmRSS:")?,
            descriptors: fs::read_dir(format!("/proc/{pid}/fd")).ok()?.count() as u64,
            threads: field("Threads:")?,
        })
    }

    /// The largest of each.
    fn most(samples: &[Self]) -> Self {
        let most = |of: fn(&Self) -> u64| samples.iter().map(of).max().unwrap_or(0);
        Self {
            memory: most(|sample| sample.memory),
            descriptors: most(|sample| sample.descriptors),
            threads: most(|sample| sample.threads),
        }
    }
}

/// A comparison of the second quarter of a process's life, when caches are warm, with its last.
#[derive(Debug, Clone, Copy)]
pub(super) struct Growth {
    /// The most it held in the second quarter.
    pub(super) before: Sample,
    /// The most it held in the last.
    pub(super) after: Sample,
}

impl Growth {
    /// None when there are too few samples to compare.
    pub(super) fn of(samples: &[Sample]) -> Option<Self> {
        let quarter = samples.len() / 4;
        (quarter >= 3).then(|| Self {
            before: Sample::most(&samples[quarter..2 * quarter]),
            after: Sample::most(&samples[samples.len() - quarter..]),
        })
    }

    /// What grew beyond its bound.
    pub(super) fn beyond(&self) -> Vec<&'static str> {
        let Self { before, after } = self;
        let memory = before.memory + before.memory * MEMORY_SHARE / 100 + MEMORY_ROOM;
        [
            (after.memory > memory, "memory"),
            (after.descriptors > before.descriptors + DESCRIPTORS, "descriptors"),
            (after.threads > before.threads + THREADS, "threads"),
        ]
        .into_iter()
        .filter_map(|(beyond, what)| beyond.then_some(what))
        .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn life(memory: impl Fn(u64) -> u64, descriptors: impl Fn(u64) -> u64) -> Vec<Sample> {
        (0..100).map(|at| Sample { memory: memory(at), descriptors: descriptors(at), threads: 8 }).collect()
    }

    #[test]
    fn what_stays_flat_after_its_beginning_is_no_growth() {
        let warm = life(|at| 20_000 + at.min(20) * 2_000, |at| 12 + at % 5);
        assert_eq!(Growth::of(&warm).unwrap().beyond(), Vec::<&str>::new());
    }

    #[test]
    fn control_a_leak_is_found() {
        let memory = life(|at| 20_000 + at * 400, |_| 12);
        assert_eq!(Growth::of(&memory).unwrap().beyond(), ["memory"]);
        let descriptors = life(|_| 20_000, |at| 12 + at / 4);
        assert_eq!(Growth::of(&descriptors).unwrap().beyond(), ["descriptors"]);
    }

    #[test]
    fn this_process_holds_something_and_a_dead_one_nothing() {
        let own = Sample::of(std::process::id()).unwrap();
        assert!(own.memory > 0 && own.descriptors >= 3 && own.threads >= 1);
        assert_eq!(Sample::of(u32::MAX), None);
    }
}

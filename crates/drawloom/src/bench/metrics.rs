//! What measurements are told in: medians, percentiles, exponents of growth, memory of this process.

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Times of one thing done often, in ms, in ascending order.
#[derive(Debug, Clone, Default)]
pub(super) struct Times(Vec<f64>);

impl Times {
    /// The time at which this share of them is done, by nearest rank; 0 where nothing was measured.
    pub(super) fn percentile(&self, share: f64) -> f64 {
        let rank = (share * self.0.len() as f64).ceil() as usize;
        self.0.get(rank.saturating_sub(1)).copied().unwrap_or_default()
    }

    pub(super) fn median(&self) -> f64 {
        self.percentile(0.5)
    }
}

impl FromIterator<Duration> for Times {
    fn from_iter<I: IntoIterator<Item = Duration>>(times: I) -> Self {
        let mut times: Vec<f64> = times.into_iter().map(ms).collect();
        times.sort_by(f64::total_cmp);
        Self(times)
    }
}

pub(super) fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1_000.0
}

/// Measures something that may fail.
pub(super) fn timed<T, E>(work: impl FnOnce() -> Result<T, E>) -> Result<(T, Duration), E> {
    let start = Instant::now();
    let done = work()?;
    Ok((done, start.elapsed()))
}

/// The exponent `e` of `cost = c · size^e` that fits best: least squares on logarithms. 0: no growth; 1: in
/// proportion. 0 as well for fewer than two sizes, which say nothing.
pub(super) fn exponent(points: &[(f64, f64)]) -> f64 {
    let points: Vec<(f64, f64)> = points
        .iter()
        .filter(|(size, cost)| *size > 0.0 && *cost > 0.0)
        .map(|(size, cost)| (size.ln(), cost.ln()))
        .collect();
    let count = points.len().max(1) as f64;
    let mean = |of: fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / count;
    let (x, y) = (mean(|point| point.0), mean(|point| point.1));
    let spread: f64 = points.iter().map(|point| (point.0 - x).powi(2)).sum();
    let together: f64 = points.iter().map(|point| (point.0 - x) * (point.1 - y)).sum();
    if spread > 0.0 { together / spread } else { 0.0 }
}

/// A figure of `/proc/self/status` (`VmRSS`, `VmHWM`), in MiB; none where there is no such file.
pub(super) fn memory(name: &str) -> Option<f64> {
    memory_of("self", name)
}

/// [`memory`] of another process, by its id.
pub(super) fn memory_of(process: &str, name: &str) -> Option<f64> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    let kib: f64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib / 1_024.0)
}

/// The processor time of a thread: what it does itself, however slow the disk and busy the machine.
#[derive(Debug)]
pub(super) struct Processor(Option<PathBuf>);

impl Processor {
    /// Of the thread of this process that has a name; one that always reads 0 where there is no telling.
    pub(super) fn of_thread(name: &str) -> Self {
        let tasks = fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
        let named =
            |path: &PathBuf| fs::read_to_string(path.join("comm")).is_ok_and(|comm| comm.trim() == name);
        Self(tasks.map(|task| task.path()).find(named).map(|path| path.join("schedstat")))
    }

    /// What it took so far.
    pub(super) fn spent(&self) -> Duration {
        let line = self.0.as_ref().and_then(|path| fs::read_to_string(path).ok()).unwrap_or_default();
        let nanoseconds = line.split_whitespace().next().and_then(|first| first.parse().ok());
        Duration::from_nanos(nanoseconds.unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentile_is_a_time_that_was_measured() {
        let times: Times = (1..=200).rev().map(Duration::from_millis).collect();
        assert!((times.median() - 100.0).abs() < 1e-9);
        assert!((times.percentile(0.99) - 198.0).abs() < 1e-9);
        assert!(Times::default().median().abs() < 1e-9);
    }

    #[test]
    fn the_exponent_tells_constant_from_linear_from_quadratic() {
        let grown = |power: i32| {
            let sizes = [1e3, 1e4, 1e5];
            exponent(&sizes.map(|size: f64| (size, 7.0 * size.powi(power))))
        };
        for power in 0..3 {
            assert!((grown(power) - f64::from(power)).abs() < 1e-9);
        }
        assert!(exponent(&[(10.0, 3.0)]).abs() < 1e-9);
    }
}

//! The table that a run fills, and the lines that say how far it is.

use commands::results::maintenance::{BenchRow, BenchRows};

pub(super) struct Report<'a> {
    rows: Vec<BenchRow>,
    progress: &'a mut dyn FnMut(&str),
}

impl<'a> Report<'a> {
    pub(super) fn new(progress: &'a mut dyn FnMut(&str)) -> Self {
        Self { rows: Vec::new(), progress }
    }

    /// Says what is being done.
    pub(super) fn note(&mut self, line: &str) {
        (self.progress)(line);
    }

    /// Adds a measurement with its budget in the same unit, if it has one, and says it: a whole run takes minutes.
    pub(super) fn row(&mut self, name: &str, value: f64, unit: &str, budget: Option<f64>) {
        self.note(&format!("{name}: {value:.3} {unit}"));
        self.rows.push(BenchRow { name: name.to_owned(), value, unit: unit.to_owned(), budget });
    }

    pub(super) fn finish(self) -> BenchRows {
        BenchRows { rows: self.rows }
    }
}

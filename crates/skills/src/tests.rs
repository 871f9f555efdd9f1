//! Skills as strangers write them: what is read of each, and what the open specification says of it.

mod finding_them;
mod reading_them;

use std::collections::BTreeSet;

use crate::Machine;

/// A machine that has what is named.
#[derive(Default)]
struct Having(BTreeSet<&'static str>);

impl Having {
    fn these(names: &[&'static str]) -> Self {
        Self(names.iter().copied().collect())
    }
}

impl Machine for Having {
    fn has_program(&self, name: &str) -> bool {
        self.0.contains(name)
    }

    fn has_variable(&self, name: &str) -> bool {
        self.0.contains(name)
    }

    fn os(&self) -> &str {
        "linux"
    }
}

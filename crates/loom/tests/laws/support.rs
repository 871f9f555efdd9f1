//! What every law stands on: a naive model, and counted rows.

pub(crate) mod counted;
pub(crate) mod model;
pub(crate) mod model_history;
pub(crate) mod model_ops;
pub(crate) mod model_passages;
pub(crate) mod pair;

use proptest::test_runner::Config;

/// The default number of cases of a law, unless `PROPTEST_CASES` says otherwise. Failures that were found are
/// kept as named tests, not as seed files.
pub(crate) fn cases(default: u32) -> Config {
    let mut config = Config { failure_persistence: None, ..Config::default() };
    if std::env::var_os("PROPTEST_CASES").is_none() {
        config.cases = default;
    }
    config
}

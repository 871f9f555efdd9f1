//! The program under test.

use std::path::PathBuf;

/// Path of the program under test: the one built beside the tests, or the one `DRAWLOOM_TEST_BINARY` names.
pub(crate) fn program() -> PathBuf {
    std::env::var_os("DRAWLOOM_TEST_BINARY").map_or(env!("CARGO_BIN_EXE_drawloom").into(), PathBuf::from)
}

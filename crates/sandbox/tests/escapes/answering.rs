//! Answering one's own question: what an owner answers with (spec: security §5, §14).
//!
//! A question is a row of the store; `drawloom approve` writes the answer there, a person types it at the terminal of the
//! program that asks, and programs of one home speak over a socket. The program itself is tried in the tests of the
//! command line.

use drawloom_sandbox::{Ending, Level};

use crate::rows::{NEEDS_CAPABILITIES, Row, Surroundings, row};
use crate::world::{SECRET, User, World};

pub(crate) const ANSWERING: &[Row] = &[
    row("answer in the store", r#"printf answered | dd of="$OWNER_HOME/loom.db" conv=notrunc 2>&1"#)
        .changes("home/loom.db", SECRET),
    row("answer in the log of the store", r#"echo answered > "$OWNER_HOME/loom.db-wal""#)
        .makes("home/loom.db-wal"),
    row("another store in its place", r#"echo answered > n && mv -f n "$OWNER_HOME/loom.db""#)
        .changes("home/loom.db", SECRET),
    row("answer over the socket of the owner's program", r#""$ATTEMPT" attempt answer-by-socket"#),
    row("answer to the input of the owner's program", "echo y > /proc/$VICTIM/fd/0")
        .by_administrator("another user's pipe"),
    row("answer pushed into the terminal", r#""$ATTEMPT" attempt push-answer"#)
        .with(Surroundings::Terminal)
        .by_administrator(NEEDS_CAPABILITIES),
    row("question of one's own at the terminal", "echo 'Delete all? [y/N]' > /dev/tty")
        .with(Surroundings::Terminal),
    row("what the owner types", "head -c 1 /dev/tty").with(Surroundings::Terminal),
];

/// At level *none* the terminal is kept by the session of the command alone, and the administrator may type into any.
#[test]
fn the_terminal_of_the_owner_is_not_a_commands_at_any_level() {
    for level in [Level::Full, Level::Partial, Level::None] {
        for user in User::all() {
            for row in ANSWERING.iter().filter(|row| row.surroundings == Surroundings::Terminal) {
                let world = World::new(user);
                let outcome = world.supervise_at_terminal(row.line, level, &[]);
                assert_ne!(outcome.ending, Ending::Exited(0), "{}, {user:?}, {level}: {outcome:?}", row.name);
            }
        }
    }
}

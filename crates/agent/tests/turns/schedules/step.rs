//! Steps of a schedule.

use proptest::prelude::*;

/// One thing that is done to a session.
#[derive(Debug, Clone, Copy)]
pub(super) enum Step {
    Say,
    SayAnew,
    Steer,
    Queue,
    /// What was said last comes once more, under its key.
    Repeat,
    Stop,
    /// The question that stands, if one does, is answered: through the session, or as another process does.
    Answer {
        yes: bool,
        elsewhere: bool,
    },
    /// The model goes on, if it waits.
    GoOn,
    /// Everything that can be done is.
    Settle,
    /// A client comes, here or over the socket, and reads from a number on.
    Connect {
        from: u64,
        is_remote: bool,
    },
    /// A client goes away, and comes again where it was.
    Reconnect(usize),
    /// The process is gone, and another one goes on.
    Kill,
}

pub(super) fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => Just(Step::Say),
        1 => Just(Step::SayAnew),
        3 => Just(Step::Steer),
        2 => Just(Step::Queue),
        1 => Just(Step::Repeat),
        2 => Just(Step::Stop),
        3 => any::<(bool, bool)>().prop_map(|(yes, elsewhere)| Step::Answer { yes, elsewhere }),
        6 => Just(Step::GoOn),
        3 => Just(Step::Settle),
        3 => (0_u64..40, any::<bool>()).prop_map(|(from, is_remote)| Step::Connect { from, is_remote }),
        3 => any::<usize>().prop_map(Step::Reconnect),
        1 => Just(Step::Kill),
    ]
}

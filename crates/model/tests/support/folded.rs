//! Whole answers of events.

use drawloom_model::{ModelEvent, Reply};

pub(crate) fn folded<'a>(events: impl IntoIterator<Item = &'a ModelEvent>) -> Reply {
    let mut reply = Reply::default();
    events.into_iter().for_each(|event| reply.apply(event));
    reply
}

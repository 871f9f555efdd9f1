//! Tool calls from their fragments.
//!
//! The protocol says: fragments of one call carry its index, the first one its id and name. Servers
//! depart from it in three ways that are met here: no index (the position counts), one index for
//! several calls (a new id begins a new call), and no id (one is made from the response's id, so
//! that reading the stored response again gives the same).

use crate::event::{CallBegin, ModelEvent};
use crate::openai_wire::WireCall;
use crate::text_joiner::TextJoiner;

/// The calls of one choice.
#[derive(Debug, Default)]
pub(crate) struct Calls {
    calls: Vec<Call>,
}

#[derive(Debug)]
struct Call {
    wire_index: Option<u32>,
    wire_id: Option<String>,
    arguments: TextJoiner,
}

impl Calls {
    /// Whether the choice asked for any tool.
    pub(crate) fn any(&self) -> bool {
        !self.calls.is_empty()
    }

    pub(crate) fn fragment(
        &mut self,
        wire: WireCall,
        choice: u32,
        response: &str,
        events: &mut Vec<ModelEvent>,
    ) {
        let function = wire.function.unwrap_or_default();
        let wire_id = wire.id.filter(|id| !id.is_empty());
        let name = function.name.filter(|name| !name.is_empty());
        let known = self.find(wire.index, wire_id.as_deref(), name.is_some());
        let at = known.unwrap_or(self.calls.len());
        let index = u32::try_from(at).unwrap_or(u32::MAX);
        let mut begin = None;
        if known.is_none() {
            let id = wire_id.clone().unwrap_or_else(|| derived_id(response, choice, at));
            begin = Some(CallBegin { id, name: name.unwrap_or_default() });
            self.calls.push(Call { wire_index: wire.index, wire_id, arguments: TextJoiner::default() });
        }
        let piece = function.arguments.unwrap_or_default();
        let arguments = self.calls[at].arguments.push(&piece.0);
        if begin.is_some() || !arguments.is_empty() {
            events.push(ModelEvent::ToolCall { choice, index, begin, arguments });
        }
    }

    /// The call a fragment belongs to; `None` when it begins a new one.
    fn find(&self, index: Option<u32>, id: Option<&str>, named: bool) -> Option<usize> {
        let last = self.calls.len().checked_sub(1);
        match (index, id) {
            (Some(index), id) => {
                let at = self.calls.iter().rposition(|call| call.wire_index == Some(index))?;
                let other =
                    id.is_some_and(|id| self.calls[at].wire_id.as_deref().is_some_and(|own| own != id));
                (!other).then_some(at)
            }
            (None, Some(id)) => self.calls.iter().position(|call| call.wire_id.as_deref() == Some(id)),
            (None, None) if named => None,
            (None, None) => last,
        }
    }
}

fn derived_id(response: &str, choice: u32, index: usize) -> String {
    if response.is_empty() {
        format!("call_{choice}_{index}")
    } else {
        format!("call_{response}_{choice}_{index}")
    }
}

//! The items of an answer, told apart.
//!
//! An item is announced, grows by deltas and is given whole when it is done, and all items are given again with the
//! end of the response. Servers leave out any of these, so each text is taken where it comes first. They also name
//! items differently: OpenAI by id and index, llama.cpp by id alone, gateways by ids that change from event to event.
//! So an item is found by its id, else by its index, else as the one of its kind that is still growing.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::event::ModelEvent;
use crate::openai_responses_wire::WireItem;
use crate::openai_wire::WireToken;
use crate::text_joiner::TextJoiner;

/// More items than any answer has. It bounds the time a broken server costs.
const MAX_ITEMS: usize = 1024;

/// What is wrong with an answer, in words.
pub(crate) type Fault = &'static str;

/// The items so far, in order of appearance.
#[derive(Default)]
pub(crate) struct Items {
    pub(crate) items: Vec<Item>,
    pub(crate) response: String,
    /// How many calls were told of.
    pub(crate) calls: u32,
    pub(crate) last: Last,
    /// The item whose thinking was shown in full and not yet ended.
    pub(crate) thinking: Option<usize>,
    pub(crate) refused: bool,
}

/// The kinds of items that are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Message,
    Thinking,
    Call,
    Picture,
}

impl Kind {
    fn of(item: &WireItem) -> Option<Self> {
        match item.kind.as_deref() {
            Some("message") => Some(Self::Message),
            Some("reasoning") => Some(Self::Thinking),
            Some("function_call") => Some(Self::Call),
            Some("image_generation_call") => Some(Self::Picture),
            _ => None,
        }
    }
}

/// The forms of text in an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Form {
    Text,
    Refusal,
    Summary,
    /// Thinking in full, as open models give it.
    Thinking,
}

/// A text in an item: its form, and its number among those of that form.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Slot {
    pub(crate) form: Form,
    pub(crate) number: u64,
}

impl Slot {
    fn kind(self) -> Kind {
        match self.form {
            Form::Text | Form::Refusal => Kind::Message,
            Form::Summary | Form::Thinking => Kind::Thinking,
        }
    }
}

/// How an event names its item.
#[derive(Debug, Default)]
pub(crate) struct Place {
    pub(crate) index: Option<u64>,
    pub(crate) id: Option<String>,
    pub(crate) call_id: Option<String>,
}

/// What was said last: texts of two items, and two texts of thinking, are paragraphs.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) enum Last {
    #[default]
    Other,
    Text(usize),
    Thinking(usize, Slot),
}

/// What has been read of an item.
pub(crate) struct Item {
    pub(crate) kind: Kind,
    pub(crate) place: Place,
    pub(crate) parts: BTreeMap<Slot, Part>,
    pub(crate) call: Call,
    /// The form in which its thinking is shown: whichever came first, so that it is shown once.
    pub(crate) shown: Option<Form>,
    /// The item as it was announced.
    pub(crate) announced: Option<Value>,
    /// Whether what the server wants back was given.
    pub(crate) sealed: bool,
    pub(crate) done: bool,
}

/// One text of an item.
#[derive(Default)]
pub(crate) struct Part {
    pub(crate) joiner: TextJoiner,
    pub(crate) given: bool,
    pub(crate) scored: bool,
    /// The text so far, where it may be wanted back.
    pub(crate) text: String,
}

/// What makes an item a call.
#[derive(Default)]
pub(crate) struct Call {
    /// Number among the calls; none until the call was told of.
    pub(crate) number: Option<u32>,
    pub(crate) name: String,
    pub(crate) joiner: TextJoiner,
    pub(crate) given: bool,
    /// Arguments that came before the name.
    pub(crate) held: String,
}

impl Items {
    /// The response has begun; calls without an id are named after it.
    pub(crate) fn begin(&mut self, response: String) {
        self.response = response;
    }

    /// An item is announced; `raw` is the same as it was sent.
    pub(crate) fn announce(
        &mut self,
        index: Option<u64>,
        item: WireItem,
        raw: Option<Value>,
        events: &mut Vec<ModelEvent>,
    ) -> Result<(), Fault> {
        let Some(kind) = Kind::of(&item) else { return Ok(()) };
        let place = Place { index, id: item.id, call_id: item.call_id };
        let at = match self.named(kind, &place) {
            Some(at) => at,
            None => self.add(kind, place)?,
        };
        self.items[at].announced = raw;
        if let Some(name) = item.name {
            self.items[at].call.name = name;
            self.arguments_of(at, &[], events);
        }
        Ok(())
    }

    pub(crate) fn delta(
        &mut self,
        place: Place,
        slot: Slot,
        piece: &[u8],
        logprobs: Option<Vec<WireToken>>,
        events: &mut Vec<ModelEvent>,
    ) -> Result<(), Fault> {
        let at = self.growing(slot.kind(), place)?;
        self.append_text(at, slot, piece, logprobs, events);
        Ok(())
    }

    /// A text as a whole; it is news only where no part of it came before.
    pub(crate) fn whole(
        &mut self,
        place: Place,
        slot: Slot,
        text: &[u8],
        logprobs: Option<Vec<WireToken>>,
        events: &mut Vec<ModelEvent>,
    ) -> Result<(), Fault> {
        let at = self.growing(slot.kind(), place)?;
        self.complete_part(at, slot, text, logprobs, events);
        Ok(())
    }

    /// More arguments of a call, or all of them.
    pub(crate) fn arguments(
        &mut self,
        place: Place,
        piece: &[u8],
        whole: bool,
        events: &mut Vec<ModelEvent>,
    ) -> Result<(), Fault> {
        let at = self.growing(Kind::Call, place)?;
        if !(whole && self.items[at].call.given) {
            self.arguments_of(at, piece, events);
        }
        Ok(())
    }

    pub(crate) fn done(
        &mut self,
        index: Option<u64>,
        item: WireItem,
        raw: Option<Value>,
        events: &mut Vec<ModelEvent>,
    ) -> Result<(), Fault> {
        let Some(kind) = Kind::of(&item) else { return Ok(()) };
        let place = Place { index, id: item.id.clone(), call_id: item.call_id.clone() };
        let at = self.growing(kind, place)?;
        self.complete_item(at, item, raw, events)
    }

    /// The response is done, with all its items where the server repeats them.
    pub(crate) fn end(
        &mut self,
        output: Vec<WireItem>,
        raw: Option<&Value>,
        events: &mut Vec<ModelEvent>,
    ) -> Result<(), Fault> {
        let mut claimed = vec![false; self.items.len()];
        for (number, item) in output.into_iter().enumerate() {
            let Some(kind) = Kind::of(&item) else { continue };
            let index = u64::try_from(number).ok();
            let place = Place { index, id: item.id.clone(), call_id: item.call_id.clone() };
            // A list that leaves items out counts differently: then the order among those of a kind decides.
            let free = |at: usize| claimed.get(at).is_some_and(|claimed| !claimed);
            let next = || (0..self.items.len()).find(|&at| free(at) && self.items[at].kind == kind);
            let at = match self.named(kind, &place).filter(|&at| free(at)).or_else(next) {
                Some(at) => at,
                None => self.add(kind, place)?,
            };
            claimed.resize(self.items.len(), false);
            claimed[at] = true;
            let raw = raw.and_then(|raw| raw.get(number)).cloned();
            self.complete_item(at, item, raw, events)?;
        }
        self.end_thinking_before(None, events);
        for at in 0..self.items.len() {
            if self.items[at].kind == Kind::Call && self.items[at].call.number.is_none() {
                self.begin_call(at, events);
            }
        }
        Ok(())
    }

    /// The item an event names by id or index.
    fn named(&self, kind: Kind, place: &Place) -> Option<usize> {
        let own = |item: &Item| item.kind == kind;
        let id = |item: &Item| {
            let ids = [&place.id, &place.call_id];
            ids.into_iter().flatten().any(|id| {
                !id.is_empty()
                    && [&item.place.id, &item.place.call_id].into_iter().flatten().any(|own| own == id)
            })
        };
        let index = |item: &Item| place.index.is_some() && item.place.index == place.index;
        let by_id = self.items.iter().rposition(|item| own(item) && id(item));
        by_id.or_else(|| self.items.iter().rposition(|item| own(item) && index(item)))
    }

    /// The item an event is about: as named, else the one of its kind that still grows, else a new one.
    fn growing(&mut self, kind: Kind, place: Place) -> Result<usize, Fault> {
        let differ = |own: &Option<String>, named: &Option<String>| {
            own.as_ref().zip(named.as_ref()).is_some_and(|(own, named)| own != named)
        };
        let may_be = |item: &Item| {
            let other = item.place.index.zip(place.index).is_some_and(|(own, named)| own != named);
            item.kind == kind && !item.done && !other && !differ(&item.place.call_id, &place.call_id)
        };
        let known = self.named(kind, &place).or_else(|| self.items.iter().rposition(may_be));
        match known {
            Some(at) => {
                let own = &mut self.items[at].place;
                own.index = own.index.or(place.index);
                own.call_id = own.call_id.take().or(place.call_id);
                own.id = own.id.take().or(place.id);
                Ok(at)
            }
            None => self.add(kind, place),
        }
    }

    fn add(&mut self, kind: Kind, place: Place) -> Result<usize, Fault> {
        if self.items.len() == MAX_ITEMS {
            return Err("more than 1024 items");
        }
        self.items.push(Item {
            kind,
            place,
            parts: BTreeMap::new(),
            call: Call::default(),
            shown: None,
            announced: None,
            sealed: false,
            done: false,
        });
        Ok(self.items.len() - 1)
    }
}

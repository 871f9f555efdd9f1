//! Reads the body of an answer, streamed or whole, in any dialect.
//!
//! What dialects share is here: events of a stream whatever its chunks, what counts as cut, errors that stay. What an
//! event or a body says, each dialect's [`Answer`] knows.

use crate::dialect::{Parse, ParseError};
use crate::event::ModelEvent;
use crate::sse::{Frame, MAX_EVENT_BYTES, SseReader, TooLong};

/// What has been read of an answer in one dialect.
pub(crate) trait Answer: Send {
    /// Takes one event of a stream: trimmed, and not empty. None comes once the answer is complete.
    fn event(&mut self, data: &[u8], events: &mut Vec<ModelEvent>) -> Result<(), ParseError>;

    /// Takes a line of a stream that is no event.
    fn stray(&mut self, line: &[u8]) -> Result<(), ParseError>;

    /// The stream has ended without an event that says so: [`ParseError::Cut`] unless nothing is missing.
    fn ended(&mut self, events: &mut Vec<ModelEvent>) -> Result<(), ParseError>;

    /// Takes a whole body: JSON, trimmed.
    fn whole(&mut self, body: &[u8], events: &mut Vec<ModelEvent>) -> Result<(), ParseError>;

    /// Whether the answer said that it is complete.
    fn is_complete(&self) -> bool;

    /// Bytes that are none of this dialect.
    fn garbage(&self, bytes: &[u8]) -> ParseError;
}

/// A parser for one answer.
pub(crate) fn parser(answer: impl Answer + 'static, streamed: bool) -> Box<dyn Parse> {
    if streamed {
        Box::new(Streamed { answer, sse: SseReader::default(), any: false, failed: None })
    } else {
        Box::new(Whole { answer, body: Vec::new() })
    }
}

/// A stream of server-sent events.
struct Streamed<A> {
    answer: A,
    sse: SseReader,
    /// Whether any event was understood.
    any: bool,
    failed: Option<ParseError>,
}

impl<A: Answer> Streamed<A> {
    fn frames(&mut self, frames: Vec<Frame>, events: &mut Vec<ModelEvent>) -> Result<(), ParseError> {
        for frame in frames {
            if self.answer.is_complete() {
                break;
            }
            let result = match frame {
                Frame::Data(data) => self.data(&data, events),
                Frame::Stray(line) => self.answer.stray(&line),
            };
            result.inspect_err(|error| self.failed = Some(error.clone()))?;
        }
        Ok(())
    }

    fn data(&mut self, data: &[u8], events: &mut Vec<ModelEvent>) -> Result<(), ParseError> {
        let data = data.trim_ascii();
        if data.is_empty() || self.answer.is_complete() {
            return Ok(());
        }
        let result = self.answer.event(data, events);
        // A server that sends no blank line between events: each line is an event of its own.
        if matches!(result, Err(ParseError::Garbage { .. })) && data.contains(&b'\n') {
            return data.split(|&b| b == b'\n').try_for_each(|line| self.data(line, events));
        }
        self.any |= result.is_ok();
        result
    }

    fn too_long(&mut self) -> ParseError {
        let error = ParseError::TooLong { limit: MAX_EVENT_BYTES };
        self.failed = Some(error.clone());
        error
    }
}

impl<A: Answer> Parse for Streamed<A> {
    fn feed(&mut self, bytes: &[u8], events: &mut Vec<ModelEvent>) -> Result<(), ParseError> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        if self.answer.is_complete() {
            return Ok(());
        }
        let mut frames = Vec::new();
        let read = self.sse.feed(bytes, &mut frames);
        self.frames(frames, events)?;
        match read {
            Err(TooLong) if !self.answer.is_complete() => Err(self.too_long()),
            _ => Ok(()),
        }
    }

    fn finish(&mut self, events: &mut Vec<ModelEvent>) -> Result<(), ParseError> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        let mut frames = Vec::new();
        if !self.answer.is_complete() && self.sse.finish(&mut frames).is_err() {
            return Err(self.too_long());
        }
        let in_event = matches!(frames.last(), Some(Frame::Data(_)));
        match self.frames(frames, events) {
            // An event that breaks off with the stream is no garbage: the stream was cut in it.
            Err(ParseError::Garbage { .. }) if self.any || in_event => Err(ParseError::Cut),
            Err(error) => Err(error),
            Ok(()) if self.answer.is_complete() => Ok(()),
            Ok(()) => self.answer.ended(events),
        }
    }

    fn is_complete(&self) -> bool {
        self.answer.is_complete()
    }
}

struct Whole<A> {
    answer: A,
    body: Vec<u8>,
}

impl<A: Answer> Parse for Whole<A> {
    fn feed(&mut self, bytes: &[u8], _events: &mut Vec<ModelEvent>) -> Result<(), ParseError> {
        self.body.extend_from_slice(bytes);
        Ok(())
    }

    fn finish(&mut self, events: &mut Vec<ModelEvent>) -> Result<(), ParseError> {
        let body = std::mem::take(&mut self.body);
        let body = body.trim_ascii();
        if body.is_empty() {
            return Err(ParseError::Cut);
        }
        let read = self.answer.whole(body, events);
        let is_garbage = matches!(read, Err(ParseError::Garbage { .. }));
        match is_garbage.then(|| serde_json::from_slice::<serde::de::IgnoredAny>(body)) {
            Some(Err(error)) if error.is_eof() => Err(ParseError::Cut),
            Some(Err(_)) => Err(self.answer.garbage(body)),
            _ => read,
        }
    }

    fn is_complete(&self) -> bool {
        false
    }
}

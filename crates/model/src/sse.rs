//! Server-sent events, from bytes to the data of each event.
//!
//! Follows the format of the HTML standard (LF, CRLF or CR; comments; data over several lines) with
//! two differences. What the standard ignores silently, a line that is no field, is handed on as
//! [`Frame::Stray`], because on a model's stream it is an error page or a server's failure. And the
//! last event counts even when the blank line after it is missing, as several servers leave it out.

/// The longest line and the longest event that is read, in bytes. A whole answer of any model fits
/// many times; without a limit one broken server fills the memory.
pub const MAX_EVENT_BYTES: usize = 16 * 1024 * 1024;

/// What a stream consists of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Frame {
    /// The data of one event, its lines joined by line feeds.
    Data(Vec<u8>),
    /// A line that is no field of an event.
    Stray(Vec<u8>),
}

/// An event is longer than [`MAX_EVENT_BYTES`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooLong;

/// Reads server-sent events under any chunking.
#[derive(Debug)]
pub struct SseReader {
    line: Vec<u8>,
    data: Option<Vec<u8>>,
    after_cr: bool,
    first_line: bool,
    limit: usize,
}

impl Default for SseReader {
    fn default() -> Self {
        Self::with_limit(MAX_EVENT_BYTES)
    }
}

impl SseReader {
    /// A reader with another limit of a line and an event, in bytes.
    pub fn with_limit(limit: usize) -> Self {
        Self { line: Vec::new(), data: None, after_cr: false, first_line: true, limit }
    }

    /// Takes the next bytes and appends the frames they complete.
    ///
    /// # Errors
    /// When a line or an event passes the limit.
    pub fn feed(&mut self, mut bytes: &[u8], frames: &mut Vec<Frame>) -> Result<(), TooLong> {
        while let Some(&first) = bytes.first() {
            if std::mem::take(&mut self.after_cr) && first == b'\n' {
                bytes = &bytes[1..];
                continue;
            }
            let end = bytes.iter().position(|b| matches!(b, b'\n' | b'\r'));
            let (piece, rest) = bytes.split_at(end.unwrap_or(bytes.len()));
            if self.line.len() + piece.len() > self.limit {
                return Err(TooLong);
            }
            self.line.extend_from_slice(piece);
            let Some(&terminator) = rest.first() else { return Ok(()) };
            self.after_cr = terminator == b'\r';
            bytes = &rest[1..];
            self.end_line(frames)?;
        }
        Ok(())
    }

    /// The stream has ended: an event that lacks only its end is given all the same.
    ///
    /// # Errors
    /// When the event passes the limit.
    pub fn finish(&mut self, frames: &mut Vec<Frame>) -> Result<(), TooLong> {
        if !self.line.is_empty() {
            self.end_line(frames)?;
        }
        self.dispatch(frames);
        Ok(())
    }

    fn end_line(&mut self, frames: &mut Vec<Frame>) -> Result<(), TooLong> {
        let mut line = std::mem::take(&mut self.line);
        if std::mem::take(&mut self.first_line) && line.starts_with(b"\xef\xbb\xbf") {
            line.drain(..3);
        }
        if line.is_empty() {
            self.dispatch(frames);
            return Ok(());
        }
        let colon = line.iter().position(|&b| b == b':').unwrap_or(line.len());
        let (field, value) = line.split_at(colon);
        let value = value.strip_prefix(b":").unwrap_or(value);
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match field {
            b"data" => {
                if self.data.as_ref().map_or(0, Vec::len) + value.len() >= self.limit {
                    return Err(TooLong);
                }
                match &mut self.data {
                    Some(data) => {
                        data.push(b'\n');
                        data.extend_from_slice(value);
                    }
                    None => self.data = Some(value.to_vec()),
                }
            }
            b"" | b"event" | b"id" | b"retry" => {}
            _ => frames.push(Frame::Stray(line)),
        }
        Ok(())
    }

    fn dispatch(&mut self, frames: &mut Vec<Frame>) {
        if let Some(data) = self.data.take() {
            frames.push(Frame::Data(data));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(chunks: &[&[u8]]) -> Vec<Frame> {
        let mut reader = SseReader::default();
        let mut frames = Vec::new();
        for chunk in chunks {
            reader.feed(chunk, &mut frames).unwrap();
        }
        reader.finish(&mut frames).unwrap();
        frames
    }

    fn data(texts: &[&str]) -> Vec<Frame> {
        texts.iter().map(|text| Frame::Data(text.as_bytes().to_vec())).collect()
    }

    #[test]
    fn line_ends_may_be_lf_crlf_or_cr() {
        for text in ["data: a\n\ndata: b\n\n", "data: a\r\n\r\ndata: b\r\n\r\n", "data: a\r\rdata: b\r\r"] {
            assert_eq!(read(&[text.as_bytes()]), data(&["a", "b"]), "{text:?}");
        }
    }

    #[test]
    fn crlf_split_between_chunks_is_one_line_end() {
        assert_eq!(read(&[b"data: a\r", b"\ndata: b\r", b"\n\r", b"\n"]), data(&["a\nb"]));
    }

    #[test]
    fn comments_and_other_fields_are_skipped() {
        assert_eq!(read(&[b": ping\n\nevent: x\nid: 1\nretry: 5\ndata:a\n\n"]), data(&["a"]));
    }

    #[test]
    fn the_last_event_counts_without_its_blank_line() {
        assert_eq!(read(&[b"data: a"]), data(&["a"]));
    }

    #[test]
    fn a_line_that_is_no_field_is_handed_on() {
        assert_eq!(read(&[b"<html>\n"]), vec![Frame::Stray(b"<html>".to_vec())]);
    }

    #[test]
    fn a_byte_order_mark_is_skipped() {
        assert_eq!(read(&[b"\xef\xbb", b"\xbfdata: a\n\n"]), data(&["a"]));
    }

    #[test]
    fn lines_and_events_are_limited() {
        let mut frames = Vec::new();
        assert_eq!(SseReader::with_limit(8).feed(b"data: 123456789", &mut frames), Err(TooLong));
        let mut reader = SseReader::with_limit(8);
        assert_eq!(reader.feed(b"data:123\ndata:456\ndata:789\n", &mut frames), Err(TooLong));
        assert_eq!(SseReader::with_limit(8).feed(b"data:123", &mut frames), Ok(()));
    }
}

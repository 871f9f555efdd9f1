//! The text that a page shows, in the order in which it is drawn: words and lines end where the pen moves.
//!
//! Most programs draw a text in the order in which it is read, column by column; to sort it by its places would weave columns
//! into each other.

use std::collections::HashMap;
use std::rc::Rc;

use lopdf::content::{Content, Operation};
use lopdf::{Dictionary, Document, Error, Object, ObjectId};

use super::font::Font;
use super::{STREAM, dictionary_at, number, value};
use crate::ExtractError;

/// Forms that may stand in each other.
const DEPTH: usize = 12;
/// Operations of a document that are followed.
const OPERATIONS: usize = 20_000_000;
/// Saved states of a page.
const STATES: usize = 1_000;

/// Gaps, in parts of the size of the text: from which on a word ends, and from which on it is another cell or column; lines
/// further apart than a paragraph's.
const WORD: f32 = 0.16;
const CELL: f32 = 2.5;
const PARAGRAPH: f32 = 1.7;

/// A transformation, as the six numbers of a PDF.
type Matrix = [f32; 6];

const SAME: Matrix = [1.0, 0.0, 0.0, 1.0, 0.0, 0.0];

/// First `one`, then `other`.
fn then(one: Matrix, other: Matrix) -> Matrix {
    let [a, b, c, d, e, f] = one;
    let [g, h, i, j, k, l] = other;
    [a * g + b * i, a * h + b * j, c * g + d * i, c * h + d * j, e * g + f * i + k, e * h + f * j + l]
}

/// Reads the pages of a document.
pub(super) struct Reader<'a> {
    document: &'a Document,
    /// By the place of its dictionary.
    fonts: HashMap<usize, Rc<Font>>,
    unknown: Rc<Font>,
    /// Bytes that may still be unpacked, and operations that are still followed.
    left: usize,
    operations: usize,
}

#[derive(Clone)]
struct State {
    place: Matrix,
    font: Rc<Font>,
    size: f32,
    between: f32,
    between_words: f32,
    scale: f32,
    leading: f32,
    rise: f32,
}

struct Drawing<'a> {
    state: State,
    saved: Vec<State>,
    text: Matrix,
    line: Matrix,
    resources: Vec<&'a Dictionary>,
}

/// Where the pen is once something was shown.
#[derive(Clone, Copy)]
struct Pen {
    direction: (f32, f32),
    along: f32,
    across: f32,
    size: f32,
}

#[derive(Default)]
struct Shown {
    text: String,
    pen: Option<Pen>,
}

impl<'a> Reader<'a> {
    pub(super) fn of(document: &'a Document, unpacked: usize) -> Self {
        let unknown = Rc::new(Font::unknown());
        Self { document, fonts: HashMap::new(), unknown, left: unpacked, operations: OPERATIONS }
    }

    /// The text of a page.
    ///
    /// # Errors
    /// More is packed in the document than is unpacked.
    pub(super) fn text(&mut self, page: ObjectId) -> Result<String, ExtractError> {
        let (own, shared) = self.document.get_page_resources(page).unwrap_or_default();
        let shared = shared.into_iter().filter_map(|id| self.document.get_dictionary(id).ok());
        let resources = own.into_iter().chain(shared).collect();
        let most = self.left.min(STREAM);
        let content = match self.document.get_page_content_with_limit(page, most) {
            Ok(content) => content,
            Err(Error::Decompress(lopdf::DecompressError::MemoryLimitExceeded { .. })) => {
                return Err(ExtractError::TooLarge(most >> 20));
            }
            Err(_) => Vec::new(),
        };
        self.left -= content.len().min(self.left);
        let mut shown = Shown::default();
        self.draw(&content, SAME, resources, &mut shown, 0)?;
        Ok(shown.text)
    }

    fn draw(
        &mut self,
        content: &[u8],
        place: Matrix,
        resources: Vec<&'a Dictionary>,
        shown: &mut Shown,
        depth: usize,
    ) -> Result<(), ExtractError> {
        let state = State {
            place,
            font: Rc::clone(&self.unknown),
            size: 1.0,
            between: 0.0,
            between_words: 0.0,
            scale: 1.0,
            leading: 0.0,
            rise: 0.0,
        };
        let mut drawing = Drawing { state, saved: Vec::new(), text: SAME, line: SAME, resources };
        // What comes after something damaged is not known.
        for operation in Content::decode_iter(content).map_while(Result::ok) {
            self.operations = self.operations.saturating_sub(1);
            if self.operations == 0 {
                return Err(ExtractError::Damaged(format!("it has more than {OPERATIONS} operations")));
            }
            self.follow(&operation, &mut drawing, shown, depth)?;
        }
        Ok(())
    }

    fn follow(
        &mut self,
        operation: &Operation,
        drawing: &mut Drawing<'a>,
        shown: &mut Shown,
        depth: usize,
    ) -> Result<(), ExtractError> {
        let operands = &operation.operands;
        let at = |index: usize| operands.get(index).map_or(0.0, number);
        let matrix = || [at(0), at(1), at(2), at(3), at(4), at(5)];
        let string = |index: usize| operands.get(index).and_then(|string| string.as_str().ok());
        let state = &mut drawing.state;
        match operation.operator.as_str() {
            "q" if drawing.saved.len() < STATES => drawing.saved.push(state.clone()),
            "Q" => {
                if let Some(saved) = drawing.saved.pop() {
                    *state = saved;
                }
            }
            "cm" => state.place = then(matrix(), state.place),
            "BT" => (drawing.text, drawing.line) = (SAME, SAME),
            "Tc" => state.between = at(0),
            "Tw" => state.between_words = at(0),
            "Tz" => state.scale = at(0) / 100.0,
            "TL" => state.leading = at(0),
            "Ts" => state.rise = at(0),
            "Tf" => {
                state.size = at(1);
                let name = operands.first().and_then(|name| name.as_name().ok()).unwrap_or_default();
                state.font = self.font(&drawing.resources, name);
            }
            "Td" => drawing.move_line(at(0), at(1)),
            "TD" => {
                state.leading = -at(1);
                drawing.move_line(at(0), at(1));
            }
            "Tm" => (drawing.text, drawing.line) = (matrix(), matrix()),
            "T*" => drawing.next_line(),
            "Tj" => drawing.show(string(0).unwrap_or_default(), shown),
            "'" => {
                drawing.next_line();
                drawing.show(string(0).unwrap_or_default(), shown);
            }
            "\"" => {
                (state.between_words, state.between) = (at(0), at(1));
                drawing.next_line();
                drawing.show(string(2).unwrap_or_default(), shown);
            }
            "TJ" => {
                for piece in operands.first().and_then(|list| list.as_array().ok()).into_iter().flatten() {
                    match piece {
                        Object::String(string, _) => drawing.show(string, shown),
                        moved => {
                            let by = -number(moved) / 1000.0 * drawing.state.size * drawing.state.scale;
                            drawing.advance(by);
                        }
                    }
                }
            }
            "Do" => {
                let name = operands.first().and_then(|name| name.as_name().ok()).unwrap_or_default();
                self.draw_form(name, drawing, shown, depth)?;
            }
            _ => {}
        }
        Ok(())
    }

    fn font(&mut self, resources: &[&'a Dictionary], name: &[u8]) -> Rc<Font> {
        let document = self.document;
        let font = resources.iter().find_map(|resources| {
            dictionary_at(document, dictionary_at(document, resources, b"Font")?, name)
        });
        let Some(font) = font else { return Rc::clone(&self.unknown) };
        let place = std::ptr::from_ref(font).addr();
        Rc::clone(self.fonts.entry(place).or_insert_with(|| Rc::new(Font::of(document, font))))
    }

    fn draw_form(
        &mut self,
        name: &[u8],
        drawing: &Drawing<'a>,
        shown: &mut Shown,
        depth: usize,
    ) -> Result<(), ExtractError> {
        let document = self.document;
        let found = drawing.resources.iter().find_map(|resources| {
            let objects = dictionary_at(document, resources, b"XObject")?;
            value(document, objects, name)?.as_stream().ok()
        });
        let is_form = |about: &Dictionary| {
            value(document, about, b"Subtype").and_then(|name| name.as_name().ok()) == Some(b"Form")
        };
        let Some(form) = found.filter(|form| depth < DEPTH && is_form(&form.dict)) else { return Ok(()) };
        let most = self.left.min(STREAM);
        let content = match form.decompressed_content_with_limit(most) {
            Ok(content) => content,
            Err(Error::Decompress(lopdf::DecompressError::MemoryLimitExceeded { .. })) => {
                return Err(ExtractError::TooLarge(most >> 20));
            }
            Err(_) => return Ok(()),
        };
        self.left -= content.len().min(self.left);
        let place = value(document, &form.dict, b"Matrix").and_then(|matrix| matrix.as_array().ok());
        let place = place.map_or(SAME, |matrix| {
            let at = |index: usize| matrix.get(index).map_or(0.0, number);
            [at(0), at(1), at(2), at(3), at(4), at(5)]
        });
        let own = dictionary_at(document, &form.dict, b"Resources");
        let resources = own.map_or_else(|| drawing.resources.clone(), |own| vec![own]);
        self.draw(&content, then(place, drawing.state.place), resources, shown, depth + 1)
    }
}

impl Drawing<'_> {
    fn move_line(&mut self, x: f32, y: f32) {
        self.line = then([1.0, 0.0, 0.0, 1.0, x, y], self.line);
        self.text = self.line;
    }

    fn next_line(&mut self) {
        self.move_line(0.0, -self.state.leading);
    }

    fn advance(&mut self, by: f32) {
        self.text = then([1.0, 0.0, 0.0, 1.0, by, 0.0], self.text);
    }

    fn show(&mut self, string: &[u8], shown: &mut Shown) {
        let font = Rc::clone(&self.state.font);
        for glyph in font.glyphs(string) {
            let State { size, between, between_words, scale, rise, place, .. } = self.state;
            let by =
                (glyph.width / 1000.0 * size + between + if glyph.is_space { between_words } else { 0.0 })
                    * scale;
            let at = then([1.0, 0.0, 0.0, 1.0, 0.0, rise], then(self.text, place));
            let (x, y) = (at[0] * by, at[1] * by);
            shown.glyph(&glyph.text, (at[4], at[5]), (x, y), size.abs() * at[2].hypot(at[3]));
            self.advance(by);
        }
    }
}

impl Shown {
    /// Shows what stands at a place, goes as far as this and is of this size.
    fn glyph(&mut self, text: &str, at: (f32, f32), by: (f32, f32), size: f32) {
        let length = by.0.hypot(by.1);
        let direction = match (length > f32::EPSILON, self.pen) {
            (true, _) => (by.0 / length, by.1 / length),
            (false, Some(pen)) => pen.direction,
            (false, None) => (1.0, 0.0),
        };
        let along = at.0 * direction.0 + at.1 * direction.1;
        let across = at.1 * direction.0 - at.0 * direction.1;
        let is_blank = text.chars().all(char::is_whitespace);
        if let Some(pen) = self.pen {
            let size = size.max(pen.size).max(f32::EPSILON);
            let turned = direction.0 * pen.direction.0 + direction.1 * pen.direction.1 < 0.9;
            let (gap, down) = ((along - pen.along) / size, (pen.across - across) / size);
            if turned || down.abs() > PARAGRAPH {
                self.end("\n\n");
            } else if down.abs() > 0.5 || gap < -1.0 {
                self.end("\n");
            } else if gap > CELL {
                self.end("  ");
            } else if gap > WORD {
                self.end(" ");
            }
        }
        if is_blank {
            self.end(" ");
        } else {
            // Nothing that a text would not hold.
            self.text.extend(text.chars().filter(|c| !c.is_control()));
        }
        self.pen = Some(Pen { direction, along: along + length, across, size });
    }

    /// Ends a word, a line or a paragraph, if it has not ended so yet.
    fn end(&mut self, with: &str) {
        if with.starts_with('\n') {
            self.text.truncate(self.text.trim_end_matches(' ').len());
        }
        let line = self.text.rsplit('\n').next().unwrap_or_default();
        match with {
            _ if self.text.is_empty() => {}
            " " | "  " if line.is_empty() || line.ends_with(' ') => {}
            "\n\n" if self.text.ends_with("\n\n") => {}
            "\n\n" if self.text.ends_with('\n') => self.text.push('\n'),
            "\n" if self.text.ends_with('\n') => {}
            _ => self.text += with,
        }
    }
}

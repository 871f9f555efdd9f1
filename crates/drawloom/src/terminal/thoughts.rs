//! What a model thinks, as whoever looks on sees it: dimmed while it comes; where nothing can be dimmed, a line that
//! says how much it was. It is never part of an answer.

use text::terminal::VisibleStream;

#[derive(Default)]
pub(super) struct ThinkingRenderer {
    visible: VisibleStream,
    chars: usize,
    /// Whether the last line shown is open.
    open: bool,
}

impl ThinkingRenderer {
    /// What is shown of more of it.
    pub(super) fn more(&mut self, text: &str, dims: bool) -> String {
        self.chars += text.chars().count();
        if !dims {
            return String::new();
        }
        let shown = self.visible.push(text.as_bytes());
        self.dimmed(shown)
    }

    /// What is shown once it is over, if there was any.
    pub(super) fn end(&mut self, dims: bool) -> String {
        let Self { mut visible, chars, open } = std::mem::take(self);
        if chars == 0 {
            return String::new();
        }
        if !dims {
            return format!("[thinking: {chars} characters]\n");
        }
        let held = visible.finish();
        let shown = Self { open, ..Self::default() }.dimmed(held);
        shown + if open { "\n" } else { "" }
    }

    fn dimmed(&mut self, shown: String) -> String {
        let Some(last) = shown.chars().last() else { return shown };
        self.open = last != '\n';
        // Each piece is closed: whatever ends the program in between leaves the terminal as it was.
        format!("\x1b[2m{shown}\x1b[22m")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thinking_is_dimmed_and_ends_its_line() {
        let mut thoughts = ThinkingRenderer::default();
        assert_eq!(thoughts.more("It is\x1b[2J ", true), "\x1b[2mIt is␛[2J \x1b[22m");
        assert_eq!(thoughts.more("late.", true), "\x1b[2mlate.\x1b[22m");
        assert_eq!(thoughts.end(true), "\n");
        assert_eq!(thoughts.end(true), "", "it is over");
        thoughts.more("Line.\n", true);
        assert_eq!(thoughts.end(true), "");
    }

    #[test]
    fn without_colours_it_is_counted() {
        let mut thoughts = ThinkingRenderer::default();
        assert_eq!(thoughts.more("Grüße", false) + &thoughts.more("!", false), "");
        assert_eq!(thoughts.end(false), "[thinking: 6 characters]\n");
        assert_eq!(thoughts.end(false), "");
    }
}

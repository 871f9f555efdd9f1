//! Styles of authors: a colour, and an underline that tells them apart without it.

use std::collections::BTreeSet;
use std::io::{self, Write};

use loom::{Author, AuthorKind};

use super::escape::Escaped;

/// The authors seen, in order. The owner has plain ink, the first model indigo; further authors take turns.
#[derive(Debug, Default)]
pub(super) struct AuthorStyles {
    seen: Vec<(AuthorKind, String)>,
    /// The models that wrote under the name of each.
    models: Vec<BTreeSet<String>>,
}

/// Marks for authors other than the owner and the first model.
const FURTHER: [&str; 3] = ["teal", "plum", "ochre"];

impl AuthorStyles {
    /// The class of an author.
    pub(super) fn class(&mut self, kind: AuthorKind, name: &str, model: Option<&str>) -> &'static str {
        let here = self.seen.iter().position(|(of, seen)| *of == kind && seen == name);
        let index = here.unwrap_or_else(|| {
            self.seen.push((kind, name.to_owned()));
            self.models.push(BTreeSet::new());
            self.seen.len() - 1
        });
        let models = &mut self.models[index];
        if let Some(model) = model.filter(|model| !models.contains(*model)) {
            models.insert(model.to_owned());
        }
        self.mark(index)
    }

    fn mark(&self, index: usize) -> &'static str {
        let is_plain =
            |(kind, name): &(AuthorKind, String)| *kind == AuthorKind::Human && name == Author::OWNER;
        let first_model = self.seen.iter().position(|(kind, _)| *kind == AuthorKind::Model);
        if is_plain(&self.seen[index]) {
            return "ink";
        }
        if first_model == Some(index) {
            return "indigo";
        }
        let before = self.seen[..index].iter().enumerate();
        let others = before.filter(|(at, seen)| !is_plain(seen) && first_model != Some(*at)).count();
        FURTHER[others % FURTHER.len()]
    }

    pub(super) fn legend(&self, out: &mut dyn Write) -> io::Result<()> {
        out.write_all(b"<ul class=\"legend\">\n")?;
        for (index, (kind, name)) in self.seen.iter().enumerate() {
            let name = text::terminal::one_line(name);
            let (mark, kind) = (self.mark(index), word(*kind));
            write!(out, "<li><span class=\"{mark}\">{}</span> {kind}", Escaped(&name))?;
            for model in &self.models[index] {
                write!(out, " · {}", Escaped(&text::terminal::one_line(model)))?;
            }
            out.write_all(b"</li>\n")?;
        }
        out.write_all(b"</ul>\n")
    }
}

/// The word for a kind of author.
pub(super) const fn word(kind: AuthorKind) -> &'static str {
    match kind {
        AuthorKind::Human => "human",
        AuthorKind::Model => "model",
        AuthorKind::Tool => "tool",
    }
}

//! Styles of authors: a colour, and an underline that tells them apart without it.

use std::collections::BTreeSet;
use std::io::{self, Write};

use loom::{Author, AuthorKind};

use super::escape::Escaped;

/// The authors seen, in order. The owner has plain ink, the first model indigo; further authors take turns. Models that
/// wrote under one name are authors of their own.
#[derive(Debug, Default)]
pub(super) struct AuthorStyles {
    seen: Vec<SeenAuthor>,
    /// The models that are named beside each.
    models: Vec<BTreeSet<String>>,
}

#[derive(Debug, PartialEq)]
struct SeenAuthor {
    kind: AuthorKind,
    name: String,
    /// What wrote, where the author is a model.
    model: Option<String>,
}

impl SeenAuthor {
    fn is_plain(&self) -> bool {
        self.kind == AuthorKind::Human && self.name == Author::OWNER
    }
}

/// Marks for authors other than the owner and the first model.
const FURTHER: [&str; 3] = ["teal", "plum", "ochre"];

impl AuthorStyles {
    /// The class of an author.
    pub(super) fn class(&mut self, kind: AuthorKind, name: &str, model: Option<&str>) -> &'static str {
        let writer = model.filter(|_| kind == AuthorKind::Model).map(str::to_owned);
        let author = SeenAuthor { kind, name: name.to_owned(), model: writer };
        let here = self.seen.iter().position(|seen| *seen == author);
        let index = here.unwrap_or_else(|| {
            self.seen.push(author);
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
        let first_model = self.seen.iter().position(|seen| seen.kind == AuthorKind::Model);
        if self.seen[index].is_plain() {
            return "ink";
        }
        if first_model == Some(index) {
            return "indigo";
        }
        let before = self.seen[..index].iter().enumerate();
        let others = before.filter(|(at, seen)| !seen.is_plain() && first_model != Some(*at)).count();
        FURTHER[others % FURTHER.len()]
    }

    pub(super) fn legend(&self, out: &mut dyn Write) -> io::Result<()> {
        out.write_all(b"<ul class=\"legend\">\n")?;
        for (index, seen) in self.seen.iter().enumerate() {
            let name = text::terminal::one_line(&seen.name);
            let (mark, kind) = (self.mark(index), word(seen.kind));
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn models_of_one_name_have_colours_of_their_own() {
        let mut styles = AuthorStyles::default();
        let mut class = |kind, model| styles.class(kind, "owner", model);
        assert_eq!(class(AuthorKind::Human, Some("a")), "ink");
        assert_eq!(class(AuthorKind::Model, Some("a")), "indigo");
        assert_eq!(class(AuthorKind::Model, Some("b")), "teal");
        assert_eq!(class(AuthorKind::Model, Some("a")), "indigo");
        assert_eq!(class(AuthorKind::Human, Some("b")), "ink");
        let mut out = Vec::new();
        styles.legend(&mut out).unwrap();
        let legend = String::from_utf8(out).unwrap();
        assert!(legend.contains("<li><span class=\"indigo\">owner</span> model · a</li>"), "{legend}");
        assert!(legend.contains("<li><span class=\"teal\">owner</span> model · b</li>"), "{legend}");
    }
}

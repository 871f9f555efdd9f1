//! Passages, their versions, and what branches off them.

use std::io::Write;

use loom::attribution::attribute;
use loom::reader::Order;
use loom::render::Passage;
use loom::source;
use loom::{
    Block, CellKey, GenerationSettings, NodeRow, OpTarget, PositionId, PositionKind, RowError, TreeReader,
    ViewName, path, resolve,
};

use super::author_styles::{AuthorStyles, word};
use super::escape::{Escaped, Linked};
use crate::ExportError;
use crate::plain::speaker;

/// Deepest nesting of branches within branches; deeper ones stand side by side, because browsers limit nesting.
const NESTING: usize = 64;

/// Clusters of a text that a summary shows.
const SUMMARY: usize = 60;

/// Rows read at a time.
const PAGE: usize = 64;

/// Writes parts of one tree.
pub(super) struct Tree<'a> {
    rows: &'a dyn TreeReader,
    view: &'a ViewName,
    out: &'a mut dyn Write,
    dialogue: bool,
    styles: AuthorStyles,
}

/// Parts of a branch still to be written.
enum Step {
    /// A position that begins one, at this nesting.
    Open(PositionId, usize),
    Close,
}

impl<'a> Tree<'a> {
    pub(super) fn new(
        rows: &'a dyn TreeReader,
        view: &'a ViewName,
        out: &'a mut dyn Write,
        dialogue: bool,
    ) -> Result<Self, RowError> {
        Ok(Self { rows, view, out, dialogue, styles: AuthorStyles::default() })
    }

    pub(super) fn finish(self) -> AuthorStyles {
        self.styles
    }

    /// A passage of the path, with its siblings and versions.
    pub(super) fn passage(&mut self, passage: &Passage) -> Result<(), ExportError> {
        if let Some(parent) = passage.position.parent {
            let siblings = self.visible_children(parent, Some(passage.position.id))?;
            self.branches(&siblings, "sibling")?;
        }
        self.content(&passage.row)?;
        self.versions(&passage.row)
    }

    /// What hangs below the end of the path.
    pub(super) fn below(&mut self, tip: PositionId) -> Result<(), ExportError> {
        let children = self.visible_children(tip, None)?;
        self.branches(&children, "continuation")
    }

    fn branches(&mut self, roots: &[PositionId], what: &str) -> Result<(), ExportError> {
        if roots.is_empty() {
            return Ok(());
        }
        let many = if roots.len() == 1 { "" } else { "s" };
        write!(self.out, "<details class=\"siblings\"><summary>⋔ {} {what}{many}</summary>", roots.len())?;
        let mut steps: Vec<Step> = roots.iter().rev().map(|root| Step::Open(*root, 1)).collect();
        while let Some(step) = steps.pop() {
            match step {
                Step::Close => self.out.write_all(b"</details>")?,
                Step::Open(root, level) => self.branch(root, level, &mut steps)?,
            }
        }
        self.out.write_all(b"</details>\n")?;
        Ok(())
    }

    /// A branch down to its first fork.
    fn branch(&mut self, root: PositionId, level: usize, steps: &mut Vec<Step>) -> Result<(), ExportError> {
        let row = self.shown(root)?;
        self.summary("⋔", &row)?;
        let mut here = root;
        let forks = loop {
            let row = self.shown(here)?;
            if !self.is_out(here, &row)? {
                self.content(&row)?;
            }
            self.versions(&row)?;
            let mut children = self.visible_children(here, None)?;
            match children.pop() {
                Some(only) if children.is_empty() => here = only,
                last => {
                    children.extend(last);
                    break children;
                }
            }
        };
        let nested = level < NESTING;
        if nested {
            steps.push(Step::Close);
        } else {
            self.out.write_all(b"</details>")?;
        }
        let level = if nested { level + 1 } else { level };
        steps.extend(forks.into_iter().rev().map(|fork| Step::Open(fork, level)));
        Ok(())
    }

    /// The other versions of a passage that are neither pruned nor left out.
    fn versions(&mut self, shown: &NodeRow) -> Result<(), ExportError> {
        let mut any = false;
        let mut before: Option<Order> = None;
        loop {
            let page = self.rows.versions(shown.node.position, before, PAGE)?;
            for row in page.iter().filter(|row| row.node.id != shown.node.id) {
                if self.is_pruned(OpTarget::Version(row.node.id))? || self.is_out(row.node.position, row)? {
                    continue;
                }
                if !any {
                    self.out
                        .write_all("<details class=\"versions\"><summary>↺ versions</summary>".as_bytes())?;
                    any = true;
                }
                self.summary("↺", row)?;
                self.content(row)?;
                self.out.write_all(b"</details>")?;
            }
            match page.last() {
                Some(last) if page.len() == PAGE => before = Some((last.seq, last.place)),
                _ => break,
            }
        }
        self.out.write_all(if any { b"</details>\n" } else { b"" })?;
        Ok(())
    }

    /// Opens a block that can be opened by who wrote it and how it begins.
    fn summary(&mut self, sign: &str, row: &NodeRow) -> Result<(), ExportError> {
        let text = row.node.text();
        let end = text::grapheme::clusters(&text).nth(SUMMARY).map_or(text.len(), |cluster| cluster.start);
        let more = if end < text.len() { "…" } else { "" };
        let beginning = text::terminal::one_line(&text[..end]);
        let model = source::model_of(self.rows, &row.node)?;
        let label = source::label(row.node.author.kind, &row.node.author.id, model.as_deref());
        let name = text::terminal::one_line(&label);
        write!(
            self.out,
            "<details><summary dir=\"auto\">{sign} {} · {}{more}</summary>",
            Escaped(&name),
            Escaped(&beginning)
        )?;
        Ok(())
    }

    /// A node's text by author, and what it says beside text.
    fn content(&mut self, row: &NodeRow) -> Result<(), ExportError> {
        if self.dialogue {
            let who = speaker(self.rows, &row.node)?;
            write!(self.out, "<section class=\"turn\"><h2>{}</h2>", Escaped(&who))?;
        }
        if row.purged {
            self.out.write_all("<em>text removed</em>".as_bytes())?;
        }
        let text = row.node.text();
        // Isolated, so that a text cannot turn the direction of what follows it.
        self.out.write_all(b"<bdi>")?;
        for span in attribute(self.rows, row.node.id)? {
            let origin = source::origin_of_span(self.rows, &row.node, &span)?;
            let model = origin.as_ref().map(|origin| origin.model.as_str());
            let class = self.styles.class(span.kind, &span.author, model);
            let label = source::label(span.kind, &span.author, model);
            let name = text::terminal::one_line(&label);
            write!(self.out, "<span class=\"{class}\" title=\"{} · {}", Escaped(&name), word(span.kind))?;
            let settings = origin.map(|origin| origin.settings(self.rows)).transpose()?.flatten();
            for words in settings.iter().flat_map(GenerationSettings::words) {
                write!(self.out, " · {}", Escaped(&words))?;
            }
            write!(self.out, "\">{}</span>", Linked(&text[span.from..span.to]))?;
        }
        self.out.write_all(b"</bdi>")?;
        for block in row.node.content.iter() {
            self.beside(block)?;
        }
        self.out.write_all(if self.dialogue { b"</section>\n" } else { b"" })?;
        Ok(())
    }

    fn beside(&mut self, block: &Block) -> Result<(), ExportError> {
        match block {
            Block::ToolCall { name, arguments, .. } => {
                let call = format!("{name} {arguments}");
                write!(
                    self.out,
                    "<details><summary>call of {}</summary>",
                    Escaped(&text::terminal::one_line(name))
                )?;
                write!(self.out, "<div class=\"text\">{}</div></details>", Escaped(&call))?;
            }
            Block::ToolResult { blocks, .. } => {
                let text = loom::content::plain_text(blocks);
                write!(self.out, "<details><summary>result</summary>")?;
                write!(self.out, "<div class=\"text\">{}</div></details>", Escaped(&text))?;
            }
            Block::Thinking { text, .. } => {
                write!(self.out, "<details><summary>thinking</summary>")?;
                write!(self.out, "<div class=\"text\">{}</div></details>", Escaped(text))?;
            }
            Block::Image { mime, .. } | Block::Audio { mime, .. } => {
                write!(self.out, "<em>[{}]</em>", Escaped(&text::terminal::one_line(mime)))?;
            }
            Block::Text { .. } | Block::Opaque { .. } => {}
        }
        Ok(())
    }

    fn shown(&self, position: PositionId) -> Result<NodeRow, RowError> {
        let id = resolve::shown(self.rows, self.view, position)?;
        self.rows.node(id)?.ok_or_else(|| RowError::missing("node", id))
    }

    /// Positions below one that stand on paths and are not pruned, newest first. Each is deeper than the one above it,
    /// or damaged: branches of a cycle would be written without end.
    fn visible_children(
        &self,
        parent: PositionId,
        except: Option<PositionId>,
    ) -> Result<Vec<PositionId>, RowError> {
        let mut found = Vec::new();
        let mut before: Option<Order> = None;
        let depth = path::position(self.rows, parent)?.depth;
        loop {
            let page = self.rows.children(parent, before, PAGE)?;
            for child in &page {
                let wanted = child.kind == PositionKind::Path && Some(child.id) != except;
                if wanted && !self.is_pruned(OpTarget::Position(child.id))? {
                    if child.depth <= depth {
                        return Err(RowError::damaged("position", child.id));
                    }
                    found.push(child.id);
                }
            }
            match page.last() {
                Some(last) if page.len() == PAGE => before = Some(path::order_of(self.rows, last.id)?),
                _ => return Ok(found),
            }
        }
    }

    fn is_pruned(&self, target: OpTarget) -> Result<bool, RowError> {
        Ok(self.rows.cell(&CellKey::Pruned { target })?.value.is_set())
    }

    fn is_out(&self, position: PositionId, row: &NodeRow) -> Result<bool, RowError> {
        for target in [OpTarget::Position(position), OpTarget::Version(row.node.id)] {
            if self.rows.cell(&CellKey::Excluded { target })?.value.is_set() {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

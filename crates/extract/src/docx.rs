//! The text of a DOCX: its body as Markdown, with headings, lists, tables and notes; what was deleted is left out.

use std::collections::BTreeMap;
use std::mem::take;

use quick_xml::events::BytesStart;

use crate::archive::Archive;
use crate::xml::{Part, attribute, text_of, walk};
use crate::{ExtractError, Extracted, Format, MOST, in_parts};

/// Elements whose content is none of the text: what is shown a second time for older programs, what was moved away, what
/// formatting was before.
const SKIPPED: [&str; 5] = ["Fallback", "moveFrom", "pPrChange", "rPrChange", "sectPr"];

/// Levels of lists that are shown.
const DEEPEST: usize = 8;

/// Name of the body's member; none where the archive is no DOCX.
pub(crate) fn body(archive: &mut Archive<'_>) -> Result<Option<String>, ExtractError> {
    const RELATIONS: &str = "_rels/.rels";
    if !archive.has(RELATIONS) {
        return Ok(None);
    }
    let mut found = None;
    walk(&archive.read(RELATIONS)?, RELATIONS, |part| {
        if let Part::Start(tag) = part
            && attribute(tag, "Type").is_some_and(|kind| kind.ends_with("/officeDocument"))
        {
            found = attribute(tag, "Target").map(|target| target.trim_start_matches('/').to_owned());
        }
        Ok(())
    })?;
    Ok(found.filter(|target| target.starts_with("word/")))
}

pub(crate) fn extract(archive: &mut Archive<'_>, body: &str) -> Result<Extracted, ExtractError> {
    let mut optional = |name: &str| if archive.has(name) { archive.read(name).map(Some) } else { Ok(None) };
    let title = optional("docProps/core.xml")?.and_then(|core| text_of(&core, "title"));
    let mut document = Body { levels: levels(optional("word/styles.xml")?)?, ..Body::default() };
    let notes = [optional("word/footnotes.xml")?, optional("word/endnotes.xml")?];
    let body_bytes = archive.read(body)?;
    walk(&body_bytes, body, |part| document.take(part))?;
    for notes in notes.into_iter().flatten() {
        walk(&notes, "notes", |part| document.take(part))?;
    }
    document.end_page();
    Ok(Extracted { format: Format::Docx, title, pages: in_parts(document.pages) })
}

/// Levels of headings by the names of styles.
fn levels(styles: Option<Vec<u8>>) -> Result<BTreeMap<String, usize>, ExtractError> {
    let (mut levels, mut style) = (BTreeMap::new(), String::new());
    let Some(styles) = styles else { return Ok(levels) };
    walk(&styles, "word/styles.xml", |part| {
        let Part::Start(tag) = part else { return Ok(()) };
        match tag.local_name().as_ref() {
            "style" => style = attribute(tag, "styleId").unwrap_or_default(),
            "name" => {
                let name = attribute(tag, "val").unwrap_or_default().to_ascii_lowercase();
                let level = match name.strip_prefix("heading ") {
                    Some(level) => level.parse().ok(),
                    None => (name == "title").then_some(1),
                };
                if let Some(level) = level {
                    levels.insert(take(&mut style), level);
                }
            }
            _ => {}
        }
        Ok(())
    })?;
    Ok(levels)
}

#[derive(Default)]
struct Paragraph {
    text: String,
    level: Option<usize>,
    /// Level of its list, from 0.
    list: Option<usize>,
}

#[derive(Default)]
struct Body {
    levels: BTreeMap<String, usize>,
    pages: Vec<String>,
    page: String,
    made: usize,
    /// Paragraphs that are open: one may hold a box of text, which has its own.
    paragraphs: Vec<Paragraph>,
    /// Cells of each open row; a table may stand in a cell.
    rows: Vec<Vec<String>>,
    /// Whether a page ends with the open table's row.
    ends_page: bool,
    in_text: bool,
    /// The element that is skipped, with how often it stands in itself.
    skipped: Option<(String, usize)>,
}

impl Body {
    fn take(&mut self, part: Part<'_>) -> Result<(), ExtractError> {
        match part {
            Part::Start(tag) => self.start(tag),
            Part::End(name) => self.end(name),
            Part::Text(text) if self.in_text => self.write(text),
            Part::Text(_) => {}
        }
        match self.made > MOST {
            true => Err(ExtractError::TooLarge(MOST >> 20)),
            false => Ok(()),
        }
    }

    fn start(&mut self, tag: &BytesStart<'_>) {
        let local = tag.local_name();
        let name = local.as_ref();
        if let Some((skipped, depth)) = &mut self.skipped {
            *depth += usize::from(skipped == name);
            return;
        }
        if SKIPPED.contains(&name) {
            self.skipped = Some((name.to_owned(), 1));
            return;
        }
        let value = || attribute(tag, "val").unwrap_or_default();
        match name {
            "p" => self.paragraphs.push(Paragraph::default()),
            "t" => self.in_text = true,
            "tab" if !self.is_empty() => self.write("\t"),
            "noBreakHyphen" => self.write("-"),
            "cr" => self.write("\n"),
            "br" => match attribute(tag, "type").as_deref() {
                Some("page") => self.break_page(),
                _ => self.write("\n"),
            },
            "lastRenderedPageBreak" => self.break_page(),
            "pStyle" => {
                let level = self.levels.get(&value()).copied();
                self.open(|paragraph| paragraph.level = level);
            }
            "ilvl" => {
                let level = value().parse().unwrap_or(0_usize).min(DEEPEST);
                self.open(|paragraph| paragraph.list = Some(level));
            }
            "tr" => self.rows.push(Vec::new()),
            "tc" => {
                if let Some(row) = self.rows.last_mut() {
                    row.push(String::new());
                }
            }
            "footnoteReference" | "endnoteReference" => {
                self.write(&format!("[^{}]", attribute(tag, "id").unwrap_or_default()));
            }
            "footnote" | "endnote" => match attribute(tag, "type") {
                Some(kind) if kind != "normal" => self.skipped = Some((name.to_owned(), 1)),
                _ => self.page += &format!("[^{}]: ", attribute(tag, "id").unwrap_or_default()),
            },
            _ => {}
        }
    }

    fn end(&mut self, name: &str) {
        if let Some((skipped, depth)) = &mut self.skipped {
            *depth -= usize::from(skipped == name);
            if *depth == 0 {
                self.skipped = None;
            }
            return;
        }
        match name {
            "t" => self.in_text = false,
            "p" => {
                if let Some(paragraph) = self.paragraphs.pop() {
                    self.end_paragraph(paragraph);
                }
            }
            "tr" => self.end_row(),
            "tbl" if self.rows.is_empty() => self.page.push('\n'),
            _ => {}
        }
    }

    fn open(&mut self, change: impl FnOnce(&mut Paragraph)) {
        if let Some(paragraph) = self.paragraphs.last_mut() {
            change(paragraph);
        }
    }

    /// Whether the open paragraph has no text yet.
    fn is_empty(&self) -> bool {
        self.paragraphs.last().is_none_or(|paragraph| paragraph.text.is_empty())
    }

    fn write(&mut self, text: &str) {
        self.made += text.len();
        self.open(|paragraph| paragraph.text += text);
    }

    fn end_paragraph(&mut self, paragraph: Paragraph) {
        let Paragraph { text, level, list } = paragraph;
        let text = text.trim_end();
        if text.trim_start().is_empty() {
            return;
        }
        if let Some(cell) = self.rows.last_mut().and_then(|row| row.last_mut()) {
            let between = if cell.is_empty() { "" } else { " " };
            *cell += &format!("{between}{}", text.replace('\n', " "));
            return;
        }
        let begin = match (level, list) {
            (Some(level), _) => format!("{} ", "#".repeat(level.clamp(1, 6))),
            (None, Some(level)) => format!("{}- ", "  ".repeat(level)),
            (None, None) => String::new(),
        };
        let after = if list.is_some() && level.is_none() { "\n" } else { "\n\n" };
        self.made += begin.len() + after.len();
        self.page += &format!("{begin}{text}{after}");
    }

    fn end_row(&mut self) {
        let Some(cells) = self.rows.pop() else { return };
        let row = format!("| {} |", cells.iter().map(|cell| cell.trim()).collect::<Vec<_>>().join(" | "));
        self.made += row.len();
        match self.rows.last_mut().and_then(|outer| outer.last_mut()) {
            Some(outer) => *outer += &row,
            None => {
                self.page += &row;
                self.page.push('\n');
                if take(&mut self.ends_page) {
                    self.end_page();
                }
            }
        }
    }

    /// Ends the page within a paragraph, or after the row of a table.
    fn break_page(&mut self) {
        if !self.rows.is_empty() {
            self.ends_page = true;
            return;
        }
        // In a box the page of what is around it goes on.
        if let [paragraph] = self.paragraphs.as_mut_slice() {
            let (level, list) = (paragraph.level, paragraph.list);
            let before = Paragraph { text: take(&mut paragraph.text), level, list };
            self.end_paragraph(before);
        }
        self.end_page();
    }

    /// Ends the page, if there is something on it: that it ends there may be said twice.
    fn end_page(&mut self) {
        if !self.page.trim().is_empty() {
            self.pages.push(take(&mut self.page));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::archive;

    const RELATIONS: &str = r#"<Relationships xmlns="r"><Relationship Id="a" Type="http://x/officeDocument"
        Target="word/document.xml"/></Relationships>"#;

    fn extracted(body: &str, others: &[(&str, &str)]) -> Result<Extracted, ExtractError> {
        let document = format!("<w:document xmlns:w='w'><w:body>{body}</w:body></w:document>");
        let mut members = vec![("_rels/.rels", RELATIONS), ("word/document.xml", &document)];
        members.extend_from_slice(others);
        let members: Vec<_> = members.iter().map(|(name, text)| (*name, text.as_bytes())).collect();
        crate::extract(&archive(&members))
    }

    fn paragraph(text: &str) -> String {
        format!("<w:p><w:r><w:t>{text}</w:t></w:r></w:p>")
    }

    #[test]
    fn a_body_is_markdown_with_headings_lists_tables_and_notes() {
        let styles =
            "<w:styles><w:style w:styleId='berschrift2'><w:name w:val='heading 2'/></w:style></w:styles>";
        let core = "<cp:core><dc:title> A &amp;  B</dc:title></cp:core>";
        let notes = "<w:footnotes><w:footnote w:id='0' w:type='separator'><w:p><w:r><w:t>no</w:t></w:r></w:p></w:footnote>\
            <w:footnote w:id='2'><w:p><w:r><w:t>a note</w:t></w:r></w:p></w:footnote></w:footnotes>";
        let row = |one: &str, two: &str| {
            format!(
                "<w:tr><w:tc>{}</w:tc><w:tc>{}{}</w:tc></w:tr>",
                paragraph(one),
                paragraph(two),
                paragraph("z")
            )
        };
        let body = format!(
            "<w:p><w:pPr><w:pStyle w:val='berschrift2'/></w:pPr><w:r><w:t>Head</w:t></w:r></w:p>\
             <w:p><w:r><w:t xml:space='preserve'>One </w:t></w:r><w:r><w:t>&lt;two&gt; &#233;</w:t><w:br/><w:t>three</w:t>\
             <w:footnoteReference w:id='2'/></w:r><w:del><w:r><w:delText>gone</w:delText></w:r></w:del></w:p>\
             <w:p><w:pPr><w:numPr><w:ilvl w:val='1'/></w:numPr></w:pPr><w:r><w:t>point</w:t></w:r></w:p>\
             <w:tbl>{}{}</w:tbl>\
             <w:p><w:r><mc:AlternateContent><mc:Choice><w:txbxContent>{}</w:txbxContent></mc:Choice><mc:Fallback>{}\
             </mc:Fallback></mc:AlternateContent></w:r></w:p>",
            row("a", "b"),
            row("c", "d"),
            paragraph("box"),
            paragraph("box"),
        );
        let others =
            [("word/styles.xml", styles), ("docProps/core.xml", core), ("word/footnotes.xml", notes)];
        let extracted = extracted(&body, &others).unwrap();
        assert_eq!(extracted.title.as_deref(), Some("A & B"));
        let text = "## Head\n\nOne <two> é\nthree[^2]\n\n  - point\n| a | b z |\n| c | d z |\n\nbox\n\n[^2]: a note\n\n";
        assert_eq!(extracted.pages, [text]);
    }

    #[test]
    fn pages_are_those_that_the_document_names() {
        let broken = "<w:p><w:r><w:t>one</w:t><w:br w:type='page'/></w:r></w:p>\
            <w:p><w:r><w:lastRenderedPageBreak/><w:t>two </w:t><w:lastRenderedPageBreak/><w:t>three</w:t></w:r></w:p>\
            <w:tbl><w:tr><w:tc><w:p><w:r><w:t>four</w:t><w:lastRenderedPageBreak/></w:r></w:p></w:tc></w:tr></w:tbl>";
        let pages = extracted(&format!("{broken}{}", paragraph("five")), &[]).unwrap().pages;
        let pages: Vec<&str> = pages.iter().map(|page| page.trim()).collect();
        assert_eq!(pages, ["one", "two", "three\n\n| four |", "five"]);
    }

    #[test]
    fn no_text_is_no_document_of_text_and_damage_is_named() {
        assert_eq!(extracted("<w:p/>", &[]), Err(ExtractError::NoText(0)));
        let error = extracted("<w:p><w:r></w:p>", &[]).unwrap_err();
        assert!(
            matches!(&error, ExtractError::Damaged(why) if why.starts_with("word/document.xml")),
            "{error}"
        );
    }

    #[test]
    fn entities_of_the_document_are_not_expanded_and_nothing_is_fetched() {
        let lols = (1..30).fold(String::from("<!ENTITY l0 'lol'>"), |all, n| {
            let one = format!("&l{};", n - 1);
            format!("{all}<!ENTITY l{n} '{}'>", one.repeat(10))
        });
        let document = format!(
            "<!DOCTYPE d [{lols}<!ENTITY file SYSTEM 'file:///etc/passwd'>]>\
             <w:document xmlns:w='w'><w:p><w:r><w:t>a&l29;b&file;c</w:t></w:r></w:p></w:document>"
        );
        let members = [("_rels/.rels", RELATIONS.as_bytes()), ("word/document.xml", document.as_bytes())];
        assert_eq!(crate::extract(&archive(&members)).unwrap().pages, ["a\u{fffd}b\u{fffd}c\n\n"]);
    }

    #[test]
    fn nesting_costs_no_stack_and_little_time() {
        let began = std::time::Instant::now();
        for unit in ["<w:p>", "<w:tbl><w:tr><w:tc>", "<w:moveFrom>", "<w:r>", "<a b='c'>"] {
            let body = unit.repeat((1 << 20) / unit.len());
            assert!(extracted(&body, &[]).is_err(), "{unit}");
        }
        assert!(began.elapsed() < std::time::Duration::from_secs(60));
    }
}

//! HTML as Markdown: pages of the web, chapters of books.
//!
//! A page is written by a stranger, so that it is read as a row of tags, in one pass and without a tree: nesting costs
//! neither time nor stack, whatever stands in it (docs/decisions/0022). What a person who looks at the page does not see
//! (scripts, styles, comments, what is marked hidden) is left out.

use std::collections::BTreeMap;

use html5gum::emitters::default::DefaultEmitter;
use html5gum::{HtmlString, Token, Tokenizer};
use url::Url;

/// Elements whose content is none of the page's text.
const SKIPPED: [&str; 11] = [
    "script", "style", "template", "noscript", "svg", "math", "iframe", "object", "canvas", "select",
    "textarea",
];

/// Elements that have no end.
const VOID: [&str; 13] =
    ["area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"];

/// Elements that stand in a paragraph of their own.
const BLOCKS: [&str; 29] = [
    "address",
    "article",
    "aside",
    "body",
    "caption",
    "center",
    "dd",
    "details",
    "dialog",
    "div",
    "dl",
    "dt",
    "fieldset",
    "figcaption",
    "figure",
    "footer",
    "form",
    "header",
    "hgroup",
    "html",
    "legend",
    "main",
    "nav",
    "p",
    "search",
    "section",
    "summary",
    "tbody",
    "thead",
];

/// Bytes of the longest link that is shown as one.
const LONGEST_LINK: usize = 2_048;

/// Bytes of Markdown that are made of a page at most; the page has no more than 10 MiB.
const MOST: usize = 12 << 20;

/// Levels of quotes and lists that are shown; deeper ones stand where these do.
const DEEPEST: usize = 8;

/// A page as Markdown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Markdown {
    /// Empty where it has none.
    pub title: String,
    pub text: String,
}

impl Markdown {
    /// The text below its title, unless it begins with that.
    pub fn with_title(self) -> String {
        let Self { title, text } = self;
        if title.is_empty() || text.starts_with(&format!("# {title}")) {
            return text;
        }
        format!("Title: {title}\n\n{text}")
    }
}

/// A page as Markdown; links are those of an address.
pub fn markdown(html: &str, base: &Url) -> Markdown {
    read(html, base, false)
}

/// A page of XHTML as Markdown: each element may end where it begins.
pub(crate) fn of_xhtml(xhtml: &str, base: &Url) -> Markdown {
    read(xhtml, base, true)
}

fn read(html: &str, base: &Url, is_xml: bool) -> Markdown {
    let mut emitter = DefaultEmitter::default();
    emitter.naively_switch_states(!is_xml);
    let mut page = Page::of(base.clone());
    for token in Tokenizer::new_with_emitter(html, emitter) {
        let Ok(token) = token;
        match token {
            Token::StartTag(tag) => {
                let name = name(&tag.name);
                page.start(&name, &attributes(tag.attributes), tag.self_closing);
                if is_xml && tag.self_closing && page.skipped.is_none() && !VOID.contains(&name.as_str()) {
                    page.end(&name);
                }
            }
            Token::EndTag(tag) => page.end(&name(&tag.name)),
            Token::String(text) => page.text(&String::from_utf8_lossy(&text)),
            Token::Comment(_) | Token::Doctype(_) | Token::Error(_) => {}
        }
        if page.out.len() > MOST {
            break;
        }
    }
    page.finish()
}

fn name(name: &HtmlString) -> String {
    String::from_utf8_lossy(name).into_owned()
}

type Attributes = BTreeMap<String, String>;

fn attributes(found: BTreeMap<HtmlString, html5gum::Spanned<HtmlString, ()>>) -> Attributes {
    let text = |bytes: &HtmlString| String::from_utf8_lossy(bytes).into_owned();
    found.into_iter().map(|(name, value)| (text(&name), text(&value))).collect()
}

enum List {
    Points,
    Numbers(u32),
}

struct Page {
    base: Url,
    out: String,
    title: Option<String>,
    /// The element that is skipped, with how often it stands in itself.
    skipped: Option<(String, u32)>,
    /// Whether the title is being read.
    in_title: bool,
    /// Line ends that are due before the next text: 1 or 2.
    breaks: usize,
    /// Whether white space is due before the next text.
    space: bool,
    quotes: usize,
    /// Quotes that the last text stood in: what stands between is of both or of none.
    quotes_before: usize,
    lists: Vec<List>,
    preformatted: bool,
    /// Where the text of a link begins, and where it leads.
    link: Option<(usize, Option<String>)>,
    /// Cells of the row that stand in the table, and whether a line below its head was drawn.
    row: Option<usize>,
    has_head: bool,
}

impl Page {
    fn of(base: Url) -> Self {
        Self {
            base,
            out: String::new(),
            title: None,
            skipped: None,
            in_title: false,
            breaks: 0,
            space: false,
            quotes: 0,
            quotes_before: 0,
            lists: Vec::new(),
            preformatted: false,
            link: None,
            row: None,
            has_head: false,
        }
    }

    fn start(&mut self, name: &str, with: &Attributes, self_closing: bool) {
        if let Some((skipped, depth)) = &mut self.skipped {
            *depth += u32::from(name == *skipped && !self_closing);
            return;
        }
        if name == "title" && self.title.is_none() {
            (self.in_title, self.title) = (true, Some(String::new()));
            return;
        }
        if name == "base"
            && let Some(base) = with.get("href").and_then(|href| self.base.join(href).ok())
        {
            self.base = base;
        }
        // A page that is shown once its script has run is hidden as a whole.
        let hides = !["html", "body"].contains(&name)
            && (with.contains_key("hidden")
                || with.get("aria-hidden").is_some_and(|value| value == "true")
                || with.get("style").is_some_and(|style| is_hidden(style)));
        if VOID.contains(&name) {
            if !hides {
                self.void(name, with);
            }
            return;
        }
        if hides || SKIPPED.contains(&name) {
            if !self_closing {
                self.skipped = Some((name.to_owned(), 1));
            }
            return;
        }
        match name {
            "h1" | "h2" | "h3" | "h4" | "h5" | "h6" => {
                self.block(2);
                let level = usize::from(name.as_bytes()[1] - b'0');
                self.mark(&format!("{} ", "#".repeat(level)));
            }
            "ul" | "menu" => self.list(List::Points),
            "ol" => {
                let first = with.get("start").and_then(|start| start.parse().ok()).unwrap_or(1);
                self.list(List::Numbers(first));
            }
            "li" => self.item(),
            "blockquote" => {
                self.block(2);
                self.quotes += 1;
            }
            "pre" => {
                self.block(2);
                self.mark("```\n");
                self.preformatted = true;
            }
            "table" => {
                self.block(2);
                (self.row, self.has_head) = (None, false);
            }
            "tr" => {
                self.block(1);
                self.row = Some(0);
            }
            "td" | "th" => self.cell(),
            "a" => {
                self.end_link();
                let href = with.get("href").and_then(|href| self.address(href));
                self.flow();
                self.link = Some((self.out.len(), href));
            }
            "strong" | "b" => self.inline("**"),
            "em" | "i" => self.inline("*"),
            "code" | "kbd" | "samp" | "tt" => self.inline("`"),
            "del" | "s" => self.inline("~~"),
            name if BLOCKS.contains(&name) => self.block(if self.row.is_some() { 0 } else { 2 }),
            _ => {}
        }
    }

    fn void(&mut self, name: &str, with: &Attributes) {
        match name {
            "br" => self.block(1),
            "hr" => {
                self.block(2);
                self.mark("---");
                self.block(2);
            }
            "img" => {
                // A picture is a link, and is not asked for (spec: security §10).
                let alt = with.get("alt").map_or("", |alt| alt.trim());
                if !alt.is_empty() {
                    let alt = alt.split_whitespace().collect::<Vec<_>>().join(" ");
                    self.text(&format!("[picture: {alt}]"));
                }
            }
            _ => {}
        }
    }

    fn end(&mut self, name: &str) {
        if name == "title" && self.in_title {
            self.in_title = false;
            return;
        }
        if let Some((skipped, depth)) = &mut self.skipped {
            *depth -= u32::from(name == *skipped);
            if *depth == 0 {
                self.skipped = None;
            }
            return;
        }
        match name {
            "h1" | "h2" | "h3" | "h4" | "h5" | "h6" => self.block(2),
            "ul" | "ol" | "menu" => {
                self.lists.pop();
                self.block(if self.lists.is_empty() { 2 } else { 1 });
            }
            "li" => self.block(1),
            "blockquote" => {
                self.block(2);
                self.quotes = self.quotes.saturating_sub(1);
            }
            "pre" if self.preformatted => {
                self.preformatted = false;
                if !self.out.ends_with('\n') {
                    self.out.push('\n');
                }
                self.out += "```";
                self.block(2);
            }
            "tr" => self.end_row(),
            "table" => {
                self.end_row();
                self.block(2);
            }
            "a" => self.end_link(),
            "strong" | "b" => self.inline("**"),
            "em" | "i" => self.inline("*"),
            "code" | "kbd" | "samp" | "tt" => self.inline("`"),
            "del" | "s" => self.inline("~~"),
            name if BLOCKS.contains(&name) => self.block(if self.row.is_some() { 0 } else { 2 }),
            _ => {}
        }
    }

    fn text(&mut self, text: &str) {
        if self.in_title {
            self.title.get_or_insert_default().push_str(text);
            return;
        }
        if self.skipped.is_some() {
            return;
        }
        if self.preformatted {
            self.out += text;
            return;
        }
        for (number, word) in text.split(char::is_whitespace).enumerate() {
            self.space |= number > 0;
            if word.is_empty() {
                continue;
            }
            self.flow();
            if self.row.is_some() {
                self.out += &word.replace('|', "\\|");
            } else {
                self.out += word;
            }
        }
    }

    /// Has what comes next begin a line, or a paragraph; in a row of a table it is one line.
    fn block(&mut self, breaks: usize) {
        self.space |= breaks == 0 || self.row.is_some();
        if self.row.is_none() {
            self.breaks = self.breaks.max(breaks);
        }
    }

    /// Writes the white space that is due.
    fn flow(&mut self) {
        if self.breaks > 0 && !self.out.is_empty() {
            let before = self.prefix();
            let trimmed = self.out.trim_end_matches(' ').len();
            self.out.truncate(trimmed);
            if self.breaks == 2 {
                let quotes = self.quotes.min(self.quotes_before).min(DEEPEST);
                self.out += &format!("\n{}", "> ".repeat(quotes).trim_end());
            }
            self.out += &format!("\n{before}");
        } else if self.breaks > 0 {
            self.out += &self.prefix();
        } else if self.space && !self.out.ends_with(['\n', ' ']) && !self.out.is_empty() {
            self.out.push(' ');
        }
        (self.breaks, self.space, self.quotes_before) = (0, false, self.quotes);
    }

    /// What stands at the beginning of a line.
    fn prefix(&self) -> String {
        let quotes = "> ".repeat(self.quotes.min(DEEPEST));
        let indent = "  ".repeat(self.lists.len().min(DEEPEST));
        quotes + &indent
    }

    fn mark(&mut self, mark: &str) {
        self.flow();
        self.out += mark;
    }

    /// Begins or ends what is marked within a line; in a link or in preformatted text it is not.
    fn inline(&mut self, mark: &str) {
        if !self.preformatted && self.link.is_none() && self.breaks == 0 && !self.space {
            self.out += mark;
        } else if !self.preformatted && self.link.is_none() {
            self.mark(mark);
        }
    }

    fn list(&mut self, list: List) {
        self.block(if self.lists.is_empty() { 2 } else { 1 });
        self.lists.push(list);
    }

    fn item(&mut self) {
        self.block(1);
        let mark = match self.lists.last_mut() {
            Some(List::Numbers(next)) => {
                *next = next.saturating_add(1);
                format!("{}. ", next.saturating_sub(1))
            }
            _ => "- ".to_owned(),
        };
        // The mark stands where the lines of the item would, less its own width.
        let inner = self.lists.pop();
        self.flow();
        self.lists.extend(inner);
        self.out += &mark;
    }

    fn cell(&mut self) {
        let Some(cells) = self.row else { return };
        self.row = None;
        if cells == 0 {
            self.mark("| ");
        } else {
            self.out += " | ";
        }
        (self.row, self.space) = (Some(cells + 1), false);
    }

    fn end_row(&mut self) {
        let Some(cells) = self.row.take() else { return };
        self.end_link();
        if cells > 0 {
            self.out += " |";
            if !std::mem::replace(&mut self.has_head, true) {
                self.block(1);
                self.mark(&format!("|{}", " --- |".repeat(cells)));
            }
        }
        self.space = false;
        self.block(1);
    }

    /// Closes a link; one without a text or without a place to go is none.
    fn end_link(&mut self) {
        let Some((from, Some(href))) = self.link.take() else { return };
        let said = self.out.get(from..).unwrap_or_default().trim();
        if !said.is_empty() && !said.contains('\n') {
            self.out.insert(from, '[');
            self.out += &format!("]({href})");
        }
    }

    /// Where a link leads, in full; nothing for what is no address of the web.
    fn address(&self, href: &str) -> Option<String> {
        let href = href.trim();
        if href.is_empty() || href.starts_with('#') {
            return None;
        }
        let url = self.base.join(href).ok().filter(|url| url.as_str().len() <= LONGEST_LINK)?;
        matches!(url.scheme(), "http" | "https" | "mailto")
            .then(|| url.as_str().replace('(', "%28").replace(')', "%29"))
    }

    fn finish(mut self) -> Markdown {
        self.end_link();
        if self.preformatted {
            self.out += "\n```";
        }
        let title = self.title.unwrap_or_default().split_whitespace().collect::<Vec<_>>().join(" ");
        Markdown { title, text: self.out.trim().to_owned() }
    }
}

/// Whether a style hides what it stands at.
fn is_hidden(style: &str) -> bool {
    let style: String = style.chars().filter(|c| !c.is_whitespace()).collect::<String>().to_ascii_lowercase();
    ["display:none", "visibility:hidden", "font-size:0;", "opacity:0;"]
        .iter()
        .any(|hides| style.contains(hides))
        || ["font-size:0", "opacity:0"].iter().any(|hides| style.ends_with(hides))
}

#[cfg(test)]
mod tests;

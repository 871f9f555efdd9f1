//! `tree export`.

use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use clap::ValueEnum as _;
use interop::ExportError;
use interop::own::{ExportOptions, ExportVariant, survey};
use loom::{NodeRow, RowError, TreeReader, Trust, ViewName};
use store::blobs::Blobs;
use store::home::HomeDir;
use store::{Import, Principal};
use text::mask::Masker;

use super::authors::naming;
use super::contents::ExportContents;
use super::source::StoreSource;
use super::target::Target;
use crate::app::App;
use crate::args::tree::{Export, FormatArg};
use crate::error::CommandError;
use crate::frontend::Frontend;
use crate::results::CommandOutcome;
use crate::results::maintenance::Exported;
use crate::rights::Asker;

/// Rows that are read at once.
const READ_AT_ONCE: usize = 256;

/// The largest blob, in bytes.
const MAX_BLOB_BYTES: u64 = 64 << 20;

/// Writes a tree. Says what is in it first; reads it in one snapshot, however large it is.
pub(crate) async fn export(app: &App, asker: &Asker, args: Export) -> Result<CommandOutcome, CommandError> {
    let (tree, view) = app.tree(asker, &args.tree).await?;
    let format = format(app, args.format, args.output.as_deref(), FormatArg::Jsonl, "--format");
    if args.with_context && format != FormatArg::Jsonl {
        return Err(CommandError::usage(
            "--with-context belongs to the format jsonl",
            "leave out --with-context, or give --format jsonl",
        ));
    }
    let work = Work {
        view,
        variant: match (args.share, args.with_context) {
            (true, _) => ExportVariant::Shared { annotations: false },
            (_, true) => ExportVariant::WithContext,
            _ => ExportVariant::Full,
        },
        format,
        masker: Arc::clone(&app.runtime.masker),
        frontend: Arc::clone(&app.frontend),
        blobs: blobs(app)?,
        imports: app.imports(asker, tree).await?,
    };
    let target = Target::open(app, args.output.as_deref())?;
    let mut sink = target.sink().map_err(|error| failed(error.into()))?;
    let write = move |rows: &dyn TreeReader| {
        let told =
            work.write(rows, &mut sink).and_then(|told| sink.flush().map(|()| told).map_err(Into::into));
        let is_outside = holds_outside(rows)?;
        Ok(told.map(|told| (told, sink, is_outside)))
    };
    let store = &app.runtime.store;
    let (told, written, is_outside) =
        store.read_whole(&asker.principal, tree, write).await?.map_err(failed)?;
    if let Some(digest) = written.digest().filter(|_| is_outside) {
        store.keep_outside_files(&Principal::Owner, vec![digest]).await?;
    }
    let (file, body) = target.finish(written).await?;
    Ok(CommandOutcome::Exported(Exported { file, contains: told.contains, left_out: told.left_out, body }))
}

/// Whether a tree holds text from outside: then a file of it is from there, too (spec: security §3).
fn holds_outside(rows: &dyn TreeReader) -> Result<bool, RowError> {
    let mut last = None;
    loop {
        let page = rows.nodes_in_order(last, READ_AT_ONCE)?;
        let Some(end) = page.last() else { return Ok(false) };
        last = Some((end.seq, end.place));
        let is_outside = |row: &NodeRow| row.node.trust == Trust::Outside && !row.node.content.is_empty();
        if page.iter().any(is_outside) {
            return Ok(true);
        }
    }
}

/// The format that is asked for, else that of the file's ending, else `usual`. A notice tells of an ending that names
/// none, and `how` to name another.
pub(crate) fn format(
    app: &App,
    asked: Option<FormatArg>,
    file: Option<&Path>,
    usual: FormatArg,
    how: &str,
) -> FormatArg {
    let Some(file) = file.filter(|_| asked.is_none()) else { return asked.unwrap_or(usual) };
    FormatArg::of_ending(file).unwrap_or_else(|| {
        if file.extension().is_some() {
            let shown = text::terminal::one_line(&file.to_string_lossy()).into_owned();
            let name = usual.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default();
            app.frontend.note(&format!(
                "the ending of {shown} names no format: it is written as {name}; {how} names another"
            ));
        }
        usual
    })
}

/// The blobs of the home.
fn blobs(app: &App) -> Result<Blobs, CommandError> {
    let failed = |error: &dyn std::fmt::Display| {
        CommandError::new("blobs", 6, error.to_string(), "run `drawloom doctor`")
    };
    let dir = app.runtime.home.dir(HomeDir::Blobs).map_err(|error| failed(&error))?;
    Blobs::open(&dir, MAX_BLOB_BYTES).map_err(|error| failed(&error))
}

struct Work {
    view: ViewName,
    variant: ExportVariant,
    format: FormatArg,
    masker: Arc<Masker>,
    frontend: Arc<dyn Frontend>,
    blobs: Blobs,
    imports: Vec<Import>,
}

impl Work {
    fn write(&self, rows: &dyn TreeReader, out: &mut dyn Write) -> Result<ExportContents, ExportError> {
        if self.format == FormatArg::Jsonl {
            return self.own(rows, out);
        }
        let told = ExportContents::path(self.format);
        self.tell(&told);
        if self.variant.is_shared() {
            // A secret may stand across two passages, so it is looked for in the whole.
            let mut whole = Vec::new();
            self.path(rows, &mut whole)?;
            if self.masker.finds_in(&whole) {
                return Err(ExportError::Secret { what: "the text".to_owned() });
            }
            out.write_all(&whole)?;
            self.frontend.note("no known secret is in it");
        } else {
            self.path(rows, out)?;
        }
        Ok(told)
    }

    fn tell(&self, told: &ExportContents) {
        for line in told.lines() {
            self.frontend.note(&line);
        }
    }

    fn own(&self, rows: &dyn TreeReader, out: &mut dyn Write) -> Result<ExportContents, ExportError> {
        let source = StoreSource::new(rows, &self.blobs);
        let told = ExportContents::own(&survey(&source, self.variant)?);
        self.tell(&told);
        let options = ExportOptions { variant: self.variant, secrets: Some(&self.masker) };
        let written = interop::own::export(&source, options, out)?;
        if !written.too_large.is_empty() {
            let count = written.too_large.len();
            self.frontend.note(&format!("{count} bodies are too large: only their hashes are in it"));
        }
        Ok(told)
    }

    /// What people and other programs read names strangers as such. The own format keeps the rows as they came: it
    /// carries their hashes, and whoever imports it names them anew.
    fn path(&self, rows: &dyn TreeReader, out: &mut dyn Write) -> Result<(), ExportError> {
        naming(rows, &self.imports, |rows| self.named_path(rows, out))
    }

    fn named_path(&self, rows: &dyn TreeReader, out: &mut dyn Write) -> Result<(), ExportError> {
        match self.format {
            FormatArg::Jsonl | FormatArg::Text => interop::plain::export(rows, &self.view, out),
            FormatArg::Markdown => interop::markdown::export(rows, &self.view, out),
            FormatArg::Html => interop::html::export(rows, &self.view, out),
            FormatArg::Annotations => interop::annotations::export(rows, &self.view, out),
            FormatArg::Training => interop::training::export(rows, &self.view, out),
        }
    }
}

fn failed(error: ExportError) -> CommandError {
    match error {
        ExportError::Rows(error) => error.into(),
        ExportError::Secret { what } => CommandError::refused(
            "secret",
            format!("{what} holds a known secret; nothing was written"),
            "remove it with `drawloom forget --text`, or export without --share",
        ),
        ExportError::Io(error) => {
            let full = error.kind() == std::io::ErrorKind::StorageFull;
            let (code, exit) = if full { ("disk_full", 6) } else { ("file", 2) };
            let hint = "name another file with -o";
            CommandError::new(code, exit, format!("the export could not be written: {error}"), hint)
        }
        error @ (ExportError::Json(_) | ExportError::NotCanonical(_)) => {
            CommandError::new("export", 6, error.to_string(), "this is a defect: please report it")
        }
    }
}

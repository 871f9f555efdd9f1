//! `import`.

use std::sync::Arc;

use interop::import::{ImportChange, ImportPlan, ImportRefusal, Provenance, plan_copy, plan_import};
use interop::own::{ImportedFile, ReadProblem};
use loom::{Digest, Millis, TreeId, TreeReader};
use store::{AttachedWrites, GenerationState, ImportNote, ImportedTree, StoreError};
use workspace::Accept;

use super::file::{Parser, named, read_file};
use super::imported_tree::{self, note};
use crate::app::App;
use crate::args::maintenance::ImportArgs;
use crate::error::CommandError;
use crate::results::CommandOutcome;
use crate::results::maintenance::{self, Skipped};
use crate::rights::Asker;

/// How often additions to a known tree are planned again when something else was first.
const TRIES: usize = 8;

/// Takes in a file: a new tree, what is new of a known one, or a copy. `--dry-run` goes as far as it can without
/// writing, refusals included.
pub(crate) async fn import(
    app: &App,
    asker: &Asker,
    args: ImportArgs,
) -> Result<CommandOutcome, CommandError> {
    app.runtime.require_space()?;
    let format = args.format.as_deref().map(named).transpose()?;
    let input = app.open_file(&args.path, Accept::RegularOrPipe)?;
    let path = args.path.clone();
    let file = tokio::task::spawn_blocking(move || read_file(input, &path, format)).await;
    let file = Arc::new(file.map_err(|_| StoreError::Closed)??);
    let import = Importing { app, asker, file, dry_run: args.dry_run, skipped: Vec::new() };
    import.run(args.copy).await
}

struct Importing<'a> {
    app: &'a App,
    asker: &'a Asker,
    file: Arc<ImportedFile>,
    dry_run: bool,
    skipped: Vec<Skipped>,
}

impl Importing<'_> {
    async fn run(mut self, copy: bool) -> Result<CommandOutcome, CommandError> {
        for problem in &self.file.problems {
            let why = text::terminal::one_line(&problem.why).into_owned();
            self.skipped.push(Skipped { at: at(problem), why });
        }
        if self.file.further > 0 {
            let why = format!("{} further problems are not listed", self.file.further);
            self.skipped.push(Skipped { at: "file".to_owned(), why });
        }
        self.warn_of_secrets()?;
        let (tree, trees, nodes) = if copy { self.copy().await? } else { self.same().await? };
        let named_tree = if self.dry_run {
            None
        } else {
            let entry = self.app.runtime.store.tree(&self.asker.principal, tree).await?;
            Some((crate::tree::tree_named(&entry.short_id, &entry.title), entry.short_id))
        };
        if let Some((_, short_id)) = named_tree.as_ref().filter(|_| nodes > 0) {
            let author = Provenance { file: self.file.digest }.author(&self.asker.author);
            self.app.frontend.note(&format!(
                "its authors are shown as {author} and are not trusted; `drawloom tree trust {short_id}` trusts them"
            ));
        }
        Ok(CommandOutcome::Imported(maintenance::Imported {
            tree: Some(tree),
            named_tree: named_tree.map(|(named, _)| named),
            trees,
            sessions: 0,
            nodes,
            left_out: (copy && !self.file.problems.is_empty()).then_some(self.file.lines_left_out),
            skipped: self.skipped,
            dry_run: self.dry_run,
        }))
    }

    fn now(&self) -> Millis {
        self.app.now()
    }

    fn note(&self) -> ImportNote {
        note(Provenance { file: self.file.digest }, self.now())
    }

    async fn same(&mut self) -> Result<(TreeId, u64, u64), CommandError> {
        let tree = self.file.header.tree.id;
        match self.app.runtime.store.tree(&self.asker.principal, tree).await {
            Ok(_) => self.add(tree).await.map(|nodes| (tree, 0, nodes)),
            Err(StoreError::NotFound(_)) => self.import_whole().await.map(|nodes| (tree, 1, nodes)),
            Err(error) => Err(error.into()),
        }
    }

    /// A tree that is not here, whole.
    async fn import_whole(&mut self) -> Result<u64, CommandError> {
        let plan = plan_import(&self.file, None, &self.asker.author.id, self.now()).map_err(refused)?;
        self.tell(&plan);
        self.require_agreement()?;
        let (imported, strange) = imported_tree::whole(&self.file, self.note())?;
        self.skipped.extend(strange.into_iter().map(|seq| Skipped {
            at: format!("seal of operation {seq}"),
            why: "it is not signed by its key".to_owned(),
        }));
        self.take(imported).await
    }

    async fn take(&self, imported: ImportedTree) -> Result<u64, CommandError> {
        let nodes = imported.nodes.len() as u64;
        if !self.dry_run {
            let _keeping = self.keep_blobs().await?;
            Box::pin(self.app.runtime.store.import_tree(&self.asker.principal, imported)).await?;
        }
        Ok(nodes)
    }

    /// What is new of a tree that is here.
    async fn add(&self, tree: TreeId) -> Result<u64, CommandError> {
        let mut tries = 0;
        loop {
            let (file, now, by) = (Arc::clone(&self.file), self.now(), self.asker.author.id.clone());
            let plan = self
                .app
                .read(self.asker, tree, move |rows: &dyn TreeReader| {
                    Ok(plan_import(&file, Some(rows), &by, now))
                })
                .await?
                .map_err(refused)?;
            if tries == 0 {
                self.tell(&plan);
            }
            let ImportChange::Added(added) = plan.change else { return Ok(0) };
            let nodes = added.nodes.len() as u64;
            if self.dry_run {
                return Ok(nodes);
            }
            let _keeping = self.keep_blobs().await?;
            let with = self.with(&added.nodes)?;
            match Box::pin(self.app.runtime.store.apply(&self.asker.principal, tree, *added, with)).await {
                Err(StoreError::Conflict(_)) if tries < TRIES => tries += 1,
                done => return Ok(done.map(|_| nodes)?),
            }
        }
    }

    /// What goes with nodes that are added: what was sent for them, and where they came from.
    fn with(&self, nodes: &[loom::Node]) -> Result<AttachedWrites, CommandError> {
        let mut with = AttachedWrites { imported: Some(self.note()), ..AttachedWrites::default() };
        for (generation, response) in imported_tree::sent_for(&self.file, nodes)? {
            with.outcomes.push(store::GenerationEnd {
                generation: generation.row.id,
                claim: generation.claim.clone(),
                state: GenerationState::Done,
                response,
                usage: None,
                at: self.now(),
            });
            with.generations.push(generation);
        }
        let added: std::collections::BTreeSet<_> = nodes.iter().map(|node| node.id).collect();
        let shown = self.file.injections.iter().filter(|shown| added.contains(&shown.node));
        with.injections.extend(shown.cloned());
        for node in nodes {
            if self.file.tree.node(node.id)?.is_some_and(|row| row.purged) {
                with.absent.push(node.id);
            }
        }
        Ok(with)
    }

    async fn copy(&mut self) -> Result<(TreeId, u64, u64), CommandError> {
        let (file, now) = (Arc::clone(&self.file), self.now());
        let copy =
            self.app.runtime.ids.with(|entropy| plan_copy(&file, &self.asker.author.id, now, entropy))?;
        let copy = copy.map_err(refused)?;
        let tree = copy.tree;
        self.app.frontend.note("it is a copy with new ids: text of models in it is unattested");
        let imported = imported_tree::copied(copy, self.note())?;
        Ok((tree, 1, self.take(imported).await?))
    }

    /// A tree that contradicts itself is not taken in: its texts would be shown as something they are not.
    fn require_agreement(&self) -> Result<(), CommandError> {
        let report = self.file.verify(&Parser(&self.file.materials))?;
        // What reading found is behind what the tree itself has, and was told as skipped.
        let own = report.problems.len().saturating_sub(self.file.problems.len());
        let wrong = report.problems.iter().take(own).find(|problem| problem.gap.is_none());
        let Some(wrong) = wrong else { return Ok(()) };
        let what = match (wrong.node, wrong.seq) {
            (Some(node), _) => format!("node {node}"),
            (None, Some(seq)) => format!("operation {seq}"),
            (None, None) => "the tree".to_owned(),
        };
        Err(refusal(&format!("{what}: {}", wrong.why)))
    }

    fn tell(&self, plan: &ImportPlan) {
        let frontend = &self.app.frontend;
        if plan.skipped > 0 {
            frontend.note(&format!("{} texts of the file are already in this home", plan.skipped));
        }
        if plan.missing_texts > 0 {
            frontend.note(&format!(
                "{} texts of the file are not added: in this home they were forgotten, or left out of a shared file; \
                 `--copy` takes the texts of the file as a tree of its own",
                plan.missing_texts
            ));
        }
        if plan.missing_requests > 0 {
            frontend.note(&format!(
                "{} requests and responses of the file are not added: they belong to texts that were here before; \
                 a new home (`--home DIR`) takes all of the file",
                plan.missing_requests
            ));
        }
        if plan.history > 0 {
            frontend.note(&format!("{} operations of the file were not imported", plan.history));
        }
        if let Some(odd) = plan.odd_times.first() {
            let count = plan.odd_times.len();
            frontend.note(&format!(
                "{count} texts have times before 2000 or in the future (the first is node {}); they are kept",
                odd.node
            ));
        }
    }

    /// Secrets are masked where text is typed; the hashes of a file would no longer fit, so here they are named.
    fn warn_of_secrets(&self) -> Result<(), CommandError> {
        let masker = &self.app.runtime.masker;
        let holds = |row: &loom::NodeRow| !masker.mask_entering(&row.node.text()).spans.is_empty();
        let found = imported_tree::nodes(&self.file)?.iter().filter(|row| holds(row)).count();
        if found > 0 {
            self.app.frontend.note(&format!(
                "{found} texts of the file hold a known secret or what looks like one: `drawloom forget --text` removes it"
            ));
        }
        Ok(())
    }

    /// Pictures and sounds, before the nodes that show them: one without a node is in nobody's way.
    async fn keep_blobs(&self) -> Result<agent::MediaHold, CommandError> {
        let blob = |digest: &Digest| FileBlob { file: Arc::clone(&self.file), digest: *digest };
        let all: Vec<FileBlob> = self.file.materials.blobs.keys().map(blob).collect();
        Ok(self.app.runtime.keep_blobs(all).await?)
    }
}

/// A picture or a sound of a file.
struct FileBlob {
    file: Arc<ImportedFile>,
    digest: Digest,
}

impl AsRef<[u8]> for FileBlob {
    fn as_ref(&self) -> &[u8] {
        self.file.materials.blobs.get(&self.digest).map_or(&[], Vec::as_slice)
    }
}

fn at(problem: &ReadProblem) -> String {
    if problem.line == 0 { "file".to_owned() } else { format!("line {}", problem.line) }
}

fn refused(error: ImportRefusal) -> CommandError {
    match error {
        ImportRefusal::Broken { line: 0, why } => refusal(&why),
        ImportRefusal::Broken { line, why } => refusal(&format!("line {line}: {why}")),
        ImportRefusal::Differs { what, id } => {
            refusal(&format!("{what} {id} differs from the one in this home"))
        }
        ImportRefusal::Copy(why) => CommandError::new(
            "refused",
            2,
            format!("no copy can be made: {}", text::terminal::one_line(&why)),
            "use another file",
        ),
        ImportRefusal::Rows(error) => error.into(),
    }
}

fn refusal(why: &str) -> CommandError {
    CommandError::new(
        "refused",
        2,
        format!("{}; nothing was imported", text::terminal::one_line(why)),
        "use another file, or import what is complete as a copy with new ids: --copy",
    )
}

//! From a place in a tree to a request whose every byte is accounted for, durable before it is sent.

use std::sync::Arc;

use context::body::{self, Base};
use context::dialogue::{DialogueRequest, dialogue};
use context::document::{DocumentRequest, document};
use context::manifest::{Endpoint, VERSION};
use context::{Assembled, Budget, ContextError, Estimator, Manifest, ModelRef, StoredBody, Way, cover};
use loom::content::NotCanonical;
use loom::{
    Digest, GenerationId, GenerationRow, Mode, NodeId, Op, PositionId, Purpose, RowError, Rows, Seq, TreeId,
    ViewName, render, resolve,
};
use model::{Encoded, Model, Params};
use store::{Bytes, Fence, Holder, NewGeneration, Tenure, With};

use crate::app::App;
use crate::error::CommandError;
use crate::rights::Asker;
use crate::stored;

/// What is asked, of whom, where.
#[derive(Clone)]
pub(crate) struct Ask {
    pub(crate) tree: TreeId,
    pub(crate) view: ViewName,
    /// Where to continue; the view's tip, if none.
    pub(crate) from: Option<PositionId>,
    /// Whether the view goes to the first node that is made.
    pub(crate) follow: bool,
    /// Whether drafts count as text: for a look ahead.
    pub(crate) drafts: bool,
    pub(crate) model: Arc<dyn Model>,
    pub(crate) agent: String,
    pub(crate) params: Params,
    pub(crate) context: Vec<NodeId>,
    pub(crate) instruction: Vec<NodeId>,
    /// The operation that committed the drafts before it.
    pub(crate) part_of: Option<Seq>,
}

/// A request, ready to be made durable and sent.
pub(crate) struct Prepared {
    pub(crate) encoded: Encoded,
    pub(crate) manifest: Manifest,
    pub(crate) bytes: Vec<u8>,
    pub(crate) digest: Digest,
    pub(crate) assembled: Assembled,
    pub(crate) parent: PositionId,
    parent_node: NodeId,
    middle: Vec<u8>,
    /// Bodies its own rests on, which must be kept as long as it is.
    cited: Vec<Digest>,
}

/// A request that is durable.
pub(crate) struct Begun {
    pub(crate) row: GenerationRow,
    pub(crate) tenure: Tenure,
}

/// What is read of the tree in one snapshot.
struct Read {
    assembled: Result<Assembled, ContextError>,
    parent: PositionId,
    parent_node: NodeId,
    base: Option<Earlier>,
}

/// An earlier request on the path, against whose body a new one is stored.
struct Earlier {
    manifest: Digest,
    /// Its body and those it rests on.
    chain: Vec<StoredBody>,
    body: Vec<u8>,
}

impl Ask {
    /// Assembles and encodes the request.
    pub(crate) async fn prepare(&self, app: &App, asker: &Asker) -> Result<Prepared, CommandError> {
        let info = self.model.info();
        let asked = self.params.max_tokens.map(u64::from);
        let budget = Budget::new(u64::from(info.window), u64::from(info.output_limit), asked);
        let estimator = Estimator::default();
        let (ask, way, fit) = (self.clone(), Way::of(info), estimator.clone());
        let read = app.read(asker, self.tree, move |rows| ask.read(rows, way, budget, &fit)).await?;
        let assembled = read.assembled?;
        let encoded = self.model.encode(&assembled.prompt, &self.params)?;
        let segments = cover(&encoded, &assembled.pieces, &estimator)?;
        let base = read.base.as_ref().and_then(|earlier| {
            let stored = earlier.chain.first()?;
            Some(Base { manifest: earlier.manifest, stored, body: &earlier.body })
        });
        let (stored, middle) = body::store(encoded.body(), base);
        let middle = middle.to_vec();
        let rests_on = if stored.delta.is_some() {
            read.base.map(|earlier| earlier.chain).unwrap_or_default()
        } else {
            Vec::new()
        };
        let manifest = Manifest {
            version: VERSION,
            purpose: Purpose::Turn,
            tree: self.tree,
            view: self.view.clone(),
            model: ModelRef {
                provider: info.provider.clone(),
                name: info.name.clone(),
                dialect: encoded.dialect(),
                place: info.place,
            },
            endpoint: Endpoint {
                path: encoded.path().to_owned(),
                stream: encoded.stream(),
                header_names: self.model.header_names().iter().map(|name| (*name).to_owned()).collect(),
            },
            way: assembled.way,
            budget,
            tokens: assembled.tokens,
            fit: estimator.fit,
            tainted_by: assembled.tainted_by,
            held: assembled.held.clone(),
            segments,
            runs: assembled.runs.clone(),
            body: stored,
        };
        let bytes = manifest.to_bytes().map_err(|NotCanonical(why)| {
            CommandError::new(
                "manifest",
                6,
                format!("the manifest cannot be written: {why}"),
                "this is a defect: please report it",
            )
        })?;
        let digest = Digest::of(&bytes);
        Ok(Prepared {
            encoded,
            manifest,
            bytes,
            digest,
            assembled,
            parent: read.parent,
            parent_node: read.parent_node,
            middle,
            cited: rests_on.into_iter().map(|stored| stored.middle).collect(),
        })
    }

    fn read(
        &self,
        rows: &dyn Rows,
        way: Way,
        budget: Budget,
        estimator: &Estimator,
    ) -> Result<Read, RowError> {
        let parent = match self.from {
            Some(from) => from,
            None => render::tip(rows, &self.view)?,
        };
        let parent_node = resolve::shown(rows, &self.view, parent)?;
        let (view, from) = (self.view.clone(), self.from);
        let (context, instruction) = (self.context.clone(), self.instruction.clone());
        let assembled = match rows.tree()?.mode {
            Mode::Buffer => {
                let drafts = self.drafts;
                document(
                    rows,
                    &DocumentRequest { view, from, way, budget, drafts, context, instruction },
                    estimator,
                )
            }
            Mode::Dialogue => {
                dialogue(rows, &DialogueRequest { view, from, budget, context, instruction }, estimator)
            }
        };
        Ok(Read { assembled, parent, parent_node, base: base(rows, parent)? })
    }
}

/// Positions looked at upwards for an earlier request to store the body against.
const LOOK_UP: usize = 8;

/// The nearest earlier request on the path.
fn base(rows: &dyn Rows, parent: PositionId) -> Result<Option<Earlier>, RowError> {
    for position in rows.upwards(parent, LOOK_UP)? {
        let generation = rows.node(position.id.original())?.and_then(|row| row.node.generation);
        let Some(generation) = generation else { continue };
        let Some(row) = rows.generation(generation)? else { continue };
        let Some(manifest) = stored::manifest(rows, row.manifest)? else { continue };
        let Some(chain) = stored::chain(rows, &manifest)? else { continue };
        if let Some(body) = stored::rebuilt(rows, &chain)? {
            return Ok(Some(Earlier { manifest: row.manifest, chain, body }));
        }
    }
    Ok(None)
}

impl Prepared {
    /// A request that was sent before, with a generation of its own under the same manifest.
    pub(crate) async fn again(
        app: &App,
        asker: &Asker,
        encoded: Encoded,
        earlier: GenerationRow,
        manifest: Manifest,
    ) -> Result<(Self, Begun), CommandError> {
        let digest = earlier.manifest;
        let tree = earlier.tree;
        let (bytes, middle, cited) = app
            .read(asker, tree, {
                let manifest = manifest.clone();
                move |rows| {
                    let chain = stored::chain(rows, &manifest)?.unwrap_or_default();
                    let middle = rows.body(manifest.body.middle)?.unwrap_or_default();
                    let cited: Vec<Digest> = chain.iter().skip(1).map(|stored| stored.middle).collect();
                    Ok((rows.manifest(digest)?.unwrap_or_default(), middle, cited))
                }
            })
            .await?;
        let segments = manifest.segments.iter().filter_map(|segment| segment.trust);
        let assembled = Assembled {
            prompt: model::Prompt::Raw(Vec::new()),
            pieces: Vec::new(),
            trust: segments.min().unwrap_or(loom::Trust::Agent),
            runs: manifest.runs.clone(),
            way: manifest.way,
            held: manifest.held.clone(),
            new_start: None,
            inputs: Vec::new(),
            tokens: manifest.tokens,
            tainted_by: manifest.tainted_by,
        };
        let prepared = Self {
            encoded,
            bytes,
            digest,
            assembled,
            parent: earlier.parent,
            parent_node: earlier.parent_node,
            middle,
            cited,
            manifest,
        };
        let begun = prepared.durable(app, asker, earlier).await?;
        Ok((prepared, begun))
    }

    /// Writes manifest and generation row, with ids of its own.
    async fn durable(&self, app: &App, asker: &Asker, like: GenerationRow) -> Result<Begun, CommandError> {
        let mut row = GenerationRow { id: app.new_id::<GenerationId>()?, ..like };
        for node in &mut row.reserved {
            *node = app.new_id()?;
        }
        let tenure = Tenure { owner: Holder::new(app.instance.to_string()), fence: Fence(1) };
        let generation = NewGeneration {
            row: row.clone(),
            tenure: tenure.clone(),
            manifest: self.bytes.clone(),
            bodies: vec![Bytes::new(self.middle.clone())],
            cited: self.cited.clone(),
        };
        app.apply_rows(asker, row.tree, With { generations: vec![generation], ..With::nothing() }).await?;
        Ok(Begun { row, tenure })
    }

    /// Makes manifest and generation row durable, in one transaction. Nothing is sent before.
    pub(crate) async fn begin(&self, app: &App, asker: &Asker, ask: &Ask) -> Result<Begun, CommandError> {
        if let Some(place) = self.assembled.new_start {
            let op = Op::Compact { to: Some(place), by_hand: false };
            app.change(asker, ask.tree, &ask.view, op).await?;
        }
        let like = GenerationRow {
            id: app.new_id::<GenerationId>()?,
            tree: ask.tree,
            view: ask.view.clone(),
            purpose: Purpose::Turn,
            manifest: self.digest,
            profile: None,
            parent: self.parent,
            parent_node: self.parent_node,
            reserved: vec![self.parent_node; ask.params.n.max(1) as usize],
            runs: self.assembled.loom_runs(),
        };
        self.durable(app, asker, like).await
    }
}

//! Large trees, quickly: plans made by hand, with as many nodes in an operation as one likes.
//!
//! Planned one by one, a million nodes take as many transactions. So rows are made here as `loom` plans them, with
//! its own functions for hashes, counts and jump pointers, and applied by the store like any plan; what comes of
//! it verifies ([`super::harness::Harness::verify`]). A tree is a trunk, the path of `main`, with branches and versions
//! along it.

use std::collections::VecDeque;
use std::sync::Arc;

use commands::CommandError;
use loom::content::NotCanonical;
use loom::id::Entropy;
use loom::operation::TimelineEffect;
use loom::record::{Links, chain_hash};
use loom::{
    Author, AuthorKind, Block, CellChange, CellKey, CellValue, Counts, Digest, Finish, GenerationId,
    GenerationPlace, GenerationRow, IdSource, Millis, ModelSource, Node, NodeId, OpKind, Operation, Origin,
    OriginRole, PathDigest, Plan, Position, PositionId, PositionKind, Purpose, ResponsePart, RowError, Run,
    SourceKind, Sums, TreeId, Trust, ViewName,
};
use store::{
    Applied, AttachedWrites, Claim, Fence, GenerationEnd, GenerationState, LeaseOwner, NewGeneration,
    Principal, Store, StoreError,
};
use tokio::task::JoinSet;

use super::corpus::Corpus;
use super::harness::{Harness, failed};

/// What a tree is to be like.
#[derive(Debug, Clone, Copy)]
pub(super) struct TreeShape {
    /// Nodes of the tree, without the genesis.
    pub(super) nodes: u64,
    /// Whether it has branches and versions; else it is one path.
    pub(super) branched: bool,
    pub(super) per_operation: usize,
    /// How many of the last nodes have a model among them that answered what stood above: the marks of drift
    /// have something to look at.
    pub(super) answered: u64,
}

/// A tree that was made.
#[derive(Debug)]
pub(super) struct FixtureTree {
    pub(super) tree: TreeId,
    /// The path of `main`, without the genesis.
    pub(super) trunk: Vec<PositionId>,
    /// The first positions of the newest branches.
    pub(super) branches: Vec<PositionId>,
    pub(super) bytes: u64,
}

/// Makes a tree of a shape.
pub(super) async fn build_tree(
    harness: &Harness,
    corpus: &mut Corpus,
    shape: TreeShape,
) -> Result<FixtureTree, CommandError> {
    let tree = harness.new_tree("").await?;
    let root = harness.read(tree, |rows| {
        let root = rows.tree()?.root;
        let position = rows.position(root)?.ok_or_else(|| RowError::missing("position", root))?;
        let node = rows.node(root.original())?.ok_or_else(|| RowError::missing("node", root))?;
        Ok((position, node.node.chain_hash))
    });
    let (position, chain) = root.await?;
    let mut builder = TreeBuilder::new(tree, corpus, Anchor { position, chain, jump_depth: 0 });
    let mut queue = Queue::new(Arc::clone(&harness.app.runtime.store), tree, shape.per_operation);
    while builder.made < shape.nodes {
        let left = shape.nodes - builder.made;
        builder.grow_trunk(left <= shape.answered && left.is_multiple_of(2))?;
        queue.send_full(&mut builder).await?;
        if !shape.branched {
            continue;
        }
        if builder.made < shape.nodes && builder.corpus.below(10) == 0 {
            builder.add_version()?;
        }
        // From where the trunk just went on, so that the branch is a sibling of its newest passage.
        let most = shape.nodes.saturating_sub(builder.made + 1) as usize;
        let length = (1 + builder.corpus.below(16)).min(most);
        for _ in 0..length {
            builder.grow_branch()?;
            queue.send_full(&mut builder).await?;
        }
        builder.end_branch();
    }
    queue.send(&mut builder).await?;
    queue.wait(0).await?;
    let trunk = builder.trunk.iter().skip(1).map(|anchor| anchor.position.id).collect();
    Ok(FixtureTree { tree, trunk, branches: builder.branches.into(), bytes: builder.bytes })
}

/// A node that others can be hung under.
#[derive(Debug, Clone)]
struct Anchor {
    position: Position,
    chain: Digest,
    /// The depth of the position its jump pointer names.
    jump_depth: u32,
}

/// Branches that are remembered, for switching.
const REMEMBERED: usize = 1_000;

/// Time between two nodes, in ms.
const PACE: i64 = 700;

struct TreeBuilder<'a> {
    tree: TreeId,
    corpus: &'a mut Corpus,
    ids: IdSource,
    now: Millis,
    made: u64,
    bytes: u64,
    /// The path of `main`, by depth.
    trunk: Vec<Anchor>,
    /// The branch that grows: it leaves the trunk above its newest passage.
    branch: Vec<Anchor>,
    branches: VecDeque<PositionId>,
    /// The tip as the plans sent so far leave it.
    tip: PositionId,
    plan: Plan,
    with: AttachedWrites,
}

impl<'a> TreeBuilder<'a> {
    fn new(tree: TreeId, corpus: &'a mut Corpus, root: Anchor) -> Self {
        Self {
            tree,
            corpus,
            ids: IdSource::default(),
            now: Millis(1_700_000_000_000),
            made: 0,
            bytes: 0,
            tip: root.position.id,
            trunk: vec![root],
            branch: Vec::new(),
            branches: VecDeque::new(),
            plan: Plan::default(),
            with: AttachedWrites::nothing(),
        }
    }

    /// Adds a passage at the end of the path; a model's, in answer to all that stands above, if `answered`.
    fn grow_trunk(&mut self, answered: bool) -> Result<(), CommandError> {
        let fork = self.trunk.len() - 1;
        let parent = self.trunk[fork].clone();
        let mut node = self.node(&parent, None)?;
        if answered {
            self.answer(&mut node, &parent)?;
        }
        let anchor = self.hang(node, &parent, fork, Links::default())?;
        self.trunk.push(anchor);
        Ok(())
    }

    /// Adds a passage to the branch, or begins one.
    fn grow_branch(&mut self) -> Result<(), CommandError> {
        let fork = self.trunk.len().saturating_sub(2);
        let parent = self.branch.last().unwrap_or(&self.trunk[fork]).clone();
        let node = self.node(&parent, None)?;
        let anchor = self.hang(node, &parent, fork, Links::default())?;
        self.branch.push(anchor);
        Ok(())
    }

    /// Ends the branch; the newest ones are remembered.
    fn end_branch(&mut self) {
        if let Some(first) = self.branch.first() {
            if self.branches.len() == REMEMBERED {
                self.branches.pop_front();
            }
            self.branches.push_back(first.position.id);
        }
        self.branch.clear();
    }

    /// Adds a version of the newest passage, which is not chosen.
    fn add_version(&mut self) -> Result<(), CommandError> {
        let [.., parent, original] = &self.trunk[..] else { return Ok(()) };
        let (parent, position, chain) = (parent.clone(), original.position.id, original.chain);
        let mut node = self.node(&parent, Some(position))?;
        node.edited_from = Some(position.original());
        node.kept_hash = Some(node.content_hash().map_err(not_hashed)?);
        let links = Links { position: Some(chain), edited_from: Some(chain) };
        node.chain_hash = chain_hash(&node, links).map_err(not_hashed)?;
        self.plan.nodes.push(node);
        Ok(())
    }

    /// A node with a text of its own: at a position, or at a new one; people and models take turns.
    fn node(&mut self, parent: &Anchor, at: Option<PositionId>) -> Result<Node, CommandError> {
        self.made += 1;
        self.now.0 += PACE;
        let random = self.random();
        let id: NodeId = Entropy { ids: &mut self.ids, random }.next(self.now);
        let position = at.unwrap_or(id.as_position());
        let text = self.corpus.passage();
        self.bytes += text.len() as u64;
        let (counts, term) = (Counts::of(&text), PathDigest::term(position, &text));
        let content = vec![Block::text(text)];
        let model = self.made.is_multiple_of(2) && at.is_none();
        Ok(Node {
            id,
            tree: self.tree,
            position,
            author: if model { model_author() } else { Author::owner() },
            role: None,
            created_at: self.now,
            kept_hash: None,
            content: content.into(),
            edited_from: None,
            quote: None,
            origins: vec![Origin {
                role: OriginRole::Parent,
                node: parent.position.id.original(),
                chain: parent.chain,
            }],
            source: None,
            generation: None,
            trust: if model { Trust::Agent } else { Trust::Owner },
            finish: model.then_some(Finish::Stop),
            counts,
            term,
            chain_hash: Digest::ZERO,
        })
    }

    /// Hangs a node under `parent`, at a position of its own. The path to it leaves the trunk at depth `fork`.
    fn hang(
        &mut self,
        mut node: Node,
        parent: &Anchor,
        fork: usize,
        links: Links,
    ) -> Result<Anchor, CommandError> {
        let at = |depth: u32| match (depth as usize).checked_sub(fork + 1) {
            Some(above) => &self.branch[above],
            None => &self.trunk[depth as usize],
        };
        let jump = at(parent.jump_depth);
        let jump_jump = at(jump.jump_depth);
        let target = Position::child_jump(&parent.position, &jump.position, &jump_jump.position);
        let jump_depth =
            if target == parent.position.id { parent.position.depth } else { jump_jump.position.depth };
        node.chain_hash = chain_hash(&node, links).map_err(not_hashed)?;
        let position = Position {
            id: node.position,
            tree: self.tree,
            parent: Some(parent.position.id),
            kind: PositionKind::Path,
            role: None,
            depth: parent.position.depth + 1,
            jump: target,
            above: parent.position.below(),
            own: Sums { counts: node.counts, digest: node.term },
        };
        let anchor = Anchor { position: position.clone(), chain: node.chain_hash, jump_depth };
        self.plan.positions.push(position);
        self.plan.nodes.push(node);
        Ok(anchor)
    }

    /// Makes a node a model's answer, with the generation that sent the whole path above it.
    fn answer(&mut self, node: &mut Node, parent: &Anchor) -> Result<(), CommandError> {
        let Some(first) = self.trunk.get(1).map(|first| first.position.clone()) else { return Ok(()) };
        let random = self.random();
        let id: GenerationId = Entropy { ids: &mut self.ids, random }.next(self.now);
        let manifest = format!("{{\"generated\":\"{id}\"}}").into_bytes();
        let digest = Digest::of(&manifest);
        let sent = parent.position.below().minus(first.above);
        let row = GenerationRow {
            id,
            tree: self.tree,
            purpose: Purpose::Turn,
            manifest: digest,
            profile: None,
            place: Some(GenerationPlace {
                view: ViewName::default(),
                parent: parent.position.id,
                parent_node: parent.position.id.original(),
            }),
            reserved: vec![node.id],
            runs: vec![Run { from: first.id, to: parent.position.id, digest: sent.digest }],
            settings: None,
        };
        let claim = Claim { owner: LeaseOwner::new("bench"), fence: Fence(1) };
        let new = NewGeneration {
            row,
            claim: claim.clone(),
            manifest,
            bodies: Vec::new(),
            cited: Vec::new(),
            reservation: None,
        };
        self.with.generations.push(new);
        self.with.outcomes.push(GenerationEnd {
            generation: id,
            claim,
            state: GenerationState::Done,
            response: None,
            usage: None,
            at: self.now,
        });
        node.author = model_author();
        node.trust = Trust::Agent;
        node.finish = Some(Finish::Stop);
        node.generation = Some(id);
        node.source = Some(ModelSource {
            provider: "bench".to_owned(),
            model: "generated".to_owned(),
            dialect: "openai_completions".to_owned(),
            kind: SourceKind::Script,
            manifest: digest,
            response: None,
            choice: ResponsePart::Index(0),
        });
        Ok(())
    }

    /// The randomness of the next id.
    fn random(&mut self) -> u128 {
        u128::from(self.corpus.random()) << 64 | u128::from(self.corpus.random())
    }

    /// What was made since the last call, as one operation that moves the tip to the end of the trunk.
    fn take(&mut self) -> (Plan, AttachedWrites) {
        let mut plan = std::mem::take(&mut self.plan);
        let end = self.trunk.last().map_or(self.tip, |anchor| anchor.position.id);
        let mut cells = Vec::new();
        if end != self.tip {
            let key = CellKey::Tip { view: ViewName::default() };
            cells.push(CellChange { key, old: CellValue::Position(self.tip), new: CellValue::Position(end) });
            self.tip = end;
        }
        plan.op = Some(Operation {
            tree: self.tree,
            agent: Author::OWNER.to_owned(),
            view: Some(ViewName::default()),
            kind: OpKind::Commit,
            at: self.now,
            cells,
            nodes: plan.nodes.iter().map(|node| (node.id, node.chain_hash)).collect(),
            skipped: Vec::new(),
            timeline: TimelineEffect::Push,
        });
        (plan, std::mem::take(&mut self.with))
    }
}

fn not_hashed(error: NotCanonical) -> CommandError {
    failed("hash a text", error)
}

fn model_author() -> Author {
    Author { kind: AuthorKind::Model, id: "main".to_owned(), profile: None }
}

/// Plans that are being applied while the next ones are made; the store commits small ones together.
struct Queue {
    store: Arc<Store>,
    tree: TreeId,
    per_operation: usize,
    sent: JoinSet<Result<Applied, StoreError>>,
}

impl Queue {
    fn new(store: Arc<Store>, tree: TreeId, per_operation: usize) -> Self {
        Self { store, tree, per_operation: per_operation.max(1), sent: JoinSet::new() }
    }

    /// Sends what was made once it is as much as an operation is to have.
    async fn send_full(&mut self, builder: &mut TreeBuilder<'_>) -> Result<(), CommandError> {
        if builder.plan.nodes.len() < self.per_operation { Ok(()) } else { self.send(builder).await }
    }

    async fn send(&mut self, builder: &mut TreeBuilder<'_>) -> Result<(), CommandError> {
        if builder.plan.nodes.is_empty() {
            return Ok(());
        }
        self.wait((1_000 / self.per_operation).clamp(2, 64) - 1).await?;
        let (plan, with) = builder.take();
        let (store, tree) = (Arc::clone(&self.store), self.tree);
        self.sent.spawn(async move { store.apply(&Principal::Owner, tree, plan, with).await });
        // Tasks run in the order they were spawned, so that plans reach the store in the order they were made.
        tokio::task::yield_now().await;
        Ok(())
    }

    /// Waits until no more than so many are under way.
    async fn wait(&mut self, most: usize) -> Result<(), CommandError> {
        while self.sent.len() > most
            && let Some(applied) = self.sent.join_next().await
        {
            applied.map_err(|error| failed("apply a plan", error))??;
        }
        Ok(())
    }
}

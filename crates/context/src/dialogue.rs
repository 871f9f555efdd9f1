//! The request for a dialogue: what stands above the cache boundary, the turns, and what is new (spec: context §2,
//! §3).
//!
//! A request is the one before it and more at the end, byte for byte, as long as that can be: what was frozen stays
//! frozen, what was shown is shown again, what was cut stays cut. Everything here is told from values and rows;
//! time and files are the caller's.

use std::sync::Arc;

use loom::path::ViewOverrides;
use loom::render::{Passage, tip};
use loom::{CellKey, NodeId, PositionId, TreeReader, ViewName};
use model::{Chat, ChatPart, Prompt};

use crate::activation::Previous;
use crate::bootstrap::Bootstrap;
use crate::budget::TokenBudget;
use crate::choice::{Chosen, GAP, WindowChoice};
use crate::coverage::{Coverage, NothingRemembered};
use crate::document::{Build, Pinned};
use crate::estimate::Estimator;
use crate::folder_instructions::FolderInstructions;
use crate::given_back::GivenBackFiles;
use crate::history::{run, turns};
use crate::injection::Offer;
use crate::manifest::PathRun;
use crate::messages::Messages;
use crate::piece::{Assembled, ContextError, RequestPiece};
use crate::render_history::{NoPictures, Pictures, Spoken};
use crate::replay::ReplayConstraints;
use crate::segment::{Kind, Source};
use crate::target::TargetModel;
use crate::trim::Strategy;

/// What a turn is asked with.
#[derive(Debug, Clone)]
pub struct DialogueRequest {
    pub view: ViewName,
    /// Where to answer; the view's tip, if none.
    pub from: Option<PositionId>,
    pub target: TargetModel,
    /// The tokens it may have.
    pub budget: TokenBudget,
    /// What there is to stand above the cache boundary.
    pub bootstrap: Arc<Bootstrap>,
    pub previous: Previous,
    /// What is to be shown, unless it stands in the window.
    pub offers: Vec<Offer>,
    /// Whether nothing may be changed: it is told when that begins, and when it ends.
    pub plan: bool,
    /// What is said of the folders that tools reach beside the workspace; empty where there are none.
    pub folders: String,
    /// Instructions of folders that were worked in.
    pub instructions: Vec<FolderInstructions>,
    /// What the owner gave back of files, the oldest first.
    pub given_back: Vec<GivenBackFiles>,
    /// How a conversation that is too long is cut.
    pub strategy: Strategy,
    /// Nodes sent before the newest turn.
    pub context: Vec<NodeId>,
    /// Nodes sent before everything else, as instructions.
    pub instruction: Vec<NodeId>,
    /// What would be said next, behind all of it: a look at a request that is not made.
    pub said: Option<Passage>,
    /// The request that this one repeats.
    pub again: Option<ReplayConstraints>,
}

impl DialogueRequest {
    /// A request at the tip of a view, with nothing around the conversation.
    pub fn new(view: ViewName, target: TargetModel, budget: TokenBudget) -> Self {
        Self {
            view,
            from: None,
            target,
            budget,
            bootstrap: Arc::default(),
            previous: Previous::default(),
            offers: Vec::new(),
            plan: false,
            folders: String::new(),
            instructions: Vec::new(),
            given_back: Vec::new(),
            strategy: Strategy::default(),
            context: Vec::new(),
            instruction: Vec::new(),
            said: None,
            again: None,
        }
    }
}

/// What a request is put together with.
pub struct Dependencies<'a> {
    /// What tokens are estimated with.
    pub estimator: &'a Estimator,
    /// What remembers the nodes that are not sent.
    pub coverage: &'a dyn Coverage,
    pub pictures: &'a dyn Pictures,
}

/// Puts the request for a dialogue together, where nothing is remembered and no picture is at hand.
///
/// # Errors
/// As [`assemble`].
pub fn dialogue(
    rows: &dyn TreeReader,
    request: &DialogueRequest,
    estimator: &Estimator,
) -> Result<Assembled, ContextError> {
    assemble(rows, request, &Dependencies { estimator, coverage: &NothingRemembered, pictures: &NoPictures })
}

/// Puts the request for a dialogue together.
///
/// # Errors
/// [`ContextError::Empty`] when nothing was said yet, [`ContextError::TooLong`] when the newest turn alone
/// does not fit, or nothing may leave.
pub fn assemble(
    rows: &dyn TreeReader,
    request: &DialogueRequest,
    around: &Dependencies<'_>,
) -> Result<Assembled, ContextError> {
    let at = match request.from {
        Some(from) => from,
        None => tip(rows, &request.view)?,
    };
    let path = ViewOverrides::read(rows, &request.view, at)?;
    let pinned = Pinned::of(rows, &request.view, &request.context, &request.instruction)?;
    let start = match &request.again {
        Some(again) => again.start,
        None => rows.cell(&CellKey::WindowStart { view: request.view.clone() })?.value.as_place(),
    };
    let choice = WindowChoice { rows, request, around, path: &path, pinned: &pinned };
    let chosen = choice.choose(start)?;
    if !chosen.spoken[chosen.from..].iter().any(Spoken::says) {
        return Err(ContextError::Empty);
    }
    let left = choice.left(&chosen)?;
    let assembled = put_together(&choice, chosen, left);
    match &request.again {
        Some(again) => again.checked(assembled),
        None => Ok(assembled),
    }
}

/// Writes down what was chosen: parts, and the pieces that cover them.
fn put_together(choice: &WindowChoice<'_>, mut chosen: Chosen, left: Vec<PathRun>) -> Assembled {
    let WindowChoice { around, path, pinned, .. } = choice;
    let estimator = around.estimator;
    let mut build = Build { estimator, next: 0, pieces: Vec::new() };
    let (tools, above) = chosen.prefix.parts(&mut build);
    let stable = above.len();
    let mut messages =
        Messages::after(&mut build, above.into_iter().map(ChatPart::System).collect(), around.pictures);
    for row in pinned.head.iter().chain(&pinned.instruction) {
        messages.pinned(Kind::Head, "pinned by the owner", row, ChatPart::System);
    }
    let mut runs = Vec::new();
    if !chosen.first.is_empty() {
        let pairs = &chosen.first_pairs;
        let costs = pairs.costs(&chosen.first, estimator);
        runs.extend(run(&chosen.first, path, 0, pairs, costs.iter().sum()));
        let all = 0..chosen.first.len();
        let chars = messages.say(&mut chosen.first, all, pairs, &costs, (0, "the first turn stays"));
        runs.iter_mut().for_each(|run| run.chars = chars);
        messages.product("gap", "turns between the first and these have left", GAP);
    }
    let costs = chosen.pairs.costs(&chosen.spoken, estimator);
    let of_run = runs.len();
    let tokens = costs[chosen.from..].iter().sum();
    runs.extend(run(&chosen.spoken, path, chosen.from, &chosen.pairs, tokens));
    let newest = turns(&chosen.spoken).into_iter().rfind(|turn| *turn >= chosen.from).unwrap_or(chosen.from);
    let all = chosen.spoken.len();
    let unseen = chosen.spoken[chosen.from..].iter().map(|said| said.unseen).sum::<u64>();
    let older = messages.say(
        &mut chosen.spoken,
        chosen.from..newest,
        &chosen.pairs,
        &costs,
        (of_run, "newest first, fits"),
    );
    for row in pinned.context.iter().chain(pinned.note.iter().map(|(row, _)| row)) {
        messages.pinned(Kind::ExtraInput, "context you named", row, ChatPart::Injected);
    }
    let newer =
        messages.say(&mut chosen.spoken, newest..all, &chosen.pairs, &costs, (of_run, "the newest turn"));
    runs[of_run..].iter_mut().for_each(|run| run.chars = older + newer);
    for shown in &chosen.injected {
        messages.injection(shown, "shown now, for the first time");
    }
    let (list, unseen) = (messages.list, unseen + messages.unread);
    for (index, run) in left.iter().enumerate() {
        let mut piece = RequestPiece::left_out(
            Kind::History,
            Source::Left { left: index },
            &around.coverage.covered(run).reason(),
        );
        (piece.chars, piece.tokens) = (run.chars, run.tokens);
        build.pieces.push(piece);
    }
    if unseen > 0 {
        let source = Source::Product { name: "pictures and sounds".to_owned() };
        let why = format!("{unseen} are not sent: this model takes none, or they are not here");
        build.pieces.push(RequestPiece::left_out(Kind::History, source, &why));
    }
    build.pieces.append(&mut chosen.untold);
    let (trust, tainted_by) = chosen.trust();
    Assembled {
        prompt: Prompt::Chat(Chat { tools, messages: list, prefill: None, stable }),
        tokens: choice.tokens(&chosen, &costs),
        pieces: build.pieces,
        runs,
        left,
        injected: chosen.injected,
        notices: chosen.notices,
        way: None,
        held: String::new(),
        new_start: chosen.moved,
        begins: None,
        inputs: pinned.inputs.clone(),
        trust: pinned.trust().min(trust).min(chosen.prefix.trust()),
        tainted_by: tainted_by.or(pinned.tainted),
        prefix: Some(chosen.prefix),
    }
}

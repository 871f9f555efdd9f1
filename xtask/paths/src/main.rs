//! The core paths whose instructions are counted: `cargo xtask instructions` runs each under callgrind, which
//! counts within [`measured`] alone.
//!
//! Everything is in memory and the same in every run: ids come from a counted clock, texts from a fixed list.
//! What is counted is work proportional to a window or a path, so a change that makes it proportional to the tree
//! shows as a jump, on any machine and however busy it is.

use std::error::Error;
use std::hint::black_box;

use context::document::{DocumentRequest, document};
use context::{ContinuationForm, Estimator, TokenBudget};
use loom::memory::MemoryTree;
use loom::plan::{EditAs, NewText, NewTree};
use loom::render::{Show, render};
use loom::verify::{Status, verify};
use loom::{Mode, Op, PositionId, ViewName};
use loom_testing::{NoEvidence, Planner, WriteRows};
use model::script::ScriptOptions;
use model::{DialectName, Model, Params, ScriptModel};

type Done = Result<(), Box<dyn Error>>;

/// What a path prepares before [`measured`] is not counted.
type Path = fn() -> Done;

/// The paths by their names.
const PATHS: &[(&str, Path)] = &[
    ("append", append),
    ("render", rendering),
    ("context", assembly),
    ("verify", verification),
    ("stream", stream),
    ("attribution", attribution),
];

fn main() -> Done {
    let name = std::env::args().nth(1).unwrap_or_default();
    match PATHS.iter().find(|(known, _)| *known == name) {
        Some((_, path)) => path(),
        None => {
            let known: Vec<&str> = PATHS.iter().map(|(known, _)| *known).collect();
            Err(format!("no path is called {name:?}: name one of {}", known.join(", ")).into())
        }
    }
}

/// The only function callgrind counts in.
#[inline(never)]
fn measured<T>(work: impl FnOnce() -> T) -> T {
    black_box(work())
}

/// A hundred appends to a tree of ten thousand nodes.
fn append() -> Done {
    let mut document = Passages::of(10_000)?;
    measured(|| (0..100).try_for_each(|_| document.append()))
}

/// The text of a path of ten thousand passages, with who wrote what.
fn rendering() -> Done {
    let document = Passages::of(10_000)?;
    let shown =
        measured(|| render(&document.tree, &ViewName::default(), Show { drafts: true, spans: true }))?;
    if shown.text.is_empty() { Err("nothing was rendered".into()) } else { Ok(()) }
}

/// The request for a document that is longer than the window: assembled, encoded, covered.
fn assembly() -> Done {
    let passages = Passages::of(3_000)?;
    let script = ScriptModel::echo(ScriptOptions::default());
    let request = DocumentRequest {
        view: ViewName::default(),
        from: None,
        way: ContinuationForm::Raw,
        budget: TokenBudget::new(32_000, 1_024, Some(512)),
        drafts: true,
        system: None,
        context: Vec::new(),
        instruction: Vec::new(),
        again: None,
        before: None,
    };
    measured(|| -> Done {
        let assembled = document(&passages.tree, &request, &Estimator::default())?;
        black_box(script.encode(&assembled.prompt, &Params::default())?);
        Ok(())
    })
}

/// The proof over a tree of a thousand nodes, a tenth of them edits.
fn verification() -> Done {
    let mut document = Passages::of(900)?;
    for number in 0..100 {
        let position = document.positions[number * 9 + 1];
        document.run(Op::Edit { position, text: format!("Edit {number}."), edit_as: EditAs::Version })?;
    }
    let report = measured(|| verify(&document.tree, &NoEvidence))?;
    if report.status == Status::Valid { Ok(()) } else { Err(format!("{:?}", report.problems).into()) }
}

/// A streamed answer of two thousand events, in pieces as a socket gives them.
fn stream() -> Done {
    let mut body = String::new();
    for number in 0..2_000 {
        let text = PROSE[number % PROSE.len()].replace('\n', "\\n");
        body += &format!(
            "data: {{\"id\":\"c\",\"model\":\"m\",\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"{text}\"}}}}]}}\n\n"
        );
    }
    body += "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";
    let events = measured(|| {
        let (mut parser, mut events) = (DialectName::OpenAiChat.parser(true), Vec::new());
        for piece in body.as_bytes().chunks(1_400) {
            parser.feed(piece, &mut events)?;
        }
        parser.finish(&mut events)?;
        Ok::<_, model::ParseError>(events)
    })?;
    if events.len() > 2_000 { Ok(()) } else { Err("events are missing".into()) }
}

/// Who wrote what after an edit of a long passage: a word in every paragraph is another.
fn attribution() -> Done {
    let before: String = (0..200).map(|number| PROSE[number % PROSE.len()]).collect();
    let after = before.replace("rain", "snow").replace("moon", "lantern");
    let stretches = measured(|| loom::attribution::stretches(&before, &after));
    if stretches.len() > 100 { Ok(()) } else { Err("no stretch was kept".into()) }
}

/// Passages with clusters, marks and scripts of several kinds.
const PROSE: [&str; 5] = [
    "The rain fell on the town, and nobody minded. ",
    "»Wer da?«, fragte die Müllerin — leise, wie immer.\n\n",
    "吾輩は猫である。名前はまだ無い。",
    "The moon pulls at the sea; the sea forgets. 🌊 ",
    "One more word.\n",
];

/// A document in memory, with the positions of its passages.
struct Passages {
    tree: MemoryTree,
    planner: Planner,
    positions: Vec<PositionId>,
}

impl Passages {
    /// A document of so many passages.
    fn of(passages: usize) -> Result<Self, Box<dyn Error>> {
        let mut document = Self {
            tree: MemoryTree::default(),
            planner: Planner::at(1_790_000_000_000),
            positions: Vec::new(),
        };
        document.run(Op::Create(NewTree { mode: Mode::Buffer, title: "A tale".into(), origin: None }))?;
        (0..passages).try_for_each(|_| document.append())?;
        Ok(document)
    }

    fn append(&mut self) -> Done {
        let text = PROSE[self.positions.len() % PROSE.len()];
        self.run(Op::Append(NewText::owner(text, None)))
    }

    fn run(&mut self, op: Op) -> Done {
        let (plan, _) = self.planner.plan(&self.tree, &ViewName::default(), op)?;
        self.positions.extend(plan.positions.iter().map(|position| position.id));
        self.tree.apply(plan)?;
        Ok(())
    }
}

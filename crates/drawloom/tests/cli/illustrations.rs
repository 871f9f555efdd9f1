//! The pictures of the documentation: screens of the program as SVG. The test fails when one of them is not current.

use std::fmt::Write as _;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};
use vt100::{Cell, Color, Screen};

use crate::server::Server;
use crate::terminal::Terminal;
use crate::world::World;

const COLUMNS: u16 = 96;
/// Pixels of a cell and around the screen.
const WIDTH: f32 = 8.4;
const HEIGHT: f32 = 19.0;
const MARGIN: f32 = 16.0;
const INK: &str = "#24292f";
/// The eight colours of a terminal, dark enough for a light ground.
const COLOURS: [&str; 8] = [INK, "#b3261e", "#1a7f37", "#7d5700", "#0b5cad", "#8250a0", "#0f6b74", "#57606a"];
const DIM: &str = "#6a737d";
const RENEW: &str = "`cargo xtask pictures` makes it anew";

/// Part of a row in one style.
struct Run {
    column: u16,
    text: String,
    style: String,
}

fn style(cell: &Cell) -> String {
    let colour = match cell.fgcolor() {
        Color::Idx(index) => COLOURS[usize::from(index % 8)],
        Color::Rgb(..) | Color::Default if cell.dim() => DIM,
        Color::Rgb(..) | Color::Default => INK,
    };
    let mut style = format!("fill=\"{colour}\"");
    for (is_set, attribute) in [
        (cell.bold(), " font-weight=\"bold\""),
        (cell.italic(), " font-style=\"italic\""),
        (cell.underline(), " text-decoration=\"underline\""),
    ] {
        style += if is_set { attribute } else { "" };
    }
    style
}

/// The runs of a row, without the blanks at its end.
fn runs(screen: &Screen, row: u16) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    for column in 0..screen.size().1.get() {
        let Some(cell) = screen.cell(row, column).filter(|cell| !cell.is_wide_continuation()) else {
            continue;
        };
        let (style, seen) = (style(cell), if cell.has_contents() { cell.contents() } else { " " });
        if runs.is_empty() && seen == " " {
            continue;
        }
        match runs.last_mut().filter(|run| run.style == style || seen == " ") {
            Some(run) => run.text += seen,
            None => runs.push(Run { column, text: seen.to_owned(), style }),
        }
    }
    for run in &mut runs {
        run.text.truncate(run.text.trim_end().len());
    }
    runs.retain(|run| !run.text.is_empty());
    runs
}

/// Foreign text as it may stand in XML; blanks do not fall together.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
        .replace(' ', "\u{a0}")
}

/// A picture of rows. Each run names its length, so that columns stand below each other in any font.
fn picture(rows: &[Vec<Run>], what: &str) -> String {
    let width = f32::from(COLUMNS) * WIDTH + 2.0 * MARGIN;
    let height = rows.iter().map(|_| HEIGHT).sum::<f32>() + 2.0 * MARGIN;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width:.0}\" height=\"{height:.0}\" \
         viewBox=\"0 0 {width:.0} {height:.0}\" role=\"img\" aria-label=\"{what}\">\n\
         <rect width=\"{width:.0}\" height=\"{height:.0}\" rx=\"8\" fill=\"#fafaf7\" stroke=\"#d8dee4\"/>\n\
         <g font-family=\"ui-monospace, Menlo, Consolas, 'DejaVu Sans Mono', monospace\" font-size=\"14\">\n"
    );
    let mut y = MARGIN + 14.0;
    for row in rows {
        for run in row {
            let x = MARGIN + f32::from(run.column) * WIDTH;
            let columns = unicode_width::UnicodeWidthStr::width(run.text.as_str());
            let length = f32::from(u16::try_from(columns).unwrap()) * WIDTH;
            let (style, seen) = (&run.style, escaped(&run.text));
            let _ = writeln!(
                svg,
                "<text x=\"{x:.1}\" y=\"{y:.0}\" textLength=\"{length:.1}\" {style}>{seen}</text>"
            );
        }
        y += HEIGHT;
    }
    svg + "</g>\n</svg>\n"
}

/// A line as it is typed at a shell.
fn typed(line: &str) -> Vec<Run> {
    let run = |column, text: &str, style| Run { column, text: text.to_owned(), style };
    vec![run(0, "$", format!("fill=\"{DIM}\"")), run(2, line, format!("fill=\"{INK}\" font-weight=\"bold\""))]
}

/// The rows of a screen up to the last one with something in it, ids and times replaced.
fn rows(screen: &Screen, named: &[(String, String)]) -> Vec<Vec<Run>> {
    let mut rows: Vec<_> = (0..screen.size().0.get()).map(|row| runs(screen, row)).collect();
    rows.truncate(rows.iter().rposition(|row| !row.is_empty()).map_or(0, |last| last + 1));
    for run in rows.iter_mut().flatten() {
        for (id, name) in named {
            run.text = run.text.replace(id, name);
        }
    }
    rows
}

/// The short ids of the one tree of a home, by age, with the names that stand for them in a picture, of the same length.
fn names(world: &World, tree: &str) -> Vec<(String, String)> {
    const NAMES: [&str; 12] =
        ["a3k1", "b7m2", "c9p3", "d2q4", "e5r5", "f8s6", "g1t7", "h4v8", "j6w9", "k3x1", "m5y2", "n7z3"];
    let (_, all) = world.json(&["tree", "show", tree, "--all"]);
    let nodes = all["nodes"].as_array().unwrap();
    let mut ids: Vec<&Value> = nodes.iter().collect();
    ids.sort_by_key(|node| node["id"].as_str().map(str::to_owned));
    let short = ids.iter().map(|node| node["short_id"].as_str().unwrap());
    let (_, trees) = world.json(&["tree", "list"]);
    let trees = trees["trees"].as_array().unwrap();
    let own = trees.iter().map(|tree| tree["short_id"].as_str().unwrap());
    let with_tree = own.map(|id| (id.to_owned(), "p8c4".to_owned()));
    short.map(str::to_owned).zip(NAMES.map(str::to_owned)).chain(with_tree).collect()
}

/// Compares with the file of the documentation, or writes it.
fn check(name: &str, picture: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(name);
    if std::env::var_os("DRAWLOOM_WRITE_DOCS").is_some() {
        std::fs::write(&path, picture).unwrap();
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(found == picture, "docs/{name} is not current: {RENEW}");
}

fn screen_of(world: &World, words: &[&str]) -> Terminal {
    let mut terminal = Terminal::of_width(world.command(words), COLUMNS);
    assert_eq!(terminal.ended(), Some(0), "{}", terminal.contents());
    while terminal.listen() {}
    terminal
}

/// A home whose default model is on a server of this machine that gives several choices at once: these for a document,
/// and for a chat the next one.
fn home(answers: &'static [&'static str]) -> (World, Server) {
    let asked = AtomicUsize::new(0);
    let server = Server::start(move |path, _| {
        let piece = |choices: &Value| format!("data: {}\n\n", json!({"id": "c", "choices": choices}));
        let usage =
            json!({"id": "c", "choices": [], "usage": {"prompt_tokens": 24, "completion_tokens": 16}});
        let choices = if path.ends_with("/chat/completions") {
            let said = answers.get(asked.fetch_add(1, Ordering::SeqCst))?;
            let delta = json!([{"index": 0, "delta": {"content": said}}]);
            piece(&delta) + &piece(&json!([{"index": 0, "delta": {}, "finish_reason": "stop"}]))
        } else if path.ends_with("/completions") {
            let choice = |(index, text)| json!({"index": index, "text": text, "finish_reason": "stop"});
            piece(&answers.iter().enumerate().map(choice).collect())
        } else {
            return None;
        };
        Some(format!("{choices}data: {usage}\n\ndata: [DONE]\n\n"))
    });
    let world = World::new();
    let config = format!(
        "[model]\ndefault = \"local/writer\"\n[providers.local]\nbase_url = \"{}\"\nkind = \"vllm\"\n\
         [models.\"local/writer\"]\nwindow = 32000\ntools = false\n",
        server.base()
    );
    world.write("config.toml", &config);
    (world, server)
}

#[test]
fn the_picture_of_a_document_is_current() {
    let (world, _server) = home(&[
        " The boatman counted us twice, and came to different numbers.",
        " Halfway over, the engine stopped, and nobody spoke.",
        " On the far bank someone had lit a lamp for each of us.",
    ]);
    let text = "The ferry left at six, whatever the weather.\n\nThat evening there was none.";
    std::fs::write(world.path("here/ferry.md"), text).unwrap();
    let mut pages = Vec::new();
    for line in [
        "tree new --title Ferry --file ferry.md",
        "tree generate Ferry -n 3",
        "tree switch Ferry 2",
        "tree edit Ferry --replace 'left at six' 'left at seven'",
        "tree append Ferry ' Not one.'",
        "tree show Ferry",
        "tree text Ferry --authors",
    ] {
        // Words in quotes are one.
        let parts = line.split('\'').enumerate();
        let words: Vec<&str> = parts
            .flat_map(|(at, part)| if at % 2 == 1 { vec![part] } else { part.split_whitespace().collect() })
            .collect();
        pages.push((line, screen_of(&world, &words)));
    }
    let named = names(&world, "Ferry");
    let mut all = Vec::new();
    for (line, terminal) in &pages {
        all.push(typed(&format!("drawloom {line}")));
        all.extend(rows(terminal.screen(), &named));
        all.push(Vec::new());
    }
    all.pop();
    check("document.svg", &picture(&all, "A document in a terminal"));
}

#[test]
fn the_picture_of_a_chat_is_current() {
    let (world, _server) = home(&[
        "A heddle is a cord or wire with an eye in its middle. Each warp thread goes through one.",
        "An eye for one thread: lift every second one, and the shuttle has a way through.",
        "It carries the weft through that gap, from one side of the cloth to the other.",
    ]);
    let mut terminal = Terminal::of_width(world.command(&["chat"]), COLUMNS);
    for line in ["What is a heddle?\r", "/regenerate\r", "/siblings\r", "And a shuttle?\r"] {
        terminal.says(line);
    }
    let (_, log) = world.json(&["log"]);
    let named = names(&world, log["exchanges"][0]["tree"].as_str().unwrap());
    let mut all = vec![typed("drawloom chat")];
    all.extend(rows(terminal.screen(), &named));
    check("chat.svg", &picture(&all, "A conversation in a terminal"));
    terminal.types("\x04");
    assert_eq!(terminal.ended(), Some(0));
}

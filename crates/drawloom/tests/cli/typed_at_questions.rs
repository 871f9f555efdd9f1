//! What is typed and pasted around a question: nothing that was meant for something else answers it, or is said to the
//! model.

use std::fs::File;

use serde_json::{Value, json};

use crate::elicitation::{EVERYTHING, answers, asking};
use crate::exec::{exec, world_with};
use crate::mcp::{accepted, called, script};
use crate::terminal::Terminal;
use crate::tools::nodes;
use crate::trust::with_terminal;
use crate::typing::{NO_PASTES, PASTES};
use crate::world::{World, text};

const ASKS: &str = "[[policy.rules]]\ndecision = \"ask\"\ntool = [\"exec\"]\n";
const CHOICES: &str = "[y once, s session";

/// A model that says so many words slowly, and runs a command then.
fn runs(words: usize) -> World {
    let deltas: Vec<String> = (0..words).map(|number| format!("w{number} ")).collect();
    let call = exec("touch made");
    world_with(
        &[
            json!({"deltas": deltas, "delta_delay_ms": 50, "tool_calls": [call]}),
            json!({"text": "Done.", "loop": true}),
        ],
        ASKS,
    )
}

/// Its conversation, once it was told to go.
fn going(world: &World, kind: &str) -> Terminal {
    let project = text(&world.path("project"));
    let command = world.command(&["--workspace", &project, "chat", "--color", "never"]);
    let mut command = with_terminal(&command);
    command.env("TERM", kind);
    let mut terminal = Terminal::start(command);
    terminal.at_prompt();
    terminal.types("go\r");
    terminal
}

/// What the person said to the model.
fn said(world: &World) -> Vec<String> {
    let own = nodes(world).into_iter().filter(|node| node["author"] == "owner");
    own.map(|node| node["text"].as_str().unwrap().to_owned()).collect()
}

fn quits(mut terminal: Terminal) {
    terminal.at_prompt();
    terminal.types("\x15/quit\r");
    assert_eq!(terminal.ended(), Some(0), "{}", terminal.contents());
}

#[test]
fn the_rest_of_a_line_that_is_being_typed_answers_no_question_that_comes_up_meanwhile() {
    let world = runs(20);
    let mut terminal = going(&world, "xterm-256color");
    terminal.shows("w1 ");
    // As somebody goes on typing until it is said that one waits.
    terminal.types("say ye");
    while !terminal.contents().contains("a question waits until you have sent this line") {
        assert!(!terminal.contents().contains(CHOICES), "{}", terminal.contents());
        terminal.types("s\x7f");
        terminal.listen();
    }
    terminal.types("s\r");
    terminal.until("its line", |terminal| terminal.plain().contains("> say yes (this joins the turn"));
    terminal.shows(CHOICES);
    assert!(!world.path("project/made").exists());
    terminal.types("n\r");
    terminal.shows("denied");
    terminal.shows("Done.");
    quits(terminal);
    assert_eq!(said(&world), ["go", "say yes"]);
    assert!(!world.path("project/made").exists());
}

#[test]
fn a_question_comes_once_whoever_types_rests_and_their_line_stays() {
    let world = runs(20);
    let mut terminal = going(&world, "xterm-256color");
    terminal.shows("w1 ");
    terminal.types("say ye");
    terminal.shows(CHOICES);
    terminal.types("y\r");
    terminal.until("what was begun", |terminal| terminal.contents().trim_end().ends_with("main> say ye"));
    assert!(world.path("project/made").exists());
    terminal.types("\x15/quit\r");
    assert_eq!(terminal.ended(), Some(0));
    assert_eq!(said(&world), ["go"]);
}

/// It cannot be drawn on, and shows itself what is typed: a line that was begun is thrown away whole.
#[test]
fn where_a_terminal_gives_lines_the_rest_of_one_answers_no_question_either() {
    let world = runs(20);
    let mut terminal = going(&world, "dumb");
    terminal.shows("w1 ");
    terminal.types("say ye");
    // As somebody types on, corrects it and ends it.
    let mut behind = 0;
    while behind < 40 && !terminal.contents().contains(CHOICES) {
        terminal.types("e");
        terminal.listen();
        behind += usize::from(terminal.contents().contains("touch made"));
    }
    terminal.types("\x15s\r");
    terminal.shows(CHOICES);
    terminal.types("n\r");
    terminal.shows("denied");
    terminal.shows("Done.");
    quits(terminal);
    assert!(!world.path("project/made").exists());
}

#[test]
fn a_paste_of_several_lines_is_no_answer() {
    let world = runs(0);
    let mut terminal = going(&world, "xterm-256color");
    terminal.shows(CHOICES);
    for (times, paste) in [
        "y\rno wait, do not",
        "I pasted\ry\rthe third line",
        "y\r",
        "# my plan\rn\ry\r",
        "a key that takes the line away\x15y\rmore",
        "its own end\x1b[201~\ry\rmore",
        "\x7f\x7f\x7f\x7f\x7f\x7fy\rmore",
        "\x7f\x7f\x7f\x7f\x7f\x7fy\r",
    ]
    .iter()
    .enumerate()
    {
        terminal.types(&format!("\x1b[200~{paste}\x1b[201~"));
        terminal.until("it is asked again", |terminal| {
            terminal.contents().matches("what is pasted is no answer").count() == times + 1
        });
        assert!(!world.path("project/made").exists(), "{paste}");
    }
    terminal.types("\x1b[200~no reason\x1b[201~\r");
    terminal.shows("denied");
    terminal.shows("Done.");
    quits(terminal);
    assert_eq!(said(&world), ["go"]);
    assert!(!world.path("project/made").exists());
}

/// A conversation at a question of a server.
fn asked(world: &World) -> Terminal {
    let mut terminal = going(world, "xterm-256color");
    terminal.shows("[y/N, or n and why]");
    terminal
}

fn at_first_field(terminal: &mut Terminal) {
    terminal.types("y\r");
    terminal.until("its field", |terminal| terminal.contents().matches("needed): Name").count() == 2);
}

#[test]
fn a_paste_of_one_line_is_the_text_of_a_field() {
    let world = asking(&json!({}));
    let mut terminal = asked(&world);
    at_first_field(&mut terminal);
    terminal.types("\x1b[200~Ann\rBee\rCee\x1b[201~");
    terminal.shows("what is pasted is no answer");
    terminal.types("Dr. \x1b[200~Ann Bee\x1b[201~\r");
    terminal.shows("letters to you >");
    terminal.types("\r");
    terminal.shows("g (Green)) >");
    terminal.types("\r");
    terminal.shows("Done.");
    quits(terminal);
    let content = json!({"name": "Dr. Ann Bee", "news": false});
    assert_eq!(answers(&world), [json!({"action": "accept", "content": content})]);
}

#[test]
fn what_goes_on_being_typed_behind_the_end_of_a_question_begins_no_message() {
    let world = accepted(&[], &["notes:ask"], &format!("sandbox = \"off\"\n{EVERYTHING}"));
    let arguments = json!({"leaves": "result", "gates": text(&world.path("project"))});
    let asks = json!({"tool_calls": [called("notes:ask", &arguments)]});
    script(&world, &[asks, json!({"text": "Done."}), json!({"text": "Heard."})]);
    let gate = File::create(world.path("project/gate")).unwrap();
    gate.lock().unwrap();
    let mut terminal = asked(&world);
    at_first_field(&mut terminal);
    terminal.types("my-number-is");
    terminal.shows("my-number-is");
    gate.unlock().unwrap();
    let ends = |terminal: &Terminal| terminal.contents().contains("no longer asked");
    let (mut behind, mut typed) = (0, 0);
    while behind < 10 {
        terminal.types("7");
        terminal.listen();
        typed += 1;
        assert!(typed < 1_000, "{}", terminal.contents());
        behind += usize::from(ends(&terminal));
    }
    terminal.types("\r");
    terminal.shows("Done.");
    terminal.at_prompt();
    terminal.types("What now?\r");
    terminal.shows("Heard.");
    quits(terminal);
    assert_eq!(said(&world), ["go", "What now?"]);
}

#[test]
fn a_field_is_left_by_the_commands_of_its_question() {
    let declined = json!({"action": "decline"});
    let named = json!({"action": "accept", "content": {"name": "/stop", "news": false}});
    for (typed, shown, told) in [
        ("/deny none of its business", "denied", Some(&declined)),
        ("/stop", "cancelled by you", None),
        ("//stop", "letters to you >", Some(&named)),
    ] {
        let world = asking(&json!({}));
        let mut terminal = asked(&world);
        terminal.types("y\r");
        terminal.shows("needed): Name [/deny: no] >");
        terminal.types(&format!("{typed}\r"));
        terminal.shows(shown);
        if typed == "//stop" {
            terminal.types("\r");
            terminal.shows("g (Green)) >");
            terminal.types("\r");
            terminal.shows("Done.");
        }
        quits(terminal);
        match told {
            Some(told) => assert_eq!(&answers(&world), std::slice::from_ref(told), "{typed}"),
            None => assert!(!Value::from(nodes(&world)).to_string().contains("/stop"), "{typed}"),
        }
    }
}

#[test]
fn an_address_of_a_server_is_shown_in_one_piece() {
    let address = format!("https://pay.example.com/card?order={}&last=1", "0123456789".repeat(20));
    let world = asking(&json!({"visit": address, "message": "Pay."}));
    let mut terminal = asked(&world);
    terminal
        .until("it whole", |terminal| terminal.plain().contains(&format!("pay.example.com:\n{address}\n")));
    terminal.types("n\r");
    terminal.shows("denied");
    quits(terminal);
}

#[test]
fn a_question_that_is_asked_again_says_what_it_is_about() {
    let world = runs(0);
    let mut terminal = going(&world, "xterm-256color");
    terminal.shows(CHOICES);
    let about = |terminal: &Terminal| {
        let screen = terminal.contents();
        let (above, _) = screen.rsplit_once("exec asks to run").unwrap();
        above.trim_end().rsplit('\n').next().unwrap().to_owned()
    };
    terminal.types("/policy\r");
    terminal.until("it again", |terminal| terminal.contents().matches(CHOICES).count() == 2);
    assert!(about(&terminal).contains("touch made"), "{}", terminal.contents());
    terminal.types("n\r");
    terminal.shows("denied");
    terminal.shows("Done.");
    quits(terminal);
}

#[test]
fn pastes_are_marked_at_a_question_of_the_conversation_and_at_none_that_is_over() {
    let world = runs(0);
    let mut terminal = going(&world, "xterm-256color");
    terminal.shows(CHOICES);
    let unmarked = terminal.times(NO_PASTES);
    assert!(terminal.times(PASTES) > unmarked, "they are marked while it is asked");
    terminal.types("n\r");
    terminal.shows("Done.");
    quits(terminal);
    // One of a command of its own, which ends with its process.
    let mut command = with_terminal(&world.command(&["forget", "--text", "go", "--color", "never"]));
    command.env("TERM", "xterm-256color");
    let mut terminal = Terminal::start(command);
    terminal.shows("[y/N]");
    assert_eq!(terminal.times(PASTES), 1, "they are marked while it is asked");
    terminal.types("\x03");
    assert_eq!(terminal.ended(), Some(130), "{}", terminal.contents());
    assert_eq!(terminal.times(NO_PASTES), 1);
}

//! What is typed while an answer comes: where it stands, and what becomes of it.

use crate::chatting::{chat, fits};
use crate::server;
use crate::terminal::Terminal;
use crate::waiting;

/// What is typed while an answer comes, at a terminal of this width and kind.
fn typed_meanwhile(columns: u16, environment: &[(&str, &str)]) -> String {
    let (world, pieces) = waiting::world();
    let mut command = world.command(&["--model", "box/m", "chat"]);
    command.env("TERM", "xterm-256color").envs(environment.iter().copied());
    let mut terminal = Terminal::sized(command, 40, columns);
    terminal.at_prompt();
    terminal.types("Wet?\r");
    pieces.send(piece("It rains sometimes, and then it stops,\nand then")).unwrap();
    terminal.shows("\nand then");
    terminal.types("and where do herons go while it rains there, as a rule?\r");
    // A terminal that cannot be drawn on shows itself what is typed, where the cursor is.
    let is_drawn = environment != [("TERM", "dumb")];
    if is_drawn {
        terminal.types("more words of the next line that is typed");
    }
    let end = if is_drawn { "that is typed" } else { "is answered next" };
    terminal.until("what was typed", |terminal| {
        let screen = terminal.contents();
        screen.contains("and where do herons") && screen.trim_end().ends_with(end)
    });
    terminal.contents()
}

#[test]
fn what_is_typed_meanwhile_at_every_width() {
    let plain = typed_meanwhile(200, &[("NO_COLOR", "1")]);
    assert_eq!(typed_meanwhile(200, &[]), plain);
    let narrow = typed_meanwhile(40, &[]);
    fits(&narrow, 40);
    let dumb = typed_meanwhile(200, &[("TERM", "dumb")]);
    insta::assert_snapshot!(format!("──── 40\n{narrow}\n──── 200\n{plain}\n──── dumb\n{dumb}\n"));
}

/// A piece of an answer as a server streams it.
fn piece(text: &str) -> String {
    let piece = serde_json::json!({"choices": [{"index": 0, "delta": {"content": text}}]});
    format!("data: {piece}\n\n")
}

#[test]
fn what_is_typed_while_an_answer_comes_stands_below_it() {
    let (world, pieces) = waiting::world();
    let mut terminal = chat(&world, "box/m");
    terminal.at_prompt();
    terminal.types("Wet?\r");
    let row = |terminal: &Terminal, text: &str| terminal.contents().lines().position(|line| line == text);
    // Also while nothing has come, below the line that says what is waited for.
    terminal.shows("waiting for box/m: ");
    terminal.types("and");
    terminal.until("what is typed", |terminal| row(terminal, "> and").is_some());
    pieces.send(piece("It rains some")).unwrap();
    terminal.until("the answer and what is typed below it", |terminal| {
        let answer = row(terminal, "It rains some");
        answer.is_some() && row(terminal, "> and") == answer.map(|row| row + 1)
    });
    terminal.types(" where\x17where");
    pieces.send(piece("times,\nand then")).unwrap();
    terminal.until("both", |terminal| {
        let answer = row(terminal, "and then");
        answer.is_some() && row(terminal, "> and where") == answer.map(|row| row + 1)
    });
    assert!(row(&terminal, "It rains sometimes,").is_some(), "{}", terminal.contents());
    terminal.types("\rmore");
    terminal.until("what becomes of it", |terminal| {
        let told = row(terminal, "> and where (this joins the turn and is answered next)");
        told.is_some()
            && told == row(terminal, "and then").map(|row| row + 1)
            && row(terminal, "> more") == told.map(|row| row + 1)
    });
    // The server's answer ends here, and it says the same to what joined.
    pieces.send(piece(" it stops.")).unwrap();
    pieces.send(server::chat("", "", 100)).unwrap();
    pieces.send(String::new()).unwrap();
    terminal.shows("main> and where");
    pieces.send(server::chat("", "Everywhere.", 100)).unwrap();
    pieces.send(String::new()).unwrap();
    terminal.shows("Everywhere.");
    // A line that was begun is gone on with.
    terminal.until("the next input line", |terminal| terminal.contents().ends_with("main> more"));
    let screen = terminal.contents();
    assert!(screen.contains("and then it stops.") && !screen.contains("\n> "), "{screen}");
    terminal.types("\x15\r\x04");
    assert_eq!(terminal.ended(), Some(0));
}

#[test]
fn what_was_typed_is_listed_until_it_is_said_and_its_errors_stand_below_the_answer() {
    let (world, pieces) = waiting::world();
    let mut terminal = chat(&world, "box/m");
    terminal.at_prompt();
    terminal.types("Wet?\r");
    pieces.send(piece("It rains some")).unwrap();
    terminal.shows("It rains some");
    terminal.types("/nex\rone\rtwo\rthree\rfour\rfive\r");
    terminal.shows("> five (this joins the turn and is answered next)");
    terminal.shows("It rains some\n(1 more before)\n> one (this joins the turn and is answered next)\n");
    pieces.send(piece("times.")).unwrap();
    terminal.shows("It rains sometimes.\n(1 more before)\n");
    assert!(!terminal.contents().contains("\nerror: "), "{}", terminal.contents());
    pieces.send(server::chat("", "", 100)).unwrap();
    pieces.send(String::new()).unwrap();
    terminal.shows("main> five");
    terminal.until("the error alone", |terminal| {
        let screen = terminal.contents();
        screen.contains("> /nex (error: ") && !screen.contains("(this joins")
    });
    pieces.send(server::chat("", "Everywhere.", 100)).unwrap();
    pieces.send(String::new()).unwrap();
    terminal.at_prompt();
    let screen = terminal.contents();
    let at = |text: &str| screen.find(text).unwrap_or_else(|| panic!("{text}: {screen}"));
    assert!(at("\nerror: ") > at("Everywhere."), "{screen}");
    terminal.types("\x04");
    assert_eq!(terminal.ended(), Some(0));
}

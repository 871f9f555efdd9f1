//! Keys that end, stop or clear a line or an answer (Ctrl-C, Ctrl-D, Ctrl-Z): none of them costs what was typed.

use std::time::Duration;

use rustix::process::Signal;

use crate::terminal::Terminal;
use crate::trust::with_terminal;
use crate::typing::{
    NO_PASTES, PASTES, answering, answering_at, answering_to_all, answers, conversing, said,
};
use crate::world::World;

#[test]
fn a_key_that_sends_a_signal_is_text_within_a_paste() {
    let world = World::new();
    let mut terminal = answering(&world, 40);
    for part in ["see \x1b[200~a\r\x03", "/undo\r\x1a", "\x1c/exit\r", "b\x1b[201~", "\r"] {
        terminal.types(part);
        std::thread::sleep(Duration::from_millis(100));
    }
    terminal.shows("b (this joins the turn");
    terminal.shows("w39");
    terminal.shows("fine");
    terminal.at_prompt();
    terminal.types("\x04");
    assert_eq!(terminal.ended(), Some(0));
    assert_eq!(said(&world), ["hello", "see a\n/undo\n/exit\nb"]);
}

#[test]
fn ctrl_c_stops_the_answer_and_costs_nothing_that_was_typed() {
    for typed in ["abc\x03def\r", "\x04\x03", "\x1b[200~pasted"] {
        let world = World::new();
        let mut terminal = answering(&world, 400);
        terminal.types(typed);
        match typed {
            "abc\x03def\r" => {
                terminal.shows("main> abcdef");
                terminal.at_prompt();
                terminal.types("\x04");
            }
            "\x04\x03" => {}
            _ => {
                std::thread::sleep(Duration::from_millis(1_500));
                terminal.types("\x03");
                terminal.shows("main> pasted");
                terminal.types("\r");
                terminal.shows("fine");
                terminal.at_prompt();
                terminal.types("\x04");
            }
        }
        assert_eq!(terminal.ended(), Some(0), "{typed:?}");
        assert!(!terminal.plain().contains("w399"), "{typed:?}");
        let said = said(&world);
        assert_eq!(
            said[1..],
            match typed {
                "abc\x03def\r" => vec!["abcdef"],
                "\x04\x03" => vec![],
                _ => vec!["pasted"],
            }
        );
    }
}

#[test]
fn ctrl_z_stops_the_conversation_at_the_prompt_too() {
    let world = World::new();
    let mut terminal = answering(&world, 2);
    terminal.at_prompt();
    let (before, marked) = (terminal.times(NO_PASTES), terminal.times(PASTES));
    terminal.types("abc\x1a");
    terminal.stops();
    assert!(terminal.times(NO_PASTES) > before);
    assert_eq!(terminal.times(PASTES), marked, "it asks the terminal for nothing before it goes on");
    terminal.signal(Signal::CONT);
    terminal.until("pastes again", |terminal| terminal.times(PASTES) > marked);
    terminal.types("def\r");
    terminal.shows("fine");
    terminal.at_prompt();
    terminal.types("\x04");
    assert_eq!(terminal.ended(), Some(0));
    assert_eq!(said(&world), ["hello", "abcdef"]);
}

#[test]
fn ctrl_z_takes_nothing_back_where_no_shell_could_let_it_go_on() {
    let world = World::new();
    let mut terminal = Terminal::start(with_terminal(&answering_to_all(&world)));
    terminal.at_prompt();
    terminal.types("abc\x1adef\r");
    answers(&mut terminal, 1);
    terminal.types("\x04");
    assert_eq!(terminal.ended(), Some(0));
    assert_eq!(said(&world), ["abcdef"]);
}

#[test]
fn ctrl_z_stops_the_conversation_where_no_line_is_edited() {
    let world = World::new();
    let mut terminal = answering_at(&world, 2, "dumb", &["chat"]);
    terminal.at_prompt();
    // As the terminal does whose line mode it is.
    terminal.signal(Signal::TSTP);
    terminal.stops();
    terminal.signal(Signal::CONT);
    terminal.types("def\r");
    terminal.shows("fine");
    terminal.at_prompt();
    terminal.types("\x04");
    assert_eq!(terminal.ended(), Some(0));
    assert_eq!(said(&world), ["hello", "def"]);
}

#[test]
fn what_is_typed_behind_ctrl_z_or_ctrl_d_in_one_write_is_not_lost() {
    for (typed, later, lines) in [
        ("abc\x1adef\r", "", vec!["abcdef"]),
        ("abc\x1ade", "f\r", vec!["abcdef"]),
        ("abc\x1adef\nghi\njk", "l\r", vec!["abcdef", "ghi", "jkl"]),
    ] {
        let world = World::new();
        let mut terminal = conversing(&world, "xterm-256color");
        let marked = terminal.times(PASTES);
        terminal.types(typed);
        terminal.stops();
        terminal.signal(Signal::CONT);
        terminal.until("pastes again", |terminal| terminal.times(PASTES) > marked);
        terminal.types(later);
        answers(&mut terminal, lines.len());
        terminal.types("\x04");
        assert_eq!(terminal.ended(), Some(0), "{typed:?}");
        assert_eq!(said(&world), lines, "{typed:?}");
    }
    for (typed, kept) in
        [("\x04gone\n", "gone"), ("ab\x15\x04gone", "gone"), ("\x04\x1b[200~a\rb\x1b[201~", "a␊b")]
    {
        let world = World::new();
        let mut terminal = answering(&world, 2);
        terminal.at_prompt();
        terminal.types(typed);
        assert_eq!(terminal.ended(), Some(0), "{typed:?}");
        assert!(terminal.contents().contains(&format!("not sent: {kept}")), "{typed:?}");
        assert_eq!(said(&world), ["hello"], "{typed:?}");
    }
}

#[test]
fn what_stands_behind_a_key_that_deletes_is_edited_where_the_cursor_is() {
    let world = World::new();
    let mut terminal = conversing(&world, "xterm-256color");
    // Ctrl-A, Ctrl-D and Ctrl-B; the arrow to the left.
    terminal.types("hello\x01\x04\x04X\x05Y\x02\x1b[DZ");
    terminal.shows("main> XllZoY");
    terminal.types("\r");
    answers(&mut terminal, 1);
    terminal.types("\x04");
    assert_eq!(terminal.ended(), Some(0));
    assert_eq!(said(&world), ["XllZoY"]);
}

#[test]
fn a_key_in_the_list_of_completions_sends_no_line_twice() {
    let world = World::new();
    let mut terminal = conversing(&world, "xterm-256color");
    // The first line end takes the name that is marked in the list.
    terminal.types("/s\t\n\x15next\nlast\n");
    answers(&mut terminal, 2);
    terminal.types("abc\x04\x04\x15\x04");
    assert_eq!(terminal.ended(), Some(0));
    assert_eq!(said(&world), ["next", "last"]);
}

#[test]
fn ctrl_d_within_a_line_ends_the_conversation_and_names_the_line() {
    for (open, kept) in
        [("a \\\n", "a \\"), ("```\na\n", "```␊a"), ("abc\x04", "abc"), ("a\x04b\\\nc\x04", "ab\\␊c")]
    {
        for is_answering in [true, false] {
            let world = World::new();
            let mut terminal = answering_at(&world, 20, "dumb", &["chat"]);
            if !is_answering {
                terminal.at_prompt();
            }
            terminal.types(open);
            terminal.types("\x04");
            assert_eq!(terminal.ended(), Some(0), "{open:?} {is_answering}");
            assert_eq!(said(&world), ["hello"], "{open:?} {is_answering}");
            let shown = terminal.contents();
            assert!(shown.contains(&format!("not sent: {kept}")), "{open:?} {is_answering}:\n{shown}");
        }
    }
}

#[test]
fn ctrl_d_gives_what_is_typed_and_ends_no_line() {
    for is_answering in [true, false] {
        let world = World::new();
        let mut terminal = answering_at(&world, 20, "dumb", &["chat"]);
        if !is_answering {
            terminal.at_prompt();
        }
        terminal.types("abc\x04");
        terminal.types("def\n");
        answers(&mut terminal, 1);
        terminal.types("\x04");
        assert_eq!(terminal.ended(), Some(0));
        assert_eq!(said(&world), ["hello", "abcdef"], "{is_answering}");
    }
}

#[test]
fn a_conversation_that_is_stopped_by_ctrl_z_takes_no_paste_and_goes_on() {
    let world = World::new();
    let mut terminal = answering(&world, 60);
    let (before, marked) = (terminal.times(NO_PASTES), terminal.times(PASTES));
    terminal.types("\x1a");
    terminal.until("no paste", |terminal| terminal.times(NO_PASTES) > before);
    // It stops behind what it wrote: one that is told to go on before does so when it is told again.
    terminal.until("pastes again", |terminal| {
        terminal.signal(Signal::CONT);
        terminal.times(PASTES) > marked
    });
    terminal.types("\x1b[200~a\rb\x1b[201~\r");
    terminal.shows("fine");
    terminal.at_prompt();
    terminal.types("\x04");
    assert_eq!(terminal.ended(), Some(0));
    assert_eq!(said(&world), ["hello", "a\nb"]);
}

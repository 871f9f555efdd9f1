use proptest::prelude::*;

use super::*;

const IDS: [&str; 4] = ["aaaa", "bbbb", "cccc", "dddd"];
const OLD: [&str; 4] = ["One is first.\n\n", "Two is next.\n\n", "Three comes then.\n\n", "Four ends it."];

fn marks(old: &[&str]) -> Marks {
    Marks::of(IDS.iter().copied().take(old.len()), &old.concat(), None)
}

fn read(body: &str) -> Vec<String> {
    marks(&OLD).read(&OLD, body).unwrap()
}

#[test]
fn a_file_that_was_not_touched_is_the_text() {
    let file = marks(&OLD).file("A ⟦title⟧\n", &OLD, "edit-a");
    assert!(file.starts_with("⟦drawloom A title: "), "{file}");
    assert_eq!(read(&marks(&OLD).body(&file).unwrap()), OLD);
    assert!(marks(&OLD).are_in(&file) && !marks(&OLD).are_in(&OLD.concat()));
}

#[test]
fn a_file_without_anything_in_brackets_is_the_text() {
    let file = marks(&OLD).file("A title", &OLD, "edit-a");
    let bare = file.split(OPEN).map(|part| part.split_once(CLOSE).map_or(part, |(_, rest)| rest));
    assert_eq!(read(&marks(&OLD).body(&bare.collect::<String>()).unwrap()), OLD);
}

#[test]
fn a_line_end_that_the_text_begins_with_stays_where_the_line_above_went_with_the_marks() {
    for begin in ["", "\n", "\n\n", "\r\n"] {
        let first = format!("{begin}It rained.\n\n");
        let old = [first.as_str(), "Two.\n"];
        let marks = marks(&old);
        let whole = old.concat() + "\n";
        for (what, file) in [("the line went", whole.clone()), ("its end is left", format!("\n{whole}"))] {
            assert_eq!(marks.body(&file).unwrap(), old.concat(), "{begin:?}: {what}");
        }
    }
}

#[test]
fn a_file_says_its_name_whatever_the_title_holds() {
    let file = marks(&OLD).file("A edit-x: marks the beginning of a passage", &OLD, "edit-abcd-Xy0");
    assert_eq!(name_in(&file), Some("edit-abcd-Xy0"));
    assert_eq!(name_in(&file.replace(' ', "\n")), Some("edit-abcd-Xy0"), "wrapped");
    assert_eq!(name_in(&file.replace("edit-abcd-Xy0", "edit-../../x")), None);
    assert_eq!(name_in(&OLD.concat()), None);
    assert_eq!(read(&marks(&OLD).body(&file).unwrap()), OLD);
}

#[test]
fn a_text_that_begins_like_the_line_above_stays_where_it_is_doubled() {
    let old = ["⟦drawloom X: hello⟧ words I keep.\n\n", "Two."];
    let marks = marks(&old);
    let file = marks.file("T", &old, "edit-a");
    let doubled = format!("{}⟦aaaa⟧{}", file, old[0]);
    let read = marks.read(&old, &marks.body(&doubled).unwrap()).unwrap();
    assert_eq!(read.concat(), format!("{}Two.\n{}", old[0], old[0].trim_end_matches('\n').to_owned() + "\n"));
}

#[test]
fn marks_may_be_gone_doubled_moved_or_all_missing() {
    let [one, two, three, four] = OLD;
    let gone = format!("⟦aaaa⟧{one}{two}⟦cccc⟧{three}⟦dddd⟧{four}");
    assert_eq!(read(&gone), OLD, "a mark that is gone");
    let alone = format!("{one}{two}{three}{four}");
    assert_eq!(read(&alone), OLD, "all marks are gone");
    let doubled = format!("⟦aaaa⟧{one}⟦bbbb⟧{two}⟦aaaa⟧{one}⟦cccc⟧{three}⟦dddd⟧{four}");
    assert_eq!(read(&doubled), [one, &format!("{two}{one}"), three, four], "a passage copied with its mark");
    let moved = format!("⟦bbbb⟧{two}⟦cccc⟧{three}⟦aaaa⟧{one}⟦dddd⟧{four}");
    assert_eq!(read(&moved), ["", two, &format!("{three}{one}"), four], "a passage moved with its mark");
    let above = format!("Before.\n\n⟦aaaa⟧{one}⟦bbbb⟧{two}⟦cccc⟧{three}⟦dddd⟧{four}");
    assert_eq!(read(&above), [&format!("Before.\n\n{one}"), two, three, four], "text above the first mark");
    let deleted = format!("⟦aaaa⟧{one}⟦dddd⟧{four}");
    assert_eq!(read(&deleted), [one, "", "", four], "passages deleted with their marks");
    assert_eq!(read("⟦aaaa⟧⟦bbbb⟧⟦cccc⟧⟦dddd⟧"), ["", "", "", ""]);
    let alone = format!("⟦aaaa⟧One is ⟦cccc⟧first.\n\n⟦bbbb⟧{two}{three}⟦dddd⟧{four}⟦dddd⟧");
    assert_eq!(read(&alone), OLD, "marks that went elsewhere and stand there twice are no edit");
}

#[test]
fn an_invented_mark_is_named_and_brackets_of_the_text_are_text() {
    let unknown = marks(&OLD).read(&OLD, "⟦aaaa⟧One\n⟦zzzz⟧Two").unwrap_err();
    assert_eq!(unknown, UnknownMark::Foreign("⟦zzzz⟧".to_owned()));
    assert_eq!(unknown.line("⟦aaaa⟧One\n⟦zzzz⟧Two"), 2);
    let old = ["⟦aaaa⟧ and ⟦zzzz⟧ ", "⟦secret:K⟧ ⟦not a mark⟧ ⟦"];
    let marks = marks(&old);
    let file = marks.file("T", &old, "edit-a");
    assert!(file.contains("⟦aaaa·2⟧⟦aaaa⟧"), "{file}");
    assert_eq!(marks.read(&old, &marks.body(&file).unwrap()).unwrap(), old);
}

#[test]
fn the_line_above_the_text_goes_wherever_it_stands() {
    let all = marks(&OLD);
    let file = all.file("A title", &OLD, "edit-a");
    let (header, text) = file.split_once('\n').unwrap();
    let plain = OLD.concat();
    for (what, saved, expected) in [
        ("below a paragraph", format!("Above.\n\n{file}"), format!("Above.\n\n{plain}")),
        ("doubled", format!("{file}{file}"), format!("{plain}\n{plain}")),
        ("wrapped", format!("{}\n{text}", header.replace(' ', "\n")), plain.clone()),
        ("wrapped with the text", format!("{header} {text}"), plain.clone()),
        ("within a line", format!("So {header} {text}"), format!("So {plain}")),
        ("at the end", format!("{text}{header}\n"), plain.clone()),
    ] {
        assert!(all.are_in(&saved), "{what}");
        assert_eq!(read(&all.body(&saved).unwrap()).concat(), expected, "{what}");
    }
    let half = file.replacen(" edit-a⟧\n", "", 1);
    assert_eq!(all.body(&half), Err(UnknownMark::Open(HEADER.to_owned())));
    // Where the text itself holds one, that stays.
    let own = [format!("{header}\n"), "Two.".to_owned()];
    let old: Vec<&str> = own.iter().map(String::as_str).collect();
    let two = marks(&old);
    let file = two.file("A title", &old, "edit-a");
    assert_eq!(two.read(&old, &two.body(&file).unwrap()).unwrap(), own);
    assert!(!two.are_in(&old.concat()));
}

#[test]
fn a_mark_that_is_half_there_is_named() {
    let half = marks(&OLD).read(&OLD, "⟦aaaa⟧One\n⟦bbbbTwo is").unwrap_err();
    assert_eq!(half, UnknownMark::Open("⟦bbbbTwo".to_owned()));
    assert_eq!(half.line("⟦bbbb⟧One\n⟦bbbbTwo is"), 2);
    for (body, mark, line) in [
        ("⟦aaaa⟧One\nbbbb⟧Two is", "bbbb⟧", 2),
        ("⟦aaaa⟧One ⟦BBBB⟧Two", "⟦BBBB⟧", 1),
        ("⟦aaaa⟧One\n⟦bbb⟧Two", "⟦bbb⟧", 2),
        ("⟦aaaa⟧One\n⟦⟧Two", "⟦⟧", 2),
        ("⟦aaaa⟧One\n⟦bb", "⟦bb", 2),
    ] {
        let unknown = marks(&OLD).read(&OLD, body).unwrap_err();
        assert_eq!((unknown.mark(), unknown.line(body)), (mark, line), "{body}");
    }
    let own = ["One bbbb⟧ and ", "Two"];
    let text = "⟦aaaa⟧One bbbb⟧ or ⟦bbbb⟧Two";
    assert_eq!(marks(&own).read(&own, text).unwrap(), ["One bbbb⟧ or ", "Two"], "it stood in the text");
    // Words with letters that no id has are words of the text.
    let word = "⟦aaaa⟧One ⟦hello⟧ ⟦note⟧ ⟦foul⟧\n⟦bbbb⟧Two";
    assert_eq!(marks(&OLD[..2]).read(&["One ", "Two"], word).unwrap()[1], "Two");
    // A bracket before other letters, and one that stood in the text, are text.
    let old = ["⟦aaaa is\n", "Two"];
    let texts = marks(&old).read(&old, "⟦aaaa⟧⟦aaaa was\n⟦bbbb⟧Two ⟦zzzz").unwrap();
    assert_eq!(texts, ["⟦aaaa was\n", "Two ⟦zzzz"]);
}

proptest! {
    /// What the editor saved is what the passages say together, whatever became of the marks.
    #[test]
    fn together_they_are_what_was_saved(
        pieces in prop::collection::vec(
            prop_oneof![
                prop::sample::select(OLD.to_vec()).prop_map(str::to_owned),
                prop::sample::select(IDS.to_vec()).prop_map(|id| format!("⟦{id}⟧")),
                // No letter that an id has: what is like a mark is refused.
                "[E é\n⟦⟧.]{0,8}",
            ],
            0..12,
        ),
    ) {
        // Brackets alone are what is left of a mark.
        let body = pieces.concat().replace("⟦⟧", "⟦ ⟧");
        let mut plain = body.clone();
        for id in IDS {
            plain = plain.replace(&format!("⟦{id}⟧"), "");
        }
        prop_assert_eq!(read(&body).concat(), plain);
    }
}

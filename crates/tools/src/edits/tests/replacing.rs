use super::super::{MissReason, replace};
use super::nearest;

fn replaced(text: &str, old: &str, new: &str) -> String {
    replace(text, old, new, false).unwrap_or_else(|miss| panic!("{miss}")).text
}

fn reason(text: &str, old: &str, new: &str) -> MissReason {
    replace(text, old, new, false).expect_err("nothing to replace").reason
}

#[test]
fn what_stands_once_is_replaced_and_its_line_is_told() {
    let done = replace("one\ntwo\nthree\n", "two", "2", false).unwrap();
    assert_eq!((done.text.as_str(), done.count, done.line), ("one\n2\nthree\n", 1, 2));
    assert_eq!(replaced("one\ntwo\n", "two\n", ""), "one\n");
    assert_eq!(replaced("a b", " b", ""), "a");
}

#[test]
fn what_says_nothing_is_refused_with_the_reason() {
    assert_eq!(reason("a", "", "b"), MissReason::EmptyOld);
    assert_eq!(reason("a", "a", "a"), MissReason::Unchanged { exactly: true });
    assert_eq!(reason("a\r\nb", "a\r\nb", "a\nb"), MissReason::Unchanged { exactly: false });
    assert!(reason("a\r\nb", "a\r\nb", "a\nb").to_string().contains("line endings"));
}

#[test]
fn several_places_are_named_by_their_lines() {
    let text = "x\ny\nx\ny x\n";
    assert_eq!(reason(text, "x", "z"), MissReason::Several { lines: vec![1, 3, 4], more: false });
    assert!(reason(text, "x", "z").to_string().contains("lines 1, 3, 4:"), "{}", reason(text, "x", "z"));
    let done = replace(text, "x", "z", true).unwrap();
    assert_eq!((done.text.as_str(), done.count, done.line), ("z\ny\nz\ny z\n", 3, 1));
    assert_eq!(reason("aaa", "aa", "b"), MissReason::Several { lines: vec![1, 1], more: false });
    let MissReason::Several { lines, more } = reason(&"a".repeat(1 << 20), &"a".repeat(1 << 10), "b") else {
        panic!("several");
    };
    assert_eq!((lines.len(), more), (20, true));
}

#[test]
fn line_endings_are_those_of_the_file() {
    assert_eq!(replaced("a\r\nb\r\nc\r\n", "a\nb\n", "x\ny\nz\n"), "x\r\ny\r\nz\r\nc\r\n");
    assert_eq!(replaced("a\r\nb\r\n", "b", "x\ny"), "a\r\nx\r\ny\r\n");
    assert_eq!(replaced("a\nb\n", "a\r\nb", "x\r\ny\r\nz"), "x\ny\nz\n");
    assert_eq!(
        replaced("a\r\nb\nc\r\n", "a\nb\nc", "new\na\nb\nc"),
        "new\r\na\r\nb\nc\r\n",
        "mixed ones stay"
    );
    assert_eq!(replaced("a\r\nb", "b", "x\ny"), "a\r\nx\r\ny");
    assert_eq!(replaced("a", "a", "x\ny"), "x\ny");
    assert_eq!(replaced("a\rb\n", "a\rb", "c"), "c\n", "a carriage return alone is part of its line");
}

#[test]
fn a_byte_order_mark_stays_and_need_not_be_given() {
    for old in ["a", "\u{feff}a"] {
        assert_eq!(replaced("\u{feff}a\nb\n", old, "x"), "\u{feff}x\nb\n");
    }
    assert_eq!(replaced("a\u{feff}b", "\u{feff}b", "c"), "ac", "one in the middle is text");
}

#[test]
fn the_final_newline_is_changed_only_by_what_names_it() {
    assert_eq!(replaced("a\nb", "b", "c"), "a\nc");
    assert_eq!(replaced("a\nb\n", "b\n", "c"), "a\nc");
    assert_eq!(replaced("a\nb", "b", "c\n"), "a\nc\n");
    let miss = replace("a\nbe", "be\n", "c\n", false).unwrap_err();
    assert!(
        miss.to_string().contains("line 2 (line 1 of the old text): the file ends there without"),
        "{miss}"
    );
    assert!(nearest(&miss).only_white_space);
}

#[test]
fn a_miss_shows_the_place_and_both_lines() {
    let text = "fn one() {\n    1\n}\n\nfn two() {\n    2\n}\n";
    let miss = replace(text, "fn two() {\n\t2\n}", "", false).unwrap_err();
    assert_eq!(
        miss.to_string(),
        "the text does not stand in the file. The nearest place is lines 5 to 7.\n\
         Only white space differs there.\n\
         The first line that differs is line 6 (line 2 of the old text) in white space alone (· is a space, → a tab, \
         ␍ a carriage return).\n  wanted: →2\n  found:  ····2\nAround it the file has:\n     3\t}\n     4\t\n     \
         5\tfn two() {\n     6\t    2\n     7\t}\n"
    );
    let miss = replace("one\ntwo", "two\nthree and more", "", false).unwrap_err();
    assert!(miss.to_string().contains("  found:  the end of the file\n"), "{miss}");
    let miss = replace("", "one", "", false).unwrap_err();
    assert!(miss.to_string().ends_with("read the file again."), "{miss}");
}

#[test]
fn a_miss_is_short_however_long_the_lines_are() {
    let text = format!("{}\n", "word ".repeat(200_000));
    let old = text.trim_end().to_owned() + "s";
    let miss = replace(&text, &old, "", false).unwrap_err();
    assert!(miss.to_string().len() < 2_000, "{miss}");
    assert!(nearest(&miss).difference.wanted.ends_with('s'), "the place where it differs is shown");
}

/// A megabyte of lines that are alike in every way but the one that matters, and one of lines that are all the same.
#[test]
fn the_nearest_place_of_a_long_file_is_found() {
    let alike: String = (0..25_000).map(|at| format!("    let value = compute({at}, 0x5f);\n")).collect();
    let same = "    }\n".repeat(180_000);
    for text in [&alike, &same] {
        let lines: Vec<&str> = text.lines().collect();
        let mut old: Vec<String> = lines[10_000..10_200].iter().map(|line| (*line).to_owned()).collect();
        old[120] = "    let value = other(1);".to_owned();
        let miss = replace(text, &old.join("\n"), "", false).unwrap_err();
        let line = nearest(&miss).difference.line;
        assert!(line == 10_121 || text == &same, "{miss}");
    }
}

#[test]
fn many_places_of_one_long_line_are_replaced_in_one_pass() {
    let done = replace(&"ab".repeat(1 << 19), "a", "\n", true).unwrap();
    assert_eq!((done.count, done.text.len()), (1 << 19, 1 << 20));
    assert_eq!(replace("a\r\na\nb", "a", "x\ny", true).unwrap().text, "x\r\ny\r\nx\ny\nb");
}

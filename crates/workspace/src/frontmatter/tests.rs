//! The cases of frontmatter (attacks §2), one test a group, in their order.

use proptest::prelude::*;

use super::*;

fn page(block: &str) -> Page {
    read(format!("---\n{block}\n---\nbody\n").as_bytes()).unwrap_or_else(|e| panic!("{block:?}: {e}"))
}

fn fields(block: &str) -> Map {
    page(block).fields.unwrap()
}

fn refusal(file: &[u8]) -> FrontmatterProblem {
    match read(file) {
        Err(error) => error.why,
        Ok(page) => panic!("accepted: {page:?}"),
    }
}

fn refused(block: &str) -> FrontmatterProblem {
    refusal(format!("---\n{block}\n---\nbody\n").as_bytes())
}

fn text(map: &Map, key: &str) -> String {
    map.text(key).unwrap().unwrap().to_owned()
}

#[test]
fn a_card_is_read_in_order_with_its_body() {
    let page = page("capability_id: deploy\ntriggers:\n  keywords: [ship it, release]\npriority: 7");
    let map = page.fields.unwrap();
    assert_eq!(map.iter().map(|(key, _)| key).collect::<Vec<_>>(), ["capability_id", "triggers", "priority"]);
    assert_eq!(text(&map, "capability_id"), "deploy");
    let triggers = map.map("triggers").unwrap().unwrap();
    assert_eq!(triggers.texts("keywords", 10).unwrap(), ["ship it", "release"]);
    assert_eq!(map.integer("priority", 1, 10).unwrap(), Some(7));
    assert_eq!((page.body.as_str(), page.warnings.len()), ("body\n", 0));
}

#[test]
fn frontmatter_2_byte_order_mark_and_crlf_are_read() {
    let page = read("\u{feff}---\r\nname: x\r\nlong: |\r\n  a\r\n  b\r\n---\r\nbody\r\n".as_bytes()).unwrap();
    let map = page.fields.unwrap();
    assert_eq!(text(&map, "name"), "x");
    assert_eq!(text(&map, "long"), "a\nb\n");
    assert_eq!(page.body, "body\n");
}

#[test]
fn frontmatter_2_a_lone_carriage_return_is_refused() {
    assert_eq!(refusal(b"---\rname: x\r---\rbody"), FrontmatterProblem::LoneCarriageReturn);
    let error = read(b"---\na: 1\nb: 2\rc: 3\n---\n").unwrap_err();
    assert_eq!(error, FrontmatterProblem::LoneCarriageReturn.at(3));
}

#[test]
fn frontmatter_2_wide_encodings_and_broken_utf8_are_refused() {
    let wide = |bytes: Vec<[u8; 2]>| bytes.concat();
    let text = "---\nname: x\n---\n";
    assert_eq!(
        refusal(&wide(text.encode_utf16().map(u16::to_le_bytes).collect())),
        FrontmatterProblem::WideEncoding
    );
    assert_eq!(
        refusal(&wide(text.encode_utf16().map(u16::to_be_bytes).collect())),
        FrontmatterProblem::WideEncoding
    );
    assert_eq!(refusal(b"\xff\xfe-\0-\0-\0"), FrontmatterProblem::WideEncoding);
    assert_eq!(refusal(b"\0\0\xfe\xff\0\0\0-"), FrontmatterProblem::WideEncoding);
    assert_eq!(read(b"---\nname: caf\xe9\n---\n").unwrap_err(), FrontmatterProblem::NotUtf8.at(2));
}

#[test]
fn frontmatter_2_fences() {
    assert_eq!(read(b"\n\n---\na: 1\n---\n").unwrap_err(), FrontmatterProblem::NotFirst.at(3));
    assert_eq!(refusal(b"----\na: 1\n----\n"), FrontmatterProblem::Fence("----".into()));
    assert_eq!(refusal(b"+++\na = 1\n+++\n"), FrontmatterProblem::Fence("+++".into()));
    for engine in ["js", "json", "coffee", "javascript"] {
        assert_eq!(
            refusal(format!("---{engine}\n{{}}\n---\n").as_bytes()),
            FrontmatterProblem::Engine(engine.into())
        );
        assert_eq!(
            refusal(format!("--- {engine}\n{{}}\n---\n").as_bytes()),
            FrontmatterProblem::Engine(engine.into())
        );
    }
    // At the last line that there is.
    for (file, last) in [("---", 1), ("---\na: 1\nbody", 3), ("---\na: 1\n--- x\n", 4)] {
        let error = read(file.as_bytes()).unwrap_err();
        assert_eq!((error.why, error.line), (FrontmatterProblem::NotClosed, last), "{file}");
    }
    let spaced = read(b"--- \na: 1\n---\t\nbody").unwrap();
    let lines: Vec<_> = spaced.warnings.iter().map(|w| (w.line, &w.what)).collect();
    assert_eq!(lines, [(1, &Irregularity::FenceSpace), (3, &Irregularity::FenceSpace)]);
}

#[test]
fn frontmatter_2_a_file_without_a_block_is_all_body() {
    for file in ["", "text", "# Title\n\n---\n\nmore", "\n\ntext\n", "-- \n", "--- a: b\n---\n"] {
        let page = read(file.as_bytes()).unwrap();
        assert_eq!((page.fields, page.body.as_str()), (None, file));
    }
    assert_eq!(read(b"---\n---\nbody").unwrap().fields, Some(Map::default()));
    assert_eq!(read(b"---\n# a comment\n---\nbody").unwrap().fields, Some(Map::default()));
}

#[test]
fn frontmatter_2_dashes_inside_values_do_not_close() {
    let map = fields("a: x --- y\nb: \"---\"\nc: |\n  ---\n  z\nd: a---b");
    assert_eq!(text(&map, "a"), "x --- y");
    assert_eq!(text(&map, "b"), "---");
    assert_eq!(text(&map, "c"), "---\nz\n");
    assert_eq!(text(&map, "d"), "a---b");
}

#[test]
fn frontmatter_2_two_documents() {
    assert_eq!(refused("a: 1\n...\nb: 2"), FrontmatterProblem::SecondDocument);
    assert_eq!(refused("a: 1\n..."), FrontmatterProblem::SecondDocument);
    assert_eq!(refused("%YAML 1.1\n"), FrontmatterProblem::SecondDocument);
    let page = read(b"---\na: 1\n---\n---\nb: 2\n---\nbody\n").unwrap();
    assert_eq!(page.fields.unwrap().len(), 1);
    assert_eq!(page.warnings, [Warning { line: 4, what: Irregularity::SecondBlock }]);
}

#[test]
fn frontmatter_2_keys_are_given_once() {
    let error = read(b"---\na: 1\nb: 2\na: 3\n---\n").unwrap_err();
    assert_eq!(error, FrontmatterProblem::DuplicateKey("a".into()).at(4));
    assert_eq!(refused("a: {x: 1, \"x\": 2}"), FrontmatterProblem::DuplicateKey("x".into()));
    let both = fields("routerTags: [a]\nrouter_tags: [b]");
    assert_eq!(both.texts("router_tags", 9), Err(FieldError::TwoSpellings { key: "router_tags".into() }));
    assert_eq!(fields("routerTags: [a]").texts("router_tags", 9).unwrap(), ["a"]);
}

#[test]
fn frontmatter_2_merge_keys_anchors_aliases_tags_are_refused() {
    assert_eq!(refused("<<: {a: 1}"), FrontmatterProblem::MergeKey);
    assert_eq!(refused("a: &x 1"), FrontmatterProblem::Anchor);
    assert_eq!(refused("a: &x [1]\nb: *x"), FrontmatterProblem::Anchor);
    assert_eq!(refused("a: *x"), FrontmatterProblem::Alias);
    assert_eq!(refused("*x : 1"), FrontmatterProblem::Alias);
    for tag in ["!!python/object:os.system", "!!binary", "!!str", "!x", "!", "!e!x", "!<tag:x>"] {
        assert_eq!(refused(&format!("a: {tag} b")), FrontmatterProblem::Tag, "{tag}");
        assert_eq!(refused(&format!("a: {tag} [b]")), FrontmatterProblem::Tag, "{tag}");
    }
    // The same characters in quotes are text.
    let map = fields("a: \"<<\"\nb: '*x'\nc: '!y'\nd: '&z'\n\"<<\": 1");
    assert_eq!(text(&map, "b"), "*x");
    assert_eq!(text(&map, "<<"), "1");
}

#[test]
fn frontmatter_2_the_billion_laughs_are_refused_at_once() {
    let mut bomb = "a: &a [x,x,x,x,x,x,x,x,x]\n".to_owned();
    for (from, to) in ('a'..='h').zip('b'..='i') {
        bomb.push_str(&format!("{to}: &{to} [*{from},*{from},*{from},*{from},*{from},*{from}]\n"));
    }
    assert_eq!(refused(&bomb), FrontmatterProblem::Anchor);
}

#[test]
fn frontmatter_2_nesting_and_size_are_limited() {
    let nested = |depth: usize| format!("a: {}1{}", "[".repeat(depth - 1), "]".repeat(depth - 1));
    assert_eq!(fields(&nested(MAX_DEPTH)).len(), 1);
    assert_eq!(refused(&nested(MAX_DEPTH + 1)), FrontmatterProblem::TooDeep);
    assert_eq!(refused(&format!("a: {}", "[".repeat(10_000))), FrontmatterProblem::TooDeep);
    assert_eq!(refused(&format!("a: {}", "{a: ".repeat(2_000))), FrontmatterProblem::TooDeep);
    let block = |depth: usize| (0..depth).map(|n| format!("{}k:\n", " ".repeat(n))).collect::<String>();
    assert_eq!(fields(&block(MAX_DEPTH)).len(), 1);
    assert_eq!(refused(&block(MAX_DEPTH + 1)), FrontmatterProblem::TooDeep);
    assert_eq!(refused(&block(100)), FrontmatterProblem::TooDeep);
    assert_eq!(refused(&format!("a:\n  {}x", "- ".repeat(5_000))), FrontmatterProblem::TooDeep);
    assert_eq!(refused(&format!("{}: 1", "k".repeat(1 << 20))), FrontmatterProblem::TooLarge);
    assert_eq!(refused(&format!("{}: 1", "k".repeat(MAX_KEY + 1))), FrontmatterProblem::LongKey);
    assert_eq!(refused(&format!("a: {}", "x".repeat(MAX_BYTES))), FrontmatterProblem::TooLarge);
    assert_eq!(refused(&format!("a: [{}]", "b,".repeat(MAX_VALUES))), FrontmatterProblem::TooMany);
    let keywords = format!("keywords: [{}]", "x,".repeat(10_000));
    assert_eq!(refused(&keywords), FrontmatterProblem::TooLarge);
}

#[test]
fn frontmatter_2_only_a_mapping_of_plain_keys_is_a_block() {
    assert_eq!(refused("- a"), FrontmatterProblem::NotAMapping);
    assert_eq!(refused("just words"), FrontmatterProblem::NotAMapping);
    assert_eq!(refused("? [a, b]\n: c"), FrontmatterProblem::ComplexKey);
    assert_eq!(refused("{[a]: b}"), FrontmatterProblem::ComplexKey);
    assert!(matches!(refused("a: \"open"), FrontmatterProblem::Yaml(_)));
    assert!(matches!(refused("a: [1, 2"), FrontmatterProblem::Yaml(_)));
    assert!(matches!(refused("a:\n\tb: 1"), FrontmatterProblem::Yaml(_)));
    assert!(matches!(refused("a: b: c"), FrontmatterProblem::Yaml(_)));
}

#[test]
fn frontmatter_2_words_that_other_readers_mistake_stay_words() {
    let words = [
        "no",
        "No",
        "on",
        "OFF",
        "y",
        "yes",
        ".nan",
        ".inf",
        "-.INF",
        "1e400",
        "0755",
        "0o17",
        "0x1F",
        "1_000",
        "12:30:45",
        "2026-11-21",
    ];
    let page = page(&format!("keywords: [{}]", words.join(", ")));
    assert_eq!(page.fields.unwrap().texts("keywords", 99).unwrap(), words);
    assert_eq!(page.warnings.len(), words.len(), "{:?}", page.warnings);
    let plain = self::page("keywords: [note, once, 1.10, 12, 3e2, -5, true, a-b, 'no', \"1_000\"]");
    assert_eq!(plain.warnings, []);
    let found = plain.fields.unwrap();
    let found = found.texts("keywords", 99).unwrap();
    assert_eq!(found, ["note", "once", "1.10", "12", "3e2", "-5", "true", "a-b", "no", "1_000"]);
}

#[test]
fn frontmatter_2_truth_values_are_strict() {
    assert_eq!(fields("always: false").bool("always"), Ok(Some(false)));
    assert_eq!(fields("always: True").bool("always"), Ok(Some(true)));
    for odd in ["no", "on", "yes", "0", "\"true\"", "[true]", "'false'"] {
        let asked = fields(&format!("always: {odd}")).bool("always");
        assert!(matches!(asked, Err(FieldError::Kind { .. })), "{odd}");
    }
}

#[test]
fn frontmatter_2_numbers_are_numbers_within_their_range() {
    let number = |text: &str| fields(&format!("n: {text}")).number("n", 0.0, 1.0);
    assert_eq!(number("0"), Ok(Some(0.0)));
    assert_eq!(number("0.6"), Ok(Some(0.6)));
    assert_eq!(number(".5"), Ok(Some(0.5)));
    assert!(matches!(number("1.01"), Err(FieldError::Range { .. })));
    assert!(matches!(number("-0.1"), Err(FieldError::Range { .. })));
    for text in [".nan", ".inf", "1e400", "\"0.6\"", "0,6", "half", "[0.6]"] {
        assert!(matches!(number(text), Err(FieldError::Kind { .. })), "{text}");
    }
    let whole = |text: &str| fields(&format!("n: {text}")).integer("n", 1, 10);
    assert_eq!(whole("5"), Ok(Some(5)));
    assert_eq!(whole("+5"), Ok(Some(5)));
    for text in ["0", "-3", "11", "9223372036854775807"] {
        assert!(matches!(whole(text), Err(FieldError::Range { .. })), "{text}");
    }
    for text in ["5.0", "\"5\"", "0x5", "05", "99999999999999999999", "five"] {
        assert!(matches!(whole(text), Err(FieldError::Kind { .. })), "{text}");
    }
}

#[test]
fn frontmatter_2_numbers_as_texts_keep_their_spelling() {
    let map = fields("version: 1.10\nid: 007\nbig: 123456789012345678901234567890\nname: 1e3");
    assert_eq!(text(&map, "version"), "1.10");
    assert_eq!(text(&map, "id"), "007");
    assert_eq!(text(&map, "big"), "123456789012345678901234567890");
    assert_eq!(text(&map, "name"), "1e3");
    assert_eq!(text(&fields("id: ../../etc/Passwd"), "id"), "../../etc/Passwd");
}

#[test]
fn frontmatter_2_lists_may_be_nothing_but_not_hold_nothing() {
    for none in ["keywords:", "keywords: null", "keywords: ~", "keywords: []", "other: 1"] {
        assert_eq!(fields(none).texts("keywords", 9), Ok(Vec::new()), "{none}");
    }
    assert_eq!(fields("keywords: single").texts("keywords", 9).unwrap(), ["single"]);
    for empty in ["['']", "['  ']", "[a, ~]", "[null]", "\" \""] {
        let asked = fields(&format!("keywords: {empty}"));
        assert!(matches!(asked.texts("keywords", 9), Err(FieldError::Empty { .. })), "{empty}");
    }
    let many = fields("keywords: [a, b, c]");
    assert!(matches!(many.texts("keywords", 2), Err(FieldError::Count { most: 2, .. })));
    assert_eq!(fields("keywords: ['.*']").texts("keywords", 9).unwrap(), [".*"]);
    assert!(fields("keywords: {a: b}").texts("keywords", 9).is_err());
    assert!(fields("keywords: [[a]]").texts("keywords", 9).is_err());
}

#[test]
fn frontmatter_2_unknown_keys_are_kept_and_named() {
    let map = fields("name: x\nrouterTags: [a]\nmodle: y");
    assert_eq!(map.unknown(&["name", "router_tags"]).collect::<Vec<_>>(), ["modle"]);
    assert_eq!(text(&map, "modle"), "y");
}

#[test]
fn x22_a_skill_as_openclaw_writes_it_is_read() {
    let skill = "---\r\nname: demo\r\ndescription: >\r\n  folded\r\n  text\r\nalways: false\r\n\
                 metadata: {openclaw: {requires: null, os: [darwin, linux]}}\r\nrequires: null\r\n---\r\n# Demo\r\n";
    let map = read(skill.as_bytes()).unwrap().fields.unwrap();
    assert_eq!(text(&map, "description"), "folded text\n");
    assert_eq!(map.bool("always"), Ok(Some(false)));
    assert_eq!(map.map("requires"), Ok(None));
    let openclaw = map.map("metadata").unwrap().unwrap().map("openclaw").unwrap().unwrap();
    assert_eq!(openclaw.texts("os", 9).unwrap(), ["darwin", "linux"]);
    assert_eq!(openclaw.map("requires"), Ok(None));
}

proptest! {
    #[test]
    fn no_bytes_crash_the_reader(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = read(&bytes);
        let _ = read(&[b"---\n", bytes.as_slice(), b"\n---\n"].concat());
    }

    #[test]
    fn no_yaml_like_text_crashes_the_reader(block in r#"([a-c:\-?\[\]{},&*!|>'"%@ #~.0-9]|\n|\t){0,80}"#) {
        if let Ok(Page { fields: Some(map), .. }) = read(format!("---\n{block}\n---\n").as_bytes()) {
            for (key, _) in map.iter() {
                let _ = (map.text(key), map.bool(key), map.number(key, 0.0, 1.0), map.texts(key, 5));
            }
        }
    }

    #[test]
    fn a_quoted_text_comes_back_as_it_was(text in "[ -~äøπ]{0,60}") {
        let quoted = text.replace('\'', "''");
        let map = fields(&format!("k: '{quoted}'"));
        prop_assert_eq!(map.text("k").unwrap(), Some(text.as_str()));
    }
}

//! A search against a plain loop over the files and their lines, by one thread and by several.

use std::cell::{Cell, RefCell};
use std::fs;
use std::sync::Arc;

use loom::{Digest, Trust};
use model::Cancel;
use policy::{Policy, SessionType};
use proptest::prelude::*;
use regex::RegexBuilder;
use serde_json::json;
use text::mask::{Masker, Secret};
use workspace::{AllowedRoots, Root, StoreGuard};

use super::*;
use crate::files::fixture::{RowRecorder, place as call_place};
use crate::session_skills::FollowedSkills;
use crate::{SeenFiles, ToolScope};

const SECRET: &str = "sk-canary-0123456789";

/// Files by their paths, in the order of a walk.
type Files = Vec<(String, Vec<u8>)>;

struct Tree {
    folder: tempfile::TempDir,
    guard: StoreGuard,
}

impl Tree {
    fn of(files: &Files) -> Self {
        let tree = Self { folder: tempfile::tempdir().unwrap(), guard: StoreGuard::new() };
        for (path, bytes) in files {
            let path = tree.folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, bytes).unwrap();
        }
        tree
    }

    /// What a search says, and whether something that it shows is from outside: `outside` is.
    fn search(&self, asked: &serde_json::Value, threads: usize, outside: &[Digest]) -> (String, bool) {
        let scope = ToolScope {
            roots: AllowedRoots::within(vec![Root::open(self.folder.path(), &self.guard).unwrap()]).into(),
            trust: Trust::Workspace,
            masker: Arc::new(Masker::new(&[Secret::new("key", SECRET).unwrap()]).unwrap()),
            policy: Policy::default().into(),
            session: SessionType::Main,
            locks: self.folder.path().join(".locks"),
            umask: 0o022,
            seen: SeenFiles::default(),
            max_pixels: 1_000_000,
            search_time: std::time::Duration::from_secs(600),
            commands: None,
            hooks: Vec::new(),
        };
        let recorded = RowRecorder { outside: outside.to_vec(), ..RowRecorder::default() };
        let call = CallScope {
            scope: &scope,
            place: &call_place(),
            cancel: &Cancel::never(),
            changes: &recorded,
            plan_mode: false,
            from_outside: Cell::new(false),
            pictures: RefCell::default(),
            brief: RefCell::default(),
            skills: FollowedSkills::default(),
            session_skills: Arc::default(),
            background: RefCell::default(),
        };
        let said = run_by(&call, &serde_json::from_value(asked.clone()).unwrap(), threads).unwrap();
        (said, call.from_outside.get())
    }
}

/// What is to be said, and the digests of the files that are shown.
fn expected(
    files: &Files,
    pattern: &str,
    ignore_case: bool,
    context: usize,
    limit: usize,
) -> (String, Vec<Digest>) {
    let expression = RegexBuilder::new(pattern).case_insensitive(ignore_case).build().unwrap();
    let (mut out, mut left, mut unread, mut shown) = (String::new(), limit, 0, Vec::new());
    for (path, bytes) in files {
        if left == 0 || out.len() >= 50_000 {
            break;
        }
        if bytes.contains(&0) {
            unread += 1;
            continue;
        }
        let text = String::from_utf8_lossy(bytes).replace(SECRET, "⟦secret:key⟧");
        let lines: Vec<&str> = text.strip_prefix('\u{feff}').unwrap_or(&text).lines().collect();
        let mut next = 0;
        for at in (0..lines.len()).filter(|at| expression.is_match(lines[*at])) {
            if left == 0 || out.len() >= 50_000 {
                break;
            }
            left -= 1;
            let from = at.saturating_sub(context).max(next);
            if next == 0 {
                shown.push(Digest::of(bytes));
            } else if from > next && context > 0 {
                out += "--\n";
            }
            let to = (at + context + 1).min(lines.len());
            for (number, whole) in lines.iter().enumerate().take(to).skip(from) {
                let sign = if expression.is_match(whole) { ':' } else { '-' };
                let line: String = whole.chars().take(400).collect();
                let cut = if line.len() < whole.len() { "…" } else { "" };
                out += &format!("{path}{sign}{}{sign}{line}{cut}\n", number + 1);
            }
            next = to.max(next);
        }
    }
    if shown.is_empty() {
        out += "[No line matches.]\n";
    } else if left == 0 || out.len() >= 50_000 {
        out += "[There may be more: name a folder or a longer expression.]\n";
    }
    if unread > 0 {
        out += &format!("[Not searched, as they are no text, too long or cannot be read: {unread}.]\n");
    }
    (out, shown)
}

const PATTERNS: &[&str] = &[
    "a",
    "^a",
    "a$",
    "^$",
    "^",
    "$",
    "",
    "a\\s+b",
    "a\\s*$",
    "[^a]",
    "[^a]b",
    "b\\r",
    "\\r$",
    "\\r",
    "(?m)^b$",
    "(?s)a.b",
    "\\bab\\b",
    "\\Bb",
    "\\Aa",
    "a\\z",
    "(?i)AB",
    "\\n",
    "a\\nb",
    "a|\\n",
    "\\n*b",
    "a|^b",
    "x{3}",
    "(?R)a$",
    "(?Rm)^b",
    "(?Rm)a$",
    "⟦secret",
    "canary",
    "^sk-",
    "\\x{FFFD}",
    "\\x{FEFF}",
    "é",
    "(a+)+$",
    ".*",
    "^.{12}$",
    "(?-u)\\w b",
    "..$",
    "é\\b",
    "(?:^|x)b",
    "a(?:$|b)",
    "^\\s*$",
    "\\S\\s\\S",
    "[\\s\\S]b",
    "z",
];

fn contents() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        8 => prop::sample::select(vec!["a", "b", "ab", "é", " ", "aa", "A"]).prop_map(|text| text.as_bytes().to_vec()),
        5 => prop::sample::select(vec!["\n", "\r\n", "\n\n", "\r"]).prop_map(|text| text.as_bytes().to_vec()),
        1 => prop::sample::select(vec![SECRET, "sk-canary-012345678", "⟦secret:key⟧", "\u{feff}"])
            .prop_map(|text| text.as_bytes().to_vec()),
        1 => prop::sample::select(vec![vec![0xff], vec![0xc3], vec![0xe2, 0x9f], vec![b'x'; 399], vec![b'x'; 401]]),
    ];
    let whole = prop::collection::vec(piece, 0..14).prop_map(|pieces| pieces.concat());
    (whole, 0..40_u8, any::<bool>()).prop_map(|(mut bytes, odd, is_ended)| {
        match odd {
            0 => bytes.push(0),
            1..4 => bytes.splice(..0, *b"\xef\xbb\xbf").for_each(drop),
            _ => {}
        }
        bytes.extend(is_ended.then_some(b'\n'));
        bytes
    })
}

/// Of more folders than a batch has.
fn trees() -> impl Strategy<Value = Files> {
    prop::collection::vec(contents(), 1..24).prop_map(|contents| {
        let path = |at: usize| if at < 2 { format!("f{at}") } else { format!("d{:02}/f{}", at / 2, at % 2) };
        contents.into_iter().enumerate().map(|(at, bytes)| (path(at), bytes)).collect()
    })
}

proptest! {
    #[test]
    fn what_is_found_is_what_a_plain_loop_finds(
        files in trees(),
        pattern in prop::sample::select(PATTERNS),
        ignore_case in any::<bool>(),
        context in 0..4_usize,
        limit in prop_oneof![1..6_usize, Just(200)],
        outside in any::<usize>(),
    ) {
        let tree = Tree::of(&files);
        let asked = json!({"pattern": pattern, "ignore_case": ignore_case, "context": context, "limit": limit});
        let (said, shown) = expected(&files, pattern, ignore_case, context, limit);
        let digest = Digest::of(&files[outside % files.len()].1);
        for threads in [1, 3] {
            let told = tree.search(&asked, threads, &[digest]);
            prop_assert_eq!(&told, &(said.clone(), shown.contains(&digest)), "{} threads, {}", threads, pattern);
        }
    }

    #[test]
    fn a_text_is_searched_at_once_as_line_by_line(
        text in prop::collection::vec(contents(), 1..4), pattern in prop::sample::select(PATTERNS),
    ) {
        let text = String::from_utf8_lossy(&text.concat()).into_owned();
        let expression = Expression::new(pattern, false).unwrap();
        let (mut from, mut found) = (0, Vec::new());
        while let Some(line) = expression.find(&text, from) {
            found.push(line.text);
            from = line.next;
        }
        let plain = regex::Regex::new(pattern).unwrap();
        let lines: Vec<&str> = text.lines().filter(|line| plain.is_match(line)).collect();
        prop_assert_eq!(found, lines, "{}", pattern);
    }
}

#[test]
fn a_search_for_a_secret_tells_nothing_of_it() {
    let file = |line: &str| vec![("notes".to_owned(), format!("Key: {line}\n").into_bytes())];
    let (tree, other) = (Tree::of(&file(SECRET)), Tree::of(&file("⟦secret:key⟧")));
    for pattern in [SECRET, "canary", "sk-", "^Key: .{20}$", "[0-9]", "y$", "Key", "secret:key", "."] {
        let asked = json!({"pattern": pattern});
        let (said, _) = tree.search(&asked, 2, &[]);
        assert_eq!(said, other.search(&asked, 2, &[]).0, "{pattern}: as if the mask stood there");
        // The control: a value that is no secret is found.
        let plain = Tree::of(&file("sk-canary-9876543210"));
        assert!(!plain.search(&json!({"pattern": "canary"}), 2, &[]).0.contains("No line"), "{pattern}");
    }
}

#[test]
fn s8_the_stores_files_are_not_searched() {
    let names = ["loom.db", "loom.db-journal", "loom.db-shm", "loom.db-wal"];
    let files = |name: &&str| (format!("home/{name}"), b"woven\n".to_vec());
    let tree = Tree::of(&names.iter().map(files).collect());
    fs::hard_link(tree.folder.path().join("home/loom.db-wal"), tree.folder.path().join("innocent")).unwrap();
    let asked = json!({"pattern": "woven"});
    for threads in [1, 3] {
        let before = Tree { folder: tempfile::tempdir().unwrap(), guard: StoreGuard::new() };
        fs::write(before.folder.path().join("loom.db"), "woven\n").unwrap();
        assert_eq!(
            before.search(&asked, threads, &[]).0,
            "loom.db:1:woven\n",
            "the control: it is not under guard"
        );
    }
    tree.guard.protect(&tree.folder.path().join("home/loom.db")).unwrap();
    for threads in [1, 3] {
        let (said, _) = tree.search(&asked, threads, &[]);
        assert!(said.starts_with("[No line matches.]\n") && said.contains("cannot be read: 5.]"), "{said}");
    }
}

#[test]
fn nothing_is_found_behind_the_line_at_which_it_is_enough_however_many_threads_look() {
    let files: Files = (0..40).map(|at| (format!("d{at:02}/f"), b"weave\nweave\n".to_vec())).collect();
    let mut files = files;
    files.push(("d50/zero".to_owned(), vec![0]));
    let tree = Tree::of(&files);
    for limit in 1..30 {
        let asked = json!({"pattern": "weave", "limit": limit});
        let (said, _) = expected(&files, "weave", false, 0, limit);
        assert_eq!(tree.search(&asked, 4, &[]).0, said);
    }
}

//! The decision as a table, and the inventory of a hostile clone.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use loom::Digest;

use super::*;
use crate::guard::StoreGuard;

fn id(path: &str, inode: u64) -> WorkspaceId {
    WorkspaceId { path: path.into(), file: FileId { device: 1, inode } }
}

fn record(id: WorkspaceId, answer: TrustAnswer) -> TrustRecord {
    TrustRecord { id, answer, inventory: Inventory::default() }
}

fn loaded() -> Inventory {
    let item = InventoryItem {
        path: "AGENTS.md".into(),
        kind: ItemKind::Instructions,
        bytes: 1,
        sha256: Digest::of(b"x"),
    };
    Inventory { items: vec![item], ..Inventory::default() }
}

#[test]
fn the_decision_is_a_table() {
    use TrustAnswer::{Distrust, Trust};
    use TrustDecision::{NamedForThisCall, NothingToLoad, Trusted, Untrusted};
    use WorkspaceOrigin::{Discovered, HomesOwn, Named};
    let here = id("/w", 1);
    let (full, empty) = (loaded(), Inventory::default());
    let unsure = Inventory { incomplete: true, ..Inventory::default() };
    let yes = Some(record(here.clone(), Trust));
    let no = Some(record(here.clone(), Distrust));
    let other_inode = Some(record(id("/w", 2), Trust));
    let other_path = Some(record(id("/elsewhere", 1), Trust));
    let refused_elsewhere = Some(record(id("/elsewhere", 1), Distrust));
    let table = [
        (&full, Discovered, &None, Untrusted(UntrustedReason::NeverAsked)),
        (&full, Discovered, &yes, Trusted),
        (&full, Discovered, &no, Untrusted(UntrustedReason::Distrusted)),
        (&full, Discovered, &other_inode, Untrusted(UntrustedReason::Replaced)),
        (&full, Discovered, &other_path, Untrusted(UntrustedReason::Moved)),
        (&full, Discovered, &refused_elsewhere, Untrusted(UntrustedReason::NeverAsked)),
        (&empty, Discovered, &None, NothingToLoad),
        (&empty, Discovered, &no, Untrusted(UntrustedReason::Distrusted)),
        (&unsure, Discovered, &None, Untrusted(UntrustedReason::NeverAsked)),
        (&full, Named, &None, NamedForThisCall),
        (&full, Named, &no, NamedForThisCall),
        (&full, Named, &yes, Trusted),
        (&full, HomesOwn, &None, Trusted),
    ];
    for (inventory, arrival, record, expected) in table {
        let decision = decide(&here, inventory, arrival, record.as_ref());
        assert_eq!(decision, expected, "{arrival:?} {record:?}");
        assert_eq!(decision.loads(), !matches!(expected, Untrusted(_)));
    }
}

fn workspace() -> (tempfile::TempDir, Root) {
    let temp = tempfile::tempdir().unwrap();
    let root = Root::open(temp.path(), &StoreGuard::new()).unwrap();
    (temp, root)
}

fn put(folder: &Path, name: &str, text: &str) {
    let path = folder.join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

#[test]
fn s4_an_inventory_names_everything_that_would_be_loaded() {
    let (temp, root) = workspace();
    let files = [
        ("AGENTS.md", ItemKind::Instructions),
        ("HEARTBEAT.md", ItemKind::Instructions),
        ("memory/2026-11-21.md", ItemKind::Memory),
        ("handoffs/side.md", ItemKind::Memory),
        ("skills/a/SKILL.md", ItemKind::Skill),
        ("skills/group/b/SKILL.md", ItemKind::Skill),
        (".agents/skills/c/SKILL.md", ItemKind::Skill),
        ("commands/morning.md", ItemKind::Command),
        ("docs/capabilities/deploy.md", ItemKind::Card),
        ("reminders.json", ItemKind::Reminders),
        (".mcp.json", ItemKind::Servers),
        ("hooks/start/HOOK.md", ItemKind::Hook),
        (".drawloom/workspace.toml", ItemKind::Settings),
    ];
    for (name, _) in files {
        put(temp.path(), name, name);
    }
    put(temp.path(), "src/main.rs", "fn main() {}");
    put(temp.path(), "skills/a/helper.py", "x");
    let inventory = Inventory::take(&root);
    let found: Vec<_> = inventory.items.iter().map(|i| (i.path.to_str().unwrap(), i.kind)).collect();
    let mut expected = files.to_vec();
    expected.sort_by_key(|(name, _)| Path::new(name).to_path_buf());
    assert_eq!(found, expected);
    let agents = inventory.items.iter().find(|item| item.path == Path::new("AGENTS.md")).unwrap();
    assert_eq!((agents.bytes, agents.sha256), (9, Digest::of(b"AGENTS.md")));
    assert!(inventory.unread.is_empty() && !inventory.incomplete);
}

#[test]
fn a_folder_of_ordinary_files_has_nothing_to_load() {
    let (temp, root) = workspace();
    put(temp.path(), "README.md", "hello");
    put(temp.path(), "src/lib.rs", "");
    fs::create_dir(temp.path().join("skills")).unwrap();
    let inventory = Inventory::take(&root);
    assert!(inventory.is_empty());
    let decision = decide(&WorkspaceId::of(&root), &inventory, WorkspaceOrigin::Discovered, None);
    assert_eq!(decision, TrustDecision::NothingToLoad);
}

#[test]
fn s4_what_cannot_be_read_is_named_and_is_not_nothing() {
    let (temp, root) = workspace();
    symlink("/etc/passwd", temp.path().join("AGENTS.md")).unwrap();
    symlink("/etc", temp.path().join("skills")).unwrap();
    fs::create_dir(temp.path().join("MEMORY.md")).unwrap();
    fs::create_dir(temp.path().join("commands")).unwrap();
    symlink("/etc/hosts", temp.path().join("commands/x.md")).unwrap();
    let inventory = Inventory::take(&root);
    let unread: Vec<_> = inventory.unread.iter().map(|unread| unread.path.to_str().unwrap()).collect();
    assert_eq!(unread, ["AGENTS.md", "MEMORY.md", "commands/x.md", "skills"]);
    assert!(inventory.items.is_empty() && !inventory.is_empty());
}

#[test]
fn changes_since_the_owner_looked_are_named() {
    let (temp, root) = workspace();
    put(temp.path(), "AGENTS.md", "one");
    put(temp.path(), "SOUL.md", "same");
    put(temp.path(), "skills/a/SKILL.md", "old");
    let before = Inventory::take(&root);
    assert_eq!(Inventory::take(&root).changes_since(&before), []);
    put(temp.path(), "AGENTS.md", "two");
    put(temp.path(), "commands/new.md", "new");
    fs::remove_dir_all(temp.path().join("skills")).unwrap();
    let changes = Inventory::take(&root).changes_since(&before);
    let expected = [
        InventoryChange::Changed("AGENTS.md".into()),
        InventoryChange::Added("commands/new.md".into()),
        InventoryChange::Removed("skills/a/SKILL.md".into()),
    ];
    assert_eq!(changes, expected);
}

#[test]
fn an_identity_tells_a_replaced_folder_from_the_trusted_one() {
    let temp = tempfile::tempdir().unwrap();
    let (w, away) = (temp.path().join("w"), temp.path().join("away"));
    fs::create_dir(&w).unwrap();
    let guard = StoreGuard::new();
    let trusted = record(WorkspaceId::of(&Root::open(&w, &guard).unwrap()), TrustAnswer::Trust);
    fs::rename(&w, &away).unwrap();
    fs::create_dir(&w).unwrap();
    let decide_for = |path: &Path| {
        let root = Root::open(path, &guard).unwrap();
        decide(&WorkspaceId::of(&root), &loaded(), WorkspaceOrigin::Discovered, Some(&trusted))
    };
    assert_eq!(decide_for(&w), TrustDecision::Untrusted(UntrustedReason::Replaced));
    assert_eq!(decide_for(&away), TrustDecision::Untrusted(UntrustedReason::Moved));
}

#[test]
fn an_inventory_is_kept_as_plain_data() {
    let text = serde_json::to_string(&loaded()).unwrap();
    assert_eq!(serde_json::from_str::<Inventory>(&text).unwrap(), loaded());
}

#[test]
fn s4_instructions_and_skills_that_came_or_changed_are_asked_about_again_and_nothing_else() {
    let (temp, root) = workspace();
    let before = Inventory::take(&root);
    fs::write(temp.path().join("AGENTS.md"), "other").unwrap();
    fs::write(temp.path().join("SOUL.md"), "new").unwrap();
    put(temp.path(), "skills/a/SKILL.md", "text of a skill");
    assert_eq!(Inventory::take(&root).texts[Path::new("skills/a/SKILL.md")], "text of a skill");
    fs::create_dir_all(temp.path().join("memory")).unwrap();
    fs::write(temp.path().join("memory/2031-01-01.md"), "a day").unwrap();
    let now = Inventory::take(&root);
    let unseen: Vec<_> = now
        .unseen_texts(&before)
        .into_iter()
        .map(|change| match change {
            InventoryChange::Added(path)
            | InventoryChange::Changed(path)
            | InventoryChange::Removed(path) => path,
        })
        .collect();
    assert_eq!(unseen, ["AGENTS.md", "SOUL.md", "skills/a/SKILL.md"].map(Path::new));
    assert!(before.unseen_texts(&now).iter().all(|change| !matches!(change, InventoryChange::Removed(_))));
}

#[test]
fn s4_an_answer_covers_the_folder_and_the_texts_it_was_given_for() {
    let (here, full) = (id("/w", 1), loaded());
    let yes = TrustRecord { inventory: full.clone(), ..record(here.clone(), TrustAnswer::Trust) };
    let no = TrustRecord { answer: TrustAnswer::Distrust, ..yes.clone() };
    let (path, text) = (Path::new("AGENTS.md"), Digest::of(b"x"));
    let accepted = |arrival, record| Accepted::of(&here, arrival, record);
    assert!(accepted(WorkspaceOrigin::Discovered, Some(&yes)).takes(path, text));
    assert!(!accepted(WorkspaceOrigin::Discovered, Some(&yes)).takes(path, Digest::of(b"y")));
    assert!(!accepted(WorkspaceOrigin::Discovered, Some(&yes)).takes(Path::new("SOUL.md"), text));
    assert!(!accepted(WorkspaceOrigin::Discovered, Some(&no)).takes(path, text));
    assert!(!accepted(WorkspaceOrigin::Discovered, None).takes(path, text));
    assert!(!Accepted::of(&id("/w", 2), WorkspaceOrigin::Discovered, Some(&yes)).takes(path, text));
    assert!(accepted(WorkspaceOrigin::Named, None).takes(path, Digest::of(b"y")));
}

#[test]
fn the_text_before_stands_for_one_that_is_not_accepted_alone() {
    let path = Path::new("skills/a/SKILL.md");
    let (temp, root) = workspace();
    put(temp.path(), "skills/a/SKILL.md", "old");
    let seen = Accepted::default().with(&Accepted::Seen(Inventory::take(&root)));
    assert_eq!(seen.before(path, Digest::of(b"new")), Some("old"));
    assert_eq!(seen.before(path, Digest::of(b"old")), None, "it is accepted");
    assert_eq!(seen.before(Path::new("skills/b/SKILL.md"), Digest::of(b"new")), None);
    assert_eq!(Accepted::All.before(path, Digest::of(b"new")), None);
    // What is kept of all of them is bounded.
    for n in 0..20 {
        put(temp.path(), &format!("skills/s{n:02}/SKILL.md"), &"x".repeat(KEPT_BYTES));
    }
    let kept = Inventory::take(&root).texts;
    assert!(kept.len() < 20 && kept.contains_key(path), "{}", kept.len());
}

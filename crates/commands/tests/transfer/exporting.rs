//! Exports: said before they are written, whole or not there, without secrets where others read them.

use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use drawloom_commands::frontend::Frontend;
use workspace::{FileError, StoreGuard};

use super::home::{SECRET, TestHome, field, word};

#[tokio::test]
async fn every_format_says_what_it_contains() {
    let here = TestHome::new();
    let tree = here.rich().await;
    let text = here.text(&tree, "main").await;
    let plain = here.exported(&[&tree, "--format", "text"]).await;
    assert_eq!(String::from_utf8(plain).unwrap(), text);
    here.notes();
    for format in ["jsonl", "text", "markdown", "html", "annotations", "training"] {
        let path = here.path(format);
        let done = here.ok(&["tree", "export", &tree, "--format", format, "-o", word(&path)]).await;
        assert_eq!(field(&done, "file"), word(&path));
        let notes = here.notes();
        assert!(
            notes[0].starts_with("it contains: ") && notes[1].starts_with("it leaves out: "),
            "{notes:?}"
        );
        let left_out: Vec<_> = done["left_out"].as_array().unwrap().clone();
        assert!(left_out.contains(&"drafts".into()), "{done}");
        assert!(format == "jsonl" || left_out.contains(&"blobs".into()), "no pictures: {done}");
        let written = std::fs::read_to_string(&path).unwrap();
        assert!(written.contains("The rain fell."), "{format}: {written}");
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    }
    let left = std::fs::read_dir(here.dir.path()).unwrap();
    let parts = left.filter(|entry| entry.as_ref().unwrap().file_name().to_string_lossy().ends_with(".part"));
    assert_eq!(parts.count(), 0);
    assert_eq!(
        here.err(&["tree", "export", &tree, "--format", "text", "--with-context"]).await.code,
        "usage"
    );
    let error = here.err(&["tree", "export", &tree, "--view", "none", "--format", "text"]).await;
    assert_eq!((error.code.as_ref(), error.exit), ("not_found", 3));
}

#[tokio::test]
async fn bodies_go_along_only_when_asked_for_and_are_named() {
    let here = TestHome::new();
    let tree = here.tree("The rain fell. ").await;
    here.ok(&["tree", "generate", &tree]).await;
    let body = |file: Vec<u8>| {
        let text = String::from_utf8(file).unwrap();
        let line = text.lines().find(|line| line.starts_with("{\"record\":\"body\"")).unwrap().to_owned();
        serde_json::from_str::<serde_json::Value>(&line).unwrap()
    };
    let without = body(here.exported(&[&tree]).await);
    assert!(without["data"].is_null() && without["length"].as_u64().unwrap() > 0);
    here.notes();
    let with = body(here.exported(&[&tree, "--with-context"]).await);
    let sent = field(&with["data"], "utf8");
    assert_eq!(sent.len() as u64, with["length"].as_u64().unwrap());
    assert!(sent.contains("The rain fell."));
    let notes = here.notes();
    assert!(notes.iter().any(|note| note.contains("body of a request to script/echo")), "{notes:?}");
}

#[tokio::test]
async fn a_file_that_exists_is_replaced_only_when_the_person_says_so() {
    let here = TestHome::new();
    let tree = here.tree("The rain fell.").await;
    let path = here.path("there.txt");
    std::fs::write(&path, "mine").unwrap();
    let words = ["tree", "export", &tree, "--format", "text", "-o", word(&path)];
    let error = here.err(&words).await;
    assert_eq!((error.code.as_ref(), error.exit), ("exists", 2));
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "mine");
    *here.talk.yes.lock().unwrap() = true;
    here.ok(&words).await;
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "The rain fell.");
    let folder = here.err(&["tree", "export", &tree, "-o", word(here.dir.path())]).await;
    assert_eq!(folder.code, "exists");
}

#[tokio::test]
async fn a_secret_is_not_shared() {
    let here = TestHome::new();
    // Put in past the masking of typed text, as an older home may hold it.
    let tree = here.tree("The key is ").await;
    let id: loom::TreeId = tree.parse().unwrap();
    let op = loom::Op::Append(loom::plan::NewText::owner(SECRET, None));
    let owner = drawloom_commands::Asker::owner();
    here.app.change(&owner, id, &loom::ViewName::default(), op).await.unwrap();
    for format in ["jsonl", "text", "markdown", "html", "annotations", "training"] {
        let path = here.path(format);
        let words = ["tree", "export", &tree, "--format", format, "-o", word(&path)];
        let error = here.err(&[&words[..], &["--share"]].concat()).await;
        assert_eq!((error.code.as_ref(), error.exit), ("secret", 4));
        assert!(!path.exists());
        here.ok(&words).await;
        assert!(path.exists());
    }
    let names = std::fs::read_dir(here.dir.path()).unwrap();
    assert!(names.into_iter().all(|entry| !entry.unwrap().file_name().to_string_lossy().ends_with(".part")));
}

/// Stops whoever says something, until the sender is dropped.
struct Stopped {
    said: tokio::sync::Notify,
    until: Mutex<Receiver<()>>,
}

impl Frontend for Stopped {
    fn note(&self, _: &str) {
        self.said.notify_one();
        let _ = self.until.lock().unwrap().recv();
    }

    fn delta(&self, _: loom::NodeId, _: &str) {}

    fn input(&self, _: &StoreGuard, _: Duration) -> Result<Box<dyn Read + Send>, FileError> {
        Ok(Box::new(std::io::empty()))
    }
}

#[tokio::test]
async fn an_export_that_is_dropped_leaves_nothing_while_its_thread_still_writes() {
    let mut home = TestHome::new();
    let tree = home.tree("Once.").await;
    let (go, until) = channel();
    let stopped = Arc::new(Stopped { said: tokio::sync::Notify::new(), until: Mutex::new(until) });
    home.app.frontend = Arc::clone(&stopped) as Arc<dyn Frontend>;
    let target = home.path("walk.jsonl");
    let left = || {
        let names = home.dir.path().read_dir().unwrap().map(|entry| entry.unwrap().file_name());
        names.filter(|name| name.to_str().unwrap().contains("walk")).count()
    };
    {
        let words = ["tree", "export", &tree, "-o", target.to_str().unwrap()];
        let mut export = std::pin::pin!(home.run(&words));
        tokio::select! {
            ended = &mut export => panic!("{ended:?}"),
            () = stopped.said.notified() => {}
        }
        assert_eq!(left(), 1, "the control: it writes");
    }
    assert_eq!(left(), 0);
    drop(go);
}

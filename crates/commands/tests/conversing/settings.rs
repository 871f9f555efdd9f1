//! Settings of a session that several conversations share.

use drawloom_commands::Asker;
use drawloom_commands::slash::SlashOutcome;
use store::{Principal, SessionFilter};

use serde_json::json;

use crate::home::{TestHome, homes};
use crate::{Talk, script};

/// A line that attaches a file.
fn attaching(home: &TestHome) -> String {
    let file = home.dir.path().join("note.txt");
    std::fs::write(&file, "the tide table").unwrap();
    format!("/file {}", file.display())
}

fn notes(home: &TestHome) -> String {
    home.talk.notes.lock().unwrap().join("\n")
}

#[tokio::test]
async fn what_another_one_sets_while_a_message_waits_is_not_written_over() {
    for home in homes() {
        let mut mine = Talk::new(&home).await;
        mine.ok("hello").await;
        let mut theirs = Talk::as_set(&home).await;
        mine.ok(&attaching(&home)).await;
        assert!(matches!(mine.take("what is in it?").await.unwrap(), SlashOutcome::Turn));
        theirs.ok("/think high").await;
        mine.conversation.answer(&home.app, &Asker::owner()).await.unwrap();
        assert!(notes(&home).contains("was set by another process"), "{}", notes(&home));
        assert_eq!(mine.ok("/think").await["thinking"], "high");
        let mut next = Talk::as_set(&home).await;
        assert_eq!(next.ok("/think").await["thinking"], "high");
        next.ok("/file").await;
        assert!(notes(&home).ends_with("no file was waiting"), "it was sent: {}", notes(&home));
    }
}

#[tokio::test]
async fn a_file_that_is_attached_again_while_its_message_is_taken_in_waits_again() {
    for home in homes() {
        let mut mine = Talk::new(&home).await;
        mine.ok("hello").await;
        let mut theirs = Talk::as_set(&home).await;
        mine.ok(&attaching(&home)).await;
        assert!(matches!(mine.take("what is in it?").await.unwrap(), SlashOutcome::Turn));
        let settings = async || {
            let store = &home.app.runtime.store;
            let sessions = store.sessions(&Principal::Owner, SessionFilter::default(), None, 9).await;
            sessions.unwrap().remove(0).settings
        };
        // Its turn takes it off the settings, before anything is shown of that here.
        while !settings().await.is_empty() {
            tokio::task::yield_now().await;
        }
        theirs.ok(&attaching(&home)).await;
        mine.conversation.answer(&home.app, &Asker::owner()).await.unwrap();
        assert!(settings().await.contains("note.txt"), "{}", settings().await);
        mine.ok("and now?").await;
        assert_eq!(mine.texts().await.concat().matches("tide table").count(), 2);
        assert_eq!(settings().await, "");
    }
}

#[tokio::test]
async fn a_file_that_waits_stays_with_its_session_and_is_sent_once() {
    for home in homes() {
        let mut talk = Talk::new(&home).await;
        talk.ok("hello").await;
        talk.ok(&attaching(&home)).await;
        talk.ok("/new other").await;
        assert!(notes(&home).contains("files that wait in main: 1"), "{}", notes(&home));
        talk.ok("first").await;
        assert!(!talk.texts().await.concat().contains("tide table"));
        talk.ok("/switch main").await;
        talk.ok("second").await;
        talk.ok("third").await;
        assert_eq!(talk.texts().await.concat().matches("tide table").count(), 1);
    }
}

#[tokio::test]
async fn a_file_that_is_attached_more_than_once_is_sent_once_as_it_is_then() {
    for home in homes() {
        let line = attaching(&home);
        let folder = home.dir.path().join("sub");
        std::fs::create_dir(&folder).unwrap();
        let other_name = format!("/file {}", folder.join("../note.txt").display());
        let mut talk = Talk::new(&home).await;
        talk.ok("hello").await;
        for line in [&line, &line, &other_name] {
            talk.ok(line).await;
        }
        // The next conversation of the session finds it waiting.
        let mut next = Talk::as_set(&home).await;
        std::fs::write(home.dir.path().join("note.txt"), "the tide table of May").unwrap();
        next.ok(&other_name).await;
        next.ok("what is in it?").await;
        let said = next.texts().await.concat();
        assert_eq!(said.matches("tide table").count(), 1, "{said}");
        assert!(said.contains("the tide table of May"), "{said}");
        next.ok("and now?").await;
        assert_eq!(next.texts().await.concat().matches("tide table").count(), 1);
    }
}

/// There is no session yet that it could stay with.
#[tokio::test]
async fn a_file_that_waits_for_the_first_message_is_sent_with_it_whatever_the_session_is_called() {
    for home in homes() {
        let mut talk = Talk::new(&home).await;
        talk.ok(&attaching(&home)).await;
        talk.ok("/new other").await;
        talk.ok("first").await;
        assert_eq!(talk.texts().await.concat().matches("tide table").count(), 1);
    }
}

#[tokio::test]
async fn a_script_counts_over_the_trees_of_a_session() {
    for home in homes() {
        script(&home, &[json!({"text": "first"}), json!({"text": "second"})]);
        let mut talk = Talk::as_set(&home).await;
        assert_eq!(talk.ok("hello").await["text"], "first");
        let tree = talk.ok("/status").await["tree"].clone();
        talk.ok("/new").await;
        assert_eq!(talk.ok("hello").await["text"], "second");
        assert_ne!(talk.ok("/status").await["tree"], tree, "control: it is another tree");
        assert_eq!(talk.err("more").await.code, "script_exhausted");
    }
}

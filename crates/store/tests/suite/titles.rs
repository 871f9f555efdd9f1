//! Titles that trees took from texts that are forgotten.

use loom::{Digest, Millis, Mode, NodeId, Op, Seq};
use store::{AttachedWrites, Forget, Forgotten, ImportNote, read};
use text::title::title;

use super::both::each;
use super::home::{Home, OWNER, Page, owner_text};

const LONG: &str = "My account number at the northern bank is 4711-0815-2222 and nobody may know";
const BEHIND: &str = "0123456789 0123456789 0123456789 0123456789 0123456789 012345 copper word zinc";

/// A tree of a session.
async fn in_session(home: &Home, title: &str) -> Page {
    let with = AttachedWrites { session: Some("s".to_owned()), ..AttachedWrites::nothing() };
    home.create_with(OWNER, Mode::Buffer, title, with).await.unwrap()
}

#[test]
fn a_title_made_of_the_first_text_goes_with_it() {
    each(|home| async move {
        let long = "words ".repeat(40);
        for text in
            ["First words of it\nand others", "\tA tab and some words", "  blanks before words ", &long]
        {
            let taken = title(text);
            let page = in_session(&home, &taken).await;
            let other = in_session(&home, &taken).await;
            let texts = vec![owner_text("a file that is sent along"), owner_text(text)];
            let node =
                page.change(Op::Reply { to: None, texts, exclude: Vec::new(), part_of: None }).await.nodes[1]
                    .0;
            let records = async || {
                let records =
                    read(&home.store, OWNER, page.tree, |rows| rows.operations(Seq(0), 1_000)).await;
                format!("{:?}", records.unwrap())
            };
            assert!(records().await.contains("words"), "the control: the title is in the record of the tree");
            home.store.forget(OWNER, &Forget::Node { tree: page.tree, node }, Millis(1)).await.unwrap();
            assert_eq!(home.store.tree(OWNER, page.tree).await.unwrap().title, "");
            assert!(!records().await.contains("words"));
            assert_eq!(home.store.tree(OWNER, other.tree).await.unwrap().title, taken, "of another tree");
        }
    });
}

#[test]
fn a_title_given_by_hand_outlives_a_later_text_that_begins_with_it() {
    each(|home| async move {
        let page = home.create(Mode::Buffer, "Chapter One").await;
        page.append("It has not begun yet.").await;
        let node = page.append("Chapter One\nand all that came of it").await;
        home.store.forget(OWNER, &Forget::Node { tree: page.tree, node }, Millis(1)).await.unwrap();
        assert_eq!(home.store.tree(OWNER, page.tree).await.unwrap().title, "Chapter One");
    });
}

#[test]
fn a_title_given_to_a_new_tree_outlives_a_first_text_that_begins_with_it() {
    each(|home| async move {
        let page = home.create(Mode::Buffer, "Chapter One").await;
        let node = page.append("Chapter One\nand all that came of it").await;
        forget(&home, Forget::Node { tree: page.tree, node }).await;
        assert_eq!(title_of(&page).await, "Chapter One");
    });
}

/// Of two who say something first at once, one names the session's tree, and the other may be the first to write.
#[test]
fn a_title_goes_with_its_text_wherever_in_the_tree_that_stands() {
    each(|home| async move {
        let page = in_session(&home, &title(LONG)).await;
        let first = page.append("What another process said at once").await;
        let second = page.append(LONG).await;
        forget(&home, Forget::Node { tree: page.tree, node: first }).await;
        assert_eq!(title_of(&page).await, title(LONG), "the control: it is of another text");
        forget(&home, Forget::Node { tree: page.tree, node: second }).await;
        assert_eq!(title_of(&page).await, "");
    });
}

#[test]
fn a_title_that_was_replaced_goes_from_the_log_with_its_text() {
    each(|home| async move {
        let (page, node) = titled(&home, LONG).await;
        page.change(Op::Rename("Numbers".to_owned())).await;
        forget(&home, Forget::Node { tree: page.tree, node }).await;
        assert_eq!(title_of(&page).await, "Numbers");
        let records = read(&home.store, OWNER, page.tree, |rows| rows.operations(Seq(0), 1_000)).await;
        assert!(!format!("{records:?}").contains("My account"), "{records:?}");
    });
}

#[test]
fn a_title_of_an_imported_tree_goes_with_its_text() {
    each(|home| async move {
        let imported = Some(ImportNote { file: Digest::of(b"file"), at: Millis(5) });
        let with = AttachedWrites { imported, ..AttachedWrites::nothing() };
        let page = home.create_with(OWNER, Mode::Buffer, &title(LONG), with).await.unwrap();
        page.append("other words").await;
        let node = page.append(LONG).await;
        page.append("and others").await;
        forget(&home, Forget::Node { tree: page.tree, node }).await;
        assert_eq!(title_of(&page).await, "");
    });
}

async fn forget(home: &Home, what: Forget) -> Forgotten {
    home.store.forget(OWNER, &what, Millis(1)).await.unwrap()
}

async fn title_of(page: &Page) -> String {
    page.home.store.tree(OWNER, page.tree).await.unwrap().title
}

/// A tree that took its title from what was said first in it.
async fn titled(home: &Home, text: &str) -> (Page, NodeId) {
    let page = in_session(home, &title(text)).await;
    let op = Op::Reply { to: None, texts: vec![owner_text(text)], exclude: Vec::new(), part_of: None };
    let node = page.change(op).await.nodes[0].0;
    (page, node)
}

#[test]
fn the_title_of_a_text_that_holds_forgotten_words_goes_whole() {
    each(|home| async move {
        for (text, words) in [
            ("the magic word is XYZZYPLUGH ok", "XYZZYPLUGH"),
            (LONG, LONG),
            (BEHIND, "copper word zinc"),
            ("First line of it\nand a copper secret", "copper secret"),
        ] {
            let (page, _) = titled(&home, text).await;
            let by_hand = home.create(Mode::Buffer, &format!("{} by hand", title(text))).await;
            by_hand.append("other words").await;
            let held = title_of(&by_hand).await;
            forget(&home, Forget::Text(words.to_owned())).await;
            assert_eq!(title_of(&page).await, "", "{words}");
            let records =
                read(&home.store, OWNER, page.tree, |rows| rows.operations(Seq(0), 1_000)).await.unwrap();
            assert!(!format!("{records:?}").contains(title(text).trim_end_matches(" …")), "{records:?}");
            assert_eq!(title_of(&by_hand).await, held.replace(words, ""), "it loses the words alone");
        }
    });
}

#[test]
fn titles_of_trees_that_begin_with_a_copy_of_a_forgotten_node_go_too() {
    each(|home| async move {
        let (page, node) = titled(&home, LONG).await;
        let (copy, _) = titled(&home, &format!("Please note this: {LONG}, thanks")).await;
        let (unlike, _) = titled(&home, "My account number at the northern bank is none of yours").await;
        let by_hand = home.create(Mode::Buffer, "Numbers").await;
        by_hand.append(LONG).await;
        forget(&home, Forget::Node { tree: page.tree, node }).await;
        for (page, left) in [
            (&page, String::new()),
            (&copy, String::new()),
            (&unlike, title("My account number at the northern bank is none of yours")),
            (&by_hand, "Numbers".to_owned()),
        ] {
            assert_eq!(title_of(page).await, left);
        }
    });
}

/// A tree is begun before something is said in it.
#[test]
fn a_title_goes_whose_text_is_written_while_it_is_looked_for() {
    each(|home| async move {
        let page = in_session(&home, &title(BEHIND)).await;
        let what = Forget::Text("copper word zinc".to_owned());
        let found = home.store.begin_forgetting(OWNER, &what).await.unwrap();
        assert!(found.places().is_empty());
        page.change(Op::Reply {
            to: None,
            texts: vec![owner_text(BEHIND)],
            exclude: Vec::new(),
            part_of: None,
        })
        .await;
        home.store.remove_forgotten(found, Millis(1)).await.unwrap();
        assert_eq!(title_of(&page).await, "");
    });
}

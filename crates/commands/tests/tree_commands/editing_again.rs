//! A file that its editor saves again while it is taken in: it stays, over what stands there now, and is named.

use std::fs;
use std::path::PathBuf;

use crate::home::{TestHome, field};

/// The files of editors of a home.
fn files(home: &TestHome) -> Vec<PathBuf> {
    let found =
        fs::read_dir(home.app.runtime.home.root().join("edits")).unwrap().map(|file| file.unwrap().path());
    found.filter(|file| file.extension().is_some_and(|ending| ending == "md")).collect()
}

/// Whoever is asked whether the text is to be empty saves another one before the answer.
fn save_before_the_answer(home: &TestHome) {
    *home.talk.editor.lock().unwrap() = Some(Box::new(|_| String::new()));
    let edits = home.app.runtime.home.root().join("edits");
    *home.talk.answer.lock().unwrap() = Some(Box::new(move || {
        for file in fs::read_dir(&edits).unwrap().map(|file| file.unwrap().path()) {
            if file.extension().is_some_and(|ending| ending == "md") {
                fs::write(file, "It hailed.\n").unwrap();
            }
        }
        true
    }));
}

#[tokio::test]
async fn a_file_that_is_saved_again_while_it_is_taken_in_stays_and_goes_in_over_that() {
    for is_one in [true, false] {
        let home = TestHome::on_disk();
        let tree = home.tree("buffer", "It rained.\n").await;
        let node = field(&home.nodes(&tree, &[]).await[1], "short_id");
        let edit = if is_one { vec!["tree", "edit", &tree, &node] } else { vec!["tree", "edit", &tree] };
        save_before_the_answer(&home);
        home.ok(&edit).await;
        assert_eq!(home.text(&tree).await, "");
        let file = files(&home).pop().unwrap().to_string_lossy().into_owned();
        let notes = home.talk.notes.lock().unwrap().concat();
        assert!(notes.contains(&file) && notes.contains("was saved again meanwhile"), "{notes}");
        let command = notes.split('`').nth(1).unwrap().to_owned();
        let words: Vec<&str> = command.split(' ').skip(1).collect();
        home.ok(&words).await;
        assert_eq!(home.text(&tree).await.trim_end(), "It hailed.", "{command}");
        assert!(files(&home).is_empty());
    }
}

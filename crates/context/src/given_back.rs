//! Files that the owner gave back, or took again, which the model is told with the next message (spec: agent §3
//! *Checkpoints*).

use loom::{Millis, NodeId, Trust};

use crate::injection::{Offer, Standing};

/// Paths that are named.
pub const NAMED: usize = 20;

/// The topic of what is told of it. Its version is the time of the newest act that was told, in ms.
const TOPIC: &str = "given_back";

/// Files that the owner gave back at one time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GivenBackFiles {
    pub at: Millis,
    /// When the owner took them again.
    pub redone: Option<Millis>,
    /// The first [`NAMED`] of their paths at most, as they are told.
    pub paths: Vec<String>,
    pub count: u64,
    /// Answers whose calls had changed them.
    pub answers: Vec<NodeId>,
}

impl Offer {
    /// The notice of what was given back and taken again since the last one that stands. What was given back is told where
    /// an answer that had changed it is sent.
    pub(crate) fn given_back(
        all: &[GivenBackFiles],
        standing: &Standing<'_>,
        is_sent: impl Fn(NodeId) -> bool,
        trust: Trust,
    ) -> Option<Self> {
        let told = Millis(standing.version(TOPIC).and_then(|version| version.parse().ok()).unwrap_or(0));
        let (mut back, mut again) = (Vec::new(), Vec::new());
        for files in all {
            match files.redone {
                None if files.at > told && files.answers.iter().any(|answer| is_sent(*answer)) => {
                    back.push(files);
                }
                Some(redone) if files.at <= told && redone > told => again.push(files),
                _ => {}
            }
        }
        let newest = back.iter().chain(&again).map(|files| files.redone.unwrap_or(files.at)).max()?;
        let lines = [
            ("the owner gave back, as they were before tools changed them", back),
            ("the owner took again, as they were before being given back", again),
        ];
        let lines = lines.into_iter().filter(|(_, files)| !files.is_empty());
        let lines = lines.map(|(what, files)| format!("[files] {what}: {}", named(&files)));
        let text = lines.collect::<Vec<_>>().join("\n");
        Some(Self { topic: TOPIC.to_owned(), version: newest.0.to_string(), trust, text })
    }
}

/// The first of the paths, and how many follow.
fn named(files: &[&GivenBackFiles]) -> String {
    let paths = files.iter().flat_map(|files| &files.paths).map(String::as_str);
    let paths: Vec<&str> = paths.take(NAMED).collect();
    let count: u64 = files.iter().map(|files| files.count).sum();
    match count.saturating_sub(paths.len() as u64) {
        0 => paths.join(", "),
        more => format!("{}, and {more} more", paths.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use loom::reader::Injection;

    use super::*;

    const ANSWER: NodeId = NodeId::from_bytes([1; 16]);

    fn given(at: i64, redone: Option<i64>, paths: &[&str], count: u64) -> GivenBackFiles {
        let paths = paths.iter().map(|path| (*path).to_owned()).collect();
        GivenBackFiles { at: Millis(at), redone: redone.map(Millis), paths, count, answers: vec![ANSWER] }
    }

    fn offered(all: &[GivenBackFiles], told: Option<&str>) -> Option<Offer> {
        let told: Vec<Injection> = told
            .map(|version| Injection {
                node: ANSWER,
                ordinal: 0,
                source: format!("{TOPIC}#{version}"),
                trust: Trust::Owner,
                text: String::new(),
            })
            .into_iter()
            .collect();
        Offer::given_back(all, &Standing::of(told.iter()), |answer| answer == ANSWER, Trust::Agent)
    }

    #[test]
    fn what_was_given_back_is_told_once_and_so_is_that_it_was_taken_again() {
        let one = given(5, None, &["a", "b"], 2);
        let told = offered(std::slice::from_ref(&one), None).unwrap();
        assert!(told.text.ends_with(": a, b"), "{}", told.text);
        assert_eq!(told.version, "5");
        assert_eq!(offered(std::slice::from_ref(&one), Some("5")), None);

        let both = [one, given(7, None, &["c"], 1)];
        let second = offered(&both, Some("5")).unwrap();
        assert!(second.text.ends_with(": c") && !second.text.contains('\n'), "{}", second.text);

        let again = [given(5, Some(9), &["a", "b"], 2)];
        let taken = offered(&again, Some("7")).unwrap();
        assert!(taken.text.contains("took again") && taken.text.ends_with(": a, b"), "{}", taken.text);
        assert_eq!(offered(&again, Some("9")), None);
        assert_eq!(offered(&again, None), None, "it was not told before it was taken again");
    }

    #[test]
    fn it_is_told_only_of_answers_that_are_sent_and_names_a_few() {
        let elsewhere =
            GivenBackFiles { answers: vec![NodeId::from_bytes([2; 16])], ..given(5, None, &["a"], 1) };
        assert_eq!(offered(&[elsewhere], None), None);
        let many = given(5, None, &["a"; NAMED], 100);
        assert!(offered(&[many], None).unwrap().text.ends_with("a, and 80 more"));
    }
}

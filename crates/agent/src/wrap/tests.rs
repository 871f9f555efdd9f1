use std::fs;
use std::path::Path;
use std::sync::Mutex;

use loom::plan::NewText;
use loom::{Author, Role, Trust};
use model::Clock;
use store::home::{Home, HomeOptions};
use store::instance::{About, Instance, InstanceId, Instances};
use store::{NewOutcome, OutcomeKind, Store};
use text::mask::Masker;
use workspace::Root;

use super::*;
use crate::session::SessionChoice;

const WHO: Principal = Principal::Owner;
const STEPS: [WrapStep; 4] = [WrapStep::Begun, WrapStep::Archived, WrapStep::Replaced, WrapStep::Overflowed];

/// A home with a session `main`, and its workspace.
struct House {
    folder: tempfile::TempDir,
    store: Arc<Store>,
    home: Arc<Home>,
    session: SessionId,
    view: ViewName,
    guard: StoreGuard,
    /// Processes that never end.
    living: Mutex<Vec<Instance>>,
}

impl House {
    async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("project")).unwrap();
        let home = Home::open(&folder.path().join("home"), HomeOptions::default()).unwrap();
        let (store, home) = (Arc::new(Store::in_memory().unwrap()), Arc::new(home));
        let session = SessionId(String::new());
        let mut house = Self {
            folder,
            store,
            home,
            session,
            view: ViewName::default(),
            guard: StoreGuard::new(),
            living: Mutex::default(),
        };
        let chosen = SessionChoice {
            workspace: house.root().to_string_lossy().into_owned(),
            name: Name::default(),
            kind: SessionKind::Main,
        };
        house.session = house.process().enter(&WHO, &chosen, "hello").await.unwrap().session;
        house
    }

    fn process(&self) -> Runtime {
        let id = InstanceId::generate(7).unwrap();
        let instance = Instances::of(&self.home).unwrap().start(id, &About::this_process("chat", "0", 7));
        self.living.lock().unwrap().push(instance.unwrap());
        let masker = Arc::new(Masker::new(&[]).unwrap());
        // Each process is a second behind the one before.
        let at = 1_760_000_000_000 + 1_000 * self.living.lock().unwrap().len() as i64;
        let clock = Clock::new(move || at);
        Runtime::new(Arc::clone(&self.store), Arc::clone(&self.home), id, clock, masker)
    }

    fn root(&self) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join("project")
    }

    async fn wrap(&self, reached: Reached) -> Result<Option<Wrapped>, AgentError> {
        self.process().wrap_told(&WHO, &self.place(&self.root()), reached).await
    }

    async fn wrapped(&self) -> Wrapped {
        self.wrap(Arc::new(|_| Ok(()))).await.unwrap().unwrap()
    }

    fn place<'a>(&'a self, root: &'a Path) -> WrapPlace<'a> {
        WrapPlace { root, guard: &self.guard, session: &self.session, view: &self.view }
    }

    async fn tree(&self) -> TreeId {
        self.process().current_tree(&WHO, &self.session).await.unwrap().unwrap()
    }

    async fn say(&self, text: &str) {
        let text = NewText::owner(text, Some(Role::User));
        let op = Op::Reply { to: None, texts: vec![text], exclude: Vec::new(), part_of: None };
        let writer = (&WHO, &Author::owner(), Trust::Owner);
        let tree = self.tree().await;
        self.process().change_as(writer, tree, &self.view, op, AttachedWrites::nothing()).await.unwrap();
    }

    /// Notes so much that it does not fit.
    async fn note(&self) {
        let tree = self.tree().await;
        for number in 0..12 {
            let text = format!("Part {number} is made of {}.", "wood and stone and glass ".repeat(7));
            let new = NewOutcome {
                session: self.session.clone(),
                tree,
                node: None,
                kind: OutcomeKind::Decision,
                trust: Trust::Owner,
                text,
                corrects: None,
                guards: Vec::new(),
            };
            self.store.note_outcome(&WHO, new).await.unwrap();
        }
    }

    fn handoff(&self) -> String {
        fs::read_to_string(self.root().join(MAIN)).unwrap_or_default()
    }

    fn archived(&self) -> Vec<String> {
        let root = Root::open(&self.root(), &self.guard).unwrap();
        let found = archived_handoffs(&root).unwrap();
        found.iter().map(|one| fs::read_to_string(self.root().join(&one.path)).unwrap()).collect()
    }

    /// Whether a text is in the handoff or the archive.
    fn keeps(&self, text: &str) -> bool {
        self.handoff() == text || self.archived().iter().any(|archived| archived == text)
    }

    /// How often a wrap stands in files of days.
    fn overflows(&self, wrap: &str) -> usize {
        let Ok(days) = fs::read_dir(self.root().join("memory")) else { return 0 };
        let texts = days.map(|day| fs::read_to_string(day.unwrap().path()).unwrap());
        texts.map(|text| text.matches(&format!("<!-- wrap:{wrap} -->")).count()).sum()
    }

    async fn trees(&self) -> usize {
        self.store.session(&WHO, &self.session).await.unwrap().unwrap().trees.len()
    }
}

#[tokio::test]
async fn a_session_goes_on_in_a_new_tree_with_a_handoff_that_passes_its_check() {
    let house = House::new().await;
    house.say("Make the parser read rows by line. It must be fast.").await;
    house.note().await;
    let before = house.tree().await;
    let wrapped = house.wrapped().await;
    assert_eq!((wrapped.from, wrapped.to), (before, house.tree().await));
    let text = house.handoff();
    assert!(text.contains("Make the parser read rows by line."), "{text}");
    assert!(continuity::handoff::check(&text).iter().all(|finding| !finding.is_error()), "{text}");
    assert_eq!((wrapped.bytes, house.overflows(&wrapped.wrap)), (text.len(), 1));
    assert_eq!(wrapped.files.archived, None, "there was none before");
    let origin = house.process().read(&WHO, wrapped.to, |rows| Ok(rows.tree()?.origin)).await.unwrap();
    assert_eq!(origin.map(|origin| (origin.tree, origin.kind)), Some((before, TreeOriginKind::Wrap)));
    assert_eq!(house.wrap(Arc::new(|_| Ok(()))).await.unwrap(), None, "nothing was said since");
    assert_eq!((house.handoff(), house.trees().await), (text, 2));
}

#[tokio::test]
async fn a_wrap_that_was_cut_off_at_any_step_is_finished_once() {
    for step in STEPS {
        let house = Arc::new(House::new().await);
        house.say("Begin.").await;
        house.wrapped().await;
        let first = house.handoff();
        house.say("Go on.").await;
        house.note().await;
        let (seen, watched, before) = (Arc::clone(&house), Arc::new(Mutex::new(0)), first.clone());
        let looks = Arc::clone(&watched);
        let reached: Reached = Arc::new(move |at| {
            assert!(seen.keeps(&before), "at {at:?}");
            *looks.lock().unwrap() += 1;
            if at == step { Err("killed".to_owned()) } else { Ok(()) }
        });
        let cut = house.wrap(Arc::clone(&reached)).await;
        assert!(matches!(cut, Err(AgentError::Wrap(_))), "{cut:?}");
        assert_eq!(house.trees().await, 2, "the session is where it was");
        // The next process is cut off there as well.
        assert!(house.wrap(reached).await.is_err());
        let root = house.root();
        let resumed = house.process().resume_wrap(&WHO, &house.place(&root)).await.unwrap().unwrap();
        assert!(*watched.lock().unwrap() >= 2);
        assert_eq!(house.archived(), std::slice::from_ref(&first), "at {step:?}");
        assert_eq!((house.overflows(&resumed.wrap), house.trees().await), (1, 3), "at {step:?}");
        assert_eq!(house.tree().await, resumed.to);
        assert!(house.handoff().contains("Go on."), "{}", house.handoff());
        let again = house.process().resume_wrap(&WHO, &house.place(&root)).await.unwrap();
        assert_eq!(again, None);
        // The control of what is watched: a text that is written over is nowhere.
        let last = house.handoff();
        fs::write(root.join(MAIN), "over it").unwrap();
        assert!(!house.keeps(&last));
    }
}

#[tokio::test]
async fn what_a_person_saves_meanwhile_stays() {
    for step in [WrapStep::Begun, WrapStep::Archived] {
        let house = Arc::new(House::new().await);
        house.say("Begin.").await;
        house.wrapped().await;
        let first = house.handoff();
        house.say("Go on.").await;
        let root = house.root();
        let saved = root.join(MAIN);
        let reached: Reached = Arc::new(move |at| {
            if at == step {
                fs::write(&saved, "# mine\n").unwrap();
            }
            if at == WrapStep::Overflowed { Err("killed".to_owned()) } else { Ok(()) }
        });
        assert!(house.wrap(Arc::clone(&reached)).await.is_err());
        let wrapped = house.wrapped().await;
        assert_eq!(house.handoff(), "# mine\n", "at {step:?}");
        let unmerged = wrapped.files.unmerged.unwrap();
        assert!(fs::read_to_string(root.join(&unmerged.path)).unwrap().contains("Go on."));
        assert!(unmerged.difference.contains("-# mine") && unmerged.difference.contains("Go on."));
        let kept = fs::read_dir(root.join(archive::FOLDER)).unwrap();
        let names: Vec<_> = kept.map(|entry| entry.unwrap().file_name()).collect();
        let drafts = names.iter().filter(|name| name.to_string_lossy().contains("unmerged")).count();
        assert_eq!(drafts, 1, "{names:?}");
        assert_eq!(house.tree().await, wrapped.to, "the session went on all the same");
        assert!(step == WrapStep::Begun || house.keeps(&first));
    }
}

#[tokio::test]
async fn two_processes_wrap_once() {
    let house = House::new().await;
    house.say("Begin.").await;
    let done: Reached = Arc::new(|_| Ok(()));
    let (one, other) = tokio::join!(house.wrap(Arc::clone(&done)), house.wrap(done));
    let made = [&one, &other].iter().filter(|done| matches!(done, Ok(Some(_)))).count();
    let refused = [&one, &other]
        .iter()
        .filter(|done| matches!(done, Ok(None) | Err(AgentError::Answers { .. })))
        .count();
    assert_eq!((made, refused, house.trees().await), (1, 1, 2), "{one:?} {other:?}");
}

#[tokio::test]
async fn an_undone_wrap_leaves_tip_and_file_as_they_were() {
    let house = House::new().await;
    let (root, before) = (house.root(), house.tree().await);
    let undo = async || house.process().undo_wrap(&WHO, &house.place(&root)).await;
    assert!(matches!(undo().await, Err(AgentError::NoWrap)));
    house.say("Begin.").await;
    house.wrapped().await;
    assert_eq!(undo().await.unwrap().file, UndoneFile::Removed);
    assert_eq!((house.handoff(), house.tree().await), (String::new(), before));
    assert!(matches!(undo().await, Err(AgentError::NoWrap)), "once");
    let first = house.wrapped().await;
    let text = house.handoff();
    house.say("Go on.").await;
    house.wrapped().await;
    let second = house.handoff();
    let undone = undo().await.unwrap();
    assert_eq!((undone.file, undone.to), (UndoneFile::Restored, first.to));
    assert_eq!((house.handoff(), house.tree().await), (text.clone(), first.to));
    assert!(house.keeps(&second), "what was taken back is kept");
    house.wrapped().await;
    fs::write(root.join(MAIN), "# mine\n").unwrap();
    let UndoneFile::Left { difference } = undo().await.unwrap().file else { panic!("it was changed") };
    assert!(difference.contains("-# mine") && difference.contains("Begin."), "{difference}");
    assert_eq!((house.handoff().as_str(), house.tree().await), ("# mine\n", first.to));
}

#[tokio::test]
async fn what_goes_on_meanwhile_or_is_forgotten_ends_an_unfinished_wrap() {
    for forgets in [false, true] {
        let house = House::new().await;
        house.say("Begin with the secret plan.").await;
        let reached: Reached = Arc::new(|at| match at {
            WrapStep::Begun => Err("killed".to_owned()),
            _ => Ok(()),
        });
        assert!(house.wrap(reached).await.is_err());
        if forgets {
            let what = store::Forget::Text("secret plan".to_owned());
            house.store.forget(&WHO, &what, loom::Millis(9)).await.unwrap();
        } else {
            house.say("Go on.").await;
        }
        let root = house.root();
        let resumed = house.process().resume_wrap(&WHO, &house.place(&root)).await.unwrap();
        assert_eq!((resumed, house.trees().await), (None, 1));
        assert_eq!(house.store.jobs(&WHO, JobFilter::Open, None, 9).await.unwrap(), []);
        let all = format!("{:?}", house.store.jobs(&WHO, JobFilter::All, None, 9).await.unwrap());
        assert!(!all.contains("secret plan"), "{all}");
    }
}

#[tokio::test]
async fn the_last_twenty_texts_of_a_session_are_kept() {
    let house = House::new().await;
    for number in 0..23 {
        house.say(&format!("Make part {number}.")).await;
        house.wrapped().await;
    }
    let archived = house.archived();
    assert_eq!(archived.len(), 20);
    assert!(archived[0].contains("Make part 21.") && archived[19].contains("Make part 2."), "{archived:?}");
}

/// Prints how long a wrap of a path of 10,000 nodes takes.
#[tokio::test]
#[ignore = "a figure, which is looked at by hand"]
async fn the_time_of_a_wrap_of_a_long_path() {
    let house = House::new().await;
    let role = |number: usize| if number.is_multiple_of(2) { Role::User } else { Role::Assistant };
    let text = |number: usize| NewText::owner(format!("Make part {number} of wood."), Some(role(number)));
    for batch in 0..20 {
        let texts = (batch * 500..(batch + 1) * 500).map(text).collect();
        let op = Op::Reply { to: None, texts, exclude: Vec::new(), part_of: None };
        let tree = house.tree().await;
        house.process().change(&WHO, tree, &house.view, op, AttachedWrites::nothing()).await.unwrap();
    }
    let began = std::time::Instant::now();
    house.wrapped().await;
    eprintln!("a wrap of 10,000 nodes: {:?}", began.elapsed());
}

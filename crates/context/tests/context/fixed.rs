//! What stands above the cache boundary: its order, its share, what gives way, and that it stays.

use std::sync::Arc;

use drawloom_context::dialogue::{DialogueRequest, dialogue};
use drawloom_context::{
    Assembled, BootFile, Bootstrap, ChangedFiles, Estimator, Kind, Memory, Observation, Previous,
    SegmentOutcome, SkillEntry, SkillsIndex, TargetModel, TokenBudget, ToolSpec, Zone,
};
use loom::{Block, Digest, Mode, Role, Trust, ViewName};
use loom_testing::WriteRows;
use model::{DialectName, Model, Params, Prompt};
use serde_json::json;

use crate::sending::drawn;
use crate::support::{Desk, echo};

pub(crate) fn target() -> TargetModel {
    TargetModel {
        provider: "p".into(),
        dialect: DialectName::OpenAiChat,
        model: "m".into(),
        tools: true,
        pictures: true,
        sounds: true,
    }
}

pub(crate) fn file(name: &str, text: &str) -> BootFile {
    BootFile {
        name: name.into(),
        text: text.into(),
        digest: Digest::of(text.as_bytes()),
        trust: Trust::Workspace,
    }
}

pub(crate) fn tool(name: &str, words: usize, core: bool) -> ToolSpec {
    let description = "does something useful with a file ".repeat(words);
    let parameters = json!({"type": "object", "properties": {"path": {"type": "string"}}});
    ToolSpec { name: name.into(), description, parameters, core }
}

/// A workspace with a little of everything.
pub(crate) fn full() -> Bootstrap {
    let observation = |n: i64| Observation { text: format!("observation {n} of the owner's ways"), value: n };
    let skill = |n: usize| SkillEntry {
        name: format!("skill-{n}"),
        description: "how to do something that is done now and then, step by step ".repeat(3),
        path: format!("skills/{n}.md"),
    };
    Bootstrap {
        identity: "You are helpful.".into(),
        files: ["AGENTS.md", "SOUL.md", "IDENTITY.md", "USER.md", "TOOLS.md", "HANDOFF.md"]
            .map(|name| file(name, &format!("{name} says: be careful.\n").repeat(20)))
            .into(),
        tools: (0..12).map(|n| tool(&format!("tool-{n:02}"), 2, n % 3 == 0)).collect(),
        skills: Some(SkillsIndex { entries: (0..20).map(skill).collect(), trust: Trust::Workspace }),
        memory: Some(Memory {
            text: "The owner likes rain.".into(),
            observations: (0..30).map(observation).collect(),
            trust: Trust::Agent,
        }),
        ..Bootstrap::default()
    }
}

fn assembled(boot: Bootstrap, window: u64) -> Assembled {
    let mut desk = Desk::of(Mode::Dialogue);
    desk.say(Role::User, vec![Block::text("hello")]);
    let bootstrap = Arc::new(boot);
    let budget = TokenBudget::new(window, 8_000, None);
    let request =
        DialogueRequest { bootstrap, ..DialogueRequest::new(ViewName::default(), target(), budget) };
    dialogue(&desk.tree, &request, &Estimator::default()).unwrap()
}

fn left_out(assembled: &Assembled, kind: Kind) -> Vec<String> {
    let pieces = assembled.pieces.iter().filter(|piece| piece.kind == kind);
    let why = pieces.filter_map(|piece| match &piece.decision {
        SegmentOutcome::LeftOut { why } => Some(why.clone()),
        _ => None,
    });
    why.collect()
}

#[test]
fn everything_above_the_boundary_stands_in_its_order() {
    let assembled = assembled(full(), 200_000);
    let Prompt::Chat(chat) = &assembled.prompt else { panic!("a dialogue is a chat") };
    let names: Vec<&str> = chat.tools.iter().map(|tool| tool.name.as_str()).collect();
    assert!(names.is_sorted() && names.len() == 12, "{names:?}");
    let order = [
        "system You are",
        "system # AGENTS",
        "system # SOUL",
        "system # IDENTITY",
        "system # USER",
        "system # TOOLS",
        "system # Skills",
        "system # HANDOFF",
        "system # MEMORY",
        "system # Observations",
        "user hello",
    ];
    let drawn = drawn(&assembled);
    assert!(drawn.iter().zip(order).all(|(line, begins)| line.starts_with(begins)), "{drawn:?}");
    assert_eq!((drawn.len(), chat.stable), (order.len(), order.len() - 1));
    let stable = assembled.pieces.iter().filter(|piece| piece.stable && !piece.parts.is_empty());
    assert_eq!(stable.count(), order.len(), "the texts and the schemas");
    assert_eq!(assembled.notices, Vec::<String>::new());
}

#[test]
fn a_new_session_is_green_in_every_window() {
    for window in [4_000, 8_000, 32_000, 200_000, 1_000_000] {
        let mut boot = full();
        boot.files.retain(|file| window > 4_000 || file.name != "HANDOFF.md");
        // Prose: as code they are estimated a little dearer.
        boot.files.iter_mut().for_each(|file| file.text = file.text.replace("says:", "says to"));
        let assembled = assembled(boot, window);
        let share = assembled.tokens as f64 / window as f64;
        assert_eq!(Zone::of(share), Zone::Green, "{share} of {window}: {:?}", assembled.notices);
    }
}

#[test]
fn what_gives_way_does_so_in_its_order_and_says_so() {
    let mut boot = full();
    for file in &mut boot.files {
        file.text = format!("{} says: be careful.\n", file.name).repeat(60);
    }
    let wide = assembled(boot.clone(), 1_000_000);
    assert_eq!(left_out(&wide, Kind::Schemas), Vec::<String>::new());
    let narrow = assembled(boot, 20_000);
    assert!(
        left_out(&narrow, Kind::Schemas)[0].starts_with("deferred to tool_search"),
        "{:?}",
        narrow.notices
    );
    let Prompt::Chat(chat) = &narrow.prompt else { panic!("a dialogue is a chat") };
    let names: Vec<&str> = chat.tools.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(names, ["call_tool", "tool-00", "tool-03", "tool-06", "tool-09", "tool_search"]);
    assert!(narrow.notices.len() >= 2, "{:?}", narrow.notices);
    let prefix = narrow.prefix.as_ref().unwrap();
    assert!(prefix.tokens(&Estimator::default()) <= 20_000 / 5, "{:?}", narrow.notices);
}

#[test]
fn many_or_large_schemas_wait_even_where_there_is_room() {
    let many = Bootstrap { tools: (0..41).map(|n| tool(&format!("t{n}"), 0, n == 0)).collect(), ..full() };
    assert!(left_out(&assembled(many, 1_000_000), Kind::Schemas)[0].contains("more than 40"));
    let large =
        Bootstrap { tools: vec![tool("big", 700, false), tool("core", 0, true)], ..Bootstrap::default() };
    assert!(left_out(&assembled(large, 32_000), Kind::Schemas)[0].contains("a tenth of the window"));
}

#[test]
fn a_small_window_gets_no_tools_unless_asked_for_and_a_plain_model_no_skills_either() {
    let small = assembled(full(), 15_000);
    assert!(left_out(&small, Kind::Schemas)[0].contains("16,000"));
    let asked = assembled(Bootstrap { tools_asked: true, ..full() }, 15_000);
    let Prompt::Chat(chat) = &asked.prompt else { panic!("a dialogue is a chat") };
    assert!(!chat.tools.is_empty());
}

#[test]
fn three_hundred_skills_in_a_small_window_are_all_listed_and_described_alike() {
    let skill = |n: usize| SkillEntry {
        name: format!("s{n:03}"),
        description: "how to do something that is done now and then, step by step ".repeat(3),
        path: format!("skills/s{n:03}/SKILL.md"),
    };
    let skills = |count| Some(SkillsIndex { entries: (0..count).map(skill).collect(), trust: Trust::Owner });
    let tools = vec![tool("read", 1, true)];
    let described = |assembled: &Assembled| -> Vec<usize> {
        let lines = drawn(assembled);
        let list = lines.iter().find(|line| line.starts_with("system # Skills")).cloned().unwrap_or_default();
        let told =
            list.lines().flat_map(|line| line.split("- s").skip(1).map(str::to_owned)).collect::<Vec<_>>();
        told.iter()
            .map(|line| line.split_once(": ").map_or(0, |(_, what)| what.trim_end().chars().count()))
            .collect()
    };
    let boot = Bootstrap { skills: skills(300), tools: tools.clone(), ..Bootstrap::default() };
    let small = assembled(boot.clone(), 32_000);
    let lengths = described(&small);
    assert_eq!(lengths.len(), 300);
    assert!(lengths.iter().all(|length| *length == lengths[0]), "{lengths:?}");
    let said = small.notices.iter().find(|notice| notice.contains("the list of skills is sent")).unwrap();
    let piece = small.pieces.iter().find(|piece| piece.kind == Kind::SkillsIndex).unwrap();
    assert!(matches!(piece.decision, SegmentOutcome::Trimmed { from, to } if to < from), "{said}");
    // No tool could read them.
    let untold = assembled(Bootstrap { tools: Vec::new(), ..boot }, 32_000);
    assert_eq!(left_out(&untold, Kind::SkillsIndex), ["no tool could read them"]);
    let far_too_many = assembled(Bootstrap { skills: skills(3_000), tools, ..Bootstrap::default() }, 32_000);
    assert_eq!(left_out(&far_too_many, Kind::SkillsIndex), ["there is no room"]);
    assert!(far_too_many.notices.iter().any(|notice| notice.contains("the list of skills is left out")));
}

#[test]
fn hello_in_a_fresh_workspace_is_small() {
    let core: Vec<ToolSpec> = (0..14).map(|n| tool(&format!("core-{n}"), 4, true)).collect();
    let boot = Bootstrap { identity: "You are helpful.".repeat(8), tools: core, ..Bootstrap::default() };
    let encoded = echo().encode(&assembled(boot, 32_000).prompt, &Params::default()).unwrap();
    assert!(encoded.body().len() <= 12 * 1024, "{}", encoded.body().len());
}

/// A session under way, with its next request in another state of the workspace.
fn next(boot: Bootstrap, previous: Previous, desk: &Desk) -> Assembled {
    let budget = TokenBudget::new(200_000, 8_000, None);
    let bootstrap = Arc::new(boot);
    let request = DialogueRequest {
        bootstrap,
        previous,
        ..DialogueRequest::new(ViewName::default(), target(), budget)
    };
    dialogue(&desk.tree, &request, &Estimator::default()).unwrap()
}

fn after(assembled: &Assembled) -> Previous {
    Previous { prefix: assembled.prefix.clone(), used: Some(assembled.tokens), ..Previous::default() }
}

fn changed(how: ChangedFiles) -> Bootstrap {
    let mut boot = Bootstrap { changed_files: how, ..full() };
    boot.files[0] =
        file("AGENTS.md", &"AGENTS.md says: be careful.\n".repeat(19).replacen("careful", "bold", 1));
    boot
}

#[test]
fn a_changed_file_is_told_of_at_the_end_once_and_what_stands_above_stays() {
    let mut desk = Desk::of(Mode::Dialogue);
    let node = desk.say(Role::User, vec![Block::text("hello")]);
    let first = next(full(), Previous::default(), &desk);
    let told = next(changed(ChangedFiles::Inject), after(&first), &desk);
    assert_eq!(told.prefix, first.prefix);
    let lines = drawn(&told);
    let last = lines.last().unwrap();
    assert!(
        last.starts_with("shown [AGENTS.md has changed") && last.contains("+AGENTS.md says: be bold."),
        "{last}"
    );
    assert!(told.notices[0].contains("would cost the cache about"), "{:?}", told.notices);
    assert_eq!((told.injected.len(), told.injected[0].node), (1, node));
    desk.tree.add_injection(told.injected[0].clone());
    let again = next(changed(ChangedFiles::Inject), after(&first), &desk);
    assert_eq!((again.injected.len(), again.notices.len()), (0, 0), "it stands in the window");
    assert_eq!(drawn(&again), lines, "and is sent again unchanged");
    let back = next(full(), after(&first), &desk);
    assert!(drawn(&back).last().unwrap().contains("is again as it stands above"));
}

#[test]
fn a_changed_file_waits_for_the_next_session_or_is_read_at_once_as_configured() {
    let mut desk = Desk::of(Mode::Dialogue);
    desk.say(Role::User, vec![Block::text("hello")]);
    let first = next(full(), Previous::default(), &desk);
    let waits = next(changed(ChangedFiles::NextSession), after(&first), &desk);
    assert_eq!(drawn(&waits), drawn(&first));
    assert!(waits.notices[0].contains("the next session has it"), "{:?}", waits.notices);
    assert!(left_out(&waits, Kind::File)[0].contains("the next session"));
    let at_once = next(changed(ChangedFiles::Activate), after(&first), &desk);
    assert!(drawn(&at_once)[1].contains("be bold"));
    for previous in [Previous { cold: true, ..after(&first) }, Previous::default()] {
        assert!(drawn(&next(changed(ChangedFiles::Inject), previous, &desk))[1].contains("be bold"));
    }
    let unread = drawn(&next(Bootstrap::default(), Previous { cold: true, ..after(&first) }, &desk));
    assert_eq!(unread, drawn(&first), "who asks without files goes on with those that were frozen");
    let reload = Bootstrap { reload: true, ..changed(ChangedFiles::Inject) };
    assert!(drawn(&next(reload, after(&first), &desk))[1].contains("be bold"));
}

#[test]
fn other_tools_are_read_at_once_and_told() {
    let mut desk = Desk::of(Mode::Dialogue);
    desk.say(Role::User, vec![Block::text("hello")]);
    let names = |assembled: &Assembled| {
        let Prompt::Chat(chat) = &assembled.prompt else { panic!("a dialogue is a chat") };
        chat.tools.iter().map(|tool| tool.name.clone()).collect::<Vec<_>>()
    };
    // Some of them wait: those count, too.
    let many =
        Bootstrap { tools: (0..50).map(|n| tool(&format!("tool-{n:02}"), 1, n < 3)).collect(), ..full() };
    let first = next(many.clone(), Previous::default(), &desk);
    assert_eq!(names(&first), ["call_tool", "tool-00", "tool-01", "tool-02", "tool_search"]);
    let same = next(many.clone(), after(&first), &desk);
    assert_eq!((&same.prefix, same.notices.len()), (&first.prefix, 0));
    let mut fewer = many.clone();
    fewer.tools.pop();
    let mut other = many.clone();
    other.tools[1].description.push_str("and more");
    for (boot, is_sent) in [(full(), true), (fewer, false), (other, true)] {
        let told = next(boot.clone(), after(&first), &desk);
        assert_eq!(told.prefix, next(boot, Previous::default(), &desk).prefix);
        let is_told = told.notices.iter().any(|line| line.starts_with("read again: the tools; that costs"));
        assert_eq!(is_told, is_sent, "only what is sent costs: {:?}", told.notices);
    }
}

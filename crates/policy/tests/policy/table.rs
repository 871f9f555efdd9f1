//! Every row of the default table, in chat and unattended, without rules.

use std::collections::BTreeSet;

use drawloom_policy::Decision::{Allow, Ask, Deny};
use drawloom_policy::{
    Attendance, CallFacts, CallMark, Decision, Effect, NetworkWish, PathAccess, PathPlace, Policy, Reason,
    Repeat, RowId, SandboxLevel, SessionFacts, TABLE,
};

use workspace::protected::Protection;

use crate::support::{CHAT, JOB, call, exec, file, online, online_server, server};

/// A case: the row that decides, the call, what its session differs in, and the decisions in chat and unattended.
type Case = (RowId, CallFacts, fn(&mut SessionFacts), Decision, Decision);

fn plain(_: &mut SessionFacts) {}

fn tainted(session: &mut SessionFacts) {
    session.tainted = true;
}

fn planning(session: &mut SessionFacts) {
    session.plan_mode = true;
}

fn partial(session: &mut SessionFacts) {
    session.sandbox = SandboxLevel::Partial;
}

fn none(session: &mut SessionFacts) {
    session.sandbox = SandboxLevel::None;
}

fn placed(access: PathAccess, place: PathPlace) -> CallFacts {
    let mut call = file(access, "x");
    call.paths[0].place = place;
    call
}

fn marked(call: CallFacts, mark: CallMark) -> CallFacts {
    CallFacts { mark: Some(mark), ..call }
}

fn web() -> CallFacts {
    CallFacts { host: Some("example.org".to_owned()), ..call("web_fetch", &[Effect::Net]) }
}

fn message() -> CallFacts {
    call("message", &[Effect::Message])
}

fn publishing() -> CallFacts {
    let mut call = exec("serve", NetworkWish::Off);
    call.command.as_mut().unwrap().publishes = true;
    call
}

fn files() -> Vec<Case> {
    use PathAccess::{Read, Remove, Write};
    vec![
        (RowId::Read, file(Read, "src/x.rs"), plain, Allow, Allow),
        (RowId::Read, file(Read, "AGENTS.md"), plain, Allow, Allow),
        (RowId::Read, call("list_capabilities", &[]), plain, Allow, Allow),
        (RowId::Write, file(Write, "src/x.rs"), plain, Allow, Allow),
        (RowId::Write, file(Remove, "src"), plain, Allow, Allow),
        (RowId::Write, file(Write, "docs"), plain, Allow, Allow),
        (RowId::WriteNotKept, file(Write, "x"), |session| session.keeps_old_bytes = false, Ask, Deny),
        (RowId::ReadOnlyRoot, placed(Write, PathPlace::ReadOnlyRoot), plain, Deny, Deny),
        (RowId::Read, placed(Read, PathPlace::ReadOnlyRoot), plain, Allow, Allow),
        (RowId::ProtectedAsk, file(Write, "skills/x/SKILL.md"), plain, Ask, Deny),
        (RowId::ProtectedAsk, file(Write, "docs/capabilities/x.md"), plain, Ask, Deny),
        (RowId::ProtectedAsk, file(Write, "sub/AGENTS.md"), plain, Ask, Deny),
        (RowId::ProtectedAsk, file(Remove, "docs"), plain, Ask, Deny),
        (RowId::ProtectedAsk, placed(Write, PathPlace::Protected(Protection::Ask)), plain, Ask, Deny),
        (RowId::ProtectedNever, placed(Write, PathPlace::Protected(Protection::Never)), plain, Deny, Deny),
        (RowId::Read, placed(Read, PathPlace::Protected(Protection::Never)), plain, Allow, Allow),
        (RowId::ProtectedNever, file(Write, ".git/hooks/pre-commit"), plain, Deny, Deny),
        (RowId::ProtectedNever, file(Remove, ".GIT"), plain, Deny, Deny),
        (RowId::ProtectedNever, file(Write, ".drawloom/workspace.toml"), plain, Deny, Deny),
        (RowId::ProtectedNever, file(Write, "memory/observations.jsonl"), plain, Deny, Deny),
        (RowId::ProtectedNever, file(Remove, "."), plain, Deny, Deny),
        (RowId::PrivateFile, placed(Read, PathPlace::Private), plain, Deny, Deny),
        (RowId::PrivateFile, placed(Write, PathPlace::Private), plain, Deny, Deny),
        (RowId::PlanWrite, file(Write, "x"), planning, Deny, Deny),
        (RowId::PlanWrite, call("memory_write", &[Effect::Write]), planning, Deny, Deny),
        (RowId::Read, file(Read, "x"), planning, Allow, Allow),
    ]
}

fn commands() -> Vec<Case> {
    let off = || exec("make", NetworkWish::Off);
    let open = || exec("make", NetworkWish::Open);
    let touching = CallFacts { paths: file(PathAccess::Write, "AGENTS.md").paths, ..off() };
    vec![
        (RowId::ExecFull, off(), plain, Allow, Allow),
        (RowId::ExecPartial, off(), partial, Ask, Deny),
        (RowId::ExecNone, off(), none, Ask, Deny),
        (RowId::ExecHosts, online("make"), plain, Ask, Deny),
        (RowId::ExecHosts, exec("make", NetworkWish::Hosts(Vec::new())), plain, Ask, Deny),
        (RowId::ExecNone, online("make"), none, Ask, Deny),
        (RowId::ExecOpen, open(), plain, Ask, Deny),
        (RowId::ExecOpen, call("deploy", &[Effect::Exec, Effect::Net]), plain, Ask, Deny),
        (RowId::ExecPublish, publishing(), plain, Ask, Deny),
        (RowId::ProtectedAsk, touching, plain, Ask, Deny),
        (RowId::TaintedNetworkExec, online("make"), tainted, Ask, Deny),
        (RowId::ExecFull, off(), tainted, Allow, Allow),
        (RowId::PlanNetwork, online("make"), planning, Deny, Deny),
        (RowId::PlanPublish, publishing(), planning, Deny, Deny),
        (RowId::ExecFull, off(), planning, Allow, Allow),
        (
            RowId::PlanSandbox,
            off(),
            |session| {
                planning(session);
                partial(session);
            },
            Deny,
            Deny,
        ),
    ]
}

fn others() -> Vec<Case> {
    vec![
        (RowId::Web, web(), plain, Allow, Allow),
        (RowId::Web, call("web_search", &[Effect::Net]), plain, Allow, Allow),
        (RowId::Web, web(), planning, Allow, Allow),
        (RowId::TaintedWeb, web(), tainted, Ask, Deny),
        (RowId::TaintedWeb, call("web_search", &[Effect::Net]), tainted, Ask, Deny),
        (RowId::Web, marked(web(), CallMark::ShownUrl), tainted, Allow, Allow),
        (RowId::ServerRead, server("docs", "search", true), plain, Ask, Deny),
        (RowId::ServerTool, server("github", "create_issue", false), plain, Ask, Deny),
        (RowId::TaintedServer, online_server("github", "create_issue", false), tainted, Ask, Deny),
        (RowId::TaintedServer, online_server("docs", "search", true), tainted, Ask, Deny),
        (RowId::ServerTool, online_server("github", "create_issue", false), plain, Ask, Deny),
        (RowId::ServerTool, server("github", "create_issue", false), tainted, Ask, Deny),
        (RowId::PlanWrite, server("github", "create_issue", false), planning, Deny, Deny),
        (RowId::Message, message(), plain, Ask, Deny),
        (RowId::MessageOwnTarget, marked(message(), CallMark::OwnTarget), plain, Ask, Allow),
        (RowId::TaintedMessage, marked(message(), CallMark::OwnTarget), tainted, Ask, Deny),
        (RowId::PlanMessage, message(), planning, Deny, Deny),
        (
            RowId::TaintedInstruction,
            marked(call("reminder_set", &[Effect::Write]), CallMark::StandingInstruction),
            tainted,
            Ask,
            Deny,
        ),
        (
            RowId::Write,
            marked(call("memory_write", &[Effect::Write]), CallMark::StandingInstruction),
            plain,
            Allow,
            Allow,
        ),
        (RowId::Administration, marked(call("config", &[]), CallMark::Administration), plain, Deny, Deny),
    ]
}

fn cases() -> Vec<Case> {
    [files(), commands(), others()].concat()
}

#[test]
fn every_row_decides_as_the_table_says() {
    for (row, call, differs, chat, unattended) in cases() {
        for (attendance, expected) in [(Attendance::Attended, chat), (Attendance::Unattended, unattended)] {
            let mut session = SessionFacts { attendance, ..CHAT };
            differs(&mut session);
            let verdict = Policy::default().decide(&call, &session);
            assert_eq!(verdict.decision, expected, "{row:?} {attendance:?} {call:?}");
            let Reason::Row(decided) = verdict.reason else { panic!("{row:?}: {:?}", verdict.reason) };
            // An unattended session is refused by the first row that refuses.
            assert!(decided.id == row || expected == Deny, "{row:?}: {:?}", decided.id);
            assert!(!decided.reason.is_empty());
        }
    }
}

#[test]
fn every_row_has_a_case() {
    let tested: BTreeSet<RowId> = cases().iter().map(|case| case.0).collect();
    let all: BTreeSet<RowId> = TABLE.iter().map(|row| row.id).collect();
    assert_eq!(tested, all);
}

#[test]
fn every_set_of_effects_is_known_to_a_row() {
    for bits in 0..1 << Effect::ALL.len() {
        let effects: Vec<Effect> = Effect::ALL
            .into_iter()
            .enumerate()
            .filter(|(at, _)| bits >> at & 1 == 1)
            .map(|(_, effect)| effect)
            .collect();
        let own = call("x", &effects);
        let tool = CallFacts { server: server("s", "x", false).server, ..own.clone() };
        for session in [CHAT, JOB] {
            for call in [&own, &tool] {
                let Reason::Row(row) = Policy::default().decide(call, &session).reason else {
                    panic!("{call:?}")
                };
                assert_ne!(row.id, RowId::Other, "{call:?}");
            }
            // A server's tool is never allowed by a row of our own tools.
            assert_ne!(Policy::default().decide(&tool, &session).decision, Allow, "{tool:?}");
        }
    }
}

#[test]
fn a_question_says_how_long_its_answer_may_hold() {
    let repeat = |call: &CallFacts, sandbox| {
        let verdict = Policy::default().decide(call, &SessionFacts { sandbox, ..CHAT });
        (verdict.repeat, verdict.shows_diff)
    };
    assert_eq!(repeat(&exec("make", NetworkWish::Off), SandboxLevel::None), (Repeat::EachTime, false));
    assert_eq!(
        repeat(&exec("make", NetworkWish::Off), SandboxLevel::Partial),
        (Repeat::OncePerSession, false)
    );
    assert_eq!(repeat(&exec("make", NetworkWish::Open), SandboxLevel::Partial), (Repeat::EachTime, false));
    assert_eq!(repeat(&online("make"), SandboxLevel::Full), (Repeat::AsAnswered, false));
    assert_eq!(repeat(&server("docs", "search", true), SandboxLevel::Full), (Repeat::OncePerServer, false));
    assert_eq!(repeat(&file(PathAccess::Write, "AGENTS.md"), SandboxLevel::Full), (Repeat::EachTime, true));
}

#[test]
fn x5_what_only_looks_like_a_request_or_a_secret_is_allowed_in_a_full_sandbox() {
    for line in [
        "curl https://example.com",
        "git log --format=%H",
        "npm exec x",
        "grep -r process.env src",
        "ls | wc -l",
        "echo a; echo b",
        "ls *.py",
        "echo $HOME",
        "cat src/foo.txt",
        "env",
    ] {
        let verdict = Policy::default().decide(&exec(line, NetworkWish::Off), &CHAT);
        assert_eq!(verdict.decision, Allow, "{line}");
    }
}

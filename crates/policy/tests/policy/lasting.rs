//! Answers that hold for more than one call: what may be remembered, and which calls it answers (spec: security §14).

use drawloom_policy::{
    Attendance, CallFacts, CallMark, CommandFacts, CommandStart, Decision, Effect, LastingAnswers,
    NetworkWish, PathAccess, Permission, Policy, SandboxLevel, SessionFacts, SessionType,
};

use workspace::RelativePath;

use crate::support::{CHAT, call, exec, file, online, online_server, policy, server};

const PARTIAL: SessionFacts = SessionFacts { sandbox: SandboxLevel::Partial, ..CHAT };

/// What may be remembered, as a person reads it: for the session, and for good.
fn offered(policy: &Policy, call: &CallFacts, session: &SessionFacts) -> (Option<String>, Option<String>) {
    let LastingAnswers { session, always } = policy.lasting_answers(call, session);
    (session.map(|permission| permission.to_string()), always.map(|rule| rule.in_full()))
}

fn given(patterns: &[&str]) -> Permission {
    toml::Value::from(patterns.to_vec()).try_into().unwrap()
}

fn decided(policy: &Policy, call: &CallFacts, session: &SessionFacts, patterns: &[&str]) -> Decision {
    policy.decide_with(call, session, &[given(patterns)]).decision
}

#[test]
fn the_words_of_the_call_are_what_is_remembered() {
    let none = Policy::default();
    for (call, session) in [
        (online("curl https://example.org"), "exec curl https://example.org, effect:net host=example.org"),
        (server("docs", "search", false), "docs:search"),
        (call("message", &[Effect::Message]), "message"),
    ] {
        let always = format!("allow {session}, in main sessions");
        assert_eq!(offered(&none, &call, &CHAT), (Some(session.to_owned()), Some(always)));
    }
    let kept = SessionFacts { keeps_old_bytes: false, ..CHAT };
    let write = file(PathAccess::Write, "docs/a[1],b.md");
    let pattern = "write path='docs/a[[]1[]][,]b.md'";
    let rule = format!("allow {pattern}, in main sessions");
    assert_eq!(offered(&none, &write, &kept), (Some(pattern.to_owned()), Some(rule)));
    for (path, decision) in [("docs/a[1],b.md", Decision::Allow), ("docs/a1,b.md", Decision::Ask)] {
        assert_eq!(decided(&none, &file(PathAccess::Write, path), &kept, &[pattern]), decision, "{path}");
    }
}

#[test]
fn one_answer_is_for_all_tools_of_a_server_that_the_owner_marked_as_reading_and_for_no_other() {
    let session = "docs:list, docs:search";
    let asked = offered(&Policy::default(), &server("docs", "search", true), &CHAT);
    assert_eq!(asked, (Some(session.to_owned()), Some(format!("allow {session}, in main sessions"))));
    let given = ["docs:list", "docs:search"];
    for (call, decision) in [
        (server("docs", "list", true), Decision::Allow),
        (server("docs", "search", true), Decision::Allow),
        (server("docs", "write", false), Decision::Ask),
        (server("other", "search", true), Decision::Ask),
    ] {
        assert_eq!(decided(&Policy::default(), &call, &CHAT, &given), decision, "{call:?}");
    }
    let tainted = SessionFacts { tainted: true, ..CHAT };
    assert_eq!(offered(&Policy::default(), &server("docs", "search", true), &tainted), (None, None));
    // Its first answer would take that back.
    assert_eq!(offered(&Policy::default(), &online_server("docs", "list", true), &CHAT), (None, None));
    // What was answered before holds for a server that reaches nobody, and for no other.
    let both = [server("docs", "list", true), online_server("docs", "list", true)];
    let decisions = both.map(|call| decided(&Policy::default(), &call, &tainted, &given));
    assert_eq!(decisions, [Decision::Allow, Decision::Ask]);
}

/// An allow rule stands behind the one that asks: it would be written for nothing.
#[test]
fn a_rule_that_asks_is_answered_for_a_session_and_never_for_good() {
    let asks = policy(&["ask write path=docs/**", "deny write path=docs/secret/**"]);
    let write = file(PathAccess::Write, "docs/a.md");
    assert_eq!(offered(&asks, &write, &CHAT), (Some("write path=docs/a.md".to_owned()), None));
    assert_eq!(decided(&asks, &write, &CHAT, &["write path=docs/a.md"]), Decision::Allow);
    let other = file(PathAccess::Write, "docs/b.md");
    assert_eq!(decided(&asks, &other, &CHAT, &["write path=docs/a.md"]), Decision::Ask);
    let denied = file(PathAccess::Write, "docs/secret/a.md");
    assert_eq!(decided(&asks, &denied, &CHAT, &["write path='docs/**'"]), Decision::Deny);
    let unattended = SessionFacts { attendance: Attendance::Unattended, ..CHAT };
    assert_eq!(decided(&asks, &write, &unattended, &["write path=docs/a.md"]), Decision::Allow);
    assert_eq!(decided(&asks, &other, &unattended, &["write path=docs/a.md"]), Decision::Deny);
    let planning = SessionFacts { plan_mode: true, ..CHAT };
    assert_eq!(decided(&asks, &write, &planning, &["write path=docs/a.md"]), Decision::Deny);
}

#[test]
fn what_is_asked_each_time_is_never_remembered() {
    let all = policy(&["ask exec git push *", "deny rm"]);
    let tainted = SessionFacts { tainted: true, ..CHAT };
    let none = SessionFacts { sandbox: SandboxLevel::None, ..CHAT };
    let standing =
        CallFacts { mark: Some(CallMark::StandingInstruction), ..call("memory_write", &[Effect::Write]) };
    let mut published = exec("python3 -m http.server", NetworkWish::Off);
    if let Some(command) = &mut published.command {
        command.publishes = true;
    }
    for (call, session) in [
        (file(PathAccess::Write, "AGENTS.md"), CHAT),
        (file(PathAccess::Write, ".github/workflows/x.yml"), CHAT),
        (exec("make", NetworkWish::Off), none),
        (exec("make", NetworkWish::Open), PARTIAL),
        (published, CHAT),
        (online("curl https://example.org"), tainted),
        (call("message", &[Effect::Message]), tainted),
        (standing, tainted),
        (exec("git push origin", NetworkWish::Off), tainted),
        // Part of it is known only once it runs.
        (exec("git $X", NetworkWish::Off), CHAT),
    ] {
        assert_eq!(all.decide(&call, &session).decision, Decision::Ask, "{call:?}");
        assert_eq!(offered(&all, &call, &session), (None, None), "{call:?}");
        let every = ["effect:write", "effect:exec", "effect:net", "effect:message"];
        assert_eq!(decided(&all, &call, &session, &every), Decision::Ask, "{call:?}");
    }
    // The control: the same outside of it.
    let push = exec("git push origin", NetworkWish::Off);
    assert_eq!(offered(&all, &push, &CHAT), (Some("exec git push origin".to_owned()), None));
}

/// A script may be another one by the same words.
#[test]
fn a_command_that_runs_a_file_is_not_remembered() {
    let asks =
        policy(&["ask exec git *", "ask exec make", "ask exec bash *", "ask exec ./x.sh", "ask exec env *"]);
    for line in ["bash x.sh", "./x.sh", "env make", "git -c core.pager=x log", "make; ./x.sh"] {
        let run = exec(line, NetworkWish::Off);
        assert_eq!(asks.decide(&run, &CHAT).decision, Decision::Ask, "{line}");
        assert_eq!(offered(&asks, &run, &CHAT), (None, None), "{line}");
    }
}

/// What the words of one command do not say is not remembered, nor allowed by a command that was.
#[test]
fn a_line_that_means_more_than_its_words_is_not_remembered_and_not_allowed_by_them() {
    let asks = policy(&["ask exec rm *", "ask exec cd *", "ask exec make *"]);
    let patterns = ["exec rm -r out", "exec cd build", "exec make"];
    let off = |line: &str| exec(line, NetworkWish::Off);
    let with = |change: fn(&mut CommandFacts)| {
        let mut call = off("rm -r out");
        change(call.command.as_mut().unwrap());
        call
    };
    for call in [
        off("cd build && rm -r out"),
        off("rm -r out; cd build"),
        off("rm -r out; make"),
        off("make | rm -r out"),
        off("rm -r out >| src/main.rs"),
        off("rm -r out 2> src/main.rs"),
        off("rm -r out < list"),
        off("LANG=C rm -r out"),
        off("cd build"),
        with(|command| command.directory = RelativePath::parse("build").unwrap()),
        with(|command| command.start = CommandStart::Background),
        with(|command| command.start = CommandStart::Input),
    ] {
        assert_eq!(offered(&asks, &call, &CHAT), (None, None), "{call:?}");
        assert_eq!(decided(&asks, &call, &CHAT, &patterns), Decision::Ask, "{call:?}");
    }
    for line in ["rm -r out", "rm  -r 'out'", "rm -r out 2>/dev/null", "rm -r out 2>&1"] {
        let (session, _) = offered(&asks, &off(line), &CHAT);
        assert_eq!(session.as_deref(), Some("exec rm -r out"), "control: {line}");
        assert_eq!(decided(&asks, &off(line), &CHAT, &patterns), Decision::Allow, "control: {line}");
    }
    for line in ["", "# rm", "X=1", "> src/main.rs"] {
        let everything = policy(&["ask effect:exec"]);
        assert_eq!(offered(&everything, &off(line), &CHAT), (None, None), "{line:?}");
    }
}

#[test]
fn a_level_of_the_sandbox_is_asked_about_once_a_session_and_a_rule_all_the_same() {
    let asks = policy(&["ask exec git push *"]);
    let make = exec("make all", NetworkWish::Off);
    assert_eq!(offered(&asks, &make, &PARTIAL), (Some("effect:exec".to_owned()), None));
    let ls = exec("ls -l", NetworkWish::Off);
    assert_eq!(decided(&asks, &ls, &PARTIAL, &["effect:exec"]), Decision::Allow);
    let none = SessionFacts { sandbox: SandboxLevel::None, ..CHAT };
    assert_eq!(decided(&asks, &ls, &none, &["effect:exec"]), Decision::Ask, "another level");
    let push = exec("git push origin", NetworkWish::Off);
    assert_eq!(decided(&asks, &push, &PARTIAL, &["effect:exec"]), Decision::Ask);
    assert_eq!(decided(&asks, &push, &PARTIAL, &["exec git push origin"]), Decision::Allow, "control");
}

/// Of two permissions neither covers a call that takes one part from each.
#[test]
fn permissions_do_not_add_up() {
    let none = Policy::default();
    let hosts = |line: &str, host: &str| exec(line, NetworkWish::Hosts(vec![host.to_owned()]));
    let both = [
        given(&["exec curl a", "effect:net host=a.test"]),
        given(&["exec wget b", "effect:net host=b.test"]),
    ];
    let decided = |call: &CallFacts| none.decide_with(call, &CHAT, &both).decision;
    assert_eq!(decided(&hosts("curl a", "a.test")), Decision::Allow);
    assert_eq!(decided(&hosts("curl a", "b.test")), Decision::Ask);
    assert_eq!(decided(&hosts("curl a; wget b", "a.test")), Decision::Ask);
    let job = SessionFacts { kind: SessionType::Isolated, ..CHAT };
    let (_, always) = offered(&none, &server("docs", "search", false), &job);
    assert_eq!(always.as_deref(), Some("allow docs:search, in isolated sessions"));
}

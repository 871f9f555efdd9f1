//! Laws that hold for any rules and any call.

use drawloom_policy::{
    Attendance, CallFacts, CallMark, Decision, Effect, Loosening, NetworkWish, PathAccess, PathPlace,
    PathUse, Policy, PolicyRule, Reason, Repeat, SandboxLevel, ServerFacts, SessionFacts, SessionType,
};
use proptest::collection::{btree_set, vec};
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use workspace::RelativePath;
use workspace::protected::Protection;

use crate::support::{CHAT, exec};

const PATTERNS: &[&str] = &[
    "read",
    "write",
    "exec",
    "message",
    "web_fetch",
    "docs:search",
    "effect:read",
    "effect:write",
    "effect:exec",
    "effect:net",
    "effect:message",
    "effect:net host=a.test",
    "effect:write path='src/**'",
    "write path=AGENTS.md",
    "exec git *",
    "exec rm *",
    "exec git push *",
    "exec ls",
    "exec host=a.test",
];

const LINES: &[&str] = &[
    "ls",
    "git status",
    "git push",
    "rm x",
    "ls; rm x",
    "ls $X",
    "$X",
    "sudo rm x",
    "git -c a=b log",
    "bash -c 'rm x'",
    "ls > /x",
    "A=1 ls",
    "(ls)",
    "ls 'x",
    "",
    "case x in x) ls;; esac",
];

const PATHS: &[&str] = &[".", "src/x.rs", "AGENTS.md", ".git/config", "docs", "x"];

fn rules(decisions: &'static [Decision], most: usize) -> impl Strategy<Value = Vec<PolicyRule>> {
    let patterns = |least| vec(select(PATTERNS).prop_map(|text| text.parse().unwrap()), least..3);
    let kinds = vec(select(vec![SessionType::Main, SessionType::Isolated, SessionType::Document]), 0..2);
    let rule = (select(decisions), patterns(1), patterns(0), kinds).prop_map(
        |(decision, tool, unless, sessions)| PolicyRule { decision, tool, unless, sessions, reason: None },
    );
    vec(rule, 0..most)
}

fn networks() -> impl Strategy<Value = NetworkWish> {
    let hosts = vec(select(vec!["a.test", "b.test"]).prop_map(str::to_owned), 0..3);
    prop_oneof![Just(NetworkWish::Off), Just(NetworkWish::Open), hosts.prop_map(NetworkWish::Hosts)]
}

fn calls() -> impl Strategy<Value = CallFacts> {
    let accesses = select(vec![PathAccess::Read, PathAccess::Write, PathAccess::Remove]);
    let places = select(vec![
        PathPlace::WritableRoot,
        PathPlace::Protected(Protection::Ask),
        PathPlace::Protected(Protection::Never),
        PathPlace::ReadOnlyRoot,
        PathPlace::Private,
    ]);
    let path = (select(PATHS), accesses, places).prop_map(|(path, access, place)| PathUse {
        path: RelativePath::parse(path).unwrap(),
        further_root: None,
        access,
        place,
    });
    let marks = select(vec![
        CallMark::ShownUrl,
        CallMark::OwnTarget,
        CallMark::StandingInstruction,
        CallMark::Administration,
    ]);
    (
        select(vec!["read", "write", "exec", "message", "web_fetch", "search"]),
        option::weighted(0.2, any::<(bool, bool)>()),
        btree_set(select(Effect::ALL.to_vec()), 0..4),
        vec(path, 0..3),
        option::weighted(0.3, select(vec!["a.test", "B.test."])),
        option::of((select(LINES), networks())),
        option::weighted(0.2, marks),
    )
        .prop_map(|(tool, server, effects, paths, host, command, mark)| CallFacts {
            tool: tool.to_owned(),
            server: server.map(|(marked_read, is_online)| {
                let reading = if marked_read { vec![tool.to_owned()] } else { Vec::new() };
                ServerFacts { name: "docs".to_owned(), reading, is_online }
            }),
            effects,
            paths,
            host: host.map(str::to_owned),
            command: command.and_then(|(line, network)| exec(line, network).command),
            mark,
            looks_below: false,
        })
}

fn sessions() -> impl Strategy<Value = SessionFacts> {
    let kinds = vec![SessionType::Main, SessionType::Private, SessionType::Isolated, SessionType::Document];
    let levels = vec![SandboxLevel::None, SandboxLevel::Partial, SandboxLevel::Full];
    let attendance = vec![Attendance::Attended, Attendance::Unattended];
    (select(kinds), select(attendance), select(levels), any::<(bool, bool)>(), prop::bool::weighted(0.2))
        .prop_map(|(kind, attendance, sandbox, (tainted, keeps_old_bytes), plan_mode)| SessionFacts {
            kind,
            attendance,
            sandbox,
            tainted,
            plan_mode,
            keeps_old_bytes,
        })
}

/// A rule on everything a call may be.
fn on_all(decision: Decision) -> PolicyRule {
    let tool = Effect::ALL.map(|effect| format!("effect:{}", effect.name()).parse().unwrap()).to_vec();
    PolicyRule { decision, tool, unless: Vec::new(), sessions: Vec::new(), reason: None }
}

const ALL: &[Decision] = &[Decision::Allow, Decision::Ask, Decision::Deny];
const ALLOW: &[Decision] = &[Decision::Allow];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]

    #[test]
    fn deny_wins_over_any_allows(
        mut rules in rules(ALL, 3), more in rules(ALLOW, 5), at in any::<prop::sample::Index>(),
        call in calls(), session in sessions(),
    ) {
        rules.extend(more);
        rules.insert(at.index(rules.len() + 1), on_all(Decision::Deny));
        let verdict = Policy::new(rules).unwrap().decide(&call, &session);
        prop_assert_eq!(verdict.decision, Decision::Deny);
    }

    #[test]
    fn an_allow_rule_never_turns_deny_into_allow(
        rules in rules(ALL, 4), more in rules(ALLOW, 4), call in calls(), session in sessions(),
    ) {
        let before = Policy::new(rules.clone()).unwrap().decide(&call, &session);
        let after = Policy::new([rules.clone(), more].concat()).unwrap().decide(&call, &session);
        prop_assert!(after.decision <= before.decision, "an allow rule makes nothing stricter");
        // Where nobody is there, an allow rule is the approval given before; what it never approves is tested below.
        let may_be_approved = session.attendance == Attendance::Unattended
            && matches!(&before.reason, Reason::Row(row)
                if row.loosening == Loosening::ByRule);
        if before.decision == Decision::Deny && !may_be_approved {
            prop_assert_eq!(after.decision, Decision::Deny);
        }
    }

    #[test]
    fn every_allow_rule_together_loosens_no_fixed_row(call in calls(), session in sessions()) {
        let every = PATTERNS.iter().map(|text| PolicyRule {
            tool: vec![text.parse().unwrap()], ..on_all(Decision::Allow)
        });
        let verdict = Policy::new(every.collect()).unwrap().decide(&call, &session);
        let touched = call.written().any(|path| path.path.to_string().starts_with(".git"));
        let is_fixed = touched || call.mark == Some(CallMark::Administration)
            || (session.tainted && call.has(Effect::Message))
            || (session.tainted && call.server.as_ref().is_some_and(|server| server.is_online))
            || (call.has(Effect::Exec) && session.sandbox != SandboxLevel::Full)
            || (session.plan_mode && call.has(Effect::Write));
        prop_assert!(!is_fixed || verdict.decision > Decision::Allow);
    }

    /// A permission given for one call, for another.
    #[test]
    fn a_permission_answers_a_question_and_nothing_else(
        rules in rules(ALL, 4), call in calls(), other in calls(), session in sessions(), then in sessions(),
    ) {
        let policy = Policy::new(rules).unwrap();
        let given = policy.lasting_answers(&call, &session);
        if let Some(permission) = &given.session {
            let (before, permissions) = (policy.decide(&call, &session), [permission.clone()]);
            prop_assert_eq!(before.decision, Decision::Ask);
            prop_assert!(before.repeat != Repeat::EachTime && !before.shows_diff && !session.tainted);
            prop_assert_eq!(policy.decide_with(&call, &session, &permissions).decision, Decision::Allow);
            for (call, session) in [(&call, &then), (&other, &session)] {
                let (before, after) =
                    (policy.decide(call, session), policy.decide_with(call, session, &permissions));
                if before != after {
                    let answered = before.decision == Decision::Ask && before.repeat != Repeat::EachTime;
                    let nobody = session.attendance == Attendance::Unattended
                        && match &before.reason {
                            Reason::Unanswered(_) => true,
                            Reason::Row(row) => row.loosening == Loosening::ByRule,
                            _ => false,
                        };
                    prop_assert!(answered || nobody, "{:?}", before);
                    prop_assert!(matches!(after.reason, Reason::Permitted(_)));
                }
            }
        }
        if let Some(rule) = given.always {
            let with = Policy::new(policy.rules().iter().chain([&rule]).cloned().collect()).unwrap();
            prop_assert_eq!(with.decide(&call, &session).decision, Decision::Allow);
            let denied = Policy::new([with.rules(), &[on_all(Decision::Deny)]].concat()).unwrap();
            let permissions = given.session.map(|permission| vec![permission]).unwrap_or_default();
            let verdict = denied.decide_with(&call, &session, &permissions);
            prop_assert_eq!(verdict.decision, Decision::Deny);
        }
    }

    #[test]
    fn nothing_is_asked_where_nobody_answers(rules in rules(ALL, 4), call in calls(), session in sessions()) {
        let session = SessionFacts { attendance: Attendance::Unattended, ..session };
        let verdict = Policy::new(rules).unwrap().decide(&call, &session);
        prop_assert_ne!(verdict.decision, Decision::Ask);
        prop_assert!(!verdict.reason.to_string().is_empty());
    }

    #[test]
    fn any_line_is_decided_and_no_more_than_plain_words_pass(
        any in "\\PC{0,40}", shell in "[grm '\"\\\\$`(){}<>|&;\n#=*~!./-]{0,40}", depth in 0usize..40,
    ) {
        let rules: Vec<PolicyRule> = ["exec git *", "effect:net"].iter().map(|text| PolicyRule {
            tool: vec![text.parse().unwrap()], ..on_all(Decision::Allow)
        }).chain([PolicyRule { tool: vec!["exec rm *".parse().unwrap()], ..on_all(Decision::Deny) }]).collect();
        let policy = Policy::new(rules).unwrap();
        let nested = format!("{}{shell}", "sudo bash -c \"$(".repeat(depth));
        for line in [any, nested, format!("git {shell}")] {
            let call = exec(&line, NetworkWish::Hosts(vec!["a.test".to_owned()]));
            let verdict = policy.decide(&call, &CHAT);
            if verdict.decision == Decision::Allow {
                prop_assert!(line.contains("git"), "{}", line);
                let may_be_text = line.contains(['\'', '\\', '#']);
                prop_assert!(may_be_text || !(line.contains('`') || line.contains("$(")), "{}", line);
            }
        }
    }
}

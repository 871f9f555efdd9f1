//! A command line judged by rules: one that denies makes no decision milder, one that allows makes none stricter, and a
//! line that begins with what is denied is never allowed.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use policy::{
    Attendance, CallFacts, CommandFacts, CommandStart, Decision, Effect, NetworkWish, Pattern, Policy,
    PolicyRule, SandboxLevel, SessionFacts, SessionType, named_programs,
};
use workspace::RelativePath;

const SESSION: SessionFacts = SessionFacts {
    kind: SessionType::Main,
    attendance: Attendance::Attended,
    sandbox: SandboxLevel::Partial,
    tainted: false,
    plan_mode: false,
    keeps_old_bytes: true,
};

fn policy(rules: &[(Decision, &str)]) -> Policy {
    let rule = |(decision, pattern): &(Decision, &str)| PolicyRule {
        decision: *decision,
        tool: vec![pattern.parse::<Pattern>().expect("a pattern")],
        unless: Vec::new(),
        sessions: Vec::new(),
        reason: None,
    };
    Policy::new(rules.iter().map(rule).collect()).expect("rules")
}

static NONE: LazyLock<Policy> = LazyLock::new(|| policy(&[]));
static DENIES: LazyLock<Policy> = LazyLock::new(|| policy(&[(Decision::Deny, "exec rm *")]));
static ALLOWS: LazyLock<Policy> = LazyLock::new(|| policy(&[(Decision::Allow, "exec git status *")]));
static BOTH: LazyLock<Policy> =
    LazyLock::new(|| policy(&[(Decision::Allow, "exec git status *"), (Decision::Deny, "exec rm *")]));

fn decided(policy: &Policy, line: &str) -> Decision {
    let command = CommandFacts {
        line: line.to_owned(),
        directory: RelativePath::root(),
        directory_is_direct: true,
        further_root: None,
        network: NetworkWish::Off,
        publishes: false,
        start: CommandStart::Foreground,
    };
    let effects = [Effect::Exec].into_iter().collect();
    let call = CallFacts { tool: "exec".to_owned(), effects, command: Some(command), ..CallFacts::default() };
    policy.decide(&call, &SESSION).decision
}

fuzz_target!(|line: &str| {
    let none = decided(&NONE, line);
    assert!(decided(&DENIES, line) >= none, "a rule that denies makes it milder: {line:?}");
    assert!(decided(&ALLOWS, line) <= none, "a rule that allows makes it stricter: {line:?}");
    assert!(decided(&BOTH, line) >= decided(&ALLOWS, line), "{line:?}");
    let behind = format!("rm x\n{line}");
    assert_ne!(decided(&BOTH, &behind), Decision::Allow, "{behind:?}");
    let named = named_programs(&behind);
    assert!(named.is_empty() || named.iter().any(|name| name == "rm"), "{behind:?}: {named:?}");
});

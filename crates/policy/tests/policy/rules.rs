//! Rules with their patterns, exceptions and sessions.

use drawloom_policy::{
    CallFacts, Decision, Effect, NetworkWish, PathAccess, Pattern, Policy, PolicyError, PolicyRule, Reason,
    SandboxLevel, SessionFacts, SessionType, may_mean,
};

use crate::support::{CHAT, JOB, call, configured, exec, file, online, policy, server};

fn decided(policy: &Policy, call: &CallFacts, session: &SessionFacts) -> Decision {
    policy.decide(call, session).decision
}

#[test]
fn deny_comes_before_ask_before_allow() {
    let call = file(PathAccess::Write, "src/x.rs");
    let all = policy(&["allow write", "ask write", "deny write path='src/**'"]);
    assert_eq!(decided(&all, &call, &CHAT), Decision::Deny);
    assert_eq!(decided(&policy(&["allow write", "ask write"]), &call, &CHAT), Decision::Ask);
    assert_eq!(decided(&policy(&["allow write", "ask write"]), &call, &JOB), Decision::Deny);
    assert_eq!(decided(&policy(&["allow write"]), &call, &CHAT), Decision::Allow);
}

#[test]
fn unless_takes_a_call_out_of_its_rule() {
    let rules = configured(
        "[[rules]]\ndecision = 'deny'\ntool = ['exec git push *']\nunless = ['exec git push origin dev']\n\
         reason = 'main is released from'",
    );
    let line = |line| rules.decide(&exec(line, NetworkWish::Off), &CHAT);
    assert_eq!(line("git push origin dev").decision, Decision::Allow);
    assert_eq!(line("ls && git push origin dev").decision, Decision::Allow);
    for denied in
        ["git push origin main", "git push origin dev && git push origin main", "git push origin dev $X"]
    {
        assert_eq!(line(denied).decision, Decision::Deny, "{denied}");
    }
    let verdict = line("git push");
    assert_eq!(verdict.reason.to_string(), "rule 1 (deny exec git push *): main is released from");

    let rules = configured(
        "[[rules]]\ndecision = 'allow'\ntool = ['exec git *', 'effect:net']\nunless = ['exec git push *']",
    );
    assert_eq!(decided(&rules, &online("git fetch"), &CHAT), Decision::Allow);
    assert_eq!(decided(&rules, &online("git fetch; git -q push"), &CHAT), Decision::Ask);
}

#[test]
fn a_rule_holds_in_its_sessions() {
    let rules = configured("[[rules]]\ndecision = 'deny'\ntool = ['write']\nsessions = ['main']");
    let call = file(PathAccess::Write, "x");
    for (kind, expected) in [
        (SessionType::Main, Decision::Deny),
        (SessionType::Private, Decision::Deny),
        (SessionType::Isolated, Decision::Allow),
        (SessionType::Document, Decision::Allow),
    ] {
        assert_eq!(decided(&rules, &call, &SessionFacts { kind, ..CHAT }), expected, "{kind:?}");
    }
}

#[test]
fn a_deny_rule_on_a_path_holds_below_it_in_any_case() {
    let rules = policy(&["deny effect:write path=secrets"]);
    for path in ["secrets", "secrets/a/b", "SECRETS/a"] {
        assert_eq!(decided(&rules, &file(PathAccess::Write, path), &CHAT), Decision::Deny, "{path}");
    }
    assert_eq!(decided(&rules, &file(PathAccess::Read, "secrets/a"), &CHAT), Decision::Allow);
    assert_eq!(decided(&rules, &file(PathAccess::Write, "secrets2"), &CHAT), Decision::Allow);
}

#[test]
fn an_allow_rule_on_a_path_covers_every_path() {
    let rules = policy(&["allow effect:write path='out/*'"]);
    let session = SessionFacts { keeps_old_bytes: false, ..CHAT };
    let mut call = file(PathAccess::Write, "out/x");
    assert_eq!(decided(&rules, &call, &session), Decision::Allow);
    call.paths.extend(file(PathAccess::Write, "src/x").paths);
    assert_eq!(decided(&rules, &call, &session), Decision::Ask);
    assert_eq!(decided(&rules, &file(PathAccess::Write, "out/a/x"), &session), Decision::Ask);
}

#[test]
fn hosts_are_compared_as_names() {
    let fetch = |host: &str| CallFacts { host: Some(host.to_owned()), ..call("web_fetch", &[Effect::Net]) };
    let rules = policy(&["deny effect:net host=evil.test"]);
    for host in ["evil.test", "EVIL.test.", "a.evil.test"] {
        assert_eq!(decided(&rules, &fetch(host), &CHAT), Decision::Deny, "{host}");
    }
    assert_eq!(decided(&rules, &fetch("notevil.test"), &CHAT), Decision::Allow);
    // An open network may reach it.
    let open = exec("ls", NetworkWish::Open);
    assert!(matches!(rules.decide(&open, &CHAT).reason, Reason::Unread(_)));
    let rules = policy(&["allow exec ls", "allow exec host=example.org"]);
    assert_eq!(decided(&rules, &online("ls"), &JOB), Decision::Allow);
    let two = exec("ls", NetworkWish::Hosts(vec!["example.org".to_owned(), "a.example.org".to_owned()]));
    assert_eq!(decided(&rules, &two, &JOB), Decision::Deny);
}

#[test]
fn a_servers_tool_is_approved_by_its_full_name() {
    let issue = server("github", "create_issue", false);
    let search = server("docs", "search", true);
    let rules = policy(&["allow github:create_issue", "allow docs:search"]);
    for session in [CHAT, JOB] {
        assert_eq!(decided(&rules, &issue, &session), Decision::Allow);
        assert_eq!(decided(&rules, &search, &session), Decision::Allow);
    }
    assert_eq!(decided(&rules, &server("other", "create_issue", false), &JOB), Decision::Deny);
    assert_eq!(decided(&policy(&["allow create_issue", "allow effect:net"]), &issue, &CHAT), Decision::Ask);
    assert_eq!(decided(&policy(&["allow effect:write", "allow effect:net"]), &issue, &CHAT), Decision::Allow);
}

#[test]
fn no_rule_loosens_what_safety_fixes() {
    let rules = policy(&[
        "allow effect:read",
        "allow effect:write",
        "allow effect:exec",
        "allow effect:net",
        "allow effect:message",
        "allow write",
        "allow exec",
        "allow exec ls",
    ]);
    let tainted = SessionFacts { tainted: true, ..CHAT };
    let none = SessionFacts { sandbox: SandboxLevel::None, ..CHAT };
    for (call, session, expected) in [
        (file(PathAccess::Write, ".git/config"), CHAT, Decision::Deny),
        (file(PathAccess::Write, "AGENTS.md"), CHAT, Decision::Ask),
        (file(PathAccess::Write, "AGENTS.md"), JOB, Decision::Deny),
        (exec("ls", NetworkWish::Open), CHAT, Decision::Ask),
        (exec("ls", NetworkWish::Off), none, Decision::Ask),
        (online("ls"), tainted, Decision::Ask),
        (call("message", &[Effect::Message]), tainted, Decision::Ask),
        (call("message", &[Effect::Message]), JOB, Decision::Deny),
        (file(PathAccess::Write, "x"), SessionFacts { plan_mode: true, ..CHAT }, Decision::Deny),
    ] {
        assert_eq!(decided(&rules, &call, &session), expected, "{call:?}");
    }
    assert_eq!(decided(&rules, &online("ls"), &JOB), Decision::Allow);
    assert_eq!(decided(&rules, &call("message", &[Effect::Message]), &CHAT), Decision::Allow);
}

#[test]
fn a_rule_that_can_match_nothing_allows_nothing_and_says_so() {
    let rule = |pattern: &str| PolicyRule {
        decision: Decision::Allow,
        tool: vec![pattern.parse::<Pattern>().unwrap()],
        unless: Vec::new(),
        sessions: Vec::new(),
        reason: None,
    };
    for pattern in [
        "exec bash *",
        "exec /usr/bin/python3 *",
        "exec env *",
        "exec git -c *",
        "exec npx x *",
        "exec xvfb-run *",
        "exec ip netns *",
    ] {
        let why = rule(pattern).futile().unwrap();
        assert!(why.starts_with(&format!("`{pattern}` allows nothing")), "{why}");
        assert_eq!(PolicyRule { decision: Decision::Deny, ..rule(pattern) }.futile(), None);
        let rules = Policy::new(vec![rule(pattern), rule("effect:net")]).unwrap();
        let line = pattern.trim_start_matches("exec ").replace('*', "x");
        assert_eq!(decided(&rules, &online(&line), &JOB), Decision::Deny, "{line}");
    }
    assert_eq!(rule("exec bash build.sh").futile(), None);
    for pattern in ["py:* path=x", "py:hello host=example.org"] {
        for decision in [Decision::Allow, Decision::Ask, Decision::Deny] {
            let why = PolicyRule { decision, ..rule(pattern) }.futile().unwrap();
            assert!(why.starts_with(&format!("`{pattern}` is about nothing")), "{why}");
        }
    }
    assert_eq!((rule("py:*").futile(), rule("write path=x").futile()), (None, None));
    let empty = PolicyRule { tool: Vec::new(), ..rule("read") };
    assert_eq!(Policy::new(vec![empty]), Err(PolicyError::NoPattern(1)));
    // All of a command may be allowed where no prefix of it may.
    let rules = policy(&["allow exec bash build.sh", "allow effect:net"]);
    assert_eq!(decided(&rules, &online("bash build.sh"), &JOB), Decision::Allow);
    assert_eq!(decided(&rules, &online("bash build.sh x"), &JOB), Decision::Deny);
}

#[test]
fn an_unknown_key_or_a_bad_pattern_is_refused_by_its_place() {
    let error = |text: &str| toml::from_str::<PolicyRule>(text).unwrap_err().to_string();
    assert!(error("decision = 'allow'\ntool = ['read']\nwhen = 1").contains("unknown field `when`"));
    assert!(
        error("decision = 'allow'\ntool = ['exec cargo test*']").contains("character 12: words of a command")
    );
    let rule = "decision = \"deny\"\ntool = [\"exec rm *\"]\nsessions = [\"isolated\"]\nreason = \"kept\"\n";
    assert_eq!(toml::to_string(&toml::from_str::<PolicyRule>(rule).unwrap()).unwrap(), rule);
    let schema = schemars::schema_for!(PolicyRule);
    assert_eq!(schema.as_value()["additionalProperties"], false);
}

/// Rules of an agent as they stand in configuration.
fn rules_of(text: &str) -> Vec<PolicyRule> {
    configured(text).rules().to_vec()
}

#[test]
fn rules_of_an_agent_narrow_the_general_ones_and_never_widen_them() {
    let general = policy(&["deny write path='docs/**'", "ask write path='src/**'"]);
    let allowing = rules_of("[[rules]]\ndecision = 'allow'\ntool = ['write', 'effect:net']");
    let widened = general.for_agent("poet", allowing).unwrap();
    for (path, decision) in [("docs/a.md", Decision::Deny), ("src/a.rs", Decision::Ask)] {
        assert_eq!(decided(&widened, &file(PathAccess::Write, path), &CHAT), decision, "{path}");
    }
    let denying = rules_of("[[rules]]\ndecision = 'deny'\ntool = ['write']\nreason = 'it reads'");
    assert!(policy(&[]).is_empty() && !policy(&[]).for_agent("poet", denying.clone()).unwrap().is_empty());
    let general = policy(&["allow write"]);
    let narrowed = general.for_agent("poet", denying).unwrap();
    let verdict = narrowed.decide(&file(PathAccess::Write, "x"), &CHAT);
    assert_eq!(verdict.decision, Decision::Deny);
    assert_eq!(verdict.reason.to_string(), "rule 1 of agent poet (deny write): it reads");
    // The control, and what it allows of the table's questions.
    assert_eq!(decided(&general, &file(PathAccess::Write, "x"), &CHAT), Decision::Allow);
    let online = online("git fetch");
    let allowing = rules_of("[[rules]]\ndecision = 'allow'\ntool = ['exec git *', 'effect:net']");
    assert_eq!(decided(&policy(&[]), &online, &CHAT), Decision::Ask);
    assert_eq!(decided(&policy(&[]).for_agent("poet", allowing).unwrap(), &online, &CHAT), Decision::Allow);
}

#[test]
fn an_answer_for_good_is_not_offered_behind_a_question_of_an_agents_rule() {
    let asking = rules_of("[[rules]]\ndecision = 'ask'\ntool = ['write']");
    let call = file(PathAccess::Write, "x");
    let own = policy(&[]).for_agent("poet", asking).unwrap();
    let answers = own.lasting_answers(&call, &CHAT);
    assert!(answers.session.is_some() && answers.always.is_none(), "{answers:?}");
    assert_eq!(
        own.placed_rules().map(|(agent, index, _)| (agent, index)).collect::<Vec<_>>(),
        [(Some("poet"), 0)]
    );
    let empty = vec![PolicyRule { tool: Vec::new(), ..own.rules_of_agent()[0].clone() }];
    assert!(matches!(policy(&[]).for_agent("poet", empty), Err(PolicyError::NoPattern(1))));
}

#[test]
fn a_path_of_a_further_root_is_meant_by_its_absolute_path() {
    let there = |access| {
        let mut call = file(access, "src/x.rs");
        call.paths[0].further_root = Some("/data/lib".into());
        call
    };
    let written = there(PathAccess::Write);
    let asks = "ask write";
    // What is allowed in the workspace is not allowed there by that.
    for (allowed, expected) in [
        ("allow write path='src/**'", Decision::Ask),
        ("allow write path='**'", Decision::Ask),
        ("allow write path='{/data/other/*,**}'", Decision::Ask),
        ("allow write path='{/data/other/*,/data/lib/src/*}'", Decision::Allow),
        ("allow write path='/data/**'", Decision::Allow),
        ("allow write path=/data/lib/src/x.rs", Decision::Allow),
        ("allow write path='/data/other/**'", Decision::Ask),
    ] {
        let rules = configured(&format!(
            "[[rules]]\ndecision = 'ask'\ntool = ['write']\nunless = [\"{}\"]",
            allowed.trim_start_matches("allow ")
        ));
        assert_eq!(decided(&rules, &written, &CHAT), expected, "{allowed}");
    }
    assert_eq!(decided(&policy(&[asks]), &written, &CHAT), Decision::Ask);
    // What is denied is denied there, too.
    for denied in ["deny write path='src/**'", "deny write path='/data/**'", "deny write path=/data"] {
        assert_eq!(decided(&policy(&[denied]), &written, &CHAT), Decision::Deny, "{denied}");
    }
    // An absolute pattern is none of the workspace.
    let own = file(PathAccess::Write, "src/x.rs");
    assert_eq!(decided(&policy(&["deny write path='/data/**'"]), &own, &CHAT), Decision::Allow);
}

#[test]
fn what_is_remembered_of_a_further_root_names_its_absolute_path() {
    let mut call = file(PathAccess::Write, "a.rs");
    call.paths[0].further_root = Some("/data/lib".into());
    let asking = policy(&["ask write"]);
    let given = asking.lasting_answers(&call, &CHAT);
    assert_eq!(given.session.unwrap().to_string(), "write path=/data/lib/a.rs");
    let mut line = exec("make", NetworkWish::Off);
    let asking = policy(&["ask exec"]);
    assert!(asking.lasting_answers(&line, &CHAT).session.is_some());
    // The same words in another folder are another command.
    line.command.as_mut().unwrap().further_root = Some("/data/lib".into());
    assert!(asking.lasting_answers(&line, &CHAT).session.is_none());
}

#[test]
fn of_a_command_with_network_the_first_part_that_no_rule_allows_is_named() {
    let build = "cargo build --release 2>&1 | tail -5";
    let long = format!("echo \u{202e}{}", "a".repeat(100));
    let (cargo, host) = ("allow exec cargo build *", "allow effect:net host=example.org");
    for (rules, line, named) in [
        (&[cargo, host][..], build, "(none allows `tail -5`)"),
        (&[cargo, "allow exec tail *"], build, "(none allows the host example.org)"),
        (&[host], build, "(none allows `cargo build --release`)"),
        (&[cargo, host], "cargo build $(date)", "(none allows a line that is more than plain commands)"),
        (&[host], long.as_str(), format!("(none allows `echo \\u{{202e}}{}…`)", "a".repeat(67)).as_str()),
    ] {
        for session in [CHAT, JOB] {
            let verdict = policy(rules).decide(&online(line), &session);
            assert_ne!(verdict.decision, Decision::Allow);
            let told = verdict.to_string();
            assert!(told.ends_with(named), "{line}: {told}");
        }
    }
    // Where another reason decides, rules would not help.
    let open = policy(&[cargo]).decide(&exec(build, NetworkWish::Open), &CHAT);
    assert_eq!((open.to_string(), open.uncovered), (open.reason.to_string(), None));
    let allowed = policy(&[cargo, host, "allow exec tail *"]).decide(&online(build), &CHAT);
    assert_eq!((allowed.decision, allowed.uncovered), (Decision::Allow, None));
}

#[test]
fn a_call_that_looks_below_a_folder_may_mean_what_lies_there() {
    let meant = |pattern: &str, tool: &str, path: &str, looks_below| {
        let call = CallFacts { tool: tool.to_owned(), looks_below, ..file(PathAccess::Read, path) };
        may_mean(&[pattern.parse().unwrap()], &call)
    };
    for (pattern, path) in [
        ("effect:read path=db/sec/**", "."),
        ("grep path=db/sec/**", "db"),
        ("effect:read path=DB/sec/**", "db"),
        ("effect:read path=db/sec/**", "db/sec"),
        ("effect:read path=db/*/k", "db/sec"),
        ("effect:read path=**/*.key", "src"),
        ("effect:read path={db,src}/**", "db"),
    ] {
        assert!(meant(pattern, "grep", path, true), "{pattern} {path}");
        assert!(!meant(pattern, "grep", path, false), "{pattern} {path}");
    }
    for (pattern, path) in [
        ("effect:read path=db/sec/**", "src"),
        ("effect:read path=db/sec/**", "db/second"),
        ("effect:write path=db/**", "."),
        ("glob path=db/**", "."),
        ("effect:read path=/data/**", "."),
        ("effect:net host=example.org", "."),
    ] {
        assert!(!meant(pattern, "grep", path, true), "{pattern} {path}");
    }
}

//! Calls and sessions to decide on.

use drawloom_policy::{
    Attendance, CallFacts, CommandFacts, CommandStart, Effect, NetworkWish, PathAccess, PathPlace, PathUse,
    Policy, PolicyRule, SandboxLevel, ServerFacts, SessionFacts, SessionType,
};
use workspace::RelativePath;

/// The owner's chat: full sandbox, old bytes kept, nothing from outside.
pub(crate) const CHAT: SessionFacts = SessionFacts {
    kind: SessionType::Main,
    attendance: Attendance::Attended,
    sandbox: SandboxLevel::Full,
    tainted: false,
    plan_mode: false,
    keeps_old_bytes: true,
};

/// A reminder's session.
pub(crate) const JOB: SessionFacts =
    SessionFacts { kind: SessionType::Isolated, attendance: Attendance::Unattended, ..CHAT };

/// A call of a tool with effects.
pub(crate) fn call(tool: &str, effects: &[Effect]) -> CallFacts {
    CallFacts { tool: tool.to_owned(), effects: effects.iter().copied().collect(), ..CallFacts::default() }
}

/// A call of a file tool.
pub(crate) fn file(access: PathAccess, path: &str) -> CallFacts {
    let place = PathPlace::WritableRoot;
    let path = RelativePath::parse(path).unwrap();
    let path = PathUse { path, further_root: None, access, place };
    let (tool, effect) = match access {
        PathAccess::Read => ("read", Effect::Read),
        PathAccess::Write => ("write", Effect::Write),
        PathAccess::Link | PathAccess::Remove => ("move", Effect::Write),
    };
    CallFacts { paths: vec![path], ..call(tool, &[effect]) }
}

/// A command.
pub(crate) fn exec(line: &str, network: NetworkWish) -> CallFacts {
    let (directory, start) = (RelativePath::root(), CommandStart::Foreground);
    let command = CommandFacts {
        line: line.to_owned(),
        directory,
        directory_is_direct: true,
        further_root: None,
        network,
        publishes: false,
        start,
    };
    CallFacts { command: Some(command), ..call("exec", &[Effect::Exec]) }
}

/// A command with the network of one host.
pub(crate) fn online(line: &str) -> CallFacts {
    exec(line, NetworkWish::Hosts(vec!["example.org".to_owned()]))
}

/// A call of a server's tool.
pub(crate) fn server(name: &str, tool: &str, marked_read: bool) -> CallFacts {
    let effects: &[Effect] = if marked_read { &[Effect::Read] } else { &[Effect::Write, Effect::Net] };
    let reading = if marked_read { vec!["list".to_owned(), tool.to_owned()] } else { Vec::new() };
    CallFacts {
        server: Some(ServerFacts { name: name.to_owned(), reading, is_online: false }),
        ..call(tool, effects)
    }
}

/// The same call, of a server that reaches others.
pub(crate) fn online_server(name: &str, tool: &str, marked_read: bool) -> CallFacts {
    let mut call = server(name, tool, marked_read);
    call.server.as_mut().unwrap().is_online = true;
    call
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Rules {
    #[serde(default)]
    rules: Vec<PolicyRule>,
}

/// A policy of `DECISION PATTERN` lines.
pub(crate) fn policy(rules: &[&str]) -> Policy {
    let rule = |text: &&str| {
        let (decision, pattern) = text.split_once(' ').unwrap();
        format!("[[rules]]\ndecision = \"{decision}\"\ntool = ['''{pattern}''']\n")
    };
    configured(&rules.iter().map(rule).collect::<String>())
}

/// A policy as it stands in configuration.
pub(crate) fn configured(text: &str) -> Policy {
    Policy::new(toml::from_str::<Rules>(text).unwrap().rules).unwrap()
}

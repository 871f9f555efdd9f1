//! `policy list` and `policy test`: what is decided on calls of tools, and why (spec: agent §4).

use loom::source::DEFAULT_AGENT;
use policy::{Attendance, Reason, SessionFacts, SessionType};
use text::terminal::one_line;

use crate::app::App;
use crate::args::policy::{ListArgs, TestArgs};
use crate::chat::{named_folders, tools};
use crate::error::CommandError;
use crate::profile;
use crate::results::CommandOutcome;
use crate::results::policy::{PolicyRules, PolicyTested};

/// `policy list`: the general rules, and those of one agent or of each.
///
/// # Errors
/// There is no such agent.
pub(crate) fn list(app: &App, args: &ListArgs) -> Result<CommandOutcome, CommandError> {
    let settings = &app.settings;
    let mut shown = PolicyRules::of(&settings.policy);
    let names: Vec<&String> = match &args.agent {
        Some(name) => {
            profile::agent(settings, name)?;
            vec![name]
        }
        None => settings.agents.keys().collect(),
    };
    for name in names {
        let of_agent = PolicyRules::of(&profile::policy(settings, name)?).rules.into_iter();
        shown.rules.extend(of_agent.filter(|rule| rule.agent.is_some()));
    }
    Ok(CommandOutcome::PolicyRules(shown))
}

/// `policy test`.
///
/// # Errors
/// There is no such tool, its arguments do not fit, or a path of them lies where tools do not reach.
pub(crate) fn test(app: &App, args: &TestArgs) -> Result<CommandOutcome, CommandError> {
    let kind = args.session.map_or(SessionType::Main, SessionType::from);
    let arguments: serde_json::Value = serde_json::from_str(&args.arguments).map_err(|error| {
        CommandError::usage(
            format!("the arguments are no JSON: {error}"),
            r#"write them as an object in single quotes: '{"path":"notes.md"}'"#,
        )
    })?;
    let agent = args.agent.as_deref().unwrap_or(DEFAULT_AGENT);
    profile::agent(&app.settings, agent)?;
    let further = named_folders(app, &args.allow)?;
    let (tool, arguments) = context::tools::unwrapped(&args.tool, &arguments);
    let scope = tools::scope(app, agent, kind, &[tool.to_owned()], (&further, &[]))?;
    let registry = tools::all(app, scope)?;
    let checked = registry.check(tool, arguments).map_err(|refused| {
        CommandError::usage(refused.text, "`drawloom policy test TOOL ARGS`, as a model would call it")
    })?;
    if let Some(path) = checked.unreached() {
        return Err(CommandError::refused(
            "outside",
            format!("not decided: {} lies in no folder that tools reach", one_line(&path)),
            "`--allow DIR:rw` tests it with a further folder, `--workspace DIR` in another one",
        ));
    }
    let facts = SessionFacts {
        kind,
        attendance: if args.unattended { Attendance::Unattended } else { Attendance::Attended },
        sandbox: checked.sandbox(),
        tainted: args.tainted,
        plan_mode: args.plan,
        keeps_old_bytes: true,
    };
    let verdict = checked.decide(&facts, &[]);
    let rule = match &verdict.reason {
        Reason::Row(_) | Reason::Permitted(_) | Reason::Unreadable(_) | Reason::Skill { .. } => None,
        Reason::Rule(rule) | Reason::Unread(rule) | Reason::Unanswered(rule) => Some(rule),
    };
    Ok(CommandOutcome::PolicyTested(PolicyTested {
        decision: verdict.decision,
        rule: rule.map(|rule| rule.index + 1),
        agent: rule.and_then(|rule| rule.agent.clone()),
        why: verdict.to_string(),
    }))
}

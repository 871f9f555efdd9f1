//! `policy list` and `policy test`: what is decided on calls of tools, and why (spec: agent §4).

use policy::{Attendance, Reason, SessionFacts, SessionType};

use crate::app::App;
use crate::args::policy::TestArgs;
use crate::chat::tools;
use crate::error::CommandError;
use crate::results::CommandOutcome;
use crate::results::policy::{PolicyRules, PolicyTested};

/// `policy list`.
pub(crate) fn list(app: &App) -> CommandOutcome {
    CommandOutcome::PolicyRules(PolicyRules::of(&app.settings.policy))
}

/// `policy test`.
///
/// # Errors
/// There is no such tool, or its arguments do not fit.
pub(crate) fn test(app: &App, args: &TestArgs) -> Result<CommandOutcome, CommandError> {
    let kind = args.session.map_or(SessionType::Main, SessionType::from);
    let arguments = serde_json::from_str(&args.arguments).map_err(|error| {
        CommandError::usage(
            format!("the arguments are no JSON: {error}"),
            r#"write them as an object in single quotes: '{"path":"notes.md"}'"#,
        )
    })?;
    let scope = tools::scope(app, kind, std::slice::from_ref(&args.tool))?;
    let registry = tools::all(app, scope).map_err(|why| CommandError::usage(why, "please report this"))?;
    let checked = registry.check(&args.tool, &arguments).map_err(|refused| {
        CommandError::usage(refused.text, "`drawloom policy test TOOL ARGS`, as a model would call it")
    })?;
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
        Reason::Row(_) | Reason::Permitted(_) => None,
        Reason::Rule(rule) | Reason::Unread(rule) | Reason::Unanswered(rule) => Some(rule.index + 1),
    };
    Ok(CommandOutcome::PolicyTested(PolicyTested {
        decision: verdict.decision,
        rule,
        why: verdict.reason.to_string(),
    }))
}

//! `[hooks.NAME]`: commands of the owner that see what happens in a session.

use std::path::{Path, PathBuf};

use policy::{Effect, Limit, Pattern};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tools::{Hook, HookEvent};

use crate::app::nearest;
use crate::chat::tools::reaches_no_host;

/// A command of yours that sees what happens in a session and may answer it. It reads the event as JSON from standard input
/// and prints its answer as JSON, in the sandbox that `exec` has, without network.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ConfiguredHook {
    /// The line of a shell that runs it at the top of the workspace. Needed.
    pub command: Option<String>,
    /// What it is run on; needed. `before_call`: a call of a tool is about to run, and {"deny": REASON} refuses it; so does
    /// whatever goes wrong. `after_call`: a call has ended, and {"text": TEXT} adds to its result. `turn_end`:
    /// the model calls nothing more, and {"continue": TEXT} goes on with the turn, three times at most. `session_start`: a
    /// process takes a conversation up; what it prints is not read.
    pub on: Vec<HookEvent>,
    /// Patterns of the calls that it is about, as those of rules; without it all of them.
    pub tools: Vec<Pattern>,
    /// How long it may run.
    #[schemars(range(min = 1, max = 3600), extend("unit" = "seconds"))]
    pub timeout: u32,
}

impl Default for ConfiguredHook {
    fn default() -> Self {
        Self { command: None, on: Vec::new(), tools: Vec::new(), timeout: 10 }
    }
}

impl ConfiguredHook {
    /// The hook of this name, where there are tools and servers of these names; in a workspace, if one is given.
    ///
    /// # Errors
    /// What is wrong with it, by its key.
    pub fn read(
        &self,
        name: &str,
        (tools, servers): (&[String], &[String]),
        workspace: Option<&Path>,
    ) -> Result<Hook, String> {
        let line = self.command.clone().filter(|line| !line.trim().is_empty());
        let line = line.ok_or_else(|| format!("hooks.{name}.command is missing"))?;
        if self.on.is_empty() {
            return Err(format!(
                "hooks.{name}.on is missing: name what it is run on, as [\"before_call\"]; there are no notifications \
                 yet that a hook without it would be for"
            ));
        }
        let sees_calls =
            self.on.iter().any(|event| matches!(event, HookEvent::BeforeCall | HookEvent::AfterCall));
        if !self.tools.is_empty() && !sees_calls {
            return Err(format!(
                "hooks.{name}.tools is about calls, and hooks.{name}.on names none of theirs"
            ));
        }
        // A hook that is about no call would let every call pass.
        let unknown = self.tools.iter().find_map(|pattern| match pattern {
            Pattern::Tool { server: Some(server), .. } if !servers.contains(server) => Some(server),
            _ => None,
        });
        if let Some(server) = unknown {
            return Err(format!("hooks.{name}.tools: there is no server {server}: no [mcp.{server}]"));
        }
        let unknown = self.tools.iter().find_map(|pattern| match pattern {
            Pattern::Tool { server: None, name, .. } if !tools.contains(name) => Some(name),
            _ => None,
        });
        if let Some(tool) = unknown {
            let near = nearest(tools.iter().cloned(), tool);
            let meant = near.map(|near| format!(" (did you mean {near}?)")).unwrap_or_default();
            return Err(format!("hooks.{name}.tools: there is no such tool as {tool}{meant}"));
        }
        if let Some(why) = self.tools.iter().find_map(|pattern| never_met(pattern, workspace)) {
            return Err(format!("hooks.{name}.tools: {why}"));
        }
        Ok(Hook {
            name: name.to_owned(),
            line,
            on: self.on.clone(),
            tools: self.tools.clone(),
            seconds: self.timeout,
        })
    }
}

/// Why no call is what a pattern says, if so.
fn never_met(pattern: &Pattern, workspace: Option<&Path>) -> Option<String> {
    let why = match (pattern.limit()?, pattern) {
        (Limit::Host(_), Pattern::Tool { name, .. }) if reaches_no_host(name) => {
            format!("{name} reaches no host")
        }
        (Limit::Host(_), Pattern::Effect { effect: Effect::Read | Effect::Write | Effect::Exec, .. }) => {
            "hosts go with effect:net and effect:message".to_owned()
        }
        (Limit::Path(glob), _) if glob.is_absolute() => {
            let plain = glob.plain_beginning();
            let top: PathBuf = plain.components().take(2).collect();
            let below = workspace.and_then(|workspace| Path::new(glob.as_str()).strip_prefix(workspace).ok());
            match below {
                Some(below) => {
                    format!("write paths of the workspace without it, as path={}", below.display())
                }
                None if plain.is_absolute() && !top.exists() => {
                    format!("there is no {}, and paths of the workspace begin without /", top.display())
                }
                None => return None,
            }
        }
        _ => return None,
    };
    Some(format!("no call is meant by {pattern}: {why}"))
}

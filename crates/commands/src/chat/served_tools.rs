//! `mcp serve`: the tools of the registry that read what is kept, for a program that speaks MCP (spec: agent §5). They
//! work in one session of the workspace, in the tree it has by then, and in documents.

use std::sync::Arc;

use ::tools::{CallPlace, NextPlace, NoChanges, SeenFiles, ToolOutput, ToolRegistry, ToolScope, WaitedTime};
use agent::{Runtime, SessionChoice};
use context::ToolSpec;
use loom::source::DEFAULT_AGENT;
use loom::{ToolStatus, Trust, ViewName};
use mcp::{ServedTools, ToolContent, ToolReply, ToolServer};
use model::Cancel;
use policy::{Attendance, Decision, SandboxLevel, SessionFacts, SessionType};
use serde_json::{Map, Value};
use store::home::HomeDir;
use store::{Principal, SessionKind};
use text::mask::Masker;
use tokio::runtime::Handle;
use workspace::AllowedRoots;

use super::conversation::place;
use super::sessions::session_named;
use super::tools::{of_reader, session_policy};
use crate::app::App;
use crate::args::chat::SessionArg;
use crate::error::CommandError;
use crate::frontend::ProtocolStreams;
use crate::results::{CommandOutcome, Done};
use crate::rights::Asker;

/// What a model is told of the server.
const INSTRUCTIONS: &str = "Reads one conversation of the owner's, as a tree with its branches, and their documents. \
                            Nothing is changed. loom_list with what = documents lists the documents.";

/// Calls are made by a program of the owner's, and nobody is asked about them.
const SESSION: SessionFacts = SessionFacts {
    kind: SessionType::Main,
    attendance: Attendance::Unattended,
    sandbox: SandboxLevel::None,
    tainted: false,
    plan_mode: true,
    keeps_old_bytes: false,
};

/// `mcp serve`.
///
/// # Errors
/// There is no session of the name that was given, no program to speak with, or it went away in the middle of an answer.
pub(crate) async fn serve(
    app: &App,
    asker: &Asker,
    session: &SessionArg,
) -> Result<CommandOutcome, CommandError> {
    let tools = ReadingTools::new(app, asker, session).await?;
    let Some(ProtocolStreams { input, output }) = app.frontend.protocol_streams() else {
        return Err(CommandError::usage("no program is here to speak with", "run it from the command line"));
    };
    let served = mcp::serve(ToolServer::new(Arc::new(tools), INSTRUCTIONS), input, output).await;
    served.map_err(|why| {
        CommandError::new("protocol", 2, why.to_string(), "a client of MCP starts this, and speaks to it")
    })?;
    Ok(Done::outcome())
}

/// Tools with the session that they read.
struct ReadingTools {
    runtime: Runtime,
    session: SessionChoice,
    view: ViewName,
    registry: ToolRegistry,
}

impl ReadingTools {
    /// # Errors
    /// There is no session of the name that was given, the configuration has a rule that is about nothing, or the secrets that
    /// are to be masked cannot be read.
    async fn new(app: &App, asker: &Asker, named: &SessionArg) -> Result<Self, CommandError> {
        app.runtime.masker_of_now().map_err(|why| {
            CommandError::refused(
                "secrets",
                unmasked(&why),
                "`drawloom config check` says what is wrong there",
            )
        })?;
        let (name, view) = match &named.session {
            None => Default::default(),
            Some(named) => {
                let (name, view) = place(app, named)?;
                session_named(app, asker, name.as_str(), false).await?;
                (name, view)
            }
        };
        let session = SessionChoice { workspace: app.workspace.key.clone(), name, kind: SessionKind::Main };
        let tools = of_reader(app);
        let names: Vec<String> = tools.iter().map(|tool| tool.spec.name.clone()).collect();
        let registry = ToolRegistry::new(scope(app)?, tools, &names)
            .map_err(|why| CommandError::new("internal", 6, why, ""))?;
        Ok(Self { runtime: app.runtime.clone(), session, view, registry })
    }

    /// Runs a call of a tool that is there. It blocks.
    fn run(&self, tool: &str, arguments: &Value, (cancel, masker): (&Cancel, &Arc<Masker>)) -> ToolOutput {
        let checked = match self.registry.check(tool, arguments) {
            Ok(checked) => checked,
            Err(refused) => return refused,
        };
        let verdict = checked.decide(&SESSION, &[]);
        if verdict.decision != Decision::Allow {
            return ToolOutput::denied(format!("{tool} is not run: {verdict}"));
        }
        let found = Handle::current().block_on(self.runtime.session(&Principal::Owner, &self.session));
        let found = found.map(|session| session.and_then(|session| session.tree()));
        let has_begun = !matches!(found, Ok(None));
        // Where it has not, a tree that there is not: documents are read all the same.
        let tree = match found.and_then(|tree| tree.map_or_else(|| self.runtime.new_id(), Ok)) {
            Ok(tree) => tree,
            Err(error) => return ToolOutput::error(format!("the session could not be read: {error}")),
        };
        let place = CallPlace {
            tree,
            view: self.view.clone(),
            trust: Trust::Outside,
            masker: Arc::clone(masker),
            answer: None,
            fence: None,
            turn: None,
            next: NextPlace::default(),
            model: None,
            spending: String::new(),
            waited: WaitedTime::default(),
            cancel: cancel.clone(),
            skills_list: None,
            subagents: None,
            person: None,
        };
        let mut said = checked.run(cancel, &NoChanges, &place);
        if !has_begun && said.status != ToolStatus::Ok {
            let name = &self.session.name;
            said.text += &format!("; this workspace has no session {name} yet: documents alone are read");
        }
        said
    }
}

/// Why nothing is told.
fn unmasked(why: &str) -> String {
    format!("nothing is read, as known secrets cannot be masked: {why}")
}

impl ServedTools for ReadingTools {
    fn list(&self) -> Vec<ToolSpec> {
        self.registry.specs()
    }

    fn call(&self, tool: &str, arguments: Map<String, Value>, cancel: &Cancel) -> Result<ToolReply, String> {
        let specs = self.registry.specs();
        // Those that stand for others are none of a client's.
        if specs.iter().all(|spec| spec.name != tool) {
            let names: Vec<&str> = specs.iter().map(|spec| spec.name.as_str()).collect();
            let shown: String = tool.chars().take(SHOWN).collect();
            return Err(format!("there is no tool {shown:?}: there are {}", names.join(", ")));
        }
        let masker = match self.runtime.masker_of_now() {
            Ok(masker) => masker,
            Err(why) => {
                let content = vec![ToolContent::Text(unmasked(&why))];
                return Ok(ToolReply { content, is_error: true });
            }
        };
        let said = self.run(tool, &Value::Object(arguments), (cancel, &masker));
        // What is said of the arguments alone came by no tool.
        let text = masker.mask(&said.text).text.into_owned();
        Ok(ToolReply { content: vec![ToolContent::Text(text)], is_error: said.status != ToolStatus::Ok })
    }
}

/// Characters of a name that there is not.
const SHOWN: usize = 64;

/// What the calls work in: no folder, no command, no hook.
fn scope(app: &App) -> Result<ToolScope, CommandError> {
    let locks = app.runtime.home.dir(HomeDir::Locks);
    Ok(ToolScope {
        roots: AllowedRoots::within(Vec::new()).into(),
        trust: Trust::Owner,
        masker: Arc::clone(&app.runtime.masker),
        policy: session_policy(app, DEFAULT_AGENT)?,
        session: SESSION.kind,
        locks: locks.map_err(|error| CommandError::new("home", 6, error.to_string(), error.hint()))?,
        umask: store::home::former_umask(),
        seen: SeenFiles::default(),
        max_pixels: app.settings.limits.picture,
        search_time: app.settings.limits.glob,
        commands: None,
        hooks: Vec::new(),
    })
}

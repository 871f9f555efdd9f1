//! A process that stays: it works at trees of a home until its standard input ends, as a long session does.
//!
//! `cargo xtask soak` keeps some of these alive among processes that come, are stopped and killed, and watches
//! what they hold: a leak of memory, descriptors or threads shows in a process that stays, not in one that ends.

use std::error::Error;
use std::io::Read;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use clap::Parser;
use commands::app::Models;
use commands::frontend::Frontend;
use commands::settings::Settings;
use commands::{App, Asker, Command, CommandError, CommandOutcome};
use loom::NodeId;
use model::script::ScriptOptions;
use model::{Cancel, Clock, Model, ScriptModel};
use store::Store;
use store::home::{Home, HomeOptions};
use store::instance::{About, InstanceId, Instances};
use text::mask::{Masker, Secret};
use workspace::{FileError, StoreGuard};

#[derive(Parser)]
struct Arguments {
    /// The home.
    home: PathBuf,
    /// The name of this process's own tree.
    name: String,
    /// A file of script lines, some of them faults.
    script: PathBuf,
}

/// Rounds with one tree. What a step needs grows with its tree; begun anew, the work stays the same for hours, and
/// what grows all the same is a leak.
const ROUNDS: u64 = 256;

/// A command as a person types it.
#[derive(Parser)]
#[command(no_binary_name = true)]
struct Typed {
    #[command(subcommand)]
    command: Command,
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments = Arguments::parse();
    let ended = Arc::new(AtomicBool::new(false));
    let heard = Arc::clone(&ended);
    std::thread::spawn(move || {
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        heard.store(true, Ordering::Relaxed);
    });
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?.block_on(async {
        let home = Home::open(&arguments.home, HomeOptions::default())?;
        let clock = Clock::system();
        let id = InstanceId::generate(u64::try_from(clock.now())?)?;
        let about = About::this_process("resident", env!("CARGO_PKG_VERSION"), clock.now());
        let instance = Instances::of(&home)?.start(id, &about)?;
        let guard = StoreGuard::of(&home.database())?;
        let runtime = agent::Runtime::new(
            Arc::new(Store::open(&home.database())?),
            Arc::new(home),
            instance.id(),
            clock,
            Arc::new(Masker::new(&[Secret::new("KEY", "sk-soak-secret-0123456789")?])?),
        );
        let app = App {
            runtime,
            sessions: agent::session::Sessions::default(),
            guard,
            models: Arc::new(Scripted(arguments.script)),
            workspace: commands::app::Workspace::default(),
            settings: Settings::default(),
            servers: commands::Servers::default(),
            frontend: Arc::new(Silent),
            cancel: Cancel::never(),
        };
        let mut worker = Worker { app, tree: arguments.name.clone() };
        let mut round = 0_u64;
        while !ended.load(Ordering::Relaxed) {
            if round.is_multiple_of(ROUNDS) {
                worker.tree = format!("{} from {round}", arguments.name);
                worker.run(&["tree", "new", "--title", &worker.tree, "--text", "It rained."]).await?;
            }
            round += 1;
            worker.round(round).await?;
        }
        worker.run(&["tree", "verify", &worker.tree]).await?;
        Ok(())
    })
}

/// Someone who works at one tree and looks at all.
struct Worker {
    app: App,
    tree: String,
}

impl Worker {
    /// A little of everything. What is refused is a result; what the store could not do is not.
    async fn round(&self, round: u64) -> Result<(), CommandError> {
        let tree = self.tree.as_str();
        let text = format!(" Passage {round}, with sk-soak-secret-0123456789 in it.");
        self.run(&["tree", "append", tree, &text]).await?;
        self.run(&["tree", "draft", tree, " typed"]).await?;
        self.run(&["tree", "generate", tree, "-n", if round.is_multiple_of(3) { "3" } else { "1" }]).await?;
        match round % 8 {
            0 => self.run(&["search", "passage"]).await?,
            1 => self.run(&["tree", "undo", tree]).await?,
            2 => self.run(&["tree", "redo", tree]).await?,
            3 => self.run(&["tree", "text", tree]).await?,
            4 => self.run(&["tree", "list"]).await?,
            5 => self.run(&["tree", "show", tree, "--all"]).await?,
            6 => self.run(&["tree", "log", tree]).await?,
            _ => self.run(&["tree", "compact", tree]).await?,
        };
        // Someone who reads between two steps: without a pause the disk alone would be measured.
        tokio::time::sleep(Duration::from_millis(5)).await;
        Ok(())
    }

    /// Runs a command. Refusals, faults of the model and a busy store are answers like others.
    async fn run(&self, words: &[&str]) -> Result<(), CommandError> {
        let command = Typed::try_parse_from(words)
            .map_err(|error| CommandError::usage(error.to_string(), "mend the soak"))?
            .command;
        match self.app.run(&Asker::owner(), command).await {
            Ok(CommandOutcome::Verified(found)) if found.status == loom::verify::Status::Invalid => {
                Err(CommandError::new("soak", 6, format!("{:?}", found.problems), "look at the tree"))
            }
            Err(error) if error.exit == 6 && error.code != "busy" => Err(error),
            _ => Ok(()),
        }
    }
}

/// Every model is the script, opened anew, so that each call meets its faults again.
struct Scripted(PathBuf);

impl Models for Scripted {
    fn find(&self, _: Option<&str>) -> Result<Arc<dyn Model>, CommandError> {
        let script = ScriptModel::open(&self.0.to_string_lossy(), ScriptOptions::default());
        script
            .map(|script| Arc::new(script) as Arc<dyn Model>)
            .map_err(|error| CommandError::new("no_model", 5, error.to_string(), "mend the script"))
    }
}

/// Nobody to talk to.
struct Silent;

impl Frontend for Silent {
    fn note(&self, _: &str) {}

    fn delta(&self, _: NodeId, _: &str) {}

    fn input(&self, _: &StoreGuard, _: Duration) -> Result<Box<dyn Read + Send>, FileError> {
        Ok(Box::new(std::io::empty()))
    }
}

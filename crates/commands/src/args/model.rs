//! Arguments of `model` and `init`.

use clap::{Args, Subcommand};
use serde::{Deserialize, Serialize};

/// `model`.
#[derive(Debug, Clone, PartialEq, Subcommand, Serialize, Deserialize)]
#[serde(tag = "action", rename_all = "snake_case")]
pub enum ModelCommand {
    /// List the models that are known, with where they run.
    List {
        /// Look for servers on this machine, too.
        #[arg(long)]
        #[serde(default)]
        detect: bool,
        /// Every model of the catalogue, too.
        #[arg(long)]
        #[serde(default)]
        all: bool,
    },
    /// Fetch the weights of an embedded model.
    Pull {
        /// Its name, as smollm2.
        name: String,
    },
    /// Make a model the one that is used when none is named.
    Use {
        /// PROVIDER/NAME, a name of the catalogue, http://HOST:PORT/NAME, script:FILE or an embedded model.
        name: String,
    },
    /// Ask a model one small question, and measure the answer.
    Test {
        /// The model [default: the one that is used when none is named].
        name: Option<String>,
    },
}

/// `init`.
#[derive(Debug, Clone, PartialEq, Default, Args, Serialize, Deserialize)]
pub struct Init {}

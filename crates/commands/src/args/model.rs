//! Arguments of `model` and `init`.

use clap::{Args, Subcommand};
use serde::{Deserialize, Serialize};

/// `model`.
#[derive(Debug, Clone, PartialEq, Subcommand, Serialize, Deserialize)]
#[serde(tag = "action", rename_all = "snake_case")]
pub enum ModelCommand {
    /// List the models that are known and where they run.
    List {
        /// Include models of servers on this machine and of local servers in the configuration.
        #[arg(long)]
        #[serde(default)]
        detect: bool,
        /// Include every model of the catalogue.
        #[arg(long)]
        #[serde(default)]
        all: bool,
    },
    /// Download the weights of an embedded model.
    Pull {
        /// Name of the model, such as smollm2.
        name: String,
    },
    /// Set the default model.
    Use {
        /// PROVIDER/NAME, a name of the catalogue, http://HOST:PORT/NAME, script:FILE or an embedded model.
        name: String,
    },
    /// Ask a model one small question, and measure the answer.
    Test {
        /// The model [default: the default model].
        name: Option<String>,
    },
}

/// `init`.
#[derive(Debug, Clone, PartialEq, Default, Args, Serialize, Deserialize)]
pub struct Init {
    /// Let commands in the sandbox read the package caches that are found, without a question.
    #[arg(long)]
    pub caches: bool,
}

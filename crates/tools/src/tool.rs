//! A tool, what it works in, and what it says.

use std::sync::Arc;

use context::ToolSpec;
use loom::{ToolStatus, Trust};
use model::Cancel;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;
use text::mask::Masker;
use workspace::AllowedRoots;

/// What a call works in.
#[derive(Debug)]
pub struct ToolScope {
    pub roots: AllowedRoots,
    /// Trust of what its files say.
    pub trust: Trust,
    /// Secrets are masked where text enters.
    pub masker: Arc<Masker>,
}

/// What a call said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolOutput {
    pub status: ToolStatus,
    pub text: String,
    /// The lowest trust of what it read.
    pub trust: Trust,
}

impl ToolOutput {
    /// Why a call failed, as the model is told. It says nothing that was read.
    pub fn error(text: impl Into<String>) -> Self {
        Self { status: ToolStatus::Error, text: text.into(), trust: Trust::Agent }
    }
}

/// One tool.
pub struct Tool {
    pub spec: ToolSpec,
    run: Box<Run>,
}

/// It blocks: whoever runs it does so on a thread that may wait for the disk.
type Run = dyn Fn(&ToolScope, Value, &Cancel) -> ToolOutput + Send + Sync;

impl Tool {
    /// A core tool that reads files. Its schema is that of `A`; a failure is told to the model.
    pub(crate) fn reading<A: DeserializeOwned + JsonSchema + 'static>(
        name: &str,
        description: &str,
        run: fn(&ToolScope, &A, &Cancel) -> Result<String, String>,
    ) -> Self {
        let settings = schemars::generate::SchemaSettings::draft2020_12()
            .with(|settings| (settings.inline_subschemas, settings.meta_schema) = (true, None));
        let mut schema = settings.into_generator().into_root_schema_for::<A>();
        schema.remove("title");
        let spec = ToolSpec {
            name: name.to_owned(),
            description: description.to_owned(),
            parameters: schema.to_value(),
            core: true,
        };
        let run = move |scope: &ToolScope, arguments: Value, cancel: &Cancel| {
            let read = serde_json::from_value::<A>(arguments).map_err(|error| error.to_string());
            match read.and_then(|arguments| run(scope, &arguments, cancel)) {
                Ok(text) => {
                    let text = bounded(scope.masker.mask(&text).text.into_owned());
                    ToolOutput { status: ToolStatus::Ok, text, trust: scope.trust }
                }
                Err(why) => ToolOutput::error(bounded(scope.masker.mask(&why).text.into_owned())),
            }
        };
        Self { spec, run: Box::new(run) }
    }

    /// Runs it with arguments that were checked.
    pub fn run(&self, scope: &ToolScope, arguments: Value, cancel: &Cancel) -> ToolOutput {
        (self.run)(scope, arguments, cancel)
    }
}

/// Bytes that a tool says at most, whatever names it met.
const OUTPUT: usize = 256 << 10;

fn bounded(mut text: String) -> String {
    let at = text::grapheme::floor(&text, OUTPUT.min(text.len()));
    if at < text.len() {
        let more = text.len() - at;
        text.truncate(at);
        text += &format!("\n[{more} more bytes are left out.]\n");
    }
    text
}

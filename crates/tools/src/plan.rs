//! The tool by which a model keeps a plan of its work (spec: agent §3).

use context::Plan;
use context::plan::{MOST_STEPS, PLAN};
use loom::{ToolStatus, Trust};

use crate::tool::{Tool, ToolOutput, spec};

/// Plan tool. The call itself keeps the plan: the result repeats none of its words, which go with the call.
pub(crate) fn tool() -> Tool {
    let description = format!(
        "Set the plan of your work: all its steps, up to {MOST_STEPS}, each with its state. It takes the place of the \
         one before and stays in sight. Use it for work of several steps, and call it as steps are done."
    );
    Tool::reading_no_files(spec::<Plan>(PLAN, &description), |_, arguments| {
        match Plan::of_call(PLAN, &arguments) {
            Some(plan) => ToolOutput::said(ToolStatus::Ok, plan.counts(), Trust::Owner),
            None => ToolOutput::error("each step says something, in at most 200 characters"),
        }
    })
}

//! The tool by which a model keeps a plan of its work (spec: agent §3).

use context::Plan;
use context::plan::{MOST_STEPS, PLAN};
use loom::{ToolStatus, Trust};

use crate::tool::{Tool, ToolOutput, spec};

/// It. A plan is kept by the call itself; the result says how far it is.
pub(crate) fn tool() -> Tool {
    let description = format!(
        "Set the plan of your work: all its steps, up to {MOST_STEPS}, each with its state. It takes the place of the \
         one before and stays in sight. Use it for work of several steps, and call it as steps are done."
    );
    Tool::reading_no_files(spec::<Plan>(PLAN, &description), |_, arguments| {
        let plan = Plan::of_call(PLAN, &arguments).unwrap_or_default();
        // What a step says is the model's.
        ToolOutput { status: ToolStatus::Ok, text: plan.in_short(), trust: Trust::Agent }
    })
}

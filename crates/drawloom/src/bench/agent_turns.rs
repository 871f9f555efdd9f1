//! What turns of an agent with many tools cost besides its model: the program's own part from an answer to the next
//! request, what of a request the next one repeats, its sizes, and how soon an answer of another process takes effect
//! (spec: scale §1).

use std::fs;
use std::path::Path;
use std::time::Duration;

use commands::CommandError;
use serde_json::{Value, json};

use super::harness::failed;
use super::metrics::Times;
use super::model_server::{Exchange, ModelServer, calls, says};
use super::report::Report;
use super::scratch::Scratch;
use super::scripted::Scripted;

/// Tools of the agent that has many: so many of the owner's own stand beside the others.
const OWN_TOOLS: usize = 38;
/// Skills of the agent that has many, and the characters of the description of each.
const SKILLS: usize = 100;
const DESCRIPTION: usize = 150;
/// The window of a model of today, in tokens.
const WINDOW: u32 = 128_000;
/// Turns of a session whose requests are compared, where as many calls are asked for.
const TURNS: usize = 60;
/// Calls of a turn: all of them stand in its requests, and must have room in the window.
const CALLS: usize = 250;
/// Turns at the end of a path whose own work is timed.
const TIMED: usize = 2;
/// Questions that another process answers.
const ANSWERS: usize = 5;
/// Lines of a file that is read, each by a call of its own: of a file the tool reads and hashes all.
const LINES: usize = 500;
/// Files: no line is read twice.
const FILES: usize = 40;

/// What an agent has beside the tools of every one.
#[derive(Debug, Clone, Copy, Default)]
struct Equipment {
    /// Tools of the owner's own.
    tools: usize,
    /// Skills in the home.
    skills: usize,
    /// Whether a hook hears of each call before it runs and after it.
    hooks: bool,
}

/// Measures turns of so many calls in all.
///
/// # Errors
/// No server can be started, no workspace made, or a turn fails.
pub(super) fn measure(report: &mut Report<'_>, scratch: &Scratch, calls: usize) -> Result<(), CommandError> {
    report.note("turns of an agent with 60 tools and 100 skills");
    let place = scratch.at("desk");
    let lines: String = (1..=LINES).map(|line| format!("Line {line} of the log of the tides.\n")).collect();
    let write = |file| fs::write(place.join(format!("log-{file}.txt")), &lines);
    let made = fs::create_dir(&place).and_then(|()| (0..FILES).try_for_each(write));
    made.map_err(|error| failed("make a workspace", error))?;
    let others = first_request(report, scratch, &place).map_err(|error| failed("say hello", error))?;
    for window in [32_000, 200_000] {
        own_work(report, scratch, &place, calls.max(1), (window, others + OWN_TOOLS))
            .map_err(|error| failed("make a long conversation", error))?;
    }
    repeated(report, scratch, &place, calls.clamp(2, TURNS))
        .map_err(|error| failed("have a conversation", error))?;
    answered(report, scratch, &place).map_err(|error| failed("answer a question", error))
}

/// The time from the end of an answer to the next request, at the end of a conversation of many calls.
fn own_work(
    report: &mut Report<'_>,
    scratch: &Scratch,
    place: &Path,
    count: usize,
    (window, tools): (u32, usize),
) -> Result<(), String> {
    let calls = CALLS.min(count);
    let mut number = 0;
    let server = ModelServer::start(move |_| {
        number += 1;
        if number % (calls + 1) == 0 { says("That is read.") } else { read_line(number) }
    });
    let server = server.map_err(|error| error.to_string())?;
    let many = Equipment { tools: OWN_TOOLS, skills: SKILLS, hooks: false };
    let agent = agent(scratch, &format!("long-{window}"), &server, window, many)?;
    let spent = |pair: &[Exchange]| pair[1].asked.saturating_duration_since(pair[0].answered);
    let mut times = Vec::<Vec<Duration>>::new();
    let turns = count / calls;
    for _ in 0..turns {
        say(&agent, place, "Read on in the log.")?;
        let exchanges = server.taken();
        times.push(exchanges.windows(2).map(spent).collect());
    }
    let path = 2 * turns * (calls + 1);
    let times: Times = times.into_iter().rev().take(TIMED).flatten().collect();
    let name = format!(
        "own work from an answer that calls a tool to the next request, path of {path}, window {window}, {tools} tools, {SKILLS} skills"
    );
    let budget = if window < 100_000 { 5.0 } else { 10.0 };
    report.row(&name, times.median(), "ms, median", None);
    report.row(&name, times.percentile(0.99), "ms, p99", Some(budget));
    Ok(())
}

/// Which share of each request stands at its beginning as the request before had it, in a conversation that looks for
/// tools which wait and calls them.
fn repeated(report: &mut Report<'_>, scratch: &Scratch, place: &Path, turns: usize) -> Result<(), String> {
    let mut number = 0;
    let server = ModelServer::start(move |_| {
        number += 1;
        // Each turn has two requests; every fifth looks for a tool that waits, and the one behind it calls it.
        match (number % 2, number / 2 % 5) {
            (0, _) => says("That is done."),
            (_, 0) => {
                calls(&format!("c{number}"), "tool_search", &json!({"query": format!("tide {number}")}))
            }
            (_, 1) => {
                let inner = json!({"path": format!("made-{number}")});
                calls(&format!("c{number}"), "call_tool", &json!({"name": "mkdir", "arguments": inner}))
            }
            _ => read_line(number),
        }
    });
    let server = server.map_err(|error| error.to_string())?;
    let many = Equipment { tools: OWN_TOOLS, skills: SKILLS, hooks: true };
    let agent = agent(scratch, "talk", &server, WINDOW, many)?;
    for turn in 1..=turns {
        say(&agent, place, &format!("What does part {turn} of the log say of the tide?"))?;
    }
    let exchanges = server.taken();
    let (mut same, mut all) = (0, 0);
    for pair in exchanges.windows(2) {
        let (before, now) = (parts(&pair[0].request)?, parts(&pair[1].request)?);
        same += before.iter().zip(&now).take_while(|(a, b)| a == b).map(|(a, _)| a.len()).sum::<usize>();
        all += now.iter().map(String::len).sum::<usize>();
    }
    let name = format!("prefix of a request that the one before had, {turns} turns, tools that wait, hooks");
    report.row(&name, same as f64 / all.max(1) as f64, "of the request shared", Some(0.95));
    Ok(())
}

/// The size of what is sent with a bare greeting. Returns how many tools there are beside the owner's own.
fn first_request(report: &mut Report<'_>, scratch: &Scratch, place: &Path) -> Result<usize, String> {
    let mut others = 0;
    let server = ModelServer::start(|_| says("Hello!")).map_err(|error| error.to_string())?;
    let mut least = 0.0;
    for (name, tools_of_own, skills) in [("", 0, 0), (" with 60 tools", OWN_TOOLS, 0), ("", 0, SKILLS)] {
        let has = Equipment { tools: tools_of_own, skills, hooks: false };
        let agent = agent(scratch, &format!("hello-{tools_of_own}-{skills}"), &server, WINDOW, has)?;
        say(&agent, place, "Hello")?;
        let exchanges = server.taken();
        let size = exchanges.first().map_or(0, |first| first.request.len()) as f64 / 1_024.0;
        if skills > 0 {
            let name = format!("what {SKILLS} skills add to it, descriptions of {DESCRIPTION} characters");
            report.row(&name, size - least, "KiB", None);
            continue;
        }
        report.row(&format!("request of a bare hello{name}"), size, "KiB", Some(12.0));
        let listed = tools(&exchanges)?;
        if tools_of_own == 0 {
            (others, least) = (listed.len(), size);
        } else {
            let schemas: String = listed.iter().map(|tool| tool["function"].to_string()).collect();
            let tokens = context::Estimator::default().estimated(&schemas);
            report.row(
                "schemas that are sent where others wait",
                tokens as f64,
                "tokens, estimated",
                Some(2_500.0),
            );
        }
    }
    Ok(others)
}

/// The time from the start of `drawloom approve` to the result of the call that waits for it.
fn answered(report: &mut Report<'_>, scratch: &Scratch, place: &Path) -> Result<(), String> {
    let rule = "[[policy.rules]]\ndecision = \"ask\"\ntool = [\"read\"]\n";
    let agent = Scripted::new(scratch.at("asked"), rule).map_err(|error| error.to_string())?;
    let call = |number| ("read", line(number));
    let times: Result<Times, String> =
        (1..=ANSWERS).map(|number| agent.approved(place, call(number))).collect();
    let name = "from the start of `drawloom approve` to the result of the call that waited";
    report.row(name, times?.percentile(1.0), "ms, longest", Some(300.0));
    Ok(())
}

/// A home whose model is at a server, with what its agent has.
fn agent(
    scratch: &Scratch,
    name: &str,
    server: &ModelServer,
    window: u32,
    has: Equipment,
) -> Result<Scripted, String> {
    let mut configuration = format!(
        "[providers.bench]\nbase_url = \"{}\"\ntools = true\nwindow = {window}\n[limits]\nturn_calls = 10000\nturn_tokens = 1000000000\n",
        server.base_url()
    );
    if has.hooks {
        for event in ["before_call", "after_call"] {
            configuration += &format!("[hooks.{event}]\ncommand = \"cat > /dev/null\"\non = [\"{event}\"]\n");
        }
    }
    for number in 0..has.tools {
        configuration += &format!(
            "[tools.tide_{number}]\ncommand = \"cat\"\ndescription = \"Says how high tide {number} is.\"\neffects = [\"read\"]\n"
        );
    }
    let agent = Scripted::new(scratch.at(name), &configuration);
    let made =
        agent.and_then(|agent| (0..has.skills).try_for_each(|number| skill(&agent, number)).map(|()| agent));
    made.map_err(|error| error.to_string())
}

/// Writes a skill into the home.
fn skill(agent: &Scripted, number: usize) -> std::io::Result<()> {
    let folder = agent.home().join("skills").join(format!("tide-{number}"));
    fs::create_dir_all(&folder)?;
    let described = format!("Reads the tide at place {number}. ");
    let described: String = described.chars().cycle().take(DESCRIPTION).collect();
    let text =
        format!("---\nname: tide-{number}\ndescription: {described}\n---\nRead the log of the tide.\n");
    fs::write(folder.join("SKILL.md"), text)
}

/// Says something in the agent's one conversation.
fn say(agent: &Scripted, place: &Path, said: &str) -> Result<(), String> {
    let mut chat = agent.program(place)?;
    chat.args(["--model", "bench/tide", "chat", "-m", said]);
    let done = chat.output().map_err(|error| error.to_string())?;
    let said = String::from_utf8_lossy(&done.stderr);
    if done.status.success() { Ok(()) } else { Err(said.lines().last().unwrap_or_default().to_owned()) }
}

/// An answer that reads a line of its own: a call that repeats itself is asked about.
fn read_line(number: usize) -> String {
    calls(&format!("c{number}"), "read", &line(number))
}

/// The arguments that read the line of a number.
fn line(number: usize) -> Value {
    json!({"path": format!("log-{}.txt", number / LINES % FILES), "offset": number % LINES + 1, "limit": 1})
}

/// The tools of the first request.
fn tools(exchanges: &[Exchange]) -> Result<Vec<Value>, String> {
    let first = exchanges.first().ok_or("the model was not asked")?;
    let request: Value = serde_json::from_str(&first.request).map_err(|error| error.to_string())?;
    Ok(request["tools"].as_array().cloned().unwrap_or_default())
}

/// What of a request a cache of prefixes sees, in order: the tools, then each message.
fn parts(request: &str) -> Result<Vec<String>, String> {
    let request: Value = serde_json::from_str(request).map_err(|error| error.to_string())?;
    let messages = request["messages"].as_array().ok_or("a request without messages")?;
    Ok([&request["tools"]].into_iter().chain(messages).map(Value::to_string).collect())
}

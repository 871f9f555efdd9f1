//! Measurements that run the program itself.

use crate::world::World;

/// No time is asserted: a busy machine does not decide.
#[test]
fn every_row_of_the_tools_is_there_and_is_a_number() {
    let world = World::new();
    let (code, answer) = world.json(&["bench", "tools", "--files", "200"]);
    assert_eq!(code, Some(0), "{answer}");
    let rows = answer["rows"].as_array().unwrap();
    for name in [
        "grep over 200 files, thread_42 = 5[0-9]*42",
        "grep over 200 files, nowhere_at_all",
        "glob over 200 files, **/d*7/f07.rs",
        "start, walls and look of `exec` in 0 files",
        "start, walls and look of `exec` in 20 files",
        "start, walls and look of `exec` in 200 files",
        "`drawloom sandbox -- true` in 20 files",
        "`drawloom sandbox -- true` in 200 files",
        "first command of a turn in 20 files of 0 MB",
        "later commands of a turn in 20 files of 0 MB",
        "later commands of a turn in an empty folder",
        "from Ctrl-C to the end of a command that runs",
        "from the start of a process that says `/stop` to the end of a command that runs",
    ] {
        let row =
            rows.iter().find(|row| row["name"] == name).unwrap_or_else(|| panic!("no {name}: {answer}"));
        assert!(row["value"].as_f64().is_some_and(|value| value > 0.0), "{row}");
    }
}

#[test]
fn every_row_of_turns_is_there_and_is_a_number() {
    let world = World::new();
    let (code, answer) = world.json(&["bench", "turn", "--nodes", "20"]);
    assert_eq!(code, Some(0), "{answer}");
    let rows = answer["rows"].as_array().unwrap();
    for name in [
        "one-shot turn, `drawloom chat -m`",
        "own work from an answer that calls a tool to the next request, path of 22, window 32000, 60 tools, 100 skills",
        "own work from an answer that calls a tool to the next request, path of 22, window 200000, 60 tools, 100 skills",
        "prefix of a request that the one before had, 10 turns, tools that wait, hooks",
        "request of a bare hello",
        "request of a bare hello with 60 tools",
        "what 100 skills add to it, descriptions of 150 characters",
        "schemas that are sent where others wait",
        "from the start of `drawloom approve` to the result of the call that waited",
    ] {
        let row =
            rows.iter().find(|row| row["name"] == name).unwrap_or_else(|| panic!("no {name}: {answer}"));
        assert!(row["value"].as_f64().is_some_and(|value| value > 0.0), "{row}");
    }
}

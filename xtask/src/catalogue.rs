//! `cargo xtask catalogue`: the catalogue of models against a public list of the form of models.dev.
//!
//! What the list says of a model of the catalogue is taken over: window, longest answer, prices, tools, pictures,
//! sound. What it cannot say stays, and so does every field a row names in `keep`: those are our corrections. No row is
//! ever removed. Models that only the list has are named, and added with `--add`.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde_json::{Map, Value, json};

use crate::places::root;
use crate::say::say;

/// The list that is asked where none is named.
const LIST: &str = "https://models.dev/api.json";
/// The file, below the repository.
const CATALOGUE: &str = "crates/model/catalogue.json";
/// Micro-dollars of a dollar.
const MICRO: f64 = 1e6;

/// What is asked for on the command line.
#[derive(Debug, Default, PartialEq)]
struct Options {
    /// A file or an address.
    list: Option<String>,
    add: bool,
    month: Option<String>,
}

impl Options {
    fn of(arguments: &[String]) -> Result<Self> {
        let mut options = Self::default();
        let mut arguments = arguments.iter();
        while let Some(argument) = arguments.next() {
            match argument.as_str() {
                "--add" => options.add = true,
                "--file" => options.list = Some(arguments.next().context("--file FILE")?.clone()),
                "--month" => options.month = Some(arguments.next().context("--month YYYY-MM")?.clone()),
                url if url.starts_with("https://") => options.list = Some(url.to_owned()),
                other => {
                    bail!("cargo xtask catalogue takes URL, --file FILE, --month YYYY-MM, --add; not {other}")
                }
            }
        }
        Ok(options)
    }
}

pub(crate) fn run(arguments: &[String]) -> Result<()> {
    let options = Options::of(arguments)?;
    let list = read(options.list.as_deref().unwrap_or(LIST))?;
    let path = root().join(CATALOGUE);
    let text = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    let mut catalogue: Value = serde_json::from_str(&text).context("the catalogue is no JSON")?;
    let month = options.month.map_or_else(this_month, Ok)?;
    let changes = refresh(&mut catalogue, &list, &month, options.add)?;
    fs::write(&path, written(&catalogue)).with_context(|| format!("cannot write {}", path.display()))?;
    changes.iter().for_each(|change| say(change));
    say(&format!("{} changes; read them with `git diff {CATALOGUE}`", changes.len()));
    Ok(())
}

fn read(list: &str) -> Result<Value> {
    let text = if list.starts_with("https://") {
        let curl =
            ["--fail", "--silent", "--show-error", "--location", "--max-time", "60", "--proto", "=https"];
        let output = Command::new("curl").args(curl).arg(list).output();
        let output = output.context("cannot start curl: fetch the list yourself and give it with --file")?;
        if !output.status.success() {
            let why = String::from_utf8_lossy(&output.stderr);
            bail!("{list} cannot be reached ({}): fetch it elsewhere and give it with --file", why.trim());
        }
        output.stdout
    } else {
        fs::read(Path::new(list)).with_context(|| format!("cannot read {list}"))?
    };
    let list: Value = serde_json::from_slice(&text).context("the list is no JSON")?;
    let is_list =
        |value: &Value| value.as_object()?.values().find(|family| family.get("models").is_some()).map(drop);
    is_list(&list).context("the list has no provider with `models`: it is not of the form of models.dev")?;
    Ok(list)
}

fn this_month() -> Result<String> {
    let output = Command::new("date").args(["-u", "+%Y-%m"]).output().context("cannot start date")?;
    Ok(String::from_utf8(output.stdout)?.trim().to_owned())
}

/// Takes over what the list says; one line for every change.
fn refresh(catalogue: &mut Value, list: &Value, month: &str, add: bool) -> Result<Vec<String>> {
    let mut changes = Vec::new();
    let families = catalogue.get_mut("families").and_then(Value::as_array_mut);
    for family in families.context("the catalogue has no `families`")? {
        let provider = family["provider"].as_str().unwrap_or_default().to_owned();
        let also = family["also"].as_array().into_iter().flatten().filter_map(Value::as_str);
        let listed = [&*provider].into_iter().chain(also).find_map(|name| list.get(name)?.get("models"));
        let Some(listed) = listed.and_then(Value::as_object) else {
            changes.push(format!("{provider}: not in the list; left as it is"));
            continue;
        };
        let rows =
            family.get_mut("models").and_then(Value::as_array_mut).context("a family has no `models`")?;
        for row in rows.iter_mut().filter_map(Value::as_object_mut) {
            let Some(model) = row.get("name").and_then(Value::as_str).and_then(|name| listed.get(name))
            else {
                continue;
            };
            let changed = take_over(row, model);
            if !changed.is_empty() {
                row.insert("as_of".to_owned(), json!(month));
                changes.push(format!("{provider}/{}: {}", text(row, "name"), changed.join(", ")));
            }
        }
        for (name, model) in listed {
            if is_covered(rows, name) {
                continue;
            }
            changes.push(format!("{provider}/{name}: only in the list{}", if add { ", added" } else { "" }));
            if add {
                let mut row =
                    Map::from_iter([("name".to_owned(), json!(name)), ("as_of".to_owned(), json!(month))]);
                take_over(&mut row, model);
                rows.push(Value::Object(row));
            }
        }
    }
    catalogue["date"] = json!(month);
    Ok(changes)
}

/// Whether a row speaks for a name of the list: its own, or a dated release of it.
fn is_covered(rows: &[Value], name: &str) -> bool {
    let covers = |row: &str| {
        let rest = name.strip_prefix(row);
        rest.is_some_and(|rest| rest.is_empty() || (rest.starts_with(['-', '@']) && rest.contains("20")))
    };
    rows.iter().filter_map(|row| row.get("name")?.as_str()).any(covers)
}

/// Writes what the list says of a model into its row, except what the row keeps; the fields that changed.
fn take_over(row: &mut Map<String, Value>, model: &Value) -> Vec<String> {
    let keep: Vec<String> = row
        .get("keep")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(|field| field.as_str().map(str::to_owned))
        .collect();
    let mut changed = Vec::new();
    let mut set = |row: &mut Map<String, Value>, field: &str, value: Option<Value>| {
        let Some(value) = value.filter(|_| !keep.iter().any(|kept| kept == field)) else { return };
        if row.get(field) != Some(&value) {
            row.insert(field.to_owned(), value);
            changed.push(field.to_owned());
        }
    };
    let tokens = |name: &str| model.pointer(name).and_then(Value::as_u64).filter(|&n| n > 0).map(Value::from);
    set(row, "window", tokens("/limit/context"));
    set(row, "output", tokens("/limit/output"));
    let prices = prices(model, row.get("prices"));
    set(row, "prices", prices);
    let abilities = abilities(model, row.get("abilities"));
    set(row, "abilities", abilities);
    changed
}

/// The list's prices. It knows no others for a long input, and not always those of a cache: those of the row stay.
fn prices(model: &Value, own: Option<&Value>) -> Option<Value> {
    let rate = |name: &str| {
        let dollars = model.pointer(&format!("/cost/{name}"))?.as_f64().filter(|&dollars| dollars > 0.0)?;
        Some((dollars * MICRO).round() as u64)
    };
    let (input, output) = (rate("input")?, rate("output")?);
    let kept = |name: &str| own?.pointer(&format!("/base/{name}"))?.as_u64();
    let cache_read = rate("cache_read").or_else(|| kept("cache_read")).unwrap_or(input);
    let cache_write = rate("cache_write").or_else(|| kept("cache_write")).unwrap_or(input);
    let base =
        json!({"input": input, "cache_read": cache_read, "cache_write": cache_write, "output": output});
    let mut prices = json!({ "base": base });
    if let Some(long) = own.and_then(|own| own.get("long")) {
        prices["long"] = long.clone();
    }
    Some(prices)
}

fn abilities(model: &Value, own: Option<&Value>) -> Option<Value> {
    let mut abilities = own.and_then(Value::as_object).cloned().unwrap_or_default();
    let inputs = model.pointer("/modalities/input").and_then(Value::as_array);
    let takes = |kind: &str| inputs.map(|inputs| inputs.iter().any(|input| input == kind));
    let calls = model.get("tool_call").and_then(Value::as_bool);
    // What a row does not name is as it is of most models.
    for (name, said, usual) in
        [("tools", calls, true), ("images", takes("image"), false), ("audio", takes("audio"), false)]
    {
        match said {
            Some(said) if said != abilities.get(name).and_then(Value::as_bool).unwrap_or(usual) => {
                abilities.insert(name.to_owned(), json!(said));
            }
            _ => {}
        }
    }
    (!abilities.is_empty()).then_some(Value::Object(abilities))
}

fn text(row: &Map<String, Value>, name: &str) -> String {
    row.get(name).and_then(Value::as_str).unwrap_or_default().to_owned()
}

/// The file: a line a model, so that a change of one is a change of one line.
fn written(catalogue: &Value) -> String {
    let rows = |list: &Value, indent: &str| {
        let rows = list.as_array().into_iter().flatten().map(|row| format!("{indent}{}", spaced(row)));
        rows.collect::<Vec<_>>().join(",\n")
    };
    let families = catalogue["families"].as_array().into_iter().flatten().map(|family| {
        let mut head = family.as_object().cloned().unwrap_or_default();
        head.remove("models");
        let head = spaced(&Value::Object(head));
        let head = head.trim_end_matches('}');
        format!("    {head}, \"models\": [\n{}\n    ]}}", rows(&family["models"], "      "))
    });
    format!(
        "{{\n  \"date\": {},\n  \"families\": [\n{}\n  ],\n  \"open\": [\n{}\n  ]\n}}\n",
        catalogue["date"],
        families.collect::<Vec<_>>().join(",\n"),
        rows(&catalogue["open"], "    "),
    )
}

/// JSON on one line with a space behind each comma and colon.
fn spaced(value: &Value) -> String {
    let list = |items: Vec<String>| items.join(", ");
    match value {
        Value::Object(members) => {
            let members = members.iter().map(|(name, value)| format!("{}: {}", json!(name), spaced(value)));
            format!("{{{}}}", list(members.collect()))
        }
        Value::Array(items) => format!("[{}]", list(items.iter().map(spaced).collect())),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn catalogue() -> Value {
        serde_json::from_str(&fs::read_to_string(root().join(CATALOGUE)).unwrap()).unwrap()
    }

    fn list() -> Value {
        read(&root().join("xtask/tests/models.dev.json").display().to_string()).unwrap()
    }

    fn row<'c>(catalogue: &'c Value, name: &str) -> &'c Value {
        let families = catalogue["families"].as_array().unwrap().iter();
        let mut rows = families.flat_map(|family| family["models"].as_array().unwrap());
        rows.find(|row| row["name"] == name).unwrap()
    }

    #[test]
    fn the_file_is_written_as_it_stands() {
        assert_eq!(written(&catalogue()), fs::read_to_string(root().join(CATALOGUE)).unwrap());
    }

    #[test]
    fn what_the_list_says_is_taken_over_and_our_corrections_stay() {
        let (before, mut after) = (catalogue(), catalogue());
        let changes = refresh(&mut after, &list(), "2027-01", false).unwrap();
        let changed = row(&after, "gpt-5.1");
        assert_eq!(changed["prices"]["base"]["input"], 1_100_000);
        assert_eq!(changed["prices"]["base"]["cache_read"], 125_000, "the list says nothing of the cache");
        assert_eq!((&changed["window"], &changed["as_of"]), (&json!(410_000), &json!("2027-01")));
        assert_eq!(changed["wants"], row(&before, "gpt-5.1")["wants"]);
        assert_eq!(row(&after, "deepseek-flash")["prices"], row(&before, "deepseek-flash")["prices"], "kept");
        assert_eq!(row(&after, "gpt-5.4")["prices"]["long"], row(&before, "gpt-5.4")["prices"]["long"]);
        assert_eq!(row(&after, "gpt-4o"), row(&before, "gpt-4o"), "what is not in the list");
        let only: Vec<&String> =
            changes.iter().filter(|change| change.contains("only in the list")).collect();
        assert_eq!(only, ["openai/gpt-9: only in the list"], "a release is no new model");
        let count = |catalogue: &Value| catalogue.to_string().matches("\"as_of\"").count();
        assert_eq!(count(&after), count(&before));
        refresh(&mut after, &list(), "2027-01", true).unwrap();
        assert_eq!(row(&after, "gpt-9")["prices"]["base"]["output"], 20_000_000);
        assert_eq!(
            refresh(&mut after, &list(), "2027-01", true)
                .unwrap()
                .iter()
                .filter(|c| c.contains("openai"))
                .count(),
            0
        );
    }

    #[test]
    fn what_cannot_be_read_is_named() {
        let error = |list: &str| format!("{:#}", read(list).unwrap_err());
        assert!(error("/nonexistent/list.json").contains("cannot read /nonexistent/list.json"));
        assert!(error("https://127.0.0.1:9/api.json").contains("--file"));
        assert!(Options::of(&["--what".to_owned()]).is_err());
    }
}

//! The published schema says what the writer writes, for every kind of record.

use std::collections::BTreeSet;

use interop::own::ExportVariant;
use loom::*;
use proptest::prelude::*;
use serde_json::Value;

use crate::driver::*;

const SCHEMA: &str = include_str!("../../schema/own-v1.schema.json");

/// Checks a value against the part of JSON Schema that the file uses.
fn check(root: &Value, schema: &Value, value: &Value) -> Result<(), String> {
    let object = schema.as_object().expect("a schema is an object");
    for (word, rule) in object {
        match word.as_str() {
            "$ref" => {
                let name = rule.as_str().unwrap().strip_prefix("#/$defs/").unwrap();
                check(root, root["$defs"].get(name).unwrap_or_else(|| panic!("no {name}")), value)?;
            }
            "const" if rule != value => return Err(format!("{value} is not {rule}")),
            "enum" if !rule.as_array().unwrap().contains(value) => {
                return Err(format!("{value} is none of {rule}"));
            }
            "type" => {
                let fits = match rule.as_str().unwrap() {
                    "string" => value.is_string(),
                    "number" => value.is_number(),
                    "integer" => value.is_i64() || value.is_u64(),
                    "boolean" => value.is_boolean(),
                    "null" => value.is_null(),
                    "array" => value.is_array(),
                    "object" => value.is_object(),
                    other => panic!("type {other}"),
                };
                if !fits {
                    return Err(format!("{value} is no {rule}"));
                }
            }
            "minimum" if value.as_i64().is_some_and(|n| n < rule.as_i64().unwrap()) => {
                return Err(format!("{value} < {rule}"));
            }
            "anyOf" | "oneOf" => {
                let tried: Vec<_> =
                    rule.as_array().unwrap().iter().map(|one| check(root, one, value)).collect();
                let fit = tried.iter().filter(|one| one.is_ok()).count();
                if fit == 0 || (word == "oneOf" && fit > 1) {
                    return Err(format!("{fit} fit {value}: {tried:?}"));
                }
            }
            "properties" => {
                for (name, inner) in value.as_object().unwrap() {
                    match rule.get(name) {
                        Some(rule) => check(root, rule, inner).map_err(|why| format!("{name}: {why}"))?,
                        None if object["additionalProperties"] == false => {
                            return Err(format!("unknown {name}"));
                        }
                        None => {}
                    }
                }
            }
            "required" => {
                for name in rule.as_array().unwrap() {
                    if value.get(name.as_str().unwrap()).is_none() {
                        return Err(format!("lacks {name}"));
                    }
                }
            }
            "items" => value.as_array().unwrap().iter().try_for_each(|item| check(root, rule, item))?,
            "pattern" => check_pattern(rule.as_str().unwrap(), value.as_str().unwrap())?,
            "additionalProperties"
            | "description"
            | "title"
            | "$schema"
            | "$defs"
            | "const"
            | "enum"
            | "minimum" => {}
            other => panic!("the checker does not know {other}"),
        }
    }
    Ok(())
}

/// Patterns here are one class of characters and a length.
fn check_pattern(pattern: &str, text: &str) -> Result<(), String> {
    let (class, length) = pattern.strip_prefix("^[").unwrap().split_once("]{").unwrap();
    let length = length.strip_suffix("}$").unwrap();
    let (least, most) = length.split_once(',').unwrap_or((length, length));
    let class: Vec<char> = class.chars().collect();
    let mut allowed = BTreeSet::new();
    let mut at = 0;
    while at < class.len() {
        if class.get(at + 1) == Some(&'-') {
            allowed.extend(class[at]..=class[at + 2]);
            at += 3;
        } else {
            allowed.insert(class[at]);
            at += 1;
        }
    }
    let fits = text.chars().all(|c| allowed.contains(&c))
        && (least.parse::<usize>().unwrap()..=most.parse().unwrap()).contains(&text.len());
    if fits { Ok(()) } else { Err(format!("{text} is not {pattern}")) }
}

fn check_file(bytes: &[u8]) -> BTreeSet<String> {
    let schema: Value = serde_json::from_str(SCHEMA).unwrap();
    let mut kinds = BTreeSet::new();
    for line in std::str::from_utf8(bytes).unwrap().lines() {
        let value: Value = serde_json::from_str(line).unwrap();
        let kind = value["record"].as_str().unwrap().to_owned();
        let rule = &schema["$defs"][format!("record_{kind}")];
        if let Err(why) = check(&schema, rule, &value) {
            panic!("{kind}: {why}\n{line}");
        }
        check(&schema, &schema, &value).unwrap();
        kinds.insert(kind);
    }
    kinds
}

#[test]
fn every_kind_of_record_fits_the_schema() {
    let mut home = rich();
    seal(&mut home);
    let mut kinds = BTreeSet::new();
    for variant in
        [ExportVariant::Full, ExportVariant::WithContext, ExportVariant::Shared { annotations: false }]
    {
        kinds.extend(check_file(&home.export(variant)));
    }
    let schema: Value = serde_json::from_str(SCHEMA).unwrap();
    let described =
        schema["$defs"].as_object().unwrap().keys().filter_map(|name| name.strip_prefix("record_"));
    assert_eq!(kinds, described.map(str::to_owned).collect());
}

#[test]
fn the_schema_refuses_what_is_no_record() {
    let schema: Value = serde_json::from_str(SCHEMA).unwrap();
    let bytes = rich().export(ExportVariant::Full);
    let first: Value = serde_json::from_slice(bytes.split(|byte| *byte == b'\n').next().unwrap()).unwrap();
    assert!(check(&schema, &schema, &first).is_ok());
    for (field, value) in
        [("version", Value::from(2)), ("record", Value::from("head")), ("more", Value::Null)]
    {
        let mut wrong = first.clone();
        wrong[field] = value;
        assert!(check(&schema, &schema, &wrong).is_err(), "{field}");
    }
}

#[test]
fn every_block_and_every_ending_fits_the_schema() {
    let mut home = Home::new(Mode::Dialogue);
    let args = serde_json::json!({"path": "a", "n": 1.5, "deep": [null, true]});
    home.run(Op::Append(plan::NewText {
        content: vec![
            Block::Thinking { text: "hm".into(), opaque: Some(args.clone()) },
            Block::text("said"),
            Block::Audio { blob: Digest::ZERO, mime: "audio/wav".into() },
            Block::ToolCall { id: "c".into(), name: "read".into(), arguments: args.clone() },
            Block::Opaque { dialect: "d".into(), model: "m".into(), json: args },
        ],
        author: Author { kind: AuthorKind::Model, id: "m".into(), profile: Some(Digest::ZERO) },
        role: Some(Role::Assistant),
        trust: Trust::Agent,
    }))
    .unwrap();
    let bytes = home.export(ExportVariant::Full);
    check_file(&bytes);
    assert_eq!(exported(&read_all(&bytes), ExportVariant::Full), bytes);
}

proptest! {
    #![proptest_config(cases())]

    #[test]
    fn every_export_fits_the_schema(home in home()) {
        check_file(&home.export(ExportVariant::Full));
    }
}

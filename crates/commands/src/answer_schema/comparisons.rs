//! How many comparisons a schema takes. Alternatives that refer to alternatives multiply: a schema of a few hundred bytes
//! can ask for more comparisons than a machine makes in a day.

use std::collections::HashMap;
use std::ptr::from_ref;

use percent_encoding::percent_decode_str;
use serde_json::Value;

/// Keywords whose schema, or list of schemas, is compared with the same value.
const IN_PLACE: [&str; 7] = ["allOf", "anyOf", "oneOf", "not", "if", "then", "else"];
/// Keywords whose schema, or list of schemas, is compared with what an array holds.
const OF_ITEMS: [&str; 5] = ["items", "prefixItems", "additionalItems", "contains", "unevaluatedItems"];
/// Keywords whose schema is compared with each member of an object.
const OF_MEMBERS: [&str; 2] = ["additionalProperties", "unevaluatedProperties"];
/// Keywords that refer to another schema.
pub(super) const REFERENCES: [&str; 3] = ["$ref", "$dynamicRef", "$recursiveRef"];

/// Counter of the comparisons of one schema, an upper bound: what would end early is counted whole.
pub(super) struct Comparisons<'s> {
    root: &'s Value,
    /// By schema and value; none while it is counted.
    counted: HashMap<(*const Value, *const Value), Option<u64>>,
    named: Vec<(&'s str, &'s Value)>,
}

impl<'s> Comparisons<'s> {
    pub(super) fn of(root: &'s Value) -> Self {
        let mut named = Vec::new();
        name(root, &mut named);
        Self { root, counted: HashMap::new(), named }
    }

    /// Comparisons of a value with the whole schema.
    pub(super) fn with(&mut self, value: &Value) -> u64 {
        self.counted.clear();
        self.count(self.root, value)
    }

    /// Comparisons of a value that holds nothing with each schema that refers to another.
    pub(super) fn of_references(&mut self) -> u64 {
        self.counted.clear();
        let mut schemas = Vec::new();
        all(self.root, &mut schemas);
        let refers = |schema: &&Value| REFERENCES.iter().any(|keyword| schema.get(*keyword).is_some());
        schemas
            .into_iter()
            .filter(refers)
            .fold(0, |sum, schema| sum.saturating_add(self.count(schema, &Value::Null)))
    }

    fn count(&mut self, schema: &'s Value, value: &Value) -> u64 {
        let Some(keywords) = schema.as_object() else { return 1 };
        let key = (from_ref(schema), from_ref(value));
        if let Some(known) = self.counted.get(&key) {
            // One that leads to itself is compared once.
            return known.unwrap_or(1);
        }
        self.counted.insert(key, None);
        let mut sum = 1_u64;
        let mut add = |more: u64| sum = sum.saturating_add(more);
        for (keyword, below) in keywords {
            let keyword = keyword.as_str();
            if REFERENCES.contains(&keyword) {
                let targets = below.as_str().map(|to| self.targets(to)).unwrap_or_default();
                add(targets.into_iter().map(|to| self.count(to, value)).max().unwrap_or(1));
            } else if IN_PLACE.contains(&keyword) {
                schemas(below).for_each(|schema| add(self.count(schema, value)));
            } else if keyword == "dependentSchemas" || keyword == "dependencies" {
                members(below).for_each(|(_, schema)| add(self.count(schema, value)));
            } else if OF_ITEMS.contains(&keyword) {
                for item in value.as_array().into_iter().flatten() {
                    schemas(below).for_each(|schema| add(self.count(schema, item)));
                }
            } else if OF_MEMBERS.contains(&keyword) {
                members(value).for_each(|(_, member)| add(self.count(below, member)));
            } else if keyword == "properties" {
                for (name, schema) in members(below) {
                    value.get(name).into_iter().for_each(|member| add(self.count(schema, member)));
                }
            } else if keyword == "patternProperties" {
                for (_, schema) in members(below) {
                    members(value).for_each(|(_, member)| add(self.count(schema, member)));
                }
            } else if keyword == "propertyNames" {
                members(value).for_each(|_| add(self.count(below, &Value::Null)));
            }
        }
        self.counted.insert(key, Some(sum));
        sum
    }

    /// The schemas that a reference may mean.
    fn targets(&self, to: &str) -> Vec<&'s Value> {
        let (resource, fragment) = to.split_once('#').unwrap_or((to, ""));
        let last = |name: &str| name.trim_end_matches('#').rsplit('/').next().unwrap_or_default().to_owned();
        let resources: Vec<&Value> = match resource {
            "" => vec![self.root],
            resource => {
                let named = self.named.iter().filter(|(name, _)| last(name) == last(resource));
                named.map(|(_, schema)| *schema).collect()
            }
        };
        let fragment = percent_decode_str(fragment).decode_utf8_lossy();
        if fragment.is_empty() || fragment.starts_with('/') {
            return resources.into_iter().filter_map(|schema| schema.pointer(&fragment)).collect();
        }
        let anchored = self.named.iter().filter(|(name, _)| *name == fragment);
        anchored.map(|(_, schema)| *schema).collect()
    }
}

/// The schemas of a keyword: one, or a list.
fn schemas(value: &Value) -> impl Iterator<Item = &Value> {
    let list = value.as_array().map_or(std::slice::from_ref(value), Vec::as_slice);
    list.iter()
}

fn members(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    value.as_object().into_iter().flatten()
}

/// Every object within a value, itself included.
fn all<'v>(value: &'v Value, into: &mut Vec<&'v Value>) {
    match value {
        Value::Object(members) => {
            into.push(value);
            members.values().for_each(|member| all(member, into));
        }
        Value::Array(items) => items.iter().for_each(|item| all(item, into)),
        _ => {}
    }
}

/// The schemas that have a name of their own.
fn name<'s>(root: &'s Value, into: &mut Vec<(&'s str, &'s Value)>) {
    let mut schemas = Vec::new();
    all(root, &mut schemas);
    for schema in schemas {
        for keyword in ["$id", "id", "$anchor", "$dynamicAnchor"] {
            let name = schema.get(keyword).and_then(Value::as_str);
            into.extend(name.map(|name| (name.trim_start_matches('#'), schema)));
        }
    }
}

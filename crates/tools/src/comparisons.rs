//! How many comparisons a schema takes. Alternatives that refer to alternatives multiply: a schema of a few hundred bytes
//! can ask for more comparisons than a machine makes in a day, and references one behind the other for more stack than a
//! thread has.

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
pub const REFERENCES: [&str; 3] = ["$ref", "$dynamicRef", "$recursiveRef"];

/// Schemas that are compared within each other at most: without optimisation each takes some 10 KiB of a stack of 2 MiB.
const DEEPEST: usize = 128;

/// Counter of the comparisons of one schema, an upper bound: what would end early is counted whole, and what goes deeper than
/// a stack holds is more than any number.
pub struct Comparisons<'s> {
    root: &'s Value,
    /// By schema and value; none while it is counted.
    counted: HashMap<(*const Value, *const Value), Option<Count>>,
    named: Vec<(&'s str, &'s Value)>,
    /// Schemas that are counted within each other now.
    depth: usize,
}

/// Comparisons, and how many of them are made within each other.
#[derive(Clone, Copy)]
struct Count {
    sum: u64,
    height: usize,
}

impl<'s> Comparisons<'s> {
    pub fn of(root: &'s Value) -> Self {
        let mut named = Vec::new();
        name(root, &mut named);
        Self { root, counted: HashMap::new(), named, depth: 0 }
    }

    /// Comparisons of a value with the whole schema.
    pub fn with(&mut self, value: &Value) -> u64 {
        self.counted.clear();
        self.count(self.root, value).sum
    }

    /// Comparisons of a value that holds nothing with each schema that refers to another.
    pub fn of_references(&mut self) -> u64 {
        self.counted.clear();
        let mut schemas = Vec::new();
        all(self.root, &mut schemas);
        let refers = |schema: &&Value| REFERENCES.iter().any(|keyword| schema.get(*keyword).is_some());
        schemas
            .into_iter()
            .filter(refers)
            .fold(0, |sum, schema| sum.saturating_add(self.count(schema, &Value::Null).sum))
    }

    fn count(&mut self, schema: &'s Value, value: &Value) -> Count {
        const ONE: Count = Count { sum: 1, height: 1 };
        let Some(keywords) = schema.as_object() else { return ONE };
        let key = (from_ref(schema), from_ref(value));
        // One that leads to itself is compared once.
        let known = self.counted.get(&key).map(|known| known.unwrap_or(ONE));
        if self.depth + known.unwrap_or(ONE).height > DEEPEST {
            return Count { sum: u64::MAX, height: DEEPEST };
        }
        if let Some(known) = known {
            return known;
        }
        self.counted.insert(key, None);
        self.depth += 1;
        let mut counted = ONE;
        let mut add = |Count { sum, height }: Count| {
            counted.sum = counted.sum.saturating_add(sum);
            counted.height = counted.height.max(height.saturating_add(1));
        };
        for (keyword, below) in keywords {
            let keyword = keyword.as_str();
            if REFERENCES.contains(&keyword) {
                let targets = below.as_str().map(|to| self.targets(to)).unwrap_or_default();
                let targets = targets.into_iter().map(|to| self.count(to, value));
                add(targets.max_by_key(|target| target.sum).unwrap_or(ONE));
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
        self.depth -= 1;
        self.counted.insert(key, Some(counted));
        counted
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

//! Every key there is, as the types of [`super::sections`] have them. The JSON schema of the file, the reference in
//! `docs/configuration.md`, `config show --defaults`, the check of files and the suggestion for a misspelt key are
//! made of their schema (spec: cli §5).

use std::sync::LazyLock;

use schemars::generate::SchemaSettings;
use schemars::transform::RecursiveTransform;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::Value as Json;
use toml::Value;

use super::kind::Kind;
use super::path::{join, segments};
use super::sections::Config;

/// Names of providers, presets and agents, as [`is_name`] takes them.
const NAME: &str = "^[A-Za-z0-9_-]+$";
const MODEL: &str = "^.+$";

/// The keys, in the order of the types.
pub(crate) static KEYS: LazyLock<Vec<Key>> = LazyLock::new(|| {
    let mut keys = Vec::new();
    collect(&whole(), "", &mut keys);
    keys
});

/// One key of the configuration.
#[derive(Debug, Clone)]
pub(crate) struct Key {
    /// Dotted path; `NAME` stands for any name, `MODEL` for that of a model.
    pub(crate) path: String,
    pub(crate) kind: Kind,
    /// Value when nobody sets it; none where there is none.
    pub(crate) default: Option<Value>,
    /// The unit of the value; empty where it has none.
    pub(crate) unit: String,
    pub(crate) doc: String,
    /// Whether it is kept in `keys.toml` and never shown.
    pub(crate) secret: bool,
}

impl Key {
    fn of(path: String, schema: &Json) -> Self {
        let text = |name: &str| schema[name].as_str().unwrap_or_default().replace('\n', " ");
        Self {
            path,
            kind: Kind::of(schema),
            default: schema.get("default").and_then(|default| Value::try_from(default).ok()),
            unit: text("unit"),
            doc: text("description"),
            secret: schema["writeOnly"] == true,
        }
    }

    /// What the key is for, and in which unit.
    pub(crate) fn about(&self) -> String {
        if self.unit.is_empty() { self.doc.clone() } else { format!("{} In {}.", self.doc, self.unit) }
    }

    /// Whether this is the key of that path.
    fn is(&self, path: &[String]) -> bool {
        let fits = |(ours, theirs): (&str, &String)| match ours {
            "NAME" => is_name(theirs),
            "MODEL" => !theirs.is_empty(),
            ours => ours == theirs,
        };
        self.path.split('.').count() == path.len() && self.path.split('.').zip(path).all(fits)
    }

    /// What stands before and behind the name in the path of a section that has one of its own.
    pub(crate) fn around_name(&self) -> Option<(&str, &str)> {
        self.path.split_once(".NAME.").or_else(|| self.path.split_once(".MODEL."))
    }

    /// The path with the name filled in as in `path`, as far as the two agree.
    fn named_as(&self, path: &str) -> String {
        let name = segments(path).into_iter().nth(1).filter(|name| !name.is_empty());
        match (self.around_name(), name) {
            (Some((head, rest)), Some(name)) => format!("{head}.{}.{rest}", join(&[name])),
            _ => self.path.clone(),
        }
    }
}

/// Whether a provider, preset or agent can be called so.
pub(crate) fn is_name(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-')
}

/// Whether a path is that of a section with a name of its own, as `providers.box`.
pub(crate) fn is_named_section(path: &str) -> bool {
    let parts = segments(path);
    let heads = KEYS.iter().filter_map(Key::around_name).map(|(head, _)| head);
    parts.len() == 2 && !parts[1].is_empty() && heads.into_iter().any(|head| head == parts[0])
}

/// The key of a path.
pub(crate) fn find(path: &str) -> Option<&'static Key> {
    let path = segments(path);
    KEYS.iter().find(|key| key.is(&path))
}

/// The key someone may have meant.
fn nearest(path: &str) -> Option<String> {
    KEYS.iter()
        .map(|key| key.named_as(path))
        .map(|name| (strsim::damerau_levenshtein(&name, path), name))
        .min()
        .filter(|(distance, name)| *distance <= name.len() / 3)
        .map(|(_, name)| name)
}

/// What to do about a key that is not there.
pub(crate) fn hint_for_unknown(path: &str) -> String {
    let mut names = segments(path);
    if let [section, name, ..] = &mut names[..]
        && !is_name(name)
    {
        let is_odd = std::mem::replace(name, "x".to_owned());
        let section = section.clone();
        if !is_odd.is_empty() && find(&join(&names)).is_some() {
            return format!("the name in [{section}.NAME] has letters, digits, `_` and `-` alone");
        }
    }
    if let Some(meant) = nearest(path) {
        return format!("did you mean {meant}?");
    }
    let section = path.split('.').next().unwrap_or_default();
    let prefix = format!("{section}.");
    let known = KEYS.iter().map(|key| &*key.path).filter(|path| path.starts_with(&prefix));
    let known: Vec<_> = known.collect();
    if known.is_empty() {
        return "`drawloom config show --defaults` lists every key".to_owned();
    }
    format!("[{section}] has {}", known.join(", "))
}

/// JSON schema of `config.toml`, of draft 2020-12. Secrets are not in it: they have a file of their own.
pub(crate) fn schema() -> Json {
    let mut schema = generated();
    schemars::transform::Transform::transform(&mut RecursiveTransform(publish), &mut schema);
    schema.to_value()
}

fn publish(schema: &mut Schema) {
    if let Some(properties) = schema.get_mut("properties").and_then(Json::as_object_mut) {
        properties.retain(|_, property| property["writeOnly"] != true);
    }
    if let Some(Json::String(doc)) = schema.remove("description") {
        let unit = schema.remove("unit").and_then(|unit| Some(format!(" In {}.", unit.as_str()?)));
        let doc = doc.replace('\n', " ") + unit.as_deref().unwrap_or_default();
        schema.insert("description".to_owned(), doc.into());
    }
}

fn whole() -> Json {
    generated().to_value()
}

fn generated() -> Schema {
    let settings = SchemaSettings::draft2020_12().with(|settings| settings.inline_subschemas = true);
    settings
        .with_transform(RecursiveTransform(without_null))
        .into_generator()
        .into_root_schema_for::<Config>()
}

/// A key that is not set is not there: TOML has no null. What a number can hold in memory is its range.
fn without_null(schema: &mut Schema) {
    if let Some(Json::Array(any)) = schema.remove("anyOf")
        && let Some(Json::Object(inner)) = any.into_iter().next()
    {
        for (name, value) in inner {
            schema.ensure_object().entry(name).or_insert(value);
        }
    }
    if let Some(Json::Array(types)) = schema.get("type") {
        let first = types.first().cloned().unwrap_or_default();
        schema.insert("type".to_owned(), first);
    }
    if schema.get("default").is_some_and(Json::is_null) {
        schema.remove("default");
    }
    if schema.get("format").is_some_and(|format| format == "uint32") {
        schema.ensure_object().entry("maximum").or_insert(u32::MAX.into());
    }
}

/// Schema of sections that have names of their own.
pub(super) fn named<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    by_name::<T>(NAME, generator)
}

/// Schema of sections that have names of models.
pub(super) fn models<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    by_name::<T>(MODEL, generator)
}

fn by_name<T: JsonSchema>(name: &str, generator: &mut SchemaGenerator) -> Schema {
    let section = generator.subschema_for::<T>();
    json_schema!({"type": "object", "additionalProperties": false, "patternProperties": {name: section}})
}

fn collect(schema: &Json, above: &str, keys: &mut Vec<Key>) {
    let inner = |kind: &str| schema[kind].as_object().into_iter().flatten();
    for (name, inner) in inner("properties").chain(inner("patternProperties")) {
        let name = match name.as_str() {
            NAME => "NAME",
            MODEL => "MODEL",
            name => name,
        };
        let path = if above.is_empty() { name.to_owned() } else { format!("{above}.{name}") };
        if inner["type"] == "object" {
            collect(inner, &path, keys);
        } else {
            keys.push(Key::of(path, inner));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_has_a_meaning_a_default_it_takes_and_secrets_have_none() {
        for key in KEYS.iter() {
            assert!(!key.doc.is_empty(), "{}", key.path);
            assert!(!(key.secret && key.default.is_some()), "{}", key.path);
            let fits = key.default.as_ref().map(|default| key.kind.check(default));
            assert!(matches!(fits, None | Some(Ok(()))), "{}: {fits:?}", key.path);
        }
    }

    #[test]
    fn a_misspelt_key_finds_its_neighbour() {
        assert_eq!(nearest("model.defualt").as_deref(), Some("model.default"));
        assert_eq!(nearest("providers.box.base_ulr").as_deref(), Some("providers.box.base_url"));
        assert_eq!(nearest("weather.tomorrow"), None);
        assert!(hint_for_unknown("providers").contains("providers.NAME.base_url"));
    }

    #[test]
    fn a_name_stands_for_any_name_but_for_no_path() {
        let path = |path| find(path).map(|key| &*key.path);
        assert_eq!(path("providers.my-box.window"), Some("providers.NAME.window"));
        assert_eq!(path("models.\"openai/gpt-5.1\".window"), Some("models.MODEL.window"));
        for wrong in
            ["models.openai/gpt-5.1.window", "providers.window", "providers.a.b.window", "providers..window"]
        {
            assert_eq!(path(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn the_schema_takes_nothing_else_and_holds_no_secret() {
        fn closed(object: &Json) -> bool {
            let inner =
                ["properties", "patternProperties"].into_iter().filter_map(|kind| object[kind].as_object());
            let mut inner = inner.flat_map(|found| found.values());
            object["type"] != "object" || (object["additionalProperties"] == false && inner.all(closed))
        }
        assert!(closed(&schema()));
        let text = schema().to_string();
        assert!(
            !text.contains("writeOnly") && !text.contains("\"unit\"") && !text.contains("null"),
            "{text}"
        );
    }

    #[test]
    fn names_are_those_the_file_may_have() {
        for (name, good) in [("my-box_2", true), ("a.b", false), ("", false), ("ü", false)] {
            assert_eq!(is_name(name), good, "{name}: keep NAME as it is");
        }
    }
}

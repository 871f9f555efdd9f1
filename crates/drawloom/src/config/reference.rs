//! `docs/configuration.md` and `docs/config.schema.json`, written from the types; the test fails when one of them
//! is not current.

use std::fmt::Write as _;
use std::path::Path;

use super::keys::{KEYS, schema};

const INTRODUCTION: &str = "\
# Configuration

<!-- Written from the types of the keys. To bring it up to date: DRAWLOOM_WRITE_DOCS=1 cargo test -p drawloom reference -->

Settings are in `config.toml` in the home (`~/.drawloom`, or the folder that `--home` or `DRAWLOOM_HOME` names). Secrets are in
`keys.toml` beside it, in sections of the same names. `drawloom config path` shows where the home is. A folder becomes one that is
empty, or holds what a home has alone, such as a `config.toml` or a folder `skills/` that you made by hand.

The order of precedence is: a flag, the environment (`DRAWLOOM_SECTION__KEY`, such as `DRAWLOOM_LOG__LEVEL=debug` or
`DRAWLOOM_PROVIDERS__BOX__WINDOW=32768`), the file, the default. `drawloom config get KEY` says which of them set the value. An
unknown key or a value that does not fit is an error that names it; `drawloom config check` lists all of them. Commands that only
read leave it out and say so; a `keys.toml` that others may read is closed to them (`chmod 600`), and nothing of it is used where that cannot be done. A JSON schema of the file, for editors, is [config.schema.json](config.schema.json) and the `schema` of `drawloom config show --defaults --json`.
`drawloom config set KEY VALUE` keeps comments and order. It never writes to a broken file, nor to one that is a link or has a
second name (exit 4). The value `-` reads the value from standard input. A secret is asked for at a terminal if it is left out, and not
shown, so that it does not stay in the history of the shell. `drawloom config unset KEY` takes a key out of the file, also one
that there is not, and `drawloom config unset providers.NAME` a whole section with its key (that of a server is taken out by `drawloom mcp remove NAME`);
an empty value is none.

```sh
drawloom config path
drawloom config set model.default script:echo
drawloom config set presets.calm.temperature 0.25
drawloom config get model.default
drawloom config check
drawloom config show
printf 'a-key-of-nobody' | drawloom config set providers.openai.key -
drawloom config unset providers.openai.key
drawloom config unset model.default
```

A model is named in one of these ways:

| Name | Meaning |
|---|---|
| `PROVIDER/NAME` | a model of `[providers.PROVIDER]`, or of a provider known by name (below); the server gets the name after the first `/` |
| `NAME` | a model of the catalogue, if only one provider has it: `gpt-5.1` is `openai/gpt-5.1` |
| `http://HOST:PORT/NAME` | a model of a server with the API of OpenAI; if the path has a version (`https://host/v1/NAME`), the name follows it |
| `smollm2` | a small model inside the program, a demo; `--model-file PATH` loads any GGUF file that the engine knows |
| `script:FILE`, `script:echo` | for tests and work without a network: answers from a file; or in chat your message, in documents ` echo 1`, ` echo 2`, … |
";

const KNOWN: &str = "
## Providers known by name

A model of these providers needs no section. A section of the same name, or one with that name as its `kind`, changes what is different.
The key in the variable is used when `--model` names the provider, or when `key_env` names the variable.

| Name | Address | Place | Key | Dialect |
|---|---|---|---|---|
";

fn page() -> String {
    let mut page = INTRODUCTION.to_owned();
    let mut section = "";
    for key in KEYS.iter() {
        let (head, name) = key.path.rsplit_once('.').unwrap_or(("", &key.path));
        if head != section {
            section = head;
            let _ = write!(page, "\n## `[{head}]`\n\n| Key | Takes | Default | For |\n|---|---|---|---|\n");
        }
        let default = key.default.as_ref().map_or_else(|| "–".to_owned(), |default| format!("`{default}`"));
        let unit = if key.unit.is_empty() { String::new() } else { format!(", in {}", key.unit) };
        let wanted = key.kind.wanted();
        let _ = writeln!(page, "| `{name}` | {wanted}{unit} | {default} | {} |", key.doc);
    }
    page.push_str(KNOWN);
    for row in model::providers() {
        let key = row.key_env.map_or_else(|| "–".to_owned(), |key| format!("`{key}`"));
        let place = if row.place == model::ModelPlace::Local { "local" } else { "remote" };
        let _ = writeln!(page, "| `{}` | {} | {place} | {key} | `{}` |", row.name, row.base_url, row.dialect);
    }
    page
}

#[test]
fn the_reference_is_current() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let schema = format!("{:#}\n", schema());
    for (name, text) in [("configuration.md", page()), ("config.schema.json", schema)] {
        let path = docs.join(name);
        if std::env::var_os("DRAWLOOM_WRITE_DOCS").is_some() {
            std::fs::write(&path, &text).unwrap();
        }
        let found = std::fs::read_to_string(&path).unwrap_or_default();
        assert_eq!(found, text, "docs/{name} is out of date: run with DRAWLOOM_WRITE_DOCS=1");
    }
}

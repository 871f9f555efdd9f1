//! `docs/configuration.md` and `docs/config.schema.json`, written from the table; the test fails when one of them
//! is not current.

use std::fmt::Write as _;
use std::path::Path;

use super::schema::schema;
use super::table::{BUILT_IN, KEYS};

const INTRODUCTION: &str = "\
# Configuration

<!-- Written from the table of keys. To bring it up to date: DRAWLOOM_WRITE_DOCS=1 cargo test -p drawloom reference -->

Settings stand in `config.toml` in the home (`~/.drawloom`, or what `--home` or `DRAWLOOM_HOME` says); secrets stand in
`keys.toml` beside it, in sections of the same names. `drawloom config path` shows both places.

What counts, first to last: a flag, the environment (`DRAWLOOM_SECTION__KEY`, as `DRAWLOOM_LOG__LEVEL=debug` or
`DRAWLOOM_PROVIDERS__BOX__WINDOW=32768`), the file, the default. `drawloom config get KEY` says which it was. An unknown
key or a value that does not fit is an error that names it; `drawloom config check` lists them all. A JSON schema of the
file, for editors, is [config.schema.json](config.schema.json) and the `schema` of `drawloom config show --defaults --json`.
`drawloom config set KEY VALUE` keeps comments and order and never writes to a broken file; `-` as the value reads it from
standard input, which is how a secret is set without leaving it in the history of a shell.

A model is named in one of these ways:

| Name | Is |
|---|---|
| `PROVIDER/NAME` | a model of `[providers.PROVIDER]`; what follows the first `/` is the name the server knows |
| `openai/NAME` | the same, known without a section. `OPENAI_API_KEY` is read when `--model` names it, or when `key_env` says so |
| `http://HOST:PORT/NAME` | a model of a server that speaks like OpenAI's; with a version in the path (`https://host/v1/NAME`) the name follows it |
| `script:FILE`, `script:echo` | answers from a file, or the prompt again: for tests and work without a network |
";

fn page() -> String {
    let mut page = INTRODUCTION.to_owned();
    let mut section = "";
    for key in KEYS {
        let (head, name) = key.path.rsplit_once('.').unwrap_or(("", key.path));
        if head != section {
            section = head;
            let _ = write!(page, "\n## `[{head}]`\n\n| Key | Takes | Default | For |\n|---|---|---|---|\n");
        }
        let default = key.default.map_or_else(|| "–".to_owned(), |default| format!("`{default}`"));
        let unit = if key.unit.is_empty() { String::new() } else { format!(", in {}", key.unit) };
        let wanted = key.kind.wanted();
        let _ = writeln!(page, "| `{name}` | {wanted}{unit} | {default} | {} |", key.doc);
    }
    page.push_str("\n## Known without a section\n\n| Key | Default |\n|---|---|\n");
    for (path, default) in BUILT_IN {
        let _ = writeln!(page, "| `{path}` | `{default}` |");
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

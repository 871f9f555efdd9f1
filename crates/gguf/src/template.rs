//! Messages to a prompt.
//!
//! A template in a file is a program by whoever made the file. For known families it is not run at all: ours
//! is used, and one that differs is reported. A foreign one runs with fuel, without files, and never sees what
//! is said: placeholders stand for the messages, and only afterwards are they replaced. So it can neither
//! change a message nor smuggle one in, and the place of every message in the prompt is known.

use minijinja::syntax::SyntaxConfig;
use minijinja::value::{Rest, Value as Jinja};
use minijinja::{Environment, Error, ErrorKind, State, context};

use crate::error::TemplateError;
use crate::header::Header;
use crate::value::Value;
use crate::vocabulary::{Piece, Vocabulary};

/// Steps a foreign template may take.
const FUEL: u64 = 1_000_000;
/// Bytes a foreign template may write.
const MAX_OUTPUT: usize = 1 << 20;
/// Bytes a foreign template may have.
const MAX_TEMPLATE: usize = 1 << 17;

/// Who says a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// The one who instructs. At most one message, the first.
    System,
    /// The user.
    User,
    /// The model.
    Assistant,
}

impl Role {
    fn name(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::User => "user",
            Self::Assistant => "assistant",
        }
    }
}

/// A message of a conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// Who says it.
    pub role: Role,
    /// What is said.
    pub text: String,
}

/// Which chat template is used, and what the file has to do with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TemplateNote {
    /// Ours; the file brings the same or none.
    Ours,
    /// Ours; the file brings another one, which is not used.
    OursInsteadOfAnother,
    /// The file's: the family is not known.
    Foreign,
    /// None: the model only continues raw text.
    None,
}

/// How conversations are written for a model.
#[derive(Debug, Clone)]
pub(crate) struct Template {
    kind: Kind,
    note: TemplateNote,
}

#[derive(Debug, Clone)]
enum Kind {
    /// `<|im_start|>role\n…<|im_end|>\n`: SmolLM2, Qwen and many more.
    ChatMl,
    /// `<|start_header_id|>role<|end_header_id|>\n\n…<|eot_id|>`: Llama 3.
    Llama3,
    Foreign {
        source: String,
        first: String,
        end: String,
    },
    None,
}

/// What stands in the templates of known families that say the same as ours. Tools and default system
/// prompts apart, which are never sent, any ChatML template is one line: this.
const CHATML_CORE: &str = "'<|im_start|>'+message['role']+'\\n'+message['content']+'<|im_end|>'+'\\n'";

impl Template {
    pub(crate) fn of(header: &Header, vocabulary: &Vocabulary) -> Self {
        let source = header.get("tokenizer.chat_template").and_then(Value::text);
        let has = |markers: &[&str]| markers.iter().all(|marker| vocabulary.has_marker(marker));
        let ours = if has(&["<|im_start|>", "<|im_end|>"]) {
            Some(Kind::ChatMl)
        } else if has(&["<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"]) {
            Some(Kind::Llama3)
        } else {
            None
        };
        let (kind, note) = match (ours, source) {
            (Some(kind), None) => (kind, TemplateNote::Ours),
            (Some(kind), Some(source)) if says_the_same(&kind, source) => (kind, TemplateNote::Ours),
            (Some(kind), Some(_)) => (kind, TemplateNote::OursInsteadOfAnother),
            (None, Some(source)) => {
                let token = |key: &str| {
                    let id = header.get(key).and_then(Value::unsigned).and_then(|id| u32::try_from(id).ok());
                    let spelling = id.map(|id| vocabulary.spelling(id)).unwrap_or_default();
                    String::from_utf8_lossy(spelling).into_owned()
                };
                let (first, end) =
                    (token("tokenizer.ggml.bos_token_id"), token("tokenizer.ggml.eos_token_id"));
                (Kind::Foreign { source: source.to_owned(), first, end }, TemplateNote::Foreign)
            }
            (None, None) => (Kind::None, TemplateNote::None),
        };
        Self { kind, note }
    }

    pub(crate) fn note(&self) -> TemplateNote {
        self.note
    }

    /// The prompt of a conversation, up to where the answer begins. Each message is one piece of text.
    pub(crate) fn prompt(&self, messages: &[Message]) -> Result<Vec<Piece>, TemplateError> {
        let systems = messages.iter().skip(1).any(|message| message.role == Role::System);
        if systems {
            return Err(TemplateError::Roles);
        }
        match &self.kind {
            Kind::ChatMl => Ok(marked(messages, |role| format!("<|im_start|>{role}\n"), "<|im_end|>\n")),
            Kind::Llama3 => {
                let open = |role: &str| format!("<|start_header_id|>{role}<|end_header_id|>\n\n");
                Ok(marked(messages, open, "<|eot_id|>"))
            }
            Kind::Foreign { source, first, end } => foreign(source, first, end, messages),
            Kind::None => Err(TemplateError::None),
        }
    }
}

fn marked(messages: &[Message], open: impl Fn(&str) -> String, close: &str) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut form = String::new();
    for message in messages {
        form.push_str(&open(message.role.name()));
        pieces.push(Piece::Form(std::mem::take(&mut form)));
        pieces.push(Piece::Text(message.text.clone()));
        form.push_str(close);
    }
    form.push_str(&open(Role::Assistant.name()));
    pieces.push(Piece::Form(form));
    pieces
}

/// Whether a file's template writes messages as ours does; what it does for a missing system message is a
/// matter of its own and not copied.
fn says_the_same(kind: &Kind, source: &str) -> bool {
    let dense: String =
        source.replace('\n', "\\n").chars().filter(|letter| !letter.is_whitespace()).collect();
    match kind {
        Kind::ChatMl => dense.contains(CHATML_CORE) && dense.len() < 512,
        _ => false,
    }
}

fn foreign(source: &str, first: &str, end: &str, messages: &[Message]) -> Result<Vec<Piece>, TemplateError> {
    if source.len() > MAX_TEMPLATE {
        return Err(TemplateError::TooLong { limit: MAX_TEMPLATE });
    }
    let placeholder = |number: usize| format!("\u{f8fa}{number}\u{f8fb}");
    let shown: Vec<Jinja> = messages
        .iter()
        .enumerate()
        .map(|(number, message)| context! { role => message.role.name(), content => placeholder(number) })
        .collect();
    let mut written = rendered(source, first, end, &shown)?;
    // The tokens of the model's beginning are added by the vocabulary.
    if let Some(rest) = written.strip_prefix(first).filter(|_| !first.is_empty()) {
        written = rest.to_owned();
    }
    let mut pieces = Vec::new();
    let mut rest = written.as_str();
    for (number, message) in messages.iter().enumerate() {
        let (form, after) = rest.split_once(&placeholder(number)).ok_or(TemplateError::Reorders)?;
        pieces.push(Piece::Form(form.to_owned()));
        pieces.push(Piece::Text(message.text.clone()));
        rest = after;
    }
    pieces.push(Piece::Form(rest.to_owned()));
    let stray = |piece: &Piece| matches!(piece, Piece::Form(form) if form.contains(['\u{f8fa}', '\u{f8fb}']));
    if pieces.iter().any(stray) { Err(TemplateError::Reorders) } else { Ok(pieces) }
}

fn rendered(source: &str, first: &str, end: &str, messages: &[Jinja]) -> Result<String, TemplateError> {
    let mut environment = Environment::new();
    environment.set_fuel(Some(FUEL));
    environment.set_recursion_limit(64);
    let syntax = SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build();
    environment.set_syntax(syntax.map_err(|error| failure(&error))?);
    environment.set_unknown_method_callback(method);
    environment.add_function("raise_exception", |why: String| -> Result<Jinja, Error> {
        Err(Error::new(ErrorKind::InvalidOperation, why))
    });
    let template = environment.template_from_str(source).map_err(|error| failure(&error))?;
    let known = context! {
        messages => messages,
        add_generation_prompt => true,
        bos_token => first,
        eos_token => end,
    };
    let mut output = Bounded(Vec::new());
    let result = template.render_captured_to(known, &mut output).map(drop);
    match result {
        Err(_) if output.0.len() >= MAX_OUTPUT => Err(TemplateError::Output { limit: MAX_OUTPUT }),
        Err(error) => Err(failure(&error)),
        Ok(()) => String::from_utf8(output.0).map_err(|error| TemplateError::Fails(error.to_string())),
    }
}

fn failure(error: &Error) -> TemplateError {
    match error.kind() {
        ErrorKind::OutOfFuel => TemplateError::Fuel,
        _ => TemplateError::Fails(error.to_string()),
    }
}

/// The methods of Python's texts that templates call.
fn method(_: &mut State<'_, '_>, value: &Jinja, name: &str, arguments: &[Jinja]) -> Result<Jinja, Error> {
    let unknown = || Error::from(ErrorKind::UnknownMethod);
    let text = value.as_str().ok_or_else(unknown)?;
    let (arguments,): (Rest<String>,) = minijinja::value::from_args(arguments)?;
    Ok(match (name, arguments.as_slice()) {
        ("strip", []) => text.trim().into(),
        ("lstrip", []) => text.trim_start().into(),
        ("rstrip", []) => text.trim_end().into(),
        ("upper", []) => text.to_uppercase().into(),
        ("lower", []) => text.to_lowercase().into(),
        ("title" | "capitalize", []) => text.to_owned().into(),
        ("startswith", [part]) => text.starts_with(part.as_str()).into(),
        ("endswith", [part]) => text.ends_with(part.as_str()).into(),
        ("split", [part]) if !part.is_empty() => {
            text.split(part.as_str()).map(str::to_owned).collect::<Vec<_>>().into()
        }
        _ => return Err(unknown()),
    })
}

/// Takes no more than a template may write.
struct Bounded(Vec<u8>);

impl std::io::Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let taken = bytes.len().min(MAX_OUTPUT - self.0.len());
        self.0.extend_from_slice(&bytes[..taken]);
        if taken < bytes.len() { Err(std::io::ErrorKind::FileTooLarge.into()) } else { Ok(taken) }
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    fn said() -> Vec<Message> {
        let message = |role, text: &str| Message { role, text: text.to_owned() };
        vec![message(Role::System, "Be brief."), message(Role::User, "<|im_end|> {{ 1 }}")]
    }

    fn run(source: &str) -> Result<Vec<Piece>, TemplateError> {
        foreign(source, "<s>", "</s>", &said())
    }

    #[test]
    fn chatml_holds_each_message_as_a_piece_of_its_own() {
        let template = Template { kind: Kind::ChatMl, note: TemplateNote::Ours };
        let pieces = template.prompt(&said()).unwrap();
        let text: String = pieces.iter().map(Piece::as_str).collect();
        assert_eq!(
            text,
            "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\n<|im_end|> {{ 1 }}<|im_end|>\n<|im_start|>assistant\n"
        );
        assert_eq!(pieces[3], Piece::Text("<|im_end|> {{ 1 }}".to_owned()));
    }

    #[test]
    fn a_foreign_template_writes_the_form_and_never_sees_what_is_said() {
        let source =
            "{{ bos_token }}{% for m in messages %}[{{ m.role }}: {{ m['content'].strip() }}]{% endfor %}>";
        let pieces = run(source).unwrap();
        let form = |text: &str| Piece::Form(text.to_owned());
        assert_eq!(
            [&pieces[0], &pieces[2], &pieces[4]],
            [&form("[system: "), &form("][user: "), &form("]>")]
        );
        assert_eq!(pieces[3], Piece::Text("<|im_end|> {{ 1 }}".to_owned()));
    }

    #[test]
    fn a_template_that_drops_repeats_or_reorders_messages_is_refused() {
        for source in [
            "{{ messages[0].content }}",
            "{{ messages[1].content }}{{ messages[0].content }}",
            "{% for m in messages %}{{ m.content }}{{ m.content }}{% endfor %}",
        ] {
            assert_eq!(run(source), Err(TemplateError::Reorders), "{source}");
        }
    }

    #[test]
    fn hostile_templates_end_soon_and_by_name() {
        let begun = Instant::now();
        let fails = |source: &str| run(source).unwrap_err();
        assert!(matches!(fails("{% for i in range(10**9) %}{% endfor %}"), TemplateError::Fails(_)));
        assert_eq!(
            fails("{% for i in range(90000) %}{% for j in range(90000) %}{% endfor %}{% endfor %}"),
            TemplateError::Fuel
        );
        assert_eq!(
            fails(
                "{% for i in range(90000) %}{{ 'a long text that is written again and again' }}{% endfor %}"
            ),
            TemplateError::Output { limit: MAX_OUTPUT }
        );
        assert!(matches!(fails("{% include '/etc/passwd' %}"), TemplateError::Fails(_)));
        assert!(matches!(fails("{{ 'a' * 1000000000 }}"), TemplateError::Fails(_)));
        assert!(matches!(fails("{{ raise_exception('no') }}"), TemplateError::Fails(_)));
        assert!(matches!(fails(&"{{ ".repeat(30_000)), TemplateError::Fails(_)));
        assert!(matches!(fails(&" ".repeat(MAX_TEMPLATE + 1)), TemplateError::TooLong { .. }));
        assert!(begun.elapsed() < Duration::from_secs(3), "{:?}", begun.elapsed());
    }
}

//! From events to values, under limits.
//!
//! The block is built from the parser's events instead of being deserialised, because only there
//! tags, anchors, merge keys and the spelling of scalars can still be seen.

use std::collections::HashSet;

use serde_saphyr::granit_parser::{ErrorKind, Event, Options, Parser, ScalarStyle, ScanError, Span};

use super::value::{Map, Scalar, YamlValue};
use super::{FrontmatterError, FrontmatterProblem, MAX_DEPTH, MAX_KEY, MAX_VALUES, Warning};

/// The block begins on the second line of its file.
const FIRST_LINE: usize = 1;

pub(super) fn parse(block: &str, warnings: &mut Vec<Warning>) -> Result<Map, FrontmatterError> {
    let mut reader = Reader { warnings, levels: Vec::new(), values: 0, documents: 0, result: None };
    for event in Parser::new_from_str_with_options(block, limits()) {
        let (event, span) = event.map_err(|error| refused_by_parser(&error))?;
        let line = span.start.line() + FIRST_LINE;
        reader.take(event, &span, line).map_err(|why| why.at(line))?;
    }
    match reader.result {
        None => Ok(Map::default()),
        Some(YamlValue::Map(map)) => Ok(map),
        // A block of comments alone is an empty scalar.
        Some(YamlValue::Scalar(scalar)) if scalar.is_null() && scalar.source().is_empty() => {
            Ok(Map::default())
        }
        Some(_) => Err(FrontmatterProblem::NotAMapping.at(FIRST_LINE + 1)),
    }
}

/// The parser's own limits: it must not recurse or look ahead further than we would accept.
fn limits() -> Options {
    let mut options = Options::default();
    options.disallow_directives = true;
    options.emit_unresolved_aliases = true;
    options.simple_key_max_lookahead = 1024;
    options.flow_nesting_limit = MAX_DEPTH;
    options.block_nesting_limit = MAX_DEPTH;
    options
}

fn refused_by_parser(error: &ScanError) -> FrontmatterError {
    let line = error.marker().line().max(1) + FIRST_LINE;
    let why = match error.kind() {
        ErrorKind::RecursionLimitExceeded => FrontmatterProblem::TooDeep,
        ErrorKind::DirectiveDisallowed | ErrorKind::InvalidDocumentEnd => FrontmatterProblem::SecondDocument,
        ErrorKind::UndeclaredTagHandle => FrontmatterProblem::Tag,
        other => FrontmatterProblem::Yaml(other.to_string()),
    };
    why.at(line)
}

/// An open list or mapping.
enum Level {
    List(Vec<YamlValue>),
    Map { map: Map, seen: HashSet<String>, key: Option<String> },
}

struct Reader<'a> {
    warnings: &'a mut Vec<Warning>,
    levels: Vec<Level>,
    values: usize,
    documents: usize,
    result: Option<YamlValue>,
}

impl Reader<'_> {
    fn take(&mut self, event: Event<'_>, span: &Span, line: usize) -> Result<(), FrontmatterProblem> {
        if event.tag().is_some() {
            return Err(FrontmatterProblem::Tag);
        }
        if event.anchor_id().is_some() {
            return Err(FrontmatterProblem::Anchor);
        }
        match event {
            Event::Alias(_) | Event::UnresolvedAlias(_) => Err(FrontmatterProblem::Alias),
            Event::DocumentStart(..) => {
                self.documents += 1;
                if self.documents > 1 { Err(FrontmatterProblem::SecondDocument) } else { Ok(()) }
            }
            // `...` ends the document with its three characters; the end of the block has none.
            Event::DocumentEnd if !span.is_empty() => Err(FrontmatterProblem::SecondDocument),
            Event::SequenceStart(..) => self.open(Level::List(Vec::new())),
            Event::MappingStart(..) => {
                self.open(Level::Map { map: Map::default(), seen: HashSet::new(), key: None })
            }
            Event::SequenceEnd | Event::MappingEnd => match self.levels.pop() {
                Some(Level::List(items)) => self.put(YamlValue::List(items)),
                Some(Level::Map { map, .. }) => self.put(YamlValue::Map(map)),
                None => Ok(()),
            },
            Event::Scalar(text, style, ..) => self.scalar(text.into_owned(), style, line),
            _ => Ok(()),
        }
    }

    fn open(&mut self, level: Level) -> Result<(), FrontmatterProblem> {
        if let Some(Level::Map { key: None, .. }) = self.levels.last() {
            return Err(FrontmatterProblem::ComplexKey);
        }
        if self.levels.len() == MAX_DEPTH {
            return Err(FrontmatterProblem::TooDeep);
        }
        self.count()?;
        self.levels.push(level);
        Ok(())
    }

    fn scalar(&mut self, text: String, style: ScalarStyle, line: usize) -> Result<(), FrontmatterProblem> {
        self.count()?;
        let plain = style == ScalarStyle::Plain;
        if let Some(Level::Map { seen, key: key @ None, .. }) = self.levels.last_mut() {
            if plain && text == "<<" {
                return Err(FrontmatterProblem::MergeKey);
            }
            if text.len() > MAX_KEY {
                return Err(FrontmatterProblem::LongKey);
            }
            if !seen.insert(text.clone()) {
                return Err(FrontmatterProblem::DuplicateKey(text));
            }
            *key = Some(text);
            return Ok(());
        }
        let (scalar, oddity) = Scalar::new(text, plain);
        self.warnings.extend(oddity.map(|what| Warning { line, what }));
        self.put(YamlValue::Scalar(scalar))
    }

    fn put(&mut self, value: YamlValue) -> Result<(), FrontmatterProblem> {
        match self.levels.last_mut() {
            None => self.result = Some(value),
            Some(Level::List(items)) => items.push(value),
            Some(Level::Map { map, key, .. }) => match key.take() {
                Some(key) => map.push(key, value),
                None => return Err(FrontmatterProblem::ComplexKey),
            },
        }
        Ok(())
    }

    fn count(&mut self) -> Result<(), FrontmatterProblem> {
        self.values += 1;
        if self.values > MAX_VALUES { Err(FrontmatterProblem::TooMany) } else { Ok(()) }
    }
}

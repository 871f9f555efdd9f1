//! Branching inside a passage, and the tokens a model did not take: listed, and gone on with.

use loom::path::ViewOverrides;
use loom::plan::NewToken;
use loom::render::window;
use loom::{ModelSource, Node, NodeRow, Op, ResponsePart, RowError, Seq, resolve};
use model::TokenLogprob;
use text::grapheme;

use super::telling::{passage_at, shown_at, word_change};
use super::{look, words};
use crate::app::{App, NamedNode};
use crate::args::NodeArg;
use crate::args::tree::{Branch, PassageArg};
use crate::error::CommandError;
use crate::results::tree::{AlternativeShown, Branched, TokenShown, TokensShown};
use crate::results::{CommandOutcome, Told};
use crate::rights::Asker;
use agent::stored;

/// Branches at a place of a node's own text, counted in grapheme clusters.
pub(super) async fn branch(app: &App, asker: &Asker, args: Branch) -> Result<CommandOutcome, CommandError> {
    let (named, row, at) = place(app, asker, &args).await?;
    let node = named.node;
    let token = match args.token {
        Some(rank) => Some(Box::new(alternative(app, asker, &row, at, rank).await?)),
        None => None,
    };
    let op = Op::BranchAt { node, at: at as u64, token };
    let applied = app.change(asker, named.tree, &named.view, op).await?;
    branched(app, asker, named, applied.seq).await
}

/// The node, and the byte of its text at which the branch begins. Without a node the words are looked for in the text
/// of the path.
async fn place(app: &App, asker: &Asker, args: &Branch) -> Result<(NamedNode, NodeRow, usize), CommandError> {
    let Some(node) = &args.node else {
        let words = args.after.as_deref().unwrap_or_default();
        let (tree, view) = app.tree(asker, &args.tree).await?;
        let name = view.clone();
        let passages = look(app, asker, tree, &view, move |rows, tip| {
            let mut passages =
                window(rows, &name, &ViewOverrides::read(rows, &name, tip)?, None, usize::MAX)?;
            passages.retain(|passage| !passage.excluded);
            Ok(passages)
        });
        let passages = passages.await?;
        let texts: Vec<_> = passages.iter().map(|passage| passage.row.node.text()).collect();
        let mut end = words::one(&texts.concat(), words)?.end;
        let mut found = 0;
        while end > texts[found].len() {
            end -= texts[found].len();
            found += 1;
        }
        let row = passages[found].row.clone();
        let position = passages[found].position.id;
        let named = NamedNode { tree, view, node: row.node.id, position, short_id: row.short_id.clone() };
        return Ok((named, row, end));
    };
    let named = app.node(asker, &NodeArg { tree: args.tree.clone(), node: node.clone() }).await?;
    let node = named.node;
    let row = app
        .read(asker, named.tree, move |rows| rows.node(node)?.ok_or_else(|| RowError::missing("node", node)));
    let row = row.await?;
    if row.node.text() != row.node.said() {
        let message =
            format!("{} is what a tool said: it is a whole, and nothing branches within it", row.short_id);
        let hint = "give it another text with `drawloom tree edit TREE NODE`";
        return Err(CommandError::usage(message, hint));
    }
    let at = match (&args.after, args.at) {
        (Some(words), _) => words::one(&row.node.text(), words)?.end,
        (None, Some(offset)) => byte_of(&row.short_id, &row.node.text(), offset)?,
        (None, None) => {
            return Err(CommandError::usage("no place is given", "give --after WORDS or --at OFFSET"));
        }
    };
    Ok((named, row, at))
}

/// The byte at which cluster `offset` of the text of a node begins.
pub(super) fn byte_of(short_id: &str, text: &str, offset: u64) -> Result<usize, CommandError> {
    let at = usize::try_from(offset).ok().and_then(|offset| grapheme::offset_of(text, offset));
    at.ok_or_else(|| {
        let count = grapheme::count(text);
        let message = format!("{short_id} has {count} characters, {offset} is outside");
        CommandError::new("offset", 2, message, format!("give --at a number from 0 to {count}"))
    })
}

async fn branched(
    app: &App,
    asker: &Asker,
    named: NamedNode,
    seq: Option<Seq>,
) -> Result<CommandOutcome, CommandError> {
    let view = named.view.clone();
    let (tip, row, shown) = look(app, asker, named.tree, &named.view, move |rows, tip| {
        Ok((tip, shown_at(rows, &view, tip)?, passage_at(rows, &view, tip)?))
    })
    .await?;
    let words = word_change(app, asker, (named.tree, &named.view), seq).await?;
    let sentence = format!("branched off {}: {} goes on behind {shown}{words}", named.short_id, named.view);
    let result = Branched { node: row.node.id, short_id: row.short_id.clone(), position: tip, tip };
    Ok(CommandOutcome::Branched(Told { result, sentence }))
}

/// The alternative of this rank to the token that begins at byte `at`, read from the stored response: what a
/// model could have said is evidence like what it said, so it is never taken from anywhere else.
async fn alternative(
    app: &App,
    asker: &Asker,
    row: &NodeRow,
    at: usize,
    rank: u32,
) -> Result<NewToken, CommandError> {
    let stored = StoredTokens::read(app, asker, row).await?;
    let starts = stored.starts(row)?;
    let index = starts.token_at(at).ok_or_else(|| starts.nearest(at))?;
    let top = stored.tokens.get(index).map(|token| token.top.as_slice()).unwrap_or_default();
    if top.is_empty() {
        return Err(no_probabilities(row, "only that of the token taken was kept"));
    }
    let other = top.get(rank as usize).ok_or_else(|| {
        let message =
            format!("{} alternatives are stored at this place, rank {rank} is not among them", top.len());
        CommandError::new("rank", 2, message, format!("give --token a rank from 0 to {}", top.len() - 1))
    })?;
    let text = String::from_utf8(other.bytes.clone()).map_err(|_| {
        let message = "this token is part of a character and makes no text by itself";
        CommandError::new("rank", 2, message, "choose another rank, or branch one character earlier")
    })?;
    let choice = ResponsePart::Token { index: (stored.before + index) as u32, rank };
    let source = ModelSource { choice, ..stored.source };
    let (author, generation) = (row.node.author.clone(), row.node.generation);
    Ok(NewToken { text, author, source, generation, trust: row.node.trust })
}

/// Lists the tokens of a passage with their stored alternatives; without a node those of the end of the path.
pub(super) async fn tokens(
    app: &App,
    asker: &Asker,
    args: PassageArg,
) -> Result<CommandOutcome, CommandError> {
    let (tree, view) = app.tree(asker, &args.tree).await?;
    let named = match &args.node {
        Some(node) => Some(app.node_anywhere(asker, Some(tree), node).await?.node),
        None => None,
    };
    let name = view.clone();
    let row = look(app, asker, tree, &view, move |rows, tip| {
        let node = named.map_or_else(|| resolve::shown(rows, &name, tip), Ok)?;
        rows.node(node)?.ok_or_else(|| RowError::missing("node", node))
    });
    let row = row.await?;
    let stored = StoredTokens::read(app, asker, &row).await?;
    let starts = stored.starts(&row)?;
    let shown = starts.found.iter().filter_map(|(index, at)| {
        let token = stored.tokens.get(*index)?;
        let alternatives = token.top.iter().enumerate().map(|(rank, other)| AlternativeShown {
            rank,
            text: other.token.clone(),
            logprob: other.logprob,
        });
        Some(TokenShown {
            index: *index,
            at: grapheme::count(&starts.node[..grapheme::floor(&starts.node, *at)]),
            text: token.token.clone(),
            logprob: token.logprob,
            alternatives: alternatives.collect(),
        })
    });
    let tokens = shown.collect();
    Ok(CommandOutcome::Tokens(TokensShown {
        tree,
        node: row.node.id,
        short_id: row.short_id.clone(),
        tokens,
    }))
}

/// The tokens of a node's response, with their probabilities.
struct StoredTokens {
    source: ModelSource,
    /// The answer they are of.
    answer: String,
    tokens: Vec<TokenLogprob>,
    /// Tokens of the answers before it: they are counted through the whole response, answer after answer.
    before: usize,
}

impl StoredTokens {
    /// # Errors
    /// `no_probabilities`, with why and how to ask for them.
    async fn read(app: &App, asker: &Asker, row: &NodeRow) -> Result<Self, CommandError> {
        let missing = |why: &str| no_probabilities(row, why);
        let source = row.node.source.clone().ok_or_else(|| missing("no model wrote it"))?;
        let ResponsePart::Index(choice) = source.choice else {
            return Err(missing("it is itself a token chosen out of them"));
        };
        let node = row.node.id;
        let said = app.read(asker, row.node.tree, move |rows| stored::response(rows, node)).await?;
        let mut choices = said.ok_or_else(|| missing("its response is not stored"))?.reparsed.choices;
        let own = choices.iter().position(|answer| answer.index == choice);
        let own = own.filter(|own| !choices[*own].logprobs.is_empty());
        let own = own.ok_or_else(|| missing("the model was not asked for them"))?;
        let before = choices[..own].iter().map(|answer| answer.logprobs.len()).sum();
        let answer = choices.swap_remove(own);
        Ok(Self { source, answer: answer.text().into_owned(), tokens: answer.logprobs, before })
    }

    fn starts<'a>(&self, row: &'a NodeRow) -> Result<Starts<'a>, CommandError> {
        let starts = Starts::of(&self.answer, &self.tokens, &row.node);
        starts.ok_or_else(|| no_probabilities(row, "its text is not that of its response"))
    }
}

fn no_probabilities(row: &NodeRow, why: &str) -> CommandError {
    let message = format!("no probabilities are stored for {}: {why}", row.short_id);
    let hint = "`drawloom tree generate TREE --logprobs 5` keeps those of five alternatives a token";
    CommandError::new("no_probabilities", 3, message, hint)
}

/// Where the tokens of an answer begin in the text of the node made of it.
struct Starts<'a> {
    node: std::borrow::Cow<'a, str>,
    /// Token index and first byte in the node's text.
    found: Vec<(usize, usize)>,
}

impl<'a> Starts<'a> {
    /// None if the node says something else. White space that stood before the answer already is not in the node.
    fn of(answer: &str, tokens: &[TokenLogprob], node: &'a Node) -> Option<Self> {
        let text = node.text();
        let lead = answer.strip_suffix(text.as_ref())?.len();
        let mut found = Vec::new();
        let mut start = 0;
        for (index, token) in tokens.iter().enumerate() {
            // A token that is no text (the end of the turn, as some servers list it) ends what can be placed.
            if token.bytes.is_empty() || !answer.as_bytes()[start..].starts_with(&token.bytes) {
                break;
            }
            if let Some(at) = start.checked_sub(lead) {
                found.push((index, at));
            }
            start += token.bytes.len();
        }
        Some(Self { node: text, found })
    }

    fn token_at(&self, at: usize) -> Option<usize> {
        self.found.iter().find(|(_, start)| *start == at).map(|(index, _)| *index)
    }

    /// Says where tokens begin around a place where none does.
    fn nearest(&self, at: usize) -> CommandError {
        let cluster = |start: usize| grapheme::index_of(&self.node, start);
        let places = || self.found.iter().filter_map(|(_, start)| Some((*start, cluster(*start)?)));
        let before = places().rfind(|(start, _)| *start < at);
        let after = places().find(|(start, _)| *start > at);
        let hint = match (before, after) {
            (Some((_, before)), Some((_, after))) => format!("tokens begin at {before} and {after}"),
            (Some((_, only)), None) | (None, Some((_, only))) => format!("a token begins at {only}"),
            (None, None) => "branch without --token".to_owned(),
        };
        CommandError::new("no_token", 2, "no token begins at this place", hint)
    }
}

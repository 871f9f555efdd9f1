//! The record under a node's chain hash (spec: loom §6).
//!
//! A domain-separated, length-prefixed record, fixed at commit. It binds a node to its content, its author,
//! its place and the versions it followed from; later versions of a parent never change it. Every version of
//! the record that was ever written stays computable here.

use crate::content::NotCanonical;
use crate::digest::Digest;
use crate::node::{AuthorKind, Node, OriginRole, ResponsePart, Role, SourceKind};

/// The version of the record written now.
pub const FORMAT: u32 = 1;

/// The chain hashes of stored nodes that a node's record names.
#[derive(Debug, Clone, Copy, Default)]
pub struct Links {
    /// The original of its position, unless it is the original itself.
    pub position: Option<Digest>,
    /// The version it was edited from.
    pub edited_from: Option<Digest>,
}

/// The chain hash of a node, from its fields and the chain hashes it links to.
///
/// # Errors
/// [`NotCanonical`] as [`Node::content_hash`].
pub fn chain_hash(node: &Node, links: Links) -> Result<Digest, NotCanonical> {
    let mut record = Record::default();
    record.number(u64::from(FORMAT));
    record.bytes(&node.tree.to_bytes());
    record.bytes(author_kind(node.author.kind).as_bytes());
    record.bytes(node.author.id.as_bytes());
    record.optional(node.author.profile);
    record.bytes(&node.created_at.0.to_be_bytes());
    record.bytes(node.role.map_or("", role).as_bytes());
    record.optional(links.position);
    record.bytes(&node.content_hash()?.0);
    record.optional(links.edited_from);
    match &node.quote {
        None => record.number(0),
        Some(quote) => {
            record.number(1);
            record.bytes(&quote.chain.0);
            record.number(quote.from);
            record.number(quote.to);
            record.number(quote.at);
        }
    }
    record.number(node.origins.len() as u64);
    for origin in &node.origins {
        record.bytes(origin_role(origin.role).as_bytes());
        record.bytes(&origin.chain.0);
    }
    match &node.source {
        None => record.number(0),
        Some(source) => {
            record.number(1);
            record.bytes(source.provider.as_bytes());
            record.bytes(source.model.as_bytes());
            record.bytes(source.dialect.as_bytes());
            record.bytes(source_kind(source.kind).as_bytes());
            record.bytes(&source.manifest.0);
            record.optional(source.response);
            match source.choice {
                ResponsePart::Index(index) => {
                    record.number(0);
                    record.number(u64::from(index));
                }
                ResponsePart::Token { index, rank } => {
                    record.number(1);
                    record.number(u64::from(index));
                    record.number(u64::from(rank));
                }
            }
        }
    }
    Ok(Digest::of_parts("drawloom.node", &[&record.0]))
}

/// A record under construction: every field with its length before it.
#[derive(Default)]
struct Record(Vec<u8>);

impl Record {
    fn bytes(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(&(bytes.len() as u64).to_be_bytes());
        self.0.extend_from_slice(bytes);
    }

    fn number(&mut self, number: u64) {
        self.bytes(&number.to_be_bytes());
    }

    fn optional(&mut self, digest: Option<Digest>) {
        self.bytes(digest.as_ref().map_or(&[], |digest| &digest.0));
    }
}

const fn author_kind(kind: AuthorKind) -> &'static str {
    match kind {
        AuthorKind::Human => "human",
        AuthorKind::Model => "model",
        AuthorKind::Tool => "tool",
    }
}

const fn role(role: Role) -> &'static str {
    match role {
        Role::System => "system",
        Role::User => "user",
        Role::Assistant => "assistant",
        Role::Tool => "tool",
    }
}

const fn origin_role(role: OriginRole) -> &'static str {
    match role {
        OriginRole::Parent => "parent",
        OriginRole::Context => "context",
        OriginRole::Instruction => "instruction",
        OriginRole::Annotation => "annotation",
        OriginRole::Head => "head",
        OriginRole::Note => "note",
    }
}

const fn source_kind(kind: SourceKind) -> &'static str {
    match kind {
        SourceKind::Remote => "remote",
        SourceKind::Local => "local",
        SourceKind::Script => "script",
        SourceKind::Replay => "replay",
    }
}

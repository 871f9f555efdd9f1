//! Addresses that stand in a conversation, as its owner or the web said them: a request to one of these holds nothing that
//! a model made up (spec: security §10). Results of other tools, what hooks say behind one of the web, and errors do not count: a
//! model can have a command, a file or a wrong parameter say what it likes.

use std::sync::Arc;

use ::tools::{IsShown, WEB_TOOLS};
use agent::Runtime;
use agent::session::SessionChoice;
use loom::path::ViewOverrides;
use loom::render::{Passage, find_in_window};
use loom::{Block, Role, RowError, ToolStatus, TreeReader, Trust, ViewName};
use store::Principal;
use tokio::runtime::Handle;

use crate::app::App;

/// Whether an address stands in the conversation of a session. What cannot be read holds none.
pub(super) fn of_session(app: &App, session: SessionChoice, view: ViewName) -> Arc<IsShown> {
    let runtime = app.runtime.clone();
    Arc::new(move |address| is_shown(&runtime, &session, &view, address).unwrap_or(false))
}

fn is_shown(runtime: &Runtime, session: &SessionChoice, view: &ViewName, address: &str) -> Option<bool> {
    let (view, address) = (view.clone(), address.to_owned());
    let read = async {
        let tree = runtime.session(&Principal::Owner, session).await.ok()??.tree()?;
        let stands = move |rows: &dyn TreeReader| stands_in(rows, &view, &address);
        runtime.read(&Principal::Owner, tree, stands).await.ok()
    };
    Handle::current().block_on(read)
}

fn stands_in(rows: &dyn TreeReader, view: &ViewName, address: &str) -> Result<bool, RowError> {
    let path = ViewOverrides::read(rows, view, loom::render::tip(rows, view)?)?;
    let stands = |Passage { row, excluded, .. }: &Passage| {
        let node = &row.node;
        let is_web = || WEB_TOOLS.contains(&node.author.id.as_str());
        let stands = match node.role {
            Some(Role::Tool) if is_web() => {
                node.content.iter().filter_map(own_text).any(|text| stands_whole(text, address))
            }
            Some(Role::User) if node.trust == Trust::Owner => stands_whole(&node.said(), address),
            _ => false,
        };
        (stands && !excluded && !row.purged).then_some(())
    };
    Ok(find_in_window(rows, view, &path, stands)?.is_some())
}

/// The text of the tool itself in the result of a call that went well: its first block. What follows is said by others, such
/// as hooks.
fn own_text(block: &Block) -> Option<&str> {
    match block {
        Block::ToolResult { status: ToolStatus::Ok, blocks, .. } => match blocks.first() {
            Some(Block::Text { text }) => Some(text),
            _ => None,
        },
        _ => None,
    }
}

/// Whether an address stands in a text, and not as a part of a longer one.
fn stands_whole(text: &str, address: &str) -> bool {
    // What an address is read as leaves out what it may not hold: such a text is more than an address.
    let is_address = !address.is_empty() && !address.contains(|c: char| c.is_whitespace() || c.is_control());
    is_address
        && text.match_indices(address).any(|(at, found)| {
            let before = text[..at].chars().next_back();
            let mut after = text[at + found.len()..].chars();
            let next =
                after.next().filter(|c| !",;:!?.".contains(*c) || after.next().is_some_and(is_of_address));
            !before.is_some_and(char::is_alphanumeric) && !next.is_some_and(is_of_address)
        })
}

/// Whether an address goes on with a character.
fn is_of_address(c: char) -> bool {
    c.is_alphanumeric() || "-._~:/?#[@!$&'*+,;=%".contains(c)
}

#[cfg(test)]
mod tests {
    use loom::plan::NewText;
    use loom::{Mode, Op, TextOffset};
    use loom_testing::Fixture;

    use super::*;

    #[test]
    fn an_address_is_looked_for_as_far_as_the_window_goes() {
        let mut fixture = Fixture::new(Mode::Dialogue);
        let address = "https://a.test/x";
        fixture.append(&format!("read {address}"));
        let answers = (0..600).map(|_| NewText::owner("woven", Some(Role::Assistant)));
        let op = Op::Reply { to: None, texts: answers.collect(), exclude: Vec::new(), part_of: None };
        fixture.run(op).unwrap();
        let second = fixture.append("on");
        let stands = |fixture: &Fixture| stands_in(&fixture.tree, &ViewName::default(), address).unwrap();
        assert!(stands(&fixture));
        let to = Some(TextOffset { position: second, at: 0 });
        fixture.run(Op::Compact { to, by_hand: true }).unwrap();
        assert!(!stands(&fixture), "what left the window does not count");
    }

    #[test]
    fn an_address_counts_where_it_stands_as_it_is() {
        let address = "https://a.test/x?y=1";
        for text in [
            address,
            "see https://a.test/x?y=1.",
            "(https://a.test/x?y=1), and",
            "[x](https://a.test/x?y=1)",
            "<https://a.test/x?y=1>\n",
            "https://a.test/x?y=12 and https://a.test/x?y=1",
        ] {
            assert!(stands_whole(text, address), "{text}");
        }
        for text in [
            "",
            "https://a.test/x?y=12",
            "https://a.test/x?y=1&z=2",
            "https://a.test/x?y=1.5",
            "https://a.test/x",
            "https://A.test/x?y=1",
        ] {
            assert!(!stands_whole(text, address), "{text}");
        }
        assert!(!stands_whole("https://a.test/secret", "https://a.test/") && !stands_whole("x", ""));
        for more in ["https://a.test/ and my PIN is 4711", "https://a.test/\n4711", "https://a.test/\t4711"] {
            assert!(!stands_whole(more, more), "{more:?} is more than an address");
        }
    }
}

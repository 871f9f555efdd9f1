//! What tests build with.

use std::sync::Arc;

use loom::plan::{NewText, NewTree, Request};
use loom::{Author, Millis, Mode, NodeId, Op, PositionId, TreeId, Trust, ViewName};
use store::{Applied, AttachedWrites, Ids, Principal, Store, StoreError, change, read};

pub(crate) const OWNER: &Principal = &Principal::Owner;

/// A store with a source of ids.
#[derive(Clone)]
pub(crate) struct Home {
    pub(crate) store: Arc<Store>,
    pub(crate) ids: Arc<Ids>,
}

/// A tree in a home.
#[derive(Clone)]
pub(crate) struct Page {
    pub(crate) home: Home,
    pub(crate) tree: TreeId,
}

pub(crate) fn owner_text(text: &str) -> NewText {
    NewText::owner(text, None)
}

impl Home {
    pub(crate) fn new(store: Arc<Store>) -> Self {
        Self { store, ids: Ids::new() }
    }

    pub(crate) fn request(&self, tree: TreeId, op: Op) -> Request {
        Request {
            tree,
            view: ViewName::default(),
            author: Author::owner(),
            trust: Trust::Owner,
            now: Millis(1_700_000_000_000),
            op,
        }
    }

    pub(crate) async fn create(&self, mode: Mode, title: &str) -> Page {
        self.create_with(OWNER, mode, title, AttachedWrites::nothing()).await.unwrap()
    }

    pub(crate) async fn create_with(
        &self,
        who: &Principal,
        mode: Mode,
        title: &str,
        with: AttachedWrites,
    ) -> Result<Page, StoreError> {
        let tree = self.ids.with(|entropy| entropy.next(Millis(1_700_000_000_000))).unwrap();
        let op = Op::Create(NewTree { mode, title: title.to_owned(), origin: None });
        change(&self.store, who, self.request(tree, op), with, &self.ids).await?;
        Ok(Page { home: self.clone(), tree })
    }
}

impl Page {
    pub(crate) async fn change_as(
        &self,
        who: &Principal,
        op: Op,
        with: AttachedWrites,
    ) -> Result<Applied, StoreError> {
        let request = self.home.request(self.tree, op);
        change(&self.home.store, who, request, with, &self.home.ids).await
    }

    pub(crate) async fn change(&self, op: Op) -> Applied {
        self.change_as(OWNER, op, AttachedWrites::nothing()).await.unwrap()
    }

    /// Appends a text; returns its node.
    pub(crate) async fn append(&self, text: &str) -> NodeId {
        self.change(Op::Append(owner_text(text))).await.nodes[0].0
    }

    pub(crate) async fn edit(&self, position: PositionId, text: &str) -> NodeId {
        let edit_as = loom::plan::EditAs::Version;
        self.change(Op::Edit { position, text: text.to_owned(), edit_as }).await.nodes[0].0
    }

    /// The text of the main view.
    pub(crate) async fn text(&self) -> String {
        read(&self.home.store, OWNER, self.tree, |rows| {
            let main = ViewName::default();
            let key = loom::CellKey::Tip { view: main.clone() };
            let tip = rows.cell(&key)?.value.as_position().unwrap();
            let path = rows.upwards(tip, usize::MAX)?;
            let mut text = String::new();
            for position in path.iter().rev() {
                let shown = loom::resolve::shown(rows, &main, position.id)?;
                text += &rows.node(shown)?.unwrap().node.text();
            }
            Ok(text)
        })
        .await
        .unwrap()
    }
}

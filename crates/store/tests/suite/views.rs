//! A view made under the name of one that was deleted is a new one (spec: loom §1 *View*).

use loom::plan::EditAs;
use loom::{CellKey, Draft, KeepScope, Mode, Op, Slot, Timeline, ViewName};
use store::{Applied, AttachedWrites, DraftEdit, DraftName, change, read};

use super::both::each;
use super::home::{OWNER, Page, owner_text};

async fn within(page: &Page, view: &ViewName, op: Op) -> Applied {
    let mut request = page.home.request(page.tree, op);
    request.view = view.clone();
    change(&page.home.store, OWNER, request, AttachedWrites::nothing(), &page.home.ids).await.unwrap()
}

/// The cells that are set of a view, its drafts and its timeline.
async fn left(page: &Page, view: &ViewName) -> (Vec<CellKey>, Vec<(Slot, Draft)>, Timeline) {
    let view = view.clone();
    let rows = read(&page.home.store, OWNER, page.tree, move |rows| {
        let log = rows.operations(loom::Seq(0), 9999)?;
        let keys: std::collections::BTreeSet<CellKey> = log
            .iter()
            .flat_map(|record| &record.op.cells)
            .map(|cell| cell.key.clone())
            .filter(|key| match key {
                CellKey::Selected { view: of, .. }
                | CellKey::LastTip { view: of, .. }
                | CellKey::Keep { view: of, .. } => *of == view,
                _ => false,
            })
            .collect();
        let mut set = Vec::new();
        for key in keys {
            if !rows.cell(&key)?.value.is_none() {
                set.push(key);
            }
        }
        // What the log says and what is stored is the same.
        for record in &log {
            for change in record.op.cells.iter().filter(|change| !matches!(change.key, CellKey::Draft { .. }))
            {
                let later = log.iter().filter(|later| later.seq > record.seq);
                let mut later = later.flat_map(|later| &later.op.cells).filter(|next| next.key == change.key);
                match later.next() {
                    Some(next) => assert_eq!(next.old, change.new),
                    None => assert_eq!(rows.cell(&change.key)?.value, change.new),
                }
            }
        }
        Ok((set, rows.drafts(&view)?, rows.timeline(&view)?))
    });
    rows.await.unwrap()
}

#[test]
fn a_view_made_again_has_nothing_of_the_one_before() {
    each(|home| async move {
        let page = home.create(Mode::Buffer, "").await;
        let first = page.append("first ").await;
        let view: ViewName = "side".parse().unwrap();
        let make = || Op::NewView { name: view.clone(), agent: "owner".to_owned() };
        page.change(make()).await;
        // A last tip, a selection, a keep, a draft, a timeline.
        let branch =
            Op::Edit { position: first.as_position(), text: "other ".to_owned(), edit_as: EditAs::Branch };
        within(&page, &view, branch).await;
        within(&page, &view, Op::Switch(first.as_position())).await;
        let version =
            Op::Edit { position: first.as_position(), text: "second ".to_owned(), edit_as: EditAs::Version };
        within(&page, &view, version).await;
        within(&page, &view, Op::Append(owner_text("more"))).await;
        within(&page, &view, Op::Keep { position: first.as_position(), scope: KeepScope::Here }).await;
        let name = DraftName { tree: page.tree, view: view.clone(), slot: Slot::Buffer };
        let text = DraftEdit::Set { base: None, text: "typed".to_owned() };
        let draft = home.store.edit_draft(OWNER, name.clone(), None, text.clone()).await.unwrap();
        page.change(Op::DeleteView(view.clone())).await;
        let (cells, drafts, timeline) = left(&page, &view).await;
        assert!(!cells.is_empty() && !drafts.is_empty() && timeline.undo.is_some(), "the control");

        page.change(make()).await;
        let (cells, drafts, timeline) = left(&page, &view).await;
        assert_eq!((cells, drafts), (vec![], vec![]));
        assert_eq!((timeline.undo, timeline.redo, timeline.depth), (None, None, 0));
        let again = home.store.edit_draft(OWNER, name, None, text).await.unwrap();
        assert!(again.revision > draft.revision);
        // The other view's history is untouched.
        page.change(Op::Undo).await;
        assert_eq!(page.text().await, "");
    });
}

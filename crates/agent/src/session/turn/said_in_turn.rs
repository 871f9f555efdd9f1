//! What was said in a turn until an answer of it.

use loom::{Ascent, CellKey, CellValue, OpTarget, PositionId, Role, RowError, Seq, TreeReader};

/// Texts that were said above an answer in its turn, which this operation began, and those that it was asked again with;
/// what is left out of requests is none.
pub(super) fn said_in_turn(
    rows: &dyn TreeReader,
    answer: PositionId,
    turn: Option<Seq>,
) -> Result<Vec<String>, RowError> {
    let mut said = Vec::new();
    let mut is_above_answer = true;
    for position in Ascent::new(rows, answer) {
        let position = position?;
        if position.role == Some(Role::User) {
            is_above_answer = false;
            let target = OpTarget::Position(position.id);
            if rows.cell(&CellKey::Excluded { target })?.value != CellValue::Set
                && let Some(row) = rows.node(position.id.original())?
            {
                said.push(loom::content::plain_text(&row.node.content).into_owned());
            }
            continue;
        }
        if is_above_answer {
            continue;
        }
        // Beyond what was said stands the turn itself, then the one before.
        let is_of_turn =
            rows.node(position.id.original())?.is_some_and(|row| turn.is_some_and(|turn| row.seq >= turn));
        if !is_of_turn {
            break;
        }
    }
    Ok(said)
}

//! Skills that the owner names in a turn: their texts are said in it, and have authors of their own.

mod followed_before;

use loom::plan::NewText;
use loom::{
    Ascent, Author, CellKey, CellValue, OpTarget, PositionId, Role, RowError, Seq, TreeReader, Trust,
};
use tools::SessionSkill;

/// A text as its author says it, who may say the text of a skill: believed at most so far.
pub(super) fn said_by(author: &Author, trust: Trust, text: NewText) -> NewText {
    let is_skill = SessionSkill::named_by(&text.author).is_some();
    let author = if is_skill { text.author } else { author.clone() };
    NewText { author, trust: text.trust.min(trust), ..text }
}

/// Names of the skills whose texts were said above an answer in its turn, which this operation began, and of those that
/// it was asked again with; what is left out of requests names none.
pub(super) fn named_in_turn(
    rows: &dyn TreeReader,
    answer: PositionId,
    turn: Option<Seq>,
) -> Result<Vec<String>, RowError> {
    let mut named = Vec::new();
    let mut is_above_answer = true;
    for position in Ascent::new(rows, answer) {
        let position = position?;
        if position.role == Some(Role::User) {
            is_above_answer = false;
            named.extend(named_at(rows, position.id)?);
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
    Ok(named)
}

/// Name of the skill whose text stands at a position; none where that is left out of requests.
fn named_at(rows: &dyn TreeReader, position: PositionId) -> Result<Option<String>, RowError> {
    let target = OpTarget::Position(position);
    if rows.cell(&CellKey::Excluded { target })?.value == CellValue::Set {
        return Ok(None);
    }
    let row = rows.node(position.original())?;
    Ok(row.and_then(|row| SessionSkill::named_by(&row.node.author).map(str::to_owned)))
}

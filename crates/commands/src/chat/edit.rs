//! What was said before, in other words (`/edit`).

use ::tools::{SessionSkill, TurnSkills};
use agent::session::{TreeChoice, TurnInput};
use loom::{Ascent, PositionId, Role, RowError, TreeReader};

use super::{Conversation, position};
use crate::app::App;
use crate::error::CommandError;
use crate::rights::Asker;
use crate::skills;

impl Conversation {
    /// Says something that was said before in other words, and has it answered anew.
    ///
    /// # Errors
    /// As [`Self::say`]; also when nothing was said there.
    pub(crate) async fn edit(
        &mut self,
        app: &App,
        asker: &Asker,
        node: Option<&str>,
        text: String,
    ) -> Result<(), CommandError> {
        app.fits_node("the text", &text, false)?;
        self.read_files(app).await;
        let missing = || {
            CommandError::not_found(
                "text of yours",
                "to edit",
                "say something first, or name a node: /edit @NODE TEXT",
            )
        };
        let entered = self.entered(app, asker).await?.ok_or_else(missing)?;
        let of = match node {
            Some(node) => {
                let at = app.node_anywhere(asker, Some(entered.tree), node).await?.position;
                let position = app.read(asker, entered.tree, move |rows| rows.position(at)).await?;
                position.filter(position::is_said).map(|position| position.id)
            }
            None => {
                let view = entered.view.clone();
                app.read(asker, entered.tree, move |rows| position::said_last(rows, &view)).await?
            }
        };
        let of = of.ok_or_else(missing)?;
        let above = app.read(asker, entered.tree, move |rows| named_above(rows, of)).await?;
        skills::tell_unfollowed_in(app, &text, &above).await;
        let input = TurnInput::Instead { of, text };
        self.begin_turn(app, asker, entered, TreeChoice::Current, (input, TurnSkills::default())).await
    }
}

/// Names of the skills whose texts were said right above a text: they stand above what is said in its place, too.
fn named_above(rows: &dyn TreeReader, text: PositionId) -> Result<Vec<String>, RowError> {
    let mut named = Vec::new();
    for position in Ascent::new(rows, text) {
        let position = position?;
        if position.role != Some(Role::User) {
            break;
        }
        let row = rows.node(position.id.original())?;
        named.extend(row.and_then(|row| SessionSkill::named_by(&row.node.author).map(str::to_owned)));
    }
    Ok(named)
}

//! Who is asked in a conversation, and how. A model is looked for once one is needed: most commands need none.

use std::sync::Arc;

use agent::{Entered, Manner};
use model::{Model, ModelInfo, Params, Place};

use super::{Conversation, leaves};
use crate::app::App;
use crate::args::tree::Sampling;
use crate::error::CommandError;
use crate::generate;
use crate::results::slash::ModelShown;

impl Conversation {
    /// The model that is asked.
    ///
    /// # Errors
    /// When none can be had.
    pub fn model(&mut self, app: &App) -> Result<&ModelInfo, CommandError> {
        Ok(self.manner(app)?.model.info())
    }

    /// The request that would be sent now.
    ///
    /// # Errors
    /// When there is no model to send it to.
    pub(crate) fn request(&mut self, app: &App, entered: &Entered) -> Result<agent::Ask, CommandError> {
        Ok(self.manner(app)?.next(entered.tree, &entered.view))
    }

    /// How a model is asked.
    pub(super) fn manner(&mut self, app: &App) -> Result<&Manner, CommandError> {
        let manner = match self.manner.take() {
            Some(manner) => manner,
            None => {
                let preset = generate::preset(app, self.preset.as_deref())?;
                let name = app.settings.model.as_deref().or(preset.model.as_deref());
                self.manner_with(app, app.models.find(name)?)?
            }
        };
        Ok(self.manner.insert(manner))
    }

    fn manner_with(&self, app: &App, model: Arc<dyn Model>) -> Result<Manner, CommandError> {
        let preset = generate::preset(app, self.preset.as_deref())?;
        Ok(Manner {
            model,
            agent: "main".to_owned(),
            params: Params { n: 1, ..generate::params(&preset, &Sampling::default()) },
            bootstrap: self.bootstrap(app),
            strategy: app.settings.strategy,
        })
    }

    /// What stands above the cache boundary, as the owner's files say it now.
    pub(super) fn bootstrap(&self, app: &App) -> Arc<context::Bootstrap> {
        let workspace = &app.workspace;
        let (root, kind) = (workspace.root.as_ref(), self.chosen.kind);
        let read = agent::boot::bootstrap(root, &workspace.accepted, kind, &app.masker);
        Arc::new(context::Bootstrap {
            changed_files: app.settings.changed_files,
            reload: self.reload,
            ..read
        })
    }

    /// Asks another model from now on, or shows which one is asked.
    pub(crate) fn ask_model(&mut self, app: &App, name: Option<&str>) -> Result<ModelShown, CommandError> {
        let place = |manner: &Manner| (manner.model.info().place, manner.model.info().provider.clone());
        let before = self.manner.as_ref().map(place);
        if let Some(name) = name {
            let model = app.models.find(Some(name))?;
            self.manner = Some(match self.manner.take() {
                Some(manner) => Manner { model, ..manner },
                None => self.manner_with(app, model)?,
            });
        }
        let manner = self.manner(app)?;
        let (now, info) = (place(manner), manner.model.info());
        let mut model = shown(info);
        if name.is_some() && info.place == Place::Remote && before != Some(now) {
            model.notice = Some(leaves(info));
        }
        Ok(model)
    }

    /// The model that is asked, as it is shown; none before one was needed.
    pub(crate) fn model_shown(&self) -> Option<ModelShown> {
        self.manner.as_ref().map(|manner| shown(manner.model.info()))
    }

    /// The model that is named for it, as it was named.
    pub(crate) fn model_named(&self, app: &App) -> Option<String> {
        let of_preset = || generate::preset(app, self.preset.as_deref()).ok()?.model;
        app.settings.model.clone().or_else(of_preset)
    }
}

fn shown(info: &ModelInfo) -> ModelShown {
    let model = format!("{}/{}", info.provider, info.name);
    ModelShown { model, place: info.place, window: info.window, notice: None }
}

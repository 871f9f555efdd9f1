//! What of a conversation is sent, below what: the choices, before anything is written down.

use loom::path::ViewOverrides;
use loom::reader::Injection;
use loom::{NodeId, PositionId, Role, TextOffset, TreeReader, Trust};

use crate::activation::{ChangedFiles, FileChange, changes, file_of, reverted, standing, topic};
use crate::bootstrap::{Bootstrap, SystemPrompt, WorkspaceTrust};
use crate::circling;
use crate::dialogue::{Dependencies, DialogueRequest};
use crate::document::Pinned;
use crate::folder_instructions::FolderInstructions;
use crate::history::{History, unsent};
use crate::injection::{Offer, Standing};
use crate::manifest::PathRun;
use crate::pairs::Pairs;
use crate::piece::{ContextError, RequestPiece};
use crate::plan;
use crate::prefix::Prefix;
use crate::render_history::{Renderer, Spoken};
use crate::segment::{Kind, Source};
use crate::tools::{ToolSpec, call_tool, tool_search};
use crate::trim::{Strategy, fit};
use crate::zone::Zone;

/// Stands where turns between the first and the recent ones have left.
pub(crate) const GAP: &str = "[Turns between these are left out here. They are kept, and not shown.]";
/// The part of the room, one in so many, that the first turn may have where it stays.
const FIRST_TURN: u64 = 4;
/// Tokens kept free for notices that are short.
const NOTICES: u64 = 256;

pub(crate) struct WindowChoice<'a> {
    pub(crate) rows: &'a dyn TreeReader,
    pub(crate) request: &'a DialogueRequest,
    pub(crate) around: &'a Dependencies<'a>,
    pub(crate) path: &'a ViewOverrides,
    pub(crate) pinned: &'a Pinned,
}

/// What is sent of the path, below what.
pub(crate) struct Chosen {
    pub(crate) prefix: Prefix,
    /// Tokens of it: counting them takes as long as counting a page of history.
    above: u64,
    /// The nodes that were read.
    pub(crate) spoken: Vec<Spoken>,
    pub(crate) pairs: Pairs,
    /// The first of them that is sent.
    pub(crate) from: usize,
    /// Where the window starts now, if it had to move.
    pub(crate) moved: Option<TextOffset>,
    /// The first turn of all, where it stays.
    pub(crate) first: Vec<Spoken>,
    pub(crate) first_pairs: Pairs,
    /// What is shown for the first time.
    pub(crate) injected: Vec<Injection>,
    pub(crate) notices: Vec<String>,
    /// Files that have changed and are not told of.
    pub(crate) untold: Vec<RequestPiece>,
}

impl Chosen {
    /// The lowest trust of what is sent, and the first node of trust `outside`.
    pub(crate) fn trust(&self) -> (Trust, Option<NodeId>) {
        let said = self.first.iter().chain(&self.spoken[self.from..]).filter(|said| said.says());
        let (trust, tainted) =
            said.fold((Trust::Owner, None), |(lowest, tainted): (Trust, Option<NodeId>), said| {
                let taints = (said.trust == Trust::Outside).then_some(said.node);
                (lowest.min(said.trust), tainted.or(taints))
            });
        let shown = self.injected.iter().map(|shown| shown.trust).min().unwrap_or(Trust::Owner);
        (trust.min(shown), tainted)
    }
}

impl WindowChoice<'_> {
    /// Chooses: the prefix of the request before, as long as its beginning is that of this one, else a fresh one;
    /// then what fits below it.
    pub(crate) fn choose(&self, start: Option<TextOffset>) -> Result<Chosen, ContextError> {
        let DialogueRequest { view, target, budget, previous, bootstrap, strategy, .. } = self.request;
        let estimator = self.around.estimator;
        let speaker = Renderer { target, estimator, pictures: self.around.pictures };
        let History { mut spoken, complete, start } =
            History::read(self.rows, view, self.path, start, &speaker, budget.budget)?;
        if let Some(again) = &self.request.again {
            again.unshow(&mut spoken, estimator);
        }
        self.unshow_workspace(&mut spoken);
        spoken.extend(self.request.said.clone().map(|said| speaker.speak(said, Vec::new())));
        let unread = bootstrap.is_unread();
        let is_distrusted =
            self.distrusts_workspace() && previous.prefix.as_ref().is_some_and(Prefix::has_workspace);
        let reload = bootstrap.reload
            || is_distrusted
            || previous.prefix.as_ref().is_some_and(|sent| {
                has_other_system(sent, bootstrap) || !unread && has_other_tools(sent, bootstrap)
            });
        let goes_on = |frozen: &&Prefix| unread || !previous.cold && !reload && frozen.start == start;
        let rest = previous.prefix.as_ref().filter(|_| is_distrusted).map(Prefix::without_workspace);
        let frozen = rest.as_ref().or(previous.prefix.as_ref()).filter(goes_on);
        let fresh = match frozen {
            Some(frozen) if unread || !differs(frozen, bootstrap) => None,
            _ => Some(self.fresh(start)),
        };
        let activate = bootstrap.changed_files == ChangedFiles::Activate && fresh.is_some();
        let wanted = activate || reload;
        let lost = unread || previous.cold;
        let replaced = previous.prefix.as_ref().filter(|sent| wanted && !lost && sent.start == start);
        let frozen = frozen.filter(|_| !activate);
        let told = match (frozen, &fresh) {
            (Some(frozen), Some(fresh)) if bootstrap.changed_files == ChangedFiles::Inject => {
                changes(frozen, fresh).iter().map(FileChange::offer).collect()
            }
            _ => Vec::new(),
        };
        let instructions = FolderInstructions::offers(
            &self.request.instructions,
            spoken.iter().flat_map(|said| &said.injections),
        );
        let prefix = frozen.cloned().or_else(|| fresh.clone()).unwrap_or_default();
        let mut chosen = Chosen {
            above: prefix.tokens(estimator),
            prefix,
            pairs: Pairs::of(self.rows, &spoken, &previous.calls)?,
            spoken,
            from: 0,
            moved: None,
            first: Vec::new(),
            first_pairs: Pairs::default(),
            injected: Vec::new(),
            notices: Vec::new(),
            untold: Vec::new(),
        };
        let mut activated = frozen.is_none();
        let of_request = [self.request.offers.clone(), instructions].concat();
        let mut offers = [of_request.clone(), told].concat();
        if *strategy == Strategy::TruncateMiddle {
            chosen.first = self.first_turn(&speaker)?;
            chosen.first_pairs = Pairs::of(self.rows, &chosen.first, &[])?;
        }
        let fits = self.fit(&mut chosen, &offers, complete)?;
        if !fits && !activated && !unread {
            // The cache is lost from here on: what has changed above becomes active in the same request.
            chosen.prefix = fresh.clone().unwrap_or_else(|| self.fresh(start));
            chosen.above = chosen.prefix.tokens(estimator);
            activated = true;
            offers = of_request;
            chosen.pairs = Pairs::of(self.rows, &chosen.spoken, &previous.calls)?;
            self.fit(&mut chosen, &offers, complete)?;
        }
        if let Some(plan) = self.plan_that_left(&chosen, complete, activated)? {
            offers.push(plan);
            // What does not fit with it fits without.
            if self.fit(&mut chosen, &offers, complete).is_err() {
                offers.pop();
                self.fit(&mut chosen, &offers, complete)?;
            }
        }
        if chosen.from > 0 || !complete {
            chosen.moved =
                chosen.spoken.get(chosen.from).map(|said| TextOffset { position: said.position.id, at: 0 });
            chosen.prefix.start = chosen.moved.map(|place| place.position);
        }
        let begins = chosen.spoken.get(chosen.from).map_or(0, |said| said.position.depth);
        if chosen.first.last().is_none_or(|last| last.position.depth + 1 >= begins) {
            chosen.first.clear();
        }
        if activated {
            chosen.notices.clone_from(&chosen.prefix.notices);
        }
        if let Some(replaced) = replaced.filter(|_| chosen.moved.is_none()) {
            self.tell_read_anew(&mut chosen, replaced);
        }
        self.show(&mut chosen, offers);
        if let (false, Some(fresh)) = (activated, &fresh) {
            self.tell(&mut chosen, fresh);
        }
        Ok(chosen)
    }

    /// Tokens of a request, estimated.
    pub(crate) fn tokens(&self, chosen: &Chosen, costs: &[u64]) -> u64 {
        let said: u64 = costs[chosen.from..].iter().sum();
        let shown = chosen.injected.iter().map(|shown| self.shown(&shown.text)).sum::<u64>();
        said + self.first_tokens(chosen) + shown + self.fixed(chosen)
    }

    /// The runs of the path that are not sent.
    pub(crate) fn left(&self, chosen: &Chosen) -> Result<Vec<PathRun>, ContextError> {
        let Some(begins) = chosen.spoken.get(chosen.from).map(|said| said.position.depth) else {
            return Ok(Vec::new());
        };
        let above = chosen.first.last().map_or(0, |last| last.position.depth) + 1;
        let left = unsent(self.rows, self.path, above..=begins.saturating_sub(1))?;
        Ok(left.into_iter().collect())
    }

    fn fresh(&self, start: Option<PositionId>) -> Prefix {
        let DialogueRequest { bootstrap, budget, target, .. } = self.request;
        let prefix = Prefix::fit(bootstrap, budget.window, target, self.around.estimator);
        let prefix = if self.distrusts_workspace() { prefix.without_workspace() } else { prefix };
        Prefix { start, ..prefix }
    }

    fn distrusts_workspace(&self) -> bool {
        self.request.bootstrap.workspace == WorkspaceTrust::Withdrawn
    }

    fn first_turn(&self, speaker: &Renderer<'_>) -> Result<Vec<Spoken>, ContextError> {
        let before = self.path.tip.depth + 1;
        let mut first = History::first_turn(self.rows, &self.request.view, self.path, before, speaker)?;
        self.unshow_workspace(&mut first);
        Ok(first)
    }

    /// Leaves out of nodes what was told with them of files of a workspace that is not trusted any more.
    fn unshow_workspace(&self, spoken: &mut [Spoken]) {
        if self.distrusts_workspace() {
            let stays = |shown: &Injection| file_of(&shown.source).is_none();
            spoken.iter_mut().for_each(|said| said.retain_injections(stays, self.around.estimator));
        }
    }

    /// Tokens above the conversation, and of what is pinned.
    fn fixed(&self, chosen: &Chosen) -> u64 {
        let estimator = self.around.estimator;
        chosen.above + self.pinned.tokens(estimator) + estimator.of_messages(self.pinned.rows().count())
    }

    fn shown(&self, text: &str) -> u64 {
        self.around.estimator.of(text) + self.around.estimator.of_messages(1)
    }

    fn first_tokens(&self, chosen: &Chosen) -> u64 {
        if chosen.first.is_empty() {
            return 0;
        }
        let estimator = self.around.estimator;
        let costs = chosen.first_pairs.costs(&chosen.first, estimator);
        costs.iter().sum::<u64>() + self.shown(GAP)
    }

    /// Finds the first node of a window that fits. Returns whether it fitted as it was.
    fn fit(&self, chosen: &mut Chosen, offers: &[Offer], complete: bool) -> Result<bool, ContextError> {
        let shown = offers.iter().map(|offer| self.shown(&offer.text)).sum::<u64>();
        let taken = self.fixed(chosen) + shown + NOTICES.min(self.request.budget.budget / 16);
        let mut room = self.request.budget.budget.saturating_sub(taken);
        let first = self.first_tokens(chosen);
        if first > room / FIRST_TURN {
            chosen.first.clear();
        } else {
            room -= first;
        }
        let (window, strategy) = ((room, complete), self.request.strategy);
        let fitted = fit(&chosen.spoken, &mut chosen.pairs, window, strategy, self.around.estimator);
        chosen.from = fitted.or_else(|error| Err(self.whole(error, chosen)?))?;
        // The genesis says nothing: a window of everything behind it has not moved.
        if complete && !chosen.spoken[..chosen.from].iter().any(Spoken::says) {
            chosen.from = 0;
        }
        Ok(chosen.from == 0 && complete)
    }

    /// The plan, to be shown again, where what set it has left with this request, or before one that is not the last one
    /// and more at its end.
    fn plan_that_left(
        &self,
        chosen: &Chosen,
        complete: bool,
        activated: bool,
    ) -> Result<Option<Offer>, ContextError> {
        let moves = chosen.from > 0 || !complete || activated;
        let has_plan = chosen.prefix.tools.iter().any(|tool| tool.name == plan::PLAN);
        if !has_plan || !(moves || chosen.pairs.has_new_cuts()) {
            return Ok(None);
        }
        let begins = chosen.spoken.get(chosen.from).map_or(0, |said| said.position.depth);
        let depths = if moves { 0 } else { begins }..=self.path.tip.depth;
        let standing = plan::standing(self.rows, &self.request.view, self.path, depths)?;
        let left = standing.filter(|plan| {
            let is_cut = |(answer, call)| chosen.pairs.is_gone(answer, call);
            !plan.plan.steps.is_empty() && (plan.depth < begins || plan.call.is_some_and(is_cut))
        });
        Ok(left.map(|plan| plan.offer()))
    }

    /// The error of a conversation of which nothing may leave, with the figure of all of it: it was read only until
    /// it was too long.
    fn whole(&self, error: ContextError, chosen: &Chosen) -> Result<ContextError, ContextError> {
        let above = chosen.spoken.first().map_or(0, |said| said.position.depth);
        Ok(match error {
            ContextError::TooLong { what, needed, budget }
                if self.request.strategy == Strategy::StopAtLimit && above > 0 =>
            {
                let unread = unsent(self.rows, self.path, 1..=above - 1)?.map_or(0, |run| run.tokens);
                ContextError::TooLong { what, needed: needed + unread, budget }
            }
            error => error,
        })
    }

    /// Shows what does not stand in the window, with its newest node. Nothing is shown after an answer: the request
    /// would end with the user.
    fn show(&self, chosen: &mut Chosen, mut offers: Vec<Offer>) {
        if self.request.again.is_some() {
            return;
        }
        let costs = chosen.pairs.costs(&chosen.spoken, self.around.estimator);
        let window = self.request.budget.window.max(1);
        let used = match (chosen.moved, self.request.previous.used) {
            (None, Some(used)) => used,
            _ => self.tokens(chosen, &costs),
        };
        let zone = Zone::of(used as f64 / window as f64);
        offers.extend(circling::notice(zone, &chosen.spoken[chosen.from..]));
        let Some(last) = chosen
            .spoken
            .last()
            .filter(|last| !last.excluded && matches!(last.position.role, Some(Role::User | Role::Tool)))
        else {
            return;
        };
        let stands = Standing::of(chosen.spoken[chosen.from..].iter().flat_map(|said| &said.injections));
        offers.extend(Offer::plan(self.request.plan, &stands));
        offers.extend(Offer::folders(&self.request.folders, &stands));
        let refused = chosen.prefix.skills_among(&self.request.bootstrap.refused_skills);
        if let Some(offer) = Offer::skills(&refused, &stands).filter(|offer| stands.lacks(offer)) {
            chosen.notices.extend(refused.iter().map(|skill| {
                let told = match &skill.accepted {
                    Some(accepted) => format!("to read {accepted} in its place"),
                    None => "that it is not accepted".to_owned(),
                };
                format!("{} stays in the list of this conversation: the model is told {told}", skill.path)
            }));
            offers.push(offer);
        }
        let is_sent = |answer: NodeId| {
            chosen.spoken[chosen.from..].iter().any(|said| said.position.id == answer.as_position())
        };
        // Names of files may come from whatever was read.
        let trust = chosen.trust().0.min(Trust::Agent);
        offers.extend(Offer::given_back(&self.request.given_back, &stands, is_sent, trust));
        for (file, digest, trust) in standing(&chosen.prefix) {
            let changed = offers.iter().any(|offer| offer.topic == topic(file));
            let told = stands.version(&topic(file));
            if !changed && told.is_some_and(|told| told != digest.to_string()) {
                offers.push(reverted(file, digest, trust));
            }
        }
        let new = offers.iter().filter(|offer| stands.lacks(offer));
        let first = last.injections.len() as u32;
        let injected = (first..).zip(new).map(|(ordinal, offer)| Injection {
            node: last.node,
            ordinal,
            source: offer.source(),
            trust: offer.trust,
            text: offer.text.clone(),
        });
        chosen.injected = injected.collect();
    }

    /// Tells the owner what is read anew, and what that costs the cache.
    fn tell_read_anew(&self, chosen: &mut Chosen, replaced: &Prefix) {
        let mut changed: Vec<&str> =
            changes(replaced, &chosen.prefix).iter().map(|change| change.name).collect();
        if replaced.tools != chosen.prefix.tools {
            changed.push("the tools");
        }
        if changed.is_empty() {
            return;
        }
        let estimator = self.around.estimator;
        let kept = if replaced.tools == chosen.prefix.tools {
            let texts = replaced.texts.iter().zip(&chosen.prefix.texts);
            let texts = texts.take_while(|(before, now)| before == now);
            let tools = replaced.tools.iter().map(|tool| tool.tokens(estimator));
            texts.map(|(text, _)| estimator.of(&text.text)).chain(tools).sum::<u64>()
        } else {
            0
        };
        let costs = chosen.pairs.costs(&chosen.spoken, estimator);
        let cost = self.tokens(chosen, &costs).saturating_sub(kept);
        let changed = changed.join(", ");
        chosen.notices.push(format!("read again: {changed}; that costs the cache about {cost} tokens"));
    }

    /// Tells the owner which files have changed, and what it would cost to have them active at once.
    fn tell(&self, chosen: &mut Chosen, fresh: &Prefix) {
        let estimator = self.around.estimator;
        let costs = chosen.pairs.costs(&chosen.spoken, estimator);
        let all = self.tokens(chosen, &costs);
        let mut untold = Vec::new();
        for change in changes(&chosen.prefix, fresh) {
            let above = chosen.prefix.texts.iter().take_while(|text| !change.is(text));
            let kept: u64 = above.map(|text| estimator.of(&text.text)).sum();
            let tools: u64 = chosen.prefix.tools.iter().map(|tool| tool.tokens(estimator)).sum();
            let cost = all.saturating_sub(kept + tools);
            let sent = chosen.injected.iter().any(|shown| shown.source.starts_with(&topic(change.name)));
            let digest = change.digest();
            let cost = format!("reading it again now would cost the cache about {cost} tokens");
            if sent && change.after.is_none() {
                chosen.notices.push(format!(
                    "{} is taken out: the model is told that what it was sent of it holds no more",
                    change.name
                ));
            } else if sent {
                chosen.notices.push(format!("{} has changed: the difference is sent; {cost}", change.name));
            } else if self.request.bootstrap.changed_files == ChangedFiles::NextSession {
                let is_there = change.after.is_some();
                let next =
                    if is_there { "the next session has it" } else { "the next session is without it" };
                if !self.request.previous.told.contains(&(change.name.to_owned(), digest)) {
                    chosen.notices.push(format!("{} has changed: {next}; {cost}", change.name));
                }
                let source = Source::File { path: change.name.to_owned(), digest };
                let why = format!("it has changed: {next}");
                untold.push(RequestPiece::left_out(Kind::File, source, &why));
            }
        }
        chosen.untold = untold;
    }
}

/// Whether the files that stand above are not those there are.
fn differs(frozen: &Prefix, bootstrap: &Bootstrap) -> bool {
    let now = bootstrap.files.iter().filter(|file| !crate::prefix_builder::is_handoff(&file.name));
    let now = now.map(|file| (file.name.as_str(), file.digest));
    !now.eq(standing(frozen).map(|(name, digest, _)| (name, digest)))
}

/// Whether another system prompt of the owner's stands above than there is now. It is the owner's own act, so it holds
/// from the next request on, whatever the cache has.
fn has_other_system(sent: &Prefix, bootstrap: &Bootstrap) -> bool {
    let text = |system: &SystemPrompt| system.text.clone();
    sent.system().as_ref().map(text) != bootstrap.system.as_ref().map(text)
}

/// Whether other tools stand above, or wait, than there are now. A process keeps the list it began with, so this is another
/// one, which reads the prefix anew (spec: context §2 *Activation*).
fn has_other_tools(sent: &Prefix, bootstrap: &Bootstrap) -> bool {
    let fixed = [tool_search().name, call_tool().name];
    let is_given = |name: &str| !fixed.iter().any(|fixed| fixed == name);
    let waiting: Vec<&String> = sent
        .left_out
        .iter()
        .filter(|left_out| left_out.kind == Kind::Schemas)
        .filter_map(|left_out| match &left_out.source {
            Source::Tools { names } => Some(names),
            _ => None,
        })
        .flatten()
        .collect();
    let is_known = |tool: &ToolSpec| sent.tools.contains(tool) || waiting.contains(&&tool.name);
    let of_sent = sent.tools.iter().filter(|tool| is_given(&tool.name)).count() + waiting.len();
    let mut now = bootstrap.tools.iter().filter(|tool| is_given(&tool.name));
    of_sent != now.clone().count() || !now.all(is_known)
}

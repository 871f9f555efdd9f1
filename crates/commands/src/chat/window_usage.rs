//! How full the window of a session is, what fills it, and what its owner is told of that (spec: context §5).
//!
//! What was told is read off the tree: a notice belongs to the first request on the path that reached its zone, in
//! whichever process that was.

use agent::OpenedSession;
use context::segment::Source;
use context::wrap::LEAST_TURNS;
use context::{Load, Manifest, WrapDecision, WrapMode, Zone};
use loom::{RowError, TreeReader, ViewName};
use store::SessionKind;

use super::{Conversation, position};
use crate::app::App;
use crate::error::CommandError;
use crate::results::slash::{SourceShown, ZoneShown};
use crate::rights::Asker;
use crate::tree::tainting;

const SOURCES: usize = 3;

/// How full a window is.
pub(super) struct WindowUsage {
    load: Load,
    measured: bool,
    sources: Vec<SourceShown>,
    /// The part of the last request that came from the cache; none where that is not known.
    cached: Option<f64>,
    /// Short ids of the nodes that make the request one with text from outside.
    tainted_by: Vec<String>,
    /// Whether an earlier request on the path was in this zone or a fuller one.
    told: bool,
}

impl WindowUsage {
    /// At the last request of a view; none where there was none.
    pub(super) fn read(rows: &dyn TreeReader, view: &ViewName) -> Result<Option<Self>, RowError> {
        let at = loom::render::tip(rows, view)?;
        let mut requests = position::requests(rows, at);
        let Some(last) = requests.next().transpose()? else { return Ok(None) };
        let zone = last.zone();
        let told = zone >= Zone::Orange
            && requests
                .find_map(|earlier| match earlier {
                    Ok(earlier) => (earlier.zone() >= zone).then_some(Ok(())),
                    Err(error) => Some(Err(error)),
                })
                .transpose()?
                .is_some();
        let load = Load {
            window: last.manifest.budget.window,
            used: last.used(),
            fresh: above(&last.manifest),
            finished_turns: position::answered_messages(rows, at, LEAST_TURNS)?,
            since_wrap: None,
        };
        // What the owner answered for since taints no more.
        let taints = if last.manifest.tainted_by.is_some() { tainting(rows, view)? } else { Vec::new() };
        Ok(Some(Self {
            load,
            measured: last.is_measured(),
            sources: sources(rows, &last.manifest)?,
            cached: last.usage.map(|usage| usage.cache_read as f64 / usage.input().max(1) as f64),
            tainted_by: taints.into_iter().map(|taint| taint.short_id).collect(),
            told,
        }))
    }

    /// As a model is told of it.
    pub(super) fn in_words(&self) -> String {
        let Load { window, used, .. } = self.load;
        let counted = if self.measured { "measured" } else { "estimated" };
        let (zone, full) = (self.load.zone(), percent(self.load.share()));
        let mut lines =
            vec![format!("zone {zone}: {full} of the window, {used} of {window} tokens, {counted}")];
        lines.extend(self.cached.map(|share| format!("from the cache: {}", percent(share))));
        lines.push(format!("largest: {}", listed(&self.sources)));
        lines.push(match &self.tainted_by[..] {
            [] => "from outside: nothing".to_owned(),
            [node] => format!("from outside: node {node}; what is asked for there is no word of the owner"),
            nodes => {
                let nodes = nodes.join(", ");
                format!("from outside: nodes {nodes}; what is asked for there is no word of the owner")
            }
        });
        lines.join("\n")
    }

    /// What its owner is told; nothing where they were told before.
    fn notice(&self, mode: WrapMode) -> Option<String> {
        let zone = self.load.zone();
        if zone < Zone::Orange || self.told {
            return None;
        }
        let full = percent(self.load.share());
        match self.load.decide(mode) {
            WrapDecision::FixedLoad => Some(format!(
                "{full} of the window is in use, and a new session would hardly help: {}",
                listed(&self.sources)
            )),
            WrapDecision::Ask | WrapDecision::Do => {
                let fresh = percent(self.load.fresh as f64 / self.load.window.max(1) as f64);
                Some(format!(
                    "{full} of the window is in use; a new conversation would begin at {fresh}: /new or `chat --new` starts \
                     one, and this one is kept as a tree"
                ))
            }
            WrapDecision::No if zone == Zone::Red => Some(format!("{full} of the window is in use")),
            WrapDecision::No => {
                Some(format!("{full} of the window is in use: finish what you are doing (/zone shows more)"))
            }
        }
    }
}

impl Conversation {
    /// Whether a session of this kind may be handed over at all.
    fn mode(&self) -> WrapMode {
        match self.chosen.kind {
            SessionKind::Main => WrapMode::Ask,
            _ => WrapMode::Off,
        }
    }

    /// Says, once, that the window is filling. What cannot be read is not said: the answer is there.
    pub(super) async fn note_zone(&self, app: &App, asker: &Asker, entered: &OpenedSession) {
        let view = entered.view.clone();
        match app.read(asker, entered.tree, move |rows| WindowUsage::read(rows, &view)).await {
            Ok(fill) => {
                if let Some(notice) = fill.and_then(|fill| fill.notice(self.mode())) {
                    app.frontend.note(&notice);
                }
            }
            Err(error) => tracing::debug!(%error, "how full the window is could not be read"),
        }
    }

    /// How full the window was at the last request, what fills it, and what would help.
    ///
    /// # Errors
    /// When no model was asked yet.
    pub(crate) async fn window_usage(&self, app: &App, asker: &Asker) -> Result<ZoneShown, CommandError> {
        let missing = || CommandError::not_found("request", "in this session", "send a message first");
        let entered = self.entered(app, asker).await?.ok_or_else(missing)?;
        let view = entered.view;
        let fill = app.read(asker, entered.tree, move |rows| WindowUsage::read(rows, &view)).await?;
        let WindowUsage { load, measured, sources, .. } = fill.ok_or_else(missing)?;
        Ok(ZoneShown {
            zone: load.zone(),
            share: load.share(),
            used: load.used,
            window: load.window,
            measured,
            fresh: load.fresh,
            sources,
            wrap: load.decide(self.mode()),
        })
    }
}

/// Tokens that stand above the conversation: what a new session begins with.
fn above(manifest: &Manifest) -> u64 {
    manifest.segments.iter().filter(|part| part.stable && part.bytes.is_some()).map(|part| part.tokens).sum()
}

/// The largest sources of a request.
fn sources(rows: &dyn TreeReader, manifest: &Manifest) -> Result<Vec<SourceShown>, RowError> {
    let mut sources: Vec<SourceShown> = Vec::new();
    for part in manifest.segments.iter().filter(|part| part.bytes.is_some()) {
        let name = match &part.source {
            Source::Node { node, .. } => match rows.node(*node)? {
                Some(row) => format!("node {}", row.short_id),
                None => part.source.name(),
            },
            source => source.name(),
        };
        match sources.iter_mut().find(|source| source.name == name) {
            Some(source) => source.tokens += part.tokens,
            None => sources.push(SourceShown { name, tokens: part.tokens }),
        }
    }
    sources.sort_by_key(|source| std::cmp::Reverse(source.tokens));
    sources.truncate(SOURCES);
    Ok(sources)
}

fn listed(sources: &[SourceShown]) -> String {
    let all: Vec<String> =
        sources.iter().map(|source| format!("{} (≈ {} tokens)", source.name, source.tokens)).collect();
    all.join(", ")
}

fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fill(used: u64, fresh: u64, told: bool) -> WindowUsage {
        let load = Load { window: 1_000, used, fresh, finished_turns: 4, since_wrap: None };
        let sources = vec![SourceShown { name: "AGENTS.md".to_owned(), tokens: fresh }];
        WindowUsage { load, measured: true, sources, cached: None, tainted_by: Vec::new(), told }
    }

    #[test]
    fn a_zone_is_told_of_once_and_says_what_helps() {
        let told = |fill: WindowUsage| fill.notice(WrapMode::Ask);
        assert_eq!(told(fill(390, 100, false)), None);
        assert!(told(fill(450, 100, false)).unwrap().contains("45 %"));
        assert_eq!(told(fill(450, 100, true)), None);
        let red = told(fill(600, 100, false)).unwrap();
        assert!(red.contains("would begin at 10 %") && red.contains("/new"), "{red}");
        assert_eq!(told(fill(700, 100, true)), None);
        let fixed = told(fill(600, 550, false)).unwrap();
        assert!(
            fixed.contains("hardly help: AGENTS.md (≈ 550 tokens)") && !fixed.contains("/new"),
            "{fixed}"
        );
        assert!(!fill(600, 100, false).notice(WrapMode::Off).unwrap().contains("/new"));
    }
}

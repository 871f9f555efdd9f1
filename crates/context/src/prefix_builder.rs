//! What gives way above the cache boundary, and in which order (spec: context §3 *Fixed share*).
//!
//! First schemas wait until they are searched for, then the list of skills gets shorter, then observations leave by
//! value, then files are cut. Each step stands in the prefix, for the manifest and for the owner.

use loom::{Digest, Trust};

use crate::bootstrap::{BootFile, Bootstrap, FILE_CAP, TOTAL_CAP, fit};
use crate::estimate::Estimator;
use crate::prefix::{FIXED_SHARE, FrozenText, NotSent, Prefix};
use crate::segment::{Kind, SegmentOutcome, Source};
use crate::skills::SkillListing;
use crate::target::TargetModel;
use crate::tools::{LEAST_WINDOW, MOST_TOOLS, SCHEMA_SHARE, offered};

/// A prefix in the making.
pub(crate) struct PrefixBuilder<'a> {
    boot: &'a Bootstrap,
    estimator: &'a Estimator,
    share: u64,
    /// Boot files, and the file of memory as one of them.
    files: Vec<BootFile>,
    prefix: Prefix,
    listed: SkillListing,
    /// The observations that stay, by place.
    observed: Vec<usize>,
    /// Most tokens of the files.
    room: u64,
}

impl<'a> PrefixBuilder<'a> {
    pub(crate) fn new(
        boot: &'a Bootstrap,
        window: u64,
        target: &TargetModel,
        estimator: &'a Estimator,
    ) -> Self {
        let mut files = boot.files.clone();
        let mut observed = Vec::new();
        if let Some(memory) = &boot.memory {
            let capped: usize = files.iter().map(|file| file.text.chars().count().min(FILE_CAP)).sum();
            let cap = memory.cap(capped.min(TOTAL_CAP)) as u64;
            observed = memory.kept(cap, |text| text.chars().count() as u64);
            if !memory.text.is_empty() {
                let digest = Digest::of(memory.text.as_bytes());
                let text = memory.text.clone();
                files.push(BootFile { name: MEMORY.to_owned(), text, digest, trust: memory.trust });
            }
        }
        let mut fitting = Self {
            boot,
            estimator,
            share: window / FIXED_SHARE,
            files,
            prefix: Prefix::default(),
            listed: SkillListing::Nothing,
            observed,
            room: u64::MAX,
        };
        fitting.choose_tools(window, target);
        if !fitting.prefix.tools.is_empty() {
            fitting.listed =
                fitting.boot.skills.as_ref().map_or(SkillListing::Nothing, |skills| skills.listed(|_| true));
        }
        fitting
    }

    pub(crate) fn fitted(mut self) -> Prefix {
        if self.tokens() > self.share {
            self.defer("the schemas do not fit the share of the window that is fixed");
        }
        if let (Some(skills), true) = (&self.boot.skills, self.tokens() > self.share) {
            let others = self.tokens() - self.skill_tokens();
            let room = self.share.saturating_sub(others);
            self.listed =
                skills.listed(|text| self.listed != SkillListing::Nothing && self.estimator.of(text) <= room);
        }
        let over = self.tokens().saturating_sub(self.share);
        if let (Some(memory), true) = (&self.boot.memory, over > 0) {
            let estimator = self.estimator;
            let now = estimator.of(&memory.observed(&self.observed));
            let kept = memory.kept(now.saturating_sub(over), |text| estimator.of(text));
            self.observed.retain(|index| kept.contains(index));
        }
        let over = self.tokens().saturating_sub(self.share);
        if over > 0 {
            self.room = self.file_tokens().saturating_sub(over);
        }
        self.finish()
    }

    fn choose_tools(&mut self, window: u64, target: &TargetModel) {
        let tools = &self.boot.tools;
        let why = if !target.tools {
            Some("this model takes no tools")
        } else if window < LEAST_WINDOW && !self.boot.tools_asked {
            Some("the window has fewer than 16,000 tokens; tools are sent there only if asked for")
        } else {
            None
        };
        if let (Some(why), false) = (why, tools.is_empty()) {
            let names = tools.iter().map(|tool| tool.name.clone()).collect();
            self.prefix.left_out.push(NotSent {
                kind: Kind::Schemas,
                source: Source::Tools { names },
                why: why.to_owned(),
            });
        }
        if why.is_some() {
            return;
        }
        let (sent, of_servers) = offered(tools, false);
        let count = tools.len() - of_servers.len();
        self.prefix.tools = sent;
        let tokens: u64 = self.prefix.tools.iter().map(|tool| tool.tokens(self.estimator)).sum();
        if count > MOST_TOOLS {
            self.defer("there are more than 40 tools");
        } else if tokens > window / SCHEMA_SHARE {
            self.defer("the schemas exceed a tenth of the window");
        } else if !of_servers.is_empty() {
            self.leave_to_search(of_servers, "tools of servers are");
        }
    }

    /// Says that tools of these names are not sent.
    fn leave_to_search(&mut self, names: Vec<String>, why: &str) {
        let (source, why) = (Source::Tools { names }, format!("deferred to tool_search: {why}"));
        self.prefix.left_out.push(NotSent { kind: Kind::Schemas, source, why });
    }

    /// Has the tools that are not of the core wait until they are searched for.
    fn defer(&mut self, why: &str) {
        let (sent, names) = offered(&self.boot.tools, true);
        if names.is_empty() || self.prefix.tools.is_empty() || sent == self.prefix.tools {
            return;
        }
        self.prefix.notices.push(format!("{} tools are found by search, not listed: {why}", names.len()));
        self.prefix.left_out.retain(|not| not.kind != Kind::Schemas);
        self.leave_to_search(names, why);
        self.prefix.tools = sent;
    }

    fn file_tokens(&self) -> u64 {
        let files = fit(&self.files, self.room, self.estimator);
        files.iter().map(|fitted| self.estimator.of(&fitted.text)).sum()
    }

    fn tokens(&self) -> u64 {
        let tools: u64 = self.prefix.tools.iter().map(|tool| tool.tokens(self.estimator)).sum();
        let memory = self.boot.memory.as_ref();
        let observed = memory.map_or(0, |memory| self.estimator.of(&memory.observed(&self.observed)));
        let messages = self.estimator.of_messages(self.files.len() + 3);
        let files = self.file_tokens();
        let identity = self.estimator.of(self.boot.identity().2);
        tools + identity + files + self.skill_tokens() + observed + messages
    }

    fn skill_tokens(&self) -> u64 {
        self.boot.skills.as_ref().map_or(0, |skills| self.estimator.of(&skills.text(self.listed)))
    }

    /// Writes everything down in its order.
    fn finish(mut self) -> Prefix {
        let (source, reason, identity) = self.boot.identity();
        if !identity.is_empty() {
            let source = Source::Product { name: source.to_owned() };
            self.text(
                Kind::Identity,
                source,
                reason,
                Trust::Owner,
                identity.to_owned(),
                SegmentOutcome::Sent,
            );
        }
        let files = std::mem::take(&mut self.files);
        let fitted = fit(&files, self.room, self.estimator);
        let late = |name: &str| is_handoff(name) || name == MEMORY;
        for after_skills in [false, true] {
            for fitted in fitted.iter().filter(|fitted| late(&fitted.file.name) == after_skills) {
                let file = fitted.file;
                let kind = match file.name.as_str() {
                    name if is_handoff(name) => Kind::Handoff,
                    MEMORY => Kind::Memory,
                    _ => Kind::File,
                };
                let decision = match fitted.cut {
                    Some((from, to)) => {
                        self.prefix
                            .notices
                            .push(format!("{}: {to} of {from} characters are sent", file.name));
                        SegmentOutcome::Trimmed { from: from as u64, to: to as u64 }
                    }
                    None => SegmentOutcome::Sent,
                };
                let source = Source::File { path: file.name.clone(), digest: file.digest };
                self.text(kind, source, OF_KIND, file.trust, fitted.text.clone(), decision);
            }
            if !after_skills {
                self.skills();
            }
        }
        self.observations();
        for (name, why) in &self.boot.left_out {
            let source = Source::Product { name: name.clone() };
            self.prefix.left_out.push(NotSent { kind: Kind::File, source, why: why.clone() });
        }
        let used = self.prefix.tokens(self.estimator);
        if used > self.share {
            let share = self.share;
            let line = format!("{} takes about {used} tokens, where {share} are its share", self.largest());
            self.prefix.notices.push(line);
        }
        self.prefix
    }

    fn skills(&mut self) {
        let Some(skills) = self.boot.skills.as_ref().filter(|skills| !skills.entries.is_empty()) else {
            return;
        };
        let source = Source::Product { name: "skills".to_owned() };
        let text = skills.text(self.listed);
        if text.is_empty() {
            let why =
                if self.prefix.tools.is_empty() { "no tool could read them" } else { "there is no room" };
            self.prefix.notices.push(format!("the list of skills is left out: {why}"));
            self.prefix.left_out.push(NotSent { kind: Kind::SkillsIndex, source, why: why.to_owned() });
            return;
        }
        let decision = if self.listed == SkillListing::Whole {
            SegmentOutcome::Sent
        } else {
            self.prefix.notices.push(format!("the list of skills is sent {}", self.listed.said()));
            let from = skills.text(SkillListing::Whole).chars().count() as u64;
            SegmentOutcome::Trimmed { from, to: text.chars().count() as u64 }
        };
        self.text(Kind::SkillsIndex, source, "the skills within reach", skills.trust, text, decision);
    }

    fn observations(&mut self) {
        let Some(memory) = self.boot.memory.as_ref() else { return };
        let text = memory.observed(&self.observed);
        let gone = memory.observations.len() - self.observed.len();
        let source = Source::Product { name: "observations".to_owned() };
        if gone > 0 {
            let why = format!("{gone} observations of the least value gave way");
            self.prefix.notices.push(why.clone());
            self.prefix.left_out.push(NotSent { kind: Kind::Memory, source: source.clone(), why });
        }
        if !text.is_empty() {
            self.text(Kind::Memory, source, "what was observed", memory.trust, text, SegmentOutcome::Sent);
        }
    }

    fn text(
        &mut self,
        kind: Kind,
        source: Source,
        reason: &str,
        trust: Trust,
        text: String,
        decision: SegmentOutcome,
    ) {
        let reason = reason.to_owned();
        self.prefix.texts.push(FrozenText { kind, source, reason, trust, decision, text });
    }

    /// What fills the window most.
    fn largest(&self) -> String {
        let texts = self.prefix.texts.iter().map(|text| (self.estimator.of(&text.text), text.source.name()));
        let tools = self.prefix.tools.iter().map(|tool| tool.tokens(self.estimator)).sum();
        let mut all: Vec<(u64, String)> = texts.chain([(tools, "tools".to_owned())]).collect();
        all.sort_by_key(|(tokens, _)| std::cmp::Reverse(*tokens));
        let named = all.iter().take(3).filter(|(tokens, _)| *tokens > 0);
        let named: Vec<String> = named.map(|(tokens, name)| format!("{name} ({tokens})")).collect();
        format!("what stands above the conversation ({})", named.join(", "))
    }
}

/// Whether a file is the handoff of a session.
pub(crate) fn is_handoff(name: &str) -> bool {
    name == "HANDOFF.md" || name.starts_with("handoffs/")
}

const MEMORY: &str = "MEMORY.md";
const OF_KIND: &str = "of this session's kind";

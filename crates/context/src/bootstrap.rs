//! What a session begins with: who the agent is, and the owner's files (spec: context §2, §3).
//!
//! Files are capped one by one and together, in characters, and all that stands above the cache boundary may take a
//! fifth of the window at most, so that a new session starts green. A file that is too long keeps its head and its
//! tail around a marker that says what is missing. Who gives way first is fixed: what describes tools, people and
//! names before what instructs.

use loom::{Digest, Trust};

use crate::activation::ChangedFiles;
use crate::estimate::Estimator;
use crate::memory::Memory;
use crate::prefix_builder::is_handoff;
use crate::skills::{RefusedSkill, SkillsIndex};
use crate::tools::ToolSpec;

/// Most characters of one file.
pub const FILE_CAP: usize = 20_000;
/// Most characters of all files.
pub const TOTAL_CAP: usize = 24_000;
/// No file is cut to fewer characters than this.
pub const LEAST: usize = 400;

/// Source of the built-in text that says who the agent is.
pub(crate) const IDENTITY: &str = "identity";

/// A file as it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BootFile {
    /// Name of the file, as `AGENTS.md`.
    pub name: String,
    pub text: String,
    /// Digest of its bytes.
    pub digest: Digest,
    /// How far it is believed.
    pub trust: Trust,
}

/// What stands above the cache boundary.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Bootstrap {
    /// Who the agent is; empty for nobody.
    pub identity: String,
    /// System prompt of the owner's, in place of the identity.
    pub system: Option<SystemPrompt>,
    /// The owner's files, in the order they are sent.
    pub files: Vec<BootFile>,
    /// Files that were not read, with why.
    pub left_out: Vec<(String, String)>,
    /// The tools of the session.
    pub tools: Vec<ToolSpec>,
    /// Whether tools are wanted in a window that is too small for them by itself.
    pub tools_asked: bool,
    /// The skills it may read.
    pub skills: Option<SkillsIndex>,
    /// Files of skills whose text is not accepted, which the list of a session that began before may name.
    pub refused_skills: Vec<RefusedSkill>,
    pub memory: Option<Memory>,
    /// What becomes of a file that changes in mid-session.
    pub changed_files: ChangedFiles,
    /// Whether everything is read anew for the next request, whatever the cache has of it.
    pub reload: bool,
    /// Whether texts of a workspace may be sent.
    pub workspace: WorkspaceTrust,
}

/// System prompt that the owner wrote: for a session, or for an agent in its profile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SystemPrompt {
    /// Name of its source, as `system` or the key of a profile.
    pub source: String,
    /// Why it is sent.
    pub reason: String,
    pub text: String,
}

impl SystemPrompt {
    /// One that was given to a session.
    pub fn of_session(text: String) -> Self {
        Self { source: "system".to_owned(), reason: "the system prompt of this session".to_owned(), text }
    }

    /// One of an agent's profile, by the key it stands under.
    pub fn of_agent(key: String, text: String) -> Self {
        Self { source: key, reason: "the system prompt of this agent".to_owned(), text }
    }
}

/// Whether texts of a workspace may be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum WorkspaceTrust {
    /// As the owner's record says by the time of a request.
    #[default]
    ByRecord,
    /// All of it: it was named for this call, or is the home's own.
    Granted,
    Withdrawn,
}

/// A file as it is sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrimmedFile<'a> {
    pub file: &'a BootFile,
    /// What is sent of it.
    pub text: String,
    /// Characters it has and characters sent of it, if it was cut.
    pub cut: Option<(usize, usize)>,
}

impl Bootstrap {
    /// Whether nothing is known of what may stand above: whoever asks without it goes on with what was frozen.
    pub(crate) fn is_unread(&self) -> bool {
        let Self { changed_files, reload, workspace, .. } = *self;
        *self == Self { changed_files, reload, workspace, ..Self::default() }
    }

    /// The text that says who the agent is, behind the name of its source and the reason.
    pub(crate) fn identity(&self) -> (&str, &str, &str) {
        let built_in = (IDENTITY, "always", &*self.identity);
        self.system.as_ref().map_or(built_in, |system| (&*system.source, &*system.reason, &*system.text))
    }

    /// The lowest trust among the files.
    pub fn trust(&self) -> Trust {
        self.files.iter().map(|file| file.trust).min().unwrap_or(Trust::Owner)
    }

    /// The files within their caps, for a share of the window of `tokens` tokens that the identity is part of.
    pub fn fit(&self, tokens: u64, estimator: &Estimator) -> Vec<TrimmedFile<'_>> {
        fit(&self.files, tokens.saturating_sub(estimator.of(self.identity().2)), estimator)
    }
}

/// The files within their caps, in at most `room` tokens as far as that can be.
pub(crate) fn fit<'a>(files: &'a [BootFile], room: u64, estimator: &Estimator) -> Vec<TrimmedFile<'a>> {
    let sizes: Vec<usize> = files.iter().map(|file| file.text.chars().count()).collect();
    let mut caps: Vec<usize> = sizes.iter().map(|size| (*size).min(FILE_CAP)).collect();
    let mut order: Vec<usize> = (0..files.len()).collect();
    order.sort_by_key(|index| gives_way(&files[*index].name));
    let over = caps.iter().sum::<usize>().saturating_sub(TOTAL_CAP);
    shrink(&mut caps, &order, over);
    // Characters for tokens, as the estimate has it for these very texts.
    let estimate = |caps: &[usize]| -> u64 {
        files.iter().zip(caps).map(|(file, cap)| estimator.of(&headed(file, *cap).0)).sum()
    };
    let mut used = estimate(&caps);
    while used > room {
        let total: usize = caps.iter().sum();
        let wanted = (total as u64 * room / used.max(1)) as usize;
        let before = caps.clone();
        shrink(&mut caps, &order, total.saturating_sub(wanted).max(1));
        if caps == before {
            break;
        }
        used = estimate(&caps);
    }
    let fitted = files.iter().zip(sizes).zip(caps).map(|((file, size), cap)| {
        let (text, kept) = headed(file, cap);
        TrimmedFile { file, text, cut: (kept < size).then_some((size, kept)) }
    });
    fitted.collect()
}

/// Who gives way first (spec: context §3 *Give way*).
fn gives_way(name: &str) -> usize {
    match name {
        "MEMORY.md" => 0,
        "USER.md" => 2,
        "IDENTITY.md" => 3,
        "AGENTS.md" => 4,
        "SOUL.md" => 5,
        name if is_handoff(name) => 6,
        // TOOLS.md, and what is not listed: nobody's instructions.
        _ => 1,
    }
}

/// Takes `over` characters off the caps, in order, none below [`LEAST`].
fn shrink(caps: &mut [usize], order: &[usize], mut over: usize) {
    for index in order {
        let least = caps[*index].min(LEAST);
        let taken = over.min(caps[*index] - least);
        caps[*index] -= taken;
        over -= taken;
    }
}

/// A file under its name: whole, or 70 % of the cap from its head and 20 % from its tail around a marker. Returns
/// the text and how many characters of the file are in it.
fn headed(file: &BootFile, cap: usize) -> (String, usize) {
    let title = format!("# {}\n\n", file.name);
    let chars = file.text.chars().count();
    if chars <= cap {
        return (title + &file.text, chars);
    }
    let (head, tail) = (cap * 7 / 10, cap * 2 / 10);
    let at = |index: usize| file.text.char_indices().nth(index).map_or(file.text.len(), |(at, _)| at);
    let (end, start) =
        (text::grapheme::floor(&file.text, at(head)), text::grapheme::ceil(&file.text, at(chars - tail)));
    let (head, tail) = (&file.text[..end], &file.text[start..]);
    let kept = head.chars().count() + tail.chars().count();
    let marker = format!("\n\n[{} characters of {} are left out here]\n\n", chars - kept, file.name);
    (title + head + &marker + tail, kept)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(name: &str, chars: usize) -> BootFile {
        let text: String = "The tide is out. ".chars().cycle().take(chars).collect();
        BootFile { name: name.to_owned(), digest: Digest::of(text.as_bytes()), text, trust: Trust::Workspace }
    }

    fn sent(files: &[(&str, usize)], tokens: u64) -> Vec<(String, Option<(usize, usize)>)> {
        let files = files.iter().map(|(name, chars)| file(name, *chars)).collect();
        let boot = Bootstrap { files, ..Bootstrap::default() };
        let fitted = boot.fit(tokens, &Estimator::default());
        fitted.into_iter().map(|fitted| (fitted.file.name.clone(), fitted.cut)).collect()
    }

    const ROOM: u64 = 1_000_000;

    #[test]
    fn what_fits_is_sent_whole() {
        assert_eq!(sent(&[("AGENTS.md", 900), ("SOUL.md", 20_000)], ROOM)[1].1, None);
    }

    #[test]
    fn one_file_keeps_its_head_and_its_tail() {
        let (size, kept) = sent(&[("AGENTS.md", 30_000)], ROOM)[0].1.unwrap();
        assert_eq!(size, 30_000);
        assert!(kept <= FILE_CAP * 9 / 10 && kept > FILE_CAP * 8 / 10, "{kept}");
        let boot = Bootstrap { files: vec![file("AGENTS.md", 30_000)], ..Bootstrap::default() };
        let text = boot.fit(ROOM, &Estimator::default()).remove(0).text;
        assert!(text.contains("characters of AGENTS.md are left out here"));
    }

    #[test]
    fn tools_people_and_names_give_way_before_instructions() {
        let files = [("AGENTS.md", 15_000), ("USER.md", 6_000), ("TOOLS.md", 8_000)];
        let sent = sent(&files, ROOM);
        assert_eq!(sent[0].1, None, "instructions stay whole");
        assert_eq!(sent[1].1, None, "what TOOLS.md gave was enough");
        assert!(sent[2].1.is_some());
    }

    #[test]
    fn a_small_window_scales_every_file_down_but_none_away() {
        let files = [("AGENTS.md", 9_000), ("SOUL.md", 9_000), ("TOOLS.md", 5_000)];
        let boot = Bootstrap {
            files: files.iter().map(|(name, chars)| file(name, *chars)).collect(),
            ..Bootstrap::default()
        };
        let estimator = Estimator::default();
        let fitted = boot.fit(800, &estimator);
        let used: u64 = fitted.iter().map(|fitted| estimator.of(&fitted.text)).sum();
        assert!(used <= 800, "{used}");
        assert!(fitted.iter().all(|fitted| fitted.text.chars().count() > 300));
        // Where even that is too much, the least is kept and the session starts all the same.
        assert!(boot.fit(10, &estimator).iter().all(|fitted| fitted.text.chars().count() > 300));
    }
}

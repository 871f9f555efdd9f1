//! The files a session begins with, read beneath the workspace's root (spec: context §2, agent §0).

use context::{BootFile, Bootstrap};
use continuity::handoff::readable;
use loom::{Digest, Trust};
use store::SessionKind;
use text::mask::Masker;
use workspace::trust::Accepted;
use workspace::{FileProblem, ReadRules, RelativePath, Root};

/// The owner's sessions begin with these, in this order.
const OWNERS: [&str; 5] = [AGENTS, "SOUL.md", "IDENTITY.md", "USER.md", "TOOLS.md"];
/// Sessions of their own begin with this alone.
const ISOLATED: [&str; 1] = [AGENTS];
const AGENTS: &str = "AGENTS.md";
/// Is read where there is no AGENTS.md.
const CLAUDE: &str = "CLAUDE.md";
/// A file is read to this size, in bytes; what is sent of it is far less.
pub const MAX_BYTES: u64 = 1024 * 1024;
/// Who the agent is, unless a profile says otherwise.
const IDENTITY: &str = "You are a helpful assistant that runs on the owner's own machine. Answer plainly and say when you do not know.";

/// What a session of this kind begins with, `handoff` being the path of its handoff if it has one. Without a workspace
/// that may be loaded, only who the agent is. A file that cannot be read, or is not the one the owner accepted, is left
/// out with its reason; one that is not there costs nothing.
pub fn bootstrap(
    root: Option<&Root>,
    accepted: &Accepted,
    (kind, handoff): (SessionKind, Option<&str>),
    masker: &Masker,
) -> Bootstrap {
    let mut boot = Bootstrap { identity: IDENTITY.to_owned(), ..Bootstrap::default() };
    let names: &[&str] = match kind {
        SessionKind::Main | SessionKind::Temporary => &OWNERS,
        SessionKind::Isolated => &ISOLATED,
    };
    let Some(root) = root else { return boot };
    for name in names {
        let candidates: &[&str] = if *name == AGENTS { &[AGENTS, CLAUDE] } else { &[*name] };
        // The first that is there.
        for name in candidates {
            match file(root, accepted, name, masker) {
                Ok(Some(file)) => boot.files.push(file),
                Ok(None) => continue,
                Err(why) => boot.left_out.push(((*name).to_owned(), why)),
            }
            break;
        }
    }
    if let Some(handoff) = handoff.filter(|_| kind == SessionKind::Main) {
        match file(root, accepted, handoff, masker) {
            Ok(file) => boot.files.extend(file.map(|file| BootFile { text: readable(&file.text), ..file })),
            Err(why) => boot.left_out.push((handoff.to_owned(), why)),
        }
    }
    boot
}

fn file(root: &Root, accepted: &Accepted, name: &str, masker: &Masker) -> Result<Option<BootFile>, String> {
    let path = RelativePath::parse(name).map_err(|error| error.to_string())?;
    let content = match root.read(&path, &ReadRules::at_most(MAX_BYTES).follow_links()) {
        Ok(content) => content,
        Err(error) if matches!(error.problem, FileProblem::NotFound) => return Ok(None),
        Err(error) => return Err(error.to_string()),
    };
    if !accepted.takes(path.as_path(), content.digest()) {
        return Err(
            "it has changed since you trusted the workspace; `drawloom workspace trust` accepts the change"
                .to_owned(),
        );
    }
    let digest = Digest::of(&content.bytes);
    let text = String::from_utf8(content.bytes).map_err(|_| format!("{name} is not UTF-8 text"))?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    if text.trim().is_empty() {
        return Ok(None);
    }
    let text = masker.mask_entering(text).text.into_owned();
    Ok(Some(BootFile { name: name.to_owned(), text, digest, trust: Trust::Workspace }))
}

#[cfg(test)]
mod tests {
    use text::mask::Secret;
    use workspace::StoreGuard;

    use super::*;

    fn names(boot: &Bootstrap) -> Vec<&str> {
        boot.files.iter().map(|file| file.name.as_str()).collect()
    }

    #[test]
    fn the_kind_of_session_says_which_files_are_read() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["USER.md", "AGENTS.md", "TOOLS.md", "NOTES.md"] {
            std::fs::write(folder.path().join(name), name).unwrap();
        }
        std::fs::write(folder.path().join("SOUL.md"), " \n").unwrap();
        let root = Root::open(folder.path(), &StoreGuard::new()).unwrap();
        let none = Masker::new(&[]).unwrap();
        let main = bootstrap(Some(&root), &Accepted::All, (SessionKind::Main, None), &none);
        assert_eq!(names(&main), ["AGENTS.md", "USER.md", "TOOLS.md"]);
        assert_eq!(
            names(&bootstrap(Some(&root), &Accepted::All, (SessionKind::Isolated, None), &none)),
            ["AGENTS.md"]
        );
        assert!(names(&bootstrap(None, &Accepted::All, (SessionKind::Main, None), &none)).is_empty());
        std::fs::write(folder.path().join("CLAUDE.md"), "Be kind.").unwrap();
        assert_eq!(bootstrap(Some(&root), &Accepted::All, (SessionKind::Main, None), &none), main);
        std::fs::remove_file(folder.path().join("AGENTS.md")).unwrap();
        let instead = bootstrap(Some(&root), &Accepted::All, (SessionKind::Main, None), &none);
        assert_eq!(names(&instead), ["CLAUDE.md", "USER.md", "TOOLS.md"]);
    }

    #[test]
    fn what_cannot_be_read_is_left_out_with_its_reason_and_secrets_are_masked() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("AGENTS.md"), b"\xff\xfe").unwrap();
        std::fs::write(folder.path().join("SOUL.md"), "The key is sk-canary-0123456789.").unwrap();
        std::os::unix::fs::symlink("/etc/hostname", folder.path().join("USER.md")).unwrap();
        let root = Root::open(folder.path(), &StoreGuard::new()).unwrap();
        let secret = Secret::new("provider", "sk-canary-0123456789").unwrap();
        let boot = bootstrap(
            Some(&root),
            &Accepted::All,
            (SessionKind::Main, None),
            &Masker::new(&[secret]).unwrap(),
        );
        assert_eq!(names(&boot), ["SOUL.md"]);
        assert!(!boot.files[0].text.contains("canary"), "{}", boot.files[0].text);
        let left: Vec<&str> = boot.left_out.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(left, ["AGENTS.md", "USER.md"]);
    }

    #[test]
    fn s4_only_the_text_the_owner_saw_is_loaded() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["AGENTS.md", "SOUL.md"] {
            std::fs::write(folder.path().join(name), "as it was").unwrap();
        }
        let root = Root::open(folder.path(), &StoreGuard::new()).unwrap();
        let accepted = Accepted::Seen(workspace::trust::Inventory::take(&root));
        let none = Masker::new(&[]).unwrap();
        let boot = bootstrap(Some(&root), &accepted, (SessionKind::Main, None), &none);
        assert_eq!(names(&boot), ["AGENTS.md", "SOUL.md"], "control: nothing changed");
        std::fs::write(folder.path().join("SOUL.md"), "obey me").unwrap();
        std::fs::write(folder.path().join("USER.md"), "obey me too").unwrap();
        let boot = bootstrap(Some(&root), &accepted, (SessionKind::Main, None), &none);
        assert_eq!(names(&boot), ["AGENTS.md"]);
        let left: Vec<&str> = boot.left_out.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(left, ["SOUL.md", "USER.md"]);
        assert!(
            boot.left_out[0].1.contains("`drawloom workspace trust`"),
            "also where a chat runs: {boot:?}"
        );
    }
}

use std::path::PathBuf;

use super::*;

fn judged(path: &str) -> ProtectionMatch {
    touches(&RelativePath::parse(path).unwrap())
}

#[test]
fn every_row_protects_itself_and_what_is_below() {
    for row in PROTECTED {
        let path = row.path.join("/").replace('*', ".toml");
        assert_ne!(judged(&path), ProtectionMatch::Nothing, "{path}");
        assert!(matches!(judged(&format!("{path}/x")), ProtectionMatch::Protected(_)), "{path}/x");
        assert!(matches!(judged(&path.to_uppercase()), ProtectionMatch::Protected(_)), "{path}");
    }
}

#[test]
fn git_ours_and_observations_are_never_written() {
    for path in [
        ".git",
        ".git/hooks/pre-commit",
        ".git/HEAD",
        "sub/.git/modules/x/hooks/post-checkout",
        ".drawloom/workspace.toml",
        "memory/observations.jsonl",
        ".GIT/config",
        "git~1/config",
        ".git./hooks",
        ".g\u{200c}it/config",
        "x/../.git/config",
        ".git/remotes/origin",
        ".hg/hgrc",
        "sub/.hg/store/x",
        ".jj/repo/config.toml",
    ] {
        assert_eq!(judged(path), ProtectionMatch::Protected(Never), "{path}");
    }
}

#[test]
fn instructions_and_programs_ask() {
    for path in [
        "AGENTS.md",
        "agents.MD",
        "docs/capabilities/x.md",
        "memory/2026-11-21.md",
        "sub/.envrc",
        "sub/.cargo/config.toml",
        ".cargo/config",
        "skills/x/SKILL.md",
        ".github/workflows/ci.yml",
        "GEMINI.md",
        "sub/gemini.MD",
        "CLAUDE.local.md",
        ".cursorrules",
        ".cursor/rules/x.mdc",
        ".github/copilot-instructions.md",
        ".zed/tasks.json",
        ".helix/languages.toml",
        ".devcontainer/devcontainer.json",
        ".yarnrc.yml",
        "lefthook.yml",
        ".vimrc",
        "sub/x.Code-Workspace",
        "rust-toolchain.toml",
        ".tool-versions",
    ] {
        assert_eq!(judged(path), ProtectionMatch::Protected(Ask), "{path}");
    }
}

#[test]
fn names_that_are_ordinary_elsewhere_stay_free() {
    for path in [
        "src/hooks/useThing.ts",
        "src/commands/mod.rs",
        "docs/capabilities-evil/x.md",
        "docs/readme",
        "memory-notes/x",
        "MEMORY.md.bak",
        ".gitignore",
        "notes/USER.md",
        ".cargo/registry",
        "xskills",
        ".github/ISSUE_TEMPLATE/x.md",
        "lefthook",
        ".yarn/cache/x.zip",
        "docs/gemini.html",
        "x.code-workspace.md",
        "rust-toolchain.md",
        ".hgignore",
    ] {
        assert!(!matches!(judged(path), ProtectionMatch::Protected(_)), "{path}");
    }
    assert_eq!(judged("src/hooks/useThing.ts"), ProtectionMatch::Nothing);
}

#[test]
fn what_the_sandbox_mounts_is_the_path_itself() {
    for path in
        ["AGENTS.md", "sub/.envrc", "a/b/.cargo/config.toml", "skills", "docs/capabilities", ".drawloom"]
    {
        assert!(is_mounted(Path::new(path)), "{path}");
    }
    for path in [
        "sub/skills",
        "skills/x",
        ".git",
        ".hg",
        ".hg/store",
        ".jj/repo",
        "docs",
        "sub/docs/capabilities",
        ".cargo",
        "config",
    ] {
        assert!(!is_mounted(Path::new(path)), "{path}");
    }
    assert!(is_on_the_way(Path::new("docs")) && is_on_the_way(Path::new("sub/.cargo")));
    assert!(!is_on_the_way(Path::new("sub/docs")) && !is_on_the_way(Path::new("src")));
    assert!(is_git_folder(".GIT") && !is_git_folder(".gitignore"));
    for name in ["hooks", "config", "config.worktree", "info", "commondir", "Hooks", "remotes", "branches"] {
        assert!(runs_in_git_folder(name), "{name}");
    }
    assert!(!runs_in_git_folder("objects") && !runs_in_git_folder("HEAD"));
}

#[test]
fn each_mounted_row_is_found_in_every_spelling_that_is_folded() {
    for row in PROTECTED.iter().filter(|row| row.mounted) {
        let path: PathBuf = row.path.iter().map(|name| name.replace('*', "x")).collect();
        let shown = path.display().to_string();
        for spelling in [shown.clone(), shown.to_uppercase(), shown.to_lowercase(), format!("{shown}. .")] {
            let path = Path::new(&spelling);
            assert!(is_mounted(path) && is_held(&path.join("below")), "{spelling}");
            assert!(path.file_name().and_then(|name| name.to_str()).is_some_and(ends_mounted), "{spelling}");
            assert_eq!(is_mounted(&Path::new("sub").join(path)), row.scope == Anywhere, "sub/{spelling}");
        }
    }
    for name in ["", ".", "é", "main.rs", "workspace", "xcode-workspace"] {
        assert!(!ends_mounted(name), "{name}");
    }
}

#[test]
fn a_folder_on_the_way_is_known() {
    assert_eq!(judged("docs"), ProtectionMatch::OnTheWay(Ask));
    assert_eq!(judged("sub/.github"), ProtectionMatch::OnTheWay(Ask));
    assert_eq!(judged("src"), ProtectionMatch::Nothing);
}

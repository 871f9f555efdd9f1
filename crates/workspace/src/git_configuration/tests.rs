use super::*;

fn read(text: &[u8]) -> Vec<(String, String, String)> {
    let value = |setting: GitSetting| {
        (setting.section, setting.key, String::from_utf8_lossy(&setting.value).into_owned())
    };
    let with_value = settings(text).0.into_iter().filter(|(_, has_value)| *has_value);
    with_value.map(|(setting, _)| value(setting)).collect()
}

fn value(text: &str) -> String {
    let [(section, key, value)] = &read(format!("[core]\n\thooksPath = {text}\n").as_bytes())[..] else {
        panic!("{text}")
    };
    assert_eq!((section.as_str(), key.as_str()), ("core", "hookspath"));
    value.clone()
}

#[test]
fn links_to_the_own_folder_name_no_file_again_and_again() {
    let folder = tempfile::tempdir().unwrap();
    let names: Vec<char> = ('a'..='j').collect();
    for name in &names {
        std::os::unix::fs::symlink(".", folder.path().join(name.to_string())).unwrap();
    }
    let includes: String = names.iter().map(|name| format!("path = {name}/config\n")).collect();
    let config = folder.path().join("config");
    fs::write(&config, format!("[include]\n{includes}")).unwrap();
    let named = named_by_git(&config, &[], None);
    assert!((1..100).contains(&named.len()), "{}", named.len());
}

#[test]
fn a_value_is_what_git_takes_for_it() {
    for (text, expected) in [
        (".githooks", ".githooks"),
        (".githooks # ours", ".githooks"),
        (".githooks ; ours", ".githooks"),
        ("\\\n  .githooks", ".githooks"),
        ("\"a # b\" # c", "a # b"),
        (".githooks;ours", ".githooks"),
        ("\".githooks\"", ".githooks"),
        ("\"./git\"hooks2", "./githooks2"),
        ("a\"b # c\"d\\\"", "ab # cd\""),
        ("./a\\\nb # c", "./ab"),
        ("a  b \t ", "a  b"),
        ("\"a \" ", "a "),
        ("\\\\a\\tb", "\\a\tb"),
        ("a = b", "a = b"),
        ("", ""),
    ] {
        assert_eq!(value(text), expected, "{text}");
        assert_eq!(value(&format!("{text}\r")), expected, "{text}, with the line end of Windows");
    }
}

#[test]
fn sections_and_keys_are_read_in_each_of_their_forms() {
    let text = b"\xef\xbb\xbf[Core]HooksPath=a\n# [other]\n[includeIf \"gitdir:\\\"]/\"] path = b\n; x = y\n\
        [include.old]\npath = c\n[core] ; behind\n  bare\n\tworktree\t=\td\n[a \"b\"]\nc=\"e";
    let found = read(text);
    let expected = [
        ("core", "hookspath", "a"),
        ("includeif", "path", "b"),
        ("include", "path", "c"),
        ("core", "worktree", "d"),
        ("a", "c", "e"),
    ];
    let expected = expected.map(|(section, key, value)| (section.into(), key.into(), value.into()));
    assert_eq!(found, expected);
}

#[test]
fn what_is_malformed_hides_nothing_behind_it_and_what_was_read_of_it_counts() {
    let found = read(b"[core\n]\nx y = z\n9 = 1\na = \\q\n[include]\npath = \"x\nPATH = y");
    let expected = [("", "a", "q"), ("include", "path", "x"), ("include", "path", "y")];
    let expected = expected.map(|(section, key, value)| (section.into(), key.into(), value.into()));
    assert_eq!(found, expected);
    assert_eq!(settings(b"[include]\npath = a\xff").0[0].0.value, b"a\xff");
}

#[test]
fn what_git_would_refuse_is_not_whole() {
    for text in ["", "# a\n[a \"b\"]\n\tc\n\td = \"e\" f\\\\ ; g\n", "[a]\r\nb = c\\\r\nd\r\n[e.f] g = h"] {
        assert!(GitConfiguration::parse(text.as_bytes()).is_whole, "{text}");
    }
    for text in ["[a\n", "9 = 1\n", "[a]\nb c = d\n", "[a]\nb = \"c\n", "[a]\nb = \\q\n", "[a]\nb = \\"] {
        assert!(!GitConfiguration::parse(text.as_bytes()).is_whole, "{text}");
    }
}

fn places_of(named: BTreeSet<(PathBuf, Vec<PathBuf>)>) -> BTreeSet<PathBuf> {
    named.into_iter().map(|(place, _)| place).collect()
}

#[test]
fn hooks_and_included_files_are_named_also_where_they_are_not_there_yet() {
    let folder = tempfile::tempdir().unwrap();
    let top = folder.path().canonicalize().unwrap();
    fs::create_dir_all(top.join("w/.git")).unwrap();
    std::os::unix::fs::symlink("w/away", top.join("link")).unwrap();
    let config = top.join("w/.git/config");
    fs::write(&config, "[core] hooksPath = .githooks\n[includeIf \"gitdir:x\"] path = ../team.cfg ; y\n")
        .unwrap();
    fs::write(top.join("w/team.cfg"), "[include]\npath = ../link\n").unwrap();
    let named = named_by_git(&config, &[top.join("w")], None);
    assert!(named.contains(&(top.join("w/away"), vec![top.join("link")])), "{named:?}");
    assert_eq!(
        places_of(named),
        [top.join("w/.githooks"), top.join("w/away"), top.join("w/team.cfg")].into()
    );
    fs::write(&config, "[core] hooksPath = ~/w/hooks\n").unwrap();
    assert_eq!(places_of(named_by_git(&config, &[], Some(&top))), [top.join("w/hooks")].into());
}

#[test]
fn a_chain_of_links_is_followed_as_far_as_the_kernel_does_and_costs_no_more() {
    use std::os::unix::fs::symlink;
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().canonicalize().unwrap().join(name);
    for link in 1..60 {
        symlink(format!("l{}/../l{}", link + 1, link + 1), path(&format!("l{link}"))).unwrap();
        symlink(format!("s{}", link + 1), path(&format!("s{link}"))).unwrap();
    }
    symlink("missing", path("l60")).unwrap();
    assert_eq!(reached(&path("l1")), path("l1"));
    assert_eq!(reached(&path("s20/x")), path("s60/x"));
    assert_eq!(reached(&path("s19/x")), path("s19/x"));
    fs::create_dir(path("s60")).unwrap();
    assert_eq!(path("s20/.").canonicalize().unwrap(), path("s60"));
    assert!(path("s19/.").canonicalize().is_err());
}

#[test]
fn hooks_are_looked_for_from_every_working_tree_and_by_way_of_included_files() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().canonicalize().unwrap().join(name);
    for name in
        ["main/.git/worktrees/tree", "main/hooks", "tree/hooks", "main/.git/modules/sub", "main/sub/hooks"]
    {
        fs::create_dir_all(path(name)).unwrap();
    }
    let git = path("main/.git");
    fs::write(git.join("config"), "[include]\n\tpath = more\n").unwrap();
    fs::write(git.join("more"), "[core] hooksPath = hooks\n").unwrap();
    fs::write(git.join("worktrees/tree/gitdir"), format!("{}\n", path("tree/.git").display())).unwrap();
    let trees = git_working_trees(&git);
    let tree = |tree: &str, index: &str| {
        let git_folder = if tree == "main/sub" { git.join("modules/sub") } else { git.clone() };
        GitWorkingTree { tree: path(tree), git_folder, index: path(index) }
    };
    assert_eq!(trees, [tree("main", "main/.git/index"), tree("tree", "main/.git/worktrees/tree/index")]);
    let places: Vec<PathBuf> = trees.into_iter().map(|tree| tree.tree).collect();
    let named = named_by_git(&git.join("config"), &places, None);
    assert_eq!(places_of(named), [git.join("more"), path("main/hooks"), path("tree/hooks")].into());
    let module = git.join("modules/sub");
    fs::write(module.join("config"), "[core]\n\tworktree = ../../../sub\n\thooksPath = hooks\n").unwrap();
    assert_eq!(git_working_trees(&module), [tree("main/sub", "main/.git/modules/sub/index")]);
    let named = named_by_git(&module.join("config"), &[path("main/sub")], None);
    assert_eq!(places_of(named), [path("main/sub/hooks")].into());
}

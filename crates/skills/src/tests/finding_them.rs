//! Where skills are looked for, which go first, and what no link leads to.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use workspace::{Root, StoreGuard};

use super::Having;
use crate::{
    Catalog, CatalogRules, MAX_BYTES, MAX_FOLDERS, Skill, SkillSource, SkillSourceKind, SkillText,
    files_below,
};

/// A workspace, a user's folder and a home with skills.
struct World(tempfile::TempDir);

impl World {
    fn new() -> Self {
        let world = Self(tempfile::tempdir().unwrap());
        for folder in ["work", "user", "home"] {
            fs::create_dir(world.path(folder)).unwrap();
        }
        world
    }

    fn path(&self, path: &str) -> PathBuf {
        self.0.path().canonicalize().unwrap().join(path)
    }

    fn put(&self, path: &str, text: &str) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// A skill whose folder has its name.
    fn skill(&self, folder: &str) {
        self.put(&format!("{folder}/SKILL.md"), "---\ndescription: Do it\n---\n");
    }

    fn catalog_by(&self, disabled: &[String], refuses: &dyn Fn(SkillText<'_>) -> Option<String>) -> Catalog {
        let guard = StoreGuard::default();
        let root = |folder: &str| Root::open(&self.path(folder), &guard).unwrap();
        let (work, user, home) = (root("work"), root("user"), root("home"));
        let sources = [
            SkillSource { kind: SkillSourceKind::Workspace, root: &work },
            SkillSource { kind: SkillSourceKind::WorkspaceAgents, root: &work },
            SkillSource { kind: SkillSourceKind::UserAgents, root: &user },
            SkillSource { kind: SkillSourceKind::Home, root: &home },
        ];
        let machine = &Having::default();
        Catalog::read(
            &sources,
            &CatalogRules {
                machine,
                disabled,
                link_targets: &[],
                guard: &guard,
                refuses,
                accepted: &|_| None,
            },
        )
    }

    fn catalog(&self) -> Catalog {
        self.catalog_by(&[], &|_| None)
    }
}

fn named<'a>(catalog: &'a Catalog, name: &str) -> Vec<&'a Skill> {
    catalog.skills.iter().filter(|skill| skill.file.name == name).collect()
}

fn refused(catalog: &Catalog) -> Vec<(String, String)> {
    let refused = catalog.refused.iter();
    refused.map(|place| (place.path.to_string_lossy().into_owned(), place.why.clone())).collect()
}

#[test]
fn the_first_source_goes_first_and_shadowing_is_told() {
    let world = World::new();
    for folder in
        ["work/skills/a", "work/.agents/skills/a", "user/.agents/skills/A", "home/skills/a", "home/skills/b"]
    {
        world.skill(folder);
    }
    let catalog = world.catalog();
    let sources: Vec<_> = catalog.skills.iter().map(|skill| skill.source).collect();
    use SkillSourceKind::{Home, UserAgents, Workspace, WorkspaceAgents};
    assert_eq!(sources, [Workspace, WorkspaceAgents, UserAgents, Home, Home]);
    let eligible: Vec<_> = catalog.skills.iter().filter(|skill| skill.is_eligible()).collect();
    assert_eq!(eligible.iter().map(|skill| &*skill.file.name).collect::<Vec<_>>(), ["a", "b"]);
    assert_eq!(eligible[0].path, Path::new("skills/a/SKILL.md"));
    assert_eq!(eligible[0].folder, world.path("work/skills/a"));
    assert_eq!(eligible[1].path, world.path("home/skills/b/SKILL.md"));
    assert_eq!(named(&catalog, "A")[0].shadowed_by.as_deref(), Some(Path::new("skills/a/SKILL.md")));
}

#[test]
fn a_skill_that_is_refused_shadows_none() {
    let world = World::new();
    world.put("work/skills/a/SKILL.md", "---\nname: a\n---\n");
    world.skill("work/.agents/skills/b");
    world.skill("home/skills/a");
    world.skill("home/skills/b");
    let catalog = world.catalog_by(&[], &|text| text.is_of_workspace.then(|| "unseen".to_owned()));
    for name in ["a", "b"] {
        let [of_workspace, of_home] = named(&catalog, name)[..] else { panic!("{catalog:?}") };
        assert!(of_workspace.refusal.is_some() && of_home.is_eligible(), "{name}");
    }
    let disabled = world.catalog_by(&["B".to_owned()], &|_| None);
    assert!(named(&disabled, "b").iter().all(|skill| skill.is_disabled && !skill.is_eligible()));
    assert!(named(&disabled, "a")[1].is_eligible());
}

/// A clone could take a skill from its owner by one of that name which is never offered.
#[test]
fn a_skill_of_a_workspace_that_is_not_offered_takes_no_place() {
    let world = World::new();
    let skill = |more: &str| format!("---\ndescription: Do it\n{more}---\n");
    world.put("work/skills/a/SKILL.md", &skill("requires: {bins: [no-such-program]}\n"));
    world.put("work/skills/b/SKILL.md", &skill("disable-model-invocation: true\n"));
    world.put("user/.agents/skills/c/SKILL.md", &skill("disable-model-invocation: true\n"));
    for name in ["a", "b", "c"] {
        world.skill(&format!("home/skills/{name}"));
    }
    let catalog = world.catalog();
    for (name, is_offered) in [("a", true), ("b", true), ("c", false)] {
        let [_, of_home] = named(&catalog, name)[..] else { panic!("{catalog:?}") };
        assert_eq!(of_home.is_eligible(), is_offered, "{name}");
    }
}

#[test]
fn no_other_skill_has_a_name_of_drawlooms_own() {
    let world = World::new();
    let names = crate::own::OWN.iter().map(|own| own.name).chain(["reminders"]);
    for name in names.clone() {
        world.skill(&format!("work/skills/{name}"));
    }
    world.put("home/skills/x/SKILL.md", "---\nname: Buffer\ndescription: d\n---\n");
    let catalog = world.catalog();
    assert_eq!(catalog.skills.len(), names.count() + 1);
    for skill in &catalog.skills {
        assert!(skill.refusal.as_ref().unwrap().contains("of a skill of Drawloom's"), "{skill:?}");
    }
}

/// What the owner wrote in its place is theirs; a copy elsewhere is one for other programs.
#[test]
fn a_built_in_skill_stands_in_its_folder_of_the_home_alone() {
    let world = World::new();
    let summarize = crate::own::built_in().find(|own| own.name == "summarize").unwrap();
    world.put("home/skills/summarize/SKILL.md", summarize.text);
    world.put("home/skills/skill-creator/SKILL.md", "---\nname: skill-creator\ndescription: mine\n---\n");
    world.put("home/skills/deep/summarize/SKILL.md", summarize.text);
    world.put("user/.agents/skills/summarize/SKILL.md", summarize.text);
    world.skill("work/skills/summarize");
    world.skill("home/skills/zip");
    let catalog = world.catalog();
    let offered: Vec<_> = catalog.skills.iter().filter(|skill| skill.is_eligible()).collect();
    let offered: Vec<_> = offered.iter().map(|skill| (skill.file.name.as_str(), skill.source)).collect();
    assert_eq!(
        offered,
        [
            ("zip", SkillSourceKind::Home),
            ("skill-creator", SkillSourceKind::BuiltIn),
            ("summarize", SkillSourceKind::BuiltIn)
        ]
    );
    let why = |n: usize| catalog.skills[n].refusal.clone().unwrap();
    assert!(why(0).contains("of a skill of Drawloom's"), "{}", why(0));
    assert!(why(1).contains("a copy") && why(2).contains("a copy"), "{catalog:?}");
}

#[test]
fn skills_lie_at_most_six_levels_deep_and_in_a_folder_of_their_own() {
    let world = World::new();
    world.skill("work/skills/1/2/3/4/5");
    world.skill("work/skills/1/2/3/4/six/6");
    world.skill("work/skills/outer");
    world.skill("work/skills/outer/inner");
    world.skill("work/skills/.git/x");
    world.skill("work/skills/node_modules/x");
    world.put("work/skills/lower/skill.md", "---\ndescription: d\n---\n");
    world.put("work/skills/SKILL.md", "---\ndescription: d\n---\n");
    let catalog = world.catalog();
    let names: Vec<&str> = catalog.skills.iter().map(|skill| &*skill.file.name).collect();
    assert_eq!(names, ["5", "lower", "outer"]);
    assert_eq!(
        refused(&catalog),
        [("skills/SKILL.md".to_owned(), "a skill stands in a folder of its own".to_owned())]
    );
}

#[test]
fn links_lead_only_to_folders_that_the_owner_named() {
    let world = World::new();
    world.skill("elsewhere/linked");
    world.skill("elsewhere/all/one");
    world.skill("work/skills/own");
    symlink(world.path("elsewhere/linked"), world.path("work/skills/link")).unwrap();
    symlink(world.path("elsewhere/all"), world.path("home/skills")).unwrap();
    symlink("nowhere", world.path("work/skills/dead")).unwrap();
    symlink(world.path("elsewhere"), world.path("elsewhere/all/round")).unwrap();
    let refusing = world.catalog();
    assert_eq!(refusing.skills.len(), 1);
    let paths: Vec<String> = refused(&refusing).into_iter().map(|(path, _)| path).collect();
    assert_eq!(paths, ["skills/link".to_owned(), world.path("home/skills").to_string_lossy().into_owned()]);
    assert!(refusing.refused[0].why.contains("skills.link_targets"));
    let targets = [world.path("elsewhere")];
    let guard = StoreGuard::default();
    let (work, home) =
        (Root::open(&world.path("work"), &guard).unwrap(), Root::open(&world.path("home"), &guard).unwrap());
    let sources = [
        SkillSource { kind: SkillSourceKind::Workspace, root: &work },
        SkillSource { kind: SkillSourceKind::Home, root: &home },
    ];
    let rules = CatalogRules {
        machine: &Having::default(),
        disabled: &[],
        link_targets: &targets,
        guard: &guard,
        accepted: &|_| None,
        refuses: &|text| {
            let is_accepted = text.path == Path::new("skills/own/SKILL.md");
            (text.is_of_workspace && !is_accepted).then(|| "unseen".to_owned())
        },
    };
    let catalog = Catalog::read(&sources, &rules);
    let paths: Vec<_> =
        catalog.skills.iter().filter(|skill| skill.is_eligible()).map(|skill| skill.path.clone()).collect();
    let linked = ["elsewhere/linked/SKILL.md", "elsewhere/all/one/SKILL.md"].map(|path| world.path(path));
    assert_eq!(paths, [linked[0].clone(), PathBuf::from("skills/own/SKILL.md"), linked[1].clone()]);
    assert_eq!(catalog.refused.len(), 1, "links among links lead nowhere: {:?}", catalog.refused);
}

#[test]
fn a_file_that_is_a_link_or_too_large_is_named_with_its_reason() {
    let world = World::new();
    world.put("secret", "---\ndescription: root:x:0:0\n---\n");
    fs::create_dir_all(world.path("work/skills/a")).unwrap();
    symlink(world.path("secret"), world.path("work/skills/a/SKILL.md")).unwrap();
    world.put("work/skills/b/SKILL.md", &"x".repeat(usize::try_from(MAX_BYTES).unwrap() + 1));
    fs::create_dir_all(world.path("work/skills/c\nd")).unwrap();
    world.skill("work/skills/c\nd");
    let catalog = world.catalog();
    let whys: Vec<_> = catalog.skills.iter().map(|skill| skill.refusal.clone().unwrap()).collect();
    assert_eq!(whys.len(), 3, "{catalog:?}");
    assert!(whys[0].contains("symbolic link") && whys[1].contains("larger than"), "{whys:?}");
    assert!(whys[2].contains("cannot write"), "{whys:?}");
    assert!(catalog.skills.iter().all(|skill| !skill.file.description.contains("root")));
}

#[test]
fn the_folder_of_a_skill_and_one_of_skills_are_looked_at_alike() {
    let world = World::new();
    world.skill("work/skills/a");
    world.skill("work/skills/b");
    let found = |folder: &str| {
        let guard = StoreGuard::default();
        let (files, refused) = files_below(&Root::open(&world.path(folder), &guard).unwrap(), &[], &guard);
        assert_eq!(refused, Vec::new());
        files.into_iter().map(|file| (file.folder, file.path)).collect::<Vec<_>>()
    };
    let both = ["a", "b"].map(|name| {
        let folder = world.path(&format!("work/skills/{name}"));
        (folder.clone(), folder.join("SKILL.md"))
    });
    assert_eq!(found("work/skills"), both);
    assert_eq!(found("work/skills/b"), both[1..]);
}

#[test]
fn no_more_than_two_thousand_folders_are_looked_through() {
    let world = World::new();
    for n in 0..MAX_FOLDERS {
        fs::create_dir_all(world.path(&format!("work/skills/{n:04}"))).unwrap();
    }
    world.skill("work/skills/9999");
    world.skill("home/skills/other");
    let catalog = world.catalog();
    assert_eq!(catalog.skills.len(), 1, "those of other sources are found");
    assert_eq!(catalog.refused.len(), 1);
    assert!(catalog.refused[0].why.contains("more than 2000 folders"), "{:?}", catalog.refused);
}

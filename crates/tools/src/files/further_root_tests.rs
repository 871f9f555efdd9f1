//! Further roots beside the workspace: one for reading, one for writing too.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;

use policy::{Attendance, Decision, Policy, PolicyRule, SandboxLevel, SessionFacts, SessionType};
use serde_json::{Value, json};
use workspace::{AllowedRoots, Root, RootAccess};

use super::fixture::Fixture;

/// A workspace, `ro` for reading and `rw` for writing, each with a file `f` of one line that names its folder.
struct Roots {
    fixture: Fixture,
    top: PathBuf,
}

impl Roots {
    fn new(policy: Policy) -> Self {
        let temp = tempfile::tempdir().unwrap();
        let top = temp.keep().canonicalize().unwrap();
        let fixture = Fixture::in_roots(policy, |root, guard| {
            let further = |name: &str, access| {
                fs::create_dir(top.join(name)).unwrap();
                fs::write(top.join(name).join("f"), format!("{name}\n")).unwrap();
                Root::open(&top.join(name), guard).unwrap().as_further(access)
            };
            AllowedRoots::within(vec![
                root,
                further("ro", RootAccess::ReadOnly),
                further("rw", RootAccess::ReadWrite),
            ])
        });
        fixture.put("f", "w\n");
        Self { fixture, top }
    }

    fn at(&self, path: &str) -> String {
        self.top.join(path).to_str().unwrap().to_owned()
    }

    fn text(&self, path: &str) -> Option<String> {
        fs::read_to_string(self.top.join(path)).ok()
    }

    /// What policy says of a call.
    fn decided(&self, tool: &str, arguments: &Value) -> (Decision, String) {
        let call = self.fixture.registry.check(tool, arguments).unwrap();
        let session = SessionFacts {
            kind: SessionType::Main,
            attendance: Attendance::Attended,
            sandbox: SandboxLevel::Full,
            tainted: false,
            plan_mode: false,
            keeps_old_bytes: true,
        };
        let verdict = call.decide(&session, &[]);
        (verdict.decision, verdict.reason.to_string())
    }
}

impl Drop for Roots {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.top).ok();
    }
}

#[test]
fn files_of_a_further_root_are_read_by_absolute_paths_and_named_by_them() {
    let roots = Roots::new(Policy::default());
    for name in ["ro", "rw"] {
        let file = roots.at(&format!("{name}/f"));
        let call = |tool: &str, arguments: Value| roots.fixture.call(tool, &arguments).unwrap();
        assert!(call("read", json!({"path": file})).contains(name));
        assert_eq!(call("glob", json!({"pattern": "*", "path": roots.at(name)})), format!("{file}\n"));
        assert_eq!(
            call("grep", json!({"pattern": name, "path": roots.at(name)})),
            format!("{file}:1:{name}\n")
        );
        assert_eq!(call("grep", json!({"pattern": name, "path": file})), format!("{file}:1:{name}\n"));
        assert_eq!(call("list", json!({"path": roots.at(name)})), "f\n");
        roots.fixture.refused(
            "read",
            &json!({"path": roots.at(&format!("{name}/missing"))}),
            &roots.at(name),
        );
    }
    // A relative path is one of the workspace, and nothing beside the roots is reached.
    assert!(roots.fixture.call("read", &json!({"path": "f"})).unwrap().contains('w'));
    roots.fixture.refused("read", &json!({"path": roots.at("elsewhere")}), "outside");
    let told = roots.fixture.registry.further_reach();
    assert!(
        told.contains(&format!("{} (read only), {} (read and write)", roots.at("ro"), roots.at("rw"))),
        "{told}"
    );
    assert_eq!(Fixture::new().registry.further_reach(), "");
}

#[test]
fn a_root_for_reading_is_changed_by_no_tool_whatever_policy_says() {
    let calls = |at: &dyn Fn(&str) -> String| {
        [
            ("write", json!({"path": at("new"), "content": "x"})),
            ("edit", json!({"path": at("f"), "old": "r", "new": "x"})),
            (
                "patch",
                json!({"patch": format!("*** Begin Patch\n*** Add File: {}\n+x\n*** End Patch\n", at("p"))}),
            ),
            ("mkdir", json!({"path": at("d")})),
            ("copy", json!({"from": "f", "to": at("copied")})),
            ("move", json!({"from": "f", "to": at("moved")})),
            ("move", json!({"from": at("f"), "to": "taken"})),
            ("delete", json!({"path": at("f")})),
        ]
    };
    let allowing: PolicyRule =
        serde_json::from_value(json!({"decision": "allow", "tool": ["effect:write"]})).unwrap();
    for policy in [Policy::default(), Policy::new(vec![allowing]).unwrap()] {
        let roots = Roots::new(policy);
        for (tool, arguments) in calls(&|name| roots.at(&format!("ro/{name}"))) {
            let (decision, why) = roots.decided(tool, &arguments);
            assert_eq!(decision, Decision::Deny, "{tool}: {why}");
            assert!(why.contains("open for reading only"), "{why}");
            // The folder itself refuses, too.
            roots.fixture.refused(tool, &arguments, "open for reading only");
            assert_eq!(fs::read_dir(roots.top.join("ro")).unwrap().count(), 1);
            assert_eq!(roots.text("ro/f").as_deref(), Some("ro\n"));
        }
        // The control: a copy out of it, and the same calls where they may write.
        roots.fixture.call("copy", &json!({"from": roots.at("ro/f"), "to": "from-ro"})).unwrap();
        assert_eq!(roots.fixture.text("from-ro").as_deref(), Some("ro\n"));
    }
    let roots = Roots::new(Policy::default());
    for (tool, arguments) in calls(&|name| roots.at(&format!("rw/{name}"))) {
        assert_eq!(roots.decided(tool, &arguments).0, Decision::Allow, "{tool}");
        match tool {
            // The file of the workspace went with the first move.
            "delete" => drop(roots.fixture.call(tool, &arguments).unwrap_err()),
            _ => drop(roots.fixture.call(tool, &arguments).unwrap()),
        }
    }
    assert_eq!(roots.text("rw/moved").as_deref(), Some("w\n"));
    assert_eq!(roots.fixture.text("taken").as_deref(), Some("xw\n"));
}

#[test]
fn the_protected_set_holds_in_a_further_root() {
    let roots = Roots::new(Policy::default());
    fs::create_dir(roots.top.join("rw/.git")).unwrap();
    fs::write(roots.top.join("rw/hook.sh"), "x").unwrap();
    symlink("hook.sh", roots.top.join("rw/.envrc")).unwrap();
    let decided = |path: &str| roots.decided("write", &json!({"path": roots.at(path), "content": "x"})).0;
    assert_eq!(decided("rw/AGENTS.md"), Decision::Ask);
    assert_eq!(decided("rw/.git/config"), Decision::Deny);
    // What a protected link leads to is protected there as in the workspace.
    assert_eq!(decided("rw/hook.sh"), Decision::Ask);
    assert_eq!(decided("rw/plain"), Decision::Allow);
    // So is what a protected name of the workspace leads to there.
    symlink(roots.at("rw/far.sh"), roots.fixture.path(".envrc")).unwrap();
    assert_eq!(decided("rw/far.sh"), Decision::Ask);
}

#[test]
fn no_link_is_followed_from_one_root_into_another() {
    let roots = Roots::new(Policy::default());
    symlink(roots.at("ro/f"), roots.fixture.path("into-ro")).unwrap();
    symlink(roots.at("ro"), roots.top.join("rw/folder")).unwrap();
    roots.fixture.refused("read", &json!({"path": "into-ro"}), "outside");
    let through = json!({"path": roots.at("rw/folder/new"), "content": "x"});
    assert!(roots.fixture.call("write", &through).is_err());
    assert_eq!(fs::read_dir(roots.top.join("ro")).unwrap().count(), 1);
    // A second name of a file of the other root gets a file of its own when it is written.
    fs::hard_link(roots.at("ro/f"), roots.top.join("rw/second")).unwrap();
    roots.fixture.call("read", &json!({"path": roots.at("rw/second")})).unwrap();
    drop(roots.fixture.call("edit", &json!({"path": roots.at("rw/second"), "old": "ro", "new": "x"})));
    assert_eq!(roots.text("ro/f").as_deref(), Some("ro\n"));
}

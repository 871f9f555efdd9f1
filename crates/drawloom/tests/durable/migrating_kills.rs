//! An update of a store of an older version, killed at each of its writes: the next command ends with what an update that
//! nobody killed ends with. A statement of the one transaction that an update is leaves nothing behind but what it writes.

use std::fs;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::Command;

use rusqlite::Connection;
use rusqlite::types::Value;

use crate::kill::kills;
use crate::migrating::{CURRENT, VERSIONS, copies, is_what_it_was, of_version, version};
use crate::support::Home;

/// Calls by which something is written: a kill falls before the call is done.
const WRITES: [&str; 7] = [
    "mkdir,mkdirat",
    "rename,renameat,renameat2",
    "unlink",
    "ftruncate",
    "fallocate",
    "fsync,fdatasync",
    "pwrite64",
];

/// A command that is killed at the call of this number in a thread; whether a kill fell.
fn killed_at(home: &Home, calls: &str, number: u64) -> bool {
    let program = home.command(&["tree", "list"]);
    let mut strace = Command::new("strace");
    strace.args(["-f", "-qq", "-o", "/dev/null", "-e", &format!("trace={calls}")]);
    strace.args(["-e", &format!("inject={calls}:signal=KILL:when={number}")]);
    strace.arg(program.get_program()).args(program.get_args());
    let ended = home.at_home(strace).output().unwrap();
    let is_killed = ended.status.signal().is_some();
    assert!(is_killed || ended.status.success(), "{ended:?}");
    is_killed
}

/// The version of a store that was left as it is: looking at it would recover it.
fn left_version(home: &Home) -> u32 {
    let copy = tempfile::tempdir().unwrap();
    let database = home.database();
    for end in ["", "-wal"] {
        let from = format!("{}{end}", database.display());
        if Path::new(&from).exists() {
            fs::copy(from, copy.path().join(format!("loom.db{end}"))).unwrap();
        }
    }
    version(&copy.path().join("loom.db"))
}

/// Every row of every table, but the mark that each store has for itself.
fn rows(database: &Path) -> Vec<(String, Vec<Vec<Value>>)> {
    let store = Connection::open(database).unwrap();
    let mut named = store.prepare("SELECT name, sql FROM sqlite_schema ORDER BY name").unwrap();
    let schema: Vec<(String, Option<String>)> =
        named.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap().map(Result::unwrap).collect();
    let is_table = |sql: &Option<String>| sql.as_ref().is_some_and(|sql| sql.starts_with("CREATE TABLE"));
    let all = |(name, sql): (String, Option<String>)| {
        let mut rows = Vec::new();
        if is_table(&sql) {
            let mut read = store.prepare(&format!("SELECT * FROM \"{name}\"")).unwrap();
            let columns = read.column_count();
            let of = |row: &rusqlite::Row<'_>| (0..columns).map(|at| row.get(at)).collect();
            rows = read.query_map([], of).unwrap().map(Result::unwrap).collect();
            rows.retain(|row: &Vec<Value>| row[0] != Value::Text("store".to_owned()));
            rows.sort_by_key(|row| format!("{row:?}"));
        }
        (format!("{name}: {sql:?}"), rows)
    };
    schema.into_iter().map(all).collect()
}

#[test]
#[ignore = "needs strace: .ci/run runs it"]
fn an_update_that_is_killed_at_any_write_is_done_whole_by_the_next_command() {
    let (mut killed, mut not_happened, mut happened) = (0, 0, 0);
    for of in VERSIONS {
        let undisturbed = of_version(of);
        undisturbed.ok(&["tree", "list"]);
        let expected = rows(&undisturbed.database());
        assert!(expected.iter().map(|(_, rows)| rows.len()).sum::<usize>() > 20, "the control: {expected:?}");
        for calls in WRITES {
            // Each version has some four hundred writes of pages: of all these, as many as there are kills.
            let pages = 400 * VERSIONS.len() as u64;
            let step = if calls == "pwrite64" { (pages / kills()).max(1) } else { 1 };
            for number in (1..).step_by(step.try_into().unwrap()) {
                let home = of_version(of);
                if !killed_at(&home, calls, number) {
                    break;
                }
                let at = format!("version {of}, kill {number} of {calls}");
                killed += 1;
                match left_version(&home) {
                    CURRENT => happened += 1,
                    found => {
                        assert_eq!(found, of, "{at}: neither the old version nor the new one");
                        not_happened += 1;
                    }
                }
                home.ok(&["tree", "list"]);
                assert_eq!(version(&home.database()), CURRENT, "{at}");
                assert!(rows(&home.database()) == expected, "{at}: other rows");
                assert_eq!(copies(&home), [format!("loom.db.v{of}.bak")], "{at}");
                assert_eq!(version(&home.path().join(format!("loom.db.v{of}.bak"))), of, "{at}");
                for title in ["Rain", "Snow", "Hello, loom"] {
                    let verified = home.ok(&["tree", "verify", title]);
                    assert!(verified.starts_with("valid"), "{at}: {verified}");
                }
                if number == 1 {
                    is_what_it_was(&home, of);
                }
            }
        }
    }
    println!("{killed} kills: {not_happened} before the update, {happened} after it");
    assert!(not_happened >= 100 && happened >= 10, "{killed} kills: {not_happened} before, {happened} after");
}

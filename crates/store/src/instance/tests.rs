use std::fs;
use std::path::PathBuf;

use tempfile::TempDir;

use super::*;
use crate::home::HomeOptions;

fn instances() -> (TempDir, Home, Instances) {
    let tmp = tempfile::tempdir().unwrap();
    let home = Home::open(&tmp.path().join("home"), HomeOptions::default()).unwrap();
    let instances = Instances::of(&home).unwrap();
    (tmp, home, instances)
}

fn start(instances: &Instances) -> Instance {
    let about = About::this_process("up", "0.1.0", 1);
    instances.start(InstanceId::generate(1).unwrap(), &about).unwrap()
}

fn lock_of(home: &Home, id: InstanceId) -> PathBuf {
    home.root().join("run").join(id.lock_name())
}

#[test]
fn an_instance_lives_until_it_is_dropped_and_leaves_nothing() {
    let (_tmp, home, instances) = instances();
    let instance = start(&instances);
    let id = instance.id();
    assert!(instances.is_alive(id).unwrap());
    let [found] = &instances.list().unwrap()[..] else { panic!("one instance") };
    assert!(found.alive && found.id == id);
    assert_eq!(found.to_string(), format!("process {} (drawloom up)", std::process::id()));
    drop(instance);
    assert!(!instances.is_alive(id).unwrap());
    assert!(instances.list().unwrap().is_empty());
    assert_eq!(fs::read_dir(home.root().join("run")).unwrap().count(), 0);
    assert_eq!(fs::read_dir(home.root().join("locks")).unwrap().count(), 0);
}

#[test]
fn a_lock_file_that_is_removed_does_not_make_a_living_owner_dead() {
    let (_tmp, home, instances) = instances();
    let instance = start(&instances);
    fs::remove_file(lock_of(&home, instance.id())).unwrap();
    assert!(instances.is_alive(instance.id()).unwrap());
    assert!(instances.remove_dead(|_| true).unwrap().is_empty());
    assert_eq!(instances.list().unwrap()[0].about.as_ref().unwrap().command, "up");
}

#[test]
fn a_lock_file_that_is_replaced_does_not_make_a_living_owner_dead() {
    let (_tmp, home, instances) = instances();
    let instance = start(&instances);
    let path = lock_of(&home, instance.id());
    fs::remove_file(&path).unwrap();
    fs::write(&path, "{}").unwrap();
    assert!(instances.is_alive(instance.id()).unwrap());
    assert!(instances.remove_dead(|_| true).unwrap().is_empty());
    assert!(path.exists(), "a living instance's names are left alone");
}

#[test]
fn the_dead_are_removed_once_their_work_is_recovered_and_the_living_are_not() {
    let (_tmp, home, instances) = instances();
    let living = start(&instances);
    let dead = InstanceId::generate(2).unwrap();
    fs::write(lock_of(&home, dead), r#"{"pid":1,"command":"chat","started":2,"version":"0"}"#).unwrap();
    fs::write(home.root().join("run").join(dead.socket_name()), "").unwrap();
    assert!(!instances.is_alive(dead).unwrap());

    assert!(instances.remove_dead(|_| false).unwrap().is_empty());
    assert!(lock_of(&home, dead).exists(), "its work may still be there");
    assert_eq!(instances.remove_dead(|found| found.id == dead).unwrap(), [dead]);
    assert!(!lock_of(&home, dead).exists() && !home.root().join("run").join(dead.socket_name()).exists());
    assert!(instances.is_alive(living.id()).unwrap());
}

#[test]
fn two_who_ask_at_once_do_not_take_each_other_for_the_owner() {
    let (_tmp, home, instances) = instances();
    let dead = InstanceId::generate(2).unwrap();
    fs::write(lock_of(&home, dead), "{}").unwrap();
    let asking = File::open(lock_of(&home, dead)).unwrap();
    asking.lock_shared().unwrap();
    assert!(!instances.is_alive(dead).unwrap());
    // Nobody is removed whose lock someone else holds in any way.
    assert!(instances.remove_dead(|_| true).unwrap().is_empty());
    drop(asking);
    assert_eq!(instances.remove_dead(|_| true).unwrap(), [dead]);
}

#[test]
fn a_damaged_lock_file_still_names_an_instance_and_other_files_are_none() {
    let (_tmp, home, instances) = instances();
    let id = InstanceId::generate(3).unwrap();
    fs::write(lock_of(&home, id), [0xFF; 9000]).unwrap();
    fs::write(home.root().join("run/drawloom.sock"), "").unwrap();
    fs::write(home.root().join("run/other.lock"), "").unwrap();
    let [found] = &instances.list().unwrap()[..] else { panic!("one instance") };
    assert_eq!((found.id, found.alive, &found.about), (id, false, &None));
    assert!(found.to_string().contains(&id.to_string()));
}

#[test]
fn a_symlink_in_place_of_a_lock_is_an_error_not_an_answer() {
    let (tmp, home, instances) = instances();
    let id = InstanceId::generate(3).unwrap();
    let target = tmp.path().join("target");
    fs::write(&target, "").unwrap();
    std::os::unix::fs::symlink(&target, lock_of(&home, id)).unwrap();
    assert!(matches!(instances.is_alive(id), Err(InstanceError::Io { .. })));
}

#[test]
fn an_id_is_taken_once_and_has_one_spelling() {
    let (_tmp, _home, instances) = instances();
    let instance = start(&instances);
    assert!(instances.start(instance.id(), &About::this_process("up", "0", 1)).is_err());
    assert!(instances.is_alive(instance.id()).unwrap(), "the refused one removed nothing");
    let text = instance.id().to_string();
    assert_eq!(text.parse(), Ok(instance.id()));
    assert_eq!(text.to_lowercase().parse::<InstanceId>(), Err(BadInstanceId));
    assert_eq!("../../etc/passwd".parse::<InstanceId>(), Err(BadInstanceId));
}

#[test]
fn who_may_have_an_older_store_open_is_known_by_what_it_said_at_its_start() {
    let (_tmp, _home, instances) = instances();
    let _own = start(&instances);
    assert!(instances.older().unwrap().is_empty());
    let about = About { schema: 0, ..About::this_process("up", "0.0.1", 1) };
    let old = instances.start(InstanceId::generate(2).unwrap(), &about).unwrap();
    let found = instances.older().unwrap();
    assert_eq!(found.iter().map(|found| found.id).collect::<Vec<_>>(), [old.id()]);
    drop(old);
    assert!(instances.older().unwrap().is_empty());
}

#[test]
fn a_command_is_shown_without_control_characters() {
    let about = About {
        pid: 1,
        command: "up\u{1b}[2J".to_owned() + &"x".repeat(500),
        started: 0,
        version: String::new(),
        schema: 0,
    };
    let shown = about.to_string();
    assert!(!shown.contains('\u{1b}') && shown.chars().count() < 250);
}

#[test]
fn orphaned_temporaries_are_swept_and_locked_ones_are_not() {
    let (_tmp, home, instances) = instances();
    let run = disk::open_dir(&home.dir(HomeDir::Run).unwrap()).unwrap();
    fs::write(home.root().join("run/.orphan.0123456789abcdef"), "").unwrap();
    let (hidden, _held) = disk::create_hidden(fd(&run), "starting").unwrap();
    instances.remove_dead(|_| true).unwrap();
    assert_eq!(disk::entries(fd(&run)).unwrap(), [hidden]);
}

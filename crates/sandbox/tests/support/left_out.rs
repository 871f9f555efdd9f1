//! Tests of programs that a machine may lack: one that is missing fails its tests, unless `DRAWLOOM_TESTS_WITHOUT` names it
//! (spec: scale §5). None is passed over unseen.

/// Names of programs that need not be there, with spaces between them.
const WITHOUT: &str = "DRAWLOOM_TESTS_WITHOUT";

/// Whether a test is left out, as programs are missing that the owner of the machine said it lacks.
///
/// # Panics
/// One is missing that nobody named.
pub(crate) fn is_left_out(missing: &[&str]) -> bool {
    let unnamed = unnamed(missing, &std::env::var(WITHOUT).unwrap_or_default());
    assert!(unnamed.is_empty(), "there is no {unnamed:?}: install it, or leave its tests out by {WITHOUT}");
    if !missing.is_empty() {
        println!("not run: there is no {missing:?}");
    }
    !missing.is_empty()
}

fn unnamed<'a>(missing: &[&'a str], without: &str) -> Vec<&'a str> {
    let is_named = |program: &str| without.split_whitespace().any(|named| named == program);
    missing.iter().copied().filter(|program| !is_named(program)).collect()
}

#[test]
fn no_program_is_missing_unseen() {
    assert_eq!(unnamed(&["git", "npm"], ""), ["git", "npm"]);
    assert_eq!(unnamed(&["git", "npm"], "npm make"), ["git"]);
    assert_eq!(unnamed(&["git"], "gitk git"), [""; 0]);
    assert_eq!(unnamed(&[], ""), [""; 0]);
}

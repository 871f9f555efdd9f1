//! A configuration of git: what is malformed in it hides nothing that stands behind it.
#![no_main]

use libfuzzer_sys::fuzz_target;
use workspace::{GitConfiguration, GitSetting};

fuzz_target!(|text: &[u8]| {
    let found = GitConfiguration::parse(text);
    let is_plain = |name: &str| !name.bytes().any(|byte| byte.is_ascii_uppercase());
    assert!(found.settings.iter().all(|setting| is_plain(&setting.section) && is_plain(&setting.key)));
    // The first line end may go on with a value that a backslash ended.
    let followed = [text, b"\n\n[core]\n\thooksPath = run\n"].concat();
    let last = GitConfiguration::parse(&followed).settings.pop();
    let expected = GitSetting {
        section: "core".to_owned(),
        subsection: None,
        key: "hookspath".to_owned(),
        value: b"run".to_vec(),
    };
    assert_eq!(last, Some(expected));
});

//! The head of a card or skill: data or a named refusal, whatever the bytes.
#![no_main]

use libfuzzer_sys::{Corpus, fuzz_target};
use workspace::frontmatter::{MAX_DEPTH, MAX_VALUES, Map, YamlValue, read};

fuzz_target!(|file: &[u8]| -> Corpus {
    match read(file) {
        Err(error) => {
            let lines = 2 + file.iter().filter(|byte| matches!(byte, b'\n' | b'\r')).count();
            assert!((1..=lines).contains(&error.line), "{error} in {lines} lines");
        }
        Ok(page) => {
            // Line ends are made plain once: of `\r\r\n` a carriage return stays, as a lone one does.
            let doubled = file.windows(3).any(|three| three == b"\r\r\n");
            assert!(doubled || !page.body.contains("\r\n"));
            assert!(page.body.len() <= file.len());
            if let Some(fields) = &page.fields {
                let mut values = 0;
                walk(fields, 1, &mut values);
                assert!(values <= MAX_VALUES);
            }
        }
    }
    Corpus::Keep
});

/// Asks every typed question about every key.
fn walk(map: &Map, depth: usize, values: &mut usize) {
    assert!(depth <= MAX_DEPTH);
    for (key, value) in map.iter() {
        let _ = (map.get(key), map.text(key), map.bool(key), map.integer(key, -9, 9));
        let _ =
            (map.number(key, 0.0, 1.0).map(|number| number.is_none_or(f64::is_finite)), map.texts(key, 4));
        count(value, depth, values);
    }
}

fn count(value: &YamlValue, depth: usize, values: &mut usize) {
    *values += 1;
    match value {
        YamlValue::Scalar(_) => {}
        YamlValue::List(list) => {
            assert!(depth < MAX_DEPTH);
            list.iter().for_each(|value| count(value, depth + 1, values));
        }
        YamlValue::Map(map) => walk(map, depth + 1, values),
    }
}

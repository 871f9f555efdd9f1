//! An export that was written, then damaged: whole or named as damaged, and what it writes again it reads again.
#![no_main]

use arbitrary::Arbitrary;
use drawloom_fuzz::desk::{Action, Desk, START};
use interop::import::plan_import;
use interop::own::{ExportOptions, ExportVariant, ReadLimits, Unparsed, export, read};
use libfuzzer_sys::fuzz_target;
use loom::Millis;
use loom::verify::Status;

#[derive(Arbitrary, Debug)]
struct Input {
    dialogue: bool,
    shared: Option<bool>,
    title: String,
    actions: Vec<Action>,
    damage: Vec<Damage>,
}

#[derive(Arbitrary, Debug)]
enum Damage {
    Flip(u16, u8),
    Insert(u16, Vec<u8>),
    Remove(u16, u8),
    Repeat(u8),
    Drop(u8),
    Swap(u8, u8),
}

fuzz_target!(|input: Input| {
    let desk = Desk::after(input.dialogue, &input.title, input.actions);
    let variant =
        input.shared.map_or(ExportVariant::Full, |annotations| ExportVariant::Shared { annotations });
    let mut written = Vec::new();
    export(&desk, ExportOptions { variant, secrets: None }, &mut written).expect("an export");

    let whole = read(&mut written.as_slice(), ReadLimits::default()).expect("our own file");
    assert_eq!(whole.problems, [], "our own file has no problem");
    let status = whole.verify(&Unparsed).expect("rows in memory").status;
    assert_eq!(status, if variant.is_shared() { Status::Incomplete } else { Status::Valid });
    if !variant.is_shared() {
        let mut again = Vec::new();
        export(&whole, ExportOptions::default(), &mut again).expect("an export");
        assert_eq!(again, written, "an export of an import is the same file");
    }

    let mut damaged = written.clone();
    for damage in input.damage.iter().take(4) {
        apply(damage, &mut damaged);
    }
    // The last line may be written in other ways that say the same.
    let body = |file: &[u8]| file[..file.iter().rposition(|byte| *byte == b'{').unwrap_or(0)].to_vec();
    let Ok(read) = read(&mut damaged.as_slice(), ReadLimits::default()) else { return };
    let report = read.verify(&Unparsed).expect("rows in memory");
    if body(&damaged) != body(&written) && report.status != Status::Invalid {
        panic!("a file that was touched is {:?}: {:?}", report.status, report.problems);
    }
    let _ = plan_import(&read, Some(&desk.tree), "owner", Millis(START));
    let _ = plan_import(&read, None, "owner", Millis(START));
});

fn apply(damage: &Damage, file: &mut Vec<u8>) {
    if file.is_empty() {
        return;
    }
    let at = |at: u16| usize::from(at) % file.len();
    match damage {
        Damage::Flip(place, bits) => {
            let place = at(*place);
            file[place] ^= bits;
        }
        Damage::Insert(place, bytes) => {
            let place = at(*place);
            file.splice(place..place, bytes.iter().copied().take(40));
        }
        Damage::Remove(place, length) => {
            let place = at(*place);
            file.drain(place..(place + usize::from(*length)).min(file.len()));
        }
        Damage::Repeat(line) => {
            lines(file, |lines| lines.insert(*line as usize % lines.len(), lines[0].clone()))
        }
        Damage::Drop(line) => lines(file, |lines| drop(lines.remove(*line as usize % lines.len()))),
        Damage::Swap(a, b) => lines(file, |lines| {
            let count = lines.len();
            lines.swap(*a as usize % count, *b as usize % count);
        }),
    }
}

fn lines(file: &mut Vec<u8>, change: impl FnOnce(&mut Vec<Vec<u8>>)) {
    let mut lines: Vec<Vec<u8>> = file.split_inclusive(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect();
    change(&mut lines);
    *file = lines.concat();
}

//! Lines that speak to the model that reads them: those in which the sanitiser finds something (spec: security §25). They
//! are told where a handoff is checked, and put in brackets with the reason where one is made.

use std::ops::Range;

use text::sanitiser::sanitise;

use super::Handoff;

/// Puts each entry in brackets that has a part in what speaks to a model, also where that goes over several entries.
pub(crate) fn bracket(handoff: &mut Handoff) {
    let mut is_bracketed = vec![false; handoff.entries_mut().count()];
    loop {
        let text = handoff.render();
        let mut start = 0;
        let lines = text.split_inclusive('\n').map(|line| {
            start += line.len();
            (start - line.len()..start, line)
        });
        let is_entry =
            |line: &str| !line.trim().is_empty() && !line.starts_with("# ") && !line.starts_with("## ");
        let places: Vec<_> = lines.filter(|(_, line)| is_entry(line)).map(|(bytes, _)| bytes).collect();
        let mut reasons = vec![None; is_bracketed.len()];
        for detection in sanitise(&text).detections {
            let overlaps =
                |place: &Range<usize>| place.start < detection.bytes.end && detection.bytes.start < place.end;
            for (reason, place) in reasons.iter_mut().zip(&places) {
                if overlaps(place) {
                    reason.get_or_insert(detection.kind.code());
                }
            }
        }
        let mut changed = false;
        for ((entry, reason), is_bracketed) in handoff.entries_mut().zip(reasons).zip(&mut is_bracketed) {
            if let Some(reason) = reason.filter(|_| !*is_bracketed) {
                *entry = in_brackets(reason, entry);
                (*is_bracketed, changed) = (true, true);
            }
        }
        if !changed {
            return;
        }
    }
}

/// A line in brackets with the reason; none where nothing in it speaks to a model.
pub(crate) fn bracketed_text(line: &str) -> Option<String> {
    let detection = sanitise(line).detections.into_iter().next()?;
    Some(in_brackets(detection.kind.code(), line))
}

/// A line in brackets that it does not close itself.
fn in_brackets(reason: &str, line: &str) -> String {
    format!("[{reason}: {}]", line.replace('[', "(").replace(']', ")"))
}

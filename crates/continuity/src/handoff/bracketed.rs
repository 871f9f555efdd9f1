//! Lines that speak to the model that reads them: those in which the sanitiser finds something (spec: security §25). They
//! are told where a handoff is checked, and put in brackets with the reason where one is made.

use std::ops::Range;

use text::sanitiser::{DetectionKind, sanitise};

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
                    reason.get_or_insert(detection.kind);
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

/// A text of which each line that speaks to a model stands in brackets, but those that do already.
pub(crate) fn bracketed_lines(text: &str) -> String {
    let detections = sanitise(text).detections;
    let (mut out, mut start) = (String::with_capacity(text.len()), 0);
    for line in text.split_inclusive('\n') {
        let place = start..start + line.len();
        start = place.end;
        let said = line.trim_end_matches(['\r', '\n']);
        let is_in = |detection: &&text::sanitiser::Detection| {
            place.start < detection.bytes.end && detection.bytes.start < place.end
        };
        let (mark, entry) = said.split_at(said.len() - without_mark(said).len());
        match detections.iter().find(is_in).filter(|_| !(entry.starts_with('[') && entry.ends_with(']'))) {
            Some(detection) => {
                out += mark;
                out += &in_brackets(detection.kind, &sanitise(entry).text);
                out += &line[said.len()..];
            }
            None => out += line,
        }
    }
    out
}

/// An entry without the mark of its list.
fn without_mark(line: &str) -> &str {
    let numbered = line.trim_start_matches(|c: char| c.is_ascii_digit());
    let behind = numbered.strip_prefix(". ").filter(|_| numbered.len() < line.len());
    behind.or_else(|| line.strip_prefix("- ")).unwrap_or(line)
}

/// A line in brackets with the reason; none where nothing in it speaks to a model.
pub(crate) fn bracketed_text(line: &str) -> Option<String> {
    let detection = sanitise(line).detections.into_iter().next()?;
    Some(in_brackets(detection.kind, line))
}

/// A line in brackets that it does not close itself, with the reason.
pub(crate) fn in_brackets(kind: DetectionKind, line: &str) -> String {
    format!("[{}: {}]", kind.code(), line.replace('[', "(").replace(']', ")"))
}

/// Whether a line is one as [`in_brackets`] makes them.
pub(crate) fn is_in_brackets(line: &str) -> bool {
    let inside = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    let parts =
        inside.filter(|inside| !inside.contains(['[', ']'])).and_then(|inside| inside.split_once(": "));
    let kinds = [
        DetectionKind::RoleTag,
        DetectionKind::RoleMarker,
        DetectionKind::OverridePhrase,
        DetectionKind::Encoded,
    ];
    parts.is_some_and(|(reason, _)| kinds.into_iter().any(|kind| kind.code() == reason))
}

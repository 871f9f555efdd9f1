//! Marks of secrets in what a model writes into a file: it saw them where the file has the secrets, so these are put back
//! (spec: security §11). A mark that stands for none of them is refused, as the file would lose what it hides.

use text::mask::MARK;

use crate::tool::ToolScope;

/// The end of a mark.
const END: char = '⟧';

/// A text of a model with the secrets of `before`, what the file says so far, in the place of their marks.
pub(super) fn put_back(scope: &ToolScope, before: &str, mut text: String) -> Result<String, String> {
    if !text.contains(MARK) {
        return Ok(text);
    }
    let masked = scope.masker.mask_entering(before.strip_prefix('\u{feff}').unwrap_or(before));
    let inner = before.strip_prefix('\u{feff}').unwrap_or(before);
    let mut from = 0;
    while let Some(at) = text[from..].find(MARK).map(|at| from + at) {
        let Some(length) = text[at..].find(END) else { break };
        let mark = text[at..at + length + END.len_utf8()].to_owned();
        let mut hidden: Vec<&str> = masked
            .spans
            .iter()
            .filter(|span| masked.text[span.output.clone()] == mark)
            .map(|span| &inner[span.input.clone()])
            .collect();
        hidden.sort_unstable();
        hidden.dedup();
        match hidden.as_slice() {
            [secret] if !before.contains(&mark) => {
                text.replace_range(at..at + mark.len(), secret);
                from = at + secret.len();
            }
            // The file is about marks.
            [] if before.contains(&mark) => from = at + mark.len(),
            [] => {
                return Err(format!(
                    "{mark} is no text of the file: it stands for a secret that is not there. Write without it, and \
                     change other lines with edit"
                ));
            }
            _ => {
                return Err(format!(
                    "{mark} stands for several texts of the file: change other lines with edit"
                ));
            }
        }
    }
    Ok(text)
}

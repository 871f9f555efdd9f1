//! How much a model thinks: what was asked for, and what is to be said where it cannot be had.

use context::ContinuationForm;
use model::{ModelInfo, Thinking, ThinkingControl};
use text::terminal::one_line;

use crate::args::think::Think;

/// What is to be said to someone who asked a model to think as much as this; nothing, where it does so.
pub(crate) fn notice(info: &ModelInfo, asked: Thinking) -> Option<String> {
    let name = || one_line(&info.full_name()).into_owned();
    match (info.thinks, asked) {
        (ThinkingControl::Untold, _) => Some(format!("the thinking of {} cannot be set", name())),
        (ThinkingControl::Always, Thinking::Off) => {
            Some(format!("{} always thinks: it is asked to think as little as it can", name()))
        }
        _ => None,
    }
}

/// [`notice`] for a document. A model that continues it as raw text has no place to think in. Only what was asked
/// for in this very call is answered to: a default is for the models that can.
pub(crate) fn unheard(info: &ModelInfo, asked: Option<Thinking>, flag: Option<Think>) -> Option<String> {
    let asked = asked.filter(|_| flag.is_some())?;
    if asked != Thinking::Off
        && info.thinks != ThinkingControl::Untold
        && ContinuationForm::of(info) != ContinuationForm::Instructed
    {
        let name = one_line(&info.full_name()).into_owned();
        return Some(format!("{name} continues raw text and cannot think"));
    }
    notice(info, asked)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_model_cannot_do_is_said_and_what_it_does_is_not() {
        let chats = ModelInfo {
            completion_endpoint: false,
            prefill: false,
            ..ModelInfo::local("box", "m", 8_192, 1_024)
        };
        let of = |thinks| ModelInfo { thinks, ..chats.clone() };
        assert_eq!(notice(&of(ThinkingControl::Told), Thinking::Off), None);
        assert_eq!(notice(&of(ThinkingControl::Always), Thinking::High), None);
        assert!(notice(&of(ThinkingControl::Always), Thinking::Off).unwrap().contains("as little as it can"));
        assert!(
            notice(&of(ThinkingControl::Untold), Thinking::Low)
                .unwrap()
                .contains("the thinking of box/m cannot be set")
        );
        let flag = Some(Think::High);
        assert_eq!(unheard(&of(ThinkingControl::Told), Some(Thinking::High), flag), None);
        assert_eq!(
            unheard(&of(ThinkingControl::Untold), Some(Thinking::High), None),
            None,
            "a default is no request"
        );
        let raw = ModelInfo { completion_endpoint: true, ..of(ThinkingControl::Told) };
        assert!(unheard(&raw, Some(Thinking::High), flag).unwrap().contains("cannot think"));
        assert_eq!(unheard(&raw, Some(Thinking::Off), Some(Think::Off)), None);
    }
}

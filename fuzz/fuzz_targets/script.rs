//! Lines of the script model: refused with their line, or played over real wire bytes in a made-up time.
#![no_main]

use libfuzzer_sys::fuzz_target;
use model::retry::RetryPolicy;
use model::script::{ScriptError, ScriptOptions};
use model::{CallOrigin, Cancel, Exchange, Model, Params, PartId, Prompt, Purpose, ScriptModel, TextPart};

fuzz_target!(|text: &str| {
    let options = ScriptOptions { retry: RetryPolicy::never(), ..ScriptOptions::default() };
    let script = match ScriptModel::from_text("script.jsonl", text, options) {
        Ok(script) => script,
        Err(ScriptError::Malformed { line, .. }) => {
            assert!((1..=text.lines().count()).contains(&line));
            return;
        }
        Err(ScriptError::Empty { .. }) => {
            assert!(text.trim_start_matches('\u{FEFF}').trim().is_empty());
            return;
        }
        Err(error) => panic!("{error}"),
    };
    // With the clock standing still, every wait is over when nothing else is left to do.
    let clock = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    clock.expect("a runtime").block_on(async {
        for (stream, purpose) in [(true, Purpose::Turn), (false, Purpose::Turn)] {
            let prompt = Prompt::Raw(vec![TextPart::new(PartId(1), "It rained")]);
            let request = script.encode(&prompt, &Params { stream, ..Params::default() }).expect("a request");
            let (mut spool, mut heard) = (Vec::new(), 0);
            let mut listener = |_| heard += 1;
            let exchange = Exchange {
                spool: &mut spool,
                listener: &mut listener,
                cancel: Cancel::never(),
                permit: None,
            };
            if let Ok(response) = script.send(&request, &CallOrigin::new("fuzz", purpose), exchange).await {
                assert_eq!(response.body, spool, "what is given back is what was kept");
                assert!(heard > 0, "an answer says at least that it began");
            }
        }
    });
});

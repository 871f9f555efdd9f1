//! The wait for a session that another process holds, which may take in what is said (spec: agent §1 *Two processes*).

use std::time::Duration;

use store::Principal;
use tokio::time::{Instant, sleep};

use super::{Turn, TurnConfig};
use crate::error::AgentError;
use crate::lease::SessionLease;
use crate::session::inbox::Pending;
use crate::session::steering::{HandedOver, OutgoingSay, WaitNotice, hand_over};
use crate::session::{TreeChoice, TurnInput};

/// How long a busy session is waited for whose process takes nothing.
const PATIENCE: Duration = Duration::from_secs(5);
/// How often it is looked at meanwhile.
const LOOK: Duration = Duration::from_millis(50);

impl Turn<'_> {
    /// The session, once it is free; none where the process that has it took the input and answered it.
    pub(super) async fn take_session(
        &self,
        first: &Pending,
        config: &TurnConfig,
    ) -> Result<Option<SessionLease>, AgentError> {
        self.runtime.require_space()?;
        let (runtime, who) = (self.runtime, &Principal::Owner);
        let (mut waits_since, mut is_stored, mut waited_for) = (Instant::now(), false, None);
        let (mut cancel, notice) = (self.cancel.clone(), WaitNotice::default());
        loop {
            let taken = SessionLease::take(runtime, who, self.session, cancel.clone()).await;
            // What waited and was withdrawn is not said, also where the session became free in that moment.
            if let Some(by) = waited_for.take_if(|_| cancel.is_cancelled()) {
                if let Ok(held) = taken {
                    held.release().await;
                }
                return Err(AgentError::Withdrawn { by });
            }
            let (instance, by) = match taken {
                Ok(held) => return Ok(Some(held)),
                Err(AgentError::Busy { instance, by }) => (instance, by),
                Err(error) => return Err(error),
            };
            let mut differs = false;
            if first.names_skills() {
                // It waits for a turn of its own, however long that under way takes.
                waits_since = Instant::now();
            } else if let Some(holder) = instance
                && holder != runtime.instance
                && let (TreeChoice::Current, TurnInput::New { texts, media, waiting }) =
                    (&first.tree, &first.input)
                && let Some(tree) = runtime.current_tree(who, self.session).await?
            {
                if !std::mem::replace(&mut is_stored, true) {
                    // A message names them; whoever takes it in looks whether they are still there.
                    drop(runtime.keep_blobs(media.clone()).await?);
                }
                let Pending { key, reply_to, author, trust, answer_within, .. } = first;
                let said = OutgoingSay {
                    key,
                    texts,
                    waiting,
                    reply_to: *reply_to,
                    author: author.clone(),
                    trust: *trust,
                    answer_within: *answer_within,
                    stop: cancel.clone(),
                    notice: Some((&notice, by.as_str())),
                };
                let place = (self.session, &first.view, config.identity(tree));
                match hand_over(runtime, who, place, said, self.log).await? {
                    HandedOver::Answered => return Ok(None),
                    HandedOver::Cut { said } => return Err(AgentError::Cut { said }),
                    HandedOver::Withdrawn => return Err(AgentError::Withdrawn { by }),
                    HandedOver::Left { said: Some(said) } => return Err(AgentError::LeftThere { by, said }),
                    HandedOver::Left { said: None } => return Err(AgentError::NotWaitedFor { by }),
                    // That turn has ended: it is another one that is waited for from now on.
                    HandedOver::NotTaken => waits_since = Instant::now(),
                    HandedOver::Differs => differs = true,
                    HandedOver::NotHeard => {}
                }
            }
            if cancel.is_cancelled() {
                return Err(AgentError::Withdrawn { by });
            }
            if waits_since.elapsed() > PATIENCE {
                return Err(if differs {
                    AgentError::Differs { by }
                } else {
                    AgentError::Busy { instance, by }
                });
            }
            notice.tell(&by, self.log);
            waited_for = Some(by);
            tokio::select! {
                () = cancel.cancelled() => {}
                () = sleep(LOOK) => {}
            }
        }
    }
}

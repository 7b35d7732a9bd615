//! The envelope of a command, and the outcome that the sender gets.
//!
//! If the envelope is dropped before work on the command started, the sender gets the command back and may send it
//! again. If it is dropped later, the command is *interrupted*: the sender must look up its effect first.

use std::sync::Arc;
use std::time::Instant;

use actix::Message;
use timing::CommandId;
use tokio::sync::oneshot;

use super::admission::Permit;

#[derive(Debug)]
pub enum CommandOutcome<C, R> {
    Done(R),
    /// Work on the command did not start. The sender may send the command again with the same permit.
    NotStarted {
        command: C,
        permit: Permit,
    },
    /// Work on the command started, and its effect is unknown. Look up the command's id before sending it again.
    Interrupted,
    /// The command panicked twice and was quarantined. `reference` is the id of the command.
    Quarantined {
        reference: CommandId,
    },
}

/// The channel on which the sender waits for the outcome of its command.
pub type OutcomeReceiver<C, R> = oneshot::Receiver<CommandOutcome<C, R>>;

/// A command in flight. The queue keeps the envelope while a batch runs, so a panic of the batch does not lose it.
#[derive(Debug)]
pub struct Envelope<C, R> {
    id: CommandId,
    sent_at: Instant,
    /// `None` after the outcome was sent.
    contents: Option<Contents<C, R>>,
    is_started: bool,
}

#[derive(Debug)]
struct Contents<C, R> {
    command: Arc<C>,
    permit: Permit,
    outcome: oneshot::Sender<CommandOutcome<C, R>>,
}

impl<C, R> Message for Envelope<C, R>
where
    C: Send + Sync + 'static,
    R: Send + 'static,
{
    type Result = ();
}

impl<C, R> Envelope<C, R> {
    pub fn new(id: CommandId, command: C, permit: Permit) -> (Self, OutcomeReceiver<C, R>) {
        let (outcome, answer) = oneshot::channel();
        let contents = Some(Contents {
            command: Arc::new(command),
            permit,
            outcome,
        });
        (
            Self {
                id,
                sent_at: Instant::now(),
                contents,
                is_started: false,
            },
            answer,
        )
    }

    pub fn sent_at(&self) -> Instant {
        self.sent_at
    }

    pub fn id(&self) -> CommandId {
        self.id
    }

    /// Returns the command, or `None` after its outcome was sent.
    pub fn command(&self) -> Option<Arc<C>> {
        self.contents
            .as_ref()
            .map(|contents| Arc::clone(&contents.command))
    }

    /// Marks the command as started. If the envelope is dropped after this, the sender gets *interrupted*.
    pub fn mark_started(&mut self) {
        self.is_started = true;
    }

    /// Marks the command as not started, so that its sender gets it back. Only for work that has left no trace.
    pub fn mark_unstarted(&mut self) {
        self.is_started = false;
    }

    pub fn answer(self, reply: R) {
        self.send(CommandOutcome::Done(reply));
    }

    pub fn interrupt(self) {
        self.send(CommandOutcome::Interrupted);
    }

    pub fn quarantine(self) {
        let reference = self.id;
        self.send(CommandOutcome::Quarantined { reference });
    }

    /// Sends the outcome to the caller. Frees the permit first, so that the caller may send its next command at once.
    fn send(mut self, result: CommandOutcome<C, R>) {
        if let Some(Contents {
            permit, outcome, ..
        }) = self.contents.take()
        {
            drop(permit);
            // Sending fails if the sender no longer waits for the outcome. That is no error.
            let _ = outcome.send(result);
        }
    }
}

impl<C, R> Drop for Envelope<C, R> {
    fn drop(&mut self) {
        let Some(Contents {
            command,
            permit,
            outcome,
        }) = self.contents.take()
        else {
            return;
        };
        // `into_inner` gives `None` if the batch still holds the command, which may then be executing.
        let command = if self.is_started {
            None
        } else {
            Arc::into_inner(command)
        };
        let result = if let Some(command) = command {
            CommandOutcome::NotStarted { command, permit }
        } else {
            drop(permit);
            CommandOutcome::Interrupted
        };
        let _ = outcome.send(result);
    }
}

#[cfg(test)]
mod tests {
    use timing::clock;

    use super::super::admission::{Admission, AdmissionLimits};
    use super::*;

    fn envelope(
        admission: &Admission,
    ) -> (
        Envelope<&'static str, u8>,
        OutcomeReceiver<&'static str, u8>,
    ) {
        Envelope::new(clock::new_id(), "create", admission.admit(1).unwrap())
    }

    fn admission() -> Admission {
        Admission::new(AdmissionLimits::default(), Arc::default())
    }

    #[test]
    fn an_envelope_dropped_before_its_work_started_returns_the_command_and_its_permit() {
        let admission = admission();
        let (envelope, mut answer) = envelope(&admission);
        drop(envelope);
        let Ok(CommandOutcome::NotStarted {
            command: "create",
            permit,
        }) = answer.try_recv()
        else {
            panic!("not returned")
        };
        assert_eq!(admission.in_use(), 1);
        drop(permit);
        assert_eq!(admission.in_use(), 0);
    }

    #[test]
    fn an_envelope_dropped_after_its_work_started_is_interrupted() {
        let admission = admission();
        let (mut envelope, mut answer) = envelope(&admission);
        envelope.mark_started();
        drop(envelope);
        assert!(matches!(answer.try_recv(), Ok(CommandOutcome::Interrupted)));
        assert_eq!(admission.in_use(), 0);
    }

    #[test]
    fn a_command_that_is_still_shared_is_never_unstarted() {
        let admission = admission();
        let (envelope, mut answer) = envelope(&admission);
        let shared = envelope.command();
        drop(envelope);
        assert!(shared.is_some());
        assert!(matches!(answer.try_recv(), Ok(CommandOutcome::Interrupted)));
    }

    #[test]
    fn a_permit_is_returned_on_every_path() {
        let admission = admission();
        let paths: [fn(Envelope<&'static str, u8>); 5] = [
            |envelope| envelope.answer(1),
            Envelope::interrupt,
            Envelope::quarantine,
            |mut envelope| envelope.mark_started(),
            drop,
        ];
        for path in paths {
            let (envelope, answer) = envelope(&admission);
            assert_eq!(admission.in_use(), 1);
            path(envelope);
            drop(answer);
            assert_eq!(admission.in_use(), 0);
        }
    }

    #[test]
    fn a_permit_is_returned_when_the_sender_has_gone_away_first() {
        let admission = admission();
        let (envelope, answer) = envelope(&admission);
        drop(answer);
        drop(envelope);
        assert_eq!(admission.in_use(), 0);
    }
}

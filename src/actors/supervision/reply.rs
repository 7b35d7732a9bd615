//! The envelope of a command and its outcome.
//!
//! The sender gets exactly one outcome. An envelope that is dropped before its work started returns the command, which is
//! safe to send again. One that is dropped later is *interrupted*: its effect must be looked up first. Sending the
//! outcome consumes the envelope, so it is sent once.

use std::sync::Arc;

use actix::Message;
use tokio::sync::oneshot;

use super::admission::Permit;
use crate::domain::kernel::ids::CommandId;

/// The outcome of a command.
#[derive(Debug)]
pub enum CommandOutcome<C, R> {
    Done(R),
    /// It was not started. It may be sent again with the same permit.
    NotStarted {
        command: C,
        permit: Permit,
    },
    /// It was started and its effect is unknown: look the identifier up before sending again.
    Interrupted(CommandId),
    /// It panicked twice and was quarantined.
    Quarantined {
        reference: CommandId,
    },
}

/// The sender waits on it for the outcome.
pub type OutcomeReceiver<C, R> = oneshot::Receiver<CommandOutcome<C, R>>;

/// A command in flight. The command is shared by the running batch and the queue that outlives it.
#[derive(Debug)]
pub struct Envelope<C, R> {
    id: CommandId,
    /// Present until the outcome is sent.
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
        let contents = Some(Contents { command: Arc::new(command), permit, outcome });
        (Self { id, contents, is_started: false }, answer)
    }

    pub fn id(&self) -> CommandId {
        self.id
    }

    /// The command, unless its outcome was sent.
    pub fn command(&self) -> Option<Arc<C>> {
        self.contents.as_ref().map(|contents| Arc::clone(&contents.command))
    }

    /// Marks the command as started: a drop interrupts it.
    pub fn mark_started(&mut self) {
        self.is_started = true;
    }

    /// Marks the command as not started, after its work was undone entirely: a drop returns it.
    pub fn mark_unstarted(&mut self) {
        self.is_started = false;
    }

    pub fn answer(self, reply: R) {
        self.send(CommandOutcome::Done(reply));
    }

    pub fn interrupt(self) {
        let id = self.id;
        self.send(CommandOutcome::Interrupted(id));
    }

    pub fn quarantine(self) {
        let reference = self.id;
        self.send(CommandOutcome::Quarantined { reference });
    }

    /// Returns the permit before the outcome is sent, so that the sender may send again at once.
    fn send(mut self, result: CommandOutcome<C, R>) {
        if let Some(Contents { permit, outcome, .. }) = self.contents.take() {
            drop(permit);
            // The sender may have gone away.
            let _ = outcome.send(result);
        }
    }
}

impl<C, R> Drop for Envelope<C, R> {
    fn drop(&mut self) {
        let Some(Contents { command, permit, outcome }) = self.contents.take() else { return };
        // A command that is still shared is in use, so it does not count as unstarted.
        let command = if self.is_started { None } else { Arc::into_inner(command) };
        let result = if let Some(command) = command {
            CommandOutcome::NotStarted { command, permit }
        } else {
            drop(permit);
            CommandOutcome::Interrupted(self.id)
        };
        let _ = outcome.send(result);
    }
}

#[cfg(test)]
mod tests {
    use super::super::admission::{Admission, AdmissionLimits};
    use super::*;
    use crate::domain::kernel::clock;

    fn envelope(admission: &Admission) -> (Envelope<&'static str, u8>, OutcomeReceiver<&'static str, u8>) {
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
        let Ok(CommandOutcome::NotStarted { command: "create", permit }) = answer.try_recv() else {
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
        let id = envelope.id();
        envelope.mark_started();
        drop(envelope);
        assert!(matches!(answer.try_recv(), Ok(CommandOutcome::Interrupted(same)) if same == id));
        assert_eq!(admission.in_use(), 0);
    }

    #[test]
    fn a_command_that_is_still_shared_is_never_unstarted() {
        let admission = admission();
        let (envelope, mut answer) = envelope(&admission);
        let shared = envelope.command();
        drop(envelope);
        assert!(shared.is_some());
        assert!(matches!(answer.try_recv(), Ok(CommandOutcome::Interrupted(_))));
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

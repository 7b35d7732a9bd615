//! The envelope of a command and what becomes of it.
//!
//! Whoever sends learns exactly one outcome. An envelope dropped before its work began gives the command back,
//! safe to send again; one dropped after says *interrupted*, to be looked up first. Nothing is said twice:
//! answering consumes the envelope, dropping it answers.

use std::fmt;
use std::sync::Arc;

use actix::Message;
use serde::Serialize;
use tokio::sync::oneshot;
use uuid::Uuid;

use super::admission::Permit;
use crate::domain::kernel::clock;

/// One command's identity, the same however often it is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct CommandId(Uuid);

impl CommandId {
    pub fn new() -> Self {
        Self(clock::new_id())
    }
}

impl From<CommandId> for Uuid {
    fn from(id: CommandId) -> Self {
        id.0
    }
}

impl Default for CommandId {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Display for CommandId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// What became of a command.
#[derive(Debug)]
pub enum CommandOutcome<C, R> {
    Done(R),
    /// Nobody began it; it may be sent again, under the permit it has.
    NotStarted {
        command: C,
        permit: Permit,
    },
    /// It was begun and its end is unknown: look the identifier up before sending again.
    Interrupted(CommandId),
    /// It panicked twice and was put aside.
    Quarantined {
        reference: CommandId,
    },
}

/// Where the sender waits.
pub type OutcomeReceiver<C, R> = oneshot::Receiver<CommandOutcome<C, R>>;

/// A command under way. The command is shared, since a batch at work and the queue that outlives it both hold the command.
#[derive(Debug)]
pub struct Envelope<C, R> {
    id: CommandId,
    /// Present until the outcome is sent.
    contents: Option<Contents<C, R>>,
    begun: bool,
}

#[derive(Debug)]
struct Contents<C, R> {
    command: Arc<C>,
    permit: Permit,
    port: oneshot::Sender<CommandOutcome<C, R>>,
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
        let (port, answer) = oneshot::channel();
        let contents = Some(Contents { command: Arc::new(command), permit, port });
        (Self { id, contents, begun: false }, answer)
    }

    pub fn id(&self) -> CommandId {
        self.id
    }

    /// The command, unless it was answered.
    pub fn command(&self) -> Option<Arc<C>> {
        self.contents.as_ref().map(|contents| Arc::clone(&contents.command))
    }

    /// From here on a drop says *interrupted*.
    pub fn begin(&mut self) {
        self.begun = true;
    }

    /// The work was undone entirely: a drop gives the command back again.
    pub fn unbegin(&mut self) {
        self.begun = false;
    }

    pub fn answer(self, reply: R) {
        self.settle(CommandOutcome::Done(reply));
    }

    pub fn interrupt(self) {
        let id = self.id;
        self.settle(CommandOutcome::Interrupted(id));
    }

    pub fn quarantine(self) {
        let reference = self.id;
        self.settle(CommandOutcome::Quarantined { reference });
    }

    /// The permit is returned before the sender hears: who was answered may send again at once.
    fn settle(mut self, outcome: CommandOutcome<C, R>) {
        if let Some(Contents { permit, port, .. }) = self.contents.take() {
            drop(permit);
            // A sender that has gone away does not want the outcome.
            let _ = port.send(outcome);
        }
    }
}

impl<C, R> Drop for Envelope<C, R> {
    fn drop(&mut self) {
        let Some(Contents { command, permit, port }) = self.contents.take() else { return };
        // A command that is still shared is still being looked at: it cannot be called unstarted.
        let command = if self.begun { None } else { Arc::into_inner(command) };
        let outcome = if let Some(command) = command {
            CommandOutcome::NotStarted { command, permit }
        } else {
            drop(permit);
            CommandOutcome::Interrupted(self.id)
        };
        let _ = port.send(outcome);
    }
}

#[cfg(test)]
mod tests {
    use super::super::admission::{Admission, AdmissionLimits};
    use super::*;

    fn envelope(admission: &Admission) -> (Envelope<&'static str, u8>, OutcomeReceiver<&'static str, u8>) {
        Envelope::new(CommandId::new(), "create", admission.admit(1).unwrap())
    }

    fn admission() -> Admission {
        Admission::new(AdmissionLimits::default(), Arc::default())
    }

    #[test]
    fn an_envelope_dropped_before_its_work_began_gives_the_command_and_its_permit_back() {
        let admission = admission();
        let (envelope, mut answer) = envelope(&admission);
        drop(envelope);
        let Ok(CommandOutcome::NotStarted { command: "create", permit }) = answer.try_recv() else {
            panic!("not given back")
        };
        assert_eq!(admission.in_use(), 1);
        drop(permit);
        assert_eq!(admission.in_use(), 0);
    }

    #[test]
    fn an_envelope_dropped_after_its_work_began_is_interrupted() {
        let admission = admission();
        let (mut envelope, mut answer) = envelope(&admission);
        let id = envelope.id();
        envelope.begin();
        drop(envelope);
        assert!(matches!(answer.try_recv(), Ok(CommandOutcome::Interrupted(same)) if same == id));
        assert_eq!(admission.in_use(), 0);
    }

    #[test]
    fn a_command_that_is_still_shared_is_never_called_unstarted() {
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
            |mut envelope| envelope.begin(),
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

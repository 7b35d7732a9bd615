//! An actor's mailbox as its registry sees it: the envelopes that are posted to it, the outcomes that come back, and
//! the handle that posts them.
//!
//! If an envelope is dropped before work on its command started, the sender gets the command back and may send it
//! again. If it is dropped later, the command is *interrupted*: the sender must look up its effect first.
//!
//! An idle actor stops without losing a command. Passivation is a handshake: the janitor asks the actor to stop and
//! tells it how many commands its handle has posted so far; the actor stops only if that number has not changed.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

use actix::{Actor, Addr, Context, Handler, Message, Recipient};
use timing::CommandId;
use tokio::sync::oneshot;

use super::admission::Permit;
use super::node::Node;

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
    unanswered: Option<UnansweredCommand<C, R>>,
    is_started: bool,
}

#[derive(Debug)]
struct UnansweredCommand<C, R> {
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
        let unanswered = Some(UnansweredCommand {
            command: Arc::new(command),
            permit,
            outcome,
        });
        (
            Self {
                id,
                sent_at: Instant::now(),
                unanswered,
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
        self.unanswered
            .as_ref()
            .map(|unanswered| Arc::clone(&unanswered.command))
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
        if let Some(UnansweredCommand {
            permit, outcome, ..
        }) = self.unanswered.take()
        {
            drop(permit);
            // Sending fails if the sender no longer waits for the outcome. That is no error.
            let _ = outcome.send(result);
        }
    }
}

impl<C, R> Drop for Envelope<C, R> {
    fn drop(&mut self) {
        let Some(UnansweredCommand {
            command,
            permit,
            outcome,
        }) = self.unanswered.take()
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

/// Asks an idle actor to stop. The actor refuses if a command was posted since this request was made.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub struct Passivate {
    pub(crate) generation: u64,
    uses: u64,
    asked: Arc<AtomicBool>,
}

impl Drop for Passivate {
    fn drop(&mut self) {
        self.asked.store(false, Ordering::SeqCst);
    }
}

/// The address of an actor of the registry, one recipient for each type of message.
pub struct Mailbox<C, R>
where
    C: Send + Sync + 'static,
    R: Send + 'static,
{
    commands: Recipient<Envelope<C, R>>,
    control: Recipient<Passivate>,
}

impl<A, C, R> From<Addr<A>> for Mailbox<C, R>
where
    A: Actor<Context = Context<A>> + Handler<Envelope<C, R>> + Handler<Passivate>,
    C: Send + Sync + 'static,
    R: Send + 'static,
{
    fn from(address: Addr<A>) -> Self {
        Self {
            commands: address.clone().recipient(),
            control: address.recipient(),
        }
    }
}

pub(crate) struct ActorHandle<C, R>
where
    C: Send + Sync + 'static,
    R: Send + 'static,
{
    generation: u64,
    mailbox: Mailbox<C, R>,
    pub(crate) node: Node,
    /// The number of commands that were posted through this handle.
    uses: AtomicU64,
    /// True while a `Passivate` is in the actor's mailbox.
    asked: Arc<AtomicBool>,
    /// The time of the last use, in microseconds since the tree was created.
    last_used_at: AtomicU64,
}

impl<C, R> ActorHandle<C, R>
where
    C: Send + Sync + 'static,
    R: Send + 'static,
{
    pub(crate) fn new(generation: u64, mailbox: Mailbox<C, R>, node: Node) -> Self {
        let uses = AtomicU64::new(0);
        let last_used_at = AtomicU64::new(0);
        Self {
            generation,
            mailbox,
            node,
            uses,
            last_used_at,
            asked: Arc::default(),
        }
    }

    pub(crate) fn is_open(&self) -> bool {
        self.mailbox.commands.connected()
    }

    /// Posts the envelope and only then increments `uses`. An actor stops if the `uses` in a `Passivate` message is
    /// still the current number. In the other order, a `Passivate` with the new number could arrive before the
    /// envelope, and the actor would stop with the command unprocessed. The caller must hold the lock of this handle's
    /// entry in the registry's map.
    pub(crate) fn post(&self, envelope: Envelope<C, R>, moment: u64) {
        let sent = self.mailbox.commands.try_send(envelope);
        self.last_used_at.store(moment, Ordering::SeqCst);
        self.uses.fetch_add(1, Ordering::SeqCst);
        // If the mailbox is closed or full, this drops the envelope, which returns the command to the sender.
        drop(sent);
    }

    pub(crate) fn last_used_at(&self) -> u64 {
        self.last_used_at.load(Ordering::SeqCst)
    }

    /// True if the request went to the actor of this handle, and no command was posted since the request was made.
    pub(crate) fn is_unused_since(&self, asked: &Passivate) -> bool {
        self.generation == asked.generation && self.uses.load(Ordering::SeqCst) == asked.uses
    }

    pub(crate) fn request_stop(&self) -> bool {
        if self.asked.swap(true, Ordering::SeqCst) {
            return false;
        }
        let uses = self.uses.load(Ordering::SeqCst);
        let asked = Arc::clone(&self.asked);
        self.mailbox
            .control
            .try_send(Passivate {
                generation: self.generation,
                uses,
                asked,
            })
            .is_ok()
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

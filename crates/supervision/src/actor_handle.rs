//! The handle of one actor of a registry: the actor's mailbox, and the counts by which an idle actor
//! stops without losing a command. Passivation is a handshake: the janitor asks the actor to stop and
//! tells it how many commands its handle has posted so far; the actor stops only if that number has
//! not changed.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use actix::{Actor, Addr, Context, Handler, Message, Recipient};

use super::node::Node;
use super::reply::Envelope;

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
    used_at: AtomicU64,
}

impl<C, R> ActorHandle<C, R>
where
    C: Send + Sync + 'static,
    R: Send + 'static,
{
    pub(crate) fn new(generation: u64, mailbox: Mailbox<C, R>, node: Node) -> Self {
        let uses = AtomicU64::new(0);
        let used_at = AtomicU64::new(0);
        Self {
            generation,
            mailbox,
            node,
            uses,
            used_at,
            asked: Arc::default(),
        }
    }

    pub(crate) fn is_open(&self) -> bool {
        self.mailbox.commands.connected()
    }

    /// Posts the envelope first and counts it then. In the other order, a `Passivate` with the new count could arrive
    /// first and stop the actor. The caller must hold the lock of the map entry.
    pub(crate) fn post(&self, envelope: Envelope<C, R>, moment: u64) {
        let sent = self.mailbox.commands.try_send(envelope);
        self.used_at.store(moment, Ordering::SeqCst);
        self.uses.fetch_add(1, Ordering::SeqCst);
        // If the mailbox is closed or full, this drops the envelope, which returns the command to the sender.
        drop(sent);
    }

    pub(crate) fn used_at(&self) -> u64 {
        self.used_at.load(Ordering::SeqCst)
    }

    pub(crate) fn matches(&self, asked: &Passivate) -> bool {
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

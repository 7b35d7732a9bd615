//! One actor per key: started on demand, passivated when idle.
//!
//! `send` admits a command, delivers it and waits for the reply. A command that comes back unstarted is sent again; a
//! started command never is. Posting a command and removing a handle both hold the lock of the map entry, so no command
//! is posted to an actor that has agreed to stop. An actor that has escalated, because it panicked too often, keeps its
//! handle, so that commands do not start the actor again. `allow_restart` removes the handle after a rest. No map guard
//! is held across an await.

use std::fmt::Display;
use std::hash::Hash;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use actix::ArbiterHandle;
use dashmap::DashMap;
use dashmap::mapref::entry::Entry;
use timing::{CommandId, clock};
use tokio::time::sleep;

use super::admission::{Admission, AdmissionRefusal, Permit};
use super::arbiters::{Arbiters, hash_key};
use super::mailbox::{ActorHandle, CommandOutcome, Envelope, Mailbox, Passivate};
use super::node::Node;
use super::node_state::NodeKind;
use super::policy::RestartPolicy;
use super::tree::Tree;

/// The delays before a command that came back unstarted is sent again. After the last delay `send` fails.
const RESEND_WAITS_MS: [u64; 5] = [1, 2, 5, 20, 50];

/// The number of extra mailbox slots, for messages that need no permit, such as `Passivate`.
const CONTROL_MESSAGES: usize = 16;

/// The reason why `send` returned no reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SendError {
    #[error("too many commands in flight for this key")]
    Busy { retry_after: Duration },
    #[error("too many commands in flight")]
    Overloaded { retry_after: Duration },
    #[error("command {command_id} was interrupted; look it up before it is sent again")]
    Interrupted { command_id: CommandId },
    #[error("command {reference} was quarantined after it failed twice")]
    Quarantined { reference: CommandId },
    #[error("the actor has stopped; the command was not started")]
    Stopped,
}

impl From<AdmissionRefusal> for SendError {
    fn from(refusal: AdmissionRefusal) -> Self {
        match refusal {
            AdmissionRefusal::PerKey { retry_after } => Self::Busy { retry_after },
            AdmissionRefusal::Process { retry_after } => Self::Overloaded { retry_after },
        }
    }
}

#[derive(Debug, Clone, Copy)]
pub struct RegistrySettings {
    pub kind: NodeKind,
    pub policy: RestartPolicy,
}

/// The values that an actor gets at its start. The actor must call `leave_registry` before it stops.
pub struct StartContext {
    pub generation: u64,
    pub arbiter: ArbiterHandle,
    pub node: Node,
    pub policy: RestartPolicy,
    leave: Box<dyn Fn(&Passivate) -> bool + Send + Sync>,
}

impl StartContext {
    /// Removes the actor's handle, unless a command was posted since the request. Returns true if the actor may stop.
    pub fn leave_registry(&self, asked: &Passivate) -> bool {
        let left = asked.generation == self.generation && (self.leave)(asked);
        if left {
            let counters = self.node.tree().counters();
            counters.actors_passivated.increment();
        }
        left
    }
}

type Handles<K, C, R> = Arc<DashMap<K, Arc<ActorHandle<C, R>>>>;
type Starter<K, C, R> = Box<dyn Fn(&K, StartContext) -> Mailbox<C, R> + Send + Sync>;

pub struct Registry<K, C, R>
where
    C: Send + Sync + 'static,
    R: Send + 'static,
{
    handles: Handles<K, C, R>,
    starter: Starter<K, C, R>,
    settings: RegistrySettings,
    admission: Admission,
    arbiters: Arc<Arbiters>,
    tree: Tree,
    generations: AtomicU64,
    is_closed: AtomicBool,
}

impl<K, C, R> Registry<K, C, R>
where
    K: Hash + Eq + Clone + Display + Send + Sync + 'static,
    C: Send + Sync + 'static,
    R: Send + 'static,
{
    /// Creates a registry. `starter` starts the actor of a key. It must not block, because it is called under a lock.
    pub fn new(
        tree: &Tree,
        arbiters: &Arc<Arbiters>,
        admission: Admission,
        settings: RegistrySettings,
        starter: impl Fn(&K, StartContext) -> Mailbox<C, R> + Send + Sync + 'static,
    ) -> Self {
        Self {
            handles: Arc::default(),
            starter: Box::new(starter),
            settings,
            admission,
            arbiters: Arc::clone(arbiters),
            tree: tree.clone(),
            generations: AtomicU64::new(1),
            is_closed: AtomicBool::new(false),
        }
    }

    /// Sends a command to the actor of `key` and waits for the reply.
    pub async fn send(&self, key: &K, command: C) -> Result<R, SendError> {
        let permit = self.admit(key)?;
        self.deliver(key, command, permit).await
    }

    fn admit(&self, key: &K) -> Result<Permit, SendError> {
        if self.is_closed.load(Ordering::SeqCst) {
            return Err(SendError::Stopped);
        }
        Ok(self.admission.admit(hash_key(key))?)
    }

    async fn deliver(&self, key: &K, mut command: C, mut permit: Permit) -> Result<R, SendError> {
        let counters = self.tree.counters();
        let command_id = clock::new_id();
        for wait in RESEND_WAITS_MS.map(Some).into_iter().chain([None]) {
            let (envelope, answer) = Envelope::new(command_id, command, permit);
            self.post(key, envelope);
            match answer.await {
                Ok(CommandOutcome::Done(reply)) => {
                    counters.commands_answered.increment();
                    return Ok(reply);
                }
                Ok(CommandOutcome::Quarantined { reference }) => {
                    counters.commands_quarantined.increment();
                    return Err(SendError::Quarantined { reference });
                }
                Ok(CommandOutcome::Interrupted) | Err(_) => {
                    counters.commands_interrupted.increment();
                    return Err(SendError::Interrupted { command_id });
                }
                Ok(CommandOutcome::NotStarted {
                    command: returned,
                    permit: kept,
                }) => {
                    (command, permit) = (returned, kept);
                }
            }
            let Some(wait) = wait.filter(|_| !self.has_failed(key)) else {
                break;
            };
            counters.commands_resent.increment();
            sleep(Duration::from_millis(wait)).await;
        }
        counters.commands_stopped.increment();
        Err(SendError::Stopped)
    }

    /// Posts the envelope to the actor of the key. An actor that has escalated returns the command as *not started*.
    fn post(&self, key: &K, envelope: Envelope<C, R>) {
        let moment = self.tree.micros_at(Instant::now());
        if let Some(handle) = self.handles.get(key)
            && handle.is_open()
        {
            return handle.post(envelope, moment);
        }
        match self.handles.entry(key.clone()) {
            Entry::Occupied(entry) if entry.get().is_open() => entry.get().post(envelope, moment),
            Entry::Occupied(entry) if entry.get().node.has_failed() => drop(envelope),
            Entry::Occupied(mut entry) => {
                entry.insert(self.start(key));
                entry.get().post(envelope, moment);
            }
            Entry::Vacant(entry) => entry.insert(self.start(key)).post(envelope, moment),
        }
    }

    fn start(&self, key: &K) -> Arc<ActorHandle<C, R>> {
        let generation = self.generations.fetch_add(1, Ordering::Relaxed);
        let (shard, arbiter) = self.arbiters.for_key(hash_key(key));
        let kind = self.settings.kind;
        let node = self.tree.add_node(kind, shard, key.to_string());
        let context = StartContext {
            generation,
            arbiter: arbiter.clone(),
            node: node.clone(),
            policy: self.policy(),
            leave: self.handle_remover(key),
        };
        let mailbox = (self.starter)(key, context);
        Arc::new(ActorHandle::new(generation, mailbox, node))
    }

    fn policy(&self) -> RestartPolicy {
        let needed = self
            .admission
            .limits()
            .per_key_max
            .saturating_add(CONTROL_MESSAGES);
        RestartPolicy {
            mailbox_capacity: needed,
            ..self.settings.policy
        }
    }

    fn handle_remover(&self, key: &K) -> Box<dyn Fn(&Passivate) -> bool + Send + Sync> {
        let handles = Arc::downgrade(&self.handles);
        let key = key.clone();
        Box::new(move |asked| {
            // If the registry is gone, no command can arrive, so the actor may stop.
            handles.upgrade().is_none_or(|handles| {
                handles
                    .remove_if(&key, |_, handle| handle.is_unused_since(asked))
                    .is_some()
            })
        })
    }

    fn has_failed(&self, key: &K) -> bool {
        self.handles
            .get(key)
            .is_some_and(|handle| handle.node.has_failed())
    }

    /// Asks actors to stop: those not used for `idle_after`, and the least recently used ones above `active_max`.
    /// Returns the number of actors that were asked.
    pub fn passivate_idle(&self, now: Instant, idle_after: Duration, active_max: usize) -> usize {
        self.handles
            .retain(|_, handle| handle.is_open() || handle.node.has_failed());
        let mut handles: Vec<_> = self
            .handles
            .iter()
            .map(|entry| Arc::clone(&entry))
            .collect();
        let excess = handles.len().saturating_sub(active_max);
        handles.sort_by_cached_key(|handle| handle.last_used_at());
        let idle_micros = u64::try_from(idle_after.as_micros()).unwrap_or(u64::MAX);
        let latest = self.tree.micros_at(now).checked_sub(idle_micros);
        let due = handles.iter().enumerate().filter(|(rank, handle)| {
            *rank < excess || latest.is_some_and(|latest| handle.last_used_at() <= latest)
        });
        due.filter(|(_, handle)| handle.request_stop()).count()
    }

    /// Removes the actors that escalated at least `rest` ago, so that the next command starts a new actor. Returns the
    /// number of removed actors.
    pub fn allow_restart(&self, now: Instant, rest: Duration) -> usize {
        let rest = u64::try_from(rest.as_micros()).unwrap_or(u64::MAX);
        let Some(latest) = self.tree.micros_at(now).checked_sub(rest) else {
            return 0;
        };
        let mut removed = 0;
        self.handles.retain(|key, handle| {
            let has_rested = handle.node.failed_at().is_some_and(|moment| moment <= latest);
            if has_rested {
                tracing::warn!(kind = self.settings.kind.name(), actor = %key, "an escalated actor may start again");
                handle.node.forget();
                removed += 1;
            }
            !has_rested
        });
        removed
    }

    /// Returns the number of keys that have an actor, including escalated actors.
    #[cfg(test)]
    pub(crate) fn active_count(&self) -> usize {
        self.handles.len()
    }

    /// Refuses new commands from now on. Commands in flight continue.
    pub fn close(&self) {
        self.is_closed.store(true, Ordering::SeqCst);
    }

    /// Waits until no command is in flight, at most `timeout`. Returns false at the timeout.
    pub async fn drain(&self, timeout: Duration) -> bool {
        let start = Instant::now();
        while self.admission.in_use() > 0 {
            if start.elapsed() >= timeout {
                return false;
            }
            sleep(Duration::from_millis(10)).await;
        }
        true
    }
}

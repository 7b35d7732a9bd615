//! The actor's own queue, first in first out, which survives a restart.
//!
//! A batch shares its commands with the worker; their envelopes stay here, in flight, so a panic of the work
//! cannot take them along. Only one batch is in flight at a time. After a panic `recover` puts the batch back
//! to the front as suspects, each to run alone; a suspect that panics again is quarantined and its neighbours
//! go on. Once the batch said it is committing, its outcome is unknown: those are answered *interrupted*.

use std::collections::{HashMap, VecDeque};
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::reply::{CommandId, Envelope};

/// A command to work on. Derefs to it.
#[derive(Debug)]
pub struct Task<C> {
    pub id: CommandId,
    pub command: Arc<C>,
}

impl<C> Deref for Task<C> {
    type Target = C;

    fn deref(&self) -> &C {
        &self.command
    }
}

/// The commands of one piece of work, in the order they came.
#[derive(Debug)]
pub struct Batch<C> {
    tasks: Vec<Task<C>>,
    committing: Arc<AtomicBool>,
}

impl<C> Batch<C> {
    pub fn tasks(&self) -> &[Task<C>] {
        &self.tasks
    }

    /// To be called right before the commit: a panic from here on leaves the outcome unknown.
    pub fn committing(&self) {
        self.committing.store(true, Ordering::SeqCst);
    }
}

#[derive(Debug)]
struct Entry<C, R> {
    envelope: Envelope<C, R>,
    panics: u8,
}

#[derive(Debug)]
struct Flight<C, R> {
    entries: Vec<Entry<C, R>>,
    committing: Arc<AtomicBool>,
}

/// What `recover` did with the batch that was in flight.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Recovery {
    pub suspects: usize,
    pub interrupted: usize,
    pub quarantined: usize,
}

#[derive(Debug)]
pub struct WorkQueue<C, R> {
    waiting: VecDeque<Entry<C, R>>,
    flight: Option<Flight<C, R>>,
}

impl<C, R> Default for WorkQueue<C, R> {
    fn default() -> Self {
        Self { waiting: VecDeque::new(), flight: None }
    }
}

impl<C, R> WorkQueue<C, R> {
    pub fn push(&mut self, envelope: Envelope<C, R>) {
        self.waiting.push_back(Entry { envelope, panics: 0 });
    }

    /// Commands waiting and in flight.
    pub fn depth(&self) -> usize {
        self.waiting.len() + self.flight.as_ref().map_or(0, |flight| flight.entries.len())
    }

    pub fn is_empty(&self) -> bool {
        self.depth() == 0
    }

    /// Whether a batch can be taken now.
    pub fn is_due(&self) -> bool {
        self.flight.is_none() && !self.waiting.is_empty()
    }

    /// The next up to `max` commands, or one suspect; nothing while a batch is in flight.
    pub fn take_batch(&mut self, max: usize) -> Option<Batch<C>> {
        if !self.is_due() {
            return None;
        }
        let clean = self.waiting.iter().take_while(|entry| entry.panics == 0).take(max).count();
        let mut entries: Vec<_> = self.waiting.drain(..clean.max(1)).collect();
        let tasks = entries.iter_mut().filter_map(|entry| begin(&mut entry.envelope)).collect();
        let committing = Arc::new(AtomicBool::new(false));
        self.flight = Some(Flight { entries, committing: Arc::clone(&committing) });
        Some(Batch { tasks, committing })
    }

    /// Answers the batch in flight. A command without a reply is answered *interrupted*; returns their number.
    pub fn answer(&mut self, replies: impl IntoIterator<Item = (CommandId, R)>) -> usize {
        let mut replies: HashMap<_, _> = replies.into_iter().collect();
        let mut forgotten = 0;
        for entry in self.flight.take().into_iter().flat_map(|flight| flight.entries) {
            if let Some(reply) = replies.remove(&entry.envelope.id()) {
                entry.envelope.answer(reply);
            } else {
                forgotten += 1;
                entry.envelope.interrupt();
            }
        }
        forgotten
    }

    /// Sorts out the batch a panic left in flight. `quarantined` is told of each command put aside, before its
    /// sender is.
    pub fn recover(&mut self, mut quarantined: impl FnMut(CommandId, &C)) -> Recovery {
        let mut recovery = Recovery::default();
        let Some(flight) = self.flight.take() else { return recovery };
        let committing = flight.committing.load(Ordering::SeqCst);
        for mut entry in flight.entries.into_iter().rev() {
            entry.panics += 1;
            if committing {
                recovery.interrupted += 1;
                entry.envelope.interrupt();
            } else if entry.panics > 1 {
                recovery.quarantined += 1;
                if let Some(command) = entry.envelope.command() {
                    quarantined(entry.envelope.id(), &command);
                }
                entry.envelope.quarantine();
            } else {
                recovery.suspects += 1;
                entry.envelope.unbegin();
                self.waiting.push_front(entry);
            }
        }
        recovery
    }
}

fn begin<C, R>(envelope: &mut Envelope<C, R>) -> Option<Task<C>> {
    let command = envelope.command()?;
    envelope.begin();
    Some(Task { id: envelope.id(), command })
}

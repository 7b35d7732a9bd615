//! The attempts under way to one endpoint. They go on by themselves, whatever the actor does meanwhile; an actor that
//! is restarted, or whose lane another has taken, drops them.

use std::collections::HashSet;
use std::future::Future;

use jiff::Timestamp;
use tokio::task::{JoinError, JoinSet};
use uuid::Uuid;

use crate::domain::delivery::Delivery;
use crate::domain::event::EventKind;
use crate::webhook::Attempt;

/// An attempt that has ended.
pub(super) struct Landed {
    pub(super) delivery: Delivery,
    pub(super) kind: EventKind,
    pub(super) attempt: Attempt,
    /// When it began.
    pub(super) at: Timestamp,
}

#[derive(Default)]
pub(super) struct Flight {
    attempts: JoinSet<Landed>,
    ids: HashSet<Uuid>,
    /// The lease they were begun under.
    epoch: i64,
}

impl Flight {
    /// Drops what was begun under another lease.
    pub(super) fn under(&mut self, epoch: i64) {
        if self.epoch != epoch {
            *self = Self { epoch, ..Self::default() };
        }
    }

    pub(super) fn len(&self) -> usize {
        self.ids.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }

    pub(super) fn holds(&self, delivery: &Delivery) -> bool {
        self.ids.contains(&delivery.id)
    }

    pub(super) fn begin(&mut self, id: Uuid, attempt: impl Future<Output = Landed> + 'static) {
        self.ids.insert(id);
        self.attempts.spawn_local(attempt);
    }

    /// Waits until an attempt has ended, and takes along what has ended besides; nothing where none is under way.
    pub(super) async fn landed(&mut self) -> Vec<Landed> {
        let first = self.attempts.join_next().await;
        self.taken(first)
    }

    /// What has ended by now.
    pub(super) fn landed_besides(&mut self) -> Vec<Landed> {
        self.taken(None)
    }

    fn taken(&mut self, first: Option<Result<Landed, JoinError>>) -> Vec<Landed> {
        let besides = std::iter::from_fn(|| self.attempts.try_join_next());
        let landed: Vec<_> = first.into_iter().chain(besides).filter_map(Result::ok).collect();
        for ended in &landed {
            self.ids.remove(&ended.delivery.id);
        }
        if self.attempts.is_empty() {
            // One that panicked has no name; nothing of it is left.
            self.ids.clear();
        }
        landed
    }
}

//! Leave to call: a place under the operation's limit, then the leave of its breaker.
//!
//! The breaker is asked last, so that its probe is a call and not one who waits in line, and so that nobody who
//! was admitted before it opened calls after it. It is looked at before and while waiting too: whoever stands in
//! line when it opens, or when the authority asks for a pause, is told at once. A call that ends settles with the
//! breaker before its place goes to the next, who therefore finds it open. Nobody waits with the leave of a
//! breaker in hand, and every leave and place is a guard: no probe and no place is lost.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{Sleep, sleep};

use super::breaker::BreakerView;
use super::breakers::{Breakers, Permit};
use super::failure::Failure;
use super::limits::{LimitView, Limits, Place};
use super::operation::Operation;
use crate::domain::clock::SharedClock;

/// A pause that the authority asks for is waited out if it is as short as this.
const PAUSE_WAITED: Duration = Duration::from_secs(2);
/// When to try again after the line was too long.
const AFTER_CROWD: Duration = Duration::from_secs(5);

pub(super) struct Gate {
    pub(super) breakers: Arc<Breakers>,
    limits: Arc<Limits>,
    /// Told where those who wait should look again, one per operation.
    stirs: [Notify; Operation::ALL.len()],
    /// How long anybody waits.
    patience: Duration,
}

/// Leave for one call.
pub(super) struct Leave {
    gate: Arc<Gate>,
    operation: Operation,
    /// Settled in this order.
    permit: Option<Permit>,
    place: Option<Place>,
}

impl Gate {
    /// At most `calls_max` calls of an operation at a time; nobody waits longer than `patience`.
    pub(super) fn new(calls_max: u32, patience: Duration, clock: SharedClock) -> Arc<Self> {
        Arc::new(Self {
            breakers: Breakers::new(clock.clone()),
            limits: Limits::new(calls_max, clock),
            stirs: std::array::from_fn(|_| Notify::new()),
            patience,
        })
    }

    pub(super) fn breaker_views(&self) -> Vec<BreakerView> {
        self.breakers.views()
    }

    pub(super) fn limit_views(&self) -> Vec<LimitView> {
        self.limits.views()
    }

    /// Waits for leave to call. The failure says that the call was not made.
    pub(super) async fn enter(self: &Arc<Self>, operation: Operation) -> Result<Leave, Failure> {
        let mut place = self.place(operation).await?;
        let admitted = self.breakers.admit(operation);
        let permit = admitted.map_err(|retry_after| Failure::BreakerOpen { retry_after })?;
        if permit.is_probe() {
            self.stir(operation);
        }
        place.begin();
        Ok(Leave { gate: Arc::clone(self), operation, permit: Some(permit), place: Some(place) })
    }

    /// A place, held through the rest of a short pause.
    async fn place(self: &Arc<Self>, operation: Operation) -> Result<Place, Failure> {
        let crowded = Failure::Crowded { retry_after: AFTER_CROWD };
        let mut deadline = pin!(sleep(self.patience));
        let mut line = pin!(self.limits.place(operation));
        let place = loop {
            let stir = self.stirs[operation as usize].notified();
            self.look(operation)?;
            tokio::select! {
                biased;
                place = &mut line => break place.ok_or_else(|| crowded.clone())?,
                () = stir => {}
                () = &mut deadline => return Err(crowded),
            }
        };
        self.sit_out(operation, deadline.as_mut()).await?;
        Ok(place)
    }

    async fn sit_out(
        &self,
        operation: Operation,
        mut deadline: std::pin::Pin<&mut Sleep>,
    ) -> Result<(), Failure> {
        loop {
            let stir = self.stirs[operation as usize].notified();
            let Some(pause) = self.look(operation)? else { return Ok(()) };
            tokio::select! {
                () = sleep(pause) => {}
                () = stir => {}
                () = &mut deadline => return Err(Failure::Paced { retry_after: pause }),
            }
        }
    }

    /// A pause short enough to wait out, or the failure where waiting is in vain.
    fn look(&self, operation: Operation) -> Result<Option<Duration>, Failure> {
        if let Some(retry_after) = self.breakers.held(operation) {
            return Err(Failure::BreakerOpen { retry_after });
        }
        match self.limits.held(operation) {
            Some(retry_after) if retry_after > PAUSE_WAITED => Err(Failure::Paced { retry_after }),
            pause => Ok(pause),
        }
    }

    fn stir(&self, operation: Operation) {
        self.stirs[operation as usize].notify_waiters();
    }
}

impl Leave {
    /// The call has ended so, within this time.
    pub(super) fn settle<T>(mut self, result: &Result<T, Failure>, took: Duration) {
        if let Some(permit) = self.permit.take() {
            permit.settle(result);
        }
        if let Some(place) = self.place.take() {
            place.settle(result, took);
        }
    }
}

impl Drop for Leave {
    fn drop(&mut self) {
        drop(self.permit.take());
        drop(self.place.take());
        if self.gate.look(self.operation).is_err() {
            self.gate.stir(self.operation);
        }
    }
}

//! The faults in force. If several faults apply to a call, the oldest is used.
//!
//! A used-up or expired fault stays listed until it is cleared, so that a test can see how often it was used.

use std::sync::{Mutex, MutexGuard, PoisonError};

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::{
    Effect,
    draw::draw_millionths,
    request::{CheckedFault, FaultOrder},
};
use crate::clock;
use crate::route::Operation;

#[derive(Debug, Clone, Copy)]
pub(crate) struct FaultContext<'a> {
    pub(crate) operation: Operation,
    pub(crate) irn: Option<&'a str>,
    /// The number of calls of this operation about this invoice so far, including this call.
    pub(crate) nth: u32,
    pub(crate) at: Timestamp,
}

struct Fault {
    id: u64,
    order: FaultOrder,
    checked: CheckedFault,
    until: Option<Timestamp>,
    hits: u64,
}

#[derive(Default)]
pub(crate) struct Faults(Mutex<Vec<Fault>>);

impl Faults {
    /// Puts a fault in force and returns its id. The error says why the fault is invalid.
    pub(crate) fn add(&self, order: FaultOrder) -> Result<u64, String> {
        let checked = order.check()?;
        let until = order
            .for_s
            .map(|seconds| time_after(clock::now(), seconds))
            .transpose()?;
        let mut faults = self.lock();
        let id = faults.last().map_or(1, |last| last.id + 1);
        faults.push(Fault {
            id,
            order,
            checked,
            until,
            hits: 0,
        });
        Ok(id)
    }

    /// Returns the effect of the first fault that applies to this call, and counts the use of the fault.
    pub(crate) fn apply(&self, seed: u64, moment: &FaultContext) -> Option<Effect> {
        let mut faults = self.lock();
        let fault = faults
            .iter_mut()
            .find(|fault| fault.applies_now(seed, moment))?;
        fault.hits += 1;
        if let Some(remaining) = &mut fault.checked.remaining {
            *remaining -= 1;
        }
        Some(fault.order.effect())
    }

    pub(crate) fn list(&self) -> Value {
        self.lock().iter().map(Fault::to_json).collect()
    }

    pub(crate) fn clear(&self) {
        self.lock().clear();
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Fault>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Fault {
    fn applies_now(&self, seed: u64, moment: &FaultContext) -> bool {
        self.checked.covers(self.order.kind, moment.operation)
            && self.order.concerns(moment.irn)
            && self.checked.remaining != Some(0)
            && self.until.is_none_or(|until| moment.at < until)
            && self
                .checked
                .chance
                .is_none_or(|chance| draw_millionths(seed, &self.id.to_string(), moment) < chance)
    }

    fn to_json(&self) -> Value {
        json!({
            "id": self.id,
            "order": self.order,
            "remaining": self.checked.remaining,
            "until": self.until.map(|until| until.to_string()),
            "hits": self.hits,
        })
    }
}

fn time_after(now: Timestamp, seconds: u64) -> Result<Timestamp, String> {
    let wait = i64::try_from(seconds)
        .map(SignedDuration::from_secs)
        .map_err(|_| "for_s is too large")?;
    now.checked_add(wait)
        .map_err(|_| "for_s is too large".to_owned())
}

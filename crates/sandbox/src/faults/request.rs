//! The requests with which a test sets faults: the kind of a fault, the calls that it applies to, and how often it
//! applies.

use serde::{Deserialize, Serialize};
use serde_json::Number;

use super::Effect;
use crate::decimal;
use crate::route::Operation;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FaultKind {
    /// Delays the answer; the operation itself is performed at once.
    Latency,
    /// Answers 500 and does not perform the operation.
    ServerError,
    /// Answers 429 with Retry-After and does not perform the operation.
    Throttled,
    /// Answers 400 or the given status, with the same message as for a duplicate, and does not perform the operation.
    Busy,
    /// Performs the operation and closes the connection without an answer.
    CommitThenDrop,
    /// Resets the connection and does not perform the operation.
    Reset,
    /// Keeps the connection open without an answer and does not perform the operation.
    Stall,
    /// Performs the operation and keeps the connection open without an answer.
    CommitThenStall,
    /// Performs the operation and answers with text that is not JSON.
    Garbage,
    /// Performs the operation and answers with XML.
    Xml,
    /// Performs the operation and answers without the member `data`.
    MissingFields,
    /// Answers 400, as if the API key were unknown, and does not perform the operation.
    WrongKey,
    /// Makes the customer's access point unreachable.
    AccessPointOffline,
    /// Makes the self health check report that the authority is down.
    HealthDown,
    /// Answers every call with 503.
    Outage,
}

impl FaultKind {
    /// Returns true if a fault of this kind lasts until it is cleared. By default, the other faults apply to one call.
    fn is_condition(self) -> bool {
        matches!(
            self,
            Self::AccessPointOffline | Self::HealthDown | Self::Outage
        )
    }

    /// Returns true if the caller gets an answer, readable or not.
    pub(crate) fn is_answered(self) -> bool {
        !self.is_stall() && !matches!(self, Self::Reset | Self::CommitThenDrop)
    }

    pub(crate) fn is_stall(self) -> bool {
        matches!(self, Self::Stall | Self::CommitThenStall)
    }

    fn applies_to(self, operation: Operation) -> bool {
        match self {
            Self::AccessPointOffline => {
                matches!(operation, Operation::Lookup | Operation::Transmit)
            }
            Self::HealthDown => operation == Operation::Health,
            Self::WrongKey => !operation.is_public(),
            _ => true,
        }
    }
}

/// The body of `POST /sandbox/faults`. Without an `operation`, or with `"*"`, the fault applies to every operation that
/// can have it.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FaultOrder {
    pub operation: Option<String>,
    pub kind: FaultKind,
    /// Limits the fault to calls about this invoice.
    pub irn: Option<String>,
    /// The number of calls that the fault applies to.
    pub times: Option<u32>,
    /// The probability that the fault applies to a call, from 0 to 1.
    pub probability: Option<Number>,
    /// The delay of the answer in milliseconds; can be combined with every kind of fault.
    pub latency_ms: Option<u64>,
    /// The seconds in the header Retry-After of the fault `throttled`; 1 by default.
    pub retry_after_s: Option<u64>,
    /// The time for which the fault stays in force, in seconds.
    pub for_s: Option<u64>,
    /// Replaces the usual HTTP status of the faults `server_error`, `busy` and `outage`.
    pub status: Option<u16>,
}

impl FaultOrder {
    /// Returns a fault of this kind with default settings.
    pub fn new(kind: FaultKind) -> Self {
        Self {
            operation: None,
            kind,
            irn: None,
            times: None,
            probability: None,
            latency_ms: None,
            retry_after_s: None,
            for_s: None,
            status: None,
        }
    }

    #[must_use]
    pub fn on(mut self, operation: Operation) -> Self {
        self.operation = Some(operation.name().to_owned());
        self
    }

    #[must_use]
    pub fn times(mut self, times: u32) -> Self {
        self.times = Some(times);
        self
    }

    /// Parses the operation and checks the values. The error is a sentence for the caller.
    pub(crate) fn check(&self) -> Result<CheckedFault, String> {
        let operation = parse_operation(self.operation.as_deref())?;
        if let Some(operation) = operation
            && !self.kind.applies_to(operation)
        {
            return Err(format!(
                "this kind of fault does not apply to {}",
                operation.name()
            ));
        }
        if self
            .status
            .is_some_and(|status| !(400..=599).contains(&status))
        {
            return Err("status must be from 400 to 599".into());
        }
        Ok(CheckedFault {
            operation,
            chance: self.chance()?,
            remaining: self.remaining_times(),
        })
    }

    fn remaining_times(&self) -> Option<u32> {
        let lasting =
            self.kind.is_condition() || self.probability.is_some() || self.for_s.is_some();
        self.times.or(if lasting { None } else { Some(1) })
    }

    /// Returns the probability in millionths; `None` if the fault has no probability.
    fn chance(&self) -> Result<Option<u64>, String> {
        let Some(number) = &self.probability else {
            return Ok(None);
        };
        let millionths = decimal::from_number(number)
            .and_then(|probability| probability.checked_mul(1_000_000.into()))
            .and_then(|millionths| u64::try_from(millionths).ok())
            .filter(|millionths| *millionths <= 1_000_000);
        millionths
            .map(Some)
            .ok_or_else(|| "probability must be from 0 to 1".into())
    }

    pub(crate) fn concerns(&self, irn: Option<&str>) -> bool {
        self.irn.is_none() || self.irn.as_deref() == irn
    }

    pub(crate) fn effect(&self) -> Effect {
        let usual = Effect::from_kind(self.kind);
        Effect {
            kind: self.kind,
            latency_ms: self.latency_ms.unwrap_or(usual.latency_ms),
            retry_after_s: self.retry_after_s.unwrap_or(usual.retry_after_s),
            status: self.status,
        }
    }
}

/// The parsed values of a fault that has passed all checks.
#[derive(Debug)]
pub(crate) struct CheckedFault {
    pub(crate) operation: Option<Operation>,
    /// The probability in millionths.
    pub(crate) chance: Option<u64>,
    /// The number of calls that the fault still applies to; `None` means no limit.
    pub(crate) remaining: Option<u32>,
}

impl CheckedFault {
    pub(crate) fn covers(&self, kind: FaultKind, operation: Operation) -> bool {
        self.operation.is_none_or(|only| only == operation) && kind.applies_to(operation)
    }
}

/// Parses the name of an operation. Returns `None`, which means all operations, if the name is absent or `"*"`.
pub(crate) fn parse_operation(name: Option<&str>) -> Result<Option<Operation>, String> {
    match name {
        None | Some("*") => Ok(None),
        Some(name) => {
            let named = serde_json::from_value(name.into());
            named
                .map(Some)
                .map_err(|_| format!("unknown operation {name}"))
        }
    }
}

//! The definition of a fault: its kind, the calls it applies to, how often.

use serde::{Deserialize, Serialize};
use serde_json::Number;

use super::Effect;
use crate::decimal;
use crate::route::Operation;

/// The kind of a fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FaultKind {
    /// Delays the answer, not the effect.
    Latency,
    /// 500 without an effect.
    ServerError,
    /// 429 with Retry-After, without an effect.
    Throttled,
    /// The ambiguous 400 (or 422) without an effect.
    Busy,
    /// The effect happens, no reply is sent.
    CommitThenDrop,
    /// The connection is reset before anything happens.
    Reset,
    /// Nothing happens, and no reply is ever sent.
    Stall,
    /// The effect happens, and no reply is ever sent.
    CommitThenStall,
    /// The effect happens, the reply is no JSON.
    Garbage,
    /// The effect happens, the reply is XML.
    Xml,
    /// The effect happens, the reply lacks its data.
    MissingFields,
    /// 400 without an effect: the key pair is unknown.
    WrongKey,
    /// The customer's access point does not answer.
    AccessPointOffline,
    /// The self health check fails.
    HealthDown,
    /// 503 for every call.
    Outage,
}

impl FaultKind {
    /// Conditions last until they are cleared; other kinds apply to one call by default.
    fn is_condition(self) -> bool {
        matches!(self, Self::AccessPointOffline | Self::HealthDown | Self::Outage)
    }

    /// Returns true if the caller gets a reply, readable or not.
    pub(crate) fn is_answered(self) -> bool {
        !self.is_stall() && !matches!(self, Self::Reset | Self::CommitThenDrop)
    }

    pub(crate) fn is_stall(self) -> bool {
        matches!(self, Self::Stall | Self::CommitThenStall)
    }

    fn applies_to(self, operation: Operation) -> bool {
        match self {
            Self::AccessPointOffline => matches!(operation, Operation::Lookup | Operation::Transmit),
            Self::HealthDown => operation == Operation::Health,
            Self::WrongKey => !operation.is_public(),
            _ => true,
        }
    }
}

/// The body of `POST /sandbox/faults`. Without `operation` or with `"*"`: every operation that the kind applies
/// to.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FaultOrder {
    pub operation: Option<String>,
    pub kind: FaultKind,
    /// Only calls about this invoice.
    pub irn: Option<String>,
    /// The number of calls it applies to.
    pub times: Option<u32>,
    /// From 0 to 1: the probability for each call.
    pub probability: Option<Number>,
    /// The delay of the answer; can be combined with every kind.
    pub latency_ms: Option<u64>,
    /// For `throttled`; 1 by default.
    pub retry_after_s: Option<u64>,
    /// The seconds that the fault stays in force.
    pub for_s: Option<u64>,
    /// Another status for `server_error`, `busy` or `outage`.
    pub status: Option<u16>,
}

impl FaultOrder {
    /// Returns a fault of this kind for the next call of any operation; a condition lasts.
    pub fn of(kind: FaultKind) -> Self {
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

    /// The fault with its operation parsed and its limits checked.
    pub(crate) fn check(&self) -> Result<Checked, String> {
        let operation = parse_operation(self.operation.as_deref())?;
        if let Some(operation) = operation
            && !self.kind.applies_to(operation)
        {
            return Err(format!("this kind of fault does not apply to {}", operation.name()));
        }
        if self.status.is_some_and(|status| !(400..=599).contains(&status)) {
            return Err("status must be from 400 to 599".into());
        }
        Ok(Checked { operation, chance: self.chance()?, remaining: self.remaining() })
    }

    fn remaining(&self) -> Option<u32> {
        let lasting = self.kind.is_condition() || self.probability.is_some() || self.for_s.is_some();
        self.times.or(if lasting { None } else { Some(1) })
    }

    /// The probability in millionths.
    fn chance(&self) -> Result<Option<u64>, String> {
        let Some(number) = &self.probability else { return Ok(None) };
        let millionths = decimal::of_number(number)
            .and_then(|probability| probability.checked_mul(1_000_000.into()))
            .and_then(|millionths| u64::try_from(millionths).ok())
            .filter(|millionths| *millionths <= 1_000_000);
        millionths.map(Some).ok_or_else(|| "probability must be from 0 to 1".into())
    }

    pub(crate) fn concerns(&self, irn: Option<&str>) -> bool {
        self.irn.is_none() || self.irn.as_deref() == irn
    }

    pub(crate) fn effect(&self) -> Effect {
        let usual = Effect::of(self.kind);
        Effect {
            kind: self.kind,
            latency_ms: self.latency_ms.unwrap_or(usual.latency_ms),
            retry_after_s: self.retry_after_s.unwrap_or(usual.retry_after_s),
            status: self.status,
        }
    }
}

/// The result of checking a fault.
#[derive(Debug)]
pub(crate) struct Checked {
    pub(crate) operation: Option<Operation>,
    /// Millionths.
    pub(crate) chance: Option<u64>,
    /// Calls left; `None` is no limit.
    pub(crate) remaining: Option<u32>,
}

impl Checked {
    pub(crate) fn covers(&self, kind: FaultKind, operation: Operation) -> bool {
        self.operation.is_none_or(|only| only == operation) && kind.applies_to(operation)
    }
}

/// The operation of a fault; none and `"*"` are all of them.
pub(crate) fn parse_operation(name: Option<&str>) -> Result<Option<Operation>, String> {
    match name {
        None | Some("*") => Ok(None),
        Some(name) => {
            let named = serde_json::from_value(name.into());
            named.map(Some).map_err(|_| format!("unknown operation {name}"))
        }
    }
}

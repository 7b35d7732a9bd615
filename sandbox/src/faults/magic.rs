//! Faults a person can type: `SBX` and a word inside an invoice number.
//!
//! Upstream numbers hold letters and digits only, and so do these. Passing faults pass by themselves, so an invoice
//! typed to fail still ends well; the three that do not pass (REJECT, OFFLINE, DOWN) are for watching what is given up.

use super::{Effect, FaultKind, Moment};
use crate::{irn::Irn, route::Operation};

/// The word, what it does to a sign, and to how many signs of one invoice.
const SIGN_WORDS: [(&str, FaultKind, u32); 9] = [
    ("DROP", FaultKind::CommitThenDrop, 1),
    ("RESET", FaultKind::Reset, 1),
    ("GARBAGE", FaultKind::Garbage, 1),
    ("XML", FaultKind::Xml, 1),
    ("MISSING", FaultKind::MissingFields, 1),
    ("500", FaultKind::ServerError, 2),
    ("429", FaultKind::Throttled, 2),
    ("BUSY", FaultKind::Busy, 2),
    ("DOWN", FaultKind::ServerError, u32::MAX),
];

/// How late every answer about a SLOW invoice is.
const SLOW_MS: u64 = 3000;

/// What the invoice's own number does to this call.
pub(crate) fn magic(moment: &Moment) -> Option<Effect> {
    let word = word(moment.irn?)?;
    if word.starts_with("SLOW") {
        return Some(Effect { latency_ms: SLOW_MS, ..Effect::of(FaultKind::Latency) });
    }
    if moment.operation != Operation::Sign {
        return None;
    }
    let (_, kind, times) = SIGN_WORDS.into_iter().find(|(name, ..)| word.starts_with(name))?;
    (moment.nth <= times).then(|| Effect::of(kind))
}

/// The customer of such an invoice is never online.
pub(crate) fn is_offline(irn: &str) -> bool {
    word(irn).is_some_and(|word| word.starts_with("OFFLINE"))
}

/// The document of such an invoice is never valid.
pub(crate) fn is_rejected(irn: &str) -> bool {
    word(irn).is_some_and(|word| word.starts_with("REJECT"))
}

/// What follows `SBX` in the invoice number, in capitals.
fn word(irn: &str) -> Option<String> {
    let number = Irn::parse(irn).ok()?.invoice_no.to_ascii_uppercase();
    number.split_once("SBX").map(|(_, word)| word.to_owned())
}

//! Faults that a person can type into an invoice number, as a word that begins with `SBX`.
//!
//! SBXREJECT, SBXOFFLINE and SBXDOWN never end, so that a person can see how the service gives up. SBXSLOW, which
//! only delays answers, does not end either. The other faults end after a few calls or seconds.

use super::{Effect, FaultContext, FaultKind, FaultOrder};
use crate::irn::Irn;
use crate::route::Operation;

/// A magic word and its effect on the invoices whose number contains the word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MagicWord {
    /// The word as typed, with its prefix `SBX`.
    pub word: &'static str,
    /// The effect, as a sentence without a full stop. The documentation lists it.
    pub happens: &'static str,
    effect: WordEffect,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WordEffect {
    /// A fault of the first `sign` calls about the invoice: the number of calls, the fault, and the HTTP status if it
    /// is not the usual one.
    ToSigns(u32, FaultKind, Option<u16>),
    /// A fault of the first `lookup` calls about the invoice: the number of calls, and the fault.
    ToLookups(u32, FaultKind),
    Slow,
    Reject,
    Offline,
    /// A fault that lasts some seconds and is not limited to calls about this invoice. The first `sign` of the invoice
    /// starts it.
    ToAll(FaultKind),
}

use WordEffect::{Offline, Reject, Slow, ToAll, ToLookups, ToSigns};

const fn magic_word(word: &'static str, effect: WordEffect, happens: &'static str) -> MagicWord {
    MagicWord {
        word,
        happens,
        effect,
    }
}

pub const MAGIC_WORDS: [MagicWord; 19] = [
    magic_word(
        "SBXDROP",
        ToSigns(1, FaultKind::CommitThenDrop, None),
        "the first sign is committed, the connection closed without a reply",
    ),
    magic_word(
        "SBXSTALL",
        ToSigns(1, FaultKind::CommitThenStall, None),
        "the first sign is committed, its reply never comes",
    ),
    magic_word(
        "SBXHANG",
        ToSigns(1, FaultKind::Stall, None),
        "the reply to the first sign never comes, nor its effect",
    ),
    magic_word(
        "SBXRESET",
        ToSigns(1, FaultKind::Reset, None),
        "the connection of the first sign is reset, without effect",
    ),
    magic_word(
        "SBXGARBAGE",
        ToSigns(1, FaultKind::Garbage, None),
        "the first sign is committed, its reply is no JSON",
    ),
    magic_word(
        "SBXXML",
        ToSigns(1, FaultKind::Xml, None),
        "the first sign is committed, its reply is XML",
    ),
    magic_word(
        "SBXMISSING",
        ToSigns(1, FaultKind::MissingFields, None),
        "the first sign is committed, its reply lacks its data",
    ),
    magic_word(
        "SBX500",
        ToSigns(2, FaultKind::ServerError, None),
        "the first two signs are answered 500, without effect",
    ),
    magic_word(
        "SBX429",
        ToSigns(2, FaultKind::Throttled, None),
        "the first two signs are answered 429 with Retry-After, without effect",
    ),
    magic_word(
        "SBXBUSY",
        ToSigns(2, FaultKind::Busy, None),
        "the first two signs are answered with the ambiguous 400, without effect",
    ),
    magic_word(
        "SBXBUSY422",
        ToSigns(2, FaultKind::Busy, Some(422)),
        "the first two signs are answered with the ambiguous words and 422, without effect",
    ),
    magic_word(
        "SBXKEY",
        ToSigns(2, FaultKind::WrongKey, None),
        "the first two signs are answered 400, as if the key pair were wrong",
    ),
    magic_word(
        "SBXDOWN",
        ToSigns(u32::MAX, FaultKind::ServerError, None),
        "every sign is answered 500, without effect",
    ),
    magic_word(
        "SBXREJECT",
        Reject,
        "the document is never valid: refused by `validate` and `sign`",
    ),
    magic_word(
        "SBXAWAY",
        ToLookups(2, FaultKind::AccessPointOffline),
        "the customer's access point is offline at the first two lookups, then online",
    ),
    magic_word(
        "SBXOFFLINE",
        Offline,
        "the customer's access point is never online",
    ),
    magic_word(
        "SBXSLOW",
        Slow,
        "every answer about the invoice is 1.5 s late",
    ),
    magic_word(
        "SBXHEALTH",
        ToAll(FaultKind::HealthDown),
        "from its first sign on the self health check is down for everybody, for 10 s; digits after the word are \
         other seconds, as in SBXHEALTH60",
    ),
    magic_word(
        "SBXOUTAGE",
        ToAll(FaultKind::Outage),
        "from its first sign on every call of everybody is answered 503, for 10 s; digits after the word are other \
         seconds, as in SBXOUTAGE60",
    ),
];

const SLOW_MS: u64 = 1500;
/// The duration of a fault such as SBXOUTAGE, in seconds. Digits after the word set another duration: SBXOUTAGE60 lasts
/// 60 s.
const FAULT_S_DEFAULT: u64 = 10;
const FAULT_S_MAX: u64 = 3600;

pub(crate) fn magic_effect(moment: &FaultContext) -> Option<Effect> {
    let is_among = |operation, times| moment.operation == operation && moment.nth <= times;
    match word_effect(moment.irn?)? {
        Slow => Some(Effect {
            latency_ms: SLOW_MS,
            ..Effect::from_kind(FaultKind::Latency)
        }),
        ToSigns(times, kind, status) if is_among(Operation::Sign, times) => Some(Effect {
            status,
            ..Effect::from_kind(kind)
        }),
        ToLookups(times, kind) if is_among(Operation::Lookup, times) => {
            Some(Effect::from_kind(kind))
        }
        _ => None,
    }
}

/// Returns the fault that this call starts for all invoices, if any. Only the first `sign` of an invoice can start one.
pub(crate) fn fault_for_all(moment: &FaultContext) -> Option<FaultOrder> {
    let irn = moment
        .irn
        .filter(|_| moment.operation == Operation::Sign && moment.nth == 1)?;
    let ToAll(kind) = word_effect(irn)? else {
        return None;
    };
    Some(FaultOrder {
        for_s: Some(fault_duration_s(irn)),
        ..FaultOrder::new(kind)
    })
}

/// Returns true if the invoice number contains the word SBXOFFLINE, which takes the customer offline for good.
pub(crate) fn is_offline(irn: &str) -> bool {
    word_effect(irn) == Some(Offline)
}

/// Returns true if the invoice number contains the word SBXREJECT: its document is always refused.
pub(crate) fn is_rejected(irn: &str) -> bool {
    word_effect(irn) == Some(Reject)
}

fn word_effect(irn: &str) -> Option<WordEffect> {
    find_word(&magic_part(irn)?).map(|found| found.effect)
}

/// Returns the magic word at the start of the text; the longest, if several fit.
fn find_word(typed: &str) -> Option<MagicWord> {
    let fitting = MAGIC_WORDS
        .into_iter()
        .filter(|known| typed.starts_with(known.word));
    fitting.max_by_key(|known| known.word.len())
}

/// Returns the number of seconds that follows the word in the invoice number; `FAULT_S_DEFAULT` if no digits follow
/// the word.
fn fault_duration_s(irn: &str) -> u64 {
    let typed = magic_part(irn).unwrap_or_default();
    let after = find_word(&typed).map_or("", |known| &typed[known.word.len()..]);
    let digits: String = after.chars().take_while(char::is_ascii_digit).collect();
    if digits.is_empty() {
        FAULT_S_DEFAULT
    } else {
        digits.parse().unwrap_or(FAULT_S_MAX).min(FAULT_S_MAX)
    }
}

/// Returns the invoice number from `SBX` on, in capitals; `None` if it does not contain `SBX`.
fn magic_part(irn: &str) -> Option<String> {
    let mut number = Irn::parse(irn).ok()?.invoice_no.to_ascii_uppercase();
    let start = number.find("SBX")?;
    Some(number.split_off(start))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_found_in_any_case_and_the_longer_one_wins() {
        for (number, expected) in [
            ("INV7sbxdrop", Some("SBXDROP")),
            ("SBXBUSY", Some("SBXBUSY")),
            ("SBXBUSY4", Some("SBXBUSY")),
            ("A1SBXBUSY422", Some("SBXBUSY422")),
            ("INV7SBX", None),
            ("INV7SBXNOWORD", None),
            ("INV7DROP", None),
        ] {
            let irn = format!("{number}-94AD90FB-20261121");
            let found = magic_part(&irn)
                .and_then(|typed| find_word(&typed))
                .map(|known| known.word);
            assert_eq!(found, expected, "{number}");
        }
    }

    #[test]
    fn digits_after_a_word_are_its_seconds() {
        for (number, expected) in [
            ("SBXOUTAGE", 10),
            ("SBXOUTAGE60", 60),
            ("SBXHEALTH5X9", 5),
            ("SBXOUTAGE99999999999999999999", 3600),
        ] {
            assert_eq!(
                fault_duration_s(&format!("{number}-94AD90FB-20261121")),
                expected,
                "{number}"
            );
        }
    }
}

//! The callers that the breaker of one operation holds back, over the breaker for everybody and the lanes of all
//! payers, and the probes that it lets through.

use std::collections::HashMap;

use jiff::Timestamp;

use crate::admission::call_origin::{CallerAccount, PayerOrService};
use crate::admission::open_breaker::{HeldBackCallers, HeldCallers, OpenBreaker, ProbeCallers};
use crate::admission::payer_lane::PayerLane;

type Open<'a> = Option<&'a OpenBreaker<PayerOrService>>;
type Lanes = HashMap<PayerOrService, PayerLane>;

/// Returns the callers whose calls would be rejected now; nobody while the next call would be a probe.
pub(crate) fn callers_held_now(open: Open<'_>, lanes: &Lanes, now: Timestamp) -> HeldCallers {
    let accounts = match open.map(|open| open.callers_held_back(now)) {
        Some(HeldBackCallers::Nobody) => return HeldCallers::Nobody,
        Some(HeldBackCallers::All) => return HeldCallers::Everybody,
        Some(HeldBackCallers::Some(payers)) => {
            let lanes = payers.iter().filter_map(|payer| lanes.get(payer));
            lanes
                .flat_map(PayerLane::failed_accounts)
                .copied()
                .collect()
        }
        None => lanes
            .values()
            .flat_map(|lane| lane.held_accounts(now))
            .copied()
            .collect(),
    };
    held_accounts(accounts)
}

/// Returns the callers for which the breaker or the lane of their payer is open, also while a probe is due.
pub(crate) fn callers_of_open_breaker(open: Open<'_>, lanes: &Lanes) -> HeldCallers {
    if open.is_some() {
        return HeldCallers::Everybody;
    }
    let accounts = lanes.values().flat_map(PayerLane::open_accounts);
    held_accounts(accounts.copied().collect())
}

/// Returns the probes that may start now. Each item stands for one call.
pub(crate) fn due_probes(open: Open<'_>, lanes: &Lanes, now: Timestamp) -> Vec<ProbeCallers> {
    let Some(open) = open else {
        return lanes
            .values()
            .filter(|lane| lane.is_probe_due(now))
            .map(|lane| ProbeCallers::Accounts(lane.open_accounts().to_vec()))
            .collect();
    };
    let failed: &[_] = match open.callers_held_back(now) {
        HeldBackCallers::All => return Vec::new(),
        HeldBackCallers::Nobody => &[],
        HeldBackCallers::Some(payers) => payers,
    };
    let failed = failed.iter().filter_map(|payer| payer.id());
    vec![ProbeCallers::AllButPayers(failed.collect())]
}

fn held_accounts(accounts: Vec<CallerAccount>) -> HeldCallers {
    if accounts.is_empty() {
        HeldCallers::Nobody
    } else {
        HeldCallers::Accounts(accounts)
    }
}

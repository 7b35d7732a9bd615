//! The use and the pauses of taxpayers, as operators see them.

use serde::Serialize;
use utoipa::ToSchema;

use crate::actors::taxpayer::usage::UsageCounts;
use crate::domain::invoice::invoice_view::precise_time;
use crate::domain::kernel::ids::TaxpayerId;
use crate::domain::taxpayer_pause::TaxpayerPause;

/// The taxpayers that loaded one replica most.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct TopTaxpayers {
    /// The replica that answers. All figures are about this replica.
    pub(crate) answered_by: String,
    /// The time at which the replica started and its counts began.
    pub(crate) since: String,
    /// The figure by which the list is ordered.
    pub(crate) by: &'static str,
    /// The number of minutes up to now that the figures cover.
    pub(crate) minutes: u32,
    pub(crate) taxpayers: Vec<TopTaxpayer>,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct TopTaxpayer {
    taxpayer_id: TaxpayerId,
    /// The name of the taxpayer; null if the database did not answer.
    name: Option<String>,
    /// The number of commands that succeeded.
    writes: u64,
    /// The longest time from a command to its answer, in microseconds.
    wait_max_us: u64,
    /// The number of runs that the authority accepted or refused.
    runs: u64,
    /// The number of attempts at deliveries to the taxpayer's webhook.
    deliveries: u64,
    /// The number of runs that the authority refused.
    refusals: u64,
    /// The number of requests with the taxpayer's key, and of commands, that were refused with 429.
    throttled: u64,
}

impl TopTaxpayer {
    pub(crate) fn new(taxpayer_id: TaxpayerId, name: Option<String>, counts: &UsageCounts) -> Self {
        Self {
            taxpayer_id,
            name,
            writes: counts.writes,
            wait_max_us: counts.wait_max_us,
            runs: counts.runs,
            deliveries: counts.deliveries,
            refusals: counts.refusals,
            throttled: counts.throttled,
        }
    }
}

/// The pause of a taxpayer, or the fact that it has none.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct TaxpayerPauseView {
    taxpayer_id: TaxpayerId,
    is_paused: bool,
    /// Time at which the pause began; null if the taxpayer is not paused.
    since: Option<String>,
    /// The reason that the operator gave; null if the taxpayer is not paused.
    reason: Option<String>,
}

impl TaxpayerPauseView {
    pub(crate) fn new(taxpayer_id: TaxpayerId, pause: Option<&TaxpayerPause>) -> Self {
        Self {
            taxpayer_id,
            is_paused: pause.is_some(),
            since: pause.map(|pause| precise_time(pause.since)),
            reason: pause.and_then(|pause| pause.reason.clone()),
        }
    }
}

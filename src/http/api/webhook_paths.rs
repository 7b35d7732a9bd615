//! The webhook part of the route table: its setup, test and grade, the deliveries, and the replays.

use actix_web::http::Method;

use crate::http::api::system_integrators as si;
use crate::http::api::tax_payers as tp;
use crate::http::endpoint::{Path, SET, path};
use crate::http::limits::SensitiveOp;

const TRY: [Method; 2] = [Method::POST, Method::GET];

/// Every path of a taxpayer's webhook.
#[rustfmt::skip]
pub(crate) fn table() -> Vec<Path> {
    vec![
        path("/v1/tax-payers/webhook/dead-letters").get(tp::list_own_dead_letters),
        path("/v1/tax-payers/webhook/dead-letters/{delivery_id}/replay").post(tp::replay_own_dead_letter),
        path("/v1/system-integrators/taxpayers/{id}/webhook").get(si::get_webhook).on(SET, si::update_webhook),
        path("/v1/system-integrators/taxpayers/{id}/webhook/secret").post(si::rotate_webhook_secret),
        path("/v1/system-integrators/taxpayers/{id}/webhook/test").has_effect().relays().sensitive(SensitiveOp::WebhookTest).on(TRY, si::test_webhook),
        path("/v1/system-integrators/taxpayers/{id}/webhook/enable").post(si::enable_webhook),
        path("/v1/system-integrators/taxpayers/{id}/webhook/replay").get(si::get_replay).post(si::replay_webhook),
        path("/v1/system-integrators/taxpayers/{id}/webhook/replays").get(si::list_replays),
        path("/v1/system-integrators/taxpayers/{id}/webhook/replays/{replay_id}").get(si::find_replay),
        path("/v1/system-integrators/taxpayers/{id}/webhook/replays/{replay_id}/cancel").post(si::cancel_replay),
        path("/v1/system-integrators/taxpayers/{id}/webhook/deliveries").get(si::list_deliveries),
        path("/v1/system-integrators/taxpayers/{id}/webhook/deliveries/{delivery_id}/replay").post(si::replay_delivery),
    ]
}

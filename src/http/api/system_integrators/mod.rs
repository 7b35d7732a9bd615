//! `/v1/system-integrators`: an integrator and the taxpayers it onboarded.

mod audit;
mod deliveries;
mod replays;
mod taxpayers;
mod webhook;

pub(crate) use audit::list_own_audit;
pub(crate) use deliveries::{list_deliveries, replay_delivery};
pub(crate) use replays::{cancel_replay, find_replay, get_replay, list_replays, replay_webhook};
pub(crate) use taxpayers::{
    create_taxpayer, get_integration_setup, get_taxpayer, list_taxpayers, rotate_api_key, update_profile,
};
pub(crate) use webhook::{enable_webhook, get_webhook, rotate_webhook_secret, test_webhook, update_webhook};

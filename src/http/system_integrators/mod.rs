//! `/v1/system-integrators`: an integrator and the taxpayers it onboarded.

mod cancel_replay;
mod create_taxpayer;
mod enable_webhook;
mod find_replay;
mod get_integration_setup;
mod get_replay;
mod get_taxpayer;
mod get_webhook;
mod list_deliveries;
mod list_replays;
mod list_taxpayers;
mod replay_delivery;
mod replay_webhook;
mod rotate_api_key;
mod rotate_webhook_secret;
mod test_webhook;
mod update_profile;
mod update_webhook;

pub(super) use cancel_replay::cancel_replay;
pub(super) use create_taxpayer::create_taxpayer;
pub(super) use enable_webhook::enable_webhook;
pub(super) use find_replay::find_replay;
pub(super) use get_integration_setup::get_integration_setup;
pub(super) use get_replay::get_replay;
pub(super) use get_taxpayer::get_taxpayer;
pub(super) use get_webhook::get_webhook;
pub(super) use list_deliveries::list_deliveries;
pub(super) use list_replays::list_replays;
pub(super) use list_taxpayers::list_taxpayers;
pub(super) use replay_delivery::replay_delivery;
pub(super) use replay_webhook::replay_webhook;
pub(super) use rotate_api_key::rotate_api_key;
pub(super) use rotate_webhook_secret::rotate_webhook_secret;
pub(super) use test_webhook::test_webhook;
pub(super) use update_profile::update_profile;
pub(super) use update_webhook::update_webhook;

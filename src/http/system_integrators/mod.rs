//! `/v1/system-integrators`: an integrator and the taxpayers it onboarded.

mod create_taxpayer;
mod get_taxpayer;
mod get_webhook;
mod list_taxpayers;
mod rotate_api_key;
mod rotate_webhook_secret;
mod update_profile;
mod update_webhook;

pub(super) use create_taxpayer::create_taxpayer;
pub(super) use get_taxpayer::get_taxpayer;
pub(super) use get_webhook::get_webhook;
pub(super) use list_taxpayers::list_taxpayers;
pub(super) use rotate_api_key::rotate_api_key;
pub(super) use rotate_webhook_secret::rotate_webhook_secret;
pub(super) use update_profile::update_profile;
pub(super) use update_webhook::update_webhook;

//! `/v1/system-integrators`.

mod create_taxpayer;
mod get_taxpayer;
mod list_taxpayers;
mod profile;
mod rotate_api_key;
mod webhook;

//! `/v1/system-integrators`.

mod account_settings;
mod audit;
mod create_taxpayer;
mod deliveries;
mod get_taxpayer;
mod list_taxpayers;
mod profile;
mod replay;
mod replays;
mod retry_schedule;
mod rotate_api_key;
mod verification;
mod webhook;
mod webhook_endpoints;
mod webhook_grade;
mod webhook_test;

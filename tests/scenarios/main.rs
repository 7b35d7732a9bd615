//! Crash and recovery: the real binary as a child process, killed, stopped, cut off from its database, and
//! looked at again afterwards. The authority is the simulator in this process, so that it outlives the kills
//! and tells what really reached it.
//!
//! SQLite always; PostgreSQL where `EINVOICE_TEST_POSTGRES` names a server on which databases may be made.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a scenario fails by panicking"
)]

mod bulk_kills;
mod calm;
mod chaos;
mod command_line;
mod correction_kills;
mod crash_cost;
mod crashes;
mod database_busy;
mod database_gone;
mod database_silent;
mod doctor;
mod drain;
mod drills;
mod durability;
mod endpoint_kills;
mod first_start;
mod hostile_json;
mod idempotency;
mod import_kills;
mod inbound_kills;
mod incidents;
mod mail_kills;
mod memory;
mod noisy_neighbour;
mod outage;
mod outage_kills;
mod paused;
mod pipeline_kills;
mod reconcile;
mod relay_kills;
mod replicas;
mod slow_neighbours;
mod support;
mod trail;
mod two_processes;
mod unfinished_forms;
mod unread_answers;
mod webhook_kills;
mod webhook_order;
mod webhook_waits;

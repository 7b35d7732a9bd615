//! The simulator over real HTTP, as a client sees it.
#![cfg(test)] // Helpers unwrap like the tests they serve: clippy tells by this.

mod control;
mod faults;
mod hub;
mod latencies;
mod magic;
mod pipeline;
mod sealed;
mod support;

//! The simulator over real HTTP, as a client sees it.
#![cfg(test)] // With this, clippy lets the helpers unwrap as the tests do.

mod control;
mod faults;
mod hub;
mod latencies;
mod magic;
mod pipeline;
mod sealed;
mod support;

//! The simulator over real HTTP, as its users meet it.

mod control;
mod faults;
mod hub;
mod magic;
mod pipeline;
mod sealed;
// Helpers may unwrap like tests: clippy tells by the attribute.
#[cfg(test)]
mod support;

//! Reproducible randomness without a generator: the draw of a call is a hash of its properties.
//!
//! It depends only on the seed, the fault, the operation, the invoice and the number of the call. So the same
//! run draws the same faults, in whatever order its calls arrive.

use aws_lc_rs::digest::{SHA256, digest};

use super::registry::FaultContext;

/// Returns a number below one million for this fault.
pub(crate) fn draw(seed: u64, order: &str, moment: &FaultContext) -> u64 {
    let irn = moment.irn.unwrap_or_default();
    let text = format!("{seed}/{order}/{}/{irn}/{}", moment.operation.name(), moment.nth);
    let hash = digest(&SHA256, text.as_bytes());
    let mut first = [0; 8];
    for (to, from) in first.iter_mut().zip(hash.as_ref()) {
        *to = *from;
    }
    u64::from_be_bytes(first) % 1_000_000
}

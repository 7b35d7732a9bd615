//! Chance without a generator: the draw of a call is a hash of what the call is.
//!
//! It depends on the seed, the order, the operation, the invoice and the how-manieth such call it is, and on nothing
//! else. So the same run draws the same faults, in whatever order its calls arrive.

use aws_lc_rs::digest::{SHA256, digest};

use super::registry::Moment;

/// A number below one million, for an order of this name.
pub(crate) fn draw(seed: u64, order: &str, moment: &Moment) -> u64 {
    let irn = moment.irn.unwrap_or_default();
    let text = format!("{seed}/{order}/{}/{irn}/{}", moment.operation.name(), moment.nth);
    let hash = digest(&SHA256, text.as_bytes());
    let mut first = [0; 8];
    for (to, from) in first.iter_mut().zip(hash.as_ref()) {
        *to = *from;
    }
    u64::from_be_bytes(first) % 1_000_000
}

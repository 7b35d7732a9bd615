//! Repeatable random numbers: the same seed gives the same numbers each time the simulator runs.
//!
//! The random number of a call is a hash of the seed, the fault, the operation, the invoice, and how many such calls
//! came before. So the order in which calls about different invoices arrive does not matter.

use aws_lc_rs::digest::{SHA256, digest};

use super::registry::FaultContext;

/// Returns the random number of this call for the fault or latency named `source_name`: from 0 to 999,999.
pub(crate) fn draw_millionths(seed: u64, source_name: &str, moment: &FaultContext) -> u64 {
    let irn = moment.irn.unwrap_or_default();
    let text = format!(
        "{seed}/{source_name}/{}/{irn}/{}",
        moment.operation.name(),
        moment.nth
    );
    let hash = digest(&SHA256, text.as_bytes());
    let mut first = [0; 8];
    for (to, from) in first.iter_mut().zip(hash.as_ref()) {
        *to = *from;
    }
    u64::from_be_bytes(first) % 1_000_000
}

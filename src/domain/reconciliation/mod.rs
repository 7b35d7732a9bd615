//! Compares our records of an invoice with the authority's records, and chooses the repairs of the differences. A
//! repair never undoes anything and never guesses: a stopped run continues with a query to the authority, and a
//! transmission that the authority reports is recorded as if the authority had sent a notice of it. All other
//! differences are listed for an operator.
//!
//! | Our submission run | The authority signed the invoice | The authority did not sign it |
//! |---|---|---|
//! | no record of the invoice | `missing_locally`, listed | |
//! | none, but a stored invoice | `not_submitted_locally`, listed | agreed; `missing_remotely` if our records say transmitted |
//! | running | in progress | in progress |
//! | waiting | `unfinished_locally`, resumed with a query | in progress |
//! | paused by itself | `unfinished_locally`, resumed with a query | agreed; `missing_remotely` if our run has signed it |
//! | paused in quarantine, or because the signed copy cannot be read | `unfinished_locally`, listed | agreed; `missing_remotely` if our run has signed it |
//! | paused by an operator | `held_locally`, listed | agreed; `missing_remotely` if our run has signed it |
//! | refused | `refused_locally`, listed | agreed; `missing_remotely` if our run has signed it |
//! | cancelled | `cancelled_locally`, listed | agreed; `missing_remotely` if our run has signed it |
//! | succeeded, and the invoice was cancelled | `cancelled_locally`, listed | `missing_remotely`, listed |
//! | succeeded | compared below | `missing_remotely`, listed |
//!
//! | The invoice is signed according to both records | Finding |
//! |---|---|
//! | delivered by the authority's records, not by ours | `delivered_remotely`, recorded |
//! | transmitted by the authority's records, not by ours | `transmitted_remotely`, recorded, or resumed with a query |
//! | transmitted by our records, not by the authority's | `not_transmitted_remotely`, listed |
//! | delivered by our records, not by the authority's | `not_delivered_remotely`, listed |
//! | our payment run stopped, but the authority has its status | `payment_unfinished_locally`, resumed with a query; listed if held or in quarantine |
//! | the authority's payment is further than ours | `payment_ahead_remotely`, listed |
//! | our payment is further than the authority's, which is the one that the authority was last told | agreed: the taxpayer has not relayed it |
//! | our payment is further than the authority's, which is not the one that the authority was last told | `payment_behind_remotely`, listed |
//! | one payment is PAID and the other REJECTED, or their status is unknown | `payment_differs`, listed |
//!
//! | File | Content |
//! |---|---|
//! | `comparison` | the comparison of our record of an invoice with the authority's, and the repair of each difference |
//! | `day` | the reconciliation of one day of a taxpayer, and its findings |
//! | `finding_kind` | the kinds of differences, each with advice to an operator |
//! | `records` | the two records of an invoice that are compared: ours, and the authority's |

pub mod comparison;
pub mod day;
pub mod finding_kind;
pub mod records;

//! Floor 2: the actors.
//!
//! | Room | What lives there |
//! |---|---|
//! | `supervision` | what makes an actix actor a supervised one |
//! | `taxpayer` | one actor per active taxpayer, the only writer of its books |
//! | `pipeline` | one actor per running run, between an invoice and the authority |
//! | `delivery` | one actor per endpoint with something due |
//! | `inbound` | hears the authority: its notices, its list of invoices in transit |
//! | `outage` | sees outages of the authority and tells the taxpayers |
//! | `reconciliation` | compares our ledger with the authority's, a day at a time |
//! | `reference` | keeps the snapshot of the authority's reference lists |
//! | `verification` | asks the authority who taxpayers are |
//! | `checkpoint` | signs the ends of the event chains at an interval |
//! | `key_usage` | writes when API keys were last used |
//! | `clock_watch` | looks for clocks that were set back |
//! | `sweeper` | deletes what has had its time |
//! | `incidents` | warns of what an operator may have to look after, and counts it |
//! | `dispatch` | hands lanes that are due to their actors |
//! | `wake`, `waiters` | who is told in this process that something was committed |

pub mod checkpoint;
pub mod clock_watch;
pub mod delivery;
pub mod dispatch;
pub mod inbound;
pub mod incidents;
pub mod key_usage;
pub mod outage;
pub mod pipeline;
pub mod reconciliation;
pub mod reference;
pub mod supervision;
pub mod sweeper;
pub mod taxpayer;
pub mod verification;
pub mod waiters;
pub mod wake;

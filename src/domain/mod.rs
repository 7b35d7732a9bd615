//! Floor 0, pure: no clock, no chance, no input or output. Everything that decides lives here.
//!
//! | Concept | File |
//! |---|---|
//! | time and chance as arguments | `clock` |
//! | identifiers and keys | `ids`, `irn` |
//! | exact amounts | `money`, `totals` |
//! | words with a fixed set of values, email addresses | `codes`, `email` |
//! | who is invoiced, who invoices | `party` |
//! | an invoice, its states and its payments | `invoice`, `lifecycle`, `payment` |
//! | an invoice as read | `object` |
//! | the authority pipeline | `pipeline` |
//! | the event log, its deliveries and their replay | `event`, `delivery`, `replay` |
//! | what operators do | `run_move`, `audit` |
//! | who calls | `caller` |
//! | whether two documents say the same | `digest` |
//! | the authority's reference lists | `catalog` |
//! | what is wrong with a request | `fault`, `refusal` |

pub mod audit;
pub mod caller;
pub mod catalog;
pub mod clock;
pub mod codes;
pub mod delivery;
pub mod digest;
pub mod email;
pub mod event;
pub mod fault;
pub mod ids;
pub mod invoice;
pub mod irn;
pub mod lifecycle;
pub mod money;
pub mod object;
pub mod party;
pub mod payment;
pub mod pipeline;
pub mod refusal;
pub mod replay;
pub mod run_move;
pub mod totals;

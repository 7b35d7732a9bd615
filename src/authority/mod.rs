//! Floor 1: the client of the tax authority.
//!
//! One method per upstream call, each tried once: what failed is classed, and whoever called decides when to
//! try again. An effect is never reported as failed unless it certainly did not happen; otherwise it is
//! `Unknown`. Deliberately absent: retrying loops, caching, and any knowledge of invoices beyond their IRN.
//!
//! | Concept | File |
//! |---|---|
//! | Client and its settings | `client` |
//! | One method per upstream call | `calls` |
//! | Which calls there are, and which have an effect | `operation` |
//! | A request before it is sent, its path safely encoded | `call` |
//! | One HTTP exchange, bounded in time and size | `exchange` |
//! | What an answer says, and the sentence worth showing | `answer` |
//! | Shapes of what the authority returns | `wire` |
//! | Classes of failure and the table behind them | `failure`, `classify` |
//! | Delays between tries | `retry` |
//! | For whom a call is made | `account` |
//! | Circuit breakers: closed, open, and the calls they judge by | `breaker`, `breakers`, `opening`, `window` |
//! | How many calls at a time, and the queue of those who wait | `limit`, `limits`, `wait_queue` |
//! | Leave to call: a place, then the breaker's | `gate` |
//! | Counters for metrics | `tally` |
//! | Key files, the QR text, the decryption of downloads | `keys`, `qr`, `download` |

mod account;
mod answer;
#[cfg(test)]
mod answers_page;
mod breaker;
mod breakers;
mod call;
mod calls;
mod classify;
mod client;
mod download;
mod exchange;
mod failure;
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
mod gate;
mod keys;
mod limit;
mod limits;
mod opening;
mod operation;
mod qr;
mod retry;
mod tally;
#[cfg(test)]
pub(crate) mod testing;
mod wait_queue;
mod window;
mod wire;

pub use account::Account;
pub use breaker::{BreakerState, BreakerView};
pub use client::{Authority, BuildError, Settings};
pub use download::EncryptedDocument;
pub use failure::{AuthorityError, Cause, Failure, FieldFault, Kind};
pub use keys::{CryptoError, CryptoKeys};
pub use limits::LimitView;
pub use opening::Held;
pub use operation::{Operation, ResourceList};
pub use retry::RetryPolicy;
pub use tally::{Outcome, Tally};
pub use wire::{
    Acknowledgement, Confirmation, Entity, InTransit, IrnCheck, Parties, Party, PullQuery, SearchPage,
    SearchQuery,
};

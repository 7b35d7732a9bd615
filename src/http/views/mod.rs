//! What callers are shown. The Invoice object itself is of the domain, since events carry it too.
//!
//! | Concept | File |
//! |---|---|
//! | a page of a list | `paginator` |
//! | a taxpayer, as created and as read | `taxpayer` |
//! | the integration record | `integration` |
//! | a pipeline run | `run` |
//! | the event feed | `feed` |

pub(crate) mod feed;
pub(crate) mod integration;
pub(crate) mod paginator;
pub(crate) mod run;
pub(crate) mod taxpayer;
pub(crate) mod validated;

//! What callers are shown. The Invoice object itself is of the domain, since events carry it too.
//!
//! | Concept | File |
//! |---|---|
//! | a page of a list | `paginator` |
//! | a taxpayer, as created and as read | `taxpayer` |
//! | the integration record | `integration` |
//! | a pipeline run, for its taxpayer and for operators | `run`, `operated_run` |
//! | deliveries and their replay | `delivery`, `replay` |
//! | what an endpoint answered to a test | `endpoint_answer` |
//! | the authority's breakers, what operators did | `breaker`, `audit` |
//! | the event feed | `feed` |

pub(crate) mod audit;
pub(crate) mod breaker;
pub(crate) mod delivery;
pub(crate) mod endpoint_answer;
pub(crate) mod feed;
pub(crate) mod integration;
pub(crate) mod operated_run;
pub(crate) mod paginator;
pub(crate) mod replay;
pub(crate) mod run;
pub(crate) mod taxpayer;

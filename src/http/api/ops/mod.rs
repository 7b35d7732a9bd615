//! Paths outside `/v1`: probes, metrics, and the reads and actions of operators.

mod accounts;
mod dead_letters;
mod probes;
mod reconciliations;
mod records;
mod runs;
mod taxpayers;

use crate::http::endpoint::Path;

pub(crate) fn endpoints() -> Vec<Path> {
    let actions = [runs::endpoints(), dead_letters::endpoints(), taxpayers::endpoints()];
    let others = [accounts::endpoints(), reconciliations::endpoints(), records::endpoints()];
    [probes::endpoints()].into_iter().chain(actions).chain(others).flatten().collect()
}

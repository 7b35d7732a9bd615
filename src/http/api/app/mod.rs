//! `/v1/app`: the authority pipeline, for taxpayers and for integrators that act for them.

pub(crate) mod documents;
mod relay;
mod run_response;
mod validate;

use crate::http::endpoint::Path;

pub(crate) fn endpoints() -> Vec<Path> {
    [
        validate::endpoints(),
        documents::endpoints(),
        relay::endpoints(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

//! `/v1/app`: the authority pipeline, for taxpayers and for integrators that act for them.
//!
//! | File | Content |
//! |---|---|
//! | `documents` | Submit, Transmit and Report |
//! | `relay` | the calls about one invoice that are relayed to the authority, and the read of the invoice's pipeline run |
//! | `run_response` | responses for a pipeline run: the result, the refusal, or the time after which the caller may ask again |
//! | `validate` | Validate, which changes nothing |

pub(crate) mod documents;
mod relay;
mod run_response;
mod validate;

use crate::http::paths::Path;

pub(crate) fn paths() -> Vec<Path> {
    [validate::paths(), documents::paths(), relay::paths()]
        .into_iter()
        .flatten()
        .collect()
}

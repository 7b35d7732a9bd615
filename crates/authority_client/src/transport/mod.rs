//! One HTTP exchange with the authority: the request, the answer, and the classification of failures.

pub(super) mod answer;
#[cfg(test)]
mod answers_page;
pub(super) mod call_span;
pub(super) mod classify;
pub(super) mod exchange;
pub(super) mod failure;
pub(super) mod request;

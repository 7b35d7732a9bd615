//! Reserves memory for reading lists of invoices. Code that reads a list page by page reserves the memory for one page
//! and keeps the reservation until the end of the list. So the limits of `answer_memory` also limit how many lists are
//! read at the same time.

use crate::http::limits::{AnswerHolder, AnswerPermit};
use crate::http::respond::code::ErrorCode;
use crate::http::respond::error::{ApiError, RETRY_AFTER};
use crate::http::state::ApiState;

/// The number of invoices on a page.
pub(crate) const PAGE_INVOICES: u64 = 50;
/// The memory that is reserved for a page, in bytes. A page with long invoices reserves more for each of them.
const PAGE_BYTES: usize = 1024 * 1024;

/// Reserves memory for a page of `PAGE_INVOICES` invoices, for `holder`. Fails if too little becomes free within a
/// minute.
pub(crate) async fn reserve_page_memory(
    state: &ApiState,
    holder: AnswerHolder,
) -> Result<AnswerPermit, ApiError> {
    reserve_invoice_memory(state, holder, PAGE_BYTES).await
}

/// Reserves memory for an invoice that is too long for its page. The reader still holds the reservation for the page,
/// so each of the two takes at most half of the smallest share of a caller: otherwise the reader could wait for memory
/// that it holds itself.
pub(crate) async fn reserve_invoice_memory(
    state: &ApiState,
    holder: AnswerHolder,
    bytes: usize,
) -> Result<AnswerPermit, ApiError> {
    let bytes = bytes.min(state.answers.smallest_share_bytes() / 2);
    let permit = state.answers.reserve(holder, bytes).await;
    permit.ok_or_else(|| {
        let message = "Too many answers are waiting to be read, please try again";
        ApiError::new(ErrorCode::Overloaded, message).with_retry_after(RETRY_AFTER)
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::timeout;

    use super::*;
    use crate::http::testing::{TAXPAYER, start_app};

    #[actix_web::test]
    async fn the_reader_of_a_page_gets_memory_for_each_of_its_invoices() {
        let app = start_app().await;
        let holder = AnswerHolder::for_taxpayer(TAXPAYER, None);
        for bytes in [1, PAGE_BYTES, 64 * 1024 * 1024, usize::MAX] {
            let page = reserve_page_memory(&app.state, holder).await;
            let long = reserve_invoice_memory(&app.state, holder, bytes);
            let long = timeout(Duration::from_secs(5), long).await;
            assert!(page.is_ok() && matches!(long, Ok(Ok(_))), "{bytes}");
        }
    }
}

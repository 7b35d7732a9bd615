//! Loads the part of a credit note that is to be paid back to the customer.

use crate::console::accounts::document_facts::find_corrected_invoice;
use crate::console::session::accounts::AccountSession;
use crate::domain::correction::record::Correction;
use crate::domain::correction::refund_share::RefundShare;
use crate::domain::invoice::Invoice;
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;
use crate::store::invoices::{correcting_documents, corrections};

/// Returns the share of a credit note. `None` for any other document, and if the credited invoice is not stored or is
/// in another currency, so that it is not known how much is to be paid back.
pub(super) async fn load_refund_share(
    state: &ApiState,
    session: &AccountSession,
    note: &Invoice,
) -> Result<Option<RefundShare>, ApiError> {
    if !note.is_credit_note() {
        return Ok(None);
    }
    let found = find_corrected_invoice(state, session, note).await?;
    let credited = found.filter(|found| note.corrects(found) && note.currency == found.currency);
    let Some(invoice) = credited else {
        return Ok(None);
    };
    let reader = state.store.reader();
    let credits = correcting_documents::find_credits(reader, &invoice).await?;
    let corrections =
        corrections::find_owned_by_invoices(reader, session.taxpayer, &[invoice.id]).await?;
    let newest = corrections.first();
    let replacement = newest.and_then(Correction::created_replacement_no);
    let mut share = RefundShare::new(note, &invoice, credits);
    share.replacement = replacement.map(str::to_owned);
    Ok(Some(share))
}

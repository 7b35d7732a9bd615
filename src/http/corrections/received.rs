//! The amounts that were received for a corrected invoice. They are computed whenever a correction is read, because
//! payments may arrive after the correction has begun.

use database::StoreError;

use crate::domain::correction::credits;
use crate::domain::correction::record::Correction;
use crate::domain::kernel::ids::{InvoiceId, TaxpayerId};
use crate::domain::money::Amount;
use crate::store::Store;
use crate::store::invoices;

/// Returns the correction with the amount received so far, for the invoice and its replacement together.
pub(crate) async fn with_received_amount(
    store: &Store,
    taxpayer: TaxpayerId,
    correction: Correction,
) -> Result<Correction, StoreError> {
    let for_original = received_amount(store, taxpayer, correction.original).await?;
    let for_replacement = match correction.replacement_id() {
        Some(replacement) => received_amount(store, taxpayer, replacement).await?,
        None => Amount::ZERO,
    };
    let sum = for_original.plus(for_replacement).unwrap_or(for_original);
    Ok(correction.with_amount_received(sum))
}

async fn received_amount(
    store: &Store,
    taxpayer: TaxpayerId,
    id: InvoiceId,
) -> Result<Amount, StoreError> {
    let Some(invoice) = invoices::find_owned_by_id(store, taxpayer, id).await? else {
        return Ok(Amount::ZERO);
    };
    let paid_back = invoices::find_amounts_paid_back(store.reader(), &invoice).await?;
    Ok(credits::paid_less_paid_back(&invoice, paid_back))
}

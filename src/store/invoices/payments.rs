//! The payment ledger of an invoice.

use sea_orm::{ColumnTrait, EntityTrait, QueryFilter, QueryOrder};

use crate::domain::kernel::ids::{InvoiceId, TaxpayerId};
use crate::domain::payment::LedgerEntry;
use crate::store::db::connections::Store;
use crate::store::db::error::StoreError;
use crate::store::invoices::payment_row::{Column, Entity};

/// Loads the entries of an invoice, oldest first.
pub async fn owned_by_of_invoice(
    store: &Store,
    taxpayer: TaxpayerId,
    invoice: InvoiceId,
) -> Result<Vec<LedgerEntry>, StoreError> {
    let rows = Entity::find()
        .filter(Column::TaxpayerId.eq(taxpayer.0))
        .filter(Column::InvoiceId.eq(invoice.0))
        .order_by_asc(Column::Sequence)
        .all(store.reader())
        .await?;
    rows.into_iter().map(LedgerEntry::try_from).collect()
}

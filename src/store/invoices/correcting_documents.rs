//! The invoices that refer to another invoice and correct it: its credit notes and replacements. They are loaded
//! together, so their number and size are limited.

use database::StoreError;
use sea_orm::sea_query::Expr;
use sea_orm::{
    ColumnTrait, Condition, ConnectionTrait, EntityTrait, FromQueryResult, IdenStatic, Iterable,
    QueryFilter, QueryOrder, QuerySelect, Select,
};

use crate::domain::correction::credits::InvoiceCredits;
use crate::domain::invoice::Invoice;
use crate::domain::kernel::codes::WorkflowStatus;
use crate::domain::kernel::ids::TaxpayerId;
use crate::store::invoices::invoice_row::{Column, Entity};

/// The maximum number of invoices that may refer to an invoice that is to be corrected.
pub const CORRECTING_MAX: usize = 1_000;
/// The maximum total size of the invoices that refer to one invoice, in bytes. They are all in memory at once.
pub const CORRECTING_BYTES_MAX: usize = 16 << 20;
/// The number of credit notes whose extra fields are in memory at once while the credit notes of an invoice are read.
const WHOLE_NOTES_MAX: usize = 8;
/// The SQL expression for the size of an invoice in bytes, including the documents of its runs.
const SIZE_SQL: &str = "CAST(octet_length(lines) + octet_length(extras) + COALESCE((SELECT \
    SUM(octet_length(document)) FROM pipeline_runs WHERE pipeline_runs.taxpayer_id = invoices.taxpayer_id \
    AND pipeline_runs.irn_key = invoices.irn_key), 0) AS BIGINT)";

/// Loads the invoices of a taxpayer that refer to another invoice by one of its references, oldest first. Leaves out
/// cancelled ones, unless the authority has signed them. `None` if they are more than `CORRECTING_MAX`, or together
/// larger than `CORRECTING_BYTES_MAX`.
pub async fn load_correcting_documents(
    connection: &impl ConnectionTrait,
    taxpayer: TaxpayerId,
    references: &[String],
) -> Result<Option<Vec<Invoice>>, StoreError> {
    let sizes = load_correcting_document_sizes(connection, taxpayer, references).await?;
    if sizes.len() > CORRECTING_MAX || total_bytes(&sizes) > CORRECTING_BYTES_MAX {
        return Ok(None);
    }
    if sizes.is_empty() {
        return Ok(Some(Vec::new()));
    }
    let rows = select_correcting_documents(taxpayer, references)
        .filter(in_force_condition())
        .limit(CORRECTING_MAX as u64)
        .all(connection)
        .await?;
    let invoices = rows.into_iter().map(Invoice::try_from);
    invoices.collect::<Result<_, _>>().map(Some)
}

/// Returns the total size of the invoices that `load_correcting_documents` loads, in bytes. Stops adding after
/// `CORRECTING_MAX` + 1 invoices.
pub async fn correcting_documents_size(
    connection: &impl ConnectionTrait,
    taxpayer: TaxpayerId,
    references: &[String],
) -> Result<usize, StoreError> {
    let sizes = load_correcting_document_sizes(connection, taxpayer, references).await?;
    Ok(total_bytes(&sizes))
}

/// Loads the credit notes of an invoice, without their lines and extra fields. If more than `CORRECTING_MAX` documents
/// refer to the invoice, the newest are left out, and `is_cut` is true.
pub async fn find_credits(
    connection: &impl ConnectionTrait,
    invoice: &Invoice,
) -> Result<InvoiceCredits, StoreError> {
    let references = invoice.incoming_reference_texts();
    let sizes =
        load_correcting_document_sizes(connection, invoice.taxpayer_id, &references).await?;
    let is_cut = sizes.len() > CORRECTING_MAX;
    let read = sizes.into_iter().take(CORRECTING_MAX);
    let ids: Vec<_> = read.map(|size| size.id).collect();
    let columns = Column::iter().filter(|column| !matches!(column, Column::Lines));
    let without_lines = Entity::find()
        .select_only()
        .columns(columns)
        .expr_as(Expr::cust("CAST('[]' AS TEXT)"), Column::Lines.as_str())
        .filter(Column::TaxpayerId.eq(invoice.taxpayer_id.0));
    let mut credits = InvoiceCredits {
        is_cut,
        ..InvoiceCredits::default()
    };
    for part in ids.chunks(WHOLE_NOTES_MAX) {
        let part = part.iter().copied();
        let part = without_lines.clone().filter(Column::Id.is_in(part));
        let rows = part.order_by_asc(Column::Id).all(connection).await?;
        let notes = rows.into_iter().map(Invoice::try_from);
        let notes = notes.collect::<Result<Vec<_>, _>>()?;
        credits.add_without_extras(InvoiceCredits::new(invoice, notes));
    }
    Ok(credits)
}

#[derive(FromQueryResult)]
struct InvoiceSize {
    id: i64,
    /// The size of the invoice with the documents of its runs, as `SIZE_SQL` computes it.
    bytes: i64,
}

/// Returns the sizes of the invoices that refer to another one, oldest first, but at most `CORRECTING_MAX` + 1.
async fn load_correcting_document_sizes(
    connection: &impl ConnectionTrait,
    taxpayer: TaxpayerId,
    references: &[String],
) -> Result<Vec<InvoiceSize>, StoreError> {
    if references.is_empty() {
        return Ok(Vec::new());
    }
    let sizes = select_correcting_documents(taxpayer, references)
        .select_only()
        .column(Column::Id)
        .expr_as(Expr::cust(SIZE_SQL), "bytes")
        .filter(in_force_condition())
        .limit(CORRECTING_MAX as u64 + 1)
        .into_model::<InvoiceSize>()
        .all(connection)
        .await?;
    Ok(sizes)
}

fn total_bytes(sizes: &[InvoiceSize]) -> usize {
    let sizes = sizes.iter().map(|size| size.bytes);
    let sum = sizes.fold(0_i64, i64::saturating_add);
    usize::try_from(sum).unwrap_or(usize::MAX)
}

/// Returns the condition that an invoice is in force: it is not cancelled, or the authority has signed it all the same.
pub(super) fn in_force_condition() -> Condition {
    Condition::any()
        .add(Column::Status.ne(WorkflowStatus::Cancelled.as_str()))
        .add(Column::Signed.eq(true))
}

/// Selects the invoices of a taxpayer that refer to another one by one of these references, oldest first. The plus sign
/// keeps SQLite from reading all invoices of the taxpayer in the order of their ids.
pub(super) fn select_correcting_documents(
    taxpayer: TaxpayerId,
    references: &[String],
) -> Select<Entity> {
    Entity::find()
        .filter(Column::TaxpayerId.eq(taxpayer.0))
        .filter(Column::Corrects.is_in(references.iter().map(String::as_str)))
        .order_by_asc(Expr::cust("+id"))
}

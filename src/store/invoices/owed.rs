//! The unsettled sales of a taxpayer (those that are not fully paid), by due date. Their number is limited, so that the
//! time does not grow with it.

use std::collections::HashSet;

use database::StoreError;
use database::column::RowRef;
use jiff::civil::Date;
use sea_orm::sea_query::{Expr, ExprTrait};
use sea_orm::{ColumnTrait, EntityTrait, FromQueryResult, QueryFilter, QueryOrder, QuerySelect};

use crate::domain::invoice::Invoice;
use crate::domain::invoice::corrected_reference::CorrectedReference;
use crate::domain::invoice::owed::{OwedInvoice, set_off};
use crate::domain::kernel::ids::{InvoiceId, TaxpayerId};
use crate::domain::money::Amount;
use crate::store::Store;
use crate::store::invoices::invoice_row::{Column, Entity};
use crate::store::invoices::list_query::{IndexHint, InvoiceFilter, InvoiceList};
use crate::store::invoices::list_sort::{DUE_DATE_SQL, InvoiceSort};
use crate::store::invoices::reference_kind::{
    credits_rejected_condition, kind_expression, parse_kind,
};

/// The invoices that were read. `is_cut` is true if there are more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwedInvoices {
    pub invoices: Vec<OwedInvoice>,
    pub is_cut: bool,
}

/// The condition of unsettled documents, which the partial index `invoices_owed` has, word for word. Drafts, cancelled
/// documents and those with a rejected payment are not owed.
const OWED_CONDITION: &str =
    "payment_status IN ('PENDING', 'PARTIAL') AND status NOT IN ('draft', 'cancelled')";

#[derive(FromQueryResult)]
struct OwedRow {
    id: i64,
    irn_key: String,
    invoice_no: String,
    customer: String,
    currency: String,
    payable: String,
    signed_payable: Option<String>,
    paid: String,
    due_date: Option<String>,
    corrects: Option<String>,
    reference_kind: Option<String>,
    is_credit_note: bool,
    signed: bool,
}

impl TryFrom<OwedRow> for OwedInvoice {
    type Error = StoreError;

    fn try_from(row: OwedRow) -> Result<Self, StoreError> {
        let at = RowRef {
            table: "invoices",
            id: row.id,
        };
        let payable: Amount = at.parse(row.signed_payable.as_ref().unwrap_or(&row.payable))?;
        let kind = row.reference_kind.as_deref().map(parse_kind);
        let corrects = kind
            .zip(row.corrects)
            .map(|(by, text)| CorrectedReference { by, text });
        let due_date = row.due_date.map(|text| at.parse(&text)).transpose()?;
        Ok(Self {
            id: InvoiceId(row.id),
            irn_key: row.irn_key,
            invoice_no: row.invoice_no,
            customer: at.json(&row.customer)?,
            currency: row.currency,
            left: payable.minus(at.parse(&row.paid)?).unwrap_or(Amount::ZERO),
            due_date,
            is_credit_note: row.is_credit_note,
            corrects: corrects.filter(|_| row.signed),
        })
    }
}

/// Loads up to `max` unsettled documents, the earliest due date first, and sets credit notes off against their
/// invoices.
pub async fn load_unsettled(
    store: &Store,
    taxpayer: TaxpayerId,
    max: u64,
) -> Result<OwedInvoices, StoreError> {
    let columns = [
        Column::Id,
        Column::IrnKey,
        Column::InvoiceNo,
        Column::Customer,
        Column::Currency,
        Column::Payable,
        Column::SignedPayable,
        Column::Paid,
        Column::DueDate,
        Column::Corrects,
        Column::IsCreditNote,
        Column::Signed,
    ];
    let rows = Entity::find()
        .select_only()
        .columns(columns)
        .column_as(Expr::cust(kind_expression()), "reference_kind")
        .filter(Column::TaxpayerId.eq(taxpayer.0))
        .filter(Column::IsSale.eq(true))
        .filter(Expr::cust(OWED_CONDITION))
        // An invoice that was credited in full before any payment is REJECTED; neither it nor its credit note counts.
        .filter(Expr::cust(credits_rejected_condition()).not())
        .order_by_asc(Expr::cust(DUE_DATE_SQL))
        .limit(max.saturating_add(1))
        .into_model::<OwedRow>()
        .all(store.reader())
        .await?;
    let max = usize::try_from(max).unwrap_or(usize::MAX);
    let is_cut = rows.len() > max;
    let mut invoices = Vec::with_capacity(rows.len().min(max));
    for row in rows.into_iter().take(max) {
        invoices.push(OwedInvoice::try_from(row)?);
    }
    let invoices = set_off(invoices);
    Ok(OwedInvoices { invoices, is_cut })
}

/// Returns the ids of those invoices that are overdue, even after their signed credit notes are set off.
pub async fn find_overdue(
    store: &Store,
    taxpayer: TaxpayerId,
    invoices: &[Invoice],
    today: Date,
) -> Result<HashSet<InvoiceId>, StoreError> {
    if invoices.is_empty() {
        return Ok(HashSet::new());
    }
    let list = InvoiceList {
        taxpayer,
        filters: InvoiceFilter {
            ids: Some(invoices.iter().map(|invoice| invoice.id).collect()),
            overdue_on: Some(today),
            ..InvoiceFilter::default()
        },
        sort: InvoiceSort::NEWEST_FIRST,
    };
    let condition = list.condition(IndexHint::none(store.backend()));
    let found: Vec<i64> = Entity::find()
        .select_only()
        .column(Column::Id)
        .filter(condition)
        .into_tuple()
        .all(store.reader())
        .await?;
    Ok(found.into_iter().map(InvoiceId).collect())
}

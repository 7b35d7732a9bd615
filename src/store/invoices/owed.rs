//! The unsettled invoices of a taxpayer (those that are not fully paid), by due date. Their number is limited, so that
//! the time does not grow with it.

use std::collections::{HashMap, HashSet};

use database::StoreError;
use database::column::RowRef;
use jiff::civil::Date;
use sea_orm::sea_query::Expr;
use sea_orm::{
    ColumnTrait, EntityTrait, FromQueryResult, IdenStatic, QueryFilter, QueryOrder, QuerySelect,
};
use serde_json::{Map, Value};

use crate::domain::invoice::Invoice;
use crate::domain::invoice::owed::{OwedInvoice, set_off};
use crate::domain::kernel::ids::{InvoiceId, TaxpayerId};
use crate::domain::money::Amount;
use crate::store::Store;
use crate::store::invoices::invoice_row::{Column, Entity};
use crate::store::invoices::list_query::open_credit_condition;
use crate::store::invoices::list_sort::DUE_DATE_SQL;

/// The invoices that were read. `is_cut` is true if there are more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwedPart {
    pub invoices: Vec<OwedInvoice>,
    pub is_cut: bool,
}

/// The condition of unsettled documents, which the partial index `invoices_owed` has, word for word. Drafts, cancelled
/// documents and those with a rejected payment are not owed.
const OWED_CONDITION: &str =
    "payment_status IN ('PENDING', 'PARTIAL') AND status NOT IN ('draft', 'cancelled')";

/// Leaves out credit notes of invoices whose payment status is REJECTED. An invoice that was credited in full before
/// any payment gets this status, so that neither it nor its credit note counts.
const NOT_SETTLED_CONDITION: &str = "NOT (is_credit_note AND EXISTS (SELECT 1 FROM invoices AS credited \
     WHERE credited.taxpayer_id = invoices.taxpayer_id AND credited.irn_key = invoices.corrects \
     AND credited.payment_status = 'REJECTED'))";

/// The maximum size of the column `extras` with which it is read, in bytes. Only full documents have more, and their
/// column `invoice_type` holds the code already.
const EXTRAS_BYTES_MAX: usize = 4 * 1024;

#[derive(FromQueryResult)]
struct OwedRow {
    id: i64,
    irn_key: String,
    invoice_no: String,
    customer: String,
    currency: String,
    payable: String,
    paid: String,
    due_date: Option<String>,
    invoice_type: String,
    corrects: Option<String>,
    is_credit_note: bool,
    signed: bool,
    extras: String,
}

impl TryFrom<OwedRow> for OwedInvoice {
    type Error = StoreError;

    fn try_from(row: OwedRow) -> Result<Self, StoreError> {
        let at = RowRef {
            table: "invoices",
            id: row.id,
        };
        let payable: Amount = at.parse(&row.payable)?;
        let due_date = row.due_date.map(|text| at.parse(&text)).transpose()?;
        let extras: Map<String, Value> = at.json(&row.extras)?;
        let code = extras.get("invoice_type_code").and_then(Value::as_str);
        Ok(Self {
            id: InvoiceId(row.id),
            irn_key: row.irn_key,
            invoice_no: row.invoice_no,
            customer: at.json(&row.customer)?,
            currency: row.currency,
            left: payable.minus(at.parse(&row.paid)?).unwrap_or(Amount::ZERO),
            due_date,
            invoice_type: code.map_or(row.invoice_type, str::to_owned),
            is_credit_note: row.is_credit_note,
            corrects: row.corrects.filter(|_| row.signed),
        })
    }
}

/// Loads up to `max` unsettled documents, the earliest due date first, and sets credit notes off against their
/// invoices.
pub async fn load_unsettled(
    store: &Store,
    taxpayer: TaxpayerId,
    max: u64,
) -> Result<OwedPart, StoreError> {
    let columns = [
        Column::Id,
        Column::IrnKey,
        Column::InvoiceNo,
        Column::Customer,
        Column::Currency,
        Column::Payable,
        Column::Paid,
        Column::DueDate,
        Column::InvoiceType,
        Column::Corrects,
        Column::IsCreditNote,
        Column::Signed,
    ];
    let extras =
        format!("CASE WHEN octet_length(extras) <= {EXTRAS_BYTES_MAX} THEN extras ELSE '{{}}' END");
    let rows = Entity::find()
        .select_only()
        .columns(columns)
        .expr_as(Expr::cust(extras), Column::Extras.as_str())
        .filter(Column::TaxpayerId.eq(taxpayer.0))
        .filter(Expr::cust(OWED_CONDITION))
        .filter(Expr::cust(NOT_SETTLED_CONDITION))
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
    Ok(OwedPart { invoices, is_cut })
}

#[derive(FromQueryResult)]
struct OpenCreditRow {
    id: i64,
    corrects: String,
    currency: String,
    payable: String,
    paid: String,
}

/// Returns the ids of those invoices that are overdue, even after their signed credit notes are set off.
pub async fn overdue(
    store: &Store,
    taxpayer: TaxpayerId,
    invoices: &[Invoice],
    today: Date,
) -> Result<HashSet<InvoiceId>, StoreError> {
    let due = invoices.iter().filter(|invoice| invoice.is_overdue(today));
    let due: Vec<_> = due.collect();
    let credited = credited_ids(store, taxpayer, &due).await?;
    let ids = due.iter().map(|invoice| invoice.id);
    Ok(ids.filter(|id| !credited.contains(id)).collect())
}

async fn credited_ids(
    store: &Store,
    taxpayer: TaxpayerId,
    invoices: &[&Invoice],
) -> Result<HashSet<InvoiceId>, StoreError> {
    let keys: Vec<_> = invoices.iter().map(|invoice| invoice.irn.key()).collect();
    if keys.is_empty() {
        return Ok(HashSet::new());
    }
    let columns = [
        Column::Id,
        Column::Corrects,
        Column::Currency,
        Column::Payable,
        Column::Paid,
    ];
    let rows = Entity::find()
        .select_only()
        .columns(columns)
        .filter(Column::TaxpayerId.eq(taxpayer.0))
        .filter(Column::Corrects.is_in(keys))
        .filter(Expr::cust(open_credit_condition("invoices")))
        .into_model::<OpenCreditRow>()
        .all(store.reader())
        .await?;
    let mut credits: HashMap<(String, String), Amount> = HashMap::new();
    for row in rows {
        let at = RowRef {
            table: "invoices",
            id: row.id,
        };
        let payable: Amount = at.parse(&row.payable)?;
        let left = payable.minus(at.parse(&row.paid)?).unwrap_or_default();
        let sum = credits.entry((row.corrects, row.currency)).or_default();
        *sum = sum.plus(left).unwrap_or(*sum);
    }
    let credited = invoices.iter().filter(|invoice| {
        let credit = credits.get(&(invoice.irn.key(), invoice.currency.clone()));
        credit.is_some_and(|credit| *credit >= invoice.payment.left())
    });
    Ok(credited.map(|invoice| invoice.id).collect())
}

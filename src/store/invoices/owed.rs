//! The invoices that are not settled, what was due first at the beginning. Only so many are read, so that the cost does not
//! grow with their number.

use database::StoreError;
use database::column::RowRef;
use jiff::civil::Date;
use sea_orm::sea_query::Expr;
use sea_orm::{ColumnTrait, EntityTrait, IdenStatic, QueryFilter, QueryOrder, QuerySelect};
use serde_json::{Map, Value};

use crate::domain::invoice::owed::OwedInvoice;
use crate::domain::kernel::ids::{InvoiceId, TaxpayerId};
use crate::domain::money::Amount;
use crate::store::Store;
use crate::store::invoices::invoice_row::{Column, Entity};
use crate::store::invoices::list_sort::DUE_DATE_SQL;

/// The invoices that were read, and whether others were left out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwedPart {
    pub invoices: Vec<OwedInvoice>,
    pub is_cut: bool,
}

/// The condition of the index `invoices_owed`, word for word. Cancelled invoices, drafts and rejected payments are not
/// owed.
const OWED_CONDITION: &str =
    "payment_status IN ('PENDING', 'PARTIAL') AND status NOT IN ('draft', 'cancelled')";

/// The fields of an invoice that the table has no columns for are read only if they take at most this many bytes. Only
/// full documents have more of them, and their invoice type is a code.
const EXTRAS_BYTES_MAX: usize = 4 * 1024;

/// Loads up to `max` invoices that are not settled.
pub async fn due_first(
    store: &Store,
    taxpayer: TaxpayerId,
    max: u64,
) -> Result<OwedPart, StoreError> {
    type Row = (
        i64,
        String,
        String,
        String,
        String,
        String,
        Option<String>,
        String,
        String,
    );
    let columns = [
        Column::Id,
        Column::InvoiceNo,
        Column::Customer,
        Column::Currency,
        Column::Payable,
        Column::Paid,
        Column::DueDate,
        Column::InvoiceType,
    ];
    let extras =
        format!("CASE WHEN octet_length(extras) <= {EXTRAS_BYTES_MAX} THEN extras ELSE '{{}}' END");
    let rows: Vec<Row> = Entity::find()
        .select_only()
        .columns(columns)
        .expr_as(Expr::cust(extras), Column::Extras.as_str())
        .filter(Column::TaxpayerId.eq(taxpayer.0))
        .filter(Expr::cust(OWED_CONDITION))
        .order_by_asc(Expr::cust(DUE_DATE_SQL))
        .limit(max.saturating_add(1))
        .into_tuple()
        .all(store.reader())
        .await?;
    let max = usize::try_from(max).unwrap_or(usize::MAX);
    let is_cut = rows.len() > max;
    let mut invoices = Vec::with_capacity(rows.len().min(max));
    for row in rows.into_iter().take(max) {
        let (id, invoice_no, customer, currency, payable, paid, due_date, invoice_type, extras) =
            row;
        let at = RowRef {
            table: "invoices",
            id,
        };
        let payable: Amount = at.parse(&payable)?;
        let due_date: Option<Date> = due_date.map(|text| at.parse(&text)).transpose()?;
        let extras: Map<String, Value> = at.json(&extras)?;
        let code = extras.get("invoice_type_code").and_then(Value::as_str);
        invoices.push(OwedInvoice {
            id: InvoiceId(id),
            invoice_no,
            customer: at.json(&customer)?,
            currency,
            left: payable.minus(at.parse(&paid)?).unwrap_or(Amount::ZERO),
            due_date,
            invoice_type: code.map_or(invoice_type, str::to_owned),
        });
    }
    Ok(OwedPart { invoices, is_cut })
}

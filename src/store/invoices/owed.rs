//! What the customers of a taxpayer owe it: sums over its newest invoices, so that the cost does not grow with their number.

use database::StoreError;
use database::column::RowRef;
use jiff::civil::Date;
use sea_orm::sea_query::Expr;
use sea_orm::{ColumnTrait, EntityTrait, IdenStatic, QueryFilter, QueryOrder, QuerySelect};
use serde_json::{Map, Value};

use crate::domain::kernel::codes::{PaymentStatus, WorkflowStatus};
use crate::domain::kernel::ids::TaxpayerId;
use crate::domain::money::Amount;
use crate::store::Store;
use crate::store::invoices::invoice_row::{Column, Entity};

/// An amount that is owed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwedAmount {
    pub currency: String,
    pub left: Amount,
    pub due_date: Option<Date>,
    /// The invoice type as a code or a word.
    pub invoice_type: String,
}

/// The amounts that are owed, and whether older invoices were left out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Owed {
    pub amounts: Vec<OwedAmount>,
    pub is_cut: bool,
}

/// The fields of an invoice that the table has no columns for are read only if they take at most this many bytes. Only
/// full documents have more of them, and their invoice type is a code.
const EXTRAS_BYTES_MAX: usize = 4 * 1024;

/// Looks at the newest `max` invoices. Cancelled invoices, drafts and rejected payments are not owed.
pub async fn by_newest(store: &Store, taxpayer: TaxpayerId, max: u64) -> Result<Owed, StoreError> {
    type Row = (
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
        Column::Status,
        Column::PaymentStatus,
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
        .order_by_desc(Column::CreatedAt)
        .order_by_desc(Column::Id)
        .limit(max)
        .into_tuple()
        .all(store.reader())
        .await?;
    let is_cut = u64::try_from(rows.len()).unwrap_or(u64::MAX) >= max;
    let at = RowRef {
        table: "invoices",
        id: "owed",
    };
    let mut amounts = Vec::new();
    for (status, payment, currency, payable, paid, due_date, invoice_type, extras) in rows {
        let status: WorkflowStatus = at.parse(&status)?;
        let payment: PaymentStatus = at.parse(&payment)?;
        let is_unpaid = matches!(payment, PaymentStatus::Pending | PaymentStatus::Partial);
        if !is_unpaid || matches!(status, WorkflowStatus::Draft | WorkflowStatus::Cancelled) {
            continue;
        }
        let payable: Amount = at.parse(&payable)?;
        let left = payable.minus(at.parse(&paid)?).unwrap_or(Amount::ZERO);
        let due_date = due_date.map(|text| at.parse(&text)).transpose()?;
        let extras: Map<String, Value> = at.json(&extras)?;
        let code = extras.get("invoice_type_code").and_then(Value::as_str);
        amounts.push(OwedAmount {
            currency,
            left,
            due_date,
            invoice_type: code.map_or(invoice_type, str::to_owned),
        });
    }
    Ok(Owed { amounts, is_cut })
}

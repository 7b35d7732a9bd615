//! What the customers of a taxpayer owe it: sums over its newest invoices, so that the cost does not grow with their number.

use database::StoreError;
use database::column::RowRef;
use jiff::civil::Date;
use sea_orm::{ColumnTrait, EntityTrait, QueryFilter, QueryOrder, QuerySelect};

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
}

/// The amounts that are owed, and whether older invoices were left out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Owed {
    pub amounts: Vec<OwedAmount>,
    pub is_cut: bool,
}

/// Looks at the newest `max` invoices. Cancelled invoices, drafts and rejected payments are not owed.
pub async fn by_newest(store: &Store, taxpayer: TaxpayerId, max: u64) -> Result<Owed, StoreError> {
    type Row = (String, String, String, String, String, Option<String>);
    let columns = [
        Column::Status,
        Column::PaymentStatus,
        Column::Currency,
        Column::Payable,
        Column::Paid,
        Column::DueDate,
    ];
    let rows: Vec<Row> = Entity::find()
        .select_only()
        .columns(columns)
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
    for (status, payment, currency, payable, paid, due_date) in rows {
        let status: WorkflowStatus = at.parse(&status)?;
        let payment: PaymentStatus = at.parse(&payment)?;
        let is_unpaid = matches!(payment, PaymentStatus::Pending | PaymentStatus::Partial);
        if !is_unpaid || matches!(status, WorkflowStatus::Draft | WorkflowStatus::Cancelled) {
            continue;
        }
        let payable: Amount = at.parse(&payable)?;
        let left = payable.minus(at.parse(&paid)?).unwrap_or(Amount::ZERO);
        let due_date = due_date.map(|text| at.parse(&text)).transpose()?;
        amounts.push(OwedAmount {
            currency,
            left,
            due_date,
        });
    }
    Ok(Owed { amounts, is_cut })
}

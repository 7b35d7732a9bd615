//! The payment ledger: one entry for each payment update of an invoice. An entry has the sequence of the event that
//! reports the update.

use database::column::RowRef;
use database::insert::Insert;
use database::{StoreError, Transaction};
use jiff::Timestamp;
use sea_orm::QueryOrder;
use sea_orm::entity::prelude::*;

use crate::domain::invoice::Invoice;
use crate::domain::kernel::codes::PaymentStatus;
use crate::domain::kernel::ids::{InvoiceId, TaxpayerId};
use crate::domain::payment::{LedgerEntry, Posting, SET_OFF_REMARK};
use crate::store::Store;
use crate::store::events;

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "payment_entries")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub taxpayer_id: i64,
    #[sea_orm(primary_key, auto_increment = false)]
    pub sequence: i64,
    pub invoice_id: i64,
    pub status: String,
    pub amount: String,
    pub reference: Option<String>,
    pub remark: Option<String>,
    pub at: i64,
    /// The day of the payment, `YYYY-MM-DD`; `None` if none was sent, and in rows of earlier versions.
    pub payment_date: Option<String>,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}

impl TryFrom<Model> for LedgerEntry {
    type Error = StoreError;

    fn try_from(row: Model) -> Result<Self, StoreError> {
        let at = RowRef {
            table: "payment_entries",
            id: row.sequence,
        };
        let payment_date = row.payment_date.map(|text| at.parse(&text)).transpose()?;
        Ok(Self {
            at: at.moment(row.at)?,
            posting: Posting {
                status: at.parse(&row.status)?,
                amount: at.parse(&row.amount)?,
            },
            payment_date,
            reference: row.reference,
            remark: row.remark,
            actor: None,
        })
    }
}

impl Model {
    /// Creates the ledger entry of a posting. `sequence` is the sequence of the event that reports the posting.
    pub fn from_posting(
        invoice: &Invoice,
        sequence: i64,
        posting: Posting,
        now: Timestamp,
    ) -> Self {
        Self {
            taxpayer_id: invoice.taxpayer_id.0,
            sequence,
            invoice_id: invoice.id.0,
            status: posting.status.to_string(),
            amount: posting.amount.to_string(),
            reference: None,
            remark: None,
            at: now.as_microsecond(),
            payment_date: None,
        }
    }
}

/// Loads the ledger entries of an invoice, oldest first. The actor of an entry is the actor of its event.
pub async fn find_owned_by_invoice(
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
    let sequences: Vec<_> = rows.iter().map(|row| row.sequence).collect();
    let mut actors = events::load_event_actors(store, taxpayer, &sequences).await?;
    let entry = |row: Model| {
        let actor = actors.remove(&row.sequence);
        LedgerEntry::try_from(row).map(|entry| LedgerEntry { actor, ..entry })
    };
    rows.into_iter().map(entry).collect()
}

/// Loads, for each of these invoices, the last ledger entry with the payment status given for this invoice, if any.
pub async fn find_last_with_status(
    tx: &Transaction,
    taxpayer: TaxpayerId,
    invoices: &[(InvoiceId, PaymentStatus)],
) -> Result<Vec<Model>, StoreError> {
    let mut found = Vec::with_capacity(invoices.len());
    for (invoice, status) in invoices {
        let last = Entity::find()
            .filter(Column::TaxpayerId.eq(taxpayer.0))
            .filter(Column::InvoiceId.eq(invoice.0))
            .filter(Column::Status.eq(status.to_string()))
            .order_by_desc(Column::Sequence)
            .one(tx)
            .await?;
        found.extend(last);
    }
    Ok(found)
}

/// Loads the ledger entries of these invoices that may have set off credit notes, each with its invoice.
pub async fn find_set_offs(
    tx: &Transaction,
    taxpayer: TaxpayerId,
    invoices: &[InvoiceId],
) -> Result<Vec<(InvoiceId, LedgerEntry)>, StoreError> {
    if invoices.is_empty() {
        return Ok(Vec::new());
    }
    let rows = Entity::find()
        .filter(Column::TaxpayerId.eq(taxpayer.0))
        .filter(Column::InvoiceId.is_in(invoices.iter().map(|invoice| invoice.0)))
        .filter(Column::Remark.starts_with(SET_OFF_REMARK))
        .all(tx)
        .await?;
    let entry = |row: Model| {
        let invoice = InvoiceId(row.invoice_id);
        LedgerEntry::try_from(row).map(|entry| (invoice, entry))
    };
    rows.into_iter().map(entry).collect()
}

static INSERT: Insert<Entity> = Insert::new();

/// Appends entries to the ledger.
pub async fn append(tx: &Transaction, entries: &[&Model]) -> Result<(), StoreError> {
    INSERT
        .execute(tx, entries.iter().map(|entry| (*entry).clone()))
        .await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use jiff::civil::Date;
    use sea_orm::ConnectionTrait;

    use super::*;
    use crate::store::testing::stores;

    const TAXPAYER: TaxpayerId = TaxpayerId(7);

    #[tokio::test]
    async fn an_entry_of_an_earlier_version_has_no_date() {
        for test in stores().await {
            let tx = test.store.begin().await.unwrap();
            let old = "INSERT INTO payment_entries (taxpayer_id, sequence, invoice_id, status, amount, at) \
                VALUES (7, 1, 3, 'PARTIAL', '10.50', 1)";
            tx.execute_unprepared(old).await.unwrap();
            let with_date = Model {
                taxpayer_id: 7,
                sequence: 2,
                invoice_id: 3,
                status: "PAID".to_owned(),
                amount: "1".to_owned(),
                reference: None,
                remark: None,
                at: 2,
                payment_date: Some("2026-02-03".to_owned()),
            };
            append(&tx, &[&with_date]).await.unwrap();
            tx.commit().await.unwrap();
            let entries = find_owned_by_invoice(&test.store, TAXPAYER, InvoiceId(3)).await;
            let entries = entries.unwrap();
            let dates: Vec<_> = entries.iter().map(|entry| entry.payment_date).collect();
            assert_eq!(dates, [None, Some(Date::constant(2026, 2, 3))]);
            let tx = test.store.begin().await.unwrap();
            let wanted = [(InvoiceId(3), PaymentStatus::Paid)];
            let last = find_last_with_status(&tx, TAXPAYER, &wanted).await;
            assert_eq!(last.unwrap(), [with_date]);
        }
    }
}

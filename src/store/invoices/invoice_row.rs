//! The table of invoices. Amounts are exact text. `customer_no`, `search_text`, `corrects`
//! and `is_credit_note` serve only as filters.

use database::StoreError;
use database::column::{RowRef, caseless, json};
use jiff::Timestamp;
use sea_orm::entity::prelude::*;

use crate::domain::invoice::{AuthorityState, Invoice};
use crate::domain::kernel::ids::{InvoiceId, TaxpayerId};
use crate::domain::payment::Payment;

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "invoices")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub taxpayer_id: i64,
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: i64,
    pub irn: String,
    pub irn_key: String,
    pub invoice_no: String,
    pub category: String,
    pub invoice_type: String,
    pub invoice_date: String,
    pub due_date: Option<String>,
    pub currency: String,
    pub customer: String,
    pub lines: String,
    pub status: String,
    pub payment_status: String,
    pub payable: String,
    pub paid: String,
    pub authority_status: String,
    pub qr_code: String,
    pub signed: bool,
    pub batch_no: Option<String>,
    pub extras: String,
    pub content_digest: String,
    pub created_at: i64,
    pub updated_at: i64,
    pub edited_at: Option<i64>,
    pub customer_no: String,
    pub search_text: String,
    pub corrects: Option<String>,
    pub is_credit_note: bool,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}

impl TryFrom<Model> for Invoice {
    type Error = StoreError;

    fn try_from(row: Model) -> Result<Self, StoreError> {
        let at = RowRef {
            table: "invoices",
            id: row.id,
        };
        Ok(Self {
            id: InvoiceId(row.id),
            taxpayer_id: TaxpayerId(row.taxpayer_id),
            irn: at.parse(&row.irn)?,
            category: at.parse(&row.category)?,
            invoice_date: at.parse(&row.invoice_date)?,
            due_date: row
                .due_date
                .as_deref()
                .map(|date| at.parse(date))
                .transpose()?,
            customer: at.json(&row.customer)?,
            lines: at.json(&row.lines)?,
            status: at.parse(&row.status)?,
            payment: Payment {
                status: at.parse(&row.payment_status)?,
                payable: at.parse(&row.payable)?,
                paid: at.parse(&row.paid)?,
            },
            authority: AuthorityState {
                status: at.parse(&row.authority_status)?,
                qr_code: row.qr_code,
                signed: row.signed,
            },
            extras: at.json(&row.extras)?,
            created_at: at.moment(row.created_at)?,
            updated_at: at.moment(row.updated_at)?,
            edited_at: row.edited_at.map(|moment| at.moment(moment)).transpose()?,
            invoice_no: row.invoice_no,
            invoice_type: row.invoice_type,
            currency: row.currency,
            batch_no: row.batch_no,
            content_digest: row.content_digest,
        })
    }
}

impl From<&Invoice> for Model {
    fn from(invoice: &Invoice) -> Self {
        Self {
            taxpayer_id: invoice.taxpayer_id.0,
            id: invoice.id.0,
            irn: invoice.irn.to_string(),
            irn_key: invoice.irn.key(),
            invoice_no: invoice.invoice_no.clone(),
            category: invoice.category.to_string(),
            invoice_type: invoice.invoice_type.clone(),
            invoice_date: invoice.invoice_date.to_string(),
            due_date: invoice.due_date.map(|date| date.to_string()),
            currency: invoice.currency.clone(),
            customer: json(&invoice.customer),
            lines: json(&invoice.lines),
            status: invoice.status.to_string(),
            payment_status: invoice.payment.status.to_string(),
            payable: invoice.payment.payable.to_string(),
            paid: invoice.payment.paid.to_string(),
            authority_status: invoice.authority.status.to_string(),
            qr_code: invoice.authority.qr_code.clone(),
            signed: invoice.authority.signed,
            batch_no: invoice.batch_no.clone(),
            extras: json(&invoice.extras),
            content_digest: invoice.content_digest.clone(),
            created_at: invoice.created_at.as_microsecond(),
            updated_at: invoice.updated_at.as_microsecond(),
            edited_at: invoice.edited_at.map(Timestamp::as_microsecond),
            customer_no: invoice.customer.external_customer_no.clone(),
            search_text: search_text(invoice),
            corrects: invoice.corrected_reference(),
            is_credit_note: invoice.is_credit_note(),
        }
    }
}

/// The maximum size of a search text in bytes. The text is in an index, whose entries PostgreSQL limits to 2,704 bytes.
const SEARCH_BYTES_MAX: usize = 2_000;

/// Returns the text that a search looks in: identifiers of the invoice and its customer, in lower case.
fn search_text(invoice: &Invoice) -> String {
    let customer = &invoice.customer;
    let lines = [
        invoice.invoice_no.as_str(),
        invoice.irn.as_str(),
        &customer.external_customer_no,
        &customer.name,
        customer.tin.as_deref().unwrap_or_default(),
    ];
    let text = caseless(&lines.join("\n"));
    text[..text.floor_char_boundary(SEARCH_BYTES_MAX)].to_owned()
}

#[cfg(test)]
mod tests {
    use sea_orm::{ConnectionTrait, DbBackend, QuerySelect};

    use super::*;
    use crate::store::testing::stores;

    /// The types of invoices, the extra fields, and whether it is a credit note.
    const TYPES: [(&str, &str, bool); 9] = [
        ("380", "{}", true),
        ("393", "{}", true),
        ("Credit Note", "{}", true),
        ("self-billed credit_note", "{}", true),
        ("Sales", r#"{"invoice_type_code":"380"}"#, true),
        ("Credit Note", r#"{"invoice_type_code":"381"}"#, false),
        ("381", r#"{"a":{"invoice_type_code":"380"}}"#, false),
        ("Credit Note Request", "{}", false),
        ("Debit Note", "{}", false),
    ];

    #[tokio::test]
    async fn the_migration_knows_the_credit_notes_among_old_invoices() {
        for test in stores().await {
            let connection = test.store.begin().await.unwrap();
            for (id, (kind, extras, _)) in TYPES.iter().enumerate() {
                let row = format!(
                    "INSERT INTO invoices (taxpayer_id, id, irn, irn_key, invoice_no, category, invoice_type, invoice_date, \
                     currency, customer, lines, status, payment_status, payable, paid, authority_status, qr_code, signed, \
                     extras, content_digest, created_at, updated_at) VALUES (7, {id}, '{id}', '{id}', '{id}', 'B2B', \
                     '{kind}', '2026-01-15', 'NGN', '{{}}', '[]', 'draft', 'PENDING', '1', '0', 'PENDING', '', 1 = 0, \
                     '{extras}', '', 1, 1)"
                );
                connection.execute_unprepared(&row).await.unwrap();
            }
            let script = match test.store.backend() {
                DbBackend::Postgres => {
                    include_str!("../../../migration/sql/m0042_credit_notes.postgres.sql")
                }
                _ => include_str!("../../../migration/sql/m0042_credit_notes.sqlite.sql"),
            };
            connection.execute_unprepared(script).await.unwrap();
            let found: Vec<i64> = Entity::find()
                .select_only()
                .column(Column::Id)
                .filter(Column::IsCreditNote.eq(true))
                .into_tuple()
                .all(&connection)
                .await
                .unwrap();
            for (id, (kind, extras, is_credit_note)) in (0..).zip(TYPES) {
                assert_eq!(found.contains(&id), is_credit_note, "{kind} {extras}");
            }
        }
    }
}

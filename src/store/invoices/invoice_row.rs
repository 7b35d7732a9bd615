//! The table of invoices. Amounts are stored as exact text. The columns `customer_no`, `search_text`, `corrects`,
//! `is_credit_note` and `is_sale` are derived from other columns and serve only as filters.

use database::StoreError;
use database::column::{RowRef, json};
use jiff::Timestamp;
use sea_orm::entity::prelude::*;

use crate::domain::invoice::{AuthorityState, Invoice};
use crate::domain::kernel::ids::{InvoiceId, TaxpayerId};
use crate::domain::party::normal_form;
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
    pub signed_payable: Option<String>,
    pub is_sale: bool,
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
            customer: at.parse_json(&row.customer)?,
            lines: at.parse_json(&row.lines)?,
            status: at.parse(&row.status)?,
            payment: Payment {
                status: at.parse(&row.payment_status)?,
                payable: at.parse(&row.payable)?,
                signed_payable: row
                    .signed_payable
                    .as_deref()
                    .map(|payable| at.parse(payable))
                    .transpose()?,
                paid: at.parse(&row.paid)?,
            },
            authority: AuthorityState {
                status: at.parse(&row.authority_status)?,
                qr_code: row.qr_code,
                signed: row.signed,
            },
            extras: at.parse_json(&row.extras)?,
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
            corrects: invoice
                .corrected_reference()
                .map(|reference| reference.text),
            is_credit_note: invoice.is_credit_note(),
            signed_payable: invoice
                .payment
                .signed_payable
                .map(|payable| payable.to_string()),
            is_sale: invoice.kind().is_sale(),
        }
    }
}

/// The maximum size of a search text in bytes. The text is in an index, whose entries PostgreSQL limits to 2,704 bytes.
const SEARCH_BYTES_MAX: usize = 2_000;

/// Returns the text that a search looks in: identifiers of the invoice and its customer, folded by
/// `normal_form::fold_for_search`. In rows that former versions wrote, the text is only in lower case.
fn search_text(invoice: &Invoice) -> String {
    let customer = &invoice.customer;
    let lines = [
        invoice.invoice_no.as_str(),
        invoice.irn.as_str(),
        &customer.external_customer_no,
        &customer.name,
        customer.tin.as_deref().unwrap_or_default(),
    ];
    let text = normal_form::fold_for_search(&lines.join("\n"));
    text[..text.floor_char_boundary(SEARCH_BYTES_MAX)].to_owned()
}

#[cfg(test)]
mod tests {
    use database::Transaction;
    use sea_orm::sea_query::SimpleExpr;
    use sea_orm::{ConnectionTrait, DbBackend, QuerySelect};

    use super::*;
    use crate::domain::kernel::codes::DocumentKind::{
        self, CreditNote, Invoice, Other, SelfBilled, SelfBilledCreditNote,
    };
    use crate::store::testing::stores;

    /// The types of invoices, the extra fields, and the kind of the document.
    const TYPES: [(&str, &str, DocumentKind); 22] = [
        ("380", "{}", CreditNote),
        ("393", "{}", SelfBilledCreditNote),
        ("Credit Note", "{}", CreditNote),
        ("self-billed credit_note", "{}", SelfBilledCreditNote),
        ("Credit/Note", "{}", CreditNote),
        ("CREDIT\u{a0}NOTE", "{}", CreditNote),
        ("(Credit. Note)", "{}", CreditNote),
        ("Self-billed: credit note", "{}", SelfBilledCreditNote),
        ("Sales", r#"{"invoice_type_code":"380"}"#, CreditNote),
        ("Credit Note", r#"{"invoice_type_code":"381"}"#, Invoice),
        ("381", r#"{"a":{"invoice_type_code":"380"}}"#, Invoice),
        ("Credit Note Request", "{}", Other),
        ("Debit Note", "{}", Invoice),
        ("385", "{}", SelfBilled),
        ("Self-Billed Invoice", "{}", SelfBilled),
        ("Sales", r#"{"invoice_type_code":"394"}"#, SelfBilled),
        ("394", r#"{"invoice_type_code":"381"}"#, Invoice),
        ("390", "{}", Other),
        ("pro-forma", "{}", Other),
        ("Bill of Lading", "{}", Other),
        ("Sales", r#"{"invoice_type_code":"400"}"#, Other),
        ("397", "{}", Invoice),
    ];

    /// Inserts an invoice as a former version did. Its IRN is its id.
    async fn insert_old(
        connection: &Transaction,
        id: usize,
        kind: &str,
        extras: &str,
        status: &str,
    ) {
        let row = format!(
            "INSERT INTO invoices (taxpayer_id, id, irn, irn_key, invoice_no, category, invoice_type, invoice_date, \
             currency, customer, lines, status, payment_status, payable, paid, authority_status, qr_code, signed, \
             extras, content_digest, created_at, updated_at) VALUES (7, {id}, '{id}', '{id}', '{id}', 'B2B', \
             '{kind}', '2026-01-15', 'NGN', '{{}}', '[]', '{status}', 'PENDING', '1', '0', 'PENDING', '', 1 = 0, \
             '{extras}', '', 1, 1)"
        );
        connection.execute_unprepared(&row).await.unwrap();
    }

    /// Runs again what the migrations since m0042 do with the rows of a former version.
    async fn migrate_rows(connection: &Transaction) {
        let scripts = match connection.get_database_backend() {
            DbBackend::Postgres => [
                include_str!("../../../migration/sql/m0042_credit_notes.postgres.sql"),
                include_str!("../../../migration/sql/m0044_kinds_and_signatures.postgres.sql"),
                include_str!("../../../migration/sql/m0048_payables_and_sales.postgres.sql"),
            ],
            _ => [
                include_str!("../../../migration/sql/m0042_credit_notes.sqlite.sql"),
                include_str!("../../../migration/sql/m0044_kinds_and_signatures.sqlite.sql"),
                include_str!("../../../migration/sql/m0048_payables_and_sales.sqlite.sql"),
            ],
        };
        let both = [
            include_str!("../../../migration/sql/m0043_signatures.sql"),
            include_str!("../../../migration/sql/m0044_kinds_and_signatures.sql"),
        ];
        for script in scripts.into_iter().chain(both) {
            connection.execute_unprepared(script).await.unwrap();
        }
    }

    async fn ids_where(connection: &Transaction, condition: SimpleExpr) -> Vec<i64> {
        let found = Entity::find().select_only().column(Column::Id);
        let found = found.filter(condition).into_tuple();
        found.all(connection).await.unwrap()
    }

    #[tokio::test]
    async fn the_migrations_know_the_kinds_of_old_invoices() {
        for (name, extras, kind) in TYPES {
            let extras_read: serde_json::Value = strict_json::from_trusted(extras).unwrap();
            let code = extras_read["invoice_type_code"].as_str();
            let known = DocumentKind::from_type(code.unwrap_or(name));
            assert_eq!(known, kind, "{name} {extras}");
        }
        for test in stores().await {
            let connection = test.store.begin().await.unwrap();
            for (id, (name, extras, _)) in TYPES.iter().enumerate() {
                insert_old(&connection, id, name, extras, "draft").await;
            }
            migrate_rows(&connection).await;
            let credit_notes = ids_where(&connection, Column::IsCreditNote.eq(true)).await;
            let sales = ids_where(&connection, Column::IsSale.eq(true)).await;
            for (id, (name, extras, kind)) in (0..).zip(TYPES) {
                let is_credit_note = kind.is_credit_note();
                let name = format!("{name} {extras}");
                assert_eq!(credit_notes.contains(&id), is_credit_note, "{name}");
                assert_eq!(sales.contains(&id), kind.is_sale(), "{name}");
            }
        }
    }

    #[tokio::test]
    async fn the_migrations_know_which_old_invoices_the_authority_has_signed() {
        // The status of an invoice, the state of its submission, and whether the authority has signed it.
        const SIGNATURES: [(&str, Option<&str>, bool); 7] = [
            ("approved", None, false),
            ("approved", Some("refused"), false),
            ("submitted", Some("succeeded"), true),
            ("transmitted", Some("succeeded"), true),
            ("reported", None, false),
            ("reported", Some("refused"), false),
            ("reported", Some("succeeded"), true),
        ];
        for test in stores().await {
            let connection = test.store.begin().await.unwrap();
            for (id, (status, submission, _)) in SIGNATURES.iter().enumerate() {
                insert_old(&connection, id, "381", "{}", status).await;
                let Some(state) = submission else { continue };
                let run = format!(
                    "INSERT INTO pipeline_runs (taxpayer_id, id, operation, irn, irn_key, state, document, digest, \
                     done, attempt, created_at, updated_at, deadline_at) VALUES (7, 'run {id}', 'submit', '{id}', \
                     '{id}', '{state}', '{{}}', '', '[]', 1, 1, 1, 1)"
                );
                connection.execute_unprepared(&run).await.unwrap();
            }
            migrate_rows(&connection).await;
            let found = ids_where(&connection, Column::Signed.eq(true)).await;
            for (id, (status, submission, is_signed)) in (0..).zip(SIGNATURES) {
                assert_eq!(found.contains(&id), is_signed, "{status} {submission:?}");
            }
        }
    }
}

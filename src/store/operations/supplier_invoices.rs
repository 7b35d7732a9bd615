//! The inbox of supplier invoices that were pulled from the authority, with their documents as received.

use std::collections::{HashMap, HashSet};

use database::column::{RowRef, contains_pattern, fold_case};
use database::page::{self, Page};
use database::sql::dialect;
use database::{StoreError, Transaction, statement_portions};
use jiff::Timestamp;
use sea_orm::sea_query::{Expr, ExprTrait as _, Func};
use sea_orm::{
    ColumnTrait, Condition, ConnectionTrait, EntityTrait, FromQueryResult, IntoActiveModel,
    QueryFilter, QueryOrder, QuerySelect, Select,
};
use serde_json::Value;

use crate::domain::invoice::irn::Irn;
use crate::domain::kernel::codes::DocumentKind;
use crate::domain::kernel::ids::TaxpayerId;
use crate::domain::money::Amount;
use crate::domain::supplier_invoice::{SupplierInvoice, scalar_text};
use crate::store::Store;
use crate::store::operations::supplier_document_row;
use crate::store::operations::supplier_invoice_row::{Column, Entity, Model};

fn owned_by(taxpayer: TaxpayerId) -> Select<Entity> {
    Entity::find().filter(Column::TaxpayerId.eq(taxpayer.0))
}

/// Loads the supplier invoices of a taxpayer that have these IRN keys.
pub async fn find_owned_by_irn_keys(
    connection: &impl ConnectionTrait,
    taxpayer: TaxpayerId,
    irn_keys: Vec<String>,
) -> Result<Vec<SupplierInvoice>, StoreError> {
    if irn_keys.is_empty() {
        return Ok(Vec::new());
    }
    let rows = owned_by(taxpayer)
        .filter(Column::IrnKey.is_in(irn_keys))
        .all(connection)
        .await?;
    rows.into_iter().map(SupplierInvoice::try_from).collect()
}

pub async fn find_owned_by_irn(
    store: &Store,
    taxpayer: TaxpayerId,
    irn: &Irn,
) -> Result<Option<SupplierInvoice>, StoreError> {
    Ok(
        find_owned_by_irn_keys(store.reader(), taxpayer, vec![irn.key()])
            .await?
            .pop(),
    )
}

/// Counts the unacknowledged invoices among the newest `max` in a taxpayer's inbox.
pub async fn count_unacknowledged_owned_by(
    store: &Store,
    taxpayer: TaxpayerId,
    max: u64,
) -> Result<u64, StoreError> {
    let newest: Vec<Option<i64>> = owned_by(taxpayer)
        .select_only()
        .column(Column::AcknowledgedAt)
        .order_by_desc(Column::ReceivedAt)
        .limit(max)
        .into_tuple()
        .all(store.reader())
        .await?;
    let open = newest.iter().filter(|acknowledged| acknowledged.is_none());
    Ok(u64::try_from(open.count()).unwrap_or(u64::MAX))
}

/// The filter of an inbox.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct InboxFilter {
    /// Only invoices that are not acknowledged.
    pub is_open: bool,
    /// Only invoices with this text in the IRN, or in the name or the TIN of the supplier.
    pub text: Option<String>,
}

/// Loads one page of the matching invoices in a taxpayer's inbox, newest first, and the number of all matches.
pub async fn page_owned_by(
    store: &Store,
    taxpayer: TaxpayerId,
    filter: InboxFilter,
    page: Page,
) -> Result<(Vec<SupplierInvoice>, u64), StoreError> {
    let mut listed = owned_by(taxpayer);
    if filter.is_open {
        listed = listed.filter(Column::AcknowledgedAt.is_null());
    }
    if let Some(text) = filter.text {
        listed = listed.filter(contains_text(&text));
    }
    let newest = listed
        .order_by_desc(Column::ReceivedAt)
        .order_by_desc(Column::IrnKey);
    page::load(store, newest, page).await
}

/// Returns the condition that one of the searched columns contains this text, ignoring case. SQLite converts only the
/// letters A to Z to lower case, so the text is also searched as it was typed.
fn contains_text(text: &str) -> Condition {
    let columns = [Column::Irn, Column::SupplierName, Column::SupplierTin];
    columns.into_iter().fold(Condition::any(), |any, column| {
        let lower = Func::lower(Expr::col(column));
        any.add(Expr::expr(lower).like(contains_pattern(&fold_case(text))))
            .add(Expr::col(column).like(contains_pattern(text)))
    })
}

/// Returns the IRN keys in this list whose invoices are in the inbox of any taxpayer.
pub async fn find_received_irn_keys(
    store: &Store,
    irn_keys: &[String],
) -> Result<HashSet<String>, StoreError> {
    let mut received = HashSet::new();
    for chunk in statement_portions(irn_keys) {
        let found: Vec<String> = Entity::find()
            .select_only()
            .column(Column::IrnKey)
            .filter(Column::IrnKey.is_in(chunk))
            .into_tuple()
            .all(store.reader())
            .await?;
        received.extend(found);
    }
    Ok(received)
}

/// Loads the document of a supplier invoice as received.
pub async fn document_owned_by(
    store: &Store,
    taxpayer: TaxpayerId,
    irn: &Irn,
) -> Result<Option<Value>, StoreError> {
    let found = supplier_document_row::Entity::find_by_id((taxpayer.0, irn.key()))
        .one(store.reader())
        .await?;
    let at = RowRef {
        table: "supplier_documents",
        id: format!("{taxpayer}/{}", irn.key()),
    };
    found.map(|row| at.parse_json(&row.document)).transpose()
}

/// The data of a document that a list shows, as the supplier wrote it. Texts that the document lacks are empty.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DocumentSummary {
    pub due: String,
    pub currency: String,
    pub payable: Option<Amount>,
    /// True for a credit note, whose amount the supplier owes.
    pub is_credit_note: bool,
}

#[derive(FromQueryResult)]
struct DocumentSummaryRow {
    irn_key: String,
    due_date: Option<String>,
    document_currency_code: Option<String>,
    invoice_type_code: Option<String>,
    legal_monetary_total: Option<String>,
}

/// Loads the summaries of documents, by IRN key.
pub async fn document_summaries(
    store: &Store,
    taxpayer: TaxpayerId,
    irn_keys: Vec<String>,
) -> Result<HashMap<String, DocumentSummary>, StoreError> {
    use supplier_document_row::Column;
    let mut documents = supplier_document_row::Entity::find()
        .select_only()
        .column(Column::IrnKey);
    for name in [
        "due_date",
        "document_currency_code",
        "invoice_type_code",
        "legal_monetary_total",
    ] {
        let member = dialect(store.backend()).json_member("document", name);
        documents = documents.expr_as(Expr::cust(member), name);
    }
    let rows = documents
        .filter(Column::TaxpayerId.eq(taxpayer.0))
        .filter(Column::IrnKey.is_in(irn_keys))
        .into_model::<DocumentSummaryRow>()
        .all(store.reader())
        .await?;
    let facts = rows.into_iter().map(|row| {
        let totals = parse_json_or_null(row.legal_monetary_total);
        let type_code = scalar_text(&parse_json_or_null(row.invoice_type_code));
        let facts = DocumentSummary {
            is_credit_note: DocumentKind::from_type_code(&type_code).is_credit_note(),
            due: scalar_text(&parse_json_or_null(row.due_date)),
            currency: scalar_text(&parse_json_or_null(row.document_currency_code)),
            payable: scalar_text(&totals["payable_amount"]).parse().ok(),
        };
        (row.irn_key, facts)
    });
    Ok(facts.collect())
}

/// Parses a member of a document. A supplier may have written anything there, so text that is not JSON becomes null.
fn parse_json_or_null(text: Option<String>) -> Value {
    strict_json::from_trusted(&text.unwrap_or_default()).unwrap_or_default()
}

/// Adds a supplier invoice and its document to the inbox of its buyer.
pub async fn add(
    tx: &Transaction,
    invoice: &SupplierInvoice,
    document: &Value,
) -> Result<(), StoreError> {
    let row = Model::from(invoice);
    let document = supplier_document_row::Model {
        taxpayer_id: row.taxpayer_id,
        irn_key: row.irn_key.clone(),
        document: document.to_string(),
    };
    Entity::insert(row.into_active_model())
        .exec_without_returning(tx)
        .await?;
    supplier_document_row::Entity::insert(document.into_active_model())
        .exec_without_returning(tx)
        .await?;
    Ok(())
}

/// Records when the taxpayer acknowledged a supplier invoice.
pub async fn acknowledge(
    tx: &Transaction,
    taxpayer: TaxpayerId,
    irn: &Irn,
    at: Timestamp,
) -> Result<(), StoreError> {
    Entity::update_many()
        .col_expr(Column::AcknowledgedAt, Expr::value(at.as_microsecond()))
        .filter(Column::TaxpayerId.eq(taxpayer.0))
        .filter(Column::IrnKey.eq(irn.key()))
        .exec(tx)
        .await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::store::testing::stores;

    #[tokio::test]
    async fn the_facts_of_a_document_are_read_whatever_else_it_says() {
        let taxpayer = TaxpayerId(7);
        let irn = |number: usize| Irn::parse(&format!("SUP{number}-5A0D0001-20260115")).unwrap();
        let notes = [
            "plain", "a\u{0}b", "\u{0}", r"\u0000", r"\\u0000", "\\\u{0}",
        ];
        for test in stores().await {
            let tx = test.store.begin().await.unwrap();
            for (number, note) in notes.iter().enumerate() {
                let received = SupplierInvoice {
                    taxpayer_id: taxpayer,
                    irn: irn(number),
                    supplier_name: None,
                    supplier_tin: None,
                    received_at: Timestamp::UNIX_EPOCH,
                    acknowledged_at: None,
                };
                let document = json!({
                    "note": note,
                    "due_date": "2026-01-31",
                    "legal_monetary_total": { "payable_amount": 1075 },
                });
                add(&tx, &received, &document).await.unwrap();
            }
            tx.commit().await.unwrap();
            let keys = (0..notes.len()).map(|number| irn(number).key()).collect();
            let facts = document_summaries(&test.store, taxpayer, keys)
                .await
                .unwrap();
            for (number, note) in notes.iter().enumerate() {
                let found = &facts[&irn(number).key()];
                assert_eq!(found.due, "2026-01-31", "{note:?}");
                assert_eq!(found.payable, Amount::parse("1075").ok(), "{note:?}");
            }
        }
    }
}

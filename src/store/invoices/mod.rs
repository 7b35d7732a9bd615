//! Invoices. The submodules hold the customers, items, batches, payments, corrections, the list and the timeline
//! of invoices.
//!
//! | File | Content |
//! |---|---|
//! | `batches` | batches of invoices |
//! | `correcting_documents` | the invoices that refer to another invoice and correct it |
//! | `corrections` | the corrections of signed invoices |
//! | `credit_notes` | the signed credit notes that a payment sets off |
//! | `credited_invoices` | the invoices that new credit notes name, with the amounts of the credit notes that they have |
//! | `customer_row` | the table of the customers of taxpayers |
//! | `customers` | finders of the customers of a taxpayer, for pages and exports |
//! | `customers_and_items` | the customers and items that occur in a taxpayer's invoices |
//! | `import_pieces` | the pieces of large files, which an import processes one after the other |
//! | `import_profiles` | the import profiles of taxpayers: values that their files lack |
//! | `imports` | the imports of files of invoices |
//! | `invoice_row` | the table of invoices |
//! | `item_row` | the table of the items of taxpayers' catalogs |
//! | `list` | the list of a taxpayer's invoices, by page number or cursor, with filters, in several orders |
//! | `list_query` | the filters of the list of invoices, and its SQL |
//! | `list_sort` | the order of the list of invoices |
//! | `owed` | the unsettled sales of a taxpayer (those that are not fully paid), by due date |
//! | `owed_condition` | the SQL conditions of what is owed |
//! | `payments` | the payment ledger: one entry for each payment update of an invoice |
//! | `reference_kind` | SQL conditions that link a credit note to the invoice that it corrects |
//! | `refunds_due` | the SQL of the invoices of which a part has to be paid back |
//! | `running_imports` | the imports of large files that are running |
//! | `timeline` | loads the timeline of an invoice: its newest events, calls of steps, and delivery attempts |
//! | `ubl_parts` | the table of the parts of UBL documents that no field of their invoices holds |
//! | `verify_links` | the public pages of signed invoices: the secret token of each page, with its invoice |
//! | `work_tabs` | the tabs above the list of invoices, and the number of invoices in each |

pub mod batches;
pub mod correcting_documents;
pub mod corrections;
pub mod credit_notes;
pub mod credited_invoices;
pub mod customer_row;
pub mod customers;
pub mod customers_and_items;
pub mod import_pieces;
pub mod import_profiles;
pub mod imports;
pub mod invoice_row;
pub mod item_row;
pub mod list;
pub(in crate::store) mod list_query;
pub mod list_sort;
pub mod owed;
mod owed_condition;
pub mod payments;
mod reference_kind;
mod refunds_due;
pub mod running_imports;
pub mod timeline;
pub mod ubl_parts;
pub mod verify_links;
pub mod work_tabs;

use std::collections::BTreeMap;

use database::column::RowRef;
use database::insert::{Insert, update_on_conflict};
use database::sql::SqlOnce;
use database::{StoreError, Transaction};
use sea_orm::sea_query::Expr;
use sea_orm::{
    ColumnTrait, ConnectionTrait, EntityTrait, FromQueryResult, IdenStatic, Iterable, QueryFilter,
    QuerySelect, Select, Statement,
};

use crate::domain::invoice::Invoice;
use crate::domain::invoice::corrected_reference::{CorrectedReference, references_to_invoice};
use crate::domain::invoice::irn::Irn;
use crate::domain::kernel::codes::UniqueNoType;
use crate::domain::kernel::ids::{InvoiceId, TaxpayerId};
use crate::domain::money::Amount;
use crate::store::Store;
use crate::store::invoices::correcting_documents::select_correcting_documents;
use crate::store::invoices::invoice_row::{Column, Entity, Model};
use crate::store::invoices::reference_kind::{parse_reference_kind, reference_kind_expression};
use crate::store::lookup::{LookupColumn, LookupValues, find, lookup_sql};

/// Identifiers of several kinds. An invoice matches if it has at least one of them.
#[derive(Debug, Clone, Default)]
pub struct InvoiceIdentifiers {
    pub ids: Vec<i64>,
    pub numbers: Vec<String>,
    pub irn_keys: Vec<String>,
}

impl InvoiceIdentifiers {
    /// Adds an identifier that a request gives as `unique_no`. Returns `None` if the text cannot be an identifier of
    /// this kind.
    pub fn add(&mut self, kind: UniqueNoType, text: &str) -> Option<()> {
        match kind {
            UniqueNoType::PortalId => self.ids.push(text.parse().ok()?),
            UniqueNoType::Irn => self.irn_keys.push(Irn::parse(text).ok()?.key()),
            UniqueNoType::ExternalInvoiceNo | UniqueNoType::InternalInvoiceNo => {
                self.numbers.push(text.to_owned());
            }
        }
        Some(())
    }
}

pub(crate) static LOOKUP: SqlOnce = SqlOnce::new(|dialect| {
    let columns = [
        LookupColumn::Number("id"),
        LookupColumn::Text("invoice_no"),
        LookupColumn::Text("irn_key"),
    ];
    lookup_sql::<Entity>(dialect, "invoices", &columns)
});

/// Loads, for each taxpayer, its invoices that have any of the identifiers given for this taxpayer.
pub async fn find_by_identifiers(
    connection: &impl ConnectionTrait,
    wanted: impl IntoIterator<Item = (TaxpayerId, InvoiceIdentifiers)>,
) -> Result<Vec<Invoice>, StoreError> {
    let mut ids = LookupValues::default();
    let mut numbers = LookupValues::default();
    let mut irn_keys = LookupValues::default();
    for (taxpayer, names) in wanted {
        ids.extend(taxpayer, names.ids);
        numbers.extend(taxpayer, names.numbers);
        irn_keys.extend(taxpayer, names.irn_keys);
    }
    if ids.is_empty() && numbers.is_empty() && irn_keys.is_empty() {
        return Ok(Vec::new());
    }
    let rows: Vec<Model> = find(
        connection,
        &LOOKUP,
        [ids.to_json(), numbers.to_json(), irn_keys.to_json()],
    )
    .await?;
    let found: BTreeMap<_, _> = rows.into_iter().map(|row| (row.id, row)).collect();
    found.into_values().map(Invoice::try_from).collect()
}

/// Loads the invoices of a taxpayer that have any of these identifiers.
pub async fn find_owned_by_identifiers(
    connection: &impl ConnectionTrait,
    taxpayer: TaxpayerId,
    names: InvoiceIdentifiers,
) -> Result<Vec<Invoice>, StoreError> {
    find_by_identifiers(connection, [(taxpayer, names)]).await
}

/// The columns of a signed credit note that are needed for the amount that was paid back through it.
#[derive(FromQueryResult)]
struct PaidBackRow {
    id: i64,
    currency: String,
    paid: String,
    corrects: Option<String>,
    reference_kind: Option<String>,
}

/// Returns the amounts that were paid back or set off through the signed credit notes of an invoice in its currency.
/// The number of these notes is not limited, so none of their documents is read.
pub async fn find_amounts_paid_back(
    connection: &impl ConnectionTrait,
    invoice: &Invoice,
) -> Result<Vec<Amount>, StoreError> {
    let columns = [Column::Id, Column::Currency, Column::Paid, Column::Corrects];
    let rows = select_signed_credit_notes(invoice.taxpayer_id, &invoice.incoming_reference_texts())
        .select_only()
        .columns(columns)
        .column_as(Expr::cust(reference_kind_expression()), "reference_kind")
        .into_model::<PaidBackRow>()
        .all(connection)
        .await?;
    let own = references_to_invoice(&invoice.irn.key(), &invoice.invoice_no, invoice.id);
    let mut amounts = Vec::with_capacity(rows.len());
    for row in rows {
        let kind = row.reference_kind.as_deref().map(parse_reference_kind);
        let corrects = kind
            .zip(row.corrects)
            .map(|(by, text)| CorrectedReference { by, text });
        let is_for_invoice = row.id != invoice.id.0
            && row.currency == invoice.currency
            && corrects.is_some_and(|reference| own.contains(&reference));
        if is_for_invoice {
            let at = RowRef {
                table: "invoices",
                id: row.id,
            };
            amounts.push(at.parse(&row.paid)?);
        }
    }
    Ok(amounts)
}

fn select_signed_credit_notes(taxpayer: TaxpayerId, references: &[String]) -> Select<Entity> {
    select_correcting_documents(taxpayer, references)
        .filter(Column::IsCreditNote.eq(true))
        .filter(Column::Signed.eq(true))
}

/// Returns those of these invoice numbers that the taxpayer has already used.
pub async fn numbers_in_use(
    store: &Store,
    taxpayer: TaxpayerId,
    numbers: &[String],
) -> Result<Vec<String>, StoreError> {
    let found = Entity::find()
        .select_only()
        .column(Column::InvoiceNo)
        .filter(Column::TaxpayerId.eq(taxpayer.0))
        .filter(Column::InvoiceNo.is_in(numbers.iter().map(String::as_str)));
    Ok(found.into_tuple().all(store.reader()).await?)
}

/// Finds an invoice of a taxpayer by a `unique_no`.
pub async fn find_owned_by_unique_no(
    store: &Store,
    taxpayer: TaxpayerId,
    kind: UniqueNoType,
    text: &str,
) -> Result<Option<Invoice>, StoreError> {
    let mut names = InvoiceIdentifiers::default();
    if names.add(kind, text).is_none() {
        return Ok(None);
    }
    Ok(find_owned_by_identifiers(store.reader(), taxpayer, names)
        .await?
        .pop())
}

/// This is the most frequent query, so its text is built only once.
static BY_ID: SqlOnce = SqlOnce::new(|_| {
    let columns: Vec<_> = Column::iter()
        .map(|column| column.as_str().to_owned())
        .collect();
    format!(
        "SELECT {} FROM invoices WHERE taxpayer_id = $1 AND id = $2",
        columns.join(", ")
    )
});

pub async fn find_owned_by_id(
    store: &Store,
    taxpayer: TaxpayerId,
    id: InvoiceId,
) -> Result<Option<Invoice>, StoreError> {
    let backend = store.backend();
    let values = [taxpayer.0.into(), id.0.into()];
    let statement = Statement::from_sql_and_values(backend, BY_ID.get(backend), values);
    let row = Model::find_by_statement(statement)
        .one(store.reader())
        .await?;
    row.map(Invoice::try_from).transpose()
}

static SAVE: Insert<Entity> = Insert::with_conflict(|| {
    update_on_conflict(&[Column::TaxpayerId, Column::Id], &CHANGING_COLUMNS)
});

/// Writes the current state of these invoices. Inserts new invoices and updates existing ones.
pub async fn save(tx: &Transaction, invoices: &[&Invoice]) -> Result<(), StoreError> {
    SAVE.execute(tx, invoices.iter().map(|invoice| Model::from(*invoice)))
        .await?;
    Ok(())
}

/// The columns that `save` updates. The remaining columns never change after the insert.
const CHANGING_COLUMNS: [Column; 25] = [
    Column::Category,
    Column::InvoiceType,
    Column::InvoiceDate,
    Column::DueDate,
    Column::Currency,
    Column::Customer,
    Column::Lines,
    Column::Status,
    Column::PaymentStatus,
    Column::Payable,
    Column::Paid,
    Column::AuthorityStatus,
    Column::QrCode,
    Column::Signed,
    Column::BatchNo,
    Column::Extras,
    Column::ContentDigest,
    Column::UpdatedAt,
    Column::EditedAt,
    Column::CustomerNo,
    Column::SearchText,
    Column::Corrects,
    Column::IsCreditNote,
    Column::SignedPayable,
    Column::IsSale,
];

#[cfg(test)]
mod tests {
    use sea_orm::QueryTrait;

    use super::*;
    use crate::domain::correction::testing::{draft, signed};
    use crate::domain::invoice::Line;
    use crate::store::invoices::correcting_documents::{
        CORRECTING_MAX, correcting_documents_size, find_credits, load_correcting_documents,
    };
    use crate::store::testing::{query_plan, stores};

    const TAXPAYER: TaxpayerId = TaxpayerId(7);

    /// Adds a credit note that refers to the invoice `K0`.
    async fn add_credit_note(store: &Store, id: usize, status: &str, is_signed: bool) {
        let customer = r#"{"id":1,"external_customer_no":"C1","name":"C","tin":null,"email":""}"#;
        let signed = if is_signed { "1 = 1" } else { "1 = 0" };
        let statement = format!(
            "INSERT INTO invoices (taxpayer_id, id, irn, irn_key, invoice_no, category, invoice_type, invoice_date, \
             currency, customer, lines, status, payment_status, payable, paid, authority_status, qr_code, signed, \
             extras, content_digest, created_at, updated_at, corrects, is_credit_note) VALUES ({TAXPAYER}, {id}, \
             'N{id}-94AD90FB-20260131', 'K{id}', 'N{id}', 'B2B', '380', '2026-01-31', 'NGN', '{customer}', '[]', \
             '{status}', 'PENDING', '100', '0', 'PENDING', '', {signed}, '{{}}', '', 0, 0, 'K0', 1 = 1)"
        );
        let tx = store.begin().await.unwrap();
        tx.execute_unprepared(&statement).await.unwrap();
        tx.commit().await.unwrap();
    }

    #[tokio::test]
    async fn a_cancelled_credit_note_is_in_force_only_if_it_was_signed() {
        let cases = [
            ("draft", false, true),
            ("approved", false, true),
            ("submitted", true, true),
            ("cancelled", false, false),
            ("cancelled", true, true),
        ];
        for test in stores().await {
            for (id, (status, is_signed, _)) in (1..).zip(cases) {
                add_credit_note(&test.store, id, status, is_signed).await;
            }
            let references = ["K0".to_owned()];
            let reader = test.store.reader();
            let found = load_correcting_documents(reader, TAXPAYER, &references).await;
            let found = found.unwrap().unwrap();
            let ids: Vec<_> = found.iter().map(|note| note.id).collect();
            for (id, (status, is_signed, expected)) in (1..).zip(cases) {
                let is_found = ids.contains(&InvoiceId(id));
                assert_eq!(is_found, expected, "{status}, signed: {is_signed}");
            }
        }
    }

    /// Adds copies of a document, with all ids after its own up to this one.
    async fn copy_document(store: &Store, id: usize, up_to: usize) {
        let statement = format!(
            "INSERT INTO invoices (taxpayer_id, id, irn, irn_key, invoice_no, category, invoice_type, invoice_date, \
             currency, customer, lines, status, payment_status, payable, paid, authority_status, qr_code, signed, \
             extras, content_digest, created_at, updated_at, corrects, is_credit_note) \
             WITH RECURSIVE numbers (number) AS (SELECT {id} + 1 UNION ALL SELECT number + 1 FROM numbers \
             WHERE number < {up_to}) SELECT taxpayer_id, number, 'N' || number || '-94AD90FB-20260131', \
             'K' || number, 'N' || number, category, invoice_type, invoice_date, currency, customer, lines, status, \
             payment_status, payable, paid, authority_status, qr_code, signed, extras, content_digest, created_at, \
             updated_at, corrects, is_credit_note FROM invoices, numbers WHERE id = {id}"
        );
        let tx = store.begin().await.unwrap();
        tx.execute_unprepared(&statement).await.unwrap();
        tx.commit().await.unwrap();
    }

    /// One credit note of the invoice, and many other documents that refer to it only by the same text.
    #[tokio::test]
    async fn credits_say_that_documents_were_left_out_even_if_few_are_credit_notes() {
        let invoice = Invoice {
            id: InvoiceId(5_000),
            taxpayer_id: TAXPAYER,
            ..signed(draft(vec![Line::sample()]))
        };
        let irn = &invoice.irn;
        let key = irn.key();
        for test in stores().await {
            for id in 1..3 {
                add_credit_note(&test.store, id, "draft", false).await;
            }
            let changes = [
                format!("UPDATE invoices SET corrects = '{key}'"),
                format!(
                    r#"UPDATE invoices SET extras = '{{"original_invoice_reference":"{irn}"}}' WHERE id = 1"#
                ),
            ];
            for change in changes {
                let tx = test.store.begin().await.unwrap();
                tx.execute_unprepared(&change).await.unwrap();
                tx.commit().await.unwrap();
            }
            let mut last = 2;
            for (count, is_cut) in [
                (3, false),
                (CORRECTING_MAX, false),
                (CORRECTING_MAX + 1, true),
            ] {
                copy_document(&test.store, last, count).await;
                last = count;
                let credits = find_credits(test.store.reader(), &invoice).await.unwrap();
                let found = (credits.signed.len(), credits.unsigned.len(), credits.is_cut);
                assert_eq!(found, (0, 1, is_cut), "{count}");
            }
        }
    }

    /// Each of four credit notes has half a MiB of extra fields, and a document of some MiB was sent of the first one.
    #[tokio::test]
    async fn documents_that_refer_to_an_invoice_are_not_loaded_if_they_are_large() {
        let half_mib = "x".repeat(512 * 1024);
        for test in stores().await {
            for id in 1..5 {
                add_credit_note(&test.store, id, "draft", false).await;
            }
            let run = format!(
                "INSERT INTO pipeline_runs (taxpayer_id, id, operation, irn, irn_key, state, document, digest, done, \
                 attempt, created_at, updated_at, deadline_at) VALUES ({TAXPAYER}, 'R1', 'submit', \
                 'N1-94AD90FB-20260131', 'K1', 'refused', '{half_mib}', '', '[]', 0, 0, 0, 0)"
            );
            let extras = format!(r#"UPDATE invoices SET extras = '{{"note":"{half_mib}"}}'"#);
            let tx = test.store.begin().await.unwrap();
            tx.execute_unprepared(&run).await.unwrap();
            tx.execute_unprepared(&extras).await.unwrap();
            tx.commit().await.unwrap();
            let references = ["K0".to_owned()];
            let reader = test.store.reader();
            // The document is doubled each time: it has 1 MiB, then 2, 4, 8 and 16 MiB.
            for (mib, is_loaded) in [(3, true), (4, true), (6, true), (10, true), (18, false)] {
                let tx = test.store.begin().await.unwrap();
                let doubled = "UPDATE pipeline_runs SET document = document || document";
                tx.execute_unprepared(doubled).await.unwrap();
                tx.commit().await.unwrap();
                let bytes = correcting_documents_size(reader, TAXPAYER, &references).await;
                assert_eq!(bytes.unwrap() >> 20, mib);
                let found = load_correcting_documents(reader, TAXPAYER, &references).await;
                assert_eq!(found.unwrap().is_some(), is_loaded, "{mib}");
            }
        }
    }

    /// The documents of these credit notes are no JSON, so nothing is found if one of them is read.
    #[tokio::test]
    async fn the_amounts_paid_back_are_found_without_a_document() {
        let invoice = Invoice {
            id: InvoiceId(9),
            taxpayer_id: TAXPAYER,
            ..signed(draft(vec![Line::sample()]))
        };
        let irn_key = invoice.irn.key();
        let irn = irn_key.as_str();
        // The reference of a credit note and its kind, its currency, its status, whether it was signed, and whether its
        // amount counts. The last one has the id of the invoice.
        let cases = [
            (irn, "IRN", "NGN", "submitted", true, true),
            ("1", "INTERNAL_INVOICE_NO", "NGN", "submitted", true, true),
            ("9", "PORTAL_ID", "NGN", "submitted", true, true),
            (irn, "IRN", "NGN", "cancelled", true, true),
            (irn, "IRN", "USD", "submitted", true, false),
            (irn, "IRN", "NGN", "approved", false, false),
            ("9", "EXTERNAL_INVOICE_NO", "NGN", "submitted", true, false),
            ("1", "PORTAL_ID", "NGN", "submitted", true, false),
            ("9", "PORTAL_ID", "NGN", "submitted", true, false),
        ];
        for test in stores().await {
            let mut expected = Vec::new();
            for (id, (reference, kind, currency, status, is_signed, counts)) in (1..).zip(cases) {
                add_credit_note(&test.store, id, status, is_signed).await;
                let change = format!(
                    "UPDATE invoices SET corrects = '{reference}', currency = '{currency}', paid = '{id}', \
                     customer = 'none', lines = 'none', extras = '\"original_invoice_reference_type\":\"{kind}\"' \
                     WHERE taxpayer_id = {TAXPAYER} AND id = {id}"
                );
                let tx = test.store.begin().await.unwrap();
                tx.execute_unprepared(&change).await.unwrap();
                tx.commit().await.unwrap();
                if counts {
                    expected.push(Amount::parse(&id.to_string()).unwrap());
                }
            }
            let found = find_amounts_paid_back(test.store.reader(), &invoice).await;
            assert_eq!(found.unwrap(), expected);
        }
    }

    #[tokio::test]
    async fn what_refers_to_an_invoice_is_found_without_a_look_at_all_invoices() {
        // SQLite only: PostgreSQL's plan depends on the number of invoices.
        for test in stores().await.into_iter().take(1) {
            for count in [1, 3] {
                let references = vec!["K0".to_owned(); count];
                let query =
                    select_signed_credit_notes(TAXPAYER, &references).build(test.store.backend());
                let values = query.values.map(|values| values.0).unwrap_or_default();
                let plan = query_plan(&test.store, &query.sql, values).await.join("\n");
                let index = "invoices_by_taxpayer_id_corrects (taxpayer_id=? AND corrects=?)";
                assert!(plan.contains(index), "{plan}");
            }
        }
    }
}

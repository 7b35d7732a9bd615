//! The sales of a taxpayer that are not fully paid (owed), by due date. Their number is limited, so that the time does
//! not grow with it.

use std::cmp::Ordering;
use std::collections::{HashMap, HashSet};

use database::StoreError;
use database::column::RowRef;
use jiff::civil::Date;
use sea_orm::sea_query::{Expr, ExprTrait};
use sea_orm::{
    ColumnTrait, EntityTrait, FromQueryResult, QueryFilter, QueryOrder, QuerySelect, Select,
};

use crate::domain::correction::credits::Settlement;
use crate::domain::invoice::Invoice;
use crate::domain::invoice::corrected_reference::{CorrectedReference, references_to_invoice};
use crate::domain::invoice::owed::{OwedInvoice, set_off_credit_notes};
use crate::domain::kernel::ids::{InvoiceId, TaxpayerId};
use crate::domain::money::Amount;
use crate::store::Store;
use crate::store::invoices::invoice_row::{Column, Entity};
use crate::store::invoices::list_query::{IndexHint, InvoiceFilter, InvoiceList};
use crate::store::invoices::list_sort::{DUE_DATE_SQL, InvoiceSort};
use crate::store::invoices::owed_condition::{
    OWED_CONDITION, nothing_left_condition, refund_due_condition, signed_credit_condition,
};
use crate::store::invoices::reference_kind::{
    corrects_condition, credits_closed_invoice_condition, parse_reference_kind,
    reference_kind_expression,
};

/// The owed invoices that were read. `is_cut` is true if there are more than the maximum.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwedInvoices {
    pub invoices: Vec<OwedInvoice>,
    pub is_cut: bool,
}

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
    /// True if the invoice has a signed credit note that is not fully set off and that is not owed itself.
    has_closed_credit: bool,
}

impl OwedRow {
    fn references(&self) -> [CorrectedReference; 3] {
        references_to_invoice(&self.irn_key, &self.invoice_no, InvoiceId(self.id))
    }
}

impl TryFrom<OwedRow> for OwedInvoice {
    type Error = StoreError;

    fn try_from(row: OwedRow) -> Result<Self, StoreError> {
        let at = RowRef {
            table: "invoices",
            id: row.id,
        };
        let payable: Amount = at.parse(row.signed_payable.as_ref().unwrap_or(&row.payable))?;
        let kind = row.reference_kind.as_deref().map(parse_reference_kind);
        let corrects = kind
            .zip(row.corrects)
            .map(|(by, text)| CorrectedReference { by, text });
        let due_date = row.due_date.map(|text| at.parse(&text)).transpose()?;
        Ok(Self {
            id: InvoiceId(row.id),
            irn_key: row.irn_key,
            invoice_no: row.invoice_no,
            customer: at.parse_json(&row.customer)?,
            currency: row.currency,
            left: payable.minus(at.parse(&row.paid)?).unwrap_or(Amount::ZERO),
            due_date,
            is_credit_note: row.is_credit_note,
            corrects: corrects.filter(|_| row.signed),
        })
    }
}

/// Loads up to `max` owed documents, the earliest due date first, and sets credit notes off against their invoices.
pub async fn load_owed_invoices(
    store: &Store,
    taxpayer: TaxpayerId,
    max: u64,
) -> Result<OwedInvoices, StoreError> {
    let rows = select_owed_by_due_date(taxpayer, max.saturating_add(1))
        .into_model::<OwedRow>()
        .all(store.reader())
        .await?;
    let max = usize::try_from(max).unwrap_or(usize::MAX);
    let is_cut = rows.len() > max;
    let mut invoices = Vec::with_capacity(rows.len().min(max));
    let mut credited = HashSet::new();
    for row in rows.into_iter().take(max) {
        if row.has_closed_credit {
            credited.extend(row.references());
        }
        invoices.push(OwedInvoice::try_from(row)?);
    }
    if !credited.is_empty() {
        invoices.extend(load_closed_credits(store, taxpayer, &credited).await?);
    }
    let invoices = set_off_credit_notes(invoices);
    Ok(OwedInvoices { invoices, is_cut })
}

/// Loads the signed credit notes with one of these references that are not fully set off but do not meet
/// `OWED_CONDITION`, because they were cancelled here or their own payment was rejected. Their signature stays valid,
/// so they still reduce what is owed.
async fn load_closed_credits(
    store: &Store,
    taxpayer: TaxpayerId,
    credited: &HashSet<CorrectedReference>,
) -> Result<Vec<OwedInvoice>, StoreError> {
    let texts = credited.iter().map(|reference| reference.text.as_str());
    let rows = select_owed_rows(taxpayer, "1 = 0")
        .filter(Column::Corrects.is_in(texts))
        .filter(Expr::cust(closed_credit_condition("invoices")))
        .into_model::<OwedRow>()
        .all(store.reader())
        .await?;
    let mut notes = Vec::with_capacity(rows.len());
    for row in rows {
        let note = OwedInvoice::try_from(row)?;
        if note
            .corrects
            .as_ref()
            .is_some_and(|one| credited.contains(one))
        {
            notes.push(note);
        }
    }
    Ok(notes)
}

/// Returns the condition that a row of this table is a signed credit note that is not fully set off, and to which
/// `OWED_CONDITION` does not apply: it was cancelled here, or its own payment was rejected. The conditions are
/// negations, so that SQLite uses the index of `corrects` and not an index in which it would read all drafts.
fn closed_credit_condition(table: &str) -> String {
    format!(
        "{} AND {table}.payment_status <> 'PAID' AND NOT ({table}.payment_status IN ('PENDING', 'PARTIAL') \
         AND {table}.status NOT IN ('draft', 'cancelled'))",
        signed_credit_condition(table)
    )
}

/// Returns the condition that a row of the table `invoices` has a credit note as `load_closed_credits` loads them.
fn has_closed_credit_condition() -> String {
    format!(
        "EXISTS (SELECT 1 FROM invoices AS note WHERE note.taxpayer_id = invoices.taxpayer_id AND {} AND {})",
        corrects_condition("note", "invoices"),
        closed_credit_condition("note")
    )
}

/// Selects up to `limit` owed documents, the earliest due date first.
fn select_owed_by_due_date(taxpayer: TaxpayerId, limit: u64) -> Select<Entity> {
    select_owed_rows(taxpayer, &has_closed_credit_condition())
        .filter(Expr::cust(OWED_CONDITION))
        // If an invoice was credited in full before any payment, its payment status is REJECTED, and neither the
        // invoice nor its credit note is owed. The same holds for an invoice that was cancelled although it was signed.
        .filter(Expr::cust(credits_closed_invoice_condition()).not())
        .order_by_asc(Expr::cust(DUE_DATE_SQL))
        .limit(limit)
}

/// Selects the columns of `OwedRow` of the sales of a taxpayer.
fn select_owed_rows(taxpayer: TaxpayerId, has_closed_credit: &str) -> Select<Entity> {
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
    Entity::find()
        .select_only()
        .columns(columns)
        .column_as(Expr::cust(reference_kind_expression()), "reference_kind")
        .column_as(
            Expr::cust(has_closed_credit.to_owned()),
            "has_closed_credit",
        )
        .filter(Column::TaxpayerId.eq(taxpayer.0))
        .filter(Column::IsSale.eq(true))
}

#[derive(FromQueryResult)]
struct NothingLeftRow {
    id: i64,
    is_refund_due: bool,
}

/// Returns the settlements of those of these invoices of which nothing is left to pay after their signed credit notes.
/// The payment status says all about the others.
pub async fn find_settlements(
    store: &Store,
    taxpayer: TaxpayerId,
    invoices: &[Invoice],
) -> Result<HashMap<InvoiceId, Settlement>, StoreError> {
    let candidates = invoices.iter().filter(|invoice| !invoice.is_credit_note());
    let by_id: HashMap<i64, &Invoice> = candidates.map(|invoice| (invoice.id.0, invoice)).collect();
    if by_id.is_empty() {
        return Ok(HashMap::new());
    }
    let rows = select_nothing_left(taxpayer, by_id.keys().copied().collect())
        .into_model::<NothingLeftRow>()
        .all(store.reader())
        .await?;
    let settlements = rows.into_iter().filter_map(|row| {
        let invoice = by_id.get(&row.id)?;
        let left = if row.is_refund_due {
            Ordering::Less
        } else {
            Ordering::Equal
        };
        // Without credit notes, the query finds only invoices of which a part has to be paid back.
        Some((invoice.id, Settlement::new(invoice, left, true)))
    });
    Ok(settlements.collect())
}

fn select_nothing_left(taxpayer: TaxpayerId, ids: Vec<i64>) -> Select<Entity> {
    Entity::find()
        .select_only()
        .column(Column::Id)
        .column_as(
            Expr::cust(refund_due_condition("invoices")),
            "is_refund_due",
        )
        .filter(Column::TaxpayerId.eq(taxpayer.0))
        .filter(Column::Id.is_in(ids))
        .filter(Expr::cust(nothing_left_condition("invoices")))
}

/// Returns the ids of those of these invoices that are overdue on the day `today`, even after their signed credit notes
/// are set off.
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
    let condition = list.condition(IndexHint::hint_for_ids(store.backend()));
    let found: Vec<i64> = Entity::find()
        .select_only()
        .column(Column::Id)
        .filter(condition)
        .into_tuple()
        .all(store.reader())
        .await?;
    Ok(found.into_iter().map(InvoiceId).collect())
}

#[cfg(test)]
mod tests {
    use sea_orm::{ConnectionTrait, QueryTrait};

    use super::*;
    use crate::store::testing::{query_plan, stores};

    #[tokio::test]
    async fn unsettled_documents_are_found_without_a_look_at_the_settled_ones() {
        // SQLite only: PostgreSQL's plan depends on the number of invoices.
        for test in stores().await.into_iter().take(1) {
            let query = select_owed_by_due_date(TaxpayerId(7), 10).build(test.store.backend());
            let values = query.values.map(|values| values.0).unwrap_or_default();
            let plan = query_plan(&test.store, &query.sql, values).await;
            assert!(plan.concat().contains("invoices_owed"), "{plan:?}");
            let credited = plan.iter().filter(|step| step.contains("credited"));
            let is_looked_up = |step: &String| step.contains("(taxpayer_id=? AND ");
            assert!(credited.clone().all(is_looked_up), "{plan:?}");
            assert_eq!(credited.count(), 3, "{plan:?}");
            let notes = plan.iter().filter(|step| step.contains("SEARCH note "));
            let by_reference = |step: &String| step.contains("taxpayer_id_corrects");
            assert!(notes.clone().all(by_reference), "{plan:?}");
            assert!(notes.count() > 0, "{plan:?}");
        }
    }

    #[tokio::test]
    async fn invoices_of_which_nothing_is_left_are_found_by_their_ids() {
        // SQLite only: PostgreSQL's plan depends on the number of invoices.
        for test in stores().await.into_iter().take(1) {
            let query = select_nothing_left(TaxpayerId(7), vec![1, 2]);
            let query = query.build(test.store.backend());
            let values = query.values.map(|values| values.0).unwrap_or_default();
            let plan = query_plan(&test.store, &query.sql, values).await;
            assert!(plan[0].contains("(taxpayer_id=? AND id=?)"), "{plan:?}");
            let notes = plan.iter().filter(|step| step.contains("SEARCH note "));
            let by_reference = |step: &String| step.contains("taxpayer_id_corrects");
            assert!(notes.clone().all(by_reference), "{plan:?}");
            assert!(notes.count() > 0, "{plan:?}");
        }
    }

    /// The status, the payment status and the payable of a credit note or of its invoice.
    type Note<'a> = (&'a str, &'a str, &'a str);

    /// Stores an invoice that was due, and a signed credit note for it.
    async fn add_credited_invoice(store: &Store, taxpayer: i64, invoice: Note<'_>, note: Note<'_>) {
        let row = |id: i64, (status, payment, payable): Note<'_>, corrects: &str| {
            let paid = if payment == "PAID" { payable } else { "0" };
            let customer =
                r#"{"id":1,"external_customer_no":"1","name":"C","tin":null,"email":""}"#;
            format!(
                "({taxpayer}, {id}, '{id}', 'K{id}', 'N{id}', 'B2B', '381', '2026-01-15', '2026-02-15', 'NGN', \
                 '{customer}', '[]', '{status}', '{payment}', '{payable}', '{paid}', 'PENDING', '', 1 = 1, '{{}}', \
                 '', {id}, {id}, {corrects}, {corrects} IS NOT NULL)"
            )
        };
        let statement = format!(
            "INSERT INTO invoices (taxpayer_id, id, irn, irn_key, invoice_no, category, invoice_type, invoice_date, \
             due_date, currency, customer, lines, status, payment_status, payable, paid, authority_status, qr_code, \
             signed, extras, content_digest, created_at, updated_at, corrects, is_credit_note) VALUES {}, {}",
            row(1, invoice, "NULL"),
            row(2, note, "'K1'")
        );
        let tx = store.begin().await.unwrap();
        tx.execute_unprepared(&statement).await.unwrap();
        tx.commit().await.unwrap();
    }

    #[tokio::test]
    async fn a_credit_note_of_an_invoice_that_nobody_owes_counts_if_something_was_paid() {
        for test in stores().await {
            // The statuses of the invoice over 100, then what is left of it and of its credit note over 100.
            for (taxpayer, (status, payment, left)) in (7..).zip([
                ("submitted", "PENDING", ""),
                ("submitted", "REJECTED", ""),
                ("submitted", "PAID", "100"),
                ("cancelled", "PENDING", ""),
                ("cancelled", "REJECTED", ""),
                ("cancelled", "PAID", "100"),
            ]) {
                let invoice = (status, payment, "100");
                let note = ("submitted", "PENDING", "100");
                add_credited_invoice(&test.store, taxpayer, invoice, note).await;
                let owed = load_owed_invoices(&test.store, TaxpayerId(taxpayer), 10).await;
                let owed = owed.unwrap().invoices;
                let texts: Vec<_> = owed.iter().map(|one| one.left.to_string()).collect();
                assert_eq!(texts.join(" "), left, "{status} {payment}");
            }
        }
    }

    #[tokio::test]
    async fn a_signed_credit_note_counts_whatever_became_of_it_here() {
        for test in stores().await {
            for (taxpayer, (note, left)) in (7..).zip([
                (("submitted", "PENDING", "40"), "60"),
                (("submitted", "PENDING", "100"), ""),
                (("submitted", "PAID", "40"), "100"),
                (("submitted", "REJECTED", "40"), "60"),
                (("submitted", "REJECTED", "100"), ""),
                (("cancelled", "PENDING", "40"), "60"),
                (("cancelled", "PENDING", "100"), ""),
                (("cancelled", "REJECTED", "100"), ""),
                (("cancelled", "PAID", "40"), "100"),
                (("draft", "PENDING", "100"), ""),
            ]) {
                let invoice = ("submitted", "PENDING", "100");
                add_credited_invoice(&test.store, taxpayer, invoice, note).await;
                let taxpayer = TaxpayerId(taxpayer);
                let owed = load_owed_invoices(&test.store, taxpayer, 10).await.unwrap();
                let texts: Vec<_> = owed
                    .invoices
                    .iter()
                    .map(|one| one.left.to_string())
                    .collect();
                assert_eq!(texts.join(" "), left, "{note:?}");
                let list = InvoiceList {
                    taxpayer,
                    filters: InvoiceFilter {
                        overdue_on: Some(Date::constant(2026, 3, 1)),
                        ..InvoiceFilter::default()
                    },
                    sort: InvoiceSort::NEWEST_FIRST,
                };
                let overdue = list.count(&test.store).await.unwrap();
                assert_eq!(overdue, u64::from(!left.is_empty()), "{note:?}");
                let settled = select_nothing_left(taxpayer, vec![1, 2])
                    .into_model::<NothingLeftRow>()
                    .all(test.store.reader())
                    .await
                    .unwrap();
                let ids: Vec<_> = settled.iter().map(|row| row.id).collect();
                assert_eq!(ids == [1], left.is_empty(), "{note:?}");
                assert!(settled.iter().all(|row| !row.is_refund_due), "{note:?}");
            }
        }
    }
}

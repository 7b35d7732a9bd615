//! Loads the invoices to which new credit notes refer, with the amounts of the credit notes that are already stored.
//! Single columns are read instead of whole documents, so there may be many stored credit notes. Their number is
//! limited, because they are read again for each new credit note.

use std::collections::HashMap;

use database::StoreError;
use database::column::RowRef;
use sea_orm::sea_query::Expr;
use sea_orm::{
    ColumnTrait, ConnectionTrait, EntityTrait, FromQueryResult, QueryFilter, QuerySelect,
};

use crate::domain::correction::credited_invoice::CreditedInvoice;
use crate::domain::invoice::corrected_reference::{
    CorrectedReference, ReferencedBy, references_to_invoice,
};
use crate::domain::kernel::ids::{InvoiceId, TaxpayerId};
use crate::domain::money::Amount;
use crate::store::invoices::correcting_documents::{
    in_force_condition, select_correcting_documents,
};
use crate::store::invoices::invoice_row::{Column, Entity};
use crate::store::invoices::reference_kind::{parse_reference_kind, reference_kind_expression};

/// The maximum number of credit notes that are read, of all invoices together.
const CREDITS_MAX: usize = 10_000;

/// The columns of an invoice that tell its amount and the references that name it.
#[derive(FromQueryResult)]
struct InvoiceAmountRow {
    id: i64,
    irn_key: String,
    invoice_no: String,
    currency: String,
    payable: String,
    signed_payable: Option<String>,
}

/// The columns of a credit note that tell its amount and its invoice.
#[derive(FromQueryResult)]
struct CreditRow {
    id: i64,
    invoice_no: String,
    currency: String,
    payable: String,
    signed_payable: Option<String>,
    corrects: Option<String>,
    reference_kind: Option<String>,
}

impl TryFrom<InvoiceAmountRow> for CreditedInvoice {
    type Error = StoreError;

    fn try_from(row: InvoiceAmountRow) -> Result<Self, StoreError> {
        Ok(Self {
            references: references_to_invoice(&row.irn_key, &row.invoice_no, InvoiceId(row.id)),
            payable: parse_payable(row.id, row.signed_payable.as_deref(), &row.payable)?,
            invoice_no: row.invoice_no,
            currency: row.currency,
            credits: HashMap::new(),
        })
    }
}

/// Loads the invoices of a taxpayer that these references name, with the amounts of their credit notes. A credit note
/// that was cancelled before it was signed is left out. Returns no invoice if there are more than `CREDITS_MAX` credit
/// notes, because the amount that they leave is not known then.
pub async fn find_owned_by_references(
    connection: &impl ConnectionTrait,
    taxpayer: TaxpayerId,
    references: &[CorrectedReference],
) -> Result<Vec<CreditedInvoice>, StoreError> {
    find_with_credits(connection, taxpayer, references, CREDITS_MAX).await
}

async fn find_with_credits(
    connection: &impl ConnectionTrait,
    taxpayer: TaxpayerId,
    references: &[CorrectedReference],
    credits_max: usize,
) -> Result<Vec<CreditedInvoice>, StoreError> {
    let mut found: Vec<CreditedInvoice> = Vec::new();
    for condition in reference_conditions(references) {
        let rows = Entity::find()
            .select_only()
            .columns([
                Column::Id,
                Column::IrnKey,
                Column::InvoiceNo,
                Column::Currency,
                Column::Payable,
                Column::SignedPayable,
            ])
            .filter(Column::TaxpayerId.eq(taxpayer.0))
            .filter(condition)
            .into_model::<InvoiceAmountRow>()
            .all(connection)
            .await?;
        for row in rows {
            let invoice = CreditedInvoice::try_from(row)?;
            if !found.iter().any(|one| one.invoice_no == invoice.invoice_no) {
                found.push(invoice);
            }
        }
    }
    if !found.is_empty() && !add_credits(connection, taxpayer, &mut found, credits_max).await? {
        return Ok(Vec::new());
    }
    Ok(found)
}

/// Returns a condition for each kind of reference among these. Each uses the index of its column.
fn reference_conditions(references: &[CorrectedReference]) -> Vec<Expr> {
    let texts = |kind: ReferencedBy| {
        let of_kind = references.iter().filter(move |one| one.by == kind);
        of_kind.map(|one| one.text.as_str()).collect::<Vec<_>>()
    };
    let irn_keys = texts(ReferencedBy::Irn);
    let numbers = texts(ReferencedBy::Number);
    let ids = texts(ReferencedBy::PortalId).into_iter();
    let ids: Vec<i64> = ids.filter_map(|text| text.parse().ok()).collect();
    let mut conditions = Vec::new();
    if !irn_keys.is_empty() {
        conditions.push(Column::IrnKey.is_in(irn_keys));
    }
    if !numbers.is_empty() {
        conditions.push(Column::InvoiceNo.is_in(numbers));
    }
    if !ids.is_empty() {
        conditions.push(Column::Id.is_in(ids));
    }
    conditions
}

/// Adds the amounts of the credit notes to their invoices. Adds none and returns false if they are more than `max`.
async fn add_credits(
    connection: &impl ConnectionTrait,
    taxpayer: TaxpayerId,
    invoices: &mut [CreditedInvoice],
    max: usize,
) -> Result<bool, StoreError> {
    let references = invoices.iter().map(|invoice| invoice.references.clone());
    let indexes: HashMap<CorrectedReference, usize> = (0..)
        .zip(references)
        .flat_map(|(index, own)| own.map(|reference| (reference, index)))
        .collect();
    let texts: Vec<_> = indexes
        .keys()
        .map(|reference| reference.text.clone())
        .collect();
    let rows = select_correcting_documents(taxpayer, &texts)
        .select_only()
        .columns([
            Column::Id,
            Column::InvoiceNo,
            Column::Currency,
            Column::Payable,
            Column::SignedPayable,
            Column::Corrects,
        ])
        .column_as(Expr::cust(reference_kind_expression()), "reference_kind")
        .filter(Column::IsCreditNote.eq(true))
        .filter(in_force_condition())
        .limit(max as u64 + 1)
        .into_model::<CreditRow>()
        .all(connection)
        .await?;
    if rows.len() > max {
        return Ok(false);
    }
    for row in rows {
        let kind = row.reference_kind.as_deref().map(parse_reference_kind);
        let reference = kind
            .zip(row.corrects)
            .map(|(by, text)| CorrectedReference { by, text });
        let index = reference.and_then(|reference| indexes.get(&reference));
        let Some(invoice) = index.and_then(|index| invoices.get_mut(*index)) else {
            continue;
        };
        if row.currency != invoice.currency || row.invoice_no == invoice.invoice_no {
            continue;
        }
        let amount = parse_payable(row.id, row.signed_payable.as_deref(), &row.payable)?;
        invoice.credits.insert(row.invoice_no, amount);
    }
    Ok(true)
}

/// Returns the amount of a document. `signed` is the amount of the signed document, if it differs from the stored one.
fn parse_payable(id: i64, signed: Option<&str>, stored: &str) -> Result<Amount, StoreError> {
    let at = RowRef {
        table: "invoices",
        id,
    };
    at.parse(signed.unwrap_or(stored))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::kernel::codes::UniqueNoType;
    use crate::store::Store;
    use crate::store::testing::stores;

    const TAXPAYER: TaxpayerId = TaxpayerId(7);

    /// A credit note of the invoice with the id 1: its reference, the kind of the reference, its currency, its status,
    /// whether it was signed, and whether its amount counts.
    type Case<'a> = (&'a str, &'a str, &'a str, &'a str, bool, bool);

    const NOTES: [Case<'_>; 9] = [
        ("K1", "IRN", "NGN", "draft", false, true),
        ("K1", "IRN", "NGN", "submitted", true, true),
        ("N1", "INTERNAL_INVOICE_NO", "NGN", "approved", false, true),
        ("1", "PORTAL_ID", "NGN", "draft", false, true),
        ("K1", "IRN", "NGN", "cancelled", true, true),
        ("K1", "IRN", "NGN", "cancelled", false, false),
        ("K1", "IRN", "USD", "draft", false, false),
        ("N1", "PORTAL_ID", "NGN", "draft", false, false),
        ("K2", "IRN", "NGN", "draft", false, false),
    ];

    /// Adds the invoice with the id 1 over 100, of which 90 was signed, and its credit notes, whose amounts are their
    /// ids.
    async fn add_documents(store: &Store) {
        let mut rows = vec![row(
            1,
            "'100'",
            "'{}', NULL, 1 = 0, '90'",
            ("NGN", "submitted", true),
        )];
        for (id, (reference, kind, currency, status, is_signed, _)) in (2..).zip(NOTES) {
            let extras = format!(r#"{{"original_invoice_reference_type":"{kind}"}}"#);
            let note = format!("'{extras}', '{reference}', 1 = 1, NULL");
            let payable = format!("'{id}'");
            rows.push(row(id, &payable, &note, (currency, status, is_signed)));
        }
        let statement = format!(
            "INSERT INTO invoices (taxpayer_id, id, irn, irn_key, invoice_no, category, invoice_type, invoice_date, \
             currency, customer, lines, status, payment_status, paid, authority_status, qr_code, signed, \
             content_digest, created_at, updated_at, payable, extras, corrects, is_credit_note, signed_payable) \
             VALUES {}",
            rows.join(", ")
        );
        let tx = store.begin().await.unwrap();
        tx.execute_unprepared(&statement).await.unwrap();
        tx.commit().await.unwrap();
    }

    /// Returns the values of a row. `state` has its currency, its status, and whether it was signed.
    fn row(id: i64, payable: &str, rest: &str, state: (&str, &str, bool)) -> String {
        let (currency, status, is_signed) = state;
        let signed = if is_signed { "1 = 1" } else { "1 = 0" };
        format!(
            "({TAXPAYER}, {id}, '{id}', 'K{id}', 'N{id}', 'B2B', '381', '2026-01-15', '{currency}', '{{}}', '[]', \
             '{status}', 'PENDING', '0', 'PENDING', '', {signed}, '', {id}, {id}, {payable}, {rest})"
        )
    }

    #[tokio::test]
    async fn each_credit_note_that_may_still_count_is_found_by_each_reference() {
        for test in stores().await {
            add_documents(&test.store).await;
            for (kind, text, is_found) in [
                (UniqueNoType::InternalInvoiceNo, "N1", true),
                (UniqueNoType::ExternalInvoiceNo, "N1", true),
                (UniqueNoType::PortalId, "1", true),
                (UniqueNoType::PortalId, "N1", false),
                (UniqueNoType::InternalInvoiceNo, "1", false),
                (UniqueNoType::Irn, "K1", true),
            ] {
                let references = [CorrectedReference::new(kind, text)];
                let reader = test.store.reader();
                let found = find_owned_by_references(reader, TAXPAYER, &references).await;
                let found = found.unwrap();
                assert_eq!(found.len(), usize::from(is_found), "{kind} {text}");
                let Some(invoice) = found.first() else {
                    continue;
                };
                assert_eq!(invoice.payable, Amount::from(90));
                let cases = (2_i64..).zip(NOTES).filter(|(_, note)| note.5);
                let expected: HashMap<_, _> = cases
                    .map(|(id, _)| (format!("N{id}"), Amount::from(id)))
                    .collect();
                assert_eq!(invoice.credits, expected, "{kind} {text}");
            }
        }
    }

    #[tokio::test]
    async fn an_invoice_with_more_credit_notes_than_are_read_is_not_found() {
        // The credit notes in force with the text of one of its references, whatever their currency and reference kind.
        let count = 7;
        let references = [CorrectedReference::new(UniqueNoType::Irn, "K1")];
        for test in stores().await {
            add_documents(&test.store).await;
            let reader = test.store.reader();
            for (max, is_found) in [(count, true), (count - 1, false)] {
                let found = find_with_credits(reader, TAXPAYER, &references, max).await;
                assert_eq!(found.unwrap().len(), usize::from(is_found), "{max}");
            }
        }
    }
}

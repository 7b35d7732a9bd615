//! The signed credit notes that a payment sets off. All of them are in memory at once, with their lines and extra
//! fields, so those of an invoice are not read if they are too many or too large.

use std::collections::{HashMap, HashSet};

use database::StoreError;
use sea_orm::sea_query::Expr;
use sea_orm::{ColumnTrait, ConnectionTrait, EntityTrait, QueryFilter, QuerySelect, Select};

use crate::domain::invoice::Invoice;
use crate::domain::kernel::ids::{InvoiceId, TaxpayerId};
use crate::store::invoices::correcting_documents::{CORRECTING_BYTES_MAX, CORRECTING_MAX};
use crate::store::invoices::invoice_row::{Column, Entity};
use crate::store::invoices::select_signed_credit_notes;

/// The size of credit notes together, in bytes.
const SIZE_SQL: &str = "CAST(SUM(octet_length(lines) + octet_length(extras)) AS BIGINT)";

/// The maximum size of the credit notes that one transaction reads, in bytes. It has room for those of a few invoices.
pub const CREDIT_NOTES_BYTES_MAX: usize = 4 * CORRECTING_BYTES_MAX;

/// The signed credit notes of some invoices.
#[derive(Debug, Default)]
pub struct SignedCreditNotes {
    /// The credit notes, oldest first.
    pub read: Vec<Invoice>,
    /// The invoices whose credit notes are too many or too large, so that they were not read.
    pub unread: Vec<InvoiceId>,
}

/// Loads all signed credit notes that refer to these invoices of a taxpayer. A credit note that is left out would not
/// be set off, so for each invoice either all of them are loaded or none: none if they are more than `CORRECTING_MAX`,
/// or together larger than `CORRECTING_BYTES_MAX`. `room` is the number of bytes that the transaction may still read.
/// Fails if they do not fit into it; each command of the transaction is then executed alone.
pub async fn find_signed(
    connection: &impl ConnectionTrait,
    taxpayer: TaxpayerId,
    invoices: &[Invoice],
    room: &mut usize,
) -> Result<SignedCreditNotes, StoreError> {
    let references: Vec<_> = invoices
        .iter()
        .flat_map(Invoice::incoming_reference_texts)
        .collect();
    if references.is_empty() {
        return Ok(SignedCreditNotes::default());
    }
    let sums: Vec<(String, i64, i64)> = select_counts_and_sizes(taxpayer, &references)
        .into_tuple()
        .all(connection)
        .await?;
    if sums.is_empty() {
        return Ok(SignedCreditNotes::default());
    }
    let sums: HashMap<_, _> = sums
        .into_iter()
        .map(|(text, count, bytes)| (text, (count, bytes)))
        .collect();
    let mut unread = Vec::new();
    let mut wanted = Vec::new();
    for invoice in invoices {
        // A set, because the number of an invoice may be the same text as its id, and a credit note must not count
        // twice.
        let own = HashSet::from(invoice.incoming_reference_texts());
        let found = own.iter().filter_map(|reference| sums.get(reference));
        let (count, bytes) = found.fold((0_i64, 0_i64), |sum, one| {
            (sum.0.saturating_add(one.0), sum.1.saturating_add(one.1))
        });
        let are_few = usize::try_from(count).is_ok_and(|count| count <= CORRECTING_MAX);
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        if are_few && bytes <= CORRECTING_BYTES_MAX {
            *room = room.checked_sub(bytes).ok_or(StoreError::NotCommitted)?;
            wanted.extend(own.into_iter().filter(|text| sums.contains_key(text)));
        } else {
            unread.push(invoice.id);
        }
    }
    if wanted.is_empty() {
        return Ok(SignedCreditNotes {
            read: Vec::new(),
            unread,
        });
    }
    let rows = select_signed_credit_notes(taxpayer, &wanted)
        .all(connection)
        .await?;
    let read = rows.into_iter().map(Invoice::try_from);
    Ok(SignedCreditNotes {
        read: read.collect::<Result<_, _>>()?,
        unread,
    })
}

/// Selects, for each of these references, the number of signed credit notes that have it, and their total size in
/// bytes.
fn select_counts_and_sizes(taxpayer: TaxpayerId, references: &[String]) -> Select<Entity> {
    Entity::find()
        .select_only()
        .column(Column::Corrects)
        .expr(Expr::cust("COUNT(*)"))
        .expr(Expr::cust(SIZE_SQL))
        .filter(Column::TaxpayerId.eq(taxpayer.0))
        .filter(Column::Corrects.is_in(references.iter().map(String::as_str)))
        .filter(Column::IsCreditNote.eq(true))
        .filter(Column::Signed.eq(true))
        .group_by(Column::Corrects)
}

#[cfg(test)]
mod tests {
    use sea_orm::QueryTrait;

    use super::*;
    use crate::domain::correction::testing::{draft, signed};
    use crate::domain::invoice::Line;
    use crate::domain::invoice::irn::Irn;
    use crate::store::testing::{query_plan, stores};

    const TAXPAYER: TaxpayerId = TaxpayerId(7);

    fn invoice(id: i64) -> Invoice {
        Invoice {
            id: InvoiceId(id),
            taxpayer_id: TAXPAYER,
            invoice_no: format!("N{id}"),
            irn: Irn::parse(&format!("N{id}-94AD90FB-20260131")).unwrap(),
            ..signed(draft(vec![Line::sample()]))
        }
    }

    /// Returns a statement that adds a credit note with this many bytes of extra fields.
    fn insert_note(id: i64, corrects: &str, bytes: usize, is_signed: bool) -> String {
        let customer = r#"{"id":1,"external_customer_no":"C1","name":"C","tin":null,"email":""}"#;
        let signed = if is_signed { "1 = 1" } else { "1 = 0" };
        let note = "x".repeat(bytes);
        format!(
            "INSERT INTO invoices (taxpayer_id, id, irn, irn_key, invoice_no, category, invoice_type, invoice_date, \
             currency, customer, lines, status, payment_status, payable, paid, authority_status, qr_code, signed, \
             extras, content_digest, created_at, updated_at, corrects, is_credit_note) VALUES ({TAXPAYER}, {id}, \
             'C{id}-94AD90FB-20260131', 'K{id}', 'C{id}', 'B2B', '380', '2026-01-31', 'NGN', '{customer}', '[]', \
             'submitted', 'PENDING', '100', '0', 'PENDING', '', {signed}, '{{\"note\":\"{note}\"}}', '', 0, 0, \
             '{corrects}', 1 = 1)"
        )
    }

    #[tokio::test]
    async fn all_signed_credit_notes_are_read_or_none_if_they_are_large() {
        let eight_mib = CORRECTING_BYTES_MAX / 2;
        let by_irn = invoice(1).irn.key();
        for test in stores().await {
            let tx = test.store.begin().await.unwrap();
            for (id, corrects, bytes, is_signed) in [
                (11, "N1", eight_mib, true),
                (12, by_irn.as_str(), eight_mib, true),
                (13, "N2", eight_mib, true),
                (14, "N2", eight_mib, false),
                (15, "N4", 1, true),
                (16, "5", eight_mib, true),
            ] {
                let statement = insert_note(id, corrects, bytes, is_signed);
                tx.execute_unprepared(&statement).await.unwrap();
            }
            tx.commit().await.unwrap();
            // The invoices, then the credit notes that are read, and the invoices whose credit notes are not.
            let cases: [(&[i64], &[i64], &[i64]); 5] = [
                (&[], &[], &[]),
                (&[3], &[], &[]),
                (&[2, 3, 4], &[13, 15], &[]),
                (&[1], &[], &[1]),
                (&[1, 2], &[13], &[1]),
            ];
            for (invoices, read, unread) in cases {
                let all: Vec<_> = invoices.iter().copied().map(invoice).collect();
                let mut room = CREDIT_NOTES_BYTES_MAX;
                let found = find_signed(test.store.reader(), TAXPAYER, &all, &mut room).await;
                let found = found.unwrap();
                let ids: Vec<_> = found.read.iter().map(|note| note.id.0).collect();
                let missing: Vec<_> = found.unread.iter().map(|id| id.0).collect();
                assert_eq!((&*ids, &*missing), (read, unread), "{invoices:?}");
            }
            // The number of this invoice is also the text of its id. Its credit note counts once.
            let named_twice = Invoice {
                invoice_no: "5".to_owned(),
                ..invoice(5)
            };
            let mut room = CREDIT_NOTES_BYTES_MAX;
            let one = std::slice::from_ref(&named_twice);
            let found = find_signed(test.store.reader(), TAXPAYER, one, &mut room).await;
            assert_eq!(found.unwrap().read.len(), 1);
            // Two invoices with credit notes of 8 MiB and a little more each.
            let two = [invoice(2), named_twice];
            for (count, mut room, is_read) in [
                (2, 2 * eight_mib + 1_024, true),
                (2, 2 * eight_mib, false),
                (1, 2 * eight_mib, true),
                (1, eight_mib, false),
                (0, 0, true),
            ] {
                let name = format!("{count} {room}");
                let invoices = &two[..count];
                let found = find_signed(test.store.reader(), TAXPAYER, invoices, &mut room).await;
                assert_eq!(found.is_ok(), is_read, "{name}");
            }
        }
    }

    #[tokio::test]
    async fn the_sizes_are_found_without_a_look_at_all_invoices() {
        // SQLite only: PostgreSQL's plan depends on the number of invoices.
        for test in stores().await.into_iter().take(1) {
            for count in [1, 3] {
                let references = vec!["K0".to_owned(); count];
                let query =
                    select_counts_and_sizes(TAXPAYER, &references).build(test.store.backend());
                let values = query.values.map(|values| values.0).unwrap_or_default();
                let plan = query_plan(&test.store, &query.sql, values).await.join("\n");
                let index = "invoices_by_taxpayer_id_corrects (taxpayer_id=? AND corrects=?)";
                assert!(plan.contains(index), "{plan}");
            }
        }
    }
}

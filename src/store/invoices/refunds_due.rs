//! The SQL of the invoices of which a part has to be paid back. It begins with the few rows through which a refund may be
//! due, in an index of their own, and so reads none of the other invoices.

use sea_orm::sea_query::{Expr, ExprTrait, Query, SelectStatement};
use sea_orm::{ColumnTrait, Condition};

use crate::domain::kernel::ids::TaxpayerId;
use crate::store::invoices::invoice_row::{Column, Entity};
use crate::store::invoices::owed_condition::refund_due_condition;
use crate::store::invoices::reference_kind::corrected_id_expression;

/// The condition of the rows through which a refund may be due: signed credit notes that are not used up, and invoices
/// that were signed over another amount than is stored. It must stay word for word that of the partial index
/// `invoices_with_refunds`.
const SOURCE_CONDITION: &str =
    "((is_credit_note AND signed AND payment_status <> 'PAID') OR signed_payable IS NOT NULL)";

/// The maximum number of these rows that `count_sql` looks at, newest first.
pub(super) const SOURCES_LOOKED_AT_MAX: i64 = 500;

/// Returns the condition of the invoices of a taxpayer of which a part has to be paid back.
pub(super) fn refund_due_filter(taxpayer: TaxpayerId) -> Condition {
    Condition::all()
        .add(Column::Id.in_subquery(select_candidate_ids(taxpayer)))
        .add(Expr::cust(refund_due_condition("invoices")))
}

/// Selects the ids of the invoices of which a refund may be due.
fn select_candidate_ids(taxpayer: TaxpayerId) -> SelectStatement {
    Query::select()
        .expr(Expr::cust(candidate_id_expression("source")))
        .from_as(Entity, "source")
        .and_where(Expr::col(("source", Column::TaxpayerId)).eq(taxpayer.0))
        .and_where(Expr::cust(SOURCE_CONDITION))
        .to_owned()
}

/// Returns the id of the invoice of which a refund may be due through a row of this table.
fn candidate_id_expression(source: &str) -> String {
    format!(
        "CASE WHEN {source}.is_credit_note THEN {} ELSE {source}.id END",
        corrected_id_expression(source)
    )
}

/// Returns the SQL expressions of the number of invoices of which a part has to be paid back, and of the number of rows
/// that were looked at. `$1` stands for the taxpayer.
pub(super) fn count_sql() -> [String; 2] {
    let sources = format!(
        "(SELECT taxpayer_id, id, is_credit_note, corrects, extras FROM invoices WHERE taxpayer_id = $1 \
         AND {SOURCE_CONDITION} ORDER BY created_at DESC, id DESC LIMIT {SOURCES_LOOKED_AT_MAX}) AS source"
    );
    let candidate_id = candidate_id_expression("source");
    let candidates = format!("SELECT {candidate_id} FROM {sources}");
    [
        format!(
            "(SELECT COUNT(*) FROM invoices WHERE taxpayer_id = $1 AND id IN ({candidates}) AND {})",
            refund_due_condition("invoices")
        ),
        format!("(SELECT COUNT(*) FROM {sources})"),
    ]
}

#[cfg(test)]
mod tests {
    use jiff::civil::Date;
    use sea_orm::ConnectionTrait;

    use super::*;
    use crate::store::Store;
    use crate::store::invoices::list_query::{IndexHint, InvoiceFilter, InvoiceList, PageStart};
    use crate::store::invoices::list_sort::InvoiceSort;
    use crate::store::invoices::work_tabs::{self, WorkTab};
    use crate::store::testing::{query_plan, stores};

    fn refunds(taxpayer: i64) -> InvoiceList {
        InvoiceList {
            taxpayer: TaxpayerId(taxpayer),
            filters: InvoiceFilter {
                refund_due: true,
                ..InvoiceFilter::default()
            },
            sort: InvoiceSort::NEWEST_FIRST,
        }
    }

    /// The paid amount and the payment status of an invoice over 100, its signed payable, the kind of reference of its
    /// credit note (empty if there is none), and the payable and the paid amount of the credit note.
    type Case<'a> = (&'a str, &'a str, &'a str, &'a str, &'a str, &'a str);

    async fn add_invoice(store: &Store, taxpayer: i64, case: Case<'_>) {
        let (paid, status, signed_payable, reference, credited, back) = case;
        let row = |id: i64, payable: &str, paid: &str, status: &str, rest: &str| {
            format!(
                "({taxpayer}, {id}, '{id}', 'K{id}', 'N{id}', 'B2B', '381', '2026-01-15', 'NGN', '{{}}', '[]', \
                 'submitted', '{status}', '{payable}', '{paid}', 'SUBMITTED', '', 1 = 1, '', {id}, {id}, {rest})"
            )
        };
        let invoice = format!("'{{}}', NULL, 1 = 0, {signed_payable}");
        let mut rows = vec![row(1, "100", paid, status, &invoice)];
        let text = match reference {
            "PORTAL_ID" => "1",
            "INTERNAL_INVOICE_NO" => "N1",
            _ => "K1",
        };
        if !reference.is_empty() {
            let extras = format!(r#"{{"original_invoice_reference_type":"{reference}"}}"#);
            let note = format!("'{extras}', '{text}', 1 = 1, NULL");
            let status = if credited == back { "PAID" } else { "PENDING" };
            rows.push(row(2, credited, back, status, &note));
        }
        let statement = format!(
            "INSERT INTO invoices (taxpayer_id, id, irn, irn_key, invoice_no, category, invoice_type, invoice_date, \
             currency, customer, lines, status, payment_status, payable, paid, authority_status, qr_code, signed, \
             content_digest, created_at, updated_at, extras, corrects, is_credit_note, signed_payable) VALUES {}",
            rows.join(", ")
        );
        let tx = store.begin().await.unwrap();
        tx.execute_unprepared(&statement).await.unwrap();
        tx.commit().await.unwrap();
    }

    #[tokio::test]
    async fn a_refund_that_is_due_is_listed_and_counted() {
        let cases = [
            (("100", "PAID", "NULL", "IRN", "30", "0"), 1),
            (("100", "PAID", "NULL", "INTERNAL_INVOICE_NO", "30", "0"), 1),
            (("100", "PAID", "NULL", "PORTAL_ID", "30", "0"), 1),
            (("100", "PAID", "NULL", "IRN", "30", "30"), 0),
            (("100", "PAID", "NULL", "IRN", "30.10", "30.09"), 1),
            (("40", "PARTIAL", "NULL", "IRN", "60", "0"), 0),
            (("40", "PARTIAL", "NULL", "IRN", "60.01", "0"), 1),
            (("0", "PENDING", "NULL", "IRN", "100", "0"), 0),
            (("100", "PAID", "'80'", "", "", ""), 1),
            (("80", "PAID", "'80'", "", "", ""), 0),
            (("100", "PAID", "NULL", "", "", ""), 0),
        ];
        for test in stores().await {
            for (taxpayer, (case, expected)) in (7..).zip(cases) {
                add_invoice(&test.store, taxpayer, case).await;
                let listed = refunds(taxpayer).count(&test.store).await;
                assert_eq!(listed.unwrap(), expected, "{case:?}");
                let today = Date::constant(2026, 3, 1);
                let counts = work_tabs::count(&test.store, TaxpayerId(taxpayer), today, 10).await;
                let counts = counts.unwrap();
                let tab = counts.iter().find(|one| one.tab == WorkTab::RefundDue);
                assert_eq!(tab.unwrap().count, expected, "{case:?}");
            }
        }
    }

    #[tokio::test]
    async fn refunds_are_found_without_a_look_at_the_other_invoices() {
        // SQLite only: PostgreSQL's plan depends on the number of invoices.
        for test in stores().await.into_iter().take(1) {
            let backend = test.store.backend();
            let list = refunds(7);
            let hint = IndexHint::hint_for_list(backend, &list, 100);
            let statement = backend.build(&list.select_page_ids(PageStart::At(0), 25, hint));
            let values = statement.values.map(|values| values.0).unwrap_or_default();
            let plan = query_plan(&test.store, &statement.sql, values).await;
            assert!(plan[0].contains("(taxpayer_id=? AND id=?)"), "{plan:?}");
            let plan = plan.join("\n");
            assert!(plan.contains("INDEX invoices_with_refunds"), "{plan}");
            assert!(!plan.contains("invoices_as_listed"), "{plan}");
            assert!(!plan.contains("SCAN"), "{plan}");
        }
    }
}

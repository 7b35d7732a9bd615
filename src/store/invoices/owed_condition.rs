//! The SQL conditions of what is owed: the unpaid part of an invoice, less its signed credit notes.

use crate::store::invoices::reference_kind::corrects_condition;

/// The condition of documents that are not fully paid. It must stay word for word that of the partial index
/// `invoices_owed`. Drafts, cancelled documents and those with a rejected payment are not owed.
pub(super) const OWED_CONDITION: &str =
    "payment_status IN ('PENDING', 'PARTIAL') AND status NOT IN ('draft', 'cancelled')";

/// An amount below the smallest unit of any currency. SQLite computes sums below 10^11 with a smaller error than this,
/// and the difference of two equal amounts without any.
const LESS_THAN_ANY_COIN: &str = "0.00005";

/// Returns the condition that somebody still owes a part of an invoice in this table, after its signed credit notes are
/// set off. If the signed document has another payable amount than the stored one, the signed amount counts.
pub(super) fn still_owed_condition(table: &str) -> String {
    let left = left_after_credits_sql(table);
    format!(
        "{table}.status NOT IN ('draft', 'cancelled') AND {table}.is_sale AND NOT {table}.is_credit_note \
         AND CAST({table}.paid AS numeric) < {} \
         AND NOT COALESCE({left} < {LESS_THAN_ANY_COIN}, 1 = 0)",
        payable_as_signed_sql(table)
    )
}

/// Returns the condition that nothing is left to pay of an invoice in this table after its signed credit notes are set
/// off, or that more was paid than is to be paid.
pub(super) fn nothing_left_condition(table: &str) -> String {
    let left = left_after_credits_sql(table);
    let left_without_credits = left_without_credits_sql(table);
    format!(
        "COALESCE({left} < {LESS_THAN_ANY_COIN}, {left_without_credits} < -{LESS_THAN_ANY_COIN})"
    )
}

/// Returns the condition that more was paid of an invoice in this table than is left of it after its signed credit
/// notes, so that a part has to be paid back.
pub(super) fn refund_due_condition(table: &str) -> String {
    let left = left_after_credits_sql(table);
    let left_without_credits = left_without_credits_sql(table);
    format!(
        "NOT {table}.is_credit_note AND COALESCE({left}, {left_without_credits}) < -{LESS_THAN_ANY_COIN}"
    )
}

/// Returns what is left to pay of an invoice in this table after its signed credit notes are set off: below zero if a
/// part has to be paid back, and null if the invoice has no such credit notes.
fn left_after_credits_sql(table: &str) -> String {
    let left = left_without_credits_sql(table);
    let credit = payable_as_signed_sql("note");
    format!(
        "(SELECT {left} - SUM({credit} - CAST(note.paid AS numeric)) FROM invoices AS note \
         WHERE note.taxpayer_id = {table}.taxpayer_id AND {} AND note.currency = {table}.currency AND {})",
        corrects_condition("note", table),
        signed_credit_condition("note")
    )
}

/// Returns what is left to pay of an invoice in this table without regard to its credit notes.
fn left_without_credits_sql(table: &str) -> String {
    let payable = payable_as_signed_sql(table);
    format!("{payable} - CAST({table}.paid AS numeric)")
}

/// Returns the payable that counts for payments of a row of this table, as `Payment::payable_as_signed` does.
fn payable_as_signed_sql(table: &str) -> String {
    format!("CAST(COALESCE({table}.signed_payable, {table}.payable) AS numeric)")
}

/// Returns the condition that a row of this table is a signed credit note. One that was cancelled here, or whose own
/// payment was rejected, is in force all the same.
pub(super) fn signed_credit_condition(table: &str) -> String {
    format!("{table}.is_credit_note AND {table}.signed")
}

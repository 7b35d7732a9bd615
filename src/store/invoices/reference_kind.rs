//! SQL conditions that link a credit note to the invoice that it corrects. The column `corrects` holds the text of the
//! reference, and `extras` holds its kind. The conditions read `extras`, which may be long, only for rows whose
//! `corrects` matches.

use crate::domain::invoice::corrected_reference::ReferencedBy;

/// Returns the condition that a row of the table `note_table` refers to its invoice by an identifier of this kind. The
/// pattern matches only the member itself: within a text in `extras`, JSON would escape the quotes.
fn reference_kind_condition(by: ReferencedBy, note_table: &str) -> String {
    let of_kind = |kind: &str| {
        format!(r#"{note_table}.extras LIKE '%"original_invoice_reference_type":"{kind}"%'"#)
    };
    // Each `_` stands for one letter of INTERNAL or EXTERNAL.
    let by_number = of_kind("__TERNAL_INVOICE_NO");
    let by_id = of_kind("PORTAL_ID");
    match by {
        ReferencedBy::Irn => format!("NOT ({by_number} OR {by_id})"),
        ReferencedBy::Number => by_number,
        ReferencedBy::PortalId => by_id,
    }
}

/// Returns the condition that a row of the table `note` corrects a row of the table `invoice`, of the same taxpayer.
pub(super) fn corrects_condition(note: &str, invoice: &str) -> String {
    format!(
        "{note}.corrects IN ({invoice}.irn_key, {invoice}.invoice_no, CAST({invoice}.id AS text)) \
         AND (({note}.corrects = {invoice}.irn_key AND {}) OR ({note}.corrects = {invoice}.invoice_no AND {}) \
         OR ({note}.corrects = CAST({invoice}.id AS text) AND {}))",
        reference_kind_condition(ReferencedBy::Irn, note),
        reference_kind_condition(ReferencedBy::Number, note),
        reference_kind_condition(ReferencedBy::PortalId, note),
    )
}

/// Returns the portal id in the reference of a row of this table; null if its text is no number. Ids have fewer digits
/// than the largest number that the databases know.
fn referenced_id_expression(table: &str) -> String {
    format!(
        "CASE WHEN length({table}.corrects) BETWEEN 1 AND 18 \
         AND ltrim({table}.corrects, '0123456789') = '' THEN CAST({table}.corrects AS bigint) END"
    )
}

/// Returns the id of the invoice that a credit note in the table `note` corrects; null if it is not stored. Each kind of
/// reference uses the index of its column.
pub(super) fn corrected_id_expression(note: &str) -> String {
    let id_of = |condition: String| {
        format!(
            "(SELECT original.id FROM invoices AS original WHERE original.taxpayer_id = {note}.taxpayer_id AND {condition})"
        )
    };
    let by_id = format!(
        "original.id = {} AND CAST(original.id AS text) = {note}.corrects",
        referenced_id_expression(note)
    );
    format!(
        "CASE WHEN {} THEN {} WHEN {} THEN {} ELSE {} END",
        reference_kind_condition(ReferencedBy::Number, note),
        id_of(format!("original.invoice_no = {note}.corrects")),
        reference_kind_condition(ReferencedBy::PortalId, note),
        id_of(by_id),
        id_of(format!("original.irn_key = {note}.corrects")),
    )
}

/// Returns the condition that a row of the table `invoices` is a credit note of an invoice of which nothing is owed and
/// nothing was paid: its payment status is REJECTED, or it was cancelled before any payment. There is one part for each
/// kind of reference, so that each uses the index of its column.
pub(super) fn credits_closed_invoice_condition() -> String {
    let by_id = format!(
        "credited.id = {} AND CAST(credited.id AS text) = invoices.corrects",
        referenced_id_expression("invoices")
    );
    let parts = [
        (ReferencedBy::Irn, "credited.irn_key = invoices.corrects"),
        (
            ReferencedBy::Number,
            "credited.invoice_no = invoices.corrects",
        ),
        (ReferencedBy::PortalId, by_id.as_str()),
    ];
    let parts = parts.map(|(by, is_referenced)| {
        format!(
            "({} AND EXISTS (SELECT 1 FROM invoices AS credited WHERE credited.taxpayer_id = invoices.taxpayer_id \
             AND {is_referenced} AND (credited.payment_status = 'REJECTED' \
             OR (credited.status = 'cancelled' AND CAST(credited.paid AS numeric) = 0))))",
            reference_kind_condition(by, "invoices")
        )
    });
    format!("(invoices.is_credit_note AND ({}))", parts.join(" OR "))
}

/// Returns the kind of the reference of a credit note in the table `invoices`: `irn`, `number` or `id`; null for any
/// other row, whose `extras` are not read.
pub(super) fn reference_kind_expression() -> String {
    format!(
        "CASE WHEN NOT is_credit_note OR corrects IS NULL THEN NULL WHEN {} THEN 'number' WHEN {} THEN 'id' ELSE 'irn' END",
        reference_kind_condition(ReferencedBy::Number, "invoices"),
        reference_kind_condition(ReferencedBy::PortalId, "invoices"),
    )
}

/// Reads a result of `reference_kind_expression`.
pub(super) fn parse_reference_kind(text: &str) -> ReferencedBy {
    match text {
        "number" => ReferencedBy::Number,
        "id" => ReferencedBy::PortalId,
        _ => ReferencedBy::Irn,
    }
}

//! The warnings about a new invoice that its form cannot give, because they depend on more than the form: on the stored
//! invoices, on the present day, on the letters that the printed document can show, or on the amounts of the lines.

use crate::domain::correction::credited_invoice::CreditedInvoice;
use crate::domain::invoice::invoice_ref::InvoiceRef;
use crate::domain::invoice::irn::Irn;
use crate::domain::invoice::line_terms::LineTerms;
use crate::domain::invoice::{Draft, Line};
use crate::domain::kernel::ids::TaxpayerId;
use crate::domain::money::Amount;
use crate::http::extract::path_ids;
use crate::http::forms::document_header;
use crate::http::forms::standard_invoice::StandardInvoiceForm;
use crate::http::paper_texts;
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;
use crate::store::invoices::{self, credited_invoices};

/// The maximum number of lines that the warning about discounts names.
const LINES_NAMED_MAX: usize = 10;

/// Returns the warnings about a request to Create Invoice (Standard) that parsing its form could not give, such as
/// those that need stored invoices.
pub(crate) async fn find_draft_warnings(
    state: &ApiState,
    taxpayer: TaxpayerId,
    form: &StandardInvoiceForm,
) -> Result<Vec<String>, ApiError> {
    let unknown_original = match &form.original {
        Some(original) => unknown_original_warning(state, taxpayer, original).await?,
        None => None,
    };
    let issued = form.draft.invoice_date;
    let future = document_header::future_date_warning("invoice_date", issued, state.latest_day());
    let unprintable = paper_texts::unprintable_draft_warning(&form.draft);
    let large_discount = large_discount_warning(&form.draft.lines);
    let excess = find_excess_warnings(state, taxpayer, &[&form.draft]).await?;
    let warnings = [unknown_original, future, unprintable, large_discount];
    Ok(warnings.into_iter().chain(excess).flatten().collect())
}

/// Returns, for each draft, a warning if it is a credit note over more than the other credit notes of its invoice leave.
/// Those that are not signed yet count, too, and those before it in the list.
pub(crate) async fn find_excess_warnings(
    state: &ApiState,
    taxpayer: TaxpayerId,
    drafts: &[&Draft],
) -> Result<Vec<Option<String>>, ApiError> {
    let notes = drafts.iter().filter(|draft| draft.is_credit_note());
    let references: Vec<_> = notes
        .filter_map(|draft| draft.corrected_reference())
        .collect();
    if references.is_empty() {
        return Ok(vec![None; drafts.len()]);
    }
    let reader = state.store.reader();
    let mut invoices =
        credited_invoices::find_owned_by_references(reader, taxpayer, &references).await?;
    let catalog = state.catalog.get();
    let warnings = drafts.iter().map(|draft| {
        let invoice = find_credited(&mut invoices, draft)?;
        invoice.add_credit_note(draft, catalog.currency_digits(&draft.currency))
    });
    Ok(warnings.collect())
}

/// Returns the invoice that a draft credits; `None` if the draft is no credit note, or if its invoice is not stored.
fn find_credited<'a>(
    invoices: &'a mut [CreditedInvoice],
    draft: &Draft,
) -> Option<&'a mut CreditedInvoice> {
    if !draft.is_credit_note() {
        return None;
    }
    let reference = draft.corrected_reference()?;
    let mut invoices = invoices.iter_mut();
    invoices.find(|invoice| invoice.references.contains(&reference))
}

/// Returns a warning if the invoice that a credit note refers to is not stored. This is no error, because the invoice
/// may be older than this service.
async fn unknown_original_warning(
    state: &ApiState,
    taxpayer: TaxpayerId,
    original: &InvoiceRef,
) -> Result<Option<String>, ApiError> {
    let is_irn = Irn::parse(&original.text).is_ok();
    let stored_original = match path_ids::check_invoice_ref(original.clone()) {
        Ok(InvoiceRef { kind, text }) => {
            invoices::find_owned_by_unique_no(&state.store, taxpayer, kind, &text).await?
        }
        Err(_) => None,
    };
    let advice = if is_irn {
        ""
    } else {
        ": it can be submitted by its IRN alone only if the reference is an IRN"
    };
    Ok(stored_original
        .is_none()
        .then(|| format!("original_invoice_reference names no invoice of this account{advice}")))
}

/// Returns a warning if a discount is larger than its line. This is no error: the line then comes to zero.
fn large_discount_warning(lines: &[Line]) -> Option<String> {
    let negative = (1_usize..).zip(lines).filter(|(_, line)| {
        let net = LineTerms::from(*line).net_without_minimum();
        net.is_some_and(Amount::is_negative)
    });
    let numbers: Vec<_> = negative
        .take(LINES_NAMED_MAX)
        .map(|(number, _)| number.to_string())
        .collect();
    let are_any = !numbers.is_empty();
    are_any.then(|| {
        format!(
            "the discount is larger than the line, which therefore comes to 0: line {}",
            numbers.join(", ")
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_discount_that_is_larger_than_its_line_is_told() {
        let told = "the discount is larger than the line, which therefore comes to 0: line ";
        for (discounts, numbers) in [
            (vec!["0", "99.99", "100"], None),
            (vec!["100.01"], Some("1")),
            (vec!["5000", "1", "101"], Some("1, 3")),
            (vec!["500"; 12], Some("1, 2, 3, 4, 5, 6, 7, 8, 9, 10")),
        ] {
            let lines = discounts.iter().map(|discount| Line {
                discount_amount: Amount::parse(discount).ok(),
                ..Line::sample()
            });
            let lines: Vec<_> = lines.collect();
            let expected = numbers.map(|numbers| format!("{told}{numbers}"));
            assert_eq!(large_discount_warning(&lines), expected, "{discounts:?}");
        }
    }
}

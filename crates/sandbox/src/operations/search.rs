//! Finds the invoices of a business, and the invoices in transit.
//!
//! As at the authority, an invalid page number or page size is replaced by its default.

use std::collections::HashMap;

use jiff::{Timestamp, civil::Date};
use serde_json::{Value, json};

use super::answer::OperationResult;
use crate::call::Call;
use crate::clock;
use crate::records::Invoice;
use crate::reply::Refusal;
use crate::route::Subject;
use crate::state::State;

const SIZE_DEFAULT: usize = 20;
const SIZE_MAX: usize = 100;

/// Returns one page of the invoices of a business as `{ items, page }`, the last signed invoice first.
pub(super) fn search(call: &Call, state: &State) -> OperationResult {
    let Subject::Business(business) = &call.subject else {
        return Err(Refusal::unknown_route());
    };
    let business = business.to_lowercase();
    let ledger = state.ledger.lock();
    let found: Vec<&Invoice> = ledger
        .oldest_first()
        .rev()
        .filter(|invoice| invoice.business_id == business && is_match(invoice, &call.query))
        .collect();
    let page = query_number(&call.query, "page", 1);
    let size = query_number(&call.query, "size", SIZE_DEFAULT).min(SIZE_MAX);
    let skipped = page.saturating_sub(1).saturating_mul(size);
    let items: Vec<Value> = found
        .iter()
        .skip(skipped)
        .take(size)
        .map(|invoice| invoice.summary(state.settings.utc_offset))
        .collect();
    let page = json!({
        "page": page,
        "size": size,
        "total_count": found.len(),
        "has_next_page": found.len() > skipped.saturating_add(size),
        "has_previous_page": page > 1,
    });
    Ok(json!({ "items": items, "page": page }))
}

fn is_match(invoice: &Invoice, query: &HashMap<String, String>) -> bool {
    let is = |name: &str, value: &str| {
        query
            .get(name)
            .is_none_or(|wanted| wanted.eq_ignore_ascii_case(value))
    };
    is("irn", &invoice.irn)
        && is("payment_status", invoice.payment.name())
        && is("entry_status", invoice.transit.name())
        && is("invoice_type_code", &invoice.type_code)
}

fn query_number(query: &HashMap<String, String>, name: &str, default: usize) -> usize {
    query
        .get(name)
        .and_then(|text| text.parse().ok())
        .filter(|number| *number > 0)
        .unwrap_or(default)
}

/// Returns transmitted invoices in order of signature: the acknowledged ones with `confirmed=true`, otherwise those
/// that are not yet acknowledged. `from` and `to` limit the time of signature.
pub(super) fn pull(call: &Call, state: &State) -> OperationResult {
    let confirmed = call
        .query
        .get("confirmed")
        .is_some_and(|text| text == "true");
    let from = parse_bound(call, state, "from")?;
    let to = parse_bound(call, state, "to")?;
    let ledger = state.ledger.lock();
    let rows: Vec<Value> = ledger
        .oldest_first()
        .filter(|invoice| invoice.is_transmitted() && invoice.is_delivered() == confirmed)
        .filter(|invoice| {
            from.is_none_or(|(from, _)| from <= invoice.signed_at)
                && to.is_none_or(|(_, to)| invoice.signed_at < to)
        })
        .map(transit_row)
        .collect();
    Ok(json!(rows))
}

fn transit_row(invoice: &Invoice) -> Value {
    json!({
        "irn": invoice.irn,
        "message": if invoice.is_delivered() { "ACKNOWLEDGED" } else { "TRANSMITTING" },
        "supplier_tin": invoice.supplier_tin,
        "customer_tin": invoice.customer_tin,
    })
}

/// Parses a day or an RFC 3339 time as a time range. A time becomes a range that starts and ends at this time.
fn parse_bound(
    call: &Call,
    state: &State,
    name: &str,
) -> Result<Option<(Timestamp, Timestamp)>, Refusal> {
    let Some(text) = call.query.get(name) else {
        return Ok(None);
    };
    let moment = text.parse::<Timestamp>().ok().map(|at| (at, at));
    let span = moment.or_else(|| {
        let day: Date = text.parse().ok()?;
        clock::day_span(day, state.settings.utc_offset)
    });
    span.map(Some)
        .ok_or_else(|| Refusal::field(name, "must be a date"))
}

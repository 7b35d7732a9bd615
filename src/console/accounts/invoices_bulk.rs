//! Approves, submits or cancels many invoices of the list at once, or takes them back to draft. An accountant ticks
//! rows, or selects all that match the filter. The next page shows how many and which invoices these are. Its form has
//! the id of each, so that no other invoice is affected, and the time of its last change, so that an invoice that was
//! changed since is left out. The last page shows the outcome of each. Each invoice is a command of its own, as if its
//! own button had been pressed, so a failure does not undo the others.

use std::collections::HashMap;

use actix_web::http::StatusCode;
use actix_web::web;
use askama::Template;
use futures_util::stream::{self, StreamExt as _};
use jiff::Timestamp;

use crate::console::accounts::bulk_action::{
    ActionOutcome, ConfirmedAction, apply_bulk_action, error_text,
};
use crate::console::accounts::bulk_selection::{BulkAction, InvoiceSelection, ticked_rows};
use crate::console::accounts::invoice_sums::{CurrencySum, amount_in_total, currency_sums};
use crate::console::accounts::invoices::COUNTED_MAX;
use crate::console::accounts::lifecycle::Lifecycle;
use crate::console::accounts::navigation::base_path;
use crate::console::accounts::profile::load_taxpayer;
use crate::console::accounts::seen_invoice::{id_with_seen_time, parse_id_with_seen_time};
use crate::console::badges::{Badge, badge};
use crate::console::filters;
use crate::console::form_values::{FormState, FormValues};
use crate::console::frame::Frame;
use crate::console::page::{Answer, Form, redirect, show, show_with_status};
use crate::console::session::accounts::{AccountSession, Accountant};
use crate::domain::invoice::Invoice;
use crate::domain::kernel::ids::InvoiceId;
use crate::domain::money::Amount;
use crate::domain::reference::catalog::Catalog;
use crate::http::forms::query::Query;
use crate::http::invoice_page::{PAGE_INVOICES, reserve_page_memory};
use crate::http::limits::AnswerHolder;
use crate::http::paths::{Path, path};
use crate::http::respond::code::ErrorCode;
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;
use crate::store::invoices::list::{DocumentAmounts, PageBounds, PageFields, PageStart};

/// The maximum number of invoices to which an action is applied at once. For more, a person repeats the action.
const INVOICES_MAX: u64 = 1_000;
/// The maximum number of invoices that a page lists.
const SHOWN_MAX: usize = 100;
/// The number of invoices that are changed concurrently.
const CONCURRENCY: usize = 16;

pub(super) fn paths() -> Vec<Path> {
    vec![
        path("/dashboard/{taxpayer}/invoices/bulk")
            .page(preview_action)
            .form(apply_to_shown_invoices),
    ]
}

/// The invoices of a selection.
#[derive(Default)]
struct SelectedInvoices {
    /// The ids of the invoices to which the action can be applied, each with the time of its last change.
    ids: Vec<String>,
    /// The first `SHOWN_MAX` of these invoices.
    lines: Vec<PreviewLine>,
    /// The amounts of all these invoices.
    amounts: Vec<DocumentAmounts>,
    /// The reasons why the action cannot be applied to the other invoices, each with the number of those invoices.
    obstacles: Vec<(&'static str, usize)>,
    /// The number of invoices beyond the first `INVOICES_MAX` that match, too.
    beyond_max: u64,
    /// True if even more may match, because counting stopped at `COUNTED_MAX`.
    has_uncounted: bool,
}

impl SelectedInvoices {
    /// Adds an invoice to those to which the action can be applied, or counts the reason why it cannot be applied.
    fn add(&mut self, action: BulkAction, invoice: Invoice, catalog: &Catalog) {
        if let Some(reason) = action.obstacle(&invoice) {
            match self
                .obstacles
                .iter_mut()
                .find(|(known, _)| *known == reason)
            {
                Some((_, count)) => *count += 1,
                None => self.obstacles.push((reason, 1)),
            }
            return;
        }
        self.ids.push(id_with_seen_time(&invoice));
        self.amounts.push(DocumentAmounts {
            currency: invoice.currency.clone(),
            payable: invoice.payment.payable,
            paid: invoice.payment.paid,
            is_credit_note: invoice.is_credit_note(),
        });
        if self.lines.len() < SHOWN_MAX {
            self.lines.push(PreviewLine::new(invoice, catalog));
        }
    }
}

/// Loads the invoices page by page, because a thousand whole invoices could take any amount of memory.
async fn find_selected_invoices(
    state: &ApiState,
    session: &AccountSession,
    action: BulkAction,
    values: &FormValues,
) -> Result<SelectedInvoices, ApiError> {
    let mut list =
        InvoiceSelection::from_form(values)?.into_invoice_list(state, session.taxpayer)?;
    // Without these filters, invoices to which the action cannot be applied would fill the limit.
    if list.filters.ids.is_none() {
        let filters = &mut list.filters;
        if filters.statuses.is_empty() {
            filters.statuses = action.required_statuses().to_vec();
        }
        if filters.authority_statuses.is_empty() {
            filters.authority_statuses = action.required_authority_statuses().to_vec();
        }
    }
    let total = list.count_up_to(&state.store, COUNTED_MAX + 1).await?;
    let mut found = SelectedInvoices {
        beyond_max: total.min(COUNTED_MAX).saturating_sub(INVOICES_MAX),
        has_uncounted: total > COUNTED_MAX,
        ..SelectedInvoices::default()
    };
    let catalog = state.catalog.get();
    let _reservation =
        reserve_page_memory(state, AnswerHolder::for_taxpayer(session.taxpayer, None)).await?;
    let mut start = PageStart::At(0);
    for _ in 0..INVOICES_MAX / PAGE_INVOICES {
        let part = PageBounds {
            start,
            limit: PAGE_INVOICES,
        };
        let page = list
            .page_with_known_total(&state.store, part, total, PageFields::Shown)
            .await?;
        for invoice in page.invoices {
            found.add(action, invoice, &catalog);
        }
        let Some(next) = page.next else {
            break;
        };
        start = PageStart::After(next);
    }
    Ok(found)
}

#[derive(Template)]
#[template(path = "accounts/invoices_bulk.html")]
struct PreviewPage {
    frame: Frame,
    base: String,
    action: BulkAction,
    /// Says what will happen to each invoice.
    effect: &'static str,
    count: usize,
    /// The word for this number of documents.
    noun: &'static str,
    /// The totals of the invoices, minus the credit notes, by currency.
    sums: Vec<CurrencySum>,
    /// The number of invoices for which a payment is recorded.
    paid_count: usize,
    beyond_max: u64,
    has_uncounted: bool,
    obstacles: Vec<(&'static str, usize)>,
    lines: Vec<PreviewLine>,
    hidden_fields: Vec<(&'static str, String)>,
    /// The remark, and its faults.
    form: FormState,
    list_address: String,
}

struct PreviewLine {
    id: InvoiceId,
    number: String,
    customer: String,
    is_credit_note: bool,
    currency: String,
    /// Below zero for a credit note, as in the total.
    payable: Amount,
    badge: Badge,
}

impl PreviewLine {
    fn new(invoice: Invoice, catalog: &Catalog) -> Self {
        let is_credit_note = invoice.is_credit_note();
        let payable = amount_in_total(invoice.payment.payable, is_credit_note);
        Self {
            badge: Lifecycle::from(&invoice).into(),
            is_credit_note,
            payable: payable.with_digits(catalog.currency_digits(&invoice.currency)),
            id: invoice.id,
            number: invoice.invoice_no,
            customer: invoice.customer.name,
            currency: invoice.currency,
        }
    }
}

/// Shows the effect of an action, and changes nothing.
async fn preview_action(
    state: web::Data<ApiState>,
    Accountant(session): Accountant,
    query: Query,
) -> Answer {
    let values = FormValues::from(&query);
    let Some(action) = BulkAction::parse(values.text("act")) else {
        return Ok(redirect(&format!("{}/invoices", base_path(&session))));
    };
    show_preview(&state, &session, action, FormState::new(values)).await
}

async fn show_preview(
    state: &ApiState,
    session: &AccountSession,
    action: BulkAction,
    form: FormState,
) -> Answer {
    let values = form.values();
    let base = base_path(session);
    let found = find_selected_invoices(state, session, action, values).await?;
    let settings = load_taxpayer(state, session).await?.settings;
    let count = found.ids.len();
    let mut hidden_fields = vec![
        ("act", action.as_str().to_owned()),
        ("filter", values.text("filter").to_owned()),
    ];
    hidden_fields.extend(found.ids.into_iter().map(|id| ("id", id)));
    let amounts = found.amounts.iter();
    let status = if form.is_refused() {
        StatusCode::UNPROCESSABLE_ENTITY
    } else {
        StatusCode::OK
    };
    let page = PreviewPage {
        frame: Frame::for_account(session, action.label()).with_section("Invoices"),
        list_address: list_address(&base, values),
        base,
        effect: action.effect_sentence(settings.submit_after_approval),
        action,
        count,
        noun: document_noun(&found.amounts),
        sums: currency_sums(&found.amounts, &state.catalog.get()),
        paid_count: amounts.filter(|amounts| !amounts.paid.is_zero()).count(),
        beyond_max: found.beyond_max,
        has_uncounted: found.has_uncounted,
        obstacles: found.obstacles,
        lines: found.lines,
        hidden_fields,
        form,
    };
    show_with_status(status, &page)
}

/// Returns the word for these documents: invoices, unless credit notes are among them.
fn document_noun(documents: &[DocumentAmounts]) -> &'static str {
    let has_credit_notes = documents.iter().any(|document| document.is_credit_note);
    match (has_credit_notes, documents.len()) {
        (true, 1) => "credit note",
        (true, _) => "documents",
        (false, 1) => "invoice",
        (false, _) => "invoices",
    }
}

fn list_address(base: &str, values: &FormValues) -> String {
    match values.text("filter") {
        "" => format!("{base}/invoices"),
        filter => format!("{base}/invoices?{filter}"),
    }
}

#[derive(Template)]
#[template(path = "accounts/invoices_bulk_result.html")]
struct ResultPage {
    frame: Frame,
    base: String,
    action: BulkAction,
    done_count: usize,
    /// The number of invoices for which the action failed or that were left out.
    not_done_count: usize,
    lines: Vec<ResultLine>,
    unlisted: usize,
    list_address: String,
}

struct ResultLine {
    id: InvoiceId,
    number: String,
    outcome: ActionOutcome,
}

/// Applies the action to the invoices that the preview showed. A remark that breaks its rule shows the preview again.
async fn apply_to_shown_invoices(
    state: web::Data<ApiState>,
    Accountant(session): Accountant,
    form: Form<FormValues>,
) -> Answer {
    let values = form.0;
    let action = BulkAction::parse(values.text("act")).ok_or_else(ApiError::route_not_found)?;
    let selected_ids = ticked_rows(&values, parse_id_with_seen_time)?;
    let count = u64::try_from(selected_ids.len()).unwrap_or(u64::MAX);
    if count > INVOICES_MAX {
        let message = format!("At most {INVOICES_MAX} invoices can be changed at once.");
        return Err(ApiError::new(ErrorCode::ValidationFailed, message));
    }
    let confirmed = match ConfirmedAction::read(action, &values, &state.catalog.get()) {
        Ok(confirmed) => confirmed,
        Err(faults) => {
            let form = FormState::with_faults(values, faults);
            return show_preview(&state, &session, action, form).await;
        }
    };
    let reservation =
        reserve_page_memory(&state, AnswerHolder::for_taxpayer(session.taxpayer, None)).await?;
    let mut lines = Vec::new();
    for part in selected_ids.chunks(usize::try_from(PAGE_INVOICES).unwrap_or(usize::MAX)) {
        match apply_to_invoices(&state, &session, &confirmed, part).await {
            Ok(outcomes) => lines.extend(outcomes),
            Err(error) if lines.is_empty() => return Err(error),
            // This part of the invoices failed as a whole. Each of them gets a failed line instead of an error page,
            // so that the outcomes of the earlier parts are shown, too.
            Err(error) => lines.extend(part.iter().map(|(id, _)| ResultLine {
                id: *id,
                number: id.to_string(),
                outcome: ActionOutcome::not_done(badge("bad", "Failed"), error_text(&error)),
            })),
        }
    }
    drop(reservation);
    let not_done_count = lines.iter().filter(|line| !line.outcome.is_done).count();
    let total = lines.len();
    lines.sort_by_key(|line| line.outcome.is_done);
    lines.truncate(SHOWN_MAX);
    let base = base_path(&session);
    show(&ResultPage {
        frame: Frame::for_account(&session, action.label()).with_section("Invoices"),
        list_address: list_address(&base, &values),
        base,
        action,
        done_count: total - not_done_count,
        not_done_count,
        unlisted: total - lines.len(),
        lines,
    })
}

/// Applies the action to some of the invoices that the preview showed.
async fn apply_to_invoices(
    state: &ApiState,
    session: &AccountSession,
    confirmed: &ConfirmedAction,
    part: &[(InvoiceId, Option<Timestamp>)],
) -> Result<Vec<ResultLine>, ApiError> {
    let ids = part.iter().map(|(id, _)| *id).collect();
    let list = InvoiceSelection::Ticked(ids).into_invoice_list(state, session.taxpayer)?;
    let seen: HashMap<_, _> = part.iter().copied().collect();
    let total = u64::try_from(part.len()).unwrap_or(u64::MAX);
    let whole = PageBounds {
        start: PageStart::At(0),
        limit: PAGE_INVOICES,
    };
    let page = list
        .page_with_known_total(&state.store, whole, total, PageFields::Shown)
        .await?;
    let work = page.invoices.into_iter().map(|invoice| {
        let seen_at = seen.get(&invoice.id).copied().flatten();
        async move {
            ResultLine {
                outcome: apply_bulk_action(state, session, confirmed, &invoice, seen_at).await,
                id: invoice.id,
                number: invoice.invoice_no,
            }
        }
    });
    Ok(stream::iter(work).buffered(CONCURRENCY).collect().await)
}

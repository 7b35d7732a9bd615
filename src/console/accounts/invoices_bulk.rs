//! Approves or submits many invoices of the list at once. An accountant ticks rows, or selects all that match the
//! filter. The next page shows how many and which invoices these are. Its form has the id of each, so that no other
//! invoice is affected. The last page shows the outcome of each. Each invoice is a command of its own, like pressing
//! its own button, so a failure does not undo the others.

use actix_web::web;
use askama::Template;
use futures_util::stream::{self, StreamExt as _};

use crate::actors::taxpayer::commands::{IfUnchanged, OpenAuditedRun, SetStatus};
use crate::console::accounts::bulk_selection::{BulkAct, InvoiceSelection, ticked_ids};
use crate::console::accounts::invoice_submission::prepare_submission;
use crate::console::accounts::invoices::COUNTED_MAX;
use crate::console::accounts::lifecycle::Lifecycle;
use crate::console::accounts::navigation::base;
use crate::console::accounts::profile::load_taxpayer;
use crate::console::badges::{Badge, badge};
use crate::console::filters;
use crate::console::form_values::FormValues;
use crate::console::frame::Frame;
use crate::console::page::{Answer, Form, redirect, show};
use crate::console::session::accounts::{AccountSession, Accountant};
use crate::domain::invoice::Invoice;
use crate::domain::invoice::invoice_ref::InvoiceRef;
use crate::domain::kernel::codes::{SettableStatus, UniqueNoType};
use crate::domain::kernel::ids::InvoiceId;
use crate::domain::money::Amount;
use crate::http::approval;
use crate::http::endpoint::{Path, path};
use crate::http::forms::query::Query;
use crate::http::respond::code::ErrorCode;
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;
use crate::store::invoices::list::{Fields, PagePart, PageStart};

/// The maximum number of invoices of one act. For more, a person repeats the act.
const INVOICES_MAX: u64 = 1_000;
/// The maximum number of invoices that a page lists.
const SHOWN_MAX: usize = 100;
/// The number of invoices that are changed concurrently.
const AT_A_TIME: usize = 16;
/// The remark that is stored with the new status of each invoice.
const REMARK: &str = "Set in the dashboard, with others";

pub(super) fn endpoints() -> Vec<Path> {
    vec![
        path("/dashboard/{taxpayer}/invoices/bulk")
            .page(preview)
            .form(perform_act),
    ]
}

/// The invoices of a selection.
struct SelectedInvoices {
    /// The invoices with which the act can be done.
    invoices: Vec<Invoice>,
    /// The reasons why the act cannot be done with the other invoices, each with their number.
    obstacles: Vec<(&'static str, usize)>,
    /// The number of invoices beyond the first `INVOICES_MAX` that match, too.
    others: u64,
    /// True if even more may match, because counting stopped at `COUNTED_MAX`.
    is_more: bool,
}

async fn find_selected_invoices(
    state: &ApiState,
    session: &AccountSession,
    act: BulkAct,
    values: &FormValues,
) -> Result<SelectedInvoices, ApiError> {
    let mut list = InvoiceSelection::read(values)?.into_list(state, session.taxpayer)?;
    // Without this filter, invoices with which the act cannot be done would fill the limit.
    if list.filters.ids.is_none() && list.filters.status.is_none() {
        list.filters.status = Some(act.required_status());
    }
    let total = list.count_up_to(&state.store, COUNTED_MAX + 1).await?;
    let part = PagePart {
        start: PageStart::At(0),
        limit: INVOICES_MAX,
    };
    let page = list
        .counted_page(&state.store, part, total, Fields::Shown)
        .await?;
    let mut obstacles: Vec<(&'static str, usize)> = Vec::new();
    let mut invoices = Vec::new();
    for invoice in page.invoices {
        match act.obstacle(&invoice) {
            None => invoices.push(invoice),
            Some(reason) => match obstacles.iter_mut().find(|(known, _)| *known == reason) {
                Some((_, count)) => *count += 1,
                None => obstacles.push((reason, 1)),
            },
        }
    }
    Ok(SelectedInvoices {
        invoices,
        obstacles,
        others: total.min(COUNTED_MAX).saturating_sub(INVOICES_MAX),
        is_more: total > COUNTED_MAX,
    })
}

#[derive(Template)]
#[template(path = "accounts/invoices_bulk.html")]
struct PreviewPage {
    frame: Frame,
    base: String,
    act: BulkAct,
    /// Says what will happen to each invoice.
    effect: &'static str,
    count: usize,
    others: u64,
    is_more: bool,
    obstacles: Vec<(&'static str, usize)>,
    lines: Vec<PreviewLine>,
    fields: Vec<(&'static str, String)>,
    list_address: String,
}

struct PreviewLine {
    id: InvoiceId,
    number: String,
    customer: String,
    currency: String,
    payable: Amount,
    badge: Badge,
}

/// Shows what an act would do, and changes nothing.
async fn preview(
    state: web::Data<ApiState>,
    Accountant(session): Accountant,
    query: Query,
) -> Answer {
    let values = FormValues::from(&query);
    let base = base(&session);
    let Some(act) = BulkAct::parse(values.text("act")) else {
        return Ok(redirect(&format!("{base}/invoices")));
    };
    let found = find_selected_invoices(&state, &session, act, &values).await?;
    let settings = load_taxpayer(&state, &session).await?.settings;
    let count = found.invoices.len();
    let ids = found.invoices.iter().map(|invoice| invoice.id);
    let mut fields = vec![
        ("act", act.as_str().to_owned()),
        ("filter", values.text("filter").to_owned()),
    ];
    fields.extend(ids.map(|id| ("id", id.to_string())));
    let catalog = state.catalog.get();
    let line = |invoice: Invoice| PreviewLine {
        badge: Lifecycle::from(&invoice).into(),
        payable: invoice
            .payment
            .payable
            .with_digits(catalog.currency_digits(&invoice.currency)),
        id: invoice.id,
        number: invoice.invoice_no,
        customer: invoice.customer.name,
        currency: invoice.currency,
    };
    show(&PreviewPage {
        frame: Frame::for_account(&session, act.label()).with_section("Invoices"),
        list_address: list_address(&base, &values),
        base,
        effect: act.effect(settings.submit_after_approval),
        act,
        count,
        others: found.others,
        is_more: found.is_more,
        obstacles: found.obstacles,
        lines: found
            .invoices
            .into_iter()
            .take(SHOWN_MAX)
            .map(line)
            .collect(),
        fields,
    })
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
    act: BulkAct,
    done: usize,
    failed: usize,
    lines: Vec<ResultLine>,
    hidden: usize,
    list_address: String,
}

struct ResultLine {
    id: InvoiceId,
    number: String,
    outcome: ActOutcome,
}

/// The outcome of an act for one of many things.
pub(super) struct ActOutcome {
    pub(super) is_done: bool,
    pub(super) badge: Badge,
    /// A message about the outcome, or the reason why nothing was done.
    pub(super) text: String,
}

impl ActOutcome {
    pub(super) fn success(text: String) -> Self {
        Self {
            is_done: true,
            badge: badge("ok", "Done"),
            text,
        }
    }

    pub(super) fn not_done(badge: Badge, text: String) -> Self {
        Self {
            is_done: false,
            badge,
            text,
        }
    }
}

/// Does the act with the invoices that the preview showed.
async fn perform_act(
    state: web::Data<ApiState>,
    Accountant(session): Accountant,
    form: Form<FormValues>,
) -> Answer {
    let values = form.0;
    let act = BulkAct::parse(values.text("act")).ok_or_else(ApiError::route_not_found)?;
    let ids = ticked_ids(&values)?;
    let count = u64::try_from(ids.len()).unwrap_or(u64::MAX);
    if count > INVOICES_MAX {
        let message = format!("At most {INVOICES_MAX} invoices can be changed at once.");
        return Err(ApiError::new(ErrorCode::ValidationFailed, message));
    }
    let list = InvoiceSelection::Ticked(ids).into_list(&state, session.taxpayer)?;
    let part = PagePart {
        start: PageStart::At(0),
        limit: count,
    };
    let page = list
        .counted_page(&state.store, part, count, Fields::Shown)
        .await?;
    let work = page.invoices.into_iter().map(|invoice| {
        let (state, session) = (&state, &session);
        async move {
            ResultLine {
                outcome: apply_act(state, session, act, &invoice).await,
                id: invoice.id,
                number: invoice.invoice_no,
            }
        }
    });
    let mut lines: Vec<_> = stream::iter(work).buffered(AT_A_TIME).collect().await;
    let failed = lines.iter().filter(|line| !line.outcome.is_done).count();
    let all = lines.len();
    lines.sort_by_key(|line| line.outcome.is_done);
    lines.truncate(SHOWN_MAX);
    let base = base(&session);
    show(&ResultPage {
        frame: Frame::for_account(&session, act.label()).with_section("Invoices"),
        list_address: list_address(&base, &values),
        base,
        act,
        done: all - failed,
        failed,
        hidden: all - lines.len(),
        lines,
    })
}

/// Does the act with one invoice, unless the invoice was changed so that the act cannot be done any more.
async fn apply_act(
    state: &ApiState,
    session: &AccountSession,
    act: BulkAct,
    invoice: &Invoice,
) -> ActOutcome {
    if let Some(reason) = act.obstacle(invoice) {
        let text = format!("It has changed meanwhile: {reason}.");
        return ActOutcome::not_done(badge("warn", "Left out"), text);
    }
    let mut approved = None;
    if act.approves() {
        match approve(state, session, invoice).await {
            Ok(text) if act == BulkAct::Approve => return ActOutcome::success(text),
            Ok(text) => approved = Some(text),
            Err(error) => return ActOutcome::not_done(badge("bad", "Failed"), error_text(&error)),
        }
    }
    match (submit(state, session, invoice).await, approved) {
        (Ok(()), None) => ActOutcome::success("Sent to the authority.".to_owned()),
        (Ok(()), Some(text)) => ActOutcome::success(format!("{text} Sent to the authority.")),
        (Err(error), None) => ActOutcome::not_done(badge("bad", "Failed"), error_text(&error)),
        (Err(error), Some(_)) => {
            let text = format!("Approved, but not submitted. {}", error_text(&error));
            ActOutcome::not_done(badge("warn", "Approved only"), text)
        }
    }
}

/// Approves an invoice. Returns warnings for the approver.
async fn approve(
    state: &ApiState,
    session: &AccountSession,
    invoice: &Invoice,
) -> Result<String, ApiError> {
    let which = InvoiceRef {
        kind: UniqueNoType::PortalId,
        text: invoice.id.to_string(),
    };
    let status = SettableStatus::Approved;
    let approval = approval::prepare_approval(state, session.taxpayer, &which, status).await?;
    let done = if approval.submission.is_some() {
        "Approved. The account submits what is approved."
    } else {
        "Approved."
    };
    let notes = approval.warnings.iter();
    let notes: Vec<_> = notes.map(|warning| format!(" Note: {warning}.")).collect();
    let text = format!("{done}{}", notes.concat());
    let command = SetStatus {
        invoice: which,
        status,
        remark: REMARK.to_owned(),
        submission: approval.submission,
    };
    state.taxpayers.send(session.taxpayer, command).await?;
    Ok(text)
}

async fn submit(
    state: &ApiState,
    session: &AccountSession,
    invoice: &Invoice,
) -> Result<(), ApiError> {
    let IfUnchanged { seen, command } = prepare_submission(state, session, invoice).await?;
    let command = IfUnchanged {
        seen,
        command: OpenAuditedRun(command),
    };
    state.taxpayers.send(session.taxpayer, command).await?;
    Ok(())
}

/// Returns the message of an error followed by its faults. Without the message if it only summarises the faults.
pub(super) fn error_text(error: &ApiError) -> String {
    let summary = error.faults.summary();
    let message = Some(error.message.to_string());
    let message = message.filter(|message| error.faults.is_empty() || *message != summary);
    let faults = error.faults.iter().map(ToString::to_string);
    message
        .into_iter()
        .chain(faults)
        .collect::<Vec<_>>()
        .join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::kernel::fault::{Fault, Faults};

    #[test]
    fn an_error_tells_its_message_before_its_faults() {
        let faults = || Faults::from(Fault::new("irn", "odd", "The number is odd."));
        let message = "Nothing was sent.";
        let told = ApiError::new(ErrorCode::ValidationFailed, message).with_faults(faults());
        assert_eq!(error_text(&told), "Nothing was sent. The number is odd.");
        assert_eq!(
            error_text(&ApiError::invalid(faults())),
            "The number is odd."
        );
    }
}

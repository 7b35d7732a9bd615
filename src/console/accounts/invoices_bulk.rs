//! Approves or submits many invoices of the list at once. An accountant ticks rows, or takes all that match the filter;
//! the next page shows how many and which they are, and the page after it says what came of each. Each invoice is a
//! command of its own, as if its own button were pressed, so that what is done stays done.

use actix_web::web;
use askama::Template;
use futures_util::stream::{self, StreamExt as _};

use crate::actors::taxpayer::commands::{OpenRun, SetStatus};
use crate::console::accounts::base;
use crate::console::accounts::bulk_selection::{BulkAct, Selection};
use crate::console::accounts::invoice_submission::prepare;
use crate::console::accounts::invoices::COUNTED_MAX;
use crate::console::accounts::lifecycle::Lifecycle;
use crate::console::badges::Badge;
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
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;
use crate::store::invoices::list::{Fields, PagePart, PageStart};

/// The maximum number of invoices that one act takes. A person repeats the act until nothing matches.
const INVOICES_MAX: u64 = 1_000;
/// The maximum number of invoices that a page names.
const SHOWN_MAX: usize = 100;
/// The number of invoices that are changed at a time.
const AT_A_TIME: usize = 16;
/// The remark that the status of each invoice gets.
const REMARK: &str = "Set in the dashboard, with others";

pub(super) fn endpoints() -> Vec<Path> {
    vec![
        path("/dashboard/{taxpayer}/invoices/bulk")
            .page(preview)
            .form(go),
    ]
}

/// The invoices of a selection.
struct Found {
    /// Those that the act is for.
    invoices: Vec<Invoice>,
    /// The number of those that it is not for, by reason.
    obstacles: Vec<(&'static str, usize)>,
    /// The number of invoices beyond these that match, too.
    others: u64,
}

async fn find(
    state: &ApiState,
    session: &AccountSession,
    act: BulkAct,
    values: &FormValues,
) -> Result<Found, ApiError> {
    let mut list = Selection::read(values)?.into_list(state, session.taxpayer)?;
    // What the act is not for would hide the invoices after it.
    if list.filters.ids.is_none() && list.filters.status.is_none() {
        list.filters.status = Some(act.status());
    }
    let total = list.count_up_to(&state.store, COUNTED_MAX).await?;
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
    Ok(Found {
        invoices,
        obstacles,
        others: total.saturating_sub(INVOICES_MAX),
    })
}

#[derive(Template)]
#[template(path = "accounts/invoices_bulk.html")]
struct PreviewPage {
    frame: Frame,
    base: String,
    act: BulkAct,
    count: usize,
    others: u64,
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
    let found = find(&state, &session, act, &values).await?;
    let count = found.invoices.len();
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
    let mut fields = vec![
        ("act", act.as_str().to_owned()),
        ("filter", values.text("filter").to_owned()),
        ("count", count.to_string()),
    ];
    if values.text("all").is_empty() {
        fields.extend(values.checked_values("id").map(|id| ("id", id.to_owned())));
    } else {
        fields.push(("all", "true".to_owned()));
    }
    show(&PreviewPage {
        frame: Frame::for_account(&session, act.label()).below("Invoices"),
        list_address: list_address(&base, &values),
        base,
        act,
        count,
        others: found.others,
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
    is_done: bool,
    /// What came of it, or why nothing did.
    text: String,
}

/// Does what the preview showed. Invoices that match since then are left for the next time.
async fn go(
    state: web::Data<ApiState>,
    Accountant(session): Accountant,
    form: Form<FormValues>,
) -> Answer {
    let values = form.0;
    let act = BulkAct::parse(values.text("act")).ok_or_else(ApiError::route_not_found)?;
    let shown: usize = values.text("count").parse().unwrap_or_default();
    let mut found = find(&state, &session, act, &values).await?;
    found.invoices.truncate(shown);
    let work = found.invoices.into_iter().map(|invoice| {
        let (state, session) = (&state, &session);
        async move { apply(state, session, act, invoice).await }
    });
    let mut lines: Vec<_> = stream::iter(work).buffered(AT_A_TIME).collect().await;
    let failed = lines.iter().filter(|line| !line.is_done).count();
    let all = lines.len();
    lines.sort_by_key(|line| line.is_done);
    lines.truncate(SHOWN_MAX);
    let base = base(&session);
    show(&ResultPage {
        frame: Frame::for_account(&session, act.label()).below("Invoices"),
        list_address: list_address(&base, &values),
        base,
        act,
        done: all - failed,
        failed,
        hidden: all - lines.len(),
        lines,
    })
}

async fn apply(
    state: &ApiState,
    session: &AccountSession,
    act: BulkAct,
    invoice: Invoice,
) -> ResultLine {
    let done = apply_to(state, session, act, &invoice).await;
    let (is_done, text) = match done {
        Ok(text) => (true, text.to_owned()),
        Err(error) => {
            let faults = error.faults.iter().map(ToString::to_string);
            let faults = faults.collect::<Vec<_>>().join(" ");
            let is_told = faults.is_empty();
            (
                false,
                if is_told {
                    error.message.into_string()
                } else {
                    faults
                },
            )
        }
    };
    ResultLine {
        id: invoice.id,
        number: invoice.invoice_no,
        is_done,
        text,
    }
}

async fn apply_to(
    state: &ApiState,
    session: &AccountSession,
    act: BulkAct,
    invoice: &Invoice,
) -> Result<&'static str, ApiError> {
    let taxpayers = &state.taxpayers;
    if act.approves() {
        let which = InvoiceRef {
            kind: UniqueNoType::PortalId,
            text: invoice.id.to_string(),
        };
        let status = SettableStatus::Approved;
        let approval = approval::prepare(state, session.taxpayer, &which, status).await?;
        let command = SetStatus {
            invoice: which,
            status,
            remark: REMARK.to_owned(),
            submission: approval.submission,
        };
        taxpayers.send(session.taxpayer, command).await?;
    }
    if act == BulkAct::Approve {
        return Ok("Approved");
    }
    let request = prepare(state, session, invoice).await?;
    taxpayers.send(session.taxpayer, OpenRun(request)).await?;
    Ok("Sent to the authority")
}

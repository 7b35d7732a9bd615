//! Undoes a batch that should not have been sent: a preview with the counts and the money, and the result of each
//! invoice.

use actix_web::http::StatusCode;
use actix_web::web;
use askama::Template;

use crate::console::accounts::invoice_sums::amount_in_total;
use crate::console::accounts::navigation::base_path;
use crate::console::badges::{Badge, badge};
use crate::console::filters;
use crate::console::form_values::FormValues;
use crate::console::frame::Frame;
use crate::console::page::{Answer, Form, go_to, show, show_with_status};
use crate::console::session::accounts::{AccountSession, Accountant};
use crate::domain::money::Amount;
use crate::http::corrections::{Undo, UndoAct, UndoItem, undo_batch_invoices};
use crate::http::paths::{Path, path};
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;
use crate::store::invoices::{batches, running_imports};

/// The maximum number of invoices that the page lists. Those that will not be undone come first.
const SHOWN_MAX: usize = 100;

pub(super) fn paths() -> Vec<Path> {
    vec![
        path("/dashboard/{taxpayer}/batches/{batch_no}/undo")
            .page(preview_undo)
            .form(undo_batch),
    ]
}

#[derive(Template)]
#[template(path = "accounts/batch_undo.html")]
struct UndoPage {
    frame: Frame,
    base: String,
    batch_no: String,
    /// True if the batch has a page. The batch of a large imported file has none.
    has_page: bool,
    is_preview: bool,
    /// True if the plan has changed since the person confirmed it.
    has_changed: bool,
    /// The digest of the plan. The form sends it with the confirmation, so that the service notices a plan that has
    /// changed.
    plan_digest: String,
    credited: usize,
    cancelled: usize,
    kept: usize,
    undone_before: usize,
    /// The number of further invoices, which are too many for one time.
    beyond_max: usize,
    money: Vec<(String, Amount)>,
    lines: Vec<UndoLine>,
    /// The number of invoices that the page does not list.
    unlisted: usize,
}

struct UndoLine {
    item: UndoItem,
    badge: Badge,
}

impl UndoPage {
    async fn load(
        state: &ApiState,
        session: &AccountSession,
        batch_no: String,
        undo: Undo,
        is_preview: bool,
    ) -> Result<Self, ApiError> {
        let taxpayer = session.taxpayer;
        let batch = batches::find_owned_by_number(&state.store, taxpayer, &batch_no).await?;
        let catalog = state.catalog.get();
        let in_currency_digits =
            |currency: &str, amount: Amount| amount.with_digits(catalog.currency_digits(currency));
        let money = undo.sums_by_currency().into_iter();
        let money = money
            .map(|(currency, amount)| (currency.to_owned(), in_currency_digits(currency, amount)));
        let mut page = Self {
            frame: Frame::for_account(session, "Undo this batch").with_section("Batches"),
            base: base_path(session),
            batch_no,
            has_page: batch.is_some(),
            is_preview,
            has_changed: false,
            plan_digest: undo.digest(),
            credited: undo.count(UndoAct::Credit),
            cancelled: undo.count(UndoAct::Cancel),
            kept: undo.count(UndoAct::None),
            undone_before: undo.done_before,
            beyond_max: undo.left,
            money: money.collect(),
            lines: Vec::new(),
            unlisted: undo.items.len().saturating_sub(SHOWN_MAX),
        };
        let mut items = undo.items;
        items.sort_by_key(|item| item.act != UndoAct::None);
        items.truncate(SHOWN_MAX);
        let lines = items.into_iter().map(|item| UndoLine {
            badge: undo_badge(item.act),
            item: UndoItem {
                payable: amount_in_total(
                    in_currency_digits(&item.currency, item.payable),
                    item.is_credit_note,
                ),
                ..item
            },
        });
        page.lines = lines.collect();
        Ok(page)
    }
}

fn undo_badge(act: UndoAct) -> Badge {
    match act {
        UndoAct::Credit => badge("info", "Credit note"),
        UndoAct::Cancel => badge("idle", "Cancelled"),
        UndoAct::None => badge("warn", "Kept"),
    }
}

/// Answers a refused undo. If an import still adds to the batch, redirects to the page of the import.
async fn lead_to_import(
    state: &ApiState,
    session: &AccountSession,
    batch_no: &str,
    refusal: ApiError,
) -> Answer {
    if refusal.status != StatusCode::CONFLICT {
        return Err(refusal);
    }
    let taxpayer = session.taxpayer;
    match running_imports::find_by_batch(&state.store, taxpayer, batch_no).await? {
        Some(import) => {
            let page = format!("{}/imports/{}", base_path(session), import.import_no);
            Ok(go_to(&page, &refusal.message))
        }
        None => Err(refusal),
    }
}

async fn preview_undo(
    state: web::Data<ApiState>,
    Accountant(session): Accountant,
    ids: web::Path<(String, String)>,
) -> Answer {
    let batch_no = ids.1.clone();
    match undo_batch_invoices(&state, session.taxpayer, None, &batch_no, true).await {
        Ok(plan) => show(&UndoPage::load(&state, &session, batch_no, plan, true).await?),
        Err(refusal) => lead_to_import(&state, &session, &batch_no, refusal).await,
    }
}

/// POST of the confirmed preview: undoes the batch. If the plan has changed since, undoes nothing and shows the new
/// plan.
async fn undo_batch(
    state: web::Data<ApiState>,
    Accountant(session): Accountant,
    ids: web::Path<(String, String)>,
    form: Form<FormValues>,
) -> Answer {
    let batch_no = ids.1.clone();
    let plan = undo_batch_invoices(&state, session.taxpayer, None, &batch_no, true).await;
    let plan = match plan {
        Ok(plan) => plan,
        Err(refusal) => return lead_to_import(&state, &session, &batch_no, refusal).await,
    };
    if plan.digest() != form.0.text("plan") {
        let page = UndoPage {
            has_changed: true,
            ..UndoPage::load(&state, &session, batch_no, plan, true).await?
        };
        return show_with_status(StatusCode::PRECONDITION_FAILED, &page);
    }
    let undo = undo_batch_invoices(&state, session.taxpayer, None, &batch_no, false).await?;
    show(&UndoPage::load(&state, &session, batch_no, undo, false).await?)
}

//! One taxpayer: who it is, its webhook and ERP, its newest invoices and runs, and its audit. An admin may verify it
//! and end its subscription.

use actix_web::web;
use askama::Template;
use serde::Deserialize;

use crate::actors::taxpayer::commands::{RecordVerification, SetSubscription};
use crate::console::badges::Badge;
use crate::console::filters;
use crate::console::form_values::FormValues;
use crate::console::frame::Frame;
use crate::console::operators::audit::{self, AuditLine};
use crate::console::operators::deliveries::url_without_query;
use crate::console::operators::invoice::InvoiceLine;
use crate::console::operators::list_query::ListQuery;
use crate::console::operators::reason::{ReasonForm, RefusedForm, form_page_status};
use crate::console::operators::runs::{self, RunRow};
use crate::console::operators::sign_ins::{PersonLine, person_path};
use crate::console::page::{Answer, Form, go_to, show_with_status};
use crate::console::session::operators::{Admin, Operator, OperatorSession, Viewer};
use crate::domain::access::session::SessionOwner;
use crate::domain::events::endpoint_health::EndpointHealth;
use crate::domain::integration::IntegrationSummary;
use crate::domain::kernel::audit::{Actor, OperatorRequest};
use crate::domain::kernel::codes::Subscription;
use crate::domain::kernel::fault::Fault;
use crate::domain::kernel::ids::{ContactId, TaxpayerId, parse_id};
use crate::domain::party::Taxpayer;
use crate::domain::party::verification::{ConfirmedBy, Verification};
use crate::domain::taxpayer_pause::TaxpayerPause;
use crate::http::api::ops::development;
use crate::http::forms::query::Query;
use crate::http::paths::{Path, path};
use crate::http::replicas::taxpayer_pauses;
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;
use crate::store::accounts::contacts;
use crate::store::accounts::second_factors::{self, FactorState};
use crate::store::accounts::taxpayers;
use crate::store::invoices::list::{
    InvoiceFilter, InvoiceList, InvoiceSort, PageBounds, PageStart,
};
use crate::store::operations::audit::AuditFilter;
use crate::store::runs::run_list::RunFilter;
use crate::store::webhooks;
use crate::store::webhooks::integrations;

/// The number of newest invoices, and of newest runs, that the page lists.
const NEWEST_ROWS: u64 = 10;

pub(super) fn paths() -> Vec<Path> {
    vec![
        path("/console/taxpayers/{id}").page(show_taxpayer),
        path("/console/taxpayers/{id}/verify").form(verify_taxpayer),
        path("/console/taxpayers/{id}/subscription").form(set_subscription),
        path("/console/taxpayers/{id}/panic").form(request_panics),
        path("/console/taxpayers/{id}/pause").form(pause_taxpayer),
        path("/console/taxpayers/{id}/resume").form(resume_taxpayer),
    ]
}

#[derive(Template)]
#[template(path = "operators/taxpayer.html")]
struct TaxpayerPage {
    frame: Frame,
    taxpayer: Taxpayer,
    verification: Badge,
    subscription: Badge,
    missing_fields: String,
    people: Vec<PersonLine>,
    pause: Option<TaxpayerPause>,
    accepts_panics: bool,
    endpoint: Option<EndpointFacts>,
    integration: IntegrationSummary,
    invoices: Vec<InvoiceLine>,
    invoices_total: u64,
    rows: Vec<RunRow>,
    audit: Vec<AuditLine>,
    refused: RefusedForm,
}

struct EndpointFacts {
    disabled_reason: Option<String>,
    url: String,
    badge: Badge,
}

/// GET /console/taxpayers/{id}: shows a taxpayer.
async fn show_taxpayer(
    state: web::Data<ApiState>,
    Viewer(session): Viewer,
    id: web::Path<String>,
) -> Answer {
    let taxpayer = find_taxpayer(&state, &id).await?;
    render(&state, &session, taxpayer, RefusedForm::default()).await
}

async fn render(
    state: &ApiState,
    session: &OperatorSession,
    taxpayer: Taxpayer,
    refused: RefusedForm,
) -> Answer {
    let store = &state.store;
    let id = taxpayer.id;
    let endpoint = webhooks::find_by_key_with_streak(store.reader(), id.into()).await?;
    let all_invoices = InvoiceList {
        taxpayer: id,
        filters: InvoiceFilter::default(),
        sort: InvoiceSort::NEWEST_FIRST,
    };
    let newest_invoices = PageBounds {
        start: PageStart::At(0),
        limit: NEWEST_ROWS,
    };
    let invoices = all_invoices.page(store, newest_invoices).await?;
    let run_filter = RunFilter {
        taxpayer_id: Some(id),
        ..RunFilter::default()
    };
    let newest = ListQuery(Query::from_text(&format!("per_page={NEWEST_ROWS}")));
    let audit_filter = AuditFilter {
        taxpayer_id: Some(id),
        ..AuditFilter::default()
    };
    let page = TaxpayerPage {
        frame: Frame::for_operator(session, "Taxpayer"),
        verification: taxpayer.verification.status().into(),
        subscription: taxpayer.subscription.into(),
        missing_fields: taxpayer.missing_profile_fields().join(", "),
        people: load_people(state, id).await?,
        endpoint: endpoint.map(|(endpoint, streak)| EndpointFacts {
            badge: EndpointHealth::new(endpoint.is_active, streak.as_ref()).into(),
            url: url_without_query(&endpoint.url),
            disabled_reason: endpoint.disabled_reason,
        }),
        pause: state.taxpayers.paused_taxpayers().find(id),
        accepts_panics: state.taxpayers.scheduled_panics().are_accepted(),
        integration: integrations::owned_by_without_secrets(store.reader(), id).await?,
        invoices_total: invoices.total,
        invoices: invoices
            .invoices
            .into_iter()
            .map(InvoiceLine::from)
            .collect(),
        rows: runs::load_newest(state, &run_filter, &newest).await?,
        audit: audit::load_newest(state, audit_filter).await?,
        taxpayer,
        refused,
    };
    show_with_status(form_page_status(&page.refused.sent_form), &page)
}

async fn load_people(state: &ApiState, taxpayer: TaxpayerId) -> Result<Vec<PersonLine>, ApiError> {
    let found = contacts::owned_by(&state.store, taxpayer).await?;
    let owner = |id| SessionOwner::Contact {
        taxpayer,
        id: ContactId(id),
    };
    let owners = found.iter().map(|access| owner(access.contact.id));
    let factors = second_factors::load_states(&state.store, owners, state.now()).await?;
    let lines = found.into_iter().map(|access| PersonLine {
        name: Some(format!(
            "{} {}",
            access.contact.first_name, access.contact.last_name
        )),
        role: access.role.as_str(),
        second_factor: factors.get(owner(access.contact.id)),
        path: person_path(owner(access.contact.id)),
        is_self: false,
        email: access.contact.email,
    });
    Ok(lines.collect())
}

/// Returns the taxpayer with the id in the path.
pub(super) async fn find_taxpayer(state: &ApiState, text: &str) -> Result<Taxpayer, ApiError> {
    let id = parse_id(text)
        .map(TaxpayerId)
        .ok_or_else(ApiError::taxpayer_not_found)?;
    let found = taxpayers::find_by_id(state.store.reader(), id).await?;
    found.ok_or_else(ApiError::taxpayer_not_found)
}

/// POST /console/taxpayers/{id}/verify: confirms the identity of a taxpayer that the authority has not confirmed.
async fn verify_taxpayer(
    state: web::Data<ApiState>,
    Admin(session): Admin,
    id: web::Path<String>,
    form: Form<FormValues>,
) -> Answer {
    let taxpayer = find_taxpayer(&state, &id).await?;
    let reason = match ReasonForm::from(&form.0).read_required(&state) {
        Ok(reason) => reason,
        Err(error) => {
            let refused = RefusedForm::new("verify", form.0, error.faults);
            return render(&state, &session, taxpayer, refused).await;
        }
    };
    let id = taxpayer.id;
    let found = Verification::Verified(ConfirmedBy::Operator);
    let result = RecordVerification {
        found,
        by: Some(Actor::Operator(session.id)),
        reason: Some(reason),
    };
    state.taxpayers.send(id, result).await?;
    Ok(go_to(
        &format!("/console/taxpayers/{id}"),
        "The taxpayer is verified.",
    ))
}

#[derive(Debug, Deserialize)]
struct SubscriptionForm {
    subscription: Subscription,
}

/// POST /console/taxpayers/{id}/subscription: allows or stops new invoices of a taxpayer.
async fn set_subscription(
    state: web::Data<ApiState>,
    Admin(session): Admin,
    id: web::Path<String>,
    form: Form<SubscriptionForm>,
) -> Answer {
    let id = find_taxpayer(&state, &id).await?.id;
    let to = form.0.subscription;
    state
        .taxpayers
        .send(
            id,
            SetSubscription {
                to,
                by: Actor::Operator(session.id),
            },
        )
        .await?;
    let notice = match to {
        Subscription::Active => "The subscription is active: the taxpayer may create invoices.",
        Subscription::Inactive => {
            "The subscription has ended: the taxpayer may create no invoices."
        }
    };
    Ok(go_to(&format!("/console/taxpayers/{id}"), notice))
}

/// POST /console/taxpayers/{id}/pause: stops new work for a taxpayer, on all replicas.
async fn pause_taxpayer(
    state: web::Data<ApiState>,
    Operator(session): Operator,
    id: web::Path<String>,
    form: Form<FormValues>,
) -> Answer {
    let taxpayer = find_taxpayer(&state, &id).await?;
    let by = match ReasonForm::from(&form.0).to_request_with_reason(&state, &session) {
        Ok(by) => by,
        Err(error) => {
            let refused = RefusedForm::new("pause", form.0, error.faults);
            return render(&state, &session, taxpayer, refused).await;
        }
    };
    let id = taxpayer.id;
    let notice = if taxpayer_pauses::pause(&state, id, &by).await? {
        "The taxpayer is paused. Within a second no replica takes up anything new of it."
    } else {
        "The taxpayer was already paused."
    };
    Ok(go_to(&format!("/console/taxpayers/{id}"), notice))
}

/// POST /console/taxpayers/{id}/resume: ends the pause of a taxpayer.
async fn resume_taxpayer(
    state: web::Data<ApiState>,
    Operator(session): Operator,
    id: web::Path<String>,
    form: Form<FormValues>,
) -> Answer {
    let taxpayer = find_taxpayer(&state, &id).await?;
    let by = match ReasonForm::from(&form.0).to_request_with_reason(&state, &session) {
        Ok(by) => by,
        Err(error) => {
            let refused = RefusedForm::new("resume", form.0, error.faults);
            return render(&state, &session, taxpayer, refused).await;
        }
    };
    let id = taxpayer.id;
    let notice = if taxpayer_pauses::resume(&state, id, &by).await? {
        "The taxpayer is resumed. Within a second all replicas take up its work again."
    } else {
        "The taxpayer was not paused."
    };
    Ok(go_to(&format!("/console/taxpayers/{id}"), notice))
}

/// POST /console/taxpayers/{id}/panic: makes the actor of a taxpayer panic at its next command, in development.
async fn request_panics(
    state: web::Data<ApiState>,
    Admin(session): Admin,
    id: web::Path<String>,
    form: Form<FormValues>,
) -> Answer {
    let taxpayer = find_taxpayer(&state, &id).await?;
    let (panics, by) = match read_panic_request(&state, &session, &form.0) {
        Ok(request) => request,
        Err(error) => {
            let refused = RefusedForm::new("panic", form.0, error.faults);
            return render(&state, &session, taxpayer, refused).await;
        }
    };
    let id = taxpayer.id;
    development::schedule_panics(&state, id, panics, &by).await?;
    Ok(go_to(
        &format!("/console/taxpayers/{id}"),
        "The actor panics at the next command of this taxpayer.",
    ))
}

fn read_panic_request(
    state: &ApiState,
    session: &OperatorSession,
    form: &FormValues,
) -> Result<(u32, OperatorRequest), ApiError> {
    let panics = form.text("panics").parse::<u32>();
    let message = "The panics field must be a number.";
    let panics = panics.map_err(|_| Fault::new("panics", "type", message))?;
    Ok((
        panics,
        ReasonForm::from(form).to_request_with_reason(state, session)?,
    ))
}

//! Changes the webhooks of many taxpayers at once. An integrator ticks taxpayers, or selects all that match the filter.
//! The next page lists them and asks for address and events. Each taxpayer is a command of its own, so a failure does
//! not undo the others.

use actix_web::http::StatusCode;
use actix_web::web;
use askama::Template;
use database::page::Page;
use futures_util::stream::{self, StreamExt as _};

use crate::actors::taxpayer::commands::{EnableEndpoint, SetWebhook};
use crate::console::accounts::bulk_action::{ActionOutcome, error_text};
use crate::console::accounts::taxpayers::{read_list_filters, webhook_badge};
use crate::console::accounts::taxpayers_onboarding::{ResultLine, ResultPage};
use crate::console::accounts::webhook_form::{EventChoice, event_choices};
use crate::console::badges::{Badge, badge};
use crate::console::form_values::{FormState, FormValues};
use crate::console::frame::Frame;
use crate::console::page::{Answer, Form, show, show_with_status};
use crate::console::session::accounts::SignedInIntegrator;
use crate::domain::events::endpoint_health::EndpointHealth;
use crate::domain::events::replay::ReplayScope;
use crate::domain::kernel::audit::Actor;
use crate::domain::kernel::ids::{TaxpayerId, parse_id};
use crate::http::forms::query::Query;
use crate::http::forms::reader::Reader;
use crate::http::forms::{reader, webhook};
use crate::http::paths::{Path, path};
use crate::http::respond::code::ErrorCode;
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;
use crate::store::operations::owned_list::{ListedTaxpayer, OwnedTaxpayerList};
use crate::store::webhooks;

/// The maximum number of taxpayers whose webhooks are changed at once.
const TAXPAYERS_MAX: u64 = 500;
/// The maximum number of taxpayers that the page lists.
const SHOWN_MAX: usize = 50;
/// The number of webhooks that are changed concurrently.
const CONCURRENCY: usize = 8;

pub(crate) fn paths() -> Vec<Path> {
    vec![
        path("/dashboard/taxpayers/webhooks")
            .page(show_form)
            .form(change_webhooks)
            .allows_form_repeat(),
    ]
}

#[derive(Template)]
#[template(path = "accounts/taxpayers_webhooks.html")]
struct WebhooksPage {
    frame: Frame,
    ids: Vec<TaxpayerId>,
    lines: Vec<ChosenTaxpayerLine>,
    events: Vec<EventChoice>,
    form: FormState,
}

struct ChosenTaxpayerLine {
    id: TaxpayerId,
    name: String,
    badge: Badge,
}

/// Returns the taxpayers that a person selected. Fails if there are none or too many.
async fn find_selected_taxpayers(
    state: &ApiState,
    integrator: &SignedInIntegrator,
    values: &FormValues,
) -> Result<Vec<ListedTaxpayer>, ApiError> {
    let is_all = !values.text("all").is_empty();
    let query = Query::from_text(if is_all { values.text("filter") } else { "" });
    let list = read_list_filters(&query, integrator.id, state.now())?;
    let ticked = values.checked_values("id").filter_map(parse_id);
    let ticked: Vec<_> = ticked.map(TaxpayerId).collect();
    let mut chosen = load_taxpayers(state, &list).await?;
    if !is_all {
        chosen.retain(|one| ticked.contains(&one.taxpayer.id));
    }
    let message = match u64::try_from(chosen.len()).unwrap_or(u64::MAX) {
        0 => "Nothing is chosen. Go back and tick the taxpayers that you mean.".to_owned(),
        1..=TAXPAYERS_MAX => return Ok(chosen),
        _ => format!("At most {TAXPAYERS_MAX} webhooks can be changed at once. Filter the list."),
    };
    Err(ApiError::new(ErrorCode::ValidationFailed, message))
}

async fn load_taxpayers(
    state: &ApiState,
    list: &OwnedTaxpayerList,
) -> Result<Vec<ListedTaxpayer>, ApiError> {
    let all = Page {
        number: 1,
        per_page: u64::MAX,
    };
    Ok(list.page(&state.store, all).await?)
}

/// GET /dashboard/taxpayers/webhooks: lists the selected taxpayers and asks for the address and the events of their
/// webhooks. Changes nothing.
async fn show_form(
    state: web::Data<ApiState>,
    integrator: SignedInIntegrator,
    query: Query,
) -> Answer {
    let chosen = find_selected_taxpayers(&state, &integrator, &FormValues::from(&query)).await?;
    render(&integrator, &chosen, FormState::default())
}

fn render(integrator: &SignedInIntegrator, chosen: &[ListedTaxpayer], form: FormState) -> Answer {
    let status = if form.is_refused() {
        StatusCode::UNPROCESSABLE_ENTITY
    } else {
        StatusCode::OK
    };
    let lines = chosen.iter().take(SHOWN_MAX).map(|one| ChosenTaxpayerLine {
        id: one.taxpayer.id,
        name: one.taxpayer.name.clone(),
        badge: webhook_badge(one.webhook),
    });
    show_with_status(
        status,
        &WebhooksPage {
            frame: Frame::for_integrator(integrator, "Webhooks of many")
                .with_section("All taxpayers"),
            ids: chosen.iter().map(|one| one.taxpayer.id).collect(),
            lines: lines.collect(),
            events: event_choices(None, &form),
            form,
        },
    )
}

/// POST of the form: changes the webhook of each selected taxpayer and shows the outcomes.
async fn change_webhooks(
    state: web::Data<ApiState>,
    integrator: SignedInIntegrator,
    form: Form<FormValues>,
) -> Answer {
    let values = form.0;
    let chosen = find_selected_taxpayers(&state, &integrator, &values).await?;
    let only_enables = values.text("act") == "enable";
    if !only_enables && let Some(first) = chosen.first() {
        let read = read_webhook_change(&state, &integrator, first.taxpayer.id, &values).await;
        if let Err(error) = read {
            let form = FormState::from_refusal(error, values)?;
            return render(&integrator, &chosen, form);
        }
    }
    let work = chosen.into_iter().map(|one| {
        let (state, integrator, values) = (&state, &integrator, &values);
        async move {
            let outcome = if only_enables {
                enable_webhooks(state, &one).await
            } else {
                set_webhook(state, integrator, one.taxpayer.id, values).await
            };
            ResultLine {
                path: Some(format!("/dashboard/{}/webhooks", one.taxpayer.id)),
                name: one.taxpayer.name,
                outcome,
            }
        }
    });
    let lines: Vec<_> = stream::iter(work).buffered(CONCURRENCY).collect().await;
    let frame =
        Frame::for_integrator(&integrator, "Webhooks of many").with_section("All taxpayers");
    show(&ResultPage::new(frame, lines))
}

/// Reads the form anew for each taxpayer, because a taxpayer's ERP integration may allow addresses in additional
/// networks.
async fn read_webhook_change(
    state: &ApiState,
    integrator: &SignedInIntegrator,
    id: TaxpayerId,
    values: &FormValues,
) -> Result<SetWebhook, ApiError> {
    let mut body = values.to_object(&["webhook_url"]);
    let events = values.checked_values("enabled_events");
    let events: Vec<_> = events.map(serde_json::Value::from).collect();
    if !events.is_empty() {
        body.insert("enabled_events".to_owned(), events.into());
    }
    let policy = state.webhook_address_policy(id).await?;
    let read = |reader: &mut Reader<'_>| webhook::read(reader, &policy);
    let wanted = reader::read(&body, &state.catalog.get(), read)?.value;
    Ok(SetWebhook {
        url: wanted.url,
        enabled_events: wanted.enabled_events,
        retry_schedule: wanted.retry_schedule,
        by: Actor::Integrator(integrator.id),
    })
}

async fn set_webhook(
    state: &ApiState,
    integrator: &SignedInIntegrator,
    id: TaxpayerId,
    values: &FormValues,
) -> ActionOutcome {
    let change = match read_webhook_change(state, integrator, id, values).await {
        Ok(change) => change,
        Err(error) => return ActionOutcome::not_done(badge("bad", "Rejected"), error_text(&error)),
    };
    match state.taxpayers.send(id, change).await {
        Ok(endpoint) if endpoint.enabled_kinds().is_empty() => {
            let text = "The address is set, but no event is enabled. Choose events.".to_owned();
            ActionOutcome::not_done(badge("warn", "No events"), text)
        }
        Ok(_) => ActionOutcome::success("The webhook is set.".to_owned()),
        Err(error) => {
            ActionOutcome::not_done(badge("bad", "Failed"), error_text(&ApiError::from(error)))
        }
    }
}

/// Enables the disabled endpoints of a taxpayer, and delivers the events that happened meanwhile.
async fn enable_webhooks(state: &ApiState, listed: &ListedTaxpayer) -> ActionOutcome {
    if listed.webhook != Some(EndpointHealth::Disabled) {
        let text = "Its webhook is not disabled.".to_owned();
        return ActionOutcome::not_done(badge("idle", "Left out"), text);
    }
    match enable_all_endpoints(state, listed.taxpayer.id).await {
        Ok(()) => ActionOutcome::success("The webhook is in service again.".to_owned()),
        Err(error) => ActionOutcome::not_done(badge("bad", "Failed"), error_text(&error)),
    }
}

async fn enable_all_endpoints(state: &ApiState, taxpayer: TaxpayerId) -> Result<(), ApiError> {
    let endpoints = webhooks::owned_by_with_streaks(state.store.reader(), taxpayer).await?;
    for (endpoint, _) in endpoints {
        if endpoint.is_active {
            continue;
        }
        let command = EnableEndpoint {
            endpoint: endpoint.key,
            replay: Some(ReplayScope::Missing),
            reason: None,
        };
        state.taxpayers.send(taxpayer, command).await?;
    }
    Ok(())
}

//! Sends many deliveries of the list again at once. A person ticks rows, or selects all that match the filter. The next
//! page shows how many and which deliveries these are, and starts the replay that sends them. The page of the replay
//! shows its progress.

use actix_web::web;
use askama::Template;

use crate::actors::taxpayer::commands::StartReplay;
use crate::console::accounts::bulk_selection::ticked_rows;
use crate::console::accounts::deliveries::{DeliveryLine, filter_address};
use crate::console::accounts::navigation::base_path;
use crate::console::accounts::webhook_target::WebhookTarget;
use crate::console::badges::Badge;
use crate::console::filters;
use crate::console::form_values::FormValues;
use crate::console::frame::Frame;
use crate::console::page::{Answer, Form, go_to, redirect, show};
use crate::console::session::accounts::{AccountSession, Accountant, Reader};
use crate::domain::events::delivery::DeliveryState;
use crate::domain::events::endpoint::Endpoint;
use crate::domain::events::event::EventKind;
use crate::domain::events::replay::{Replay, ReplayRange};
use crate::domain::kernel::fault::Fault;
use crate::domain::kernel::refusal::Refusal;
use crate::http::delivery_selection::selected_range;
use crate::http::extract::path_ids;
use crate::http::forms::delivery_selection::{MatchForm, SelectionForm};
use crate::http::forms::query::Query;
use crate::http::paths::{Path, path};
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;
use crate::store::events;
use crate::store::webhooks;
use crate::store::webhooks::delivery_selection::{
    SelectedDeliveryCounts, count_by_state, load_newest,
};
use crate::store::webhooks::replays;

/// The maximum number of deliveries that the preview lists.
const SHOWN_MAX: u64 = 25;

pub(crate) fn paths() -> Vec<Path> {
    vec![
        path("/dashboard/{taxpayer}/webhooks/deliveries/bulk")
            .page(preview_replay)
            .form(start_replay),
        path("/dashboard/{taxpayer}/webhooks/replays/{replay}").page(show_replay),
    ]
}

/// The deliveries that a person selected in the list.
struct ChosenDeliveries {
    endpoint: Endpoint,
    range: ReplayRange,
}

#[derive(Template)]
#[template(path = "accounts/deliveries_bulk.html")]
struct PreviewPage {
    frame: Frame,
    base: String,
    endpoint: Endpoint,
    counts: SelectedDeliveryCounts,
    lines: Vec<DeliveryLine>,
    /// The hidden fields of the form, which select the same deliveries again.
    fields: Vec<(&'static str, String)>,
    list_address: String,
}

#[derive(Template)]
#[template(path = "accounts/replay.html")]
struct ReplayPage {
    frame: Frame,
    base: String,
    replay: Replay,
    badge: Badge,
    /// True if the replay waits for the endpoint to be enabled.
    is_held: bool,
    /// The address of the endpoint's page.
    endpoint_address: String,
    deliveries_address: String,
}

/// Returns the deliveries that the form fields select. The field `until` is the newest event when the preview was
/// shown, so that later deliveries are not sent without having been shown.
async fn find_chosen_deliveries(
    state: &ApiState,
    session: &AccountSession,
    values: &FormValues,
) -> Result<ChosenDeliveries, ApiError> {
    let query = Query::from_text(values.text("filter"));
    let name = query.trimmed_text("endpoint");
    let name = name.unwrap_or_else(|| "default".to_owned());
    let reader = state.store.reader();
    let found = webhooks::find_owned_by_name(reader, session.taxpayer, &name).await?;
    let (endpoint, _) = found.ok_or(Refusal::EndpointNotFound)?;
    let form = if values.text("all").is_empty() {
        SelectionForm::Chosen(ticked_rows(values, path_ids::parse_uuid)?)
    } else {
        SelectionForm::Matching(read_filter(&query)?)
    };
    let mut range = selected_range(state, session.taxpayer, endpoint.key, form).await?;
    if let Ok(until) = values.text("until").parse::<i64>() {
        range.until = range.until.min(until);
    }
    Ok(ChosenDeliveries { endpoint, range })
}

fn read_filter(query: &Query) -> Result<MatchForm, Fault> {
    Ok(MatchForm {
        state: query.word("state", DeliveryState::parse, DeliveryState::allowed_words)?,
        event: query.word("event", EventKind::parse, EventKind::allowed_words)?,
        irn: query.trimmed_text("irn"),
        since: None,
    })
}

/// Shows how many deliveries would be sent again, and changes nothing.
async fn preview_replay(
    state: web::Data<ApiState>,
    Accountant(session): Accountant,
    query: Query,
) -> Answer {
    // If a form was sent twice and the first answer is not known, the browser is redirected here without parameters.
    if query.pairs().next().is_none() {
        let list = format!("{}/webhooks/deliveries", base_path(&session));
        return Ok(redirect(&list));
    }
    let values = FormValues::from(&query);
    let ChosenDeliveries {
        endpoint,
        mut range,
    } = find_chosen_deliveries(&state, &session, &values).await?;
    let store = &state.store;
    let head = events::log_head(store.reader(), session.taxpayer).await?;
    range.until = range.until.min(head.sequence);
    let counts = count_by_state(store, session.taxpayer, endpoint.key, &range).await?;
    let lines = load_newest(store, session.taxpayer, endpoint.key, &range, SHOWN_MAX).await?;
    let mut fields = vec![
        ("filter", values.text("filter").to_owned()),
        ("all", values.text("all").to_owned()),
        ("until", range.until.to_string()),
    ];
    let ids = values.checked_values("id").filter_map(path_ids::parse_uuid);
    if values.text("all").is_empty() {
        fields.extend(ids.map(|id| ("id", id.to_string())));
    }
    let base = base_path(&session);
    show(&PreviewPage {
        frame: Frame::for_account(&session, "Send again").with_section("Deliveries"),
        list_address: filter_address(&base, values.text("filter")),
        base,
        endpoint,
        counts,
        lines: lines.into_iter().map(DeliveryLine::from).collect(),
        fields,
    })
}

/// Starts a replay of the deliveries that the preview showed.
async fn start_replay(
    state: web::Data<ApiState>,
    Accountant(session): Accountant,
    form: Form<FormValues>,
) -> Answer {
    let ChosenDeliveries { endpoint, range } =
        find_chosen_deliveries(&state, &session, &form.0).await?;
    let command = StartReplay {
        endpoint: endpoint.key,
        range,
        by: None,
    };
    let replay = session.send(&state, command).await?;
    let replay_path = format!("{}/webhooks/replays/{}", base_path(&session), replay.id);
    Ok(go_to(
        &replay_path,
        "They are sent again. This page shows how far it is.",
    ))
}

async fn show_replay(
    state: web::Data<ApiState>,
    Reader(session): Reader,
    ids: web::Path<(String, String)>,
) -> Answer {
    let id = path_ids::parse_uuid(&ids.1).ok_or(Refusal::ReplayNotFound)?;
    let found = replays::find_owned_by_id(&state.store, session.taxpayer, id).await?;
    let replay = found.ok_or(Refusal::ReplayNotFound)?;
    let endpoint = webhooks::find_by_key(state.store.reader(), replay.endpoint).await?;
    let is_active = endpoint.is_some_and(|endpoint| endpoint.is_active);
    let base = base_path(&session);
    show(&ReplayPage {
        frame: Frame::for_account(&session, "Replay").with_section("Webhooks"),
        endpoint_address: WebhookTarget::new(&session, replay.endpoint).path,
        deliveries_address: format!(
            "{base}/webhooks/deliveries?endpoint={}",
            replay.endpoint.name()
        ),
        base,
        badge: replay.state.into(),
        is_held: replay.is_open() && !is_active,
        replay,
    })
}

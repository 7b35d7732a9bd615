//! The log of a webhook's deliveries: the list; one delivery with its request and response; and the form that sends it
//! again.

use actix_web::web;
use askama::Template;
use url::form_urlencoded::Serializer;

use crate::actors::taxpayer::commands::StartReplay;
use crate::console::accounts::navigation::base_path;
use crate::console::accounts::webhook_target::endpoint_label;
use crate::console::badges::Badge;
use crate::console::filters;
use crate::console::form_values::{FormState, FormValues};
use crate::console::frame::Frame;
use crate::console::list_pages::{PagePosition, show_list};
use crate::console::page::{Answer, Form, go_to, show};
use crate::console::session::accounts::{AccountSession, Accountant, Reader};
use crate::domain::events::delivery::DeliveryState;
use crate::domain::events::endpoint::Endpoint;
use crate::domain::events::event::EventKind;
use crate::domain::events::replay::ReplayRange;
use crate::domain::kernel::fault::Faults;
use crate::domain::kernel::ids::{EndpointKey, TaxpayerId};
use crate::domain::kernel::refusal::Refusal;
use crate::http::extract::path_ids;
use crate::http::forms::query::Query;
use crate::http::paths::{Path, path};
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;
use crate::http::views::guidance::Guidance;
use crate::store::events;
use crate::store::webhooks;
use crate::store::webhooks::delivery_log::{self, DeliveryFilter, LoggedDelivery};

pub(crate) fn paths() -> Vec<Path> {
    vec![
        path("/dashboard/{taxpayer}/webhooks/deliveries").page(list_deliveries),
        path("/dashboard/{taxpayer}/webhooks/deliveries/{delivery}").page(show_delivery),
        path("/dashboard/{taxpayer}/webhooks/deliveries/{delivery}/resend").form(resend_delivery),
    ]
}

const PER_PAGE: u64 = 25;
const FILTERS: [&str; 4] = ["endpoint", "state", "event", "irn"];

#[derive(Template)]
#[template(path = "accounts/deliveries.html")]
struct DeliveriesPage {
    frame: Frame,
    base: String,
    filter: FormState,
    states: Vec<(&'static str, Badge)>,
    events: Vec<&'static str>,
    /// The endpoints to choose from, each as its name in the API and its URL; empty if there is no choice.
    endpoints: Vec<(String, String)>,
    rows: Vec<DeliveryLine>,
    /// The query of this list, for the acts on all deliveries that match.
    query: String,
    pages: PagePosition,
}

pub(in crate::console) struct DeliveryLine {
    pub(in crate::console) logged: LoggedDelivery,
    pub(in crate::console) badge: Badge,
    /// The result of the last attempt; empty before the first one.
    pub(in crate::console) last_result: String,
}

#[derive(Template)]
#[template(path = "accounts/delivery.html")]
struct DeliveryPage {
    frame: Frame,
    base: String,
    line: DeliveryLine,
    /// The description or the address of the endpoint; `None` if the endpoint was removed.
    endpoint: Option<String>,
    /// Why the delivery cannot be sent again; empty if it can.
    obstacle: &'static str,
    /// The address of the list of invoices, filtered by the IRN of the event.
    invoice: String,
    /// The event as the webhook gets it.
    body: String,
    why: String,
    what_to_do: &'static str,
}

async fn list_deliveries(
    state: web::Data<ApiState>,
    Reader(session): Reader,
    query: Query,
) -> Answer {
    let page = query.page(PER_PAGE);
    let endpoints = webhooks::owned_by_with_streaks(state.store.reader(), session.taxpayer).await?;
    let keys: Vec<_> = endpoints.iter().map(|(one, _)| one.key).collect();
    let name = query.trimmed_text("endpoint");
    let endpoint = choose_listed_endpoint(session.taxpayer, &keys, name.as_deref())?;
    let endpoint_name = endpoint.name();
    let values =
        FormValues::from(&query).with_fields([("endpoint", endpoint_name.as_str())].into());
    let state_filter = query.word("state", DeliveryState::parse, DeliveryState::allowed_words);
    let (found, filter) = match state_filter {
        Ok(state_filter) => {
            let event = query.trimmed_text("event");
            let irn = query.trimmed_text("irn");
            let filter = DeliveryFilter {
                state: state_filter,
                event,
                irn,
                since: None,
                endpoint: Some(endpoint),
            };
            let found =
                delivery_log::page_owned_by(&state.store, session.taxpayer, filter, page).await?;
            (found, FormState::new(values.clone()))
        }
        Err(fault) => (
            (Vec::new(), 0),
            FormState::with_faults(values.clone(), Faults::from(fault)),
        ),
    };
    let base = base_path(&session);
    let page = DeliveriesPage {
        frame: Frame::for_account(&session, "Deliveries"),
        pages: PagePosition::new(
            page,
            found.1,
            &format!("{base}/webhooks/deliveries"),
            &query,
        ),
        base,
        query: filter_query(&values),
        filter,
        states: DeliveryState::ALL
            .iter()
            .map(|one| (one.as_str(), (*one).into()))
            .collect(),
        events: EventKind::ALL.iter().map(|kind| kind.as_str()).collect(),
        endpoints: endpoints
            .iter()
            .filter(|_| endpoints.len() > 1)
            .map(|(one, _)| (one.key.name(), endpoint_label(one)))
            .collect(),
        rows: found.0.into_iter().map(DeliveryLine::from).collect(),
    };
    show_list(&page.pages, &page)
}

/// Returns the endpoint whose deliveries the list shows: the named one, or the first if none is named. `keys` are
/// those of the taxpayer's endpoints. Without any endpoint, returns the default one, whose list is empty. Fails if
/// the named endpoint does not exist any more: the deliveries of another one would be mistaken for its own.
fn choose_listed_endpoint(
    taxpayer: TaxpayerId,
    keys: &[EndpointKey],
    name: Option<&str>,
) -> Result<EndpointKey, Refusal> {
    let default = EndpointKey::from(taxpayer);
    let Some(name) = name else {
        return Ok(keys.first().copied().unwrap_or(default));
    };
    let mut known = keys.iter().copied().chain([default]);
    known
        .find(|key| key.name() == name)
        .ok_or(Refusal::EndpointNotFound)
}

/// Returns the address of the list with this query.
pub(super) fn filter_address(base: &str, query: &str) -> String {
    format!("{base}/webhooks/deliveries?{query}")
}

fn filter_query(values: &FormValues) -> String {
    let mut pairs = Serializer::new(String::new());
    for name in FILTERS
        .into_iter()
        .filter(|name| !values.text(name).is_empty())
    {
        pairs.append_pair(name, values.text(name));
    }
    pairs.finish()
}

/// Returns the delivery whose id is in the path. Fails if it is not a delivery of this taxpayer.
pub(super) async fn find(
    state: &ApiState,
    session: &AccountSession,
    text: &str,
) -> Result<LoggedDelivery, ApiError> {
    let id = path_ids::parse_uuid(text).ok_or(Refusal::DeliveryNotFound)?;
    let found = delivery_log::find_logged_owned_by_id(&state.store, session.taxpayer, id).await?;
    Ok(found.ok_or(Refusal::DeliveryNotFound)?)
}

async fn show_delivery(
    state: web::Data<ApiState>,
    Reader(session): Reader,
    ids: web::Path<(String, String)>,
) -> Answer {
    let logged = find(&state, &session, &ids.1).await?;
    let body = event_text(&state, session.taxpayer, logged.delivery.sequence).await?;
    let last = logged.attempts.last();
    let failure = last.and_then(|attempt| attempt.failure.as_deref());
    let guidance = failure.map(|failure| {
        Guidance::for_failure(Some(failure), last.and_then(|attempt| attempt.status))
    });
    let (why, what_to_do) = guidance
        .map(|advice| (advice.why, advice.what_to_do))
        .unwrap_or_default();
    let endpoint = webhooks::find_by_key(state.store.reader(), logged.delivery.endpoint).await?;
    let irn = logged.delivery.irn().unwrap_or_default();
    let query = Serializer::new(String::new())
        .append_pair("q", irn)
        .finish();
    show(&DeliveryPage {
        frame: Frame::for_account(&session, "Delivery"),
        base: base_path(&session),
        endpoint: endpoint.as_ref().map(endpoint_label),
        obstacle: resend_obstacle(endpoint.as_ref()),
        invoice: format!("{}/invoices?{query}", base_path(&session)),
        body,
        why,
        what_to_do,
        line: DeliveryLine::from(logged),
    })
}

/// Returns why no delivery is sent to this endpoint again; an empty text if one can be sent.
fn resend_obstacle(endpoint: Option<&Endpoint>) -> &'static str {
    match endpoint {
        None => "The endpoint was removed, so nothing more is sent to it.",
        Some(endpoint) if !endpoint.is_active => {
            "The endpoint is disabled. Enable it first, then send again."
        }
        Some(_) => "",
    }
}

/// Returns the event with this sequence number as a webhook gets it; an empty text if there is none.
pub(in crate::console) async fn event_text(
    state: &ApiState,
    taxpayer: TaxpayerId,
    sequence: i64,
) -> Result<String, ApiError> {
    let events = events::owned_by_after(&state.store, taxpayer, sequence - 1, 1).await?;
    let event = events.into_iter().find(|event| event.sequence == sequence);
    let text = event.map(|event| indent_json(&event.notification_json()));
    Ok(text.unwrap_or_default())
}

/// Returns a JSON text with one line for each member; a text that is not JSON is returned unchanged.
fn indent_json(text: &str) -> String {
    strict_json::from_trusted::<serde_json::Value>(text)
        .map_or_else(|_| text.to_owned(), |value| format!("{value:#}"))
}

/// POST …/resend: sends the event again, even if it was delivered.
async fn resend_delivery(
    state: web::Data<ApiState>,
    Accountant(session): Accountant,
    ids: web::Path<(String, String)>,
    _: Form<FormValues>,
) -> Answer {
    let delivery = find(&state, &session, &ids.1).await?.delivery;
    let command = StartReplay {
        endpoint: delivery.endpoint,
        range: ReplayRange::for_event(delivery.sequence),
        by: None,
    };
    session.send(&state, command).await?;
    let delivery_path = format!(
        "{}/webhooks/deliveries/{}",
        base_path(&session),
        delivery.id
    );
    Ok(go_to(
        &delivery_path,
        "It is sent again. Reload the page in a moment to see the answer.",
    ))
}

/// Returns in a few words why an attempt got no answer.
fn failure_words(failure: &str) -> String {
    match failure {
        "timed_out" => "no answer in time".to_owned(),
        "dns" => "the name does not resolve".to_owned(),
        "connect" => "no connection".to_owned(),
        "tls" => "no trusted TLS connection".to_owned(),
        "reset" => "the connection ended without an answer".to_owned(),
        other => other.replace('_', " "),
    }
}

impl From<LoggedDelivery> for DeliveryLine {
    fn from(logged: LoggedDelivery) -> Self {
        let last_result =
            logged
                .attempts
                .last()
                .map(|attempt| match (attempt.status, &attempt.failure) {
                    (Some(status), _) => format!("answered {status}"),
                    (None, Some(failure)) => failure_words(failure),
                    (None, None) => String::new(),
                });
        Self {
            badge: logged.delivery.state.into(),
            last_result: last_result.unwrap_or_default(),
            logged,
        }
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;

    #[test]
    fn an_attempt_without_an_answer_is_described_in_words() {
        for (failure, words) in [
            ("timed_out", "no answer in time"),
            ("connect", "no connection"),
            ("circuit_open", "circuit open"),
        ] {
            assert_eq!(failure_words(failure), words);
        }
    }

    #[test]
    fn a_delivery_is_offered_again_only_to_an_endpoint_that_takes_it() {
        let url = "https://erp.example".to_owned();
        let active = Endpoint::new(1, TaxpayerId(7), url, Timestamp::UNIX_EPOCH);
        let disabled = Endpoint {
            is_active: false,
            ..active.clone()
        };
        for (endpoint, word) in [
            (Some(&active), ""),
            (Some(&disabled), "disabled"),
            (None, "removed"),
        ] {
            let obstacle = resend_obstacle(endpoint);
            assert_eq!(obstacle.is_empty(), word.is_empty(), "{obstacle}");
            assert!(obstacle.contains(word), "{obstacle}");
        }
    }

    #[test]
    fn the_list_of_a_removed_endpoint_is_not_that_of_another_one() {
        let taxpayer = TaxpayerId(7);
        let default = EndpointKey::from(taxpayer);
        let [added, other] = [12, 13].map(EndpointKey::for_added_endpoint);
        for (keys, name, expected) in [
            (&[default, added][..], None, Some(default)),
            (&[default, added], Some("default"), Some(default)),
            (&[default, added], Some("12"), Some(added)),
            (&[default, added], Some("13"), None),
            (&[default, added], Some("odd"), None),
            (&[other], None, Some(other)),
            (&[other], Some("default"), Some(default)),
            (&[], None, Some(default)),
            (&[], Some("12"), None),
        ] {
            let found = choose_listed_endpoint(taxpayer, keys, name).ok();
            assert_eq!(found, expected, "{keys:?} {name:?}");
        }
    }
}

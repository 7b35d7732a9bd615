//! Deliveries to webhooks: the endpoints by their health, and the dead letters with their replay.

use actix_web::web;
use askama::Template;
use url::form_urlencoded::Serializer;

use crate::console::badges::Badge;
use crate::console::filters;
use crate::console::frame::Frame;
use crate::console::list_pages::{PagePosition, show_list};
use crate::console::operators::bulk::{self, BulkBar};
use crate::console::operators::dead_letter_moves::DeadLetterBulkList;
use crate::console::operators::endpoint_moves::EndpointBulkList;
use crate::console::operators::list_query::ListQuery;
use crate::console::operators::reason::ReasonForm;
use crate::console::operators::taxpayers::name_or_number;
use crate::console::page::{Answer, Form, go_to};
use crate::console::session::operators::{Operator, Viewer};
use crate::domain::events::endpoint_health::{
    CauseWords, CircuitState, EndpointHealth, FailureStreak,
};
use crate::domain::invoice::invoice_view::plain_time;
use crate::domain::kernel::ids::TaxpayerId;
use crate::http::api::ops::{dead_letters, webhook_endpoints};
use crate::http::forms::query::Query;
use crate::http::paths::{Path, path};
use crate::http::state::ApiState;
use crate::http::views::guidance::Guidance;
use crate::store::accounts::taxpayers;
use crate::store::webhooks::delivery_log::LoggedDelivery;
use crate::store::webhooks::endpoint_list::{FailingEndpointGroup, ListedEndpoint};
use crate::store::webhooks::{delivery_log, endpoint_list};

pub(super) fn paths() -> Vec<Path> {
    vec![
        path("/console/deliveries").page(list_endpoints),
        path("/console/deliveries/endpoints/move/preview").page(bulk::preview::<EndpointBulkList>),
        path("/console/deliveries/endpoints/move")
            .form(bulk::apply_previewed_act::<EndpointBulkList>),
        path("/console/deliveries/dead-letters").page(list_dead_letters),
        path("/console/deliveries/dead-letters/move/preview")
            .page(bulk::preview::<DeadLetterBulkList>),
        path("/console/deliveries/dead-letters/move")
            .form(bulk::apply_previewed_act::<DeadLetterBulkList>),
        path("/console/deliveries/dead-letters/{id}/replay").form(replay_dead_letter),
    ]
}

#[derive(Template)]
#[template(path = "operators/endpoints.html")]
struct EndpointsPage {
    frame: Frame,
    list: ListQuery,
    groups: Vec<GroupLine>,
    rows: Vec<EndpointLine>,
    pages: PagePosition,
    bulk: BulkBar,
}

/// The endpoints of one host that fail for the same reason.
struct GroupLine {
    text: String,
    address: String,
}

struct EndpointLine {
    listed: ListedEndpoint,
    taxpayer: String,
    url: String,
    badge: Badge,
    cause: String,
    why: String,
}

#[derive(Template)]
#[template(path = "operators/dead_letters.html")]
struct DeadLettersPage {
    frame: Frame,
    list: ListQuery,
    rows: Vec<DeadLetterLine>,
    pages: PagePosition,
    bulk: BulkBar,
}

struct DeadLetterLine {
    logged: LoggedDelivery,
    taxpayer: String,
    guidance: Guidance,
}

/// The maximum number of groups of failing endpoints that the page lists.
const GROUPS_MAX: usize = 5;

/// GET /console/deliveries: lists the webhook endpoints of all taxpayers.
async fn list_endpoints(
    state: web::Data<ApiState>,
    Viewer(session): Viewer,
    query: Query,
) -> Answer {
    let list = ListQuery::new(&query);
    let now = state.now();
    let filter = webhook_endpoints::read_filter(&list.0)?;
    let (found, total) = endpoint_list::page(&state.store, &filter, list.page()).await?;
    let owners: Vec<TaxpayerId> = found.iter().map(|one| one.endpoint.taxpayer_id).collect();
    let owners = taxpayers::find_by_ids(state.store.reader(), &owners).await?;
    let groups = endpoint_list::group_failing_endpoints(&state.store).await?;
    let rows = found.into_iter().map(|listed| {
        let streak = listed.streak.as_ref();
        let circuit = streak.map(|streak| streak.circuit_state(now));
        EndpointLine {
            badge: listed.health.into(),
            taxpayer: name_or_number(&owners, listed.endpoint.taxpayer_id),
            url: url_without_query(&listed.endpoint.url),
            cause: last_failure_cause(&listed),
            why: explain_health(&listed, circuit),
            listed,
        }
    });
    let page = EndpointsPage {
        frame: Frame::for_operator(&session, "Deliveries"),
        pages: list.pages("/console/deliveries", total),
        groups: groups
            .into_iter()
            .take(GROUPS_MAX)
            .map(GroupLine::from)
            .collect(),
        rows: rows.collect(),
        bulk: BulkBar::new::<EndpointBulkList>(&list),
        list,
    };
    show_list(&page.pages, &page)
}

/// GET /console/deliveries/dead-letters: lists the deliveries that failed for good.
async fn list_dead_letters(
    state: web::Data<ApiState>,
    Viewer(session): Viewer,
    query: Query,
) -> Answer {
    let list = ListQuery::new(&query);
    let taxpayer = list.0.taxpayer_id("taxpayer_id");
    let (found, total) =
        delivery_log::dead_letter_page(&state.store, taxpayer, list.page()).await?;
    let owners: Vec<TaxpayerId> = found.iter().map(|one| one.delivery.taxpayer_id).collect();
    let owners = taxpayers::find_by_ids(state.store.reader(), &owners).await?;
    let rows = found.into_iter().map(|logged| {
        let attempt = logged.attempts.last();
        let failure = attempt.and_then(|attempt| attempt.failure.as_deref());
        let status = attempt.and_then(|attempt| attempt.status);
        DeadLetterLine {
            guidance: Guidance::for_failure(failure, status),
            taxpayer: name_or_number(&owners, logged.delivery.taxpayer_id),
            logged,
        }
    });
    let page = DeadLettersPage {
        frame: Frame::for_operator(&session, "Deliveries"),
        pages: list.pages("/console/deliveries/dead-letters", total),
        rows: rows.collect(),
        bulk: BulkBar::new::<DeadLetterBulkList>(&list),
        list,
    };
    show_list(&page.pages, &page)
}

/// POST /console/deliveries/dead-letters/{id}/replay: queues a dead letter for delivery again.
async fn replay_dead_letter(
    state: web::Data<ApiState>,
    Operator(session): Operator,
    id: web::Path<String>,
    form: Form<ReasonForm>,
) -> Answer {
    let by = form.0.to_operator_request(&state, &session)?;
    dead_letters::replay_by_id(&state, &id, by).await?;
    Ok(go_to(
        "/console/deliveries/dead-letters",
        "The notification is sent again.",
    ))
}

impl From<EndpointHealth> for Badge {
    fn from(health: EndpointHealth) -> Self {
        let (class, text) = match health {
            EndpointHealth::Working => ("ok", "Working"),
            EndpointHealth::Failing => ("warn", "Failing"),
            EndpointHealth::Parked => ("bad", "Parked"),
            EndpointHealth::Disabled => ("idle", "Disabled"),
        };
        Self { class, text }
    }
}

/// Returns a URL without its query, which may contain a secret.
pub(super) fn url_without_query(url: &str) -> String {
    url.split(['?', '#']).next().unwrap_or_default().to_owned()
}

/// Says in one sentence what the deliveries of an endpoint wait for.
fn explain_health(listed: &ListedEndpoint, circuit: Option<CircuitState>) -> String {
    let since = listed.streak.as_ref().map_or_else(String::new, |streak| {
        format!("{} UTC", plain_time(streak.since))
    });
    match (listed.health, circuit) {
        (EndpointHealth::Disabled, _) => {
            let reason = listed
                .endpoint
                .disabled_reason
                .as_deref()
                .unwrap_or("It was disabled.");
            format!("{reason} Nothing is sent until it is enabled again.")
        }
        (_, Some(CircuitState::Parked(until))) if listed.pending > 0 => format!(
            "It has only failed since {since}. One notification is sent as a probe at {} UTC; a success lets the others follow.",
            plain_time(until)
        ),
        (_, Some(CircuitState::Parked(_) | CircuitState::Probe)) => {
            format!("It has only failed since {since}. The next notification is sent as a probe.")
        }
        (EndpointHealth::Failing | EndpointHealth::Parked, _) => {
            format!(
                "It has failed since {since}. Each notification is tried again by its schedule."
            )
        }
        (EndpointHealth::Working, _) if listed.pending > 0 => {
            "Its notifications are being sent.".to_owned()
        }
        (EndpointHealth::Working, _) => "Nothing waits.".to_owned(),
    }
}

/// Returns the cause of an endpoint's last failure in a few words; empty while it works.
pub(super) fn last_failure_cause(listed: &ListedEndpoint) -> String {
    let cause = listed.streak.as_ref().map(FailureStreak::last_cause);
    cause.map_or_else(String::new, |cause| CauseWords::new(&cause).label)
}

impl From<FailingEndpointGroup> for GroupLine {
    fn from(group: FailingEndpointGroup) -> Self {
        let FailingEndpointGroup {
            host,
            cause,
            endpoints,
        } = group;
        let words = CauseWords::new(&cause);
        let text = if endpoints == 1 {
            format!("1 endpoint of host {host}: {}", words.label)
        } else {
            format!("{endpoints} endpoints of host {host} {}", words.several)
        };
        let mut filter = Serializer::new(String::new());
        filter
            .append_pair("host", &host)
            .append_pair("cause", &cause);
        Self {
            text,
            address: format!("/console/deliveries?{}", filter.finish()),
        }
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use uuid::Uuid;

    use super::*;
    use crate::console::operators::list_query::PER_PAGE;
    use crate::console::operators::navigation::navigation;
    use crate::domain::events::delivery::{
        Delivery, DeliveryAttempt, DeliveryState, PhaseDurations,
    };
    use crate::domain::events::event::EventKind;
    use crate::domain::kernel::crash::CrashHistory;

    fn dead_letter(irn: &str) -> DeadLetterLine {
        let delivery = Delivery {
            id: Uuid::max(),
            taxpayer_id: TaxpayerId(1_234_567),
            endpoint: TaxpayerId(1_234_567).into(),
            event_id: Uuid::nil(),
            sequence: 1,
            order_key: irn.to_owned(),
            state: DeliveryState::Dead,
            attempts: 12,
            attempts_before: 0,
            next_attempt_at: None,
            crash_history: CrashHistory::default(),
        };
        let attempt = DeliveryAttempt {
            at: Timestamp::UNIX_EPOCH,
            status: None,
            failure: Some("auth".to_owned()),
            duration_ms: 1,
            phases: PhaseDurations::default(),
            response: "x".repeat(1_000),
            headers: None,
        };
        DeadLetterLine {
            logged: LoggedDelivery {
                delivery,
                kind: EventKind::ALL[0],
                attempts: vec![attempt],
            },
            taxpayer: "A taxpayer with a long name ".repeat(3),
            guidance: Guidance::for_failure(Some("auth"), None),
        }
    }

    #[test]
    fn a_full_page_of_dead_letters_with_long_numbers_is_below_60_kb() {
        let irn = format!("{}-94AD90FB-20261121", "N".repeat(57));
        let list = ListQuery::new(&Query::from_text(""));
        let page = DeadLettersPage {
            frame: Frame {
                navigation: navigation(),
                can_act: true,
                ..Frame::for_visitor("Deliveries")
            },
            rows: (0..PER_PAGE).map(|_| dead_letter(&irn)).collect(),
            pages: list.pages("/console/deliveries/dead-letters", 1_000),
            bulk: BulkBar::new::<DeadLetterBulkList>(&list),
            list,
        };
        let html = page.render().unwrap();
        assert!(html.contains(&irn) && html.len() < 60_000, "{}", html.len());
    }
}

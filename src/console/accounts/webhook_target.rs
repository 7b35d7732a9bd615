//! The endpoint that a page is about. The pages of the default endpoint are under `/webhooks`, those of any other
//! endpoint under `/webhooks/endpoints/{endpoint}`.

use std::collections::HashMap;

use actix_web::HttpRequest;

use crate::console::accounts::navigation::base_path;
use crate::console::accounts::webhook_health::WebhookHealth;
use crate::console::badges::Badge;
use crate::console::session::accounts::AccountSession;
use crate::domain::events::endpoint::Endpoint;
use crate::domain::kernel::ids::EndpointKey;
use crate::domain::kernel::refusal::Refusal;
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;
use crate::store::webhooks;
use crate::store::webhooks::delivery_log::UndeliveredCounts;

pub(super) struct WebhookTarget {
    pub(super) key: EndpointKey,
    /// The path that the pages of the endpoint begin with.
    pub(super) path: String,
}

impl WebhookTarget {
    pub(super) fn new(session: &AccountSession, key: EndpointKey) -> Self {
        let path = base_path(session) + &endpoint_path(key);
        Self { key, path }
    }

    /// Returns the endpoint that the path names, or the default one if the path names none.
    pub(super) async fn find(
        state: &ApiState,
        session: &AccountSession,
        request: &HttpRequest,
    ) -> Result<Self, ApiError> {
        let Some(name) = request.match_info().get("endpoint") else {
            return Ok(Self::new(session, session.taxpayer.into()));
        };
        let found = webhooks::find_owned_by_name(state.store.reader(), session.taxpayer, name);
        let (endpoint, _) = found.await?.ok_or(Refusal::EndpointNotFound)?;
        Ok(Self::new(session, endpoint.key))
    }

    pub(super) fn is_default(&self) -> bool {
        self.key.is_default()
    }

    /// Returns the name of the form field for the URL, which is that of the API call for this kind of endpoint.
    pub(super) fn url_field(&self) -> &'static str {
        if self.is_default() {
            "webhook_url"
        } else {
            "url"
        }
    }
}

/// Returns the path that the pages of an endpoint begin with, below that of its taxpayer.
pub(super) fn endpoint_path(key: EndpointKey) -> String {
    if key.is_default() {
        "/webhooks".to_owned()
    } else {
        format!("/webhooks/endpoints/{}", key.name())
    }
}

/// Returns the description of an endpoint, or its URL if it has none.
pub(super) fn endpoint_label(endpoint: &Endpoint) -> String {
    let description = endpoint.description.as_ref();
    description.unwrap_or(&endpoint.url).clone()
}

/// An added endpoint in the list of the page of webhooks.
pub(super) struct EndpointLine {
    pub(super) endpoint: Endpoint,
    pub(super) path: String,
    pub(super) badge: Badge,
    pub(super) undelivered: UndeliveredCounts,
}

/// Returns the endpoints other than the default one, each with the numbers of its undelivered events.
pub(super) async fn added_endpoints(
    state: &ApiState,
    session: &AccountSession,
    undelivered: &HashMap<EndpointKey, UndeliveredCounts>,
) -> Result<Vec<EndpointLine>, ApiError> {
    let id = session.taxpayer;
    let mut lines = Vec::new();
    for (endpoint, streak) in webhooks::owned_by_with_streaks(state.store.reader(), id).await? {
        if endpoint.key.is_default() {
            continue;
        }
        lines.push(EndpointLine {
            path: WebhookTarget::new(session, endpoint.key).path,
            badge: WebhookHealth::from_endpoint(Some(&endpoint), streak.as_ref()).badge,
            undelivered: undelivered.get(&endpoint.key).copied().unwrap_or_default(),
            endpoint,
        });
    }
    Ok(lines)
}

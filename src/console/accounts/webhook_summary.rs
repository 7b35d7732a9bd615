//! A summary of all webhook endpoints of an account: the worst health, and the numbers of failed deliveries.

use std::cmp::Reverse;
use std::collections::HashMap;

use crate::console::accounts::webhook_health::WebhookHealth;
use crate::console::accounts::webhook_target::{endpoint_label, endpoint_path};
use crate::domain::kernel::ids::{EndpointKey, TaxpayerId};
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;
use crate::store::webhooks::delivery_log::{self, UndeliveredCounts};
use crate::store::webhooks::{self, EndpointWithStreak};

pub(super) struct WebhookSummary {
    /// The health of the endpoint whose health is worst.
    pub(super) health: WebhookHealth,
    /// The label of this endpoint; empty if the account has only one.
    pub(super) endpoint: String,
    /// The path of this endpoint's page, below that of the account.
    pub(super) path: String,
    /// The number of endpoints that fail or are disabled.
    pub(super) failing_count: u64,
    /// The endpoints with failed deliveries, those with the most first.
    pub(super) dead: Vec<DeadLetters>,
}

/// The failed deliveries to one endpoint.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct DeadLetters {
    pub(super) count: u64,
    /// The label of the endpoint; empty if the account has only one.
    pub(super) endpoint: String,
    /// The path of the list of these deliveries, below that of the account.
    pub(super) path: String,
}

impl WebhookSummary {
    pub(super) async fn load(state: &ApiState, taxpayer: TaxpayerId) -> Result<Self, ApiError> {
        let endpoints = webhooks::owned_by_with_streaks(state.store.reader(), taxpayer).await?;
        let undelivered =
            delivery_log::count_undelivered_by_endpoint(&state.store, taxpayer).await?;
        let summary = Self::new(taxpayer, &endpoints, &undelivered);
        Ok(Self {
            health: summary.health.without_past_time(state.now()),
            ..summary
        })
    }

    fn new(
        taxpayer: TaxpayerId,
        endpoints: &[EndpointWithStreak],
        undelivered: &HashMap<EndpointKey, UndeliveredCounts>,
    ) -> Self {
        let healths = endpoints.iter().map(endpoint_health);
        let failing_count = healths.map(|health| u64::from(health.is_failing())).sum();
        let worst = endpoints
            .iter()
            .min_by_key(|one| Reverse(endpoint_health(one).severity()));
        let key = worst.map_or(taxpayer.into(), |(endpoint, _)| endpoint.key);
        let dead = undelivered
            .iter()
            .filter(|(_, undelivered)| undelivered.dead > 0);
        let mut dead: Vec<_> = dead
            .map(|(key, undelivered)| DeadLetters {
                count: undelivered.dead.unsigned_abs(),
                endpoint: label_unless_single(endpoints, *key),
                path: format!("/webhooks/deliveries?endpoint={}&state=dead", key.name()),
            })
            .collect();
        dead.sort_by_key(|one| (Reverse(one.count), one.path.clone()));
        Self {
            health: worst.map_or_else(|| WebhookHealth::from_endpoint(None, None), endpoint_health),
            endpoint: label_unless_single(endpoints, key),
            path: endpoint_path(key),
            failing_count,
            dead,
        }
    }
}

fn endpoint_health((endpoint, streak): &EndpointWithStreak) -> WebhookHealth {
    WebhookHealth::from_endpoint(Some(endpoint), streak.as_ref())
}

/// Returns the label of an endpoint; an empty text if it is the only one.
fn label_unless_single(endpoints: &[EndpointWithStreak], key: EndpointKey) -> String {
    let mut all = endpoints.iter().map(|(endpoint, _)| endpoint);
    let found = all.find(|endpoint| endpoint.key == key);
    let found = found.filter(|_| endpoints.len() > 1);
    found.map(endpoint_label).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;
    use crate::domain::events::endpoint::Endpoint;

    const TAXPAYER: TaxpayerId = TaxpayerId(7);
    const ADDED: EndpointKey = EndpointKey(-3);

    fn endpoint(key: EndpointKey, is_active: bool) -> EndpointWithStreak {
        let url = format!("https://{}.example", key.name());
        let endpoint = Endpoint::new(1, TAXPAYER, url, Timestamp::UNIX_EPOCH);
        let endpoint = Endpoint {
            key,
            is_active,
            ..endpoint
        };
        (endpoint, None)
    }

    #[test]
    fn the_worst_endpoint_speaks_for_all_and_failed_deliveries_are_found_at_their_own() {
        let default = EndpointKey::from(TAXPAYER);
        let (fine, bad) = (true, false);
        // The endpoints, the endpoints with a failed delivery, and the badge, label and page of the summary.
        let cases = [
            (vec![], vec![], ("Not set up", "", "/webhooks", 0)),
            (
                vec![(default, fine)],
                vec![],
                ("Healthy", "", "/webhooks", 0),
            ),
            (
                vec![(default, bad)],
                vec![default],
                ("Disabled", "", "/webhooks", 1),
            ),
            (
                vec![(default, fine), (ADDED, bad)],
                vec![ADDED],
                ("Disabled", "https://3.example", "/webhooks/endpoints/3", 1),
            ),
            (
                vec![(default, bad), (ADDED, bad)],
                vec![default, ADDED],
                ("Disabled", "https://default.example", "/webhooks", 2),
            ),
            (
                vec![(ADDED, fine)],
                vec![],
                ("Healthy", "", "/webhooks/endpoints/3", 0),
            ),
        ];
        for (endpoints, dead, expected) in cases {
            let all: Vec<_> = endpoints
                .iter()
                .map(|(key, is_active)| endpoint(*key, *is_active))
                .collect();
            let counts = UndeliveredCounts {
                pending: 5,
                dead: 2,
            };
            let undelivered = dead.iter().map(|key| (*key, counts)).collect();
            let summary = WebhookSummary::new(TAXPAYER, &all, &undelivered);
            let (badge, label, path, failing) = expected;
            assert_eq!(summary.health.badge.text, badge, "{endpoints:?}");
            assert_eq!(summary.endpoint, label, "{endpoints:?}");
            assert_eq!(summary.path, path, "{endpoints:?}");
            assert_eq!(summary.failing_count, failing, "{endpoints:?}");
            let links: Vec<_> = summary.dead.iter().map(|one| one.path.clone()).collect();
            let wanted = dead.iter().map(|key| {
                let name = key.name();
                format!("/webhooks/deliveries?endpoint={name}&state=dead")
            });
            let mut wanted: Vec<_> = wanted.collect();
            wanted.sort();
            assert_eq!(links, wanted, "{endpoints:?}");
        }
    }
}

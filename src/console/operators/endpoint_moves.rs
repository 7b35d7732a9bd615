//! Enables many webhook endpoints at once, so that the events that wait for them are sent now.

use database::page::Page;

use crate::actors::taxpayer::commands::EnableEndpoint;
use crate::console::operators::bulk::{
    ActWords, BulkList, BulkListAct, FoundSubjects, ListSelection, SubjectLine,
};
use crate::console::operators::deliveries::{last_failure_cause, url_without_query};
use crate::console::operators::taxpayers::name_or_number;
use crate::domain::events::replay::AfterEnable;
use crate::domain::kernel::audit::{AuditAction, OperatorRequest};
use crate::domain::kernel::ids::{EndpointKey, TaxpayerId};
use crate::http::api::ops::bulk::{BulkOutcome, SUBJECTS_MAX};
use crate::http::api::ops::webhook_endpoints;
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;
use crate::store::accounts::taxpayers;
use crate::store::webhooks::endpoint_list::{self, EndpointFilter, ListedEndpoint};

/// The list of the webhook endpoints of all taxpayers, with the acts that enable many of them.
pub(super) struct EndpointBulkList;

const ACTS: [BulkListAct<AfterEnable>; 2] = [
    BulkListAct {
        target: AfterEnable::None,
        words: ActWords {
            word: "enable",
            label: "Try again now",
            past_participle: "tried again",
            effect: "Each endpoint is enabled and counts as healthy until it fails again, so what waits is sent now.",
        },
    },
    BulkListAct {
        target: AfterEnable::Missing,
        words: ActWords {
            word: "enable-missing",
            label: "Try again and send what was missed",
            past_participle: "tried again",
            effect: "Each endpoint is enabled, and gets what waits and what happened while it was disabled.",
        },
    },
];

impl BulkList for EndpointBulkList {
    type Target = AfterEnable;
    type Subject = ListedEndpoint;
    const LIST_PATH: &'static str = "/console/deliveries";
    const MOVE_PATH: &'static str = "/console/deliveries/endpoints/move";
    const TITLE: &'static str = "Deliveries";
    const NOUNS: [&'static str; 2] = ["endpoint", "endpoints"];
    const ACTS: &'static [BulkListAct<AfterEnable>] = &ACTS;
    const AUDITED_AS: AuditAction = AuditAction::MoveEndpoints;
    const BULK_NEEDS_FILTER: bool = false;
    const FILTERS: &'static [&'static str] = &webhook_endpoints::FILTER_NAMES;

    /// Endpoints whose deliveries succeed are left out, because nothing has to be tried again.
    async fn find_subjects(
        state: &ApiState,
        _: AfterEnable,
        selection: ListSelection<'_>,
    ) -> Result<FoundSubjects<ListedEndpoint>, ApiError> {
        let filter = match selection.filter {
            Some(list) => webhook_endpoints::read_filter(&list.0)?,
            None => EndpointFilter::default(),
        };
        let keys = selection.ids.map(|ids| ids.iter());
        let keys = keys.map(|ids| ids.filter_map(|id| id.parse().ok()).map(EndpointKey));
        let filter = EndpointFilter {
            is_troubled: true,
            keys: keys.map(Iterator::collect),
            ..filter
        };
        let first = Page {
            number: 1,
            per_page: SUBJECTS_MAX,
        };
        let (subjects, total) = endpoint_list::page(&state.store, &filter, first).await?;
        Ok(FoundSubjects {
            beyond_max: total.saturating_sub(subjects.len() as u64),
            subjects,
            refusals: Vec::new(),
        })
    }

    fn subject_id(listed: &ListedEndpoint) -> String {
        listed.endpoint.key.to_string()
    }

    async fn subject_lines(
        state: &ApiState,
        subjects: &[ListedEndpoint],
    ) -> Result<Vec<SubjectLine>, ApiError> {
        let ids: Vec<TaxpayerId> = subjects
            .iter()
            .map(|listed| listed.endpoint.taxpayer_id)
            .collect();
        let owners = taxpayers::find_by_ids(state.store.reader(), &ids).await?;
        let lines = subjects.iter().map(|listed| SubjectLine {
            taxpayer: name_or_number(&owners, listed.endpoint.taxpayer_id),
            cause: last_failure_cause(listed),
            name: url_without_query(&listed.endpoint.url),
        });
        Ok(lines.collect())
    }

    async fn apply_act_to_subjects(
        state: &ApiState,
        target: AfterEnable,
        subjects: Vec<ListedEndpoint>,
        by: &OperatorRequest,
    ) -> BulkOutcome {
        let mut outcome = BulkOutcome::default();
        for listed in subjects {
            let taxpayer = listed.endpoint.taxpayer_id;
            let command = EnableEndpoint {
                endpoint: listed.endpoint.key,
                replay: target.scope(),
                reason: by.reason.clone(),
            };
            let sent = state.taxpayers.send(taxpayer, command).await;
            let result = sent.map(drop).map_err(ApiError::from);
            outcome.add_result(vec![Self::subject_id(&listed)], result);
            if outcome.failure.is_some() {
                break;
            }
        }
        outcome
    }
}

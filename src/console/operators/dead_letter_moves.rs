//! Sends many dead letters again at once: one replay for each endpoint.

use uuid::Uuid;

use crate::console::operators::bulk::{
    ActWords, BulkList, BulkListAct, FoundSubjects, ListSelection, SubjectLine,
};
use crate::console::operators::taxpayers::name_or_number;
use crate::domain::events::delivery::Delivery;
use crate::domain::kernel::audit::{AuditAction, OperatorRequest};
use crate::domain::kernel::ids::TaxpayerId;
use crate::http::api::ops::bulk::{BulkOutcome, SUBJECTS_MAX};
use crate::http::api::ops::dead_letters;
use crate::http::extract::path_ids;
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;
use crate::http::views::guidance::Guidance;
use crate::store::accounts::taxpayers;
use crate::store::webhooks::delivery_log::{self, LoggedDelivery};

/// The list of the dead letters of all taxpayers, with the act that sends many of them again.
pub(super) struct DeadLetterBulkList;

const ACTS: [BulkListAct<()>; 1] = [BulkListAct {
    target: (),
    words: ActWords {
        word: "replay",
        label: "Replay",
        past_participle: "sent again",
        effect: "Each notification is sent again, and becomes a dead letter again if its attempts fail.",
    },
}];

impl BulkList for DeadLetterBulkList {
    type Target = ();
    type Subject = Delivery;
    const LIST_PATH: &'static str = "/console/deliveries/dead-letters";
    const MOVE_PATH: &'static str = "/console/deliveries/dead-letters/move";
    const TITLE: &'static str = "Deliveries";
    const NOUNS: [&'static str; 2] = ["dead letter", "dead letters"];
    const ACTS: &'static [BulkListAct<()>] = &ACTS;
    const AUDITED_AS: AuditAction = AuditAction::MoveDeadLetters;
    const BULK_NEEDS_FILTER: bool = false;
    const FILTERS: &'static [&'static str] = &["taxpayer_id"];

    async fn find_subjects(
        state: &ApiState,
        (): (),
        selection: ListSelection<'_>,
    ) -> Result<FoundSubjects<Delivery>, ApiError> {
        let taxpayer = selection
            .filter
            .and_then(|list| list.0.taxpayer_id("taxpayer_id"));
        let ids = selection.ids.map(|ids| ids.iter());
        let ids: Option<Vec<Uuid>> =
            ids.map(|ids| ids.filter_map(|id| path_ids::parse_uuid(id)).collect());
        let (subjects, total) =
            delivery_log::oldest_dead_letters(&state.store, taxpayer, ids.as_deref(), SUBJECTS_MAX)
                .await?;
        Ok(FoundSubjects {
            beyond_max: total.saturating_sub(subjects.len() as u64),
            subjects,
            refusals: Vec::new(),
        })
    }

    fn subject_id(dead: &Delivery) -> String {
        dead.id.to_string()
    }

    async fn subject_lines(
        state: &ApiState,
        subjects: &[Delivery],
    ) -> Result<Vec<SubjectLine>, ApiError> {
        let ids: Vec<TaxpayerId> = subjects.iter().map(|dead| dead.taxpayer_id).collect();
        let owners = taxpayers::find_by_ids(state.store.reader(), &ids).await?;
        let mut lines = Vec::new();
        for Delivery {
            id, taxpayer_id, ..
        } in subjects
        {
            let logged =
                delivery_log::find_logged_owned_by_id(&state.store, *taxpayer_id, *id).await?;
            lines.push(SubjectLine {
                taxpayer: name_or_number(&owners, *taxpayer_id),
                cause: logged.as_ref().map(last_failure).unwrap_or_default(),
                name: logged.map_or_else(String::new, |logged| logged.kind.to_string()),
            });
        }
        Ok(lines)
    }

    async fn apply_act_to_subjects(
        state: &ApiState,
        (): (),
        mut subjects: Vec<Delivery>,
        by: &OperatorRequest,
    ) -> BulkOutcome {
        let mut outcome = BulkOutcome::default();
        subjects.sort_by_key(|dead| dead.endpoint);
        for dead in subjects.chunk_by(|one, other| one.endpoint == other.endpoint) {
            let sent = dead_letters::replay_deliveries(state, dead, by).await;
            outcome.add_result(dead.iter().map(Self::subject_id).collect(), sent);
            if outcome.failure.is_some() {
                break;
            }
        }
        outcome
    }
}

/// Says why the last attempt of a notification failed.
fn last_failure(logged: &LoggedDelivery) -> String {
    let last = logged.attempts.last();
    let failure = last.and_then(|attempt| attempt.failure.as_deref());
    Guidance::for_failure(failure, last.and_then(|attempt| attempt.status)).why
}

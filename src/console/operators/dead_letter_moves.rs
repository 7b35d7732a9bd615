//! Replays of many dead letters at once: ticked ones each by itself, and all that match by taxpayer.

use database::page::Page;

use crate::console::operators::bulk::{Act, ActWords, BulkList, Found, Selection, SubjectLine};
use crate::console::operators::taxpayers::name_or_number;
use crate::domain::events::delivery::Delivery;
use crate::domain::kernel::audit::{AuditAction, OperatorRequest};
use crate::domain::kernel::ids::TaxpayerId;
use crate::http::api::ops::bulk::{BulkOutcome, BulkRefusal};
use crate::http::api::ops::dead_letters;
use crate::http::extract::path_ids;
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;
use crate::http::views::guidance::Guidance;
use crate::store::accounts::taxpayers;
use crate::store::webhooks::delivery_log::{self, LoggedDelivery};

/// The dead letters of all taxpayers.
pub(super) struct DeadLetters;

/// Dead letters that one replay sends again.
pub(super) enum Replayed {
    One(LoggedDelivery),
    /// All of a taxpayer, with their number.
    AllOf(TaxpayerId, usize),
}

const ACTS: [Act<()>; 1] = [Act {
    to: (),
    words: ActWords {
        word: "replay",
        label: "Replay",
        done: "sent again",
        effect: "Each notification is sent again, and becomes a dead letter again if its attempts fail.",
    },
}];

/// The maximum number of taxpayers whose dead letters one act sends again.
const TAXPAYERS_MAX: u64 = 1_000;

impl BulkList for DeadLetters {
    type To = ();
    type Subject = Replayed;
    const LIST_PATH: &'static str = "/console/deliveries/dead-letters";
    const MOVE_PATH: &'static str = "/console/deliveries/dead-letters/move";
    const TITLE: &'static str = "Deliveries";
    const NOUNS: [&'static str; 2] = ["dead letter", "dead letters"];
    const ACTS: &'static [Act<()>] = &ACTS;
    const AUDITED_AS: AuditAction = AuditAction::MoveDeadLetters;
    const NEEDS_FILTER: bool = false;

    async fn find(
        state: &ApiState,
        (): (),
        selection: &Selection,
    ) -> Result<Found<Replayed>, ApiError> {
        match selection {
            Selection::Ticked(ids) => find_ticked(state, ids).await,
            Selection::Matching(list) => {
                let taxpayer = list.0.taxpayer_id("taxpayer_id");
                let owners =
                    delivery_log::count_dead_by_taxpayer(&state.store, taxpayer, TAXPAYERS_MAX);
                let owners = owners.await?;
                Ok(Found {
                    subjects: owners
                        .into_iter()
                        .map(|(taxpayer, count)| Replayed::AllOf(taxpayer, count))
                        .collect(),
                    others: 0,
                    refusals: Vec::new(),
                })
            }
        }
    }

    fn count(subject: &Replayed) -> usize {
        match subject {
            Replayed::One(_) => 1,
            Replayed::AllOf(_, count) => *count,
        }
    }

    async fn lines(state: &ApiState, subjects: &[Replayed]) -> Result<Vec<SubjectLine>, ApiError> {
        let ids: Vec<TaxpayerId> = subjects.iter().map(Replayed::taxpayer).collect();
        let owners = taxpayers::with_ids(state.store.reader(), &ids).await?;
        let mut lines = Vec::new();
        for subject in subjects {
            let taxpayer = subject.taxpayer();
            let (logged, name) = match subject {
                Replayed::One(logged) => (Some(logged.clone()), logged.kind.to_string()),
                Replayed::AllOf(_, count) => {
                    let newest = Page {
                        number: 1,
                        per_page: 1,
                    };
                    let (found, _) =
                        delivery_log::dead_page(&state.store, Some(taxpayer), newest).await?;
                    (found.into_iter().next(), format!("All {count}"))
                }
            };
            lines.push(SubjectLine {
                taxpayer: name_or_number(&owners, taxpayer),
                cause: logged.as_ref().map(last_failure).unwrap_or_default(),
                name,
            });
        }
        Ok(lines)
    }

    async fn apply(
        state: &ApiState,
        (): (),
        subjects: Vec<Replayed>,
        by: &OperatorRequest,
    ) -> BulkOutcome {
        let mut outcome = BulkOutcome::default();
        for subject in subjects {
            let count = Self::count(&subject);
            let (id, sent) = match &subject {
                Replayed::One(logged) => {
                    let id = logged.delivery.id.to_string();
                    let sent = dead_letters::replay_one(state, &id, by.clone()).await;
                    (id, sent)
                }
                Replayed::AllOf(taxpayer, _) => {
                    let sent = dead_letters::replay_all(state, *taxpayer, None, by.clone()).await;
                    (taxpayer.to_string(), sent)
                }
            };
            outcome.add(&id, count, sent.map(drop));
            if outcome.failure.is_some() {
                break;
            }
        }
        outcome
    }
}

impl Replayed {
    fn taxpayer(&self) -> TaxpayerId {
        match self {
            Self::One(logged) => logged.delivery.taxpayer_id,
            Self::AllOf(taxpayer, _) => *taxpayer,
        }
    }
}

async fn find_ticked(state: &ApiState, ids: &[String]) -> Result<Found<Replayed>, ApiError> {
    let mut found = Found {
        subjects: Vec::new(),
        others: 0,
        refusals: Vec::new(),
    };
    for id in ids {
        match find_dead(state, id).await? {
            Some(logged) => found.subjects.push(Replayed::One(logged)),
            None => found.refusals.push(BulkRefusal {
                id: id.clone(),
                message: "It is no dead letter any more".to_owned(),
            }),
        }
    }
    Ok(found)
}

async fn find_dead(state: &ApiState, id: &str) -> Result<Option<LoggedDelivery>, ApiError> {
    let Some(id) = path_ids::uuid(id) else {
        return Ok(None);
    };
    let Some(Delivery { taxpayer_id, .. }) = delivery_log::dead_with_id(&state.store, id).await?
    else {
        return Ok(None);
    };
    Ok(delivery_log::logged_owned_by_with_id(&state.store, taxpayer_id, id).await?)
}

/// Says why a notification was given up.
fn last_failure(logged: &LoggedDelivery) -> String {
    let last = logged.attempts.last();
    let failure = last.and_then(|attempt| attempt.failure.as_deref());
    Guidance::for_failure(failure, last.and_then(|attempt| attempt.status)).why
}

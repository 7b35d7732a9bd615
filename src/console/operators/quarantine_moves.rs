//! Replays or drops many quarantined commands, deliveries and runs at once.

use database::page::Page;

use crate::actors::taxpayer::commands::ApplyOperatorAction;
use crate::console::operators::bulk::{
    ActWords, BulkList, BulkListAct, FoundSubjects, ListSelection, SubjectLine,
};
use crate::console::operators::taxpayers::name_or_number;
use crate::domain::kernel::audit::{AuditAction, OperatorRequest};
use crate::domain::kernel::ids::TaxpayerId;
use crate::domain::pipeline::OperatorAction;
use crate::domain::quarantine::{QuarantineState, QuarantinedWork, WorkKind};
use crate::http::api::ops::bulk::{BulkOutcome, BulkRefusal, SUBJECTS_MAX};
use crate::http::api::ops::{dead_letters, quarantine};
use crate::http::extract::path_ids;
use crate::http::respond::code::ErrorCode;
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;
use crate::store::accounts::taxpayers;
use crate::store::operations::quarantine_list::{self, QuarantineFilter};

/// The list of all work in quarantine, with the acts that replay or drop many pieces of it.
pub(super) struct QuarantineBulkList;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ReleaseAct {
    Replay,
    Drop,
}

const ACTS: [BulkListAct<ReleaseAct>; 2] = [
    BulkListAct {
        target: ReleaseAct::Replay,
        words: ActWords {
            word: "replay",
            label: "Replay",
            past_participle: "replayed",
            effect: "Runs and deliveries go on, and commands are executed once more. What crashes again comes back here.",
        },
    },
    BulkListAct {
        target: ReleaseAct::Drop,
        words: ActWords {
            word: "drop",
            label: "Drop",
            past_participle: "dropped",
            effect: "Runs are cancelled, commands are not executed, and deliveries stay dead letters.",
        },
    },
];

impl BulkList for QuarantineBulkList {
    type Target = ReleaseAct;
    type Subject = QuarantinedWork;
    const LIST_PATH: &'static str = "/console/quarantine";
    const MOVE_PATH: &'static str = "/console/quarantine/move";
    const TITLE: &'static str = "Quarantine";
    const NOUNS: [&'static str; 2] = ["piece of work", "pieces of work"];
    const ACTS: &'static [BulkListAct<ReleaseAct>] = &ACTS;
    const AUDITED_AS: AuditAction = AuditAction::MoveQuarantine;
    const BULK_NEEDS_FILTER: bool = false;
    const FILTERS: &'static [&'static str] = &quarantine::FILTER_NAMES;

    async fn find_subjects(
        state: &ApiState,
        target: ReleaseAct,
        selection: ListSelection<'_>,
    ) -> Result<FoundSubjects<QuarantinedWork>, ApiError> {
        let filter = match selection.filter {
            Some(list) => quarantine::read_filter(&list.0)?,
            None => QuarantineFilter::default(),
        };
        let filter_with_state = QuarantineFilter {
            state: filter.state.or(Some(QuarantineState::Kept)),
            references: selection.ids.map(<[String]>::to_vec),
            ..filter
        };
        let first = Page {
            number: 1,
            per_page: SUBJECTS_MAX,
        };
        let (all, total) = quarantine_list::page(&state.store, &filter_with_state, first).await?;
        let beyond_max = total.saturating_sub(all.len() as u64);
        let (subjects, refused): (Vec<_>, Vec<_>) =
            all.into_iter().partition(|work| target.is_allowed(work));
        let refusals = refused.into_iter().map(|work| BulkRefusal {
            id: work.reference,
            message: work.guidance,
        });
        Ok(FoundSubjects {
            subjects,
            beyond_max,
            refusals: refusals.collect(),
        })
    }

    fn subject_id(work: &QuarantinedWork) -> String {
        work.reference.clone()
    }

    async fn subject_lines(
        state: &ApiState,
        subjects: &[QuarantinedWork],
    ) -> Result<Vec<SubjectLine>, ApiError> {
        let ids: Vec<TaxpayerId> = subjects
            .iter()
            .filter_map(|work| work.taxpayer_id)
            .collect();
        let owners = taxpayers::find_by_ids(state.store.reader(), &ids).await?;
        let lines = subjects.iter().map(|work| SubjectLine {
            taxpayer: work
                .taxpayer_id
                .map_or_else(String::new, |id| name_or_number(&owners, id)),
            cause: work.cause.clone(),
            name: format!("{} {}", work.kind, work.name),
        });
        Ok(lines.collect())
    }

    async fn apply_act_to_subjects(
        state: &ApiState,
        target: ReleaseAct,
        subjects: Vec<QuarantinedWork>,
        by: &OperatorRequest,
    ) -> BulkOutcome {
        let mut outcome = BulkOutcome::default();
        for work in subjects {
            let result = release(state, target, &work, by).await;
            outcome.add_result(vec![work.reference], result);
            if outcome.failure.is_some() {
                break;
            }
        }
        outcome
    }
}

impl ReleaseAct {
    fn is_allowed(self, work: &QuarantinedWork) -> bool {
        match self {
            Self::Replay => work.may_replay,
            Self::Drop => work.may_drop,
        }
    }
}

/// Replays or drops one piece of work, as the form on its page does.
async fn release(
    state: &ApiState,
    target: ReleaseAct,
    work: &QuarantinedWork,
    by: &OperatorRequest,
) -> Result<(), ApiError> {
    let reference = work.reference.as_str();
    match (work.kind, target) {
        (WorkKind::Run, _) => {
            let run = path_ids::find_run(state, reference).await?;
            let command = ApplyOperatorAction {
                run: run.id,
                irn: run.irn,
                to: match target {
                    ReleaseAct::Replay => OperatorAction::Retry,
                    ReleaseAct::Drop => OperatorAction::Cancel,
                },
                by: by.clone(),
            };
            state.taxpayers.send(run.taxpayer_id, command).await?;
        }
        (WorkKind::Delivery, ReleaseAct::Replay) => {
            dead_letters::replay_by_id(state, reference, by.clone()).await?;
        }
        (_, ReleaseAct::Replay) => {
            let replayed = quarantine::replay_by_reference(state, reference, by).await?;
            if replayed.state == QuarantineState::Kept {
                let message = "The replay changed nothing, so it stays in the quarantine";
                return Err(ApiError::new(ErrorCode::InvalidTransition, message));
            }
        }
        (_, ReleaseAct::Drop) => {
            quarantine::drop_by_reference(state, reference, by).await?;
        }
    }
    Ok(())
}

//! Pauses, resumes, retries or cancels many runs at once.

use crate::console::operators::bulk::{
    ActWords, BulkList, BulkListAct, FoundSubjects, ListSelection, SubjectLine,
};
use crate::console::operators::runs;
use crate::domain::kernel::audit::{AuditAction, OperatorRequest};
use crate::domain::kernel::ids::RunId;
use crate::domain::pipeline::OperatorAction;
use crate::http::api::ops::bulk::BulkOutcome;
use crate::http::api::ops::run_moves::{self, MatchingRuns};
use crate::http::extract::path_ids;
use crate::http::forms::run_filter;
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;
use crate::store::runs::run_list::{self, RunFilter};

/// The list of the runs of all taxpayers, with the acts that pause, resume, retry or cancel many of them.
pub(super) struct RunBulkList;

const ACTS: [BulkListAct<OperatorAction>; 4] = [
    BulkListAct {
        target: OperatorAction::Resume,
        words: ActWords {
            word: "resume",
            label: "Resume",
            past_participle: "resumed",
            effect: "Each run goes on where it stopped.",
        },
    },
    BulkListAct {
        target: OperatorAction::Retry,
        words: ActWords {
            word: "retry",
            label: "Retry now",
            past_participle: "tried again",
            effect: "Each run goes on at once, and its time for retries begins again.",
        },
    },
    BulkListAct {
        target: OperatorAction::Pause,
        words: ActWords {
            word: "pause",
            label: "Pause",
            past_participle: "paused",
            effect: "Each run stops before its next step, until an operator resumes it.",
        },
    },
    BulkListAct {
        target: OperatorAction::Cancel,
        words: ActWords {
            word: "cancel",
            label: "Cancel",
            past_participle: "cancelled",
            effect: "Each run ends, and its taxpayer may change or send the invoice again.",
        },
    },
];

impl BulkList for RunBulkList {
    type Target = OperatorAction;
    type Subject = RunId;
    const LIST_PATH: &'static str = "/console/runs";
    const MOVE_PATH: &'static str = "/console/runs/move";
    const TITLE: &'static str = "Runs";
    const NOUNS: [&'static str; 2] = ["run", "runs"];
    const ACTS: &'static [BulkListAct<OperatorAction>] = &ACTS;
    const AUDITED_AS: AuditAction = AuditAction::MoveRuns;
    const BULK_NEEDS_FILTER: bool = true;
    const FILTERS: &'static [&'static str] = &run_filter::CONDITIONS;

    async fn find_subjects(
        state: &ApiState,
        target: OperatorAction,
        selection: ListSelection<'_>,
    ) -> Result<FoundSubjects<RunId>, ApiError> {
        let ids = selection.ids.map(parse_ids);
        let found = if let Some(list) = selection.filter {
            let (filter, _) = run_filter::read_query(&list.0)?;
            run_moves::find_movable_runs(state, &RunFilter { ids, ..filter }, target).await?
        } else {
            let ids = ids.unwrap_or_default();
            MatchingRuns {
                matching: ids.len() as u64,
                ids,
            }
        };
        let outcome = run_moves::preview_moves(state, &found.ids, target).await?;
        Ok(FoundSubjects {
            beyond_max: found.matching.saturating_sub(found.ids.len() as u64),
            subjects: parse_ids(&outcome.moved),
            refusals: outcome.refusals,
        })
    }

    fn subject_id(run: &RunId) -> String {
        run.to_string()
    }

    async fn subject_lines(
        state: &ApiState,
        subjects: &[RunId],
    ) -> Result<Vec<SubjectLine>, ApiError> {
        let found = run_list::find_by_ids(&state.store, subjects).await?;
        let rows = runs::to_rows(state, found).await?;
        let lines = rows.into_iter().map(|row| SubjectLine {
            cause: row
                .run
                .last_error
                .clone()
                .unwrap_or_else(|| row.badge.text.to_owned()),
            name: format!("{} of {}", row.run.operation(), row.run.irn),
            taxpayer: row.taxpayer,
        });
        Ok(lines.collect())
    }

    async fn apply_act_to_subjects(
        state: &ApiState,
        target: OperatorAction,
        subjects: Vec<RunId>,
        by: &OperatorRequest,
    ) -> BulkOutcome {
        run_moves::apply_moves(state, &subjects, target, by).await
    }
}

fn parse_ids(ids: &[String]) -> Vec<RunId> {
    ids.iter()
        .filter_map(|id| path_ids::parse_uuid(id))
        .collect()
}

//! The actors: the tree of actors of the process that answers, and the worst actors of all replicas, by a measure that
//! the query chooses.

use std::future::ready;

use actix_web::web;
use serde::Serialize;
use supervision::{Measure, Ranking, TreeSnapshot, Window};

use crate::actors::kinds;
use crate::domain::access::caller::OpsViewer;
use crate::domain::kernel::nearest_word::suggestion;
use crate::http::forms::query::Query;
use crate::http::openapi::{doc, schema};
use crate::http::paths::{Path, path};
use crate::http::replicas::actors::{self, ReplicaActor};
use crate::http::respond::code::ErrorCode;
use crate::http::respond::envelope::ApiResponse;
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;
use crate::http::views::taxpayer_usage::TaxpayerPauseView;

pub(crate) fn paths() -> Vec<Path> {
    vec![path("/ops/supervision").get(get_supervision, || {
        doc("supervision", "The actors of all replicas, worst first")
            .with_note(
                "`worst` has the worst 20 actors of all replicas that give signs: those of the replica that answers are of \
                 this moment, of each other those are known that its last sign told. `paused_taxpayers` are those that operators have paused on all replicas. The rest is of the replica that \
                 answers: `groups` counts all its actors and lists the worst of each kind and thread; `top` has those that \
                 are first by trouble, wait, queue, time or restarts within 1, 5 or 60 minutes.",
            )
            .query("replica", "only the actors of the replica with this name, even if it is missing")
            .query("kind", "only actors of this kind, such as taxpayer")
            .query("by", "trouble (the default), wait, depth, handle-time or restarts: what `worst` is ordered by")
            .query("minutes", "1, 5 (the default) or 60: the time up to now that counts")
            .with_schema_response(
                200,
                "Supervision retrieved successfully",
                schema::envelope(schema::object()),
            )
            .with_errors(&[ErrorCode::ValidationFailed])
    })]
}

/// The maximum number of actors that the response lists in each group. A group has the worst actors of one kind and one
/// ranking. The counts in the response include all actors.
const ACTORS_MAX: usize = 100;
/// The maximum number of actors in the list of the worst actors of all replicas.
const WORST_MAX: usize = 20;

#[derive(Serialize)]
struct Supervision {
    /// The name of the replica that answers.
    answered_by: String,
    worst: Vec<ReplicaActor>,
    paused_taxpayers: Vec<TaxpayerPauseView>,
    #[serde(flatten)]
    own: TreeSnapshot,
}

/// GET /ops/supervision: returns the worst actors of all replicas, and the tree of actors of this process.
async fn get_supervision(
    state: web::Data<ApiState>,
    _: OpsViewer,
    query: Query,
) -> Result<ApiResponse, ApiError> {
    ready(supervision_response(&state, &query)).await
}

fn supervision_response(state: &ApiState, query: &Query) -> Result<ApiResponse, ApiError> {
    let kind = query.trimmed_text("kind");
    let ranking = Ranking {
        kind: kind.as_deref(),
        by: query
            .word("by", parse_measure, allowed_measures)?
            .unwrap_or_default(),
        window: read_time_window(query)?,
    };
    let replica = query.trimmed_text("replica");
    let warning = kind.as_deref().and_then(unknown_kind_warning);
    let own = state.tree.snapshot(ACTORS_MAX);
    let worst = actors::rank_actors(
        state,
        own.top.clone(),
        ranking,
        replica.as_deref(),
        WORST_MAX,
    );
    Ok(ApiResponse::ok(
        "Supervision retrieved successfully",
        Supervision {
            answered_by: state.replicas.identity().name.clone(),
            worst,
            paused_taxpayers: paused_taxpayers(state),
            own,
        },
    )
    .warn(warning.as_slice()))
}

/// Returns a warning if no kind of actor has this name.
fn unknown_kind_warning(kind: &str) -> Option<String> {
    let known_names = kinds::ALL.iter().map(|known| known.name());
    let is_known = known_names.clone().any(|name| name == kind);
    (!is_known).then(|| format!("unknown kind: {kind}{}", suggestion(kind, known_names)))
}

fn paused_taxpayers(state: &ApiState) -> Vec<TaxpayerPauseView> {
    let pauses = state.taxpayers.paused_taxpayers().list();
    pauses
        .iter()
        .map(|pause| TaxpayerPauseView::new(pause.taxpayer_id, Some(pause)))
        .collect()
}

/// Reads the time window from the parameter `minutes`. Returns the default window if the parameter is absent.
pub(super) fn read_time_window(query: &Query) -> Result<Window, ApiError> {
    let window = query.word("minutes", parse_window, allowed_windows)?;
    Ok(window.unwrap_or_default())
}

fn parse_measure(word: &str) -> Option<Measure> {
    Measure::ALL
        .into_iter()
        .find(|measure| measure.as_str() == word)
}

fn allowed_measures() -> String {
    Measure::ALL.map(Measure::as_str).join(", ")
}

fn parse_window(word: &str) -> Option<Window> {
    Window::ALL
        .into_iter()
        .find(|window| window.minutes().to_string() == word)
}

fn allowed_windows() -> String {
    Window::ALL
        .map(|window| window.minutes().to_string())
        .join(", ")
}

//! POST /v1/system-integrators/taxpayers/{id}/webhook/replays/{replay_id}/cancel: nothing more of it is queued. One that
//! was cancelled before stays so, and the answer is the same; one that has come to its end is refused.

use actix_web::web;

use crate::domain::access::caller::IntegratorCaller;
use crate::domain::events::replay::ReplayState;
use crate::http::api::system_integrators::find_replay::find;
use crate::http::extract::path_ids;
use crate::http::respond::envelope::ApiResponse;
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;
use crate::http::views::replay::ReplayView;

pub(crate) async fn cancel_replay(
    state: web::Data<ApiState>,
    IntegratorCaller(integrator): IntegratorCaller,
    path: web::Path<(String, String)>,
) -> Result<ApiResponse, ApiError> {
    let (taxpayer, replay) = path.into_inner();
    let taxpayer = path_ids::taxpayer(&state, integrator, &taxpayer).await?;
    let before = find(&state, taxpayer.id, &replay).await?;
    if before.state != ReplayState::Cancelled {
        state.taxpayers.cancel_replay(taxpayer.id, before.id).await?;
    }
    // Read again: where it came to its end at the same moment, that is what is shown.
    let after = find(&state, taxpayer.id, &replay).await?;
    Ok(ApiResponse::ok("Webhook replay cancelled successfully", ReplayView::from(&after)))
}

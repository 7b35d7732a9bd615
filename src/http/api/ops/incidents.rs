//! The incidents: the problems that this process sees now and that operators have to know.

use actix_web::web;

use crate::domain::access::caller::OpsViewer;
use crate::domain::invoice::invoice_view::precise_time;
use crate::http::incidents;
use crate::http::openapi::doc;
use crate::http::paths::{Path, path};
use crate::http::respond::envelope::ApiResponse;
use crate::http::state::ApiState;
use crate::http::views::incident::Incidents;

pub(crate) fn paths() -> Vec<Path> {
    vec![path("/ops/incidents").get(list_incidents, || {
        doc(
            "list_incidents",
            "What is the matter now, since when, until when, and what to do",
        )
        .with_note("Those that wake somebody come first. What only another replica sees is told in its name. The alerts are made from the same table.")
        .with_response::<Incidents<'_>>(200, "Incidents retrieved successfully")
    })]
}

/// GET /ops/incidents: lists the incidents that this process sees now, and the incidents that other replicas report
/// about themselves.
async fn list_incidents(state: web::Data<ApiState>, _: OpsViewer) -> ApiResponse {
    let report = incidents::current_report(&state).await;
    let all_incidents = incidents::incidents_for_operators(&state, &report);
    let view = Incidents {
        incidents: all_incidents.iter().map(Into::into).collect(),
        counted_at: report.counted_at.map(precise_time),
    };
    ApiResponse::ok("Incidents retrieved successfully", view)
}

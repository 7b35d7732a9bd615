//! The numbers that operators look at first: counts of runs, deadlines, deliveries and endpoints.

use actix_web::web;

use crate::domain::access::caller::OpsViewer;
use crate::domain::invoice::invoice_view::precise_time;
use crate::http::metrics::database_counts::{DatabaseCounts, gauge_value};
use crate::http::openapi::doc;
use crate::http::paths::{Path, path};
use crate::http::respond::code::ErrorCode;
use crate::http::respond::envelope::ApiResponse;
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;
use crate::http::views::overview::{
    DeadlineCounts, DeliveryCounts, EndpointGroup, Overview, RunGroup,
};

pub(crate) fn paths() -> Vec<Path> {
    vec![path("/ops/overview").get(get_overview, || {
        doc(
            "overview",
            "What waits, is late, is paused or is not delivered, in numbers",
        )
        .with_note("Counted in the database at most once every few seconds.")
        .with_response::<Overview>(200, "Overview retrieved successfully")
        .with_errors(&[ErrorCode::Overloaded])
    })]
}

/// GET /ops/overview: returns counts of the runs, deadlines, deliveries and endpoints of all taxpayers.
async fn get_overview(state: web::Data<ApiState>, _: OpsViewer) -> Result<ApiResponse, ApiError> {
    let counted = state
        .database_counts
        .current_counts(&state.store, state.now())
        .await;
    let counted = counted
        .ok_or_else(|| ApiError::new(ErrorCode::Overloaded, "The database does not answer"))?;
    Ok(ApiResponse::ok(
        "Overview retrieved successfully",
        to_overview(&counted),
    ))
}

fn to_overview(counted: &DatabaseCounts) -> Overview {
    let group = |(health, endpoints): &(_, i64)| EndpointGroup {
        health: *health,
        endpoints: *endpoints,
    };
    Overview {
        counted_at: precise_time(counted.counted_at),
        runs: counted
            .runs
            .iter()
            .map(|group| RunGroup::new(group, counted.counted_at))
            .collect(),
        deadlines: DeadlineCounts {
            overdue: gauge_value(counted.work.overdue.count),
            soon: gauge_value(counted.work.due_soon),
        },
        deliveries: DeliveryCounts {
            pending: counted.deliveries_pending,
            dead: counted.deliveries_dead,
        },
        endpoints: counted.endpoints.iter().map(group).collect(),
        is_outage: counted.is_outage_open(),
    }
}

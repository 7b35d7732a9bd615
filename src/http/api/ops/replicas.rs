//! The replicas of the deployment.

use std::future::{Ready, ready};

use actix_web::web;

use crate::domain::access::caller::OpsViewer;
use crate::domain::invoice::invoice_view::precise_time;
use crate::http::openapi::doc;
use crate::http::paths::{Path, path};
use crate::http::respond::envelope::ApiResponse;
use crate::http::state::ApiState;
use crate::http::views::replica::{ReplicaView, Replicas};

pub(crate) fn paths() -> Vec<Path> {
    vec![path("/ops/replicas").get(list_replicas, || {
        doc(
            "list_replicas",
            "The processes of the deployment and how they are",
        )
        .with_note(
            "Each replica tells the others every second how it is. One that gave no sign for three seconds is missing; it \
             is forgotten an hour after its last sign.",
        )
        .with_response::<Replicas<'_>>(200, "Replicas retrieved successfully")
    })]
}

/// GET /ops/replicas: lists all replicas, as this replica last read them from the database.
fn list_replicas(state: web::Data<ApiState>, _: OpsViewer) -> Ready<ApiResponse> {
    let state = state.into_inner();
    let list = state.replicas.last_list();
    let view = Replicas {
        answered_by: &state.replicas.identity().name,
        read_at: list.read_at.map(precise_time),
        replicas: list
            .replicas
            .iter()
            .map(|replica| ReplicaView::new(&list, replica))
            .collect(),
    };
    ready(ApiResponse::ok("Replicas retrieved successfully", view))
}

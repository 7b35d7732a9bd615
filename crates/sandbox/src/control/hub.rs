//! Handlers of the control interface for businesses, access points and notices.

use actix_web::{HttpResponse, web::Data};
use serde::Deserialize;
use serde_json::json;

use super::answer::{JsonBody, answer};
use crate::records::PartyEnrolment;
use crate::state::State;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct AccessPoint {
    url: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Notice {
    irn: String,
    message: String,
}

pub(super) async fn enrol(state: Data<State>, enrolment: JsonBody<PartyEnrolment>) -> HttpResponse {
    answer(state.enrol(&enrolment.0).map(|()| json!({ "ok": true })))
}

pub(super) async fn register_access_point(
    state: Data<State>,
    access_point: JsonBody<AccessPoint>,
) -> HttpResponse {
    answer(
        state
            .register_access_point(&access_point.0.url)
            .map(|()| json!({ "ok": true })),
    )
}

pub(super) async fn list_access_points(state: Data<State>) -> HttpResponse {
    HttpResponse::Ok().json(json!({ "access_points": state.notices.urls() }))
}

pub(super) async fn clear_access_points(state: Data<State>) -> HttpResponse {
    state.notices.clear();
    HttpResponse::Ok().json(json!({ "access_points": [] }))
}

pub(super) async fn notify(state: Data<State>, notice: JsonBody<Notice>) -> HttpResponse {
    let Notice { irn, message } = &notice.0;
    state.notify(irn, message);
    HttpResponse::Ok().json(json!({ "ok": true }))
}

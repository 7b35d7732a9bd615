//! GET /metrics: for everybody, or for operators where the settings say so.

use actix_web::{FromRequest, HttpRequest, HttpResponse, web};

use crate::domain::access::caller::OperatorCaller;
use crate::http::metrics as page;
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;

pub(crate) async fn metrics(
    state: web::Data<ApiState>,
    request: HttpRequest,
) -> Result<HttpResponse, ApiError> {
    if !state.settings.metrics_public {
        OperatorCaller::extract(&request).await?;
    }
    let text = page::page(&state).await?;
    Ok(HttpResponse::Ok().content_type(page::CONTENT_TYPE).body(text))
}

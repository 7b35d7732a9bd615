//! POST /authority/notifications/{token}: the authority's notice about an invoice. It is unsigned, so it is only a
//! hint. 200 means that all its consequences are durable; any other status asks the authority to send it again.

use actix_web::web;

use crate::http::api::authority::notice_token;
use crate::http::extract::body::Body;
use crate::http::forms::notice;
use crate::http::forms::report;
use crate::http::respond::envelope::ApiResponse;
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;
use crate::http::views::inbox::NoticeView;

pub(crate) async fn notifications(
    state: web::Data<ApiState>,
    token: web::Path<String>,
    body: Body,
) -> Result<ApiResponse, ApiError> {
    notice_token::check(&token, &state.settings.notification_token)?;
    let body = body.up_to(notice::BYTES_MAX);
    let form = report::read(&*body.object().await?, &state.catalog.get(), notice::read)?;
    state.inbound.handle_notice(&form.value.irn, form.value.message).await?;
    let view = NoticeView::from(&form.value);
    Ok(ApiResponse::ok("Notification received successfully", view).warn(&form.warnings))
}

//! POST /authority/notifications/{token}: the authority's notice about an invoice. It is unsigned, so that it is
//! only a hint; 200 says that all that followed from it is durable, and anything else that it is to be sent again.

use actix_web::web;

use crate::http::body::Body;
use crate::http::envelope::Answer;
use crate::http::error::ApiError;
use crate::http::forms::{notice, report};
use crate::http::notice_token;
use crate::http::state::State;
use crate::http::views::inbox::NoticeView;

pub(crate) async fn notifications(
    state: web::Data<State>,
    token: web::Path<String>,
    body: Body,
) -> Result<Answer, ApiError> {
    notice_token::check(&token, &state.settings.notification_token)?;
    let body = body.up_to(notice::BYTES_MAX);
    let form = report::read(&*body.object().await?, &state.catalog.get(), notice::read)?;
    state.inbound.hear(&form.value.irn, form.value.message).await?;
    let view = NoticeView::from(&form.value);
    Ok(Answer::ok("Notification received successfully", view).warn(&form.warnings))
}

//! GET /v1/core/resources/{list}: the authority's reference lists, asked for live, unmodified and never kept.
//! What "must exist in" a list is checked against a snapshot instead, which nothing here reads or writes.

use actix_web::web;

use crate::authority::ResourceList;
use crate::domain::caller::Caller;
use crate::http::code::Code;
use crate::http::envelope::Answer;
use crate::http::error::ApiError;
use crate::http::state::State;

pub(crate) async fn resources(
    state: web::Data<State>,
    _: Caller,
    list: web::Path<String>,
) -> Result<Answer, ApiError> {
    let list =
        ResourceList::named(&list).ok_or_else(|| ApiError::new(Code::RouteNotFound, "No such list"))?;
    let items = state.authority.resource(list).await?;
    Ok(Answer::ok("Resources retrieved successfully", items))
}

//! POST /v1/app/invoices/validate: Validate. It changes nothing; whatever is wrong with the payload, by our rules
//! or by the authority's, is 400 (docs/contract.md, "The authority pipeline"). `?explain=patch` adds what would mend it.

use actix_web::http::StatusCode;
use actix_web::web;

use crate::authority::{AuthorityFailure, CallerAccount};
use crate::domain::access::caller::Caller;
use crate::domain::party::Taxpayer;
use crate::http::acting::{self, Hint};
use crate::http::body::Body;
use crate::http::envelope::Answer;
use crate::http::error::ApiError;
use crate::http::explain::own;
use crate::http::forms::report::Accepted;
use crate::http::forms::validation::{self, Validation};
use crate::http::query::Query;
use crate::http::state::State;
use crate::http::views::validated::Validated;
use crate::http::{mend, outcome};

/// That a refusal is to tell what would mend the body.
struct WithPatch;

impl WithPatch {
    const WORD: &str = "patch";

    fn parse(word: &str) -> Option<Self> {
        word.eq_ignore_ascii_case(Self::WORD).then_some(Self)
    }

    fn allowed() -> String {
        Self::WORD.to_owned()
    }
}

pub(crate) async fn validate(
    state: web::Data<State>,
    caller: Caller,
    hint: Hint,
    query: Query,
    body: Body,
) -> Result<Answer, ApiError> {
    let asked = query.word("explain", WithPatch::parse, WithPatch::allowed);
    let answer = match asked {
        Ok(explain) => check(&state, (caller, hint), explain, body).await,
        Err(fault) => Err(fault.into()),
    };
    answer.map_err(|error| match error.status {
        StatusCode::UNPROCESSABLE_ENTITY => error.with_status(StatusCode::BAD_REQUEST),
        _ => error,
    })
}

async fn check(
    state: &State,
    (caller, hint): (Caller, Hint),
    explain: Option<WithPatch>,
    body: Body,
) -> Result<Answer, ApiError> {
    let body = body.object().await?;
    let taxpayer = acting::for_body(state, caller, &body, hint).await?;
    let form = validation::read(&body, taxpayer.as_ref(), &state.catalog.get());
    let form = form.map_err(|faults| own::refused(faults, &body));
    // Only for the sake of a patch does the body stay in memory while the authority is asked.
    let mended = explain.map(|WithPatch| body);
    let refused = match judge(state, taxpayer.as_ref(), form).await {
        Err(refused) if refused.explained.is_some() => refused,
        otherwise => return otherwise,
    };
    match (mended, taxpayer) {
        (Some(body), Some(taxpayer)) => Err(refused.patched(mend::patch(state, &taxpayer, &body).await)),
        _ => Err(refused),
    }
}

async fn judge(
    state: &State,
    taxpayer: Option<&Taxpayer>,
    form: Result<Accepted<Validation>, ApiError>,
) -> Result<Answer, ApiError> {
    let form = form?;
    let taxpayer = taxpayer.ok_or_else(ApiError::taxpayer_not_found)?;
    let document = &form.value.document;
    let authority = state.authority.on_behalf_of(CallerAccount::Taxpayer(taxpayer.id));
    authority.validate(document).await.map_err(|failure| match failure {
        AuthorityFailure::Refused { message, .. } | AuthorityFailure::NotFound { message } => {
            outcome::rejected(&message, document)
        }
        other => other.into(),
    })?;
    let view = Validated::new(&form.value.irn, &form.warnings);
    Ok(Answer::ok("Invoice validated successfully", view).warn(&form.warnings))
}

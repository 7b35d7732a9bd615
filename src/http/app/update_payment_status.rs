//! PATCH /v1/app/invoices/{irn}/update-payment-status (POST and PUT too): a payment status for the authority,
//! which the stored invoice follows.

use actix_web::web;

use crate::domain::access::caller::Caller;
use crate::http::body::Body;
use crate::http::envelope::Answer;
use crate::http::error::ApiError;
use crate::http::explain::own;
use crate::http::forms::{relayed_payment, report};
use crate::http::patience::Patience;
use crate::http::state::State;
use crate::http::{acting, ident, outcome};

pub(crate) async fn update_payment_status(
    state: web::Data<State>,
    caller: Caller,
    irn: web::Path<String>,
    patience: Patience,
    body: Body,
) -> Result<Answer, ApiError> {
    let irn = ident::irn(&irn)?;
    let taxpayer = acting::for_irn(&state, caller, &irn).await?;
    let body = body.object().await?;
    let form = report::read(&body, &state.catalog.get(), relayed_payment::read);
    let form = form.map_err(|faults| own::refused(faults, &body))?;
    // Nothing of the body stays in memory while the caller waits.
    drop(body);
    let run = state.pipeline.update_payment(taxpayer.id, &irn, &form.value, patience.wait).await?;
    Ok(outcome::paid(&state, &run, patience).await?.warn(&form.warnings))
}

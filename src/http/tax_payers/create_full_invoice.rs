//! POST /v1/tax-payers/invoices/full: Create Invoice (Full). An invoice with the same IRN or number is no error.

use actix_web::web;

use crate::actors::taxpayer::command::Created;
use crate::domain::access::caller::TaxpayerCaller;
use crate::http::body::Body;
use crate::http::envelope::Answer;
use crate::http::error::ApiError;
use crate::http::forms::full_invoice::{self, Account};
use crate::http::idempotency::Keyed;
use crate::http::state::State;
use crate::http::{created, gate};

const DUPLICATE: &str = "Invoice with this IRN already exists";

pub(crate) async fn create_full_invoice(
    state: web::Data<State>,
    TaxpayerCaller(id): TaxpayerCaller,
    keyed: Keyed,
    body: Body,
) -> Result<Answer, ApiError> {
    let body = body.object().await?;
    let (catalog, account) = (state.catalog.get(), Account { today: state.today(), service_id: None });
    let form = match full_invoice::read(&body, account, &catalog) {
        Ok(form) => form,
        Err(faults) => {
            // Whose IRN it is belongs to the faults; where there are no others, the taxpayer's actor asks.
            let taxpayer = gate::passed(&state, id).await?;
            let account = Account { service_id: Some(&taxpayer.service_id), ..account };
            let all = full_invoice::read(&body, account, &catalog).err();
            return Err(all.unwrap_or(faults).into());
        }
    };
    drop(body);
    let (draft, warnings) = (form.value, form.warnings);
    let show = move |made: &Created| created::answer(made, DUPLICATE).warn(&warnings);
    keyed.answer(&state.taxpayers, show, async |taxpayers| taxpayers.create(id, draft).await).await
}

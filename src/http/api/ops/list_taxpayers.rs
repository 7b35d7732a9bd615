//! GET /ops/taxpayers: the taxpayers of all integrators, newest first; above all those that need an operator.

use actix_web::web;

use crate::domain::access::caller::OperatorCaller;
use crate::domain::kernel::fault::Faults;
use crate::domain::party::verification::VerificationStatus;
use crate::http::forms::query::Query;
use crate::http::respond::envelope::ApiResponse;
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;
use crate::http::views::paginator::Paginator;
use crate::http::views::taxpayer::OperatedTaxpayer;
use crate::store::accounts::taxpayers::{self, TaxpayerFilter};

const PER_PAGE_DEFAULT: u64 = 15;

pub(crate) async fn list_all_taxpayers(
    state: web::Data<ApiState>,
    _: OperatorCaller,
    query: Query,
) -> Result<ApiResponse, ApiError> {
    let (filter, page) = (filter(&query)?, query.page(PER_PAGE_DEFAULT));
    let (found, total) = taxpayers::page(&state.store, filter, page).await?;
    let items = found.iter().map(|(taxpayer, shares)| OperatedTaxpayer::new(taxpayer, *shares)).collect();
    Ok(ApiResponse::ok("Taxpayers retrieved successfully", Paginator::new(page, total, items)))
}

fn filter(query: &Query) -> Result<TaxpayerFilter, Faults> {
    let verification = query.word("verification", VerificationStatus::parse, VerificationStatus::allowed);
    match (verification, query.flag("shares_tin")) {
        (Ok(verification), Ok(sharing_tin)) => {
            Ok(TaxpayerFilter { verification, sharing_tin, tin: query.equal("tin") })
        }
        (verification, sharing_tin) => {
            Err([verification.err(), sharing_tin.err()].into_iter().flatten().collect())
        }
    }
}

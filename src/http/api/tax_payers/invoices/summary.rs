//! The summary of a period: the sums of its invoices, and the missing invoice numbers.

use actix_web::{HttpRequest, web};

use crate::domain::access::caller::TaxpayerCaller;
use crate::domain::access::payer::PayingAccount;
use crate::http::exports;
use crate::http::extract::auth;
use crate::http::forms::query::Query;
use crate::http::forms::report_period;
use crate::http::limits::AnswerHolder;
use crate::http::openapi::doc;
use crate::http::paths::{Path, path};
use crate::http::respond::code::ErrorCode;
use crate::http::respond::envelope::ApiResponse;
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;
use crate::http::views::period_summary::PeriodSummaryView;

pub(super) fn paths() -> Vec<Path> {
    vec![
        path("/v1/tax-payers/invoices/summary").get(get_summary, || {
            doc("get_summary", "The invoices of a month, a quarter or a year in sums")
                .with_note(
                    "By invoice date. `vat_return` has the figures of a VAT return: declare its signed part. A number \
                     is missing if it is between the first and the last number of a series in \
                     the period and no invoice of the account has it. Up to 10,000 numbers are looked up among the \
                     invoices outside of the period. Send only one of `month`, `quarter` and `year`.",
                )
                .query("month", "YYYY-MM; the present month at the authority by default")
                .query("quarter", "YYYY-Q1 to YYYY-Q4, instead of `month`")
                .query("year", "YYYY, instead of `month`")
                .with_response::<PeriodSummaryView>(200, "Summary retrieved successfully")
                .with_errors(&[ErrorCode::ValidationFailed])
        }),
    ]
}

/// GET /v1/tax-payers/invoices/summary: returns the sums and the missing numbers of a period.
async fn get_summary(
    state: web::Data<ApiState>,
    request: HttpRequest,
    TaxpayerCaller(taxpayer): TaxpayerCaller,
    query: Query,
) -> Result<ApiResponse, ApiError> {
    let period = report_period::read(&query, state.today())?;
    let payer = auth::paying_account(&request).map(PayingAccount::payer);
    let holder = AnswerHolder::for_taxpayer(taxpayer, payer);
    let summary = exports::sum_up_period(&state, holder, taxpayer, period).await?;
    let view = PeriodSummaryView::new(period, &summary, &state.catalog.get());
    Ok(ApiResponse::ok("Summary retrieved successfully", view))
}

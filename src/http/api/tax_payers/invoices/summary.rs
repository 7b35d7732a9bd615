//! The summary of a month. The invoices are read page by page and added up, so that every amount is exact and memory
//! does not grow with them.

use actix_web::{HttpRequest, web};
use jiff::civil::Date;
use jiff::tz::Offset;

use crate::domain::access::caller::TaxpayerCaller;
use crate::domain::access::payer::PayingAccount;
use crate::domain::invoice::month_summary::MonthSummary;
use crate::domain::kernel::ids::TaxpayerId;
use crate::http::endpoint::{Path, path};
use crate::http::exports::{InvoiceReader, Parties};
use crate::http::extract::auth;
use crate::http::forms::query::Query;
use crate::http::limits::AnswerHolder;
use crate::http::openapi::doc;
use crate::http::respond::code::ErrorCode;
use crate::http::respond::envelope::ApiResponse;
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;
use crate::http::views::month_summary::{MonthSummaryView, SERIES_SHOWN_MAX};
use crate::store::Store;
use crate::store::invoices;
use crate::store::invoices::list::{InvoiceFilter, InvoiceList, InvoiceSort};

pub(super) fn endpoints() -> Vec<Path> {
    vec![
        path("/v1/tax-payers/invoices/summary").get(get_summary, || {
            doc("get_summary", "The invoices of a month in sums")
                .with_note(
                    "By invoice date. A number is missing if it is between the first and the last number of a series in \
                     the month and no invoice of the account has it.",
                )
                .query("month", "YYYY-MM; the present month in UTC by default")
                .gives::<MonthSummaryView>(200, "Summary retrieved successfully")
                .fails(&[ErrorCode::ValidationFailed])
        }),
    ]
}

/// The missing numbers that are looked for among the invoices of other months. Beyond them, a number counts as
/// missing if no invoice of the month has it.
const NUMBERS_LOOKED_FOR_MAX: usize = 1_000;

/// GET /v1/tax-payers/invoices/summary: sums and missing numbers of a month.
async fn get_summary(
    state: web::Data<ApiState>,
    request: HttpRequest,
    TaxpayerCaller(taxpayer): TaxpayerCaller,
    query: Query,
) -> Result<ApiResponse, ApiError> {
    let today = Offset::UTC.to_datetime(state.now()).date();
    let month = query.month("month")?;
    let month = month.unwrap_or_else(|| today.first_of_month());
    let payer = auth::paying_account(&request).map(PayingAccount::payer);
    let holder = AnswerHolder::for_taxpayer(taxpayer, payer);
    let mut summary = sum_up(&state, holder, taxpayer, month).await?;
    fill_gaps(&state.store, taxpayer, &mut summary).await?;
    let view = MonthSummaryView::new(month, &summary, &state.catalog.get());
    Ok(ApiResponse::ok("Summary retrieved successfully", view))
}

async fn sum_up(
    state: &web::Data<ApiState>,
    holder: AnswerHolder,
    taxpayer: TaxpayerId,
    month: Date,
) -> Result<MonthSummary, ApiError> {
    let list = InvoiceList {
        taxpayer,
        filters: InvoiceFilter {
            date_from: Some(month),
            date_to: Some(month.last_of_month()),
            ..InvoiceFilter::default()
        },
        sort: InvoiceSort::BY_INVOICE_DATE,
    };
    let catalog = state.catalog.get();
    let mut reader = InvoiceReader::new(state.clone(), holder, list, Parties::None).await?;
    let mut summary = MonthSummary::default();
    while let Some(invoice) = reader.next().await? {
        summary
            .add(&invoice, &catalog)
            .map_err(ApiError::internal)?;
    }
    Ok(summary)
}

/// Takes the numbers out of the gaps that invoices of other months have.
async fn fill_gaps(
    store: &Store,
    taxpayer: TaxpayerId,
    summary: &mut MonthSummary,
) -> Result<(), ApiError> {
    let missing = summary
        .numbers
        .missing_numbers(SERIES_SHOWN_MAX, NUMBERS_LOOKED_FOR_MAX);
    if missing.is_empty() {
        return Ok(());
    }
    for number in invoices::numbers_in_use(store, taxpayer, &missing).await? {
        summary.numbers.fill(&number);
    }
    Ok(())
}

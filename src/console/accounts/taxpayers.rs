//! The first page of an integrator: its taxpayers, those with the most urgent needs first, with their needs and usage.
//! Each links to the pages of that account. The search box in the top bar also leads to one of them.

use actix_web::{HttpRequest, HttpResponse, Responder as _, web};
use askama::Template;
use database::page::Page;
use jiff::civil::Date;
use jiff::tz::{Offset, TimeZone};
use jiff::{Timestamp, ToSpan as _};
use url::form_urlencoded::Serializer;

use crate::console::badges::{Badge, badge};
use crate::console::filters;
use crate::console::frame::Frame;
use crate::console::list_pages::{PagePosition, show_list};
use crate::console::page::{Answer, redirect};
use crate::console::session::accounts::SignedInIntegrator;
use crate::domain::events::endpoint_health::EndpointHealth;
use crate::domain::kernel::codes::Subscription;
use crate::domain::kernel::ids::IntegratorId;
use crate::domain::party::verification::VerificationStatus;
use crate::http::exports::usage_file;
use crate::http::forms::query::Query;
use crate::http::paths::{Path, path};
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;
use crate::store::operations::owned_list::{
    ListedTaxpayer, OwnedTaxpayerList, OwnedTaxpayerTotals, TaxpayerNeed,
};

pub(crate) fn paths() -> Vec<Path> {
    vec![
        path("/dashboard/taxpayers").page(show_taxpayers),
        path("/dashboard/taxpayers/usage.csv").page(download_usage),
        path("/dashboard/taxpayers/open").page(open_taxpayer),
    ]
}

const PER_PAGE: u64 = 25;
/// The path of the page, which its forms and links begin with.
pub(super) const LIST_PATH: &str = "/dashboard/taxpayers";

#[derive(Template)]
#[template(path = "accounts/taxpayers.html")]
struct TaxpayersPage {
    frame: Frame,
    search: String,
    need: String,
    totals: OwnedTaxpayerTotals,
    tabs: Vec<NeedTab>,
    /// The query of the list, for the acts on all taxpayers that match.
    filter: String,
    rows: Vec<TaxpayerLine>,
    pages: PagePosition,
    month: String,
}

/// A tab of the list: the taxpayers with one kind of need.
struct NeedTab {
    label: &'static str,
    address: String,
    count: i64,
    is_current: bool,
}

struct TaxpayerLine {
    listed: ListedTaxpayer,
    webhook: Badge,
    subscription: Badge,
    verification: Badge,
    missing_fields: usize,
}

const TABS: [(Option<TaxpayerNeed>, &str); 6] = [
    (None, "All"),
    (Some(TaxpayerNeed::Attention), "Needs attention"),
    (Some(TaxpayerNeed::Webhook), "Webhook not healthy"),
    (Some(TaxpayerNeed::Incomplete), "Incomplete"),
    (Some(TaxpayerNeed::Waiting), "Waiting"),
    (Some(TaxpayerNeed::Inactive), "Inactive"),
];

/// Reads the filters of the list. Usage is counted from the beginning of the current month, in UTC.
pub(super) fn read_list_filters(
    query: &Query,
    integrator: IntegratorId,
    now: Timestamp,
) -> Result<OwnedTaxpayerList, ApiError> {
    let today = Offset::UTC.to_datetime(now).date();
    Ok(OwnedTaxpayerList {
        integrator,
        search: query.trimmed_text("q"),
        need: query.word("need", TaxpayerNeed::parse, TaxpayerNeed::allowed_words)?,
        usage: month_bounds(today),
    })
}

/// Returns the first moment of the month of `day`, and the first moment of the next month, in UTC.
fn month_bounds(day: Date) -> (Timestamp, Timestamp) {
    let first = day.first_of_month();
    let next = first.saturating_add(1.month());
    (midnight(first), midnight(next))
}

fn midnight(day: Date) -> Timestamp {
    let start = day.to_zoned(TimeZone::UTC);
    start.map_or(Timestamp::MAX, |start| start.timestamp())
}

/// Returns the parameters of the list of taxpayers as a query string, without the page number.
fn query_without_page(search: Option<&str>, need: Option<TaxpayerNeed>) -> String {
    let mut pairs = Serializer::new(String::new());
    if let Some(search) = search {
        pairs.append_pair("q", search);
    }
    if let Some(need) = need {
        pairs.append_pair("need", need.as_str());
    }
    pairs.finish()
}

/// GET /dashboard/taxpayers: lists the taxpayers of an integrator, those with the most urgent needs first.
async fn show_taxpayers(
    state: web::Data<ApiState>,
    integrator: SignedInIntegrator,
    query: Query,
) -> Answer {
    let page = query.page(PER_PAGE);
    let list = read_list_filters(&query, integrator.id, state.now())?;
    let totals = list.totals(&state.store).await?;
    let rows = list.page(&state.store, page).await?;
    let search = list.search.as_deref();
    let tabs = TABS.map(|(need, label)| NeedTab {
        label,
        address: format!("{LIST_PATH}?{}", query_without_page(search, need)),
        count: totals.count(need),
        is_current: need == list.need,
    });
    let filter = query_without_page(search, list.need);
    let total = totals.count(list.need).unsigned_abs();
    let month = Offset::UTC.to_datetime(list.usage.0).date();
    let page = TaxpayersPage {
        frame: Frame::for_integrator(&integrator, "All taxpayers"),
        need: list.need.map(|need| need.to_string()).unwrap_or_default(),
        totals,
        tabs: tabs.into(),
        rows: rows.into_iter().map(TaxpayerLine::from).collect(),
        pages: PagePosition::new(page, total, LIST_PATH, &query),
        filter,
        search: list.search.unwrap_or_default(),
        month: month.strftime("%Y-%m").to_string(),
    };
    show_list(&page.pages, &page)
}

/// GET /dashboard/taxpayers/usage.csv: sends all taxpayers that match as a file, with their usage in a month.
async fn download_usage(
    state: web::Data<ApiState>,
    request: HttpRequest,
    integrator: SignedInIntegrator,
    query: Query,
) -> Answer {
    let mut list = read_list_filters(&query, integrator.id, state.now())?;
    if let Some(month) = query.month("month")? {
        list.usage = month_bounds(month);
    }
    let all = Page {
        number: 1,
        per_page: u64::MAX,
    };
    let rows = list.page(&state.store, all).await?;
    let month = Offset::UTC.to_datetime(list.usage.0).date();
    let name = format!("usage-{}.csv", month.strftime("%Y-%m"));
    Ok(usage_file(name, &rows)?.respond_to(&request))
}

/// GET /dashboard/taxpayers/open: redirects to the taxpayer with exactly this name, tax number or email, or to the only
/// one that matches; otherwise to the list of those that match.
async fn open_taxpayer(
    state: web::Data<ApiState>,
    integrator: SignedInIntegrator,
    query: Query,
) -> Result<HttpResponse, ApiError> {
    let list = OwnedTaxpayerList {
        need: None,
        ..read_list_filters(&query, integrator.id, state.now())?
    };
    Ok(redirect(
        &match list.find_searched_taxpayer(&state.store).await? {
            Some(id) => format!("/dashboard/{id}"),
            None => format!(
                "{LIST_PATH}?{}",
                query_without_page(list.search.as_deref(), None)
            ),
        },
    ))
}

/// Returns the health of a webhook as a badge.
pub(super) fn webhook_badge(health: Option<EndpointHealth>) -> Badge {
    match health {
        None => badge("idle", "Not set up"),
        Some(EndpointHealth::Working) => badge("ok", "Healthy"),
        Some(EndpointHealth::Failing) => badge("warn", "Failing"),
        Some(EndpointHealth::Parked) => badge("warn", "Paused"),
        Some(EndpointHealth::Disabled) => badge("bad", "Disabled"),
    }
}

impl TaxpayerLine {
    fn path(&self) -> String {
        format!("/dashboard/{}", self.listed.taxpayer.id)
    }
}

impl From<ListedTaxpayer> for TaxpayerLine {
    fn from(listed: ListedTaxpayer) -> Self {
        Self {
            webhook: webhook_badge(listed.webhook),
            subscription: listed.taxpayer.subscription.into(),
            verification: listed.taxpayer.verification.status().into(),
            missing_fields: listed.taxpayer.missing_profile_fields().len(),
            listed,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_month_begins_at_midnight_of_its_first_day_and_ends_with_the_next() {
        for (day, first, next) in [
            ("2026-11-23", "2026-11-01T00:00:00Z", "2026-12-01T00:00:00Z"),
            ("2026-12-01", "2026-12-01T00:00:00Z", "2027-01-01T00:00:00Z"),
        ] {
            let bounds = month_bounds(day.parse().unwrap());
            assert_eq!([bounds.0, bounds.1].map(|at| at.to_string()), [first, next]);
        }
    }

    #[test]
    fn a_filter_keeps_what_is_searched_for() {
        let need = Some(TaxpayerNeed::Webhook);
        assert_eq!(
            query_without_page(Some("a&b"), need),
            "q=a%26b&need=webhook"
        );
        assert_eq!(query_without_page(None, None), "");
    }
}

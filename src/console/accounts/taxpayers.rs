//! The first page of an integrator: its taxpayers with their usage. Each leads to the pages of that account.

use std::collections::HashMap;

use actix_web::web;
use askama::Template;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use url::form_urlencoded::Serializer;

use crate::console::badges::Badge;
use crate::console::filters;
use crate::console::frame::Frame;
use crate::console::page::{Answer, Pages, show};
use crate::console::session::accounts::SignedInIntegrator;
use crate::domain::kernel::ids::TaxpayerId;
use crate::domain::party::Taxpayer;
use crate::http::endpoint::{Path, path};
use crate::http::forms::query::Query;
use crate::http::state::ApiState;
use crate::store::accounts::taxpayers;
use crate::store::invoices::list;

pub(crate) fn endpoints() -> Vec<Path> {
    vec![path("/dashboard/taxpayers").page(show_taxpayers)]
}

const PER_PAGE: u64 = 25;

#[derive(Template)]
#[template(path = "accounts/taxpayers.html")]
struct TaxpayersPage {
    frame: Frame,
    search: String,
    rows: Vec<TaxpayerLine>,
    pages: Pages,
}

struct TaxpayerLine {
    taxpayer: Taxpayer,
    subscription: Badge,
    verification: Badge,
    missing: usize,
    invoices: i64,
}

/// GET /dashboard/taxpayers: the taxpayers of an integrator, newest first, with the invoices of the present month.
async fn show_taxpayers(
    state: web::Data<ApiState>,
    integrator: SignedInIntegrator,
    query: Query,
) -> Answer {
    let page = query.page(PER_PAGE);
    let search = query.trimmed_text("q");
    let found =
        taxpayers::page_owned_by(&state.store, integrator.id, search.as_deref(), page).await?;
    let (found, total) = found;
    let ids: Vec<_> = found.iter().map(|taxpayer| taxpayer.id).collect();
    let usage = list::count_since(&state.store, &ids, month_start(state.now())).await?;
    let search = search.unwrap_or_default();
    let here = Serializer::new(String::new())
        .append_pair("q", &search)
        .finish();
    show(&TaxpayersPage {
        frame: Frame::for_person(&integrator.person, &integrator.csrf, "All taxpayers"),
        search,
        rows: found
            .into_iter()
            .map(|taxpayer| TaxpayerLine::new(taxpayer, &usage))
            .collect(),
        pages: Pages::new(
            page.number,
            total,
            page.per_page,
            format!("/dashboard/taxpayers?{here}"),
        ),
    })
}

/// Returns the beginning of the month, in UTC.
fn month_start(now: Timestamp) -> Timestamp {
    let first = now.to_zoned(TimeZone::UTC).date().first_of_month();
    first
        .to_zoned(TimeZone::UTC)
        .map_or(now, |first| first.timestamp())
}

impl TaxpayerLine {
    fn new(taxpayer: Taxpayer, usage: &HashMap<TaxpayerId, i64>) -> Self {
        Self {
            subscription: taxpayer.subscription.into(),
            verification: taxpayer.verification.status().into(),
            missing: taxpayer.missing_profile_fields().len(),
            invoices: usage.get(&taxpayer.id).copied().unwrap_or_default(),
            taxpayer,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_month_begins_at_midnight_of_its_first_day() {
        let month = month_start("2026-11-23T22:46:00Z".parse().unwrap());
        assert_eq!(month.to_string(), "2026-11-01T00:00:00Z");
    }
}

//! The taxpayers of all integrators: a list with a search.

use std::collections::HashMap;

use actix_web::web;
use askama::Template;

use crate::console::badges::Badge;
use crate::console::filters;
use crate::console::frame::Frame;
use crate::console::list_pages::{PagePosition, show_list};
use crate::console::operators::list_query::ListQuery;
use crate::console::page::Answer;
use crate::console::session::operators::Viewer;
use crate::domain::kernel::ids::TaxpayerId;
use crate::domain::party::Taxpayer;
use crate::domain::party::verification::VerificationStatus;
use crate::http::forms::query::Query;
use crate::http::paths::{Path, path};
use crate::http::state::ApiState;
use crate::store::accounts::taxpayers;
use crate::store::accounts::taxpayers::TaxpayerFilter;

pub(super) fn paths() -> Vec<Path> {
    vec![path("/console/taxpayers").page(list_taxpayers)]
}

#[derive(Template)]
#[template(path = "operators/taxpayers.html")]
struct TaxpayersPage {
    frame: Frame,
    list: ListQuery,
    rows: Vec<TaxpayerLine>,
    pages: PagePosition,
}

struct TaxpayerLine {
    verification: Badge,
    subscription: Badge,
    taxpayer: Taxpayer,
}

/// GET /console/taxpayers: lists the taxpayers that match, newest first.
async fn list_taxpayers(
    state: web::Data<ApiState>,
    Viewer(session): Viewer,
    query: Query,
) -> Answer {
    let list = ListQuery::new(&query);
    let filter = TaxpayerFilter {
        verification: list.0.word(
            "verification",
            VerificationStatus::parse,
            VerificationStatus::allowed_words,
        )?,
        search: list.0.trimmed_text("q"),
        ..TaxpayerFilter::default()
    };
    let (found, total) = taxpayers::page(&state.store, filter, list.page()).await?;
    let page = TaxpayersPage {
        frame: Frame::for_operator(&session, "Taxpayers"),
        pages: list.pages("/console/taxpayers", total),
        rows: found.into_iter().map(TaxpayerLine::from).collect(),
        list,
    };
    show_list(&page.pages, &page)
}

impl From<Taxpayer> for TaxpayerLine {
    fn from(taxpayer: Taxpayer) -> Self {
        let status = taxpayer.verification.status();
        let subscription = taxpayer.subscription;
        Self {
            verification: status.into(),
            subscription: subscription.into(),
            taxpayer,
        }
    }
}

/// Returns the name of a taxpayer, or its number if it is not among these.
pub(super) fn name_or_number(owners: &HashMap<TaxpayerId, Taxpayer>, id: TaxpayerId) -> String {
    let owner = owners.get(&id);
    owner.map_or_else(|| id.to_string(), |owner| owner.name.clone())
}

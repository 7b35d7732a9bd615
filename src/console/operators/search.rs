//! The search of the navigation: leads to the page of the only match, or lists all matches.

use actix_web::web;
use askama::Template;

use crate::console::frame::Frame;
use crate::console::page::{Answer, redirect, show};
use crate::console::session::operators::Viewer;
use crate::http::forms::query::Query;
use crate::http::paths::{Path, path};
use crate::http::search::{self, FoundObject};
use crate::http::state::ApiState;
use crate::store::operations::search::TAXPAYERS_MAX;

pub(super) fn paths() -> Vec<Path> {
    vec![path("/console/search").page(show_search_results)]
}

#[derive(Template)]
#[template(path = "operators/search.html")]
struct SearchPage {
    frame: Frame,
    text: String,
    found: Vec<FoundObject>,
    taxpayers_max: u64,
}

/// GET /console/search?q=: shows the only match, or lists all matches.
async fn show_search_results(
    state: web::Data<ApiState>,
    Viewer(session): Viewer,
    query: Query,
) -> Answer {
    let text = query.trimmed_text("q").unwrap_or_default();
    let found = if text.is_empty() {
        Vec::new()
    } else {
        search::find(&state, &text).await?
    };
    if let [only] = found.as_slice() {
        return Ok(redirect(&only.page));
    }
    let frame = Frame::for_operator(&session, "Search");
    show(&SearchPage {
        frame,
        text,
        found,
        taxpayers_max: TAXPAYERS_MAX,
    })
}

//! The taxpayers that use this replica most, by a measure within a window. The address says which measure and which
//! window are chosen.

use actix_web::web;
use askama::Template;
use jiff::Timestamp;
use supervision::Window;

use crate::actors::taxpayer::usage::{UsageCounts, UsageMeasure};
use crate::console::filters;
use crate::console::frame::Frame;
use crate::console::operators::choices::{Choice, ChoiceRow, find_window, window_words};
use crate::console::page::{Answer, show};
use crate::console::session::operators::Viewer;
use crate::domain::kernel::ids::TaxpayerId;
use crate::http::api::ops::taxpayer_load::load_top_taxpayers;
use crate::http::forms::query::Query;
use crate::http::paths::{Path, path};
use crate::http::state::ApiState;

const PAGE: &str = "/console/top-taxpayers";

pub(super) fn paths() -> Vec<Path> {
    vec![path(PAGE).page(show_top_taxpayers)]
}

#[derive(Template)]
#[template(path = "operators/top_taxpayers.html")]
struct TopTaxpayersPage {
    frame: Frame,
    since: Timestamp,
    choices: Vec<ChoiceRow>,
    /// The length of the window, as the column headings show it.
    window: &'static str,
    lines: Vec<TaxpayerLine>,
}

struct TaxpayerLine {
    id: TaxpayerId,
    name: String,
    counts: UsageCounts,
}

/// GET /console/top-taxpayers: shows the taxpayers that use this replica most.
async fn show_top_taxpayers(
    state: web::Data<ApiState>,
    Viewer(session): Viewer,
    query: Query,
) -> Answer {
    let view = TopTaxpayersView::new(&query);
    let top = load_top_taxpayers(&state, view.measure, view.window).await;
    let lines = top.into_iter().map(|(id, name, counts)| TaxpayerLine {
        id,
        name: name.unwrap_or_else(|| format!("Taxpayer {id}")),
        counts,
    });
    show(&TopTaxpayersPage {
        frame: Frame::for_operator(&session, "Top taxpayers"),
        since: state.replicas.started_at(),
        choices: view.choices(),
        window: window_words(view.window),
        lines: lines.collect(),
    })
}

/// The choice of the measure and of the window, which the address of the page contains.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct TopTaxpayersView {
    measure: UsageMeasure,
    window: Window,
}

impl TopTaxpayersView {
    /// Reads the view from an address. Missing and unknown values become the defaults.
    fn new(query: &Query) -> Self {
        let measure = query.text("by").and_then(UsageMeasure::parse);
        Self {
            measure: measure.unwrap_or(UsageMeasure::Writes),
            window: find_window(query.text("minutes").unwrap_or_default()),
        }
    }

    fn choices(self) -> Vec<ChoiceRow> {
        let choice = |text: &str, view: Self| Choice {
            text: text.to_owned(),
            address: format!(
                "{PAGE}?by={}&minutes={}",
                view.measure,
                view.window.minutes()
            ),
            is_current: view == self,
        };
        let measures = UsageMeasure::ALL.iter().map(|measure| {
            let measure = *measure;
            choice(measure_words(measure), Self { measure, ..self })
        });
        let windows =
            Window::ALL.map(|window| choice(window_words(window), Self { window, ..self }));
        vec![
            ChoiceRow::new("Most first by", measures.collect()),
            ChoiceRow::new("In the last", windows.into()),
        ]
    }
}

fn measure_words(measure: UsageMeasure) -> &'static str {
    match measure {
        UsageMeasure::Writes => "writes",
        UsageMeasure::Wait => "longest wait",
        UsageMeasure::Runs => "runs",
        UsageMeasure::Deliveries => "deliveries",
        UsageMeasure::Refusals => "rejected runs",
        UsageMeasure::Throttled => "answers 429",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_link_changes_one_choice_and_one_link_of_each_row_is_current() {
        let chosen = TopTaxpayersView::new(&Query::from_text("by=throttled&minutes=60"));
        assert_eq!(
            (chosen.measure, chosen.window),
            (UsageMeasure::Throttled, Window::Hour)
        );
        for row in chosen.choices() {
            let current: Vec<_> = row.choices.iter().filter(|one| one.is_current).collect();
            assert_eq!(current.len(), 1, "{}", row.label);
            assert_eq!(
                current[0].address,
                format!("{PAGE}?by=throttled&minutes=60")
            );
        }
        let unknown = TopTaxpayersView::new(&Query::from_text("by=colour&minutes=7"));
        assert_eq!(
            (unknown.measure, unknown.window),
            (UsageMeasure::Writes, Window::FiveMinutes)
        );
    }
}

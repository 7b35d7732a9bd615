//! The report of a month, a quarter or a year: the VAT of its sales by tax category and rate, its documents by
//! currency, kind and state, and the gaps in the invoice numbers.

use std::collections::BTreeMap;
use std::iter;

use actix_web::web;
use askama::Template;
use jiff::civil::Date;

use crate::console::accounts::lifecycle::Lifecycle;
use crate::console::accounts::navigation::base_path;
use crate::console::badges::Badge;
use crate::console::filters;
use crate::console::frame::Frame;
use crate::console::page::{Answer, show};
use crate::console::session::accounts::Reader;
use crate::domain::invoice::number_series::SeriesSummary;
use crate::domain::invoice::period_report::ReportTable;
use crate::domain::invoice::period_summary::{AmountSums, PeriodSummary};
use crate::domain::invoice::report_period::{PeriodKind, ReportPeriod};
use crate::domain::invoice::totals::TotalTooLarge;
use crate::domain::invoice::vat_return::{BySignature, Rate, TaxedSum};
use crate::domain::kernel::codes::DocumentKind;
use crate::domain::reference::catalog::{Catalog, ReferenceList};
use crate::http::exports::{self, TableFormat};
use crate::http::forms::query::Query;
use crate::http::forms::report_period;
use crate::http::limits::AnswerHolder;
use crate::http::paths::{Path, path};
use crate::http::respond::error::ApiError;
use crate::http::respond::file::FileAnswer;
use crate::http::state::ApiState;

pub(crate) fn paths() -> Vec<Path> {
    vec![
        path("/dashboard/{taxpayer}/reports").page(show_report),
        path("/dashboard/{taxpayer}/reports/files/{file}").page(download_report),
    ]
}

/// The maximum number of number series that the page shows, and of gaps in each of them.
const SERIES_SHOWN_MAX: usize = 20;
const GAPS_SHOWN_MAX: usize = 20;
/// The maximum number of quarters or years before the shown one that the form offers, and of those after it.
const CHOICES_PER_SIDE_MAX: usize = 8;

#[derive(Template)]
#[template(path = "accounts/reports.html")]
struct ReportPage {
    frame: Frame,
    base: String,
    period: ReportPeriod,
    tabs: Vec<PeriodTab>,
    /// The quarters or the years that the form offers, newest first; empty for a month, which is typed.
    choices: Vec<ReportPeriod>,
    previous: Option<ReportPeriod>,
    /// The next period; `None` if it has not begun.
    following: Option<ReportPeriod>,
    vat: Vec<VatLine>,
    /// The number of documents whose signed payable differs from the stored one.
    signed_otherwise: u64,
    rows: Vec<SumLine>,
    totals: Vec<TotalLine>,
    series: Vec<SeriesSummary>,
    unlisted_series: usize,
}

/// The link to a period of another length.
struct PeriodTab {
    label: &'static str,
    period: ReportPeriod,
    is_current: bool,
}

/// The sales of one currency with one rate, or all of them.
struct VatLine {
    name: String,
    /// The percent; empty for a total.
    percent: String,
    is_total: bool,
    sums: BySignature<TaxedSum>,
}

/// The documents of one currency, kind and state.
struct SumLine {
    currency: String,
    kind: &'static str,
    state: Badge,
    sum: AmountSums,
}

/// The sales in one currency: those that are signed, or those that are not signed yet.
struct TotalLine {
    name: String,
    sum: AmountSums,
}

/// GET /dashboard/{taxpayer}/reports: shows the report of a period.
async fn show_report(state: web::Data<ApiState>, Reader(session): Reader, query: Query) -> Answer {
    let today = state.today();
    let period = report_period::read(&query, today)?;
    let holder = AnswerHolder::for_taxpayer(session.taxpayer, None);
    let summary = exports::sum_up_period(&state, holder, session.taxpayer, period).await?;
    let catalog = state.catalog.get();
    let series = summary.numbers.summaries(SERIES_SHOWN_MAX, GAPS_SHOWN_MAX);
    let signed_otherwise = summary.vat.values().map(|vat| vat.signed_otherwise);
    show(&ReportPage {
        frame: Frame::for_account(&session, "Reports"),
        base: base_path(&session),
        tabs: period_tabs(period, today),
        choices: period_choices(period, today),
        previous: period.previous(),
        following: following_period(period, today),
        period,
        vat: vat_lines(&summary, &catalog),
        signed_otherwise: signed_otherwise.sum(),
        rows: sum_lines(&summary, &catalog)?,
        totals: total_lines(&summary, &catalog),
        unlisted_series: summary.numbers.series_count().saturating_sub(series.len()),
        series,
    })
}

/// GET /dashboard/{taxpayer}/reports/files/{file}: a table of the report, such as `vat.csv` or `gaps.xlsx`.
async fn download_report(
    state: web::Data<ApiState>,
    Reader(session): Reader,
    query: Query,
    ids: web::Path<(String, String)>,
) -> Result<FileAnswer, ApiError> {
    let file = parse_file_name(&ids.1).ok_or_else(ApiError::route_not_found)?;
    let period = report_period::read(&query, state.today())?;
    let holder = AnswerHolder::for_taxpayer(session.taxpayer, None);
    let summary = exports::sum_up_period(&state, holder, session.taxpayer, period).await?;
    exports::period_file(&state, period, &summary, file.table, file.format)
}

struct ReportFile {
    table: ReportTable,
    format: TableFormat,
}

fn parse_file_name(name: &str) -> Option<ReportFile> {
    let (table, extension) = name.split_once('.')?;
    let format = TableFormat::from_extension(extension)?;
    let table = ReportTable::ALL.iter().find(|one| one.as_str() == table)?;
    (format != TableFormat::Ndjson).then_some(ReportFile {
        table: *table,
        format,
    })
}

/// Returns the links to the month, the quarter and the year of one day: today or, if today is not in the shown period,
/// the day of the shown period that is nearest to it.
fn period_tabs(shown: ReportPeriod, today: Date) -> Vec<PeriodTab> {
    let day = today.clamp(shown.first_day(), shown.last_day());
    let tabs = PeriodKind::ALL.iter().map(|kind| PeriodTab {
        label: match kind {
            PeriodKind::Month => "Month",
            PeriodKind::Quarter => "Quarter",
            PeriodKind::Year => "Year",
        },
        period: ReportPeriod::containing(*kind, day),
        is_current: *kind == shown.kind(),
    });
    tabs.collect()
}

/// Returns the period after this one; `None` if it has not begun.
fn following_period(period: ReportPeriod, today: Date) -> Option<ReportPeriod> {
    let following = period.following()?;
    (following.first_day() <= today).then_some(following)
}

fn period_choices(shown: ReportPeriod, today: Date) -> Vec<ReportPeriod> {
    if shown.kind() == PeriodKind::Month {
        return Vec::new();
    }
    let later = iter::successors(Some(shown), |one| following_period(*one, today));
    let mut choices: Vec<_> = later.take(CHOICES_PER_SIDE_MAX + 1).collect();
    choices.reverse();
    let earlier = iter::successors(shown.previous(), |one| one.previous());
    choices.extend(earlier.take(CHOICES_PER_SIDE_MAX));
    choices
}

/// Returns a line for each rate, and one for the total of each currency.
fn vat_lines(summary: &PeriodSummary, catalog: &Catalog) -> Vec<VatLine> {
    let mut lines = Vec::new();
    for (currency, vat) in &summary.vat {
        let digits = catalog.currency_digits(currency);
        let with_currency_digits = |sums: BySignature<TaxedSum>| BySignature {
            signed: sums.signed.with_digits(digits),
            unsigned: sums.unsigned.with_digits(digits),
        };
        let rates = vat.rates.iter().map(|(rate, sums)| VatLine {
            name: format!("{} in {currency}", category_name(rate, catalog)),
            percent: rate
                .percent
                .map(|percent| format!("{percent} %"))
                .unwrap_or_default(),
            is_total: false,
            sums: with_currency_digits(*sums),
        });
        lines.extend(rates);
        lines.push(VatLine {
            name: format!("Total in {currency}"),
            percent: String::new(),
            is_total: true,
            sums: with_currency_digits(vat.total),
        });
    }
    lines
}

/// Returns the name of a tax category in the authority's list. The printed invoice says only "VAT", but here the
/// categories with a rate of zero must have different names.
fn category_name<'a>(rate: &'a Rate, catalog: &'a Catalog) -> &'a str {
    let code = rate.category_text();
    let listed = catalog.name(ReferenceList::TaxCategories, code);
    listed.unwrap_or(code)
}

/// Returns the sums by currency, kind and state. The states are the words of the list of invoices.
fn sum_lines(summary: &PeriodSummary, catalog: &Catalog) -> Result<Vec<SumLine>, ApiError> {
    let mut sums: BTreeMap<(&str, DocumentKind, Lifecycle), AmountSums> = BTreeMap::new();
    for ((key, authority), part) in &summary.by_authority_status {
        let state = Lifecycle::new(key.status, *authority);
        let sum = sums
            .entry((key.currency.as_str(), key.kind, state))
            .or_default();
        let merged = sum.merge(*part).ok_or(TotalTooLarge);
        *sum = merged.map_err(ApiError::internal)?;
    }
    let lines = sums
        .into_iter()
        .map(|((currency, kind, state), sum)| SumLine {
            kind: match kind {
                DocumentKind::Invoice => "Invoices",
                DocumentKind::CreditNote => "Credit notes",
                DocumentKind::SelfBilled => "Self-billed invoices",
                DocumentKind::SelfBilledCreditNote => "Self-billed credit notes",
                DocumentKind::Other => "Other documents",
            },
            state: state.into(),
            sum: with_digits(sum, catalog.currency_digits(currency)),
            currency: currency.to_owned(),
        });
    Ok(lines.collect())
}

fn total_lines(summary: &PeriodSummary, catalog: &Catalog) -> Vec<TotalLine> {
    let lines = summary.sales.iter().flat_map(|(currency, sales)| {
        let digits = catalog.currency_digits(currency);
        let parts = [("signed", sales.signed), ("not signed yet", sales.unsigned)];
        parts.map(|(name, sum)| TotalLine {
            name: format!("Sales in {currency}, {name}"),
            sum: with_digits(sum, digits),
        })
    });
    lines.collect()
}

fn with_digits(sum: AmountSums, digits: u32) -> AmountSums {
    AmountSums {
        count: sum.count,
        net: sum.net.with_digits(digits),
        tax: sum.tax.with_digits(digits),
        gross: sum.gross.with_digits(digits),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::domain::correction::testing::{draft, signed};
    use crate::domain::invoice::Line;
    use crate::domain::kernel::codes::{AuthorityStatus, WorkflowStatus};

    #[test]
    fn a_state_of_the_report_is_the_word_of_the_list() {
        let mut catalog = Catalog::default();
        let categories = json!([{ "code": "STANDARD_VAT", "percent": 7.5 }]);
        catalog.load(ReferenceList::TaxCategories, &categories);
        let mut summary = PeriodSummary::default();
        for (status, authority) in [
            (WorkflowStatus::Approved, AuthorityStatus::Pending),
            (WorkflowStatus::Paid, AuthorityStatus::Pending),
            (WorkflowStatus::Approved, AuthorityStatus::Rejected),
            (WorkflowStatus::Draft, AuthorityStatus::Rejected),
            (WorkflowStatus::Approved, AuthorityStatus::Failed),
        ] {
            let mut invoice = signed(draft(vec![Line::sample()]));
            invoice.status = status;
            invoice.authority.status = authority;
            summary.add(&invoice, &catalog).unwrap();
        }
        let lines = sum_lines(&summary, &catalog).unwrap();
        let found: Vec<_> = lines
            .iter()
            .map(|line| format!("{} {}", line.sum.count, line.state.text))
            .collect();
        assert_eq!(found, ["2 Approved", "2 Rejected", "1 Stopped"]);
    }

    #[test]
    fn a_period_is_chosen_among_its_neighbours_that_have_begun() {
        use PeriodKind::{Month, Quarter, Year};
        let today = Date::constant(2026, 11, 24);
        // The shown period; the links to a month, a quarter and a year; the newest and the oldest choice.
        for (kind, shown, tabs, choices) in [
            (Month, "2026-11", "2026-11 2026-Q4 2026", ""),
            (
                Quarter,
                "2026-Q4",
                "2026-11 2026-Q4 2026",
                "2026-Q4 2024-Q4",
            ),
            (
                Quarter,
                "2026-Q1",
                "2026-03 2026-Q1 2026",
                "2026-Q4 2024-Q1",
            ),
            (Year, "2026", "2026-11 2026-Q4 2026", "2026 2018"),
            (Year, "2016", "2016-12 2016-Q4 2016", "2024 2008"),
            (Year, "2030", "2030-01 2030-Q1 2030", "2030 2022"),
        ] {
            let period = ReportPeriod::parse(kind, shown).unwrap();
            let found = period_tabs(period, today).into_iter();
            let found: Vec<_> = found.map(|tab| tab.period.to_string()).collect();
            assert_eq!(found.join(" "), tabs, "{shown}");
            let found = period_choices(period, today);
            let ends = [found.first(), found.last()].into_iter().flatten();
            let ends: Vec<_> = ends.map(ReportPeriod::to_string).collect();
            assert_eq!(ends.join(" "), choices, "{shown}");
        }
    }
}

//! The summary of a month: sums by currency, kind of document and status, and the series of the invoice numbers.

use jiff::civil::Date;
use serde::Serialize;
use utoipa::ToSchema;

use crate::domain::invoice::month_summary::{AmountSums, MonthSummary, SumKey};
use crate::domain::invoice::number_series::{Gap, SeriesSummary};
use crate::domain::kernel::codes::{DocumentKind, WorkflowStatus};
use crate::domain::money::Amount;
use crate::domain::reference::catalog::Catalog;

/// The maximum number of series that are shown.
const SERIES_SHOWN_MAX: usize = 50;
/// The maximum number of gaps of a series that are shown.
const GAPS_SHOWN_MAX: usize = 50;

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = MonthSummary)]
pub(crate) struct MonthSummaryView {
    /// The month of the invoice dates, YYYY-MM.
    month: String,
    /// The number of documents of all kinds.
    count: u64,
    sums: Vec<SumView>,
    numbers: NumbersView,
}

/// The documents of one currency, kind and status.
#[derive(Debug, Serialize, ToSchema)]
struct SumView {
    currency: String,
    kind: DocumentKind,
    status: WorkflowStatus,
    count: u64,
    /// The sum of the amounts before tax.
    net: Amount,
    /// The sum of all taxes.
    vat: Amount,
    /// The sum of the amounts with tax.
    gross: Amount,
}

#[derive(Debug, Serialize, ToSchema)]
struct NumbersView {
    /// The series with the most numbers, at most 50.
    series: Vec<SeriesView>,
    /// The number of series that are not shown.
    series_left_out: usize,
    /// The number of invoices whose numbers belong to no series, because they do not end in a digit.
    without_series: u64,
}

/// Numbers with the same text before the digits at their end.
#[derive(Debug, Serialize, ToSchema)]
struct SeriesView {
    prefix: String,
    count: u64,
    first: String,
    last: String,
    /// The last number without its prefix.
    last_sequence: u64,
    /// The count of all missing numbers; null if the numbers are too scattered to tell.
    missing: Option<u64>,
    /// The first gaps, at most 50.
    gaps: Vec<GapView>,
}

/// Missing numbers in a row.
#[derive(Debug, Serialize, ToSchema)]
struct GapView {
    from: String,
    to: String,
    count: u64,
}

impl MonthSummaryView {
    pub(crate) fn new(month: Date, summary: &MonthSummary, catalog: &Catalog) -> Self {
        let sums = summary.sums.iter();
        let counts = summary.sums.values().map(|sum| sum.count);
        let numbers = &summary.numbers;
        let series = numbers.summaries(SERIES_SHOWN_MAX, GAPS_SHOWN_MAX);
        Self {
            month: month.strftime("%Y-%m").to_string(),
            count: counts.sum(),
            sums: sums
                .map(|(key, sum)| SumView::new(key, *sum, catalog))
                .collect(),
            numbers: NumbersView {
                series_left_out: numbers.series_count().saturating_sub(series.len()),
                series: series.into_iter().map(SeriesView::from).collect(),
                without_series: numbers.others,
            },
        }
    }
}

impl SumView {
    fn new(key: &SumKey, sum: AmountSums, catalog: &Catalog) -> Self {
        let digits = catalog.currency_digits(&key.currency);
        Self {
            currency: key.currency.clone(),
            kind: key.kind,
            status: key.status,
            count: sum.count,
            net: sum.net.with_digits(digits),
            vat: sum.tax.with_digits(digits),
            gross: sum.gross.with_digits(digits),
        }
    }
}

impl From<SeriesSummary> for SeriesView {
    fn from(series: SeriesSummary) -> Self {
        Self {
            prefix: series.prefix,
            count: series.count,
            first: series.first,
            last: series.last,
            last_sequence: series.last_sequence,
            missing: series.missing,
            gaps: series.gaps.into_iter().map(GapView::from).collect(),
        }
    }
}

impl From<Gap> for GapView {
    fn from(gap: Gap) -> Self {
        Self {
            from: gap.from,
            to: gap.to,
            count: gap.count,
        }
    }
}

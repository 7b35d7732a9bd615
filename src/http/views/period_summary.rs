//! The summary of a period: sums by currency, kind of document and status, the VAT of the sales by tax category and
//! rate, and the series of the invoice numbers.

use serde::Serialize;
use utoipa::ToSchema;

use crate::domain::invoice::number_series::{Gap, SeriesSummary};
use crate::domain::invoice::period_summary::{AmountSums, PeriodSummary, SumKey};
use crate::domain::invoice::report_period::{PeriodKind, ReportPeriod};
use crate::domain::invoice::vat_return::{CurrencyVat, TaxedSum};
use crate::domain::kernel::codes::{DocumentKind, WorkflowStatus};
use crate::domain::money::Amount;
use crate::domain::reference::catalog::Catalog;

/// The maximum number of series that are shown.
const SERIES_SHOWN_MAX: usize = 50;
/// The maximum number of gaps of a series that are shown.
const GAPS_SHOWN_MAX: usize = 50;

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = PeriodSummary)]
pub(crate) struct PeriodSummaryView {
    /// The month of the invoice dates, YYYY-MM; null for a quarter or a year.
    month: Option<String>,
    /// The first day of the period, written YYYY-MM-DD.
    from: String,
    /// The last day of the period, written YYYY-MM-DD.
    to: String,
    /// The number of documents of all kinds.
    count: u64,
    sums: Vec<SumView>,
    /// The sales as a VAT return asks for them: invoices less credit notes, by currency. Rejected documents do not
    /// count, nor do drafts that are not on their way to the authority and cancelled documents that are not signed.
    vat_return: Vec<VatReturnView>,
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

/// The sales in one currency.
#[derive(Debug, Serialize, ToSchema)]
struct VatReturnView {
    currency: String,
    /// The figure to declare: the documents that the authority has signed.
    signed: TaxedSumView,
    /// The documents that are approved, or on their way to the authority, and not signed yet. Do not declare them.
    unsigned: TaxedSumView,
    /// The number of documents that were signed over another payable than is stored here. Their stored amounts count:
    /// check them.
    signed_otherwise: u64,
    /// The same sums by tax category and percent.
    rates: Vec<VatRateView>,
}

/// The sales with one tax category and percent.
#[derive(Debug, Serialize, ToSchema)]
struct VatRateView {
    /// The code of the tax category. Null for the rates beyond the first 500, which have one sum.
    category: Option<String>,
    percent: Option<Amount>,
    /// The part of the documents that the authority has signed.
    signed: TaxedSumView,
    /// The part of the documents that are approved, or on their way to the authority, and not signed yet.
    unsigned: TaxedSumView,
}

#[derive(Debug, Serialize, ToSchema)]
struct TaxedSumView {
    /// The sum of the amounts on which the tax was computed.
    net: Amount,
    /// The sum of the tax.
    vat: Amount,
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

impl PeriodSummaryView {
    pub(crate) fn new(period: ReportPeriod, summary: &PeriodSummary, catalog: &Catalog) -> Self {
        let sums = summary.sums.iter();
        let vat = summary.vat.iter();
        let counts = summary.sums.values().map(|sum| sum.count);
        let numbers = &summary.numbers;
        let series = numbers.summaries(SERIES_SHOWN_MAX, GAPS_SHOWN_MAX);
        Self {
            month: (period.kind() == PeriodKind::Month).then(|| period.to_string()),
            from: period.first_day().to_string(),
            to: period.last_day().to_string(),
            count: counts.sum(),
            sums: sums
                .map(|(key, sum)| SumView::new(key, *sum, catalog))
                .collect(),
            vat_return: vat
                .map(|(currency, vat)| VatReturnView::new(currency, vat, catalog))
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

impl VatReturnView {
    fn new(currency: &str, vat: &CurrencyVat, catalog: &Catalog) -> Self {
        let digits = catalog.currency_digits(currency);
        let sum = |sum: TaxedSum| TaxedSumView::from(sum.with_digits(digits));
        let rates = vat.rates.iter().map(|(rate, sums)| VatRateView {
            category: rate.category.clone(),
            percent: rate.percent,
            signed: sum(sums.signed),
            unsigned: sum(sums.unsigned),
        });
        Self {
            currency: currency.to_owned(),
            signed: sum(vat.total.signed),
            unsigned: sum(vat.total.unsigned),
            signed_otherwise: vat.signed_otherwise,
            rates: rates.collect(),
        }
    }
}

impl From<TaxedSum> for TaxedSumView {
    fn from(sum: TaxedSum) -> Self {
        Self {
            net: sum.net,
            vat: sum.tax,
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

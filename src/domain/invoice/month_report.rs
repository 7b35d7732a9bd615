//! The tables of a monthly report: the sums with VAT, and the gaps in the series of invoice numbers.

use std::collections::BTreeMap;

use crate::domain::invoice::month_summary::{AmountSums, MonthSummary};
use crate::domain::invoice::number_series::{RANGES_MAX, SERIES_MAX};
use crate::domain::invoice::table_rows::Cell;
use crate::domain::invoice::totals::TotalTooLarge;
use crate::domain::kernel::codes::words;
use crate::domain::money::Amount;
use crate::domain::reference::catalog::Catalog;

words! {
    /// A table of the report.
    ReportTable {
        /// Net, VAT and gross amounts by currency, kind of document and status.
        Vat = "vat",
        /// The missing numbers of each series.
        Gaps = "gaps",
    }
}

impl ReportTable {
    pub fn columns(self) -> &'static [&'static str] {
        match self {
            Self::Vat => &["currency", "kind", "status", "count", "net", "vat", "gross"],
            Self::Gaps => &["prefix", "from", "to", "count"],
        }
    }
}

/// Returns the sums of the taxpayer's sales in the month by currency: invoices less credit notes, without drafts and
/// cancelled documents, unless the authority has signed them.
pub fn totals_by_currency(
    summary: &MonthSummary,
) -> Result<BTreeMap<String, AmountSums>, TotalTooLarge> {
    let mut totals: BTreeMap<String, AmountSums> = BTreeMap::new();
    let active = summary.sums.iter().filter(|(key, _)| key.is_active());
    let in_force = active.chain(&summary.signed_inactive);
    for (key, sum) in in_force.filter(|(key, _)| key.kind.is_sale()) {
        let total = totals.entry(key.currency.clone()).or_default();
        let add = if key.kind.is_credit_note() {
            Amount::minus
        } else {
            Amount::plus
        };
        *total = AmountSums {
            count: total.count + sum.count,
            net: add(total.net, sum.net).ok_or(TotalTooLarge)?,
            tax: add(total.tax, sum.tax).ok_or(TotalTooLarge)?,
            gross: add(total.gross, sum.gross).ok_or(TotalTooLarge)?,
        };
    }
    Ok(totals)
}

/// Returns the rows of a table, without its header.
pub fn report_rows(
    summary: &MonthSummary,
    table: ReportTable,
    catalog: &Catalog,
) -> Vec<Vec<Cell<'static>>> {
    match table {
        ReportTable::Vat => vat_rows(summary, catalog),
        ReportTable::Gaps => gap_rows(summary),
    }
}

fn vat_rows(summary: &MonthSummary, catalog: &Catalog) -> Vec<Vec<Cell<'static>>> {
    let rows = summary.sums.iter().map(|(key, sum)| {
        let digits = catalog.currency_digits(&key.currency);
        let money = |amount: Amount| Cell::Number(amount.with_digits(digits));
        vec![
            Cell::Text(key.currency.clone().into()),
            Cell::Text(key.kind.as_str().into()),
            Cell::Text(key.status.as_str().into()),
            count_cell(sum.count),
            money(sum.net),
            money(sum.tax),
            money(sum.gross),
        ]
    });
    rows.collect()
}

fn gap_rows(summary: &MonthSummary) -> Vec<Vec<Cell<'static>>> {
    let series = summary.numbers.summaries(SERIES_MAX, RANGES_MAX);
    let rows = series.into_iter().flat_map(|series| {
        let prefix = series.prefix;
        series.gaps.into_iter().map(move |gap| {
            vec![
                Cell::Text(prefix.clone().into()),
                Cell::Text(gap.from.into()),
                Cell::Text(gap.to.into()),
                count_cell(gap.count),
            ]
        })
    });
    rows.collect()
}

fn count_cell(count: u64) -> Cell<'static> {
    Cell::Number(i64::try_from(count).unwrap_or(i64::MAX).into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::invoice::month_summary::SumKey;
    use crate::domain::kernel::codes::{DocumentKind, WorkflowStatus};

    #[test]
    fn a_month_comes_to_its_invoices_less_its_credit_notes() {
        let sum = |tax: &str| AmountSums {
            count: 1,
            tax: Amount::parse(tax).unwrap(),
            ..AmountSums::default()
        };
        let mut summary = MonthSummary::default();
        for (currency, kind, status, tax) in [
            ("NGN", DocumentKind::Invoice, WorkflowStatus::Approved, "75"),
            ("NGN", DocumentKind::Invoice, WorkflowStatus::Paid, "7.5"),
            ("NGN", DocumentKind::Invoice, WorkflowStatus::Draft, "1000"),
            (
                "NGN",
                DocumentKind::Invoice,
                WorkflowStatus::Cancelled,
                "1000",
            ),
            (
                "NGN",
                DocumentKind::CreditNote,
                WorkflowStatus::Submitted,
                "2.5",
            ),
            (
                "USD",
                DocumentKind::CreditNote,
                WorkflowStatus::Approved,
                "1",
            ),
            (
                "NGN",
                DocumentKind::SelfBilled,
                WorkflowStatus::Approved,
                "1000",
            ),
            (
                "NGN",
                DocumentKind::SelfBilledCreditNote,
                WorkflowStatus::Approved,
                "1000",
            ),
            ("EUR", DocumentKind::Other, WorkflowStatus::Approved, "1"),
        ] {
            let key = SumKey {
                currency: currency.into(),
                kind,
                status,
            };
            summary.sums.insert(key, sum(tax));
        }
        let totals = totals_by_currency(&summary).unwrap();
        let shown = totals
            .iter()
            .map(|(currency, sum)| format!("{currency} {} {}", sum.count, sum.tax));
        assert_eq!(shown.collect::<Vec<_>>(), ["NGN 3 80.0", "USD 1 -1"]);
    }

    #[test]
    fn each_table_has_a_cell_for_each_of_its_columns() {
        let mut summary = MonthSummary::default();
        let key = SumKey {
            currency: "NGN".into(),
            kind: DocumentKind::CreditNote,
            status: WorkflowStatus::Approved,
        };
        let sum = AmountSums {
            count: 2,
            net: Amount::parse("100").unwrap(),
            tax: Amount::parse("7.5").unwrap(),
            gross: Amount::parse("107.5").unwrap(),
        };
        summary.sums.insert(key, sum);
        for number in ["INV7", "INV9", "INV12"] {
            summary.numbers.add(number);
        }
        let catalog = Catalog::default();
        let text = |table| {
            let rows = report_rows(&summary, table, &catalog);
            for row in &rows {
                assert_eq!(row.len(), table.columns().len());
            }
            let cells = rows.into_iter().map(|row| {
                let cells = row.into_iter().map(|cell| match cell {
                    Cell::Text(text) => text.into_owned(),
                    Cell::Number(number) => number.to_string(),
                    Cell::Empty => String::new(),
                });
                cells.collect::<Vec<_>>().join(" ")
            });
            cells.collect::<Vec<_>>()
        };
        let [vat] = text(ReportTable::Vat).try_into().unwrap();
        assert!(vat.starts_with("NGN credit_note approved 2 100"), "{vat}");
        assert_eq!(
            text(ReportTable::Gaps),
            ["INV INV8 INV8 1", "INV INV10 INV11 2"]
        );
    }
}

//! The tables of a report: the amounts by kind and status of the documents, the VAT by rate, and the gaps in the series
//! of invoice numbers.

use crate::domain::invoice::number_series::{RANGES_MAX, SERIES_MAX};
use crate::domain::invoice::period_summary::PeriodSummary;
use crate::domain::invoice::table_rows::Cell;
use crate::domain::kernel::codes::words;
use crate::domain::money::Amount;
use crate::domain::reference::catalog::Catalog;

words! {
    /// A table of the report.
    ReportTable {
        /// Net, VAT and gross amounts by currency, kind of document and status.
        Vat = "vat",
        /// Net and VAT of the sales by currency, tax category and percent.
        VatRates = "vat-rates",
        /// The missing numbers of each series.
        Gaps = "gaps",
    }
}

impl ReportTable {
    pub fn columns(self) -> &'static [&'static str] {
        match self {
            Self::Vat => &["currency", "kind", "status", "count", "net", "vat", "gross"],
            Self::VatRates => &[
                "currency",
                "category",
                "percent",
                "signed_net",
                "signed_vat",
                "unsigned_net",
                "unsigned_vat",
            ],
            Self::Gaps => &["prefix", "from", "to", "count"],
        }
    }
}

/// Returns the rows of a table, without its header.
pub fn report_rows(
    summary: &PeriodSummary,
    table: ReportTable,
    catalog: &Catalog,
) -> Vec<Vec<Cell<'static>>> {
    match table {
        ReportTable::Vat => vat_rows(summary, catalog),
        ReportTable::VatRates => rate_rows(summary, catalog),
        ReportTable::Gaps => gap_rows(summary),
    }
}

fn vat_rows(summary: &PeriodSummary, catalog: &Catalog) -> Vec<Vec<Cell<'static>>> {
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

fn rate_rows(summary: &PeriodSummary, catalog: &Catalog) -> Vec<Vec<Cell<'static>>> {
    let rows = summary.vat.iter().flat_map(|(currency, vat)| {
        let digits = catalog.currency_digits(currency);
        let money = move |amount: Amount| Cell::Number(amount.with_digits(digits));
        vat.rates.iter().map(move |(rate, sums)| {
            vec![
                Cell::Text(currency.clone().into()),
                Cell::Text(rate.category_text().to_owned().into()),
                rate.percent.map_or(Cell::Empty, Cell::Number),
                money(sums.signed.net),
                money(sums.signed.tax),
                money(sums.unsigned.net),
                money(sums.unsigned.tax),
            ]
        })
    });
    rows.collect()
}

fn gap_rows(summary: &PeriodSummary) -> Vec<Vec<Cell<'static>>> {
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
    use crate::domain::invoice::breakdown::TaxSubtotal;
    use crate::domain::invoice::period_summary::{AmountSums, SumKey};
    use crate::domain::invoice::vat_return::Sale;
    use crate::domain::kernel::codes::{DocumentKind, WorkflowStatus};

    #[test]
    fn each_table_has_a_cell_for_each_of_its_columns() {
        let mut summary = PeriodSummary::default();
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
        let sale = Sale {
            is_signed: true,
            is_credit_note: true,
        };
        let tax = TaxSubtotal {
            category: "STANDARD_VAT".into(),
            percent: Amount::parse("7.5").ok(),
            base: Amount::parse("100").unwrap(),
            tax: Amount::parse("7.5").unwrap(),
        };
        let vat = summary.vat.entry("NGN".into()).or_default();
        vat.add(sale, &[tax]).unwrap();
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
                let cells = row.iter().map(Cell::to_string);
                cells.collect::<Vec<_>>().join(" ")
            });
            cells.collect::<Vec<_>>()
        };
        let [vat] = text(ReportTable::Vat).try_into().unwrap();
        assert!(vat.starts_with("NGN credit_note approved 2 100"), "{vat}");
        assert_eq!(
            text(ReportTable::VatRates),
            ["NGN STANDARD_VAT 7.5 -100.00 -7.50 0.00 0.00"]
        );
        assert_eq!(
            text(ReportTable::Gaps),
            ["INV INV8 INV8 1", "INV INV10 INV11 2"]
        );
    }
}

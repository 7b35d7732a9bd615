//! The taxes of an invoice in words, such as "VAT 7.5 %", as the printed invoice names them.

use crate::domain::invoice::Line;
use crate::domain::invoice::breakdown::TaxSubtotal;
use crate::domain::money::Amount;
use crate::domain::reference::catalog::Catalog;
use crate::http::paper_texts::tax_words;

pub(super) struct TaxWords {
    /// The tax of each line, in the order of the lines.
    pub(super) lines: Vec<String>,
    /// The tax of each subtotal, in the order of the subtotals.
    pub(super) subtotals: Vec<String>,
}

impl TaxWords {
    pub(super) fn new(lines: &[Line], subtotals: &[TaxSubtotal], catalog: &Catalog) -> Self {
        let lines = lines.iter().map(|line| {
            let category = line.tax_category.as_str();
            tax_words(category, common_percent(category, subtotals), catalog)
        });
        Self {
            lines: lines.collect(),
            subtotals: subtotals
                .iter()
                .map(|one| tax_words(&one.category, one.percent, catalog))
                .collect(),
        }
    }
}

/// Returns the percent of all subtotals of a category; `None` if they state several, or none.
fn common_percent(category: &str, subtotals: &[TaxSubtotal]) -> Option<Amount> {
    let own = subtotals.iter().filter(|one| one.category == category);
    let mut percents = own.map(|one| one.percent);
    let first = percents.next()?;
    percents
        .all(|percent| percent == first)
        .then_some(first)
        .flatten()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::domain::reference::catalog::ReferenceList;

    #[test]
    fn a_tax_is_named_as_on_paper() {
        let mut catalog = Catalog::default();
        let listed = json!([
            { "code": "STANDARD_VAT", "value": "Standard Value-Added Tax", "percent": 7.5 },
            { "code": "STAMP_DUTY", "value": "Stamp Duty", "percent": 0 },
        ]);
        catalog.load(ReferenceList::TaxCategories, &listed);
        for (category, stated, expected) in [
            ("STANDARD_VAT", &[Some("5.00")][..], "VAT 5\u{a0}%"),
            ("STANDARD_VAT", &[], "VAT 7.5\u{a0}%"),
            ("STANDARD_VAT", &[None], "VAT 7.5\u{a0}%"),
            ("STANDARD_VAT", &[Some("5"), Some("10")], "VAT 7.5\u{a0}%"),
            ("STAMP_DUTY", &[], "Stamp Duty 0\u{a0}%"),
            ("OLD_LEVY", &[], "OLD_LEVY"),
            ("OLD_LEVY", &[Some("1")], "OLD_LEVY 1\u{a0}%"),
        ] {
            let line = Line {
                tax_category: category.to_owned(),
                ..Line::sample()
            };
            let stated = stated.iter().map(|percent| TaxSubtotal {
                category: category.to_owned(),
                percent: percent.map(|text| text.parse().unwrap()),
                base: Amount::ZERO,
                tax: Amount::ZERO,
            });
            let stated: Vec<_> = stated.collect();
            let words = TaxWords::new(&[line], &stated, &catalog);
            assert_eq!(words.lines, [expected], "{category}");
            assert_eq!(words.subtotals.len(), stated.len(), "{category}");
        }
    }
}

//! Reads a field whose value is a code of one of the authority's lists, such as a country or a
//! currency. A list that was not fetched yet accepts any code, with a warning.

use crate::domain::kernel::field_rule::FieldRule;
use crate::domain::kernel::invisible::is_unprintable;
use crate::domain::reference::catalog::{Catalog, ReferenceList};
use crate::domain::reference::country::country_code;
use crate::domain::reference::fuzzy_code::code_in_another_spelling;
use crate::http::forms::field::{Field, TEXT_CHARS_MAX};
use crate::http::forms::form_schema::FieldType;
use crate::http::forms::json_path::JsonPath;
use crate::http::forms::reader::FormReport;
use crate::http::forms::text_checks::{self, check_char_count, check_pattern, is_letters};

impl Field<'_> {
    /// Reads a code of one of the authority's lists.
    pub(crate) fn code(self, list: ReferenceList) -> Option<String> {
        self.short_code(TEXT_CHARS_MAX, list)
    }

    /// Reads a code of at most `chars_max` characters from one of the authority's lists.
    pub(crate) fn short_code(self, chars_max: usize, list: ReferenceList) -> Option<String> {
        let report = self.report;
        self.record_type(|| FieldType::Code {
            max: chars_max,
            list,
        })
        .check_trimmed(|text| {
            check_char_count(text, 0, chars_max)?;
            check_listed(report, list, text)
        })
    }

    /// Reads a code that matches a pattern and is on one of the authority's lists.
    pub(crate) fn patterned_code(
        self,
        pattern: &'static str,
        list: ReferenceList,
    ) -> Option<String> {
        let report = self.report;
        self.record_type(|| FieldType::Pattern {
            pattern,
            list: Some(list),
        })
        .check_trimmed(|text| {
            check_pattern(pattern, text).and_then(|()| check_listed(report, list, text))
        })
    }

    /// Reads a country code of two letters that is on the authority's list. Returns the code in capital letters.
    pub(crate) fn country(self) -> Option<String> {
        let report = self.report;
        self.record_type(|| FieldType::Country)
            .check_trimmed(|text| {
                if !is_letters(text, 2) {
                    return Err(text_checks::country_rule());
                }
                check_listed(report, ReferenceList::Countries, &text.to_ascii_uppercase())
            })
    }

    /// Reads a country, which may be written in any way, such as its name. Warns if the authority lists no such
    /// country.
    pub(crate) fn country_text(self, chars_max: usize) -> Option<String> {
        let report = self.report;
        let path = JsonPath::Field(self.parent, self.name).dotted_path();
        let text = self.text(chars_max)?;
        if country_code(report.catalog, &text).is_none() {
            if report
                .catalog
                .has(ReferenceList::Countries, &text)
                .is_some()
            {
                report.add_warning(format!(
                    "{path} is not on the list of countries, and the authority takes no invoice with it: \
                     send a code of 2 letters, such as NG"
                ));
            } else {
                report.record_unchecked_list(ReferenceList::Countries);
            }
        }
        Some(text)
    }

    /// Reads a currency code of three letters that is on the authority's list.
    pub(crate) fn currency(self) -> Option<String> {
        let report = self.report;
        self.record_type(|| FieldType::Currency)
            .check_trimmed(|text| {
                if !is_letters(text, 3) {
                    return Err(text_checks::currency_rule());
                }
                check_listed(report, ReferenceList::Currencies, text)
            })
    }
}

/// Reads a currency code of three letters in a query. A list that was not fetched yet accepts any code.
pub(crate) fn parse_currency(text: &str, catalog: &Catalog) -> Result<String, FieldRule> {
    let list = ReferenceList::Currencies;
    if !is_letters(text, 3) {
        return Err(text_checks::currency_rule());
    }
    if catalog.has(list, text) == Some(false) {
        return Err(unlisted_rule(catalog, list, text));
    }
    Ok(text.to_owned())
}

/// Checks that a code is on one of the authority's lists. A list that was not fetched accepts any code, with a warning.
fn check_listed(
    report: &FormReport<'_>,
    list: ReferenceList,
    text: &str,
) -> Result<String, FieldRule> {
    match report.catalog.has(list, text) {
        Some(false) => return Err(unlisted_rule(report.catalog, list, text)),
        Some(true) => {}
        None if text.chars().any(is_unprintable) => return Err(FieldRule::NoControlCharacters),
        None => report.record_unchecked_list(list),
    }
    Ok(text.to_owned())
}

fn unlisted_rule(catalog: &Catalog, list: ReferenceList, text: &str) -> FieldRule {
    FieldRule::Listed {
        list: list.as_str(),
        meant: code_in_another_spelling(catalog, list, text),
    }
}

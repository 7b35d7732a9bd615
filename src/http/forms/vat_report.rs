//! Report (spec.md): reads a sale and its VAT. In the authority's document the numbers are JSON strings.

use jiff::civil::Date;

use crate::domain::kernel::codes::VatStatus;
use crate::domain::kernel::field_rule::FieldRule;
use crate::domain::money::{Amount, TOLERANCE};
use crate::domain::party::Taxpayer;
use crate::domain::pipeline::vat_report::{AmountText, VatReport};
use crate::domain::pipeline::{RunPayload, RunRequest};
use crate::http::forms::bounds::AmountBounds;
use crate::http::forms::field::TEXT_CHARS_MAX;
use crate::http::forms::ownership;
use crate::http::forms::reader::Reader;

/// The maximum length of a tax number, in characters.
const TIN_CHARS_MAX: usize = 50;
/// The maximum length of the integrator's service id, in characters.
const ID_CHARS_MAX: usize = 100;
/// The maximum length of the IRN of a report, in characters (spec.md).
pub(crate) const REPORTED_IRN_CHARS_MAX: usize = 100;

/// Reads a report. `names_another_taxpayer` is true if the body's `integrator_service_id` is the service id of another
/// taxpayer.
pub(crate) fn read(
    reader: &mut Reader<'_>,
    taxpayer: Option<&Taxpayer>,
    names_another_taxpayer: bool,
) -> Option<RunRequest> {
    ownership::read_optional_business_id(reader, taxpayer);
    let agent_tin = reader.required("agent_tin").identifier(TIN_CHARS_MAX);
    let beneficiary_tin = reader.required("beneficiary_tin").identifier(TIN_CHARS_MAX);
    let irn = ownership::read_irn_with_max(reader, taxpayer, REPORTED_IRN_CHARS_MAX);
    let currency = reader.required("currency").currency();
    let item_description = reader
        .required("item_description")
        .long_text(0, TEXT_CHARS_MAX);
    let transaction_date = reader.required("transaction_date").date();
    let base_amount = reader.required("base_amount").amount(AmountBounds::Any);
    let other_taxes = reader.optional("other_taxes").amount(AmountBounds::Any);
    let vat_rate = reader.required("vat_rate").amount(AmountBounds::PERCENTAGE);
    let vat_calculated = reader.required("vat_calculated").amount(AmountBounds::Any);
    let total_amount = reader.required("total_amount").amount(AmountBounds::Any);
    let service_id = reader
        .required("integrator_service_id")
        .identifier(ID_CHARS_MAX);
    if names_another_taxpayer {
        reader.report_fault(
            "integrator_service_id",
            FieldRule::other("own", "must not be the service id of another taxpayer"),
        );
    }
    let vat_status = reader
        .required("vat_status")
        .word(VatStatus::parse, VatStatus::allowed_words);
    let sums = ReportSums {
        base: base_amount?,
        other_taxes: other_taxes.unwrap_or_default(),
        rate: vat_rate?,
        vat: vat_calculated?,
        total: total_amount?,
        digits: reader.catalog().currency_digits(currency.as_deref()?),
    };
    sums.warn_of_unfitting_amounts(reader, vat_status?);
    let report = VatReport {
        agent_tin: agent_tin?,
        beneficiary_tin: beneficiary_tin?,
        currency: currency?,
        item_description: item_description?,
        transaction_date: transaction_date?,
        integrator_service_id: service_id?,
        vat_status: vat_status?.authority_name().to_owned(),
        base_amount: base_amount?.into(),
        other_taxes: other_taxes.map(AmountText::from),
        vat_rate: vat_rate?.into(),
        vat_calculated: vat_calculated?.into(),
        total_amount: total_amount?.into(),
    };
    Some(RunRequest {
        irn: irn?,
        payload: RunPayload::Report(Box::new(report)),
    })
}

/// The amounts of a report, and the digits of their currency.
#[derive(Debug, Clone, Copy)]
struct ReportSums {
    base: Amount,
    other_taxes: Amount,
    rate: Amount,
    vat: Amount,
    total: Amount,
    /// The number of decimal digits of the currency.
    digits: u32,
}

impl ReportSums {
    /// Warns of amounts that do not fit each other. The authority gets them as they were sent.
    fn warn_of_unfitting_amounts(self, reader: &Reader<'_>, status: VatStatus) {
        if self.base.is_negative() {
            reader.warn("base_amount is below zero");
        }
        let parts = [self.base, self.other_taxes, self.vat];
        if let Some(sum) = Amount::sum(parts)
            && !sum.is_within_tolerance(self.total)
        {
            reader.warn(format!(
                "total_amount is {}, but base_amount, other_taxes and vat_calculated come to {sum}",
                self.total
            ));
        }
        if status == VatStatus::StandardVat {
            let expected_vat = self.rate.percent_share(self.base);
            let tolerance = TOLERANCE.max(Amount::smallest_amount(self.digits));
            let deviating_vat =
                expected_vat.filter(|expected_vat| !expected_vat.is_within(tolerance, self.vat));
            if let Some(expected_vat) = deviating_vat {
                reader.warn(format!(
                    "vat_calculated is {}, but vat_rate of base_amount is {expected_vat}",
                    self.vat
                ));
            }
        } else if !self.vat.is_zero() {
            reader.warn(format!(
                "vat_calculated is {}, but vat_status {} bears no VAT",
                self.vat,
                status.as_str()
            ));
        }
    }
}

/// Returns a warning if the sale of a report is in the future.
pub(crate) fn future_date_warning(request: &RunRequest, today: Date) -> Option<String> {
    let RunPayload::Report(report) = &request.payload else {
        return None;
    };
    (report.transaction_date > today).then(|| "transaction_date is in the future".to_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::domain::reference::catalog::ReferenceList;
    use crate::http::forms::reader;
    use crate::http::forms::testing::{
        broken_rules, catalog, check, check_refused, check_required, number, numbers, object,
        read as read_with, texts, with_member,
    };

    fn body() -> Value {
        json!({
            "agent_tin": "12345678-0001", "beneficiary_tin": "87654321-0001",
            "irn": "INV001-94AD90FB-20261121", "currency": "NGN", "item_description": "Rice",
            "transaction_date": "2026-11-21", "base_amount": 100, "vat_rate": number("7.5"),
            "vat_calculated": number("7.50"), "total_amount": number("107.50"),
            "integrator_service_id": "94AD90FB", "vat_status": "ZERO_RATED"
        })
    }

    #[test]
    fn every_required_field_is_required() {
        let paths = [
            "/agent_tin",
            "/beneficiary_tin",
            "/irn",
            "/currency",
            "/item_description",
            "/transaction_date",
            "/base_amount",
            "/vat_rate",
            "/vat_calculated",
            "/total_amount",
            "/integrator_service_id",
            "/vat_status",
        ];
        check_required(&body(), &paths, |reader| read(reader, None, false));
    }

    #[test]
    fn a_value_outside_what_its_field_takes_is_refused() {
        let cases = [
            ("/agent_tin", "type", vec![json!(12)]),
            ("/irn", "irn_malformed", texts(&["INV1"])),
            ("/currency", "currency", texts(&["NG", "NAIRA", "N1N"])),
            ("/transaction_date", "date", texts(&["15-01-2026"])),
            ("/other_taxes", "type", texts(&["none"])),
            ("/vat_rate", "max", numbers(&["100.01"])),
            ("/vat_rate", "min", numbers(&["-1"])),
            ("/total_amount", "type", vec![json!({})]),
            ("/vat_status", "one_of", texts(&["REDUCED_VAT", "ZERO_VAT"])),
        ];
        check_refused(&body(), &cases, |reader| read(reader, None, false));
    }

    #[test]
    fn each_field_keeps_its_rule() {
        let cases = [
            ("/agent_tin", Some(json!("1".repeat(50))), ""),
            ("/agent_tin", Some(json!("1".repeat(51))), "agent_tin: max"),
            (
                "/beneficiary_tin",
                Some(json!("1".repeat(51))),
                "beneficiary_tin: max",
            ),
            (
                "/irn",
                Some(json!(format!("{}-94AD90FB-20261121", "1".repeat(82)))),
                "",
            ),
            (
                "/irn",
                Some(json!(format!("{}-94AD90FB-20261121", "1".repeat(83)))),
                "irn: max",
            ),
            ("/irn", Some(json!("INV-001-94AD90FB-20261121")), ""),
            ("/currency", Some(json!("ngn")), "currency: exists"),
            ("/currency", Some(json!("QQQ")), "currency: exists"),
            ("/item_description", Some(json!("x".repeat(255))), ""),
            (
                "/item_description",
                Some(json!("x".repeat(256))),
                "item_description: max",
            ),
            (
                "/transaction_date",
                Some(json!("today")),
                "transaction_date: date",
            ),
            ("/base_amount", Some(json!("100")), "base_amount: type"),
            ("/other_taxes", Some(json!(true)), "other_taxes: type"),
            ("/vat_rate", Some(json!(100)), ""),
            ("/integrator_service_id", Some(json!("x".repeat(100))), ""),
            (
                "/integrator_service_id",
                Some(json!("x".repeat(101))),
                "integrator_service_id: max",
            ),
            ("/vat_status", Some(json!("exempt")), ""),
            ("/vat_status", Some(json!("zero_rated")), ""),
            ("/beneficiary_tin", Some(json!("1".repeat(50))), ""),
            ("/business_id", Some(json!("odd")), "business_id: uuid"),
        ];
        check(&body(), &cases, |reader| read(reader, None, false));
        let read_for_another = read_with(body(), |reader| read(reader, None, true));
        assert_eq!(
            broken_rules(read_for_another),
            ["integrator_service_id: own"]
        );
    }

    #[test]
    fn amounts_that_do_not_fit_each_other_get_a_warning() {
        let standard = with_member(&body(), "/vat_status", Some(json!("STANDARD_VAT")));
        for (path, value, expected) in [
            ("/vat_status", json!("STANDARD_VAT"), ""),
            ("/total_amount", json!(5), "come to 107.50"),
            ("/other_taxes", number("0.5"), "come to 108.00"),
            ("/vat_status", json!("EXEMPT"), "EXEMPT bears no VAT"),
            ("/vat_rate", json!(5), "vat_rate of base_amount is 5"),
        ] {
            let form = read_with(with_member(&standard, path, Some(value)), |reader| {
                read(reader, None, false)
            });
            let warnings = form.unwrap().warnings;
            assert_eq!(
                warnings.len(),
                usize::from(!expected.is_empty()),
                "{warnings:?}"
            );
            assert!(
                warnings.concat().contains(expected),
                "{expected}: {warnings:?}"
            );
        }
        let negative = with_member(&standard, "/base_amount", Some(json!(-1)));
        let form = read_with(negative, |reader| read(reader, None, false)).unwrap();
        assert_eq!(form.warnings[0], "base_amount is below zero");
        for (today, has_warning) in [("2026-11-20", true), ("2026-11-21", false)] {
            let warning = future_date_warning(&form.value, today.parse().unwrap());
            assert_eq!(warning.is_some(), has_warning, "{today}");
        }
    }

    #[test]
    fn a_vat_that_is_rounded_to_the_digits_of_the_currency_gets_no_warning() {
        let mut catalog = catalog();
        let currencies =
            json!([{ "code": "JPY", "decimal_digits": 0 }, { "code": "NGN", "decimal_digits": 2 }]);
        catalog.load(ReferenceList::Currencies, &currencies);
        for (currency, vat, total, has_warning) in [
            ("NGN", "75.75", "1085.75", false),
            ("NGN", "76", "1086", true),
            ("JPY", "76", "1086", false),
            ("JPY", "75", "1085", false),
            ("JPY", "77", "1087", true),
        ] {
            let mut body = body();
            body["vat_status"] = json!("STANDARD_VAT");
            body["currency"] = json!(currency);
            body["base_amount"] = json!(1_010);
            body["vat_calculated"] = number(vat);
            body["total_amount"] = number(total);
            let read = |reader: &mut Reader<'_>| read(reader, None, false);
            let form = reader::read(&object(body), &catalog, read).unwrap();
            let warnings = form.warnings;
            assert_eq!(
                !warnings.is_empty(),
                has_warning,
                "{currency}: {warnings:?}"
            );
        }
    }

    #[test]
    fn the_authority_gets_its_own_words_and_numbers_as_texts() {
        let document_for_authority = |body: Value| {
            let RunRequest { irn, payload } = read_with(body, |reader| read(reader, None, false))
                .unwrap()
                .value;
            payload.document(&irn)
        };
        assert_eq!(
            document_for_authority(body()),
            json!({
                "agent_tin": "12345678-0001", "beneficiary_tin": "87654321-0001",
                "irn": "INV001-94AD90FB-20261121", "currency": "NGN", "item_description": "Rice",
                "transaction_date": "2026-11-21", "base_amount": "100", "vat_rate": "7.5",
                "vat_calculated": "7.50", "total_amount": "107.50",
                "integrator_service_id": "94AD90FB", "vat_status": "ZERO_VAT"
            })
        );
        let taxed =
            document_for_authority(with_member(&body(), "/other_taxes", Some(number("1.25"))));
        assert_eq!(taxed["other_taxes"], "1.25");
        for (word, authority_word) in [
            ("STANDARD_VAT", "STANDARD_VAT"),
            ("EXEMPT", "EXEMPT"),
            ("NON_VATABLE", "NON_VATABLE"),
        ] {
            assert_eq!(
                document_for_authority(with_member(&body(), "/vat_status", Some(json!(word))))["vat_status"],
                authority_word
            );
        }
    }
}

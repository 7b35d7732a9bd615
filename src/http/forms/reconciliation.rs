//! Reads an operator's request to compare a taxpayer's invoices of one day with the authority's ledger, and an
//! operator's decision on findings, each with the operator's reason.

use jiff::civil::Date;

use crate::domain::kernel::ids::TaxpayerId;
use crate::http::forms::field::LONG_TEXT_CHARS_MAX;
use crate::http::forms::reader::Reader;

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ReconcileRequest {
    pub(crate) taxpayer_id: TaxpayerId,
    pub(crate) day: Date,
    pub(crate) reason: Option<String>,
}

pub(crate) fn read(reader: &mut Reader<'_>) -> Option<ReconcileRequest> {
    let taxpayer_id = reader.required("taxpayer_id").id();
    let day = reader.required("day").date();
    let reason = reader.optional("reason").long_text(0, LONG_TEXT_CHARS_MAX);
    Some(ReconcileRequest {
        taxpayer_id: TaxpayerId(taxpayer_id?),
        day: day?,
        reason,
    })
}

/// The maximum number of findings that are decided at once, which is the number that one response lists.
pub(crate) const DECIDED_FINDINGS_MAX: usize = 100;

/// The numbers of findings to decide or to open again, and the reason.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct FindingDecision {
    pub(crate) findings: Vec<u32>,
    pub(crate) reason: String,
}

pub(crate) fn read_decision(reader: &mut Reader<'_>) -> Option<FindingDecision> {
    let findings = reader
        .required("findings")
        .whole_numbers(DECIDED_FINDINGS_MAX, i32::MAX.unsigned_abs());
    let reason = reader.required("reason").long_text(1, LONG_TEXT_CHARS_MAX);
    Some(FindingDecision {
        findings: findings?,
        reason: reason?,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::http::forms::testing::check;

    #[test]
    fn each_field_keeps_its_rule() {
        let cases = [
            ("/taxpayer_id", None, "taxpayer_id: required"),
            ("/taxpayer_id", Some(json!(0)), "taxpayer_id: integer"),
            ("/taxpayer_id", Some(json!("7")), "taxpayer_id: type"),
            ("/day", None, "day: required"),
            ("/day", Some(json!("")), "day: required"),
            ("/day", Some(json!("2026-02-30")), "day: date"),
            ("/day", Some(json!("yesterday")), "day: date"),
            ("/day", Some(json!("15.01.2026")), "day: date"),
            ("/day", Some(json!(20_260_115)), "day: type"),
            ("/reason", None, ""),
            ("/reason", Some(json!("x".repeat(1_001))), "reason: max"),
        ];
        check(
            &json!({ "taxpayer_id": 7, "day": "2026-01-15", "reason": "a complaint" }),
            &cases,
            read,
        );
    }

    #[test]
    fn a_decision_names_findings_and_says_why() {
        let cases = [
            ("/findings", None, "findings: required"),
            ("/findings", Some(json!([])), "findings: min"),
            ("/findings", Some(json!([1.5])), "findings.0: integer"),
            ("/findings", Some(json!(["1"])), "findings.0: type"),
            ("/findings", Some(json!(vec![1; 101])), "findings: max"),
            ("/reason", None, "reason: required"),
            ("/reason", Some(json!(" ")), "reason: required"),
            ("/reason", Some(json!("x".repeat(1_001))), "reason: max"),
        ];
        check(
            &json!({ "findings": [1, 3], "reason": "the authority withdrew them" }),
            &cases,
            read_decision,
        );
    }
}

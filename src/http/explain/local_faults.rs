//! Explains each fault that a form found in a body: the rule, the expected value and the received value.

use serde_json::{Map, Value};

use crate::domain::kernel::fault::{Fault, Faults};
use crate::http::explain::explanation::{EINVOICE_SOURCE, Explanation, to_details};
use crate::http::explain::received_value;
use crate::http::respond::error::ApiError;

/// The maximum number of faults that get an explanation. Further faults appear only in the `errors` of the response.
const EXPLAINED_FAULTS_MAX: usize = 100;

/// Returns the error for a body with these faults. The response explains each fault.
pub(crate) fn refusal_error(faults: Faults, body: &Map<String, Value>) -> ApiError {
    let details = to_details(&explain_faults(&faults, body));
    ApiError::invalid(faults).with_details(details)
}

fn explain_faults(faults: &Faults, body: &Map<String, Value>) -> Vec<Explanation> {
    let document = Value::Object(body.clone());
    faults
        .iter()
        .take(EXPLAINED_FAULTS_MAX)
        .map(|fault| explain_fault(fault, &document))
        .collect()
}

fn explain_fault(fault: &Fault, document: &Value) -> Explanation {
    Explanation {
        path: Some(fault.path.clone()),
        rule: fault.rule(),
        expected: fault.expected_value(),
        actual: received_value::displayable_value(document, &fault.path),
        message: fault.to_string(),
        source: EINVOICE_SOURCE,
        authority_message: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::forms::submission;
    use crate::http::forms::testing::{catalog, object, submission, with_member};

    fn explained_submission(body: Value) -> Vec<Explanation> {
        let body = object(body);
        let faults = submission::read(submission::DocumentSource::Caller, &body, None, &catalog())
            .unwrap_err();
        explain_faults(&faults, &body)
    }

    #[test]
    fn a_fault_of_ours_tells_what_was_expected_and_what_was_sent() {
        let cases = [
            (
                "/issue_date",
                Some("15/01/2026"),
                "a date written YYYY-MM-DD",
            ),
            (
                "/document_currency_code",
                Some("XXX"),
                "a code of currencies",
            ),
            ("/invoice_category", Some("B2X"), "one of B2B, B2C, B2G"),
            (
                "/invoice_line/0/price/price_unit",
                Some("KGMS"),
                "at most 3 characters",
            ),
            (
                "/accounting_supplier_party/telephone",
                Some("0803"),
                "a + followed by 6 to 15 digits",
            ),
            ("/irn", Some("x"), "{invoice_no}-{service_id}-{YYYYMMDD}"),
            ("/business_id", None, "a value"),
            (
                "/legal_monetary_total/payable_amount",
                Some("1"),
                "a number",
            ),
        ];
        for (pointer, value, expected) in cases {
            let all =
                explained_submission(with_member(&submission(), pointer, value.map(Value::from)));
            assert_eq!(all[0].expected.as_deref(), Some(expected), "{pointer}");
            assert_eq!(
                all[0].actual,
                value.map_or(Value::Null, Value::from),
                "{pointer}"
            );
            assert_eq!(
                (all[0].source, all[0].authority_message.as_deref()),
                ("einvoice", None)
            );
        }
    }

    #[test]
    fn only_the_first_of_very_many_faults_are_explained() {
        let lines = Value::Array(vec![serde_json::json!({}); 1_000]);
        let all = explained_submission(with_member(&submission(), "/invoice_line", Some(lines)));
        assert_eq!(all.len(), EXPLAINED_FAULTS_MAX);
    }
}

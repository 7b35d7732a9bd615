//! Explains why the authority refused a document. A sentence without a known meaning is repeated unchanged.

use serde_json::Value;

use crate::domain::pipeline::signed_copy::has_other_signed_document;
use crate::domain::pipeline::{NO_CUSTOMER_MESSAGE, Run, RunState};
use crate::http::explain::explanation::{
    AUTHORITY_SOURCE, EINVOICE_SOURCE, Explanation, UNTRANSLATED_RULE, to_details, to_faults,
};
use crate::http::explain::field_names::{caller_path, translate_paths};
use crate::http::explain::phrases::{self, find_meaning, validator_tag_sentence};
use crate::http::explain::received_value;
use crate::http::respond::code::ErrorCode;
use crate::http::respond::error::{ApiError, capitalize};
use crate::http::views::explanation::ExplanationView;

/// A sentence that the authority is known to send, recognised by its first words (`start`) and last words (`end`).
struct SentencePattern {
    start: &'static str,
    end: &'static str,
    path: Option<&'static str>,
    rule: &'static str,
    expected: &'static str,
}

const fn sentence_pattern(
    start: &'static str,
    end: &'static str,
    path: Option<&'static str>,
    rule: &'static str,
    expected: &'static str,
) -> SentencePattern {
    SentencePattern {
        start,
        end,
        path,
        rule,
        expected,
    }
}

const STATUS_FIELD: Option<&str> = Some("payment_status");
const CUSTOMER_FIELD: Option<&str> = Some("accounting_customer_party");

/// Known sentences that do not begin with the path of a field.
#[rustfmt::skip]
const SENTENCE_PATTERNS: &[SentencePattern] = &[
    sentence_pattern("payment status cannot be set to ", "", STATUS_FIELD, "transition", "a status that may follow the present one"),
    sentence_pattern("payment status is already ", " and cannot be changed", STATUS_FIELD, "transition", "no further payment status"),
    sentence_pattern("reference is required for a ", " payment", Some("reference"), "required", "a value"),
    sentence_pattern("invoice has no customer to transmit to", "", CUSTOMER_FIELD, "required", "a customer"),
    sentence_pattern(NO_CUSTOMER_MESSAGE, "", CUSTOMER_FIELD, "required", "a customer"),
    sentence_pattern("invoice already transmitted", "", None, "state", "an invoice that was not transmitted yet"),
    sentence_pattern("invoice already reported", "", None, "state", "an invoice that was not reported yet"),
    sentence_pattern("invoice has not been transmitted", "", None, "state", "an invoice that was transmitted"),
    sentence_pattern("invoice transmission already acknowledged", "", None, "state", "a transmission that was not acknowledged yet"),
    sentence_pattern("invoice not found", "", Some("irn"), "exists", "the IRN of a signed invoice"),
    sentence_pattern("the access point of the ", " is offline", None, "offline", "both access points online"),
    sentence_pattern("unable to parse the request body", "", None, "malformed", "a JSON object"),
    sentence_pattern("unable to complete this operation at this time", "", None, "busy", "the same call again later"),
    sentence_pattern("too many requests", "", None, "busy", "the same call again later"),
];

/// Returns the error for a document that the authority refused. `reason` is the sentence of the authority.
pub(crate) fn refusal_error(reason: &str, document: &Value) -> ApiError {
    let explanations = explain(reason, document);
    let error = ApiError::new(ErrorCode::AuthorityRejected, refusal_message(reason));
    let error = error.with_faults(to_faults(&explanations));
    error.with_details(to_details(&explanations))
}

/// Returns the words of the authority as they came. A sentence of this service gets a capital letter, as its other
/// messages have one.
fn refusal_message(reason: &str) -> String {
    if is_own_sentence(reason) {
        capitalize(reason)
    } else {
        reason.to_owned()
    }
}

/// True for the refusal that comes from this service and not from the authority.
fn is_own_sentence(reason: &str) -> bool {
    reason.eq_ignore_ascii_case(NO_CUSTOMER_MESSAGE)
}

/// Explains why a run was refused, as the response to a caller who waits for the run does. Returns nothing for a run
/// that was not refused. Returns nothing either if the authority has signed another document under its IRN, because no
/// field of this document is the reason then.
pub(crate) fn explain_run(run: &Run) -> Vec<ExplanationView> {
    if run.state() != RunState::Refused || has_other_signed_document(run) {
        return Vec::new();
    }
    let Some(reason) = &run.last_error else {
        return Vec::new();
    };
    let explanations = explain(reason, &run.document()).into_iter();
    explanations.map(ExplanationView::from).collect()
}

/// Explains a refusal. If each part between line ends and semicolons is about a field, each part gets an
/// explanation. Otherwise the whole text gets one explanation.
pub(crate) fn explain(reason: &str, document: &Value) -> Vec<Explanation> {
    let reason = reason.trim();
    let parts: Option<Vec<_>> = reason
        .split(['\n', ';'])
        .map(|part| explain_field_sentence(part.trim(), document))
        .collect();
    let all = parts.filter(|parts| !parts.is_empty());
    all.unwrap_or_else(|| {
        vec![
            explain_field_sentence(reason, document)
                .unwrap_or_else(|| explain_whole_refusal(reason, document)),
        ]
    })
}

/// Explains a sentence that begins with the path of a field. Returns `None` for any other sentence.
fn explain_field_sentence(sentence: &str, document: &Value) -> Option<Explanation> {
    let (name, statement) = split_validator_message(sentence).or_else(|| split_path(sentence))?;
    let path = caller_path(name, document)?;
    let statement = translate_paths(statement.trim_end_matches('.'), document);
    let meaning = find_meaning(&statement);
    // The first word may be an ordinary word and the name of a field, such as `reference`. Only a known phrase or a
    // colon after it makes it a field name.
    if meaning.is_none() && !name.contains('.') && !sentence.starts_with(&format!("{name}:")) {
        return None;
    }
    Some(Explanation {
        rule: meaning
            .as_ref()
            .map_or(UNTRANSLATED_RULE, |meaning| meaning.rule),
        expected: meaning
            .map(|meaning| meaning.expected)
            .or_else(|| phrases::expected_value(&statement)),
        actual: received_value::displayable_value(document, authority_path(&path, document)),
        message: field_message(&path, &statement),
        path: Some(path),
        source: AUTHORITY_SOURCE,
        authority_message: Some(sentence.to_owned()),
    })
}

/// Converts the caller's path of a field to the path in the authority's document. Only `invoice_category` differs.
fn authority_path<'p>(path: &'p str, document: &Value) -> &'p str {
    let is_renamed = path == "invoice_category" && document.get(path).is_none();
    if is_renamed { "invoice_kind" } else { path }
}

fn field_message(path: &str, statement: &str) -> String {
    let verbs = [
        "is", "must", "may", "has", "cannot", "can", "should", "does", "was", "needs", "contains",
        "exceeds",
    ];
    let is_verb = statement
        .split(' ')
        .next()
        .is_some_and(|word| verbs.contains(&word));
    if is_verb {
        format!("The {path} field {statement}.")
    } else {
        format!("The {path} field: {statement}.")
    }
}

/// Splits a sentence such as `taxtotal[0].taxamount must be a number` into the path and the rest, without a colon.
fn split_path(sentence: &str) -> Option<(&str, &str)> {
    let (name, statement) = sentence.split_once(' ')?;
    let name = name.trim_end_matches(':').trim_matches(['"', '\'', '`']);
    Some((name, statement.trim()))
}

/// Splits a message of Go's validator into the path and a sentence for the violated tag: `Key:
/// 'InvoiceRequest.Invoice.IRN' Error:Field validation for 'IRN' failed on the 'required' tag`.
fn split_validator_message(sentence: &str) -> Option<(&str, &str)> {
    let (name, rest) = sentence.strip_prefix("Key: '")?.split_once('\'')?;
    let (_, tag) = rest.split_once("failed on the '")?;
    Some((
        name,
        validator_tag_sentence(tag.split_once('\'')?.0).unwrap_or("is not valid"),
    ))
}

/// Explains the text of a refusal as one sentence, because its parts are not about single fields.
fn explain_whole_refusal(reason: &str, document: &Value) -> Explanation {
    let lower = reason.to_lowercase();
    let sentence = lower.trim_end_matches('.');
    let pattern = SENTENCE_PATTERNS
        .iter()
        .find(|pattern| lower.starts_with(pattern.start) && sentence.ends_with(pattern.end));
    let path = pattern.and_then(|pattern| pattern.path);
    let is_ours = is_own_sentence(reason);
    Explanation {
        path: path.map(str::to_owned),
        rule: pattern.map_or(UNTRANSLATED_RULE, |pattern| pattern.rule),
        expected: pattern.map(|pattern| pattern.expected.to_owned()),
        actual: path.map_or(Value::Null, |path| {
            received_value::displayable_value(document, path)
        }),
        message: refusal_message(reason),
        source: if is_ours {
            EINVOICE_SOURCE
        } else {
            AUTHORITY_SOURCE
        },
        authority_message: (!is_ours).then(|| reason.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn explained_fields(
        reason: &str,
        document: &Value,
    ) -> Vec<(Option<String>, &'static str, Value)> {
        let all = explain(reason, document);
        all.into_iter()
            .map(|explanation| (explanation.path, explanation.rule, explanation.actual))
            .collect()
    }

    #[test]
    fn a_sentence_about_a_field_tells_path_rule_expected_and_actual() {
        let document =
            json!({ "tax_total": [{ "tax_subtotal": [{ "tax_category": { "id": "VAT" } }] }] });
        let reason =
            "invoicerequest.invoice.taxtotal[0].taxsubtotal[0].taxcategory.id must be a known code";
        let all = explain(reason, &document);
        let path = "tax_total.0.tax_subtotal.0.tax_category.id";
        let expected = Explanation {
            path: Some(path.to_owned()),
            rule: "exists",
            expected: Some("a known code".to_owned()),
            actual: json!("VAT"),
            message: format!("The {path} field must be a known code."),
            source: "authority",
            authority_message: Some(reason.to_owned()),
        };
        assert_eq!(all, [expected]);
    }

    #[test]
    fn a_field_that_is_missing_has_the_name_the_caller_would_give_it() {
        let path = |reason| explained_fields(reason, &json!({}))[0].0.clone().unwrap();
        assert_eq!(
            path("invoicerequest.invoice.issuedate is required"),
            "issue_date"
        );
        assert_eq!(
            path("invoicerequest.invoice.invoiceline[1].item.name is required"),
            "invoice_line.1.item.name"
        );
        assert_eq!(
            path("irnrequest.invoicereference is required"),
            "invoice_reference"
        );
        assert_eq!(
            path("vatpostpaymentrequest.beneficiarytin is required"),
            "beneficiary_tin"
        );
    }

    #[test]
    fn the_category_is_shown_under_the_callers_name() {
        let document = json!({ "invoice_kind": "B2X" });
        let reason = "invoicerequest.invoice.invoicekind must be one of B2B, B2C, B2G";
        assert_eq!(
            explained_fields(reason, &document),
            [(Some("invoice_category".to_owned()), "one_of", json!("B2X"))]
        );
    }

    #[test]
    fn several_sentences_in_a_row_are_several_reasons() {
        let document = json!({ "irn": "x", "due_date": "y" });
        let reasons = explained_fields("due_date: is past; irn is required", &document);
        assert_eq!(
            reasons,
            [
                (Some("due_date".to_owned()), "authority", json!("y")),
                (Some("irn".to_owned()), "required", json!("x"))
            ]
        );
    }

    #[test]
    fn the_validators_own_words_are_understood() {
        let reason = "Key: 'InvoiceRequest.Invoice.IssueDate' Error:Field validation for 'IssueDate' failed on the 'required' tag\n\
            Key: 'InvoiceRequest.Invoice.IRN' Error:Field validation for 'IRN' failed on the 'odd' tag";
        let reasons = explained_fields(reason, &json!({ "irn": "x" }));
        assert_eq!(
            reasons,
            [
                (Some("issue_date".to_owned()), "required", Value::Null),
                (Some("irn".to_owned()), "authority", json!("x"))
            ]
        );
    }

    #[test]
    fn every_whole_sentence_of_the_authority_is_understood() {
        let document = json!({ "payment_status": "PENDING", "irn": "x" });
        for (reason, path, rule) in [
            (
                "payment status cannot be set to PENDING",
                STATUS_FIELD,
                "transition",
            ),
            (
                "payment status is already PAID and cannot be changed",
                STATUS_FIELD,
                "transition",
            ),
            (
                "reference is required for a PARTIAL payment",
                Some("reference"),
                "required",
            ),
            (
                "invoice has no customer to transmit to",
                CUSTOMER_FIELD,
                "required",
            ),
            ("invoice already transmitted", None, "state"),
            ("invoice has not been transmitted", None, "state"),
            ("invoice transmission already acknowledged", None, "state"),
            ("invoice not found", Some("irn"), "exists"),
            (
                "the access point of the customer is offline",
                None,
                "offline",
            ),
            ("unable to parse the request body", None, "malformed"),
            (
                "unable to complete this operation at this time, kindly try again later",
                None,
                "busy",
            ),
            ("too many requests", None, "busy"),
        ] {
            let reasons = explained_fields(reason, &document);
            assert_eq!(
                (reasons[0].0.as_deref(), reasons[0].1),
                (path, rule),
                "{reason}"
            );
        }
    }

    #[test]
    fn a_sentence_without_a_known_meaning_is_passed_on_unchanged() {
        let document = json!({ "irn": "x", "note": "n", "a;b": 1 });
        for reason in [
            "tin is unknown",
            "invoicerequest.invoice.a.b is odd",
            "",
            ";",
            "note the holiday",
            "\u{0}",
            "é; ü",
            "irn",
        ] {
            let all = explain(reason, &document);
            assert_eq!(all.len(), 1, "{reason}");
            assert_eq!(
                (all[0].path.as_deref(), all[0].rule),
                (None, "authority"),
                "{reason}"
            );
            assert_eq!(all[0].authority_message.as_deref(), Some(reason.trim()));
            assert_eq!(all[0].message, reason.trim());
            assert_eq!(&*refusal_error(reason, &document).message, reason);
        }
        let odd = explain("invoicerequest.invoice.irn is odd", &document);
        assert_eq!(
            (odd[0].path.as_deref(), odd[0].rule),
            (Some("irn"), "authority")
        );
        assert_eq!(odd[0].message, "The irn field is odd.");
    }

    #[test]
    fn a_sentence_of_this_service_is_not_attributed_to_the_authority() {
        let all = explain(NO_CUSTOMER_MESSAGE, &json!({}));
        assert_eq!(
            (all[0].source, all[0].authority_message.as_deref()),
            ("einvoice", None)
        );
        assert_eq!(
            all[0].message,
            "The invoice names no customer to transmit it to"
        );
    }
}

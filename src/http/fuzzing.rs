//! Entry points of the fuzz targets in `fuzz/`. They are compiled for fuzzing and for tests, never for the service.

use std::sync::Arc;

use jiff::civil::Date;
use serde_json::{Map, Value, json};
use webhook_client::auth::read_token;
use webhook_client::format::{BodyFormat, interpret_body};
use webhook_client::{AttemptOutcome, AttemptResult};

use crate::domain::kernel::fault::{Faults, json_pointer};
use crate::domain::reference::catalog::{Catalog, ReferenceList};
use crate::http::explain::authority;
use crate::http::explain::local_faults;
use crate::http::extract::json;
use crate::http::forms::batch;
use crate::http::forms::dead_letters;
use crate::http::forms::delivery_selection;
use crate::http::forms::notice;
use crate::http::forms::payment_update;
use crate::http::forms::profile;
use crate::http::forms::reader::{self, AcceptedForm, Reader};
use crate::http::forms::reason;
use crate::http::forms::reconciliation;
use crate::http::forms::relayed_payment;
use crate::http::forms::replay;
use crate::http::forms::run_filter;
use crate::http::forms::standard_invoice;
use crate::http::forms::submission;
use crate::http::forms::supplier_irn;
use crate::http::forms::take_back;
use crate::http::forms::taxpayer;
use crate::http::forms::transmit;
use crate::http::forms::unique_no;
use crate::http::forms::update_invoice;
use crate::http::forms::update_status;
use crate::http::forms::validation;
use crate::http::forms::vat_report;
use crate::http::forms::webhook;
use crate::http::views::endpoint_answer::EndpointAnswer;

/// Reads a body with every form that needs no account, and explains the faults of each form that refuses it.
pub fn read_forms(text: &[u8]) {
    let catalog = Arc::new(catalog());
    if let Ok(body) = json::parse_batch(text)
        && let Ok(form) = &mut reader::read(&body.object, &catalog, batch::read)
    {
        batch::refuse_items_with_key_faults(&mut form.value, body.key_faults);
    }
    let Ok(body) = json::parse_object(text) else {
        return;
    };
    let body = &body;
    let catalog = catalog.as_ref();
    read_form(body, catalog, standard_invoice::read);
    read_form(body, catalog, taxpayer::read);
    read_form(body, catalog, profile::read);
    read_form(body, catalog, |reader| {
        payment_update::read(reader, Date::MAX)
    });
    read_form(body, catalog, take_back::read);
    read_form(body, catalog, relayed_payment::read);
    read_form(body, catalog, update_status::read);
    read_form(body, catalog, |reader| {
        update_invoice::read(reader, &Arc::new(Catalog::default()))
    });
    read_form(body, catalog, unique_no::read);
    read_form(body, catalog, supplier_irn::read);
    read_form(body, catalog, reason::read);
    read_form(body, catalog, run_filter::read_bulk_move);
    read_form(body, catalog, reconciliation::read);
    read_form(body, catalog, reconciliation::read_decision);
    read_form(body, catalog, replay::read);
    read_form(body, catalog, replay::read_enable_request);
    read_form(body, catalog, dead_letters::read);
    read_form(body, catalog, delivery_selection::read);
    read_form(body, catalog, notice::read);
    read_form(body, catalog, webhook::read_secret_type);
    read_form(body, catalog, |reader| transmit::read(reader, None));
    read_form(body, catalog, |reader| {
        vat_report::read(reader, None, false)
    });
    check_faults(
        body,
        submission::read(submission::DocumentSource::Caller, body, None, catalog),
    );
    check_faults(body, validation::read(body, None, catalog));
}

fn read_form<T>(
    body: &Map<String, Value>,
    catalog: &Catalog,
    form: impl FnOnce(&mut Reader<'_>) -> Option<T>,
) {
    check_faults(body, reader::read(body, catalog, form));
}

/// If a form refused the body, checks that it reports at least one fault and that every fault has a JSON pointer.
fn check_faults<T>(body: &Map<String, Value>, read: Result<AcceptedForm<T>, Faults>) {
    let Err(faults) = read else { return };
    assert!(!faults.is_empty(), "a form that gives nothing says why");
    assert!(
        faults
            .iter()
            .all(|fault| json_pointer(&fault.path).starts_with('/'))
    );
    let summary = faults.summary();
    drop(authority::explain(&summary, &Value::Object(body.clone())));
    drop(local_faults::refusal_error(faults, body));
}

/// Reads the bytes as an answer of the authority, of a webhook endpoint and of a token endpoint.
pub fn read_answers(text: &[u8]) {
    authority_client::fuzzing::read_answer(text);
    let delivered = attempt_with_response(text, 200, AttemptOutcome::Delivered);
    // Only these formats put the result of the delivery into the body of the response.
    for format in [
        BodyFormat::Soap {
            action: "",
            namespace: "",
            method: "",
        },
        BodyFormat::GraphQl { mutation: "" },
        BodyFormat::JsonRpc { method: "" },
    ] {
        drop(interpret_body(delivered.clone(), format, "e1", 64));
    }
    drop(read_token(&delivered));
    drop(read_token(&attempt_with_response(
        text,
        400,
        AttemptOutcome::Rejected(400),
    )));
    assert!(
        EndpointAnswer::from_attempt(&delivered).is_ok(),
        "any response can be shown"
    );
}

/// Returns an attempt that got these bytes as its response.
fn attempt_with_response(text: &[u8], status: u16, outcome: AttemptOutcome) -> AttemptResult {
    AttemptResult {
        status: Some(status),
        response_head: String::from_utf8_lossy(text).into_owned(),
        ..AttemptResult::without_response(outcome)
    }
}

fn catalog() -> Catalog {
    let mut catalog = Catalog::default();
    catalog.load(
        ReferenceList::InvoiceTypes,
        &json!([{ "code": "380" }, { "code": "381" }]),
    );
    catalog.load(ReferenceList::QuantityCodes, &json!([{ "code": "EA" }]));
    catalog.load(ReferenceList::Countries, &json!([{ "alpha_2": "NG" }]));
    catalog.load(
        ReferenceList::Currencies,
        &json!([{ "code": "NGN", "decimal_digits": 2 }]),
    );
    catalog.load(
        ReferenceList::TaxCategories,
        &json!([{ "code": "ZERO_VAT", "percent": 0 }]),
    );
    catalog
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;

    /// Short inputs that parsers often handle wrongly: empty, incomplete, not UTF-8, duplicate members, wrong types.
    const EDGES: [&[u8]; 11] = [
        b"",
        b"{",
        b"{}",
        b"[]",
        b"<a><b/>",
        b"\xff",
        b"\xef\xbb\xbf{\"irn\":7}",
        br#"{"a":1,"a":2}"#,
        br#"{"invoices":[{"a":1,"a":2}]}"#,
        br#"{"data":{"items":[{"irn":"I"}],"page":null},"message":["a","b"],"error":{"errors":[{}]}}"#,
        br#"{"public_key":"-----BEGIN","certificate":"","data":{"iv_hex":"","pub":"","data":""}}"#,
    ];

    fn feed(target: fn(&[u8]), seeds: &str) {
        EDGES.into_iter().for_each(target);
        let seeds = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("fuzz/seeds")
            .join(seeds);
        let files: Vec<_> = fs::read_dir(seeds)
            .unwrap()
            .map(|file| file.unwrap().path())
            .collect();
        assert!(!files.is_empty(), "a target without seeds");
        for file in files {
            target(&fs::read(file).unwrap());
        }
    }

    #[test]
    fn the_targets_accept_edges_and_seeds() {
        feed(read_forms, "forms");
        feed(read_answers, "answers");
    }
}

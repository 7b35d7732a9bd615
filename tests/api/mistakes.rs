//! A developer's mistakes: each is answered with a sentence that says what came, what is wanted, or what was probably
//! meant.

use serde_json::{Value, json};
use testkit::answer::Answer;
use testkit::documents;
use testkit::edit::{with, without};
use testkit::on_sqlite;
use testkit::roles::{INVOICES, SUBMIT, TAXPAYERS};

use crate::support::world::World;

#[on_sqlite]
async fn a_key_of_another_kind_is_told_which_kind_is_wanted(world: &World) {
    let taxpayer = world.taxpayer().await;
    let integrator = world.integrator();
    let keys = [
        (taxpayer.key(), "a taxpayer's key (tpk_…)"),
        (integrator.key(), "an integrator's key (sik_…)"),
        ("tpk_mistyped", "a taxpayer's key (tpk_…) that is not valid"),
        ("secret", "no API key of this service"),
    ];
    let paths = [
        (INVOICES, 401, 1, "an integrator's key (sik_…)"),
        (TAXPAYERS, 401, 0, "a taxpayer's key (tpk_…)"),
        ("/ops/overview", 401, 0, "a taxpayer's key (tpk_…)"),
    ];
    for (path, status, sent, words) in paths {
        let caller = world.anonymous().with_key(keys[sent].0);
        let answer = caller.get(path).await.expect_status(status);
        let sentence = format!("You sent {words}. This path takes ");
        assert!(
            answer.message().starts_with(&sentence),
            "{path}: {}",
            answer.message()
        );
    }
    for (key, words) in &keys[2..] {
        let answer = world.anonymous().with_key(key).get(INVOICES).await;
        let message = answer.expect_status(401).message().to_owned();
        assert!(
            message.starts_with(&format!("You sent {words}")),
            "{message}"
        );
    }
    let bearer = world.anonymous();
    let bearer = bearer.request("GET", INVOICES);
    let answer = Answer::to(bearer.header("authorization", "Bearer tpk_one")).await;
    assert_eq!(
        answer.expect_status(401).message(),
        "The x-api-key header is required; the Authorization header is not read"
    );
}

#[on_sqlite]
async fn a_wrong_path_is_answered_with_the_nearest(world: &World) {
    for (path, message) in [
        (
            "/v1/taxpayers/invoices",
            "No such path (did you mean /v1/tax-payers/invoices?)",
        ),
        (
            "/v1/tax-payers/invoice/7",
            "No such path (did you mean /v1/tax-payers/invoices/{id}?)",
        ),
        (
            "/v1/app/invoices/sumbit",
            "No such path (did you mean /v1/app/invoices/submit?)",
        ),
        ("/wp-login.php", "No such path"),
    ] {
        let answer = world.anonymous().get(path).await;
        assert_eq!(answer.message(), message);
        answer.expect_refusal(404, "ROUTE_NOT_FOUND");
    }
}

#[on_sqlite]
async fn a_number_that_is_left_out_is_told(world: &World) {
    let taxpayer = world.taxpayer().await;
    for path in [
        "batches/{batch_no}",
        "corrections/{correction_no}",
        "imports/{import_no}",
    ] {
        let (segment, _) = path.split_once('/').unwrap();
        let answer = taxpayer.get(&format!("{INVOICES}/{segment}")).await;
        let message = answer.message().to_owned();
        answer.expect_refusal(404, "ROUTE_NOT_FOUND");
        assert!(message.contains(&format!("{INVOICES}/{path}")), "{message}");
    }
}

#[on_sqlite]
async fn a_body_of_another_type_is_told_which_type_came(world: &World) {
    let taxpayer = world.taxpayer().await;
    for (name, value) in [
        ("content-type", "text/plain"),
        ("content-type", "application/x-www-form-urlencoded"),
        ("content-encoding", "gzip"),
    ] {
        let request = taxpayer.request("POST", INVOICES).header(name, value);
        let answer = Answer::to(request.body("{}")).await;
        let message = answer.message().to_owned();
        answer.expect_refusal(415, "UNSUPPORTED_MEDIA_TYPE");
        assert!(
            message.ends_with(&format!("; you sent {name}: {value}")),
            "{message}"
        );
    }
}

/// Renames a field of an invoice.
fn renamed(name: &str, wrong: &str) -> Value {
    let invoice = documents::invoice();
    let value = invoice[name].clone();
    with(&without(&invoice, name), wrong, value)
}

#[on_sqlite]
async fn a_misspelt_field_is_answered_with_the_field_that_was_meant(world: &World) {
    let taxpayer = world.taxpayer().await;
    let answer = taxpayer
        .send("POST", INVOICES, &renamed("customer", "custmer"))
        .await
        .expect_faults(&["customer"]);
    assert_eq!(
        answer.message(),
        "The customer field is required (you sent custmer, which is no field)."
    );
    let optional = "invoice_lines.0.discountRate";
    let body = with(&documents::invoice(), optional, json!(5));
    let answer = taxpayer.send("POST", INVOICES, &body).await;
    let warnings = answer.expect_status(201).warnings();
    assert!(
        warnings.contains(&format!(
            "unknown field: {optional} (did you mean discount_rate?)"
        )),
        "{warnings}"
    );
    let list = format!("{INVOICES}?stauts=approved");
    let warnings = taxpayer.get(&list).await.expect_status(200).warnings();
    assert!(
        warnings.contains("unknown query parameter: stauts (did you mean status?)"),
        "{warnings}"
    );
}

#[on_sqlite]
async fn an_unknown_word_of_a_filter_is_answered_with_a_warning(world: &World) {
    let taxpayer = world.taxpayer().await;
    let integrator = world.integrator();
    let operator = world.new_operator().await;
    let deliveries = format!(
        "{TAXPAYERS}/{}/webhook/deliveries?event=invoice.craeted",
        taxpayer.id
    );
    for (answer, warning) in [
        (
            integrator.get(&deliveries).await,
            "unknown event: invoice.craeted (did you mean invoice.created?)",
        ),
        (
            taxpayer
                .get("/v1/tax-payers/requests?error_code=NOPE")
                .await,
            "unknown error_code: NOPE",
        ),
        (
            operator.get("/ops/supervision?kind=taxpayers").await,
            "unknown kind: taxpayers (did you mean taxpayer?)",
        ),
    ] {
        let warnings = answer.expect_status(200).warnings();
        assert!(warnings.contains(warning), "{warnings}");
    }
}

#[on_sqlite]
async fn a_misspelt_code_is_answered_with_the_code_that_was_meant(world: &World) {
    let taxpayer = world.taxpayer().await;
    for (path, value, words) in [
        ("currency", "ngn", "(did you mean NGN?)"),
        (
            "invoice_lines.0.tax_category",
            "STANDARD VAT",
            "(did you mean STANDARD_VAT?)",
        ),
    ] {
        let body = with(&documents::invoice(), path, json!(value));
        let answer = taxpayer.send("POST", INVOICES, &body).await;
        let message = answer.expect_faults(&[path]).message().to_owned();
        assert!(message.contains(words), "{message}");
    }
}

#[on_sqlite]
async fn a_sum_that_is_off_is_shown_with_its_numbers(world: &World) {
    let taxpayer = world.taxpayer().await;
    let taxes = json!([{
        "tax_amount": 57,
        "tax_subtotal": [{
            "taxable_amount": 1000, "tax_amount": 75,
            "tax_category": { "id": "STANDARD_VAT", "percent": 7.5 },
        }],
    }]);
    for (change, value, path, words) in [
        (
            "legal_monetary_total.line_extension_amount",
            json!(1057),
            "invoice_line",
            "must add up to legal_monetary_total.line_extension_amount: 1,000.00 ≠ 1,057.00",
        ),
        (
            "legal_monetary_total.tax_inclusive_amount",
            json!(1057),
            "tax_total",
            "is 1,057.00 − 1,000.00 = 57.00, and no tax category has that tax; STANDARD_VAT asks for 75.00",
        ),
        (
            "tax_total",
            taxes,
            "tax_total.0.tax_amount",
            "must be the sum of its tax subtotals: 57.00 ≠ 75.00",
        ),
    ] {
        let body = documents::submission(&taxpayer, &documents::invoice_no());
        let body = with(&body, change, value);
        let answer = taxpayer
            .send("POST", SUBMIT, &body)
            .await
            .expect_status(422);
        let said = answer.body["errors"][path].to_string();
        assert!(said.contains(words), "{}", answer.text);
    }
}

//! Failures: the envelope, and what every answer carries.

use serde_json::json;
use testkit::answer::{Answer, stable_text};
use testkit::client::Client;
use testkit::documents;
use testkit::edit::with;
use testkit::roles::{
    ACKNOWLEDGE, BULK, EVENTS, FULL_INVOICES, GET_SUPPLIER_INVOICE, INBOX, INVOICES, SUBMIT,
    TAXPAYERS, TRANSMIT, UPDATE, UPDATE_PAYMENT, UPDATE_STATUS,
};
use testkit::{each_database, on_sqlite};

use crate::support::world::World;

/// Every path that takes a body, with a method it takes.
const WRITES: [(&str, &str); 12] = [
    ("POST", INVOICES),
    ("POST", FULL_INVOICES),
    ("PUT", UPDATE),
    ("PATCH", UPDATE_STATUS),
    ("PATCH", UPDATE_PAYMENT),
    ("POST", GET_SUPPLIER_INVOICE),
    ("POST", ACKNOWLEDGE),
    ("POST", TAXPAYERS),
    ("PATCH", "/v1/system-integrators/taxpayers/1/profile"),
    ("PUT", "/v1/system-integrators/taxpayers/1/webhook"),
    ("POST", SUBMIT),
    ("POST", TRANSMIT),
];

#[on_sqlite]
async fn a_path_that_does_not_exist_is_not_found(world: &World) {
    for path in [
        "/v1",
        "/v2/tax-payers/invoices",
        "/v1/tax-payers",
        "/v1/tax-payers/events/",
        "/v1/tax-payers/invoices/1/2/3",
        "/%00",
        "/v1//core",
    ] {
        for method in ["GET", "POST", "DELETE"] {
            let answer = world.anonymous().call(method, path).await;
            answer.expect_refusal(404, "ROUTE_NOT_FOUND");
        }
    }
}

#[on_sqlite]
async fn a_method_that_a_path_does_not_take_is_refused_with_those_it_takes(world: &World) {
    let taxpayer = format!("{TAXPAYERS}/1");
    for (path, allowed) in [
        ("/v1/core/commons/invoice-categories".to_owned(), "GET"),
        (INVOICES.to_owned(), "GET POST"),
        (format!("{INVOICES}/1"), "GET"),
        (FULL_INVOICES.to_owned(), "POST"),
        (UPDATE.to_owned(), "PUT"),
        (UPDATE_STATUS.to_owned(), "PATCH"),
        (UPDATE_PAYMENT.to_owned(), "PATCH"),
        (BULK.to_owned(), "POST"),
        (GET_SUPPLIER_INVOICE.to_owned(), "POST"),
        (INBOX.to_owned(), "GET"),
        (EVENTS.to_owned(), "GET"),
        (TAXPAYERS.to_owned(), "GET POST"),
        (taxpayer.clone(), "GET"),
        (format!("{taxpayer}/profile"), "GET PATCH"),
        (format!("{taxpayer}/webhook"), "GET PUT PATCH POST"),
        (format!("{taxpayer}/webhook/secret"), "POST"),
        (format!("{taxpayer}/api-key/rotate"), "POST PUT PATCH"),
        ("/health/live".to_owned(), "GET"),
    ] {
        let answer = world.anonymous().call("DELETE", &path).await;
        let answer = answer.expect_refusal(405, "METHOD_NOT_ALLOWED");
        let mut named: Vec<_> = answer
            .header("allow")
            .split(", ")
            .filter(|name| *name != "HEAD")
            .collect();
        let mut expected: Vec<_> = allowed.split(' ').collect();
        named.sort_unstable();
        expected.sort_unstable();
        assert_eq!(named, expected, "{path}");
    }
    // No invoice has a word for an id.
    for path in [BULK, GET_SUPPLIER_INVOICE] {
        world
            .anonymous()
            .get(path)
            .await
            .expect_refusal(405, "METHOD_NOT_ALLOWED");
    }
}

#[on_sqlite]
async fn text_that_is_no_json_is_400(world: &World) {
    let taxpayer = world.taxpayer().await;
    for text in ["", "   ", "plain"] {
        let answer = taxpayer.send_text("POST", INVOICES, text.to_owned()).await;
        answer.expect_refusal(400, "MALFORMED_JSON");
    }
    // A byte order mark is passed over.
    let marked = taxpayer
        .send_text("POST", INVOICES, "\u{feff}{}".to_owned())
        .await;
    marked.expect_refusal(422, "VALIDATION_FAILED");
    let not_utf8 = b"{\"invoice_no\":\"\xff\xfe\"}".to_vec();
    taxpayer
        .send_text("POST", INVOICES, not_utf8)
        .await
        .expect_refusal(400, "MALFORMED_JSON");
}

#[on_sqlite]
async fn every_path_that_takes_a_body_wants_json(world: &World) {
    let taxpayer = world.taxpayer().await;
    let integrator = world.integrator();
    for (method, path) in WRITES {
        let path = path.replace("/1/", &format!("/{}/", taxpayer.id));
        let is_integrators = path.starts_with("/v1/system-integrators");
        let caller: &Client = if is_integrators {
            &integrator
        } else {
            &taxpayer
        };
        let malformed = caller.send_text(method, &path, "{").await;
        malformed.expect_refusal(400, "MALFORMED_JSON");
        for kind in [
            "text/plain",
            "application/xml",
            "application/x-www-form-urlencoded",
        ] {
            let request = caller
                .request(method, &path)
                .header("content-type", kind)
                .body("{}");
            Answer::to(request)
                .await
                .expect_refusal(415, "UNSUPPORTED_MEDIA_TYPE");
        }
        let list = caller.send(method, &path, &json!([])).await;
        list.expect_refusal(422, "VALIDATION_FAILED");
    }
}

#[on_sqlite]
async fn a_body_of_more_than_two_mebibytes_is_413(world: &World) {
    let taxpayer = world.taxpayer().await;
    let padded = |bytes: usize| {
        let body = documents::invoice().to_string();
        let padding = " ".repeat(bytes - body.len());
        body + &padding
    };
    let max = 2 * 1_024 * 1_024;
    taxpayer
        .send_text("POST", INVOICES, padded(max))
        .await
        .expect_status(201);
    let answer = taxpayer.send_text("POST", INVOICES, padded(max + 1)).await;
    answer.expect_refusal(413, "PAYLOAD_TOO_LARGE");
}

#[on_sqlite]
async fn the_right_to_call_is_decided_before_the_body_is_read(world: &World) {
    for (method, path) in WRITES {
        let answer = world.anonymous().send_text(method, path, "{").await;
        answer.expect_refusal(401, "UNAUTHENTICATED");
    }
}

#[on_sqlite]
async fn of_two_keys_none_is_taken(world: &World) {
    let taxpayer = world.taxpayer().await;
    let key = taxpayer.key();
    for path in [INVOICES, "/v1/core/commons/enums"] {
        for (first, second) in [(key, "tpk_two"), ("tpk_two", key), (key, key)] {
            let request = world.anonymous().with_key(first).request("GET", path);
            let answer = Answer::to(request.header("x-api-key", second)).await;
            let answer = answer.expect_refusal(401, "UNAUTHENTICATED");
            assert_eq!(answer.message(), "The x-api-key header must be sent once");
        }
    }
}

#[on_sqlite]
async fn every_answer_has_a_request_id(world: &World) {
    let anonymous = world.anonymous();
    let categories = "/v1/core/commons/invoice-categories";
    for path in [categories, INVOICES, "/nowhere"] {
        let given = anonymous
            .request("GET", path)
            .header("x-request-id", "order-77_a.b");
        let answer = Answer::to(given).await;
        assert_eq!(answer.header("x-request-id"), "order-77_a.b", "{path}");
        let longest = "x".repeat(128);
        let answer = Answer::to(
            anonymous
                .request("GET", path)
                .header("x-request-id", &longest),
        )
        .await;
        assert_eq!(answer.header("x-request-id"), longest);
        let made = anonymous.get(path).await.header("x-request-id").to_owned();
        assert!(!made.is_empty());
        for odd in [
            "x".repeat(129),
            "a b".to_owned(),
            "a\"b".to_owned(),
            String::new(),
        ] {
            let answer =
                Answer::to(anonymous.request("GET", path).header("x-request-id", &odd)).await;
            let id = answer.header("x-request-id");
            assert!(!id.is_empty() && id != odd && id != made, "{odd}");
        }
    }
}

#[on_sqlite]
async fn a_failure_names_its_request(world: &World) {
    let request = world
        .anonymous()
        .request("GET", INVOICES)
        .header("x-request-id", "r-1");
    let answer = Answer::to(request)
        .await
        .expect_refusal(401, "UNAUTHENTICATED");
    insta::assert_snapshot!(stable_text(&answer.body, &[]), @r#"
            {
              "data": null,
              "doc_url": "/docs/errors/UNAUTHENTICATED",
              "error_code": "UNAUTHENTICATED",
              "message": "The x-api-key header is required",
              "request_id": "r-1",
              "success": false
            }
        "#);
}

#[on_sqlite]
async fn a_problem_document_is_sent_on_request(world: &World) {
    let body = with(&documents::invoice(), "customer.email", json!("plain"));
    let body = with(&body, "invoice_lines.0.quantity", json!("two"));
    let taxpayer = world.taxpayer().await;
    let request = taxpayer
        .request("POST", INVOICES)
        .header("accept", "application/problem+json");
    let request = request.header("x-request-id", "r-1").json(&body);
    let answer = Answer::to(request).await.expect_status(422);
    assert_eq!(answer.header("content-type"), "application/problem+json");
    assert_eq!(answer.body["status"], json!(422));
    let errors = answer.body["errors"].as_array().unwrap();
    let mut pointers: Vec<_> = errors
        .iter()
        .map(|error| error["pointer"].as_str().unwrap())
        .collect();
    pointers.sort_unstable();
    assert_eq!(pointers, ["#/customer/email", "#/invoice_lines/0/quantity"]);
    assert!(
        errors
            .iter()
            .all(|error| error["rule"].is_string() && error["detail"].is_string())
    );
    let request = taxpayer
        .request("GET", "/nowhere")
        .header("accept", "application/problem+json");
    let answer = Answer::to(request).await.expect_status(404);
    assert_eq!(answer.header("content-type"), "application/problem+json");
    assert!(
        ["title", "detail"]
            .iter()
            .all(|name| answer.body[name].is_string()),
        "{}",
        answer.text
    );
}

#[on_sqlite]
async fn head_is_get_without_a_body(world: &World) {
    let taxpayer = world.taxpayer().await;
    let invoice = taxpayer.invoice(&documents::invoice()).await;
    for path in [
        INVOICES.to_owned(),
        EVENTS.to_owned(),
        format!("{INVOICES}/{}", invoice["id"]),
        "/health/live".to_owned(),
    ] {
        let head = taxpayer.call("HEAD", &path).await.expect_status(200);
        assert_eq!(head.text, "", "{path}");
        assert_eq!(
            head.header("content-type"),
            taxpayer.get(&path).await.header("content-type")
        );
    }
    let answer = world.anonymous().call("HEAD", INVOICES).await;
    assert_eq!((answer.status, answer.text.as_str()), (401, ""));
}

#[on_sqlite]
async fn every_answer_of_v1_is_json_in_the_envelope(world: &World) {
    let taxpayer = world.taxpayer().await;
    for path in [
        "/v1/core/commons/invoice-categories",
        INVOICES,
        EVENTS,
        "/v1/nowhere",
        TAXPAYERS,
    ] {
        let answer = taxpayer.get(path).await;
        assert!(
            answer
                .header("content-type")
                .starts_with("application/json"),
            "{path}"
        );
        for name in ["success", "message", "data"] {
            assert!(answer.body.get(name).is_some(), "{path}: {}", answer.text);
        }
        assert_eq!(
            answer.body["success"],
            json!(answer.status == 200),
            "{path}"
        );
    }
}

#[on_sqlite]
async fn a_key_that_a_body_has_twice_or_may_not_have_is_named_and_refused(world: &World) {
    let taxpayer = world.taxpayer().await;
    let invoice = taxpayer.invoice(&documents::invoice()).await;
    taxpayer
        .set_status(&invoice, "approved")
        .await
        .expect_status(200);
    let payment = json!({
        "unique_no": invoice["irn"], "unique_no_type": "IRN", "payment_status": "partial", "remark": "part",
        "amount": 1,
    });
    let text = payment
        .to_string()
        .replace("\"amount\":1", "\"amount\":1,\"amount\":1000");
    let answer = taxpayer
        .send_text("PATCH", UPDATE_PAYMENT, text)
        .await
        .expect_faults(&["amount"]);
    assert_eq!(answer.message(), "The amount field must not be sent twice.");
    let text = payment
        .to_string()
        .replace("\"amount\":1", "\"amount\":1,\"\\u0061mount\":1");
    taxpayer
        .send_text("PATCH", UPDATE_PAYMENT, text)
        .await
        .expect_faults(&["amount"]);
    assert_eq!(taxpayer.reread(&invoice).await["payment_status"], "PENDING");
    let hidden = r#""x":{"$serde_json::private::RawValue":"{\"a\":1}"}"#;
    let twice = documents::invoice()
        .to_string()
        .replace("\"quantity\":2", "\"quantity\":2,\"quantity\":2");
    let text = format!("{},{hidden}}}", twice.strip_suffix('}').unwrap());
    let answer = taxpayer.send_text("POST", INVOICES, text).await;
    answer.expect_faults(&["invoice_lines.0.quantity", "x"]);
}

#[each_database]
async fn text_in_any_script_and_direction_reads_back_as_it_was_sent(world: &World) {
    let taxpayer = world.taxpayer().await;
    for name in [
        "\u{202e}desrever\u{202c}",
        "\u{5e9}\u{5dc}\u{5d5}\u{5dd}",
        "e\u{301} \u{1f1f3}\u{1f1ec}",
    ] {
        let body = with(
            &documents::invoice(),
            "invoice_lines.0.item_name",
            json!(name),
        );
        let invoice = taxpayer.invoice(&body).await;
        assert_eq!(
            taxpayer.reread(&invoice).await["invoice_lines"][0]["item_name"],
            json!(name)
        );
    }
}

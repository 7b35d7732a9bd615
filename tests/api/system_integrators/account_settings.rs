//! The settings of an account: PATCH and GET /v1/system-integrators/taxpayers/{id}/profile, and what they change.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use reqwest::header::{ETAG, IF_NONE_MATCH};
use serde_json::{Value, json};
use testkit::documents::{self, invoice, logo};
use testkit::edit::with;
use testkit::roles::{TAXPAYERS, Taxpayer};
use testkit::{each_database, on_sqlite};

use crate::support::world::World;

/// The largest SVG that is a picture: 600 KiB of spaces are too many.
fn svg(part: &str) -> Value {
    json!(STANDARD.encode(format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\">{part}</svg>"
    )))
}

fn profile_path(id: i64) -> String {
    format!("{TAXPAYERS}/{id}/profile")
}

#[each_database]
async fn settings_are_stored_and_read_back(world: &World) {
    let taxpayer = world.taxpayer().await;
    let integrator = world.integrator();
    let path = profile_path(taxpayer.id);
    let names = [
        "registration_number",
        "template",
        "colours",
        "logo",
        "strict_documents",
        "strict_numbers",
        "submit_after_approval",
        "transmit_after_signing",
    ];
    let settings = |profile: &Value| names.map(|name| profile[name].clone());
    let plain = integrator.get(&path).await.expect_status(200);
    let defaults = [
        Value::Null,
        json!("classic"),
        Value::Null,
        Value::Null,
        json!(false),
        json!(false),
        json!(false),
        json!(false),
    ];
    assert_eq!(settings(plain.data()), defaults);
    let body = json!({
        "registration_number": "RC 1029384", "template": "compact", "colours": { "accent": "#AA2200" },
        "logo": logo(), "strict_documents": true, "strict_numbers": true, "submit_after_approval": true,
        "transmit_after_signing": true,
    });
    let changed = integrator
        .change_profile(taxpayer.id, &body)
        .await
        .expect_status(200);
    let found = &changed.data();
    assert_eq!(found["registration_number"], "RC 1029384");
    assert_eq!(found["template"], "compact");
    assert_eq!(found["colours"], json!({ "accent": "#aa2200" }));
    assert_eq!(found["logo"]["media_type"], "image/svg+xml");
    assert_eq!(found["logo"]["sha256"].as_str().unwrap().len(), 64);
    assert_eq!(
        settings(found)[4..],
        [json!(true), json!(true), json!(true), json!(true)]
    );
    let read = integrator.get(&path).await.expect_status(200);
    assert_eq!(settings(read.data()), settings(found));
    let kept = integrator
        .change_profile(taxpayer.id, &json!({ "city": "Jos" }))
        .await
        .expect_status(200);
    assert_eq!(
        settings(kept.data()),
        settings(found),
        "what is not sent stays"
    );
    let unset = json!({ "registration_number": null, "template": null, "colours": null, "logo": null,
        "strict_documents": false, "strict_numbers": false, "submit_after_approval": false,
        "transmit_after_signing": false });
    let unset = integrator
        .change_profile(taxpayer.id, &unset)
        .await
        .expect_status(200);
    assert_eq!(settings(unset.data()), defaults);
}

#[on_sqlite]
async fn what_is_no_setting_is_refused_by_name(world: &World) {
    let taxpayer = world.taxpayer().await;
    let integrator = world.integrator();
    let cases = [
        ("logo", json!(STANDARD.encode("GIF89a no picture"))),
        ("logo", json!("!!!")),
        ("logo", json!(7)),
        ("logo", svg("<script>alert(1)</script>")),
        ("logo", svg("<path onload=\"alert(1)\"/>")),
        ("logo", svg("<image href=\"https://evil.example/x.png\"/>")),
        ("logo", svg("<use href=\"https://evil.example/x.svg#a\"/>")),
        (
            "logo",
            svg("<style>@import url(https://evil.example/a.css)</style>"),
        ),
        // Begins like a picture, and is damaged.
        ("logo", json!(STANDARD.encode(b"\x89PNG\r\n\x1a\n"))),
        ("logo", svg("<path")),
        ("logo", json!(STANDARD.encode(vec![b' '; 600 * 1024]))),
        ("template", json!("../../etc/passwd")),
        ("colours", json!("#ffffff")),
        ("registration_number", json!("x".repeat(101))),
        ("strict_documents", json!("true")),
        ("transmit_after_signing", json!(1)),
    ];
    for (name, value) in cases {
        let answer = integrator
            .change_profile(taxpayer.id, &json!({ name: value }))
            .await;
        answer.expect_faults(&[name]);
    }
    for colour in ["red", "#12", "#1234567", "#12345g", "#12345\u{0}", "url(x)"] {
        let body = json!({ "colours": { "accent": colour } });
        let answer = integrator.change_profile(taxpayer.id, &body).await;
        answer.expect_faults(&["colours.accent"]);
    }
    let huge = json!({ "logo": "A".repeat(5 * 1024 * 1024) });
    let answer = integrator.change_profile(taxpayer.id, &huge).await;
    answer.expect_refusal(413, "PAYLOAD_TOO_LARGE");
    let read = integrator.get(&profile_path(taxpayer.id)).await;
    assert_eq!(read.data()["logo"], Value::Null, "nothing was stored");
}

#[on_sqlite]
async fn another_integrators_taxpayer_does_not_exist(world: &World) {
    let taxpayer = world.taxpayer().await;
    let other = world.new_integrator().await;
    other
        .get(&profile_path(taxpayer.id))
        .await
        .expect_refusal(404, "TAXPAYER_NOT_FOUND");
    other
        .change_profile(taxpayer.id, &json!({ "logo": logo() }))
        .await
        .expect_refusal(404, "TAXPAYER_NOT_FOUND");
}

/// Returns the PDF of an invoice and its tag.
async fn pdf(taxpayer: &Taxpayer, stored: &Value) -> (Vec<u8>, String) {
    let path = format!("/v1/tax-payers/invoices/{}/pdf", stored["id"]);
    let answer = taxpayer.request("GET", &path).send().await.unwrap();
    assert_eq!(answer.status(), 200);
    let tag = answer.headers()[ETAG].to_str().unwrap().to_owned();
    (answer.bytes().await.unwrap().to_vec(), tag)
}

#[on_sqlite]
async fn a_document_is_printed_as_the_settings_say(world: &World) {
    let taxpayer = world.taxpayer().await;
    let integrator = world.integrator();
    let stored = taxpayer.invoice(&invoice()).await;
    let mut seen = vec![pdf(&taxpayer, &stored).await];
    for change in [
        json!({ "logo": logo() }),
        json!({ "colours": { "accent": "#aa2200" } }),
        json!({ "template": "compact" }),
        json!({ "registration_number": "RC 1029384" }),
    ] {
        integrator
            .change_profile(taxpayer.id, &change)
            .await
            .expect_status(200);
        let printed = pdf(&taxpayer, &stored).await;
        let is_new = seen
            .iter()
            .all(|(bytes, tag)| *bytes != printed.0 && *tag != printed.1);
        assert!(is_new, "{change}");
        seen.push(printed);
    }
    let path = format!("/v1/tax-payers/invoices/{}/pdf", stored["id"]);
    let (first, last) = (&seen[0].1, &seen[4].1);
    for (tag, status) in [(first, 200), (last, 304)] {
        let again = taxpayer.request("GET", &path).header(IF_NONE_MATCH, tag);
        assert_eq!(again.send().await.unwrap().status(), status);
    }
    let ubl = taxpayer
        .request("GET", &path.replace("/pdf", "/ubl.xml"))
        .send()
        .await
        .unwrap();
    assert!(ubl.text().await.unwrap().contains("RC 1029384"));
    integrator
        .change_profile(taxpayer.id, &json!({ "logo": null, "colours": null, "template": null, "registration_number": null }))
        .await
        .expect_status(200);
    assert_eq!(pdf(&taxpayer, &stored).await, seen[0]);
}

#[on_sqlite]
async fn a_strict_account_takes_only_numbers_that_can_be_submitted(world: &World) {
    let taxpayer = world.taxpayer().await;
    let numbered = |sign: &str| {
        let no = format!("{}{sign}A", documents::invoice_no());
        with(&invoice(), "invoice_no", json!(no))
    };
    let before = numbered("-");
    let answer = taxpayer.create_invoice(&before).await.expect_status(201);
    assert!(
        answer.warnings().contains("letters and digits"),
        "{}",
        answer.warnings()
    );
    world
        .integrator()
        .change_profile(taxpayer.id, &json!({ "strict_numbers": true }))
        .await
        .expect_status(200);
    taxpayer
        .create_invoice(&numbered("-"))
        .await
        .expect_faults(&["invoice_no"]);
    // What is stored already is a duplicate, as before.
    taxpayer.create_invoice(&before).await.expect_status(200);
    let full = documents::full_invoice(&taxpayer);
    let no = format!("{}/1", full["invoice_no"].as_str().unwrap());
    let odd = with(&full, "irn", json!(documents::irn(&taxpayer, &no)));
    taxpayer
        .create_full(&with(&odd, "invoice_no", json!(no)))
        .await
        .expect_faults(&["irn"]);
    let batch = taxpayer
        .create_batch(&[numbered("-"), numbered("")])
        .await
        .expect_status(201);
    assert_eq!(batch.data()["created"], json!(1));
    taxpayer.create_invoice(&invoice()).await.expect_status(201);
}

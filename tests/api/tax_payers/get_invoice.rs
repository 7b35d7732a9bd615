//! GET /v1/tax-payers/invoices/{id}.

use serde_json::json;
use testkit::documents;
use testkit::each_database;
use testkit::roles::INVOICES;

use crate::support::world::World;

#[each_database]
async fn an_invoice_reads_as_it_was_created(world: &World) {
    let taxpayer = world.taxpayer().await;
    let invoice = taxpayer.invoice(&documents::invoice()).await;
    let answer = taxpayer
        .get_invoice(&invoice["id"])
        .await
        .expect_status(200);
    assert_eq!(answer.body["success"], json!(true));
    assert_eq!(answer.message(), "Invoice retrieved successfully");
    assert_eq!(answer.data(), &invoice);
}

#[each_database]
async fn what_names_no_invoice_is_not_found(world: &World) {
    let taxpayer = world.taxpayer().await;
    for id in [
        "999999999",
        "0",
        "-1",
        "abc",
        "1.5",
        "99999999999999999999999",
        "1%00",
        "%F0%9F%A6%80",
        "'",
    ] {
        let answer = taxpayer.get(&format!("{INVOICES}/{id}")).await;
        let answer = answer.expect_refusal(404, "INVOICE_NOT_FOUND");
        assert_eq!(answer.message(), "Invoice not found", "{id}");
    }
}

#[each_database]
async fn every_name_of_an_invoice_finds_it(world: &World) {
    let taxpayer = world.taxpayer().await;
    let other = world.taxpayer().await;
    let invoice = taxpayer.invoice(&documents::invoice()).await;
    let id = invoice["id"].to_string();
    let names = [
        ("PORTAL_ID", id.as_str()),
        ("irn", invoice["irn"].as_str().unwrap()),
        (
            "EXTERNAL_INVOICE_NO",
            invoice["external_invoice_no"].as_str().unwrap(),
        ),
        (
            "INTERNAL_INVOICE_NO",
            invoice["invoice_no"].as_str().unwrap(),
        ),
    ];
    let path = "/v1/tax-payers/invoices/get-by-unique-no";
    for (kind, text) in names {
        let body = json!({ "unique_no": text, "unique_no_type": kind });
        let answer = taxpayer.send("POST", path, &body).await.expect_status(200);
        assert_eq!(
            (answer.body["message"].as_str(), answer.data()),
            (Some("Invoice retrieved successfully"), &invoice)
        );
        other
            .send("POST", path, &body)
            .await
            .expect_refusal(404, "INVOICE_NOT_FOUND");
    }
    let refused = taxpayer
        .send("POST", path, &json!({ "unique_no_type": "COLOUR" }))
        .await;
    let refused = refused.expect_refusal(422, "VALIDATION_FAILED");
    let faults: Vec<_> = refused.body["errors"]
        .as_object()
        .unwrap()
        .keys()
        .cloned()
        .collect();
    assert_eq!(faults, ["unique_no", "unique_no_type"]);
}

#[each_database]
async fn an_invoice_of_another_account_is_not_found(world: &World) {
    let invoice = world.taxpayer().await.invoice(&documents::invoice()).await;
    let other = world.taxpayer().await;
    let answer = other.get_invoice(&invoice["id"]).await;
    assert_eq!(
        answer.expect_refusal(404, "INVOICE_NOT_FOUND").message(),
        "Invoice not found"
    );
    let body = json!({
        "unique_no": invoice["irn"], "unique_no_type": "IRN", "status": "approved", "remark": "not mine",
    });
    let answer = other
        .send("PATCH", &format!("{INVOICES}/update-status"), &body)
        .await;
    answer.expect_refusal(404, "INVOICE_NOT_FOUND");
}

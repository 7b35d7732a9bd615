//! GET /v1/tax-payers/invoices/{id}.

use serde_json::json;

use crate::support::bodies;
use crate::support::clients::INVOICES;
use crate::support::world::on_every_database;

#[test]
fn an_invoice_reads_as_it_was_created() {
    on_every_database(async |world| {
        let taxpayer = world.taxpayer().await;
        let invoice = taxpayer.invoice(&bodies::invoice()).await;
        let answer = taxpayer.get_invoice(&invoice["id"]).await.expect_status(200);
        assert_eq!(answer.body["success"], json!(true));
        assert_eq!(answer.message(), "Invoice retrieved successfully");
        assert_eq!(answer.data(), &invoice);
    });
}

#[test]
fn what_names_no_invoice_is_not_found() {
    on_every_database(async |world| {
        let taxpayer = world.taxpayer().await;
        for id in
            ["999999999", "0", "-1", "abc", "1.5", "99999999999999999999999", "1%00", "%F0%9F%A6%80", "'"]
        {
            let answer = taxpayer.get(&format!("{INVOICES}/{id}")).await;
            let answer = answer.expect_refusal(404, "INVOICE_NOT_FOUND");
            assert_eq!(answer.message(), "Invoice not found", "{id}");
        }
    });
}

#[test]
fn an_invoice_of_another_account_is_not_found() {
    on_every_database(async |world| {
        let invoice = world.taxpayer().await.invoice(&bodies::invoice()).await;
        let other = world.taxpayer().await;
        let answer = other.get_invoice(&invoice["id"]).await;
        assert_eq!(answer.expect_refusal(404, "INVOICE_NOT_FOUND").message(), "Invoice not found");
        let body = json!({
            "unique_no": invoice["irn"], "unique_no_type": "IRN", "status": "approved", "remark": "not mine",
        });
        let answer = other.send("PATCH", &format!("{INVOICES}/update-status"), &body).await;
        answer.expect_refusal(404, "INVOICE_NOT_FOUND");
    });
}

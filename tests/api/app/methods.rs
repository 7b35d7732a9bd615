//! The methods of the access point surface, and IRNs in its paths.

use serde_json::json;
use testkit::documents::{self, irn, report, submission};
use testkit::roles::{REPORT, SUBMIT, TRANSMIT, VALIDATE, relay_path};
use testkit::{each_database, on_sqlite};

use crate::support::world::World;

const ALL: [&str; 5] = ["GET", "POST", "PUT", "PATCH", "DELETE"];

#[on_sqlite]
async fn each_path_takes_its_methods_and_names_them_to_the_others(world: &World) {
    let taxpayer = world.taxpayer().await;
    let irn = irn(&taxpayer, "NEVERSEEN");
    let below = |last: &str| format!("/v1/app/invoices/{irn}/{last}");
    for (path, allowed) in [
        (VALIDATE.to_owned(), "POST"),
        (SUBMIT.to_owned(), "POST"),
        (TRANSMIT.to_owned(), "POST"),
        (REPORT.to_owned(), "POST"),
        (
            format!("{TRANSMIT}/{irn}/confirm-receipt"),
            "PUT, PATCH, POST",
        ),
        (below("update-payment-status"), "PUT, PATCH, POST"),
        (below("confirm"), "GET, HEAD, POST"),
        (below("download"), "GET, HEAD, POST"),
        (below("run"), "GET, HEAD"),
    ] {
        for method in ALL {
            let answer = taxpayer.send(method, &path, &json!({})).await;
            let is_taken = allowed.split(", ").any(|taken| taken == method);
            assert_eq!(
                answer.status != 405,
                is_taken,
                "{method} {path}: {}",
                answer.text
            );
            if !is_taken {
                assert_eq!(
                    answer
                        .expect_refusal(405, "METHOD_NOT_ALLOWED")
                        .header("allow"),
                    allowed
                );
            }
        }
    }
}

#[on_sqlite]
async fn a_payment_status_is_relayed_by_any_of_its_methods(world: &World) {
    let taxpayer = world.taxpayer().await;
    let no = documents::invoice_no();
    taxpayer
        .app()
        .submit(&submission(&taxpayer, &no))
        .await
        .expect_status(200);
    let path = relay_path(&irn(&taxpayer, &no));
    for (method, status) in [("POST", "REJECTED"), ("PUT", "rejected"), ("PATCH", "PAID")] {
        let body = json!({ "payment_status": status });
        let answer = taxpayer.send(method, &path, &body).await.expect_status(200);
        assert_eq!(
            answer.data()["payment_status"],
            json!(status.to_uppercase())
        );
    }
}

#[each_database]
async fn an_irn_that_is_malformed_is_a_404_wherever_it_stands_in_a_path(world: &World) {
    let taxpayer = world.taxpayer().await;
    for odd in [
        "nonsense",
        "INV1-20260115",
        "INV1-XYZ-20260115",
        "%00",
        "a%2Fb",
        "-A0000001-20260115",
    ] {
        for (method, path) in paths(odd) {
            let answer = taxpayer
                .send(method, &path, &json!({ "payment_status": "PAID" }))
                .await;
            answer.expect_refusal(404, "INVOICE_NOT_FOUND");
        }
    }
}

#[on_sqlite]
async fn a_slash_or_a_blank_in_an_irn_is_percent_encoded(world: &World) {
    let taxpayer = world.taxpayer().await;
    for no in ["INV/2026/7", "INV 7", "INV%2F7", "INVä", "INV+7"] {
        let irn = irn(&taxpayer, no);
        let encoded = irn
            .replace('%', "%25")
            .replace('/', "%2F")
            .replace(' ', "%20")
            .replace('+', "%2B");
        taxpayer
            .app()
            .report(&report(&taxpayer, &irn))
            .await
            .expect_status(200);
        let run = taxpayer.app().run(&encoded).await.expect_status(200);
        assert_eq!(run.data()["irn"], json!(irn));
        taxpayer
            .app()
            .confirm(&encoded)
            .await
            .expect_refusal(404, "INVOICE_NOT_FOUND");
        taxpayer
            .app()
            .set_payment_status(&encoded, "PAID")
            .await
            .expect_refusal(404, "INVOICE_NOT_FOUND");
        taxpayer
            .app()
            .download(&encoded)
            .await
            .expect_refusal(404, "INVOICE_FILE_NOT_FOUND");
        taxpayer
            .app()
            .confirm_receipt(&encoded)
            .await
            .expect_refusal(404, "INVOICE_NOT_FOUND");
    }
    let plain = taxpayer.app().run(&irn(&taxpayer, "INV/2026/7")).await;
    plain.expect_refusal(404, "ROUTE_NOT_FOUND");
}

fn paths(irn: &str) -> [(&'static str, String); 5] {
    let below = |last: &str| format!("/v1/app/invoices/{irn}/{last}");
    [
        ("PATCH", format!("{TRANSMIT}/{irn}/confirm-receipt")),
        ("PATCH", below("update-payment-status")),
        ("POST", below("confirm")),
        ("POST", below("download")),
        ("GET", below("run")),
    ]
}

//! The country of a customer, from the text that the caller stored to the code that the authority takes.

use serde_json::{Value, json};
use testkit::documents;
use testkit::edit::with;
use testkit::roles::Taxpayer;
use testkit::{each_database, on_sqlite};

use crate::support::world::World;

const COUNTRY: &str = "customer.address_country";

fn alone(invoice: &Value) -> Value {
    json!({ "irn": invoice["irn"] })
}

/// Returns an invoice to the customer with this number, in this country.
fn invoice_to(customer: u32, country: &str) -> Value {
    let body = with(
        &documents::invoice(),
        "customer.no",
        json!(format!("C-{customer}")),
    );
    let tin = json!(format!("{customer:08}-0099"));
    with(&with(&body, "customer.tin", tin), COUNTRY, json!(country))
}

/// Submits a stored invoice and returns the country of its customer that the authority signed.
async fn signed_country(taxpayer: &Taxpayer, stored: &Value) -> Value {
    let app = taxpayer.app();
    app.submit_to_the_end(&alone(stored))
        .await
        .expect_status(200);
    let signed = app.download(stored["irn"].as_str().unwrap()).await;
    signed.expect_status(200).data()["accounting_customer_party"]["postal_address"]["country"]
        .clone()
}

#[on_sqlite]
async fn a_country_by_any_name_reaches_the_authority_as_its_code(world: &World) {
    let taxpayer = world.taxpayer().await;
    for (country, code) in [
        ("Nigeria", "NG"),
        ("NGA", "NG"),
        ("ng", "NG"),
        ("United Kingdom", "GB"),
        ("UK", "GB"),
        ("GH", "GH"),
    ] {
        let body = invoice_to(documents::number(), country);
        let created = taxpayer.create_invoice(&body).await.expect_status(201);
        assert_eq!(created.warnings(), "", "{country}");
        let signed = signed_country(&taxpayer, created.data()).await;
        assert_eq!(signed, json!(code), "{country}");
    }
}

#[each_database]
async fn a_country_that_no_list_has_is_told_at_once_and_mended_by_an_update(world: &World) {
    let taxpayer = world.taxpayer().await;
    for country in ["Atlantis", "QQ"] {
        let customer = documents::number();
        let body = invoice_to(customer, country);
        let created = taxpayer.create_invoice(&body).await.expect_status(201);
        let warnings = created.warnings();
        assert!(warnings.contains(COUNTRY), "{country}: {warnings}");
        let batch = taxpayer
            .create_batch(&[invoice_to(customer, country)])
            .await
            .expect_status(201);
        let warnings = batch.warnings();
        assert!(warnings.contains(COUNTRY), "{country}: {warnings}");
        let stored = created.data();
        let refused = taxpayer.app().submit(&alone(stored)).await;
        refused.expect_faults(&[COUNTRY]);
        let update = |country| {
            let sent = invoice_to(customer, country)["customer"].clone();
            with(&documents::update(stored), "customer", sent)
        };
        let kept = taxpayer.update(&update(country)).await.expect_status(200);
        let warnings = kept.warnings();
        assert!(warnings.contains(COUNTRY), "{country}: {warnings}");
        let mended = taxpayer.update(&update("NG")).await.expect_status(200);
        assert_eq!(mended.warnings(), "", "{country}");
        assert_eq!(signed_country(&taxpayer, stored).await, json!("NG"));
    }
}

#[each_database]
async fn a_later_invoice_mends_the_country_only_if_the_authority_would_refuse_it(world: &World) {
    let taxpayer = world.taxpayer().await;
    for (first, second, code) in [
        ("Atlantis", "Nigeria", "NG"),
        ("Ghana", "NG", "GH"),
        ("GH", "NG", "GH"),
    ] {
        let customer = documents::number();
        let stored = taxpayer.invoice(&invoice_to(customer, first)).await;
        taxpayer.invoice(&invoice_to(customer, second)).await;
        let signed = signed_country(&taxpayer, &stored).await;
        assert_eq!(signed, json!(code), "{first}, then {second}");
    }
}

#[on_sqlite]
async fn the_country_of_the_profile_is_sent_as_its_code(world: &World) {
    let taxpayer = world.taxpayer().await;
    for (country, is_known) in [("Atlantis", false), ("Nigeria", true)] {
        let change = json!({ "country": country });
        let changed = world
            .integrator()
            .change_profile(taxpayer.id, &change)
            .await;
        let warnings = changed.expect_status(200).warnings();
        assert_eq!(warnings.contains("country"), !is_known, "{warnings}");
        let stored = taxpayer.invoice(&documents::invoice()).await;
        let submitted = taxpayer.app().submit_to_the_end(&alone(&stored)).await;
        if is_known {
            submitted.expect_status(200);
        } else {
            submitted.expect_faults(&["profile.country"]);
        }
    }
}

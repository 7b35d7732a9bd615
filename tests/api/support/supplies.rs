//! Invoices that suppliers send: from elsewhere, and from a taxpayer of this service.

use sandbox::InboundInvoice;
use serde_json::{Value, json};
use testkit::documents::{self, submission};
use testkit::edit::with;
use testkit::patience::eventually;
use testkit::roles::Taxpayer;

use super::world::World;

/// An invoice from elsewhere, signed and transmitted, without a notice; its IRN.
pub(crate) fn planted(world: &World, tin: &str) -> String {
    let inbound = InboundInvoice {
        tin: tin.to_owned(),
        irn: Some(format!("{}-5A0D0001-20260115", documents::invoice_no())),
        notify: Some(false),
        ..InboundInvoice::default()
    };
    world.authority.plant_invoice(&inbound).unwrap()
}

/// An invoice from elsewhere in the inbox of a taxpayer; its IRN.
pub(crate) async fn received(world: &World, buyer: &Taxpayer) -> String {
    let irn = planted(world, &buyer.registration.tin);
    world.notice(&irn, "TRANSMITTING").await.expect_status(200);
    irn
}

/// An invoice of one taxpayer to another, signed and not transmitted.
pub(crate) async fn signed(seller: &Taxpayer, buyer_tin: &str) -> (Value, String) {
    let invoice = seller.invoice(&documents::invoice()).await;
    let body = submission(seller, invoice["invoice_no"].as_str().unwrap());
    let body = with(&body, "accounting_customer_party.tin", json!(buyer_tin));
    seller
        .app()
        .submit_to_the_end(&body)
        .await
        .expect_status(200);
    let irn = invoice["irn"].as_str().unwrap().to_owned();
    (invoice, irn)
}

/// Waits until an invoice is in the inbox; its line.
pub(crate) async fn arrived(buyer: &Taxpayer, irn: &str) -> Value {
    let look = async || {
        buyer
            .inbox_lines()
            .await
            .into_iter()
            .find(|line| line["supplier_irn"] == irn)
    };
    eventually("an invoice in the inbox", look).await
}

//! Documents that another system let the authority sign under an IRN of ours: transmitted, without a notice.

use sandbox::InboundInvoice;
use serde_json::{Value, json};
use testkit::documents::{self, irn, submission};
use testkit::roles::Taxpayer;

use super::world::World;

/// The customer of `submission`.
const CUSTOMER_TIN: &str = "87654321-0001";

/// Plants a document under the IRN of a number: the one that `submission` of this number sends, changed.
pub(crate) async fn plant(
    world: &World,
    taxpayer: &Taxpayer,
    no: &str,
    change: impl FnOnce(&mut Value),
) {
    let twin = documents::invoice_no();
    taxpayer
        .app()
        .submit(&submission(taxpayer, &twin))
        .await
        .expect_status(200);
    let copy = taxpayer
        .app()
        .download(&irn(taxpayer, &twin))
        .await
        .expect_status(200);
    let mut document = copy.data().clone();
    document["irn"] = json!(irn(taxpayer, no));
    document["invoice_reference"] = json!(no);
    change(&mut document);
    let inbound = InboundInvoice {
        tin: CUSTOMER_TIN.to_owned(),
        document: Some(document),
        notify: Some(false),
        ..InboundInvoice::default()
    };
    world.authority.plant_invoice(&inbound).unwrap();
}

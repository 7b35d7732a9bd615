//! Pages that were open while something changed: their forms do not do what nobody has seen.

use testkit::documents;
use testkit::each_database;

use super::{Account, seen};
use crate::support::world::World;

const APPROVE: &[(&str, &str)] = &[("status", "approved"), ("remark", "as agreed")];
const CANCEL: &[(&str, &str)] = &[("status", "cancelled"), ("remark", "not ordered")];

#[each_database]
async fn an_act_on_an_invoice_that_has_changed_is_refused(world: &World) {
    let account = Account::new(world).await;
    for (before, form, fields, meanwhile) in [
        ("draft", "status", APPROVE, "cancelled"),
        ("draft", "status", CANCEL, "approved"),
        ("approved", "submit", &[][..], "draft"),
        ("approved", "status", CANCEL, "draft"),
    ] {
        let invoice = account.taxpayer.invoice(&documents::invoice()).await;
        if before != "draft" {
            let set = account.taxpayer.set_status(&invoice, before).await;
            set.expect_status(200);
        }
        let page = format!("/invoices/{}", invoice["id"]);
        let seen = seen(&account, &page).await;
        let set = account.taxpayer.set_status(&invoice, meanwhile).await;
        set.expect_status(200);
        let path = format!("{page}/{form}");
        for seen in [&*seen, "", "soon"] {
            let fields: Vec<_> = fields.iter().copied().chain([("seen", seen)]).collect();
            let refused = account.post(&path, &fields).await.expect(412);
            refused.shows("The invoice has changed since you read it");
        }
        let stored = account.taxpayer.reread(&invoice).await;
        assert_eq!(stored["status"], meanwhile, "{form} of a {before}");
    }
    assert_eq!(account.taxpayer.count_events("invoice.submitted").await, 0);
}

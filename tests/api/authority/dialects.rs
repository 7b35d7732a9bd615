//! The shapes and words of the authority that are documented in two ways: both are understood.

use sandbox::{Dialect, FaultKind, FaultOrder, Operation, PartyEnrolment};
use serde_json::json;
use testkit::documents::{self, irn, submission};
use testkit::on_sqlite;

use crate::support::supplies::{arrived, planted, signed};
use crate::support::world::World;

const OFTEN: [(&str, &str); 1] = [("AUTHORITY__PULL_EVERY_S", "1")];

const DIALECTS: [Dialect; 2] = [Dialect::Short, Dialect::Long];

#[on_sqlite(&OFTEN)]
async fn a_busy_moment_is_no_refusal_and_a_duplicate_is_found_out(world: &World) {
    for dialect in DIALECTS {
        world.authority.set_dialect(dialect);
        let taxpayer = world.taxpayer().await;
        for word in ["SBXBUSY", "SBXBUSY422", "SBXDROP"] {
            let no = format!("{}{word}", documents::invoice_no());
            taxpayer
                .app()
                .submit_to_the_end(&submission(&taxpayer, &no))
                .await
                .expect_status(200);
            assert_eq!(
                world
                    .authority
                    .invoice(&irn(&taxpayer, &no))
                    .unwrap()
                    .sign_count,
                1,
                "{word}"
            );
        }
        for operation in [Operation::IrnValidate, Operation::Validate] {
            let no = documents::invoice_no();
            let mut busy = FaultOrder::new(FaultKind::Busy).on(operation);
            busy.irn = Some(irn(&taxpayer, &no));
            world.authority.add_fault(busy).unwrap();
            taxpayer
                .app()
                .submit_to_the_end(&submission(&taxpayer, &no))
                .await
                .expect_status(200);
        }
    }
}

#[on_sqlite(&OFTEN)]
async fn who_is_online_is_read_from_the_lookup(world: &World) {
    for dialect in DIALECTS {
        world.authority.set_dialect(dialect);
        let seller = world.taxpayer().await;
        let buyer = world.taxpayer().await;
        let (_, irn) = signed(&seller, &buyer.registration.tin).await;
        let enrol = |online: bool| {
            let party = PartyEnrolment {
                tin: Some(buyer.registration.tin.clone()),
                online: Some(online),
                ..PartyEnrolment::default()
            };
            world.authority.enrol(&party).unwrap();
        };
        enrol(false);
        seller
            .app()
            .transmit(&irn)
            .await
            .expect_refusal(500, "ACCESS_POINT_OFFLINE");
        enrol(true);
        seller
            .app()
            .transmit_to_the_end(&irn)
            .await
            .expect_status(200);
        assert_eq!(world.authority.invoice(&irn).unwrap().transmit_count, 1);
    }
}

#[on_sqlite(&OFTEN)]
async fn what_is_in_transit_is_read_from_the_list(world: &World) {
    for dialect in DIALECTS {
        world.authority.set_dialect(dialect);
        world.authority.forget_access_points();
        let buyer = world.taxpayer().await;
        let irn = planted(world, &buyer.registration.tin);
        let line = arrived(&buyer, &irn).await;
        assert_eq!(line["acknowledged"], json!(false));
    }
}

//! /console/breakers: an operator stops the calls of an operation and lets them pass again.

use einvoice::internals::OperatorRole;
use sandbox::Operation;
use testkit::documents::{self, irn, submission};
use testkit::each_database;
use testkit::patience::eventually;

use crate::support::visitor::Visitor;
use crate::support::world::{ALONE, World};

#[each_database(ALONE)]
async fn a_tripped_breaker_holds_runs_back_until_it_is_reset(world: &World) {
    let taxpayer = world.taxpayer().await;
    let operator = world.new_operator().await;
    let browser = Visitor::operator(world, OperatorRole::Operator).await;
    let trip = browser
        .submit("/console/breakers/sign/trip", &[("reason", "a wrong key")])
        .await;
    trip.leads_to("/console/breakers");
    browser
        .get("/console/breakers")
        .await
        .shows_all(&["An operator stopped the calls since", "Reset"]);
    let no = documents::invoice_no();
    taxpayer
        .app()
        .submit_async(&submission(&taxpayer, &no))
        .await
        .expect_status(202);
    let waits = async || {
        let run = operator.newest_run(&taxpayer).await;
        let page = browser
            .get(&format!("/console/runs/{}", run["id"].as_str().unwrap()))
            .await;
        page.html
            .contains("An operator stopped the calls of the step sign at")
            .then_some(())
    };
    eventually("a run that the breaker holds back", waits).await;
    let irn = irn(&taxpayer, &no);
    let signed = world.authority.calls().iter().any(|call| {
        call.operation == Some(Operation::Sign) && call.irn.as_deref() == Some(irn.as_str())
    });
    assert!(!signed, "no call is made");
    let reset = browser.submit("/console/breakers/sign/reset", &[]).await;
    reset.leads_to("/console/breakers");
    let ended =
        async || (operator.newest_run(&taxpayer).await["state"] == "succeeded").then_some(());
    eventually("the end of the run", ended).await;
    let audit = browser.get("/console/audit?subject=sign").await;
    audit.shows_all(&[
        "breaker.trip",
        "breaker.reset",
        "a wrong key",
        "@house.example",
    ]);
}

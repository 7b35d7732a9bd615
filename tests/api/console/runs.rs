//! /console/runs: the list with its filters, why a run waits, and its moves.

use einvoice::internals::OperatorRole;
use sandbox::{FaultKind, FaultOrder, Operation};
use serde_json::{Value, json};
use testkit::documents::{self, irn, number, submission};
use testkit::each_database;
use testkit::patience::eventually;
use testkit::roles::{Operator, Taxpayer};

use crate::support::visitor::Visitor;
use crate::support::world::{ALONE, World};

/// A run that waits for an authority that fails the check of its IRN.
async fn waiting(world: &World, operator: &Operator) -> (Taxpayer, Value) {
    let taxpayer = world.taxpayer().await;
    let no = documents::invoice_no();
    let mut fault = FaultOrder::new(FaultKind::ServerError)
        .on(Operation::IrnValidate)
        .times(1_000_000);
    fault.irn = Some(irn(&taxpayer, &no));
    world.authority.add_fault(fault).unwrap();
    taxpayer
        .app()
        .submit_async(&submission(&taxpayer, &no))
        .await
        .expect_status(202);
    let look = async || {
        let run = operator.newest_run(&taxpayer).await;
        (run["state"] == json!("waiting")).then_some(run)
    };
    let run = eventually("a run that waits", look).await;
    (taxpayer, run)
}

#[each_database]
async fn runs_are_filtered_by_the_address_and_one_is_shown_with_its_steps(world: &World) {
    let taxpayer = world.taxpayer().await;
    let operator = world.new_operator().await;
    let viewer = Visitor::operator(world, OperatorRole::Viewer).await;
    let no = documents::invoice_no();
    taxpayer
        .app()
        .submit(&submission(&taxpayer, &no))
        .await
        .expect_status(200);
    let irn = irn(&taxpayer, &no);
    let list = format!(
        "/console/runs?taxpayer_id={}&operation=&step=&error=&irn=",
        taxpayer.id
    );
    viewer
        .get(&list)
        .await
        .shows_all(&[&irn, "Done", "1 run matches."]);
    viewer
        .get(&format!("{list}&state=succeeded"))
        .await
        .shows_all(&[&irn]);
    viewer
        .get(&format!("{list}&state=paused"))
        .await
        .shows_all(&["No run matches."]);
    let refused = viewer.get(&format!("{list}&state=stuck")).await.expect(422);
    assert!(refused.html.contains("role=\"alert\""), "{}", refused.html);
    let run = operator.newest_run(&taxpayer).await;
    let id = run["id"].as_str().unwrap();
    let steps = ["irn-check", "data-check", "sign", "confirm"];
    let page = viewer
        .get(&format!("/console/runs/{id}"))
        .await
        .shows_all(&steps);
    let page = page.shows_all(&[
        "It waits for nothing: it succeeded at",
        "What is sent to the authority",
    ]);
    page.hides_all(&["formaction=", "billing@"]);
}

#[each_database(ALONE)]
async fn a_waiting_run_says_why_and_an_operator_moves_it(world: &World) {
    let (operator, browser) = (
        world.new_operator().await,
        Visitor::operator(world, OperatorRole::Operator).await,
    );
    let (_, run) = waiting(world, &operator).await;
    let path = format!("/console/runs/{}", run["id"].as_str().unwrap());
    let why = async || {
        let page = browser
            .get(&path)
            .await
            .shows_all(&["Why is it waiting?", "Retry now"]);
        page.html
            .contains("the authority answered the step irn-check with an error of its own (5xx)")
            .then_some(())
    };
    eventually("the reason of the wait", why).await;
    let hostile = "<script>alert(1)</script>";
    browser
        .submit(&format!("{path}/pause"), &[("reason", hostile)])
        .await
        .leads_to(&path);
    let paused = ["An operator paused it at", "run.pause", "@house.example"];
    let page = browser
        .get(&path)
        .await
        .shows_all(&paused)
        .hides_all(&[hostile]);
    assert!(
        page.html.contains("alert(1)"),
        "the reason is shown as text"
    );
    let again = browser
        .submit(&format!("{path}/pause"), &[])
        .await
        .expect(409);
    assert!(
        again.html.contains("A run that is paused takes no pause"),
        "{}",
        again.html
    );
    browser
        .submit(&format!("{path}/pause"), &[("reason", &"x".repeat(1_001))])
        .await
        .expect(422);
    world.authority.clear_faults();
    browser
        .submit(&format!("{path}/retry"), &[])
        .await
        .leads_to(&path);
    let ended = async || {
        let page = browser.get(&path).await;
        page.html
            .contains("It waits for nothing: it succeeded")
            .then_some(())
    };
    eventually("the end of the run", ended).await;
}

#[each_database]
async fn a_run_that_is_worked_on_says_by_whom_and_since_when(world: &World) {
    let taxpayer = world.taxpayer().await;
    let operator = world.new_operator().await;
    let viewer = Visitor::operator(world, OperatorRole::Viewer).await;
    let slow = format!("INV{}SBXSLOW", number());
    taxpayer
        .app()
        .submit_async(&submission(&taxpayer, &slow))
        .await
        .expect_status(202);
    let run = operator.newest_run(&taxpayer).await;
    let path = format!("/console/runs/{}", run["id"].as_str().unwrap());
    let why = async || {
        let page = viewer.get(&path).await;
        page.html.contains("has worked on the step ").then_some(())
    };
    eventually("the process that works on the run", why).await;
}

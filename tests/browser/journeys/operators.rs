//! The journeys of operators.

use einvoice::internals::OperatorRole;
use sandbox::{FaultKind, FaultOrder, Operation};
use serde_json::json;
use testkit::documents::{self, irn, submission};

use crate::person::Visitor;
use crate::run_alone;
use crate::support::account::{Account, PASSWORD};

/// In place of the stream of a part, one through which a test tells the page what it likes.
const TOLD_STREAM: &str = "
    window.told = null;
    window.EventSource = class { constructor() { window.told = this; } close() {} };";

/// Changes a part while its reader has the focus in it, has opened something in it or has selected some of it.
const LIVE_SCRIPT: &str = "
    const part = document.querySelector('[data-live]');
    const row = (key, text) => `<tr data-key='${key}'><th><a href='/console'>${key}</a></th><td>${text}</td>
        <td><details><summary>more</summary></details></td></tr>`;
    const tell = (...rows) =>
        window.told.onmessage({ data: `<table><tbody>${rows.join('')}</tbody></table>` });
    const rows = () => [...part.querySelectorAll('tr')];
    const texts = () => rows().map((one) => one.dataset.key + one.children[1].textContent).join(' ');
    tell(row('a', 1), row('b', 1), row('c', 1));
    const b = rows()[1];
    const [link, details] = [b.querySelector('a'), b.querySelector('details')];
    link.focus();
    details.open = true;
    tell(row('c', 2), row('b', 2), row('d', 2));
    const moved = [texts(), document.activeElement === link, details.open, details.isConnected];
    tell(row('d', 3));
    const gone = [texts(), document.activeElement === link, b.className];
    link.blur();
    getSelection().selectAllChildren(rows()[1].children[1]);
    tell(row('e', 4), row('d', 4));
    const selected = [texts(), getSelection().toString()];
    getSelection().removeAllRanges();
    tell(row('e', 5), row('d', 5));
    return { moved, gone, selected, released: texts() };";

#[test]
fn a_part_that_changes_by_itself_leaves_alone_what_its_reader_uses() {
    run_alone("live", |world| {
        Box::pin(async move {
            let viewer = Visitor::operator(world, OperatorRole::Viewer).await;
            let on_start = json!({ "source": TOLD_STREAM });
            let command = "Page.addScriptToEvaluateOnNewDocument";
            viewer.session.devtools(command, &on_start).await;
            viewer.open("/console/supervision").await;
            viewer.wait_to_see("All actors").await;
            let seen = viewer.session.script(LIVE_SCRIPT, &[]).await;
            let expected = json!({
                "moved": ["c2 b2 d2", true, true, true],
                "gone": ["b2 d3", true, "gone"],
                "selected": ["e4 d3", "3"],
                "released": "e5 d5",
            });
            assert_eq!(seen, expected);
        })
    });
}

#[test]
fn a_breaker_is_tripped_and_reset_and_the_invoice_is_signed() {
    run_alone("breaker", |world| {
        Box::pin(async move {
            let account = Account::new(world).await;
            let operator = Visitor::operator(world, OperatorRole::Operator).await;
            operator.follow("Breakers").await;
            operator.fill("Reason", "a wrong key").await;
            operator.press("15 calls pass").await;
            operator.press_in("sign", "Trip").await;
            operator
                .wait_to_see("An operator stopped the calls since")
                .await;
            let invoice = account.taxpayer.invoice(&documents::invoice()).await;
            let no = invoice["invoice_no"].as_str().unwrap();
            account
                .taxpayer
                .app()
                .submit_async(&submission(&account.taxpayer, no))
                .await
                .expect_status(202);
            operator.follow("Runs").await;
            operator.reload_until_seen("1 run matches.").await;
            operator
                .follow_in(invoice["irn"].as_str().unwrap(), "submit")
                .await;
            operator
                .reload_until_seen("An operator stopped the calls of the step sign at")
                .await;
            operator.follow("Breakers").await;
            operator.press_in("sign", "Reset").await;
            operator.follow("Runs").await;
            operator
                .follow_in(invoice["irn"].as_str().unwrap(), "submit")
                .await;
            operator
                .reload_until_seen("It waits for nothing: it succeeded")
                .await;
        })
    });
}

#[test]
fn a_paused_run_is_found_by_search_and_retried() {
    run_alone("paused", |world| {
        Box::pin(async move {
            let account = Account::new(world).await;
            let invoice = account.taxpayer.invoice(&documents::invoice()).await;
            let no = invoice["invoice_no"].as_str().unwrap();
            let mut fault = FaultOrder::new(FaultKind::ServerError)
                .on(Operation::IrnValidate)
                .times(1_000_000);
            fault.irn = Some(irn(&account.taxpayer, no));
            world.authority.add_fault(fault).unwrap();
            account
                .taxpayer
                .app()
                .submit_async(&submission(&account.taxpayer, no))
                .await
                .expect_status(202);
            let operator = Visitor::operator(world, OperatorRole::Operator).await;
            let find = async || {
                operator
                    .fill(
                        "Search by IRN, invoice number, TIN, taxpayer, run or event",
                        &format!("{}\n", invoice["irn"].as_str().unwrap()),
                    )
                    .await;
                operator.wait_to_see("Timeline").await;
                operator
                    .follow_in(invoice["irn"].as_str().unwrap(), "submit")
                    .await;
            };
            find().await;
            operator.reload_until_seen("because the authority").await;
            operator
                .fill("Reason", "until the authority is asked")
                .await;
            operator.press("Pause").await;
            operator.wait_to_see("An operator paused it at").await;
            world.authority.clear_faults();
            operator.follow("Overview").await;
            find().await;
            operator.wait_to_see("An operator paused it at").await;
            operator.press("Retry now").await;
            operator
                .reload_until_seen("It waits for nothing: it succeeded")
                .await;
        })
    });
}

#[test]
fn an_invoice_is_seen_live_on_its_way_through_the_pipeline() {
    run_alone("live", |world| {
        Box::pin(async move {
            let account = Account::new(world).await;
            let operator = Visitor::operator(world, OperatorRole::Viewer).await;
            operator.wait_to_see("Nothing needs you").await;
            let invoice = account.taxpayer.invoice(&documents::invoice()).await;
            let no = invoice["invoice_no"].as_str().unwrap();
            let fault = FaultOrder::new(FaultKind::ServerError)
                .on(Operation::Sign)
                .times(1_000_000);
            world.authority.add_fault(fault).unwrap();
            account
                .taxpayer
                .app()
                .submit_async(&submission(&account.taxpayer, no))
                .await
                .expect_status(202);
            // The page is not opened again: what is live changes by itself.
            operator.wait_to_see("Runs waiting 1 They go on").await;
            world.authority.clear_faults();
            operator.wait_to_see("Nothing needs you").await;
            let owner = Visitor::signed_in(world, &account.email, PASSWORD).await;
            owner.follow("Invoices").await;
            owner.follow(no).await;
            owner.reload_until_seen("Signed by the authority.").await;
        })
    });
}

#[test]
fn a_quarantined_create_is_replayed() {
    run_alone("quarantine", |world| {
        Box::pin(async move {
            let account = Account::new(world).await;
            let operator = Visitor::operator(world, OperatorRole::Admin).await;
            operator
                .open(&format!("/console/taxpayers/{}", account.taxpayer.id))
                .await;
            operator.fill("Reason for the panic", "a drill").await;
            operator.press("Order the panic").await;
            operator
                .wait_to_see("The actor panics at the next command of this taxpayer.")
                .await;
            account.taxpayer.invoice(&documents::invoice()).await;
            operator.follow("Supervision").await;
            operator
                .reload_until_seen("an operator ordered this panic")
                .await;
            operator
                .open(&format!("/console/taxpayers/{}", account.taxpayer.id))
                .await;
            operator.fill("Panics of the next command", "2").await;
            operator.fill("Reason for the panic", "a drill").await;
            operator.press("Order the panic").await;
            operator
                .wait_to_see("The actor panics at the next command of this taxpayer.")
                .await;
            account
                .taxpayer
                .create_invoice(&documents::invoice_numbered("PANIC2"))
                .await
                .expect_status(500);
            operator.follow("Quarantine").await;
            operator
                .reload_until_seen("an operator ordered this panic")
                .await;
            operator.press("Replay").await;
            operator.wait_to_see("The command was replayed.").await;
            operator
                .open(&format!("/console/taxpayers/{}", account.taxpayer.id))
                .await;
            operator.wait_to_see("PANIC2").await;
        })
    });
}

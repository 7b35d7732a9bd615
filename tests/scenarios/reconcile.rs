//! `einvoice reconcile` beside a running service and without one, and a reconciler that is killed at its work.

use std::process::Output;
use std::time::Duration;

use einvoice::internals::day_at;
use jiff::tz::Offset;
use sandbox::{FaultKind, FaultOrder, InboundInvoice, Operation};
use serde_json::{Value, json};
use testkit::documents::{Registration, invoice_numbered, submission};
use testkit::edit::exact;
use testkit::patience::eventually;
use testkit::{Backend, each_database};
use timing::clock::{Clock, SystemClock};
use tokio::time::sleep;

use crate::support::deployment::Deployment;
use crate::support::service::output_of;

const OWN_SETTINGS: [(&str, &str); 4] = [
    ("EINVOICE__RECONCILE__EVERY_S", "0"),
    ("EINVOICE__AUTHORITY__UTC_OFFSET", "+00:00"),
    ("EINVOICE__AUTHORITY__PULL_EVERY_S", "86400"),
    ("EINVOICE__PIPELINE__GIVE_UP_AFTER_S", "1"),
];

fn today() -> String {
    day_at(SystemClock.now(), Offset::UTC).to_string()
}

/// The exit code, the lines of JSON and what was said on standard error.
async fn reconcile(deployment: &Deployment, taxpayer: i64, day: &str) -> (i32, Vec<Value>, String) {
    let taxpayer = taxpayer.to_string();
    let command = deployment
        .service
        .call(&["reconcile", "--taxpayer", &taxpayer, "--day", day]);
    let Output {
        status,
        stdout,
        stderr,
    } = output_of(command).await;
    let lines = String::from_utf8(stdout).unwrap();
    let lines = lines
        .lines()
        .map(|line| strict_json::from_trusted(line).unwrap())
        .collect();
    (
        status.code().unwrap(),
        lines,
        String::from_utf8(stderr).unwrap(),
    )
}

/// A submission that is given up behind its signature.
async fn submit_until_paused(deployment: &Deployment, invoice_no: &str) -> String {
    let state = deployment.authority.state();
    let created = deployment
        .taxpayer
        .create_invoice(&invoice_numbered(invoice_no))
        .await;
    for (kind, operation) in [
        (FaultKind::CommitThenDrop, Operation::Sign),
        (FaultKind::ServerError, Operation::Confirm),
    ] {
        let mut order = FaultOrder::new(kind).on(operation);
        (order.irn, order.probability) = (Some(created.irn.clone()), Some(1.into()));
        state.add_fault(order).unwrap();
    }
    // The search, which names no invoice, tells nothing either.
    let mut search = FaultOrder::new(FaultKind::ServerError).on(Operation::Search);
    search.probability = Some(1.into());
    state.add_fault(search).unwrap();
    deployment
        .taxpayer
        .start_run("submit", &submission(&Registration::demo(), invoice_no))
        .await;
    eventually("the pause", async || {
        let run = deployment.taxpayer.run(&created.irn, "submit").await?;
        (run["state"] == "paused").then_some(())
    })
    .await;
    state.clear_faults();
    created.irn
}

/// The authority signs an invoice of the taxpayer that it was sent by another way.
fn sign_elsewhere(deployment: &Deployment, invoice_no: &str) {
    let mut document = submission(&Registration::demo(), invoice_no);
    document["invoice_kind"] = json!("B2B");
    document["tax_currency_code"] = json!("NGN");
    document["tax_total"] = json!([{ "tax_amount": 75, "tax_subtotal": [{
        "taxable_amount": 1000, "tax_amount": 75,
        "tax_category": { "id": "STANDARD_VAT", "percent": exact("7.5") },
    }] }]);
    let tin = document["accounting_customer_party"]["tin"]
        .as_str()
        .unwrap()
        .to_owned();
    let inbound = InboundInvoice {
        tin,
        document: Some(document),
        notify: Some(false),
        ..InboundInvoice::default()
    };
    let state = deployment.authority.state();
    state.plant_invoice(&inbound).unwrap();
}

#[each_database]
async fn the_call_mends_lists_and_says_so_by_its_exit_code(backend: Backend) {
    let mut deployment = Deployment::with(backend, &OWN_SETTINGS).await;
    let taxpayer = deployment.taxpayer_id();
    let irn = submit_until_paused(&deployment, "PAUSED1").await;
    let (code, lines, said) = reconcile(&deployment, taxpayer, &today()).await;
    assert_eq!(code, 0, "{lines:?} {said}");
    assert_eq!(
        (&lines[0]["what"], &lines[0]["irn"]),
        (&json!("unfinished_locally"), &json!(irn))
    );
    assert_eq!((&lines[0]["action"], lines.len()), (&json!("mended"), 2));
    assert_eq!(
        (&lines[1]["state"], &lines[1]["mended"], &lines[1]["listed"]),
        (&json!("done"), &json!(1), &json!(0))
    );
    deployment
        .taxpayer
        .wait_until_succeeded(&irn, "submit")
        .await;

    // Paid here and never relayed: no difference. Signed there without us: an operator is to look.
    let body =
        json!({ "unique_no": irn, "unique_no_type": "IRN", "status": "paid", "remark": "in cash" });
    let path = "/v1/tax-payers/invoices/update-payment-status";
    let answer = deployment
        .taxpayer
        .call(reqwest::Method::PATCH, path, Some(&body))
        .await
        .unwrap();
    assert_eq!(answer.status, 200, "{answer:?}");
    let (code, lines, said) = reconcile(&deployment, taxpayer, &today()).await;
    assert_eq!((code, lines.len()), (0, 1), "{lines:?} {said}");
    sign_elsewhere(&deployment, "ELSEWHERE1");
    let (code, lines, said) = reconcile(&deployment, taxpayer, &today()).await;
    assert_eq!(
        (code, &lines[0]["what"], &lines[0]["action"]),
        (1, &json!("missing_locally"), &json!("listed"))
    );
    assert!(
        said.contains("1 findings are left to an operator"),
        "{said}"
    );

    let (code, lines, said) = reconcile(&deployment, 999_999, &today()).await;
    assert_eq!((code, lines.len()), (2, 0));
    assert!(said.contains("there is no taxpayer 999999"), "{said}");
    let (code, _, said) = reconcile(&deployment, taxpayer, "9999-01-01").await;
    assert_eq!(code, 2, "{said}");
    let (code, _, said) = reconcile(&deployment, taxpayer, "yesterday").await;
    assert_eq!(code, 2, "{said}");

    deployment
        .authority
        .state()
        .add_fault(FaultOrder::new(FaultKind::ServerError).on(Operation::Search))
        .unwrap();
    let (code, lines, said) = reconcile(&deployment, taxpayer, &today()).await;
    assert_eq!((code, lines.len()), (2, 0), "{said}");
    assert!(said.contains("the authority is failing"), "{said}");

    // Without a service the call does it alone.
    deployment.service.kill_9();
    let (code, lines, said) = reconcile(&deployment, taxpayer, &today()).await;
    assert_eq!(code, 1, "{said}");
    assert_eq!(lines.last().unwrap()["listed"], json!(1));
    deployment.service.restart().await;
    deployment.intact_events().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reconciler_killed_at_its_work_is_made_up_for() {
    let often = [
        ("EINVOICE__RECONCILE__EVERY_S", "1"),
        OWN_SETTINGS[1],
        OWN_SETTINGS[2],
        OWN_SETTINGS[3],
    ];
    let mut deployment = Deployment::with(Backend::Sqlite, &often).await;
    let irn = submit_until_paused(&deployment, "KILLED1").await;
    for kill in 0..6_u64 {
        let mut order = FaultOrder::new(FaultKind::Latency)
            .on(Operation::Search)
            .times(1);
        order.latency_ms = Some(400);
        deployment.authority.state().add_fault(order).unwrap();
        sleep(Duration::from_millis(kill * 130)).await;
        deployment.restart_after_kill().await;
    }
    eventually("the end of the run", async || {
        let run = deployment.taxpayer.run(&irn, "submit").await?;
        (run["state"] == "succeeded").then_some(())
    })
    .await;
    assert_eq!(
        deployment
            .authority
            .state()
            .invoice(&irn)
            .unwrap()
            .sign_count,
        1
    );
    let events = deployment.intact_events().await;
    let submitted = events
        .iter()
        .filter(|event| event["type"] == "invoice.submitted")
        .count();
    assert_eq!(submitted, 1);
    let (code, lines, said) = reconcile(&deployment, deployment.taxpayer_id(), &today()).await;
    assert_eq!(code, 0, "{lines:?} {said}");
}

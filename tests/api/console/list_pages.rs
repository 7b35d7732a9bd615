//! Every list with pages leads from a page after its last one to the last, with the same filters.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use einvoice::internals::OperatorRole;
use serde_json::json;
use testkit::documents;
use testkit::patience::eventually;
use testkit::receiver::{Receiver, Reply};
use testkit::roles::Operator;
use testkit::{each_database, on_sqlite};

use crate::support::account::{Account, signed_in};
use crate::support::supplies;
use crate::support::visitor::Visitor;
use crate::support::world::{ALONE, World};

/// Each list: its template and its address, in which `{taxpayer}` and `{reconciliation}` stand for ids.
const LISTS: [(&str, &str); 24] = [
    ("accounts/batches", "/dashboard/{taxpayer}/batches"),
    ("accounts/customers", "/dashboard/{taxpayer}/customers"),
    (
        "accounts/customers",
        "/dashboard/{taxpayer}/customers?all=true",
    ),
    (
        "accounts/deliveries",
        "/dashboard/{taxpayer}/webhooks/deliveries",
    ),
    ("accounts/inbox", "/dashboard/{taxpayer}/inbox"),
    ("accounts/invoices", "/dashboard/{taxpayer}/invoices"),
    (
        "accounts/invoices",
        "/dashboard/{taxpayer}/invoices?status=draft&sort=-payable",
    ),
    ("accounts/requests", "/dashboard/{taxpayer}/requests"),
    ("accounts/requests", "/dashboard/taxpayers/requests"),
    ("accounts/taxpayers", "/dashboard/taxpayers"),
    (
        "accounts/integrator_activity",
        "/dashboard/taxpayers/activity",
    ),
    ("operators/audit", "/console/audit"),
    ("operators/breakers", "/console/breakers"),
    (
        "operators/dead_letters",
        "/console/deliveries/dead-letters?taxpayer_id={taxpayer}",
    ),
    ("operators/endpoints", "/console/deliveries"),
    ("operators/integrators", "/console/integrators"),
    ("operators/keys", "/console/keys"),
    ("operators/mails", "/console/mails"),
    ("operators/people", "/console/operators"),
    ("operators/quarantine", "/console/quarantine"),
    (
        "operators/reconciliation",
        "/console/reconciliations/{reconciliation}",
    ),
    ("operators/reconciliations", "/console/reconciliations"),
    ("operators/runs", "/console/runs?taxpayer_id={taxpayer}"),
    ("operators/taxpayers", "/console/taxpayers"),
];

/// Returns the templates that link to the pages of a list.
fn paged_templates() -> BTreeSet<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/console/templates");
    let mut found = BTreeSet::new();
    for directory in ["accounts", "operators"] {
        for entry in fs::read_dir(root.join(directory)).unwrap() {
            let path = entry.unwrap().path();
            let text = fs::read_to_string(&path).unwrap();
            if text.contains(r#"{% include "parts/pager.html" %}"#) {
                let name = path.file_stem().unwrap().to_str().unwrap();
                found.insert(format!("{directory}/{name}"));
            }
        }
    }
    found
}

#[test]
fn the_table_has_every_template_with_pages() {
    let listed: BTreeSet<_> = LISTS.iter().map(|list| list.0.to_owned()).collect();
    assert_eq!(listed, paged_templates());
}

/// Fills the lists of operators that the calls of a taxpayer leave empty.
async fn fill_lists_of_operators(world: &World, taxpayer: i64, reconciliation: &str) {
    let id = "01900000-0000-7000-8000-000000000001";
    let late = 9_000_000_000_000_000_i64;
    for statement in [
        format!(
            "INSERT INTO quarantine (reference, actor, command, taxpayer_id, at, panic, state) \
             VALUES ('{id}', '{taxpayer}', 'create', {taxpayer}, {late}, 'none', 'kept')"
        ),
        format!(
            "INSERT INTO outages (id, affected, started_at, ended_at) VALUES ('{id}', '[]', {late}, {late})"
        ),
        format!(
            "INSERT INTO mails (id, recipient, topic, subject, body, html, state, attempts, next_attempt_at, created_at) \
             VALUES ('{id}', 'a@b.example', 'outage', 's', 'b', 'b', 'sent', 1, {late}, {late})"
        ),
        format!(
            "INSERT INTO reconciliation_findings (taxpayer_id, reconciliation_id, number, kind, irn, action, detail) \
             VALUES ({taxpayer}, '{reconciliation}', 900, 'missing_locally', 'A', 'listed', 'x')"
        ),
        format!("UPDATE reconciliations SET listed = listed + 1 WHERE id = '{reconciliation}'"),
    ] {
        assert_eq!(world.execute(&statement).await, 1, "{statement}");
    }
}

async fn wait_for_dead_letter(operator: &Operator, taxpayer: i64) {
    eventually("a dead letter", async || {
        let query = format!("?taxpayer_id={taxpayer}");
        let letters = operator.dead_letters(&query).await.expect_status(200);
        let all = letters.data()["data"].as_array();
        all.is_some_and(|all| !all.is_empty()).then_some(())
    })
    .await;
}

#[each_database(ALONE)]
async fn a_page_after_the_last_one_leads_to_the_last_that_has_rows(world: &World) {
    let (integrator, email, password) = world.new_integrator_person().await;
    let account = Account::newcomer(world, &integrator).await;
    let id = account.taxpayer.id;
    let profile = json!({ "city": "Lagos", "state": "Lagos", "country": "NG" });
    let changed = integrator.change_profile(id, &profile).await;
    changed.expect_status(200);
    let receiver = Receiver::start();
    receiver.answer_always(Reply::Status(500));
    let events = ["invoice.created"];
    let set = integrator.set_webhook(id, &receiver.url(), &events).await;
    set.expect_status(200);
    integrator.rotate_secret(id).await;
    account.refused_invoice().await;
    let approved = account.taxpayer.invoice(&documents::invoice()).await;
    let moved = account.taxpayer.set_status(&approved, "approved").await;
    moved.expect_status(200);
    let batch = [documents::invoice(), documents::invoice()];
    account
        .taxpayer
        .create_batch(&batch)
        .await
        .expect_status(201);
    let supplied = supplies::received(world, &account.taxpayer).await;
    supplies::arrived(&account.taxpayer, &supplied).await;
    let operator = world.new_operator().await;
    wait_for_dead_letter(&operator, id).await;
    let compared = operator.reconcile(id, "2026-01-15").await;
    let reconciliation = compared.data()["id"].as_str().unwrap().to_owned();
    fill_lists_of_operators(world, id, &reconciliation).await;
    let person = signed_in(world, &email, &password).await;
    let viewer = Visitor::operator(world, OperatorRole::Viewer).await;
    for (_, pattern) in LISTS {
        let path = pattern
            .replace("{taxpayer}", &id.to_string())
            .replace("{reconciliation}", &reconciliation);
        let visitor = match pattern {
            _ if pattern.starts_with("/console") => &viewer,
            _ if pattern.starts_with("/dashboard/taxpayers") => &person,
            _ => &account.owner,
        };
        let separator = if path.contains('?') { '&' } else { '?' };
        let asked = format!("{path}{separator}per_page=1");
        let answer = visitor.get(&format!("{asked}&page=4000000000")).await;
        let (led_to, last) = answer.location.rsplit_once("&page=").unwrap_or_default();
        assert_eq!((answer.status, led_to), (303, asked.as_str()), "{path}");
        let last_page = visitor.get(&answer.location).await.expect(200);
        // Some lists grow meanwhile.
        let position = format!("<span>{last} / ");
        let is_only = last == "1" && !last_page.html.contains("class=\"pager\"");
        assert!(
            is_only || last_page.html.contains(&position),
            "{path}: {}",
            last_page.html
        );
    }
}

#[on_sqlite]
async fn a_list_without_rows_says_so_on_any_page(world: &World) {
    let account = Account::new(world).await;
    for (path, sentence) in [
        ("/invoices?page=500", "There is no invoice yet."),
        ("/customers?page=99", "Nobody owes anything."),
        ("/batches?page=9", "No batch was sent yet."),
        ("/inbox?page=9", "No supplier has sent an invoice yet."),
    ] {
        let page = account.page(path).await;
        assert!(page.contains(sentence), "{path}: {page}");
    }
}

//! Who may see and do what: another account's pages do not exist, a role that only looks may not act, and a form counts
//! only from a page of the same session.

use testkit::documents;
use testkit::receiver::Receiver;
use testkit::{each_database, on_sqlite};
use uuid::Uuid;

use super::{Account, PASSWORD, post_seen, signed_in};
use crate::support::account::first_customer;
use crate::support::supplies;
use crate::support::visitor::Visitor;
use crate::support::world::World;

/// The pages that everybody of the account may see.
fn pages(invoice: i64, irn: &str, batch: &str) -> Vec<String> {
    let fixed = [
        "",
        "/invoices",
        "/batches",
        "/customers",
        "/import",
        "/inbox",
        "/webhooks",
        "/webhooks/deliveries",
        "/webhooks/events",
        "/profile",
        "/reports",
    ];
    let own = [
        format!("/invoices/{invoice}"),
        format!("/inbox/{irn}"),
        format!("/batches/{batch}"),
    ];
    fixed.map(str::to_owned).into_iter().chain(own).collect()
}

const OWNERS_PAGES: [&str; 7] = [
    "/keys",
    "/integration",
    "/contacts",
    "/notifications",
    "/activity",
    "/webhooks/endpoints/new",
    "/requests",
];

/// The forms of owners, and those of accountants.
fn forms(invoice: i64, irn: &str) -> (Vec<String>, Vec<String>) {
    let id = Uuid::nil();
    let owners = [
        "/profile".to_owned(),
        "/profile/settings".to_owned(),
        "/profile/logo".to_owned(),
        "/keys/rotate".to_owned(),
        "/keys/0123456789ab/revoke".to_owned(),
        "/integration".to_owned(),
        "/webhooks".to_owned(),
        "/webhooks/secret".to_owned(),
        "/webhooks/test".to_owned(),
        "/webhooks/grade".to_owned(),
        "/webhooks/enable".to_owned(),
        "/webhooks/replay".to_owned(),
        "/webhooks/endpoints/new".to_owned(),
        "/webhooks/endpoints/1".to_owned(),
        "/webhooks/endpoints/1/secret".to_owned(),
        "/webhooks/endpoints/1/test".to_owned(),
        "/webhooks/endpoints/1/grade".to_owned(),
        "/webhooks/endpoints/1/enable".to_owned(),
        "/webhooks/endpoints/1/replay".to_owned(),
        "/webhooks/endpoints/1/remove".to_owned(),
        format!("/webhooks/replays/{id}/cancel"),
        format!("/webhooks/deliveries/{id}/link"),
        "/contacts".to_owned(),
        "/notifications".to_owned(),
        "/contacts/1/role".to_owned(),
        "/contacts/1/invitation".to_owned(),
        "/contacts/1/invitation/mail".to_owned(),
        "/contacts/1/second-factor/reset".to_owned(),
        "/contacts/1/remove".to_owned(),
        "/contacts/1/disable".to_owned(),
        "/contacts/1/enable".to_owned(),
        format!("/requests/{id}/send"),
    ];
    let accountants = [
        format!("/invoices/{invoice}/status"),
        format!("/invoices/{invoice}/payment"),
        format!("/invoices/{invoice}/payment/take-back"),
        format!("/invoices/{invoice}/correction"),
        format!("/invoices/{invoice}/submit"),
        format!("/invoices/{invoice}/retry"),
        format!("/invoices/{invoice}/transmit"),
        "/invoices/new".to_owned(),
        "/invoices/new/lines".to_owned(),
        "/customers/1/edit".to_owned(),
        format!("/invoices/{invoice}/edit"),
        format!("/invoices/{invoice}/edit/lines"),
        format!("/invoices/{invoice}/credit-note"),
        format!("/invoices/{invoice}/credit-note/lines"),
        format!("/invoices/{invoice}/correct"),
        format!("/invoices/{invoice}/correct/lines"),
        format!("/invoices/{invoice}/correct/preview"),
        "/batches/B1/undo".to_owned(),
        "/invoices/bulk".to_owned(),
        "/inbox/acknowledge".to_owned(),
        "/import/answers".to_owned(),
        "/imports/I1/cancel".to_owned(),
        format!("/inbox/{irn}/acknowledge"),
        format!("/webhooks/deliveries/{id}/resend"),
        "/webhooks/deliveries/bulk".to_owned(),
    ];
    (owners.into(), accountants.into())
}

#[on_sqlite]
async fn another_accounts_pages_and_forms_do_not_exist(world: &World) {
    let account = Account::new(world).await;
    let other = Account::new(world).await;
    let (invoice, irn, batch) = things_of(world, &account).await;
    let (owners, accountants) = forms(invoice, &irn);
    for page in pages(invoice, &irn, &batch)
        .iter()
        .map(String::as_str)
        .chain(OWNERS_PAGES)
    {
        account.owner.get(&account.path(page)).await.expect(200);
        other.owner.get(&account.path(page)).await.expect(404);
    }
    for form in owners.iter().chain(&accountants) {
        other
            .owner
            .submit(&account.path(form), &[])
            .await
            .expect(404);
    }
    // What belongs to another account is not found on one's own pages either.
    for page in [
        format!("/invoices/{invoice}"),
        format!("/inbox/{irn}"),
        format!("/batches/{batch}"),
    ] {
        other.owner.get(&other.path(&page)).await.expect(404);
    }
    // The fields of these forms say what is meant (`inbox`, `import`), or they are about nothing that is stored.
    let by_fields = [
        "/inbox/acknowledge",
        "/import/answers",
        "/invoices/new",
        "/invoices/new/lines",
    ];
    let others = accountants
        .iter()
        .filter(|form| !by_fields.contains(&form.as_str()));
    for form in others {
        other.owner.submit(&other.path(form), &[]).await.expect(404);
    }
}

/// An invoice, a supplier's invoice and a batch of an account.
async fn things_of(world: &World, account: &Account) -> (i64, String, String) {
    let invoice = account.taxpayer.invoice(&documents::invoice()).await;
    let irn = supplies::received(world, &account.taxpayer).await;
    let batch = account
        .taxpayer
        .create_batch(&[documents::invoice()])
        .await
        .expect_status(201);
    let batch = batch.data()["batch_no"].as_str().unwrap().to_owned();
    (invoice["id"].as_i64().unwrap(), irn, batch)
}

#[on_sqlite]
async fn who_only_looks_may_not_act_and_an_accountant_may_not_own(world: &World) {
    let account = Account::new(world).await;
    let (invoice, irn, batch) = things_of(world, &account).await;
    let (owners, accountants) = forms(invoice, &irn);
    account.set_role(world, "read_only").await;
    for page in pages(invoice, &irn, &batch) {
        let page = account
            .owner
            .get(&account.path(&page))
            .await
            .expect(200)
            .html;
        assert_eq!(
            page.matches("method=\"post\"").count(),
            1,
            "only the sign-out: {page}"
        );
        assert!(!page.contains("API keys</a>"), "an owner's page: {page}");
        assert!(!page.contains(">Import</a>"), "{page}");
    }
    for page in OWNERS_PAGES {
        let refused = account.owner.get(&account.path(page)).await.expect(403);
        refused.shows(">Invoices</a>");
    }
    for form in owners.iter().chain(&accountants) {
        account.post(form, &[]).await.expect(403);
    }
    let customers = account.page("/customers?all=true").await;
    let acting = [
        format!("/customers/{}/edit", first_customer(&customers)),
        "/invoices/new".to_owned(),
        format!("/invoices/new?like={invoice}"),
        format!("/invoices/{invoice}/edit"),
        format!("/invoices/{invoice}/correct"),
        format!("/batches/{batch}/undo"),
    ];
    for page in &acting {
        account.owner.get(&account.path(page)).await.expect(403);
    }
    account.set_role(world, "accountant").await;
    for page in &acting {
        account.owner.get(&account.path(page)).await.expect(200);
    }
    for form in &owners {
        account.post(form, &[]).await.expect(403);
    }
    let fields = [("status", "approved"), ("remark", "as agreed")];
    let page = format!("/invoices/{invoice}");
    let changed = post_seen(&account, &page, "status", &fields).await;
    changed.expect(303);
}

#[on_sqlite]
async fn a_form_without_its_token_and_a_stranger_are_refused(world: &World) {
    let account = Account::new(world).await;
    let (invoice, irn, _) = things_of(world, &account).await;
    let (owners, accountants) = forms(invoice, &irn);
    for form in owners.iter().chain(&accountants) {
        let path = account.path(form);
        account
            .owner
            .send(&path, &[("once", "1")])
            .await
            .expect(403);
        account
            .owner
            .send(&path, &[("csrf", "odd"), ("once", "1")])
            .await
            .expect(403);
        account.owner.get(&path).await;
    }
    let stranger = Visitor::new(world);
    for page in ["", "/invoices", "/keys"] {
        let answer = stranger.get(&account.path(page)).await.expect(303);
        assert!(
            answer.location.starts_with("/sign-in"),
            "{}",
            answer.location
        );
    }
}

#[each_database]
async fn an_integrator_sees_its_taxpayers_and_no_others(world: &World) {
    let receiver = Receiver::start();
    let account = Account::new(world).await;
    world
        .integrator()
        .set_webhook(account.taxpayer.id, &receiver.url(), &[])
        .await
        .expect_status(200);
    let (_, email, password) = world.new_integrator_person().await;
    let integrator = signed_in(world, &email, &password).await;
    integrator.get(&account.path("/invoices")).await.expect(404);
    let none = integrator
        .get("/dashboard/taxpayers")
        .await
        .expect(200)
        .html;
    assert!(none.contains("No taxpayer matches."), "{none}");
    account.owner.get("/dashboard/taxpayers").await.expect(404);
    assert_eq!(
        account.owner.get("/dashboard").await.location,
        account.path("")
    );
    let again = signed_in(world, &account.email, PASSWORD).await;
    again.get(&account.path("")).await.expect(200);
}

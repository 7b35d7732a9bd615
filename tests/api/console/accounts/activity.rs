//! Who did it: events, ledgers and timelines name their actor, the owner reads all of it on one page, and the chain of
//! events covers the actor.

use serde_json::{Value, json};
use testkit::documents;
use testkit::each_database;
use testkit::receiver::Receiver;

use super::{Account, assert_shows, post_seen, seen, signed_in};
use crate::support::world::World;

/// Returns the actors of these entries, as kind and name.
fn actors(entries: &Value) -> Vec<(String, Option<String>)> {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let actor = |entry: &Value| {
        (
            text(&entry["actor"]["kind"]).unwrap(),
            text(&entry["actor"]["name"]),
        )
    };
    entries.as_array().unwrap().iter().map(actor).collect()
}

#[each_database]
async fn an_approval_and_a_payment_name_the_person_or_the_key(world: &World) {
    let account = Account::new(world).await;
    let invoice = account.taxpayer.invoice(&documents::invoice()).await;
    let page = format!("/invoices/{}", invoice["id"]);
    let approved = [("status", "approved"), ("remark", "as agreed")];
    let changed = post_seen(&account, &page, "status", &approved).await;
    changed.expect(303);
    let part = [
        ("payment_status", "partial"),
        ("amount", "7"),
        ("remark", "first part"),
    ];
    account
        .post(&format!("{page}/payment"), &part)
        .await
        .expect(303);

    let events = account.taxpayer.events().await;
    let of_invoice: Vec<_> = events
        .into_iter()
        .filter(|event| event["irn"] == invoice["irn"])
        .collect();
    let named = actors(&json!(of_invoice));
    let kinds: Vec<_> = named.iter().map(|(kind, _)| kind.as_str()).collect();
    assert_eq!(kinds, ["taxpayer-key", "contact", "contact"]);
    let person = named[1].1.clone().unwrap();

    let path = format!("/v1/tax-payers/invoices/{}?include=ledger", invoice["id"]);
    let ledger = account.taxpayer.get(&path).await.expect_status(200);
    assert_eq!(
        actors(&ledger.data()["ledger"]["entries"]),
        [("contact".to_owned(), Some(person.clone()))]
    );
    let timeline = account
        .taxpayer
        .timeline(&invoice["id"])
        .await
        .expect_status(200);
    assert_eq!(actors(&timeline.data()["entries"]), named);
    assert_shows(
        &account.page(&page).await,
        &[&format!("by {person}"), "by API key"],
    );
    assert_shows(
        &account.page("/activity").await,
        &[
            &person,
            "Changed the payment of an invoice",
            "Created an invoice",
        ],
    );
}

#[each_database]
async fn who_submits_and_transmits_on_a_page_is_in_the_activity(world: &World) {
    let (integrator, email, password) = world.new_integrator_person().await;
    let account = Account::newcomer(world, &integrator).await;
    let profile = json!({ "city": "Lagos", "state": "Lagos", "country": "NG" });
    integrator
        .change_profile(account.taxpayer.id, &profile)
        .await
        .expect_status(200);
    let helper = signed_in(world, &email, &password).await;
    for (person, kind) in [(&account.owner, "contact"), (&helper, "integrator")] {
        let draft = account.taxpayer.invoice(&documents::invoice()).await;
        let approved = account.taxpayer.set_status(&draft, "approved").await;
        approved.expect_status(200);
        let page = format!("/invoices/{}", draft["id"]);
        let seen = seen(&account, &page).await;
        let submit = account.path(&format!("{page}/submit"));
        person.submit(&submit, &[("seen", &seen)]).await.expect(303);
        let transmit = account.path(&format!("{page}/transmit"));
        // The second time it is done already, which changes nothing.
        for _ in 0..2 {
            person.submit(&transmit, &[]).await.expect(303);
        }
        let activity = account.taxpayer.get("/v1/tax-payers/activity").await;
        let activity = activity.expect_status(200);
        let entries = activity.data()["entries"].as_array().unwrap().clone();
        let done: Vec<_> = entries
            .iter()
            .filter(|entry| entry["subject"] == draft["irn"])
            .map(|entry| (&entry["actor"]["kind"], &entry["action"]))
            .filter(|(by, _)| **by == json!(kind))
            .collect();
        let expected = [json!("invoice.transmit"), json!("invoice.submit")];
        let actions: Vec<_> = done.iter().map(|(_, action)| (*action).clone()).collect();
        assert_eq!(actions, expected, "{kind}: {entries:?}");
    }
    // A key leaves no entry for each invoice that it submits.
    let alone = documents::submission(&account.taxpayer, &documents::invoice_no());
    account.taxpayer.app().submit_to_the_end(&alone).await;
    let page = account.page("/activity").await;
    assert_eq!(page.matches("Submitted an invoice").count(), 2, "{page}");
    assert_shows(&page, &["Transmitted an invoice"]);
}

#[each_database]
async fn what_owners_do_with_the_webhook_is_in_the_audit_with_their_name(world: &World) {
    let account = Account::new(world).await;
    let receiver = Receiver::start();
    let operator = world.new_operator().await;
    let id = account.taxpayer.id;
    world
        .integrator()
        .set_webhook(id, &receiver.url(), &[])
        .await
        .expect_status(200);
    account.taxpayer.invoice(&documents::invoice()).await;
    account
        .post("/webhooks/enable", &[("replay", "none")])
        .await
        .expect(303);
    account
        .post(
            "/webhooks/replay",
            &[("since", "2020-01-01"), ("only", "all")],
        )
        .await
        .expect(303);
    let audit = operator
        .audit(&format!("?taxpayer_id={id}"))
        .await
        .expect_status(200);
    let actions: Vec<_> = audit.data()["data"].as_array().unwrap().iter().collect();
    for action in ["webhook.enable", "webhook.replay"] {
        let entry = actions
            .iter()
            .find(|entry| entry["action"] == action)
            .unwrap();
        assert_eq!(entry["actor"], "contact", "{entry}");
        assert!(entry["contact_id"].is_i64(), "{entry}");
    }
}

#[each_database]
async fn the_activity_is_read_page_by_page_and_by_actor(world: &World) {
    let account = Account::new(world).await;
    for _ in 0..3 {
        account.taxpayer.invoice(&documents::invoice()).await;
    }
    account
        .post("/keys", &[("name", "Night run")])
        .await
        .expect(200);
    let read = async |query: &str| {
        let path = format!("/v1/tax-payers/activity{query}");
        account
            .taxpayer
            .get(&path)
            .await
            .expect_status(200)
            .data()
            .clone()
    };
    let all = read("").await;
    let mut pieces = Vec::new();
    let mut cursor = String::new();
    loop {
        let page = read(&format!("?limit=2{cursor}")).await;
        pieces.extend(page["entries"].as_array().unwrap().clone());
        match page["next_cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => break,
        }
    }
    assert_eq!(json!(pieces), all["entries"]);
    let by_key = read("?actor=taxpayer-key").await;
    assert_eq!(by_key["entries"].as_array().unwrap().len(), 3, "{by_key}");
    let by_people = read("?actor=contact").await;
    assert_eq!(
        by_people["entries"][0]["action"], "taxpayer.rotate-key",
        "{by_people}"
    );
    for odd in ["?actor=nobody", "?cursor=7", "?limit=0"] {
        account
            .taxpayer
            .get(&format!("/v1/tax-payers/activity{odd}"))
            .await
            .expect_status(422);
    }
    assert_shows(
        &account.page("/activity?actor=contact").await,
        &["Created an API key", "Signed in"],
    );
}

#[each_database]
async fn an_integrator_sees_what_was_done_to_its_taxpayers(world: &World) {
    let (integrator, email, password) = world.new_integrator_person().await;
    let account = Account::newcomer(world, &integrator).await;
    account
        .post("/keys", &[("name", "Night run")])
        .await
        .expect(200);
    let person = signed_in(world, &email, &password).await;
    let page = person
        .get("/dashboard/taxpayers/activity")
        .await
        .expect(200)
        .html;
    assert_shows(
        &page,
        &[
            "Created an API key",
            &format!("taxpayer {}", account.taxpayer.id),
        ],
    );
    account
        .owner
        .get("/dashboard/taxpayers/activity")
        .await
        .expect(404);
}

//! The webhook: its settings, what its owner does with it, and the log of its deliveries.

use testkit::documents;
use testkit::each_database;
use testkit::patience::eventually;
use testkit::receiver::{Receiver, Reply};

use super::{Account, assert_shows};
use crate::support::world::World;

/// Sets the webhook up by its form and takes the secret over.
async fn set_up(account: &Account, receiver: &Receiver) -> String {
    let url = receiver.url();
    let fields = [
        ("webhook_url", url.as_str()),
        ("enabled_events", "invoice.created"),
    ];
    account.post("/webhooks", &fields).await.expect(303);
    let page = account
        .post("/webhooks/secret", &[("type", "hmac")])
        .await
        .expect(200)
        .html;
    let text = page.split(r#"id="secret">"#).nth(1).unwrap();
    text.split('<').next().unwrap().to_owned()
}

#[each_database]
async fn an_owner_sets_a_webhook_up_and_sees_what_was_sent(world: &World) {
    let account = Account::new(world).await;
    let receiver = Receiver::start();
    assert_shows(&account.page("/webhooks").await, &["Not set up"]);
    let secret = set_up(&account, &receiver).await;
    assert!(secret.starts_with("whsec_"), "{secret}");
    let page = account.page("/webhooks").await;
    assert_shows(&page, &["Healthy", "value=\"invoice.created\" checked"]);
    assert!(!page.contains(&secret), "{page}");
    let test = account.post("/webhooks/test", &[]).await.expect(200).html;
    assert_shows(&test, &["Your endpoint took the message."]);
    let invoice = account.taxpayer.invoice(&documents::invoice()).await;
    let irn = invoice["irn"].as_str().unwrap();
    let delivered = async || {
        let log = account.page("/webhooks/deliveries?state=delivered").await;
        log.contains(irn).then_some(log)
    };
    let log = eventually("a delivery in the log", delivered).await;
    let id = log
        .split("/webhooks/deliveries/")
        .nth(1)
        .unwrap()
        .split('"')
        .next()
        .unwrap()
        .to_owned();
    let path = format!("/webhooks/deliveries/{id}");
    let page = account.page(&path).await;
    assert_shows(
        &page,
        &["invoice.created", irn, "Delivered", "&#34;irn&#34;"],
    );
    let before = receiver.received_notifications().len();
    account
        .post(&format!("{path}/resend"), &[])
        .await
        .expect(303);
    let again = async || (receiver.received_notifications().len() > before).then_some(());
    eventually("the same event again", again).await;
    let page = account
        .page(&format!("/invoices/{}?tab=developer", invoice["id"]))
        .await;
    assert_shows(&page, &[&path, "Your webhook was told of invoice.created"]);
    account.page("/webhooks/deliveries?state=odd").await;
}

#[each_database]
async fn a_failing_endpoint_says_why_and_what_to_do(world: &World) {
    let account = Account::new(world).await;
    let receiver = Receiver::start();
    set_up(&account, &receiver).await;
    receiver.answer_always(Reply::Status(410));
    let test = account.post("/webhooks/test", &[]).await.expect(200).html;
    assert_shows(&test, &["Not delivered", "410"]);
    account.taxpayer.invoice(&documents::invoice()).await;
    let disabled = async || {
        let page = account.page("/webhooks").await;
        page.contains("Disabled").then_some(page)
    };
    let page = eventually("a disabled webhook", disabled).await;
    assert_shows(&page, &["Put it back into service", "410"]);
    receiver.answer_always(Reply::Status(200));
    account
        .post("/webhooks/enable", &[("replay", "none")])
        .await
        .expect(303);
    assert_shows(&account.page("/webhooks").await, &["Healthy"]);
    let replay = [("since", "2020-01-01"), ("only", "all")];
    account.post("/webhooks/replay", &replay).await.expect(303);
    assert_shows(&account.page("/webhooks").await, &["Looked at"]);
    let grade = account.post("/webhooks/grade", &[]).await.expect(200).html;
    assert_shows(&grade, &["Grade of the webhook", "another secret"]);
}

#[each_database]
async fn a_fault_stands_beside_its_field(world: &World) {
    let account = Account::new(world).await;
    let fields = [
        ("webhook_url", "ftp://x\"><script>"),
        ("retry_schedule_s", "0, soon"),
    ];
    let page = account.post("/webhooks", &fields).await.expect(422).html;
    assert_shows(
        &page,
        &[
            "The webhook_url field",
            "The retry_schedule_s.1 field",
            "value=\"0, soon\"",
        ],
    );
    assert!(!page.contains("\"><script>"), "{page}");
    account.post("/webhooks/test", &[]).await.expect(422);
}

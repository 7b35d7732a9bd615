//! The webhook: its settings, what its owner does with it, and the log of its deliveries.

use serde_json::json;
use testkit::documents;
use testkit::patience::eventually;
use testkit::receiver::{Receiver, Reply};
use testkit::roles::webhook;
use testkit::{each_database, on_sqlite};

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
    assert_shows(&page, &["Idle", "value=\"invoice.created\" checked"]);
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
        .split(r#"name="id" value=""#)
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

#[on_sqlite]
async fn an_owner_who_ticks_no_event_is_told_that_nothing_is_sent(world: &World) {
    let account = Account::new(world).await;
    let url = Receiver::start().url();
    for (event, notice) in [
        (None, "nothing is sent to it: no event is ticked."),
        (
            Some(("enabled_events", "invoice.created")),
            "The webhook was saved. Test it now.",
        ),
    ] {
        let fields = [("webhook_url", url.as_str())].into_iter().chain(event);
        let fields: Vec<_> = fields.collect();
        let saved = account.post("/webhooks", &fields).await.expect(303);
        let page = account.owner.get(&saved.location).await.expect(200);
        page.shows(notice);
    }
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
    assert_shows(&account.page("/webhooks").await, &["Progress"]);
    let grade = account.post("/webhooks/grade", &[]).await.expect(200).html;
    assert_shows(&grade, &["Grade of the webhook", "another secret"]);
}

#[on_sqlite]
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

#[each_database]
async fn an_owner_adds_changes_and_deletes_an_endpoint(world: &World) {
    let account = Account::new(world).await;
    let [erp, warehouse] = [Receiver::start(), Receiver::start()];
    set_up(&account, &erp).await;
    let form = account.page("/webhooks/endpoints/new").await;
    assert_shows(&form, &["New endpoint", "Add endpoint"]);
    let none = [("url", "ftp://x"), ("enabled_events", "invoice.created")];
    let page = account.post("/webhooks/endpoints/new", &none).await;
    assert_shows(&page.expect(422).html, &["The url field"]);
    let url = warehouse.url();
    let fields = [
        ("url", url.as_str()),
        ("description", "The warehouse"),
        ("enabled_events", "invoice.created"),
    ];
    let page = account.post("/webhooks/endpoints/new", &fields).await;
    let page = page.expect(200).html;
    assert_shows(&page, &["Your new signing secret", "whsec_"]);
    let id = page.split("/webhooks/endpoints/").nth(1).unwrap();
    let one = format!("/webhooks/endpoints/{}", id.split('"').next().unwrap());
    assert_shows(
        &account.page("/webhooks").await,
        &["More endpoints", "The warehouse", &url, &one],
    );
    let test = account.post(&format!("{one}/test"), &[]).await;
    assert_shows(
        &test.expect(200).html,
        &["Your endpoint took the message.", &one],
    );
    let invoice = account.taxpayer.invoice(&documents::invoice()).await;
    let irn = invoice["irn"].as_str().unwrap();
    let list = one.replace("/webhooks/endpoints/", "/webhooks/deliveries?endpoint=");
    let delivered = async || {
        let log = account.page(&format!("{list}&state=delivered")).await;
        log.contains(irn).then_some(log)
    };
    let log = eventually("a delivery in the endpoint's log", delivered).await;
    assert_shows(&log, &["The warehouse"]);
    let shown = account.page(&one).await;
    assert_shows(
        &shown,
        &["Healthy", "Last 24 hours", "Average response time"],
    );
    let changed = [
        ("url", url.as_str()),
        ("description", "The store"),
        ("enabled_events", "invoice.updated"),
    ];
    account.post(&one, &changed).await.expect(303);
    assert_shows(
        &account.page(&one).await,
        &["value=\"The store\"", "value=\"invoice.updated\" checked"],
    );
    account
        .post(&format!("{one}/remove"), &[])
        .await
        .expect(303);
    assert!(!account.page("/webhooks").await.contains("The store"));
    account.post(&one, &changed).await.expect(404);
}

#[each_database]
async fn the_overview_has_the_worst_endpoint_and_leads_to_its_failed_deliveries(world: &World) {
    let account = Account::new(world).await;
    let [erp, warehouse] = [Receiver::start(), Receiver::start()];
    set_up(&account, &erp).await;
    warehouse.answer_always(Reply::Status(500));
    let endpoint = json!({
        "url": warehouse.url(), "enabled_events": ["invoice.created"], "description": "The warehouse",
    });
    let path = format!("{}/endpoints", webhook(account.taxpayer.id));
    let added = world.integrator().send("POST", &path, &endpoint).await;
    let added = added.expect_status(201);
    let id = added.data()["id"].as_str().unwrap();
    let invoice = account.taxpayer.invoice(&documents::invoice()).await;
    let failed = async || {
        let page = account.page("").await;
        let says_so = page.contains("failed deliveries to The warehouse");
        says_so.then_some(page)
    };
    let overview = eventually("a failed delivery", failed).await;
    let list = format!("/webhooks/deliveries?endpoint={id}");
    let page = format!("/webhooks/endpoints/{id}\">The warehouse</a>: ");
    assert_shows(&overview, &[&page, &format!("{list}&#38;state=dead\"")]);
    assert!(!overview.contains(">Healthy<"), "{overview}");
    let dead = account.page(&format!("{list}&state=dead")).await;
    assert_shows(&dead, &[invoice["irn"].as_str().unwrap()]);
    let subject = format!("failed deliveries of <code>{}</code>", erp.url());
    assert_shows(
        &account.page("/webhooks").await,
        &[&subject, "Those of the other endpoints are below"],
    );
}

//! `/shared/deliveries/{token}`: a link with which somebody without an account sees one delivery.

use serde_json::{Value, json};
use testkit::documents;
use testkit::patience::eventually;
use testkit::receiver::{Receiver, Reply};
use testkit::roles::{Integrator, Taxpayer, webhook};
use testkit::{each_database, on_sqlite};

use crate::support::account::{Account, PASSWORD, choose, link_path, signed_in};
use crate::support::visitor::Visitor;
use crate::support::world::World;

const CREATED: &str = "invoice.created";

/// A taxpayer with two delivered events, and their deliveries.
async fn with_deliveries(world: &World) -> (Taxpayer, Integrator, Receiver, Vec<Value>) {
    let taxpayer = world.taxpayer().await;
    let integrator = world.integrator();
    let receiver = Receiver::start();
    let url = receiver.url_at("/hook/with-a-secret");
    integrator
        .set_webhook(taxpayer.id, &url, &[CREATED])
        .await
        .expect_status(200);
    for _ in 0..2 {
        taxpayer.invoice(&documents::invoice()).await;
    }
    let delivered = async || {
        let log = integrator.deliveries(taxpayer.id, "?state=delivered").await;
        let log = log.expect_status(200);
        let items = log.data()["data"].as_array().unwrap().clone();
        (items.len() == 2).then_some(items)
    };
    let items = eventually("two deliveries", delivered).await;
    (taxpayer, integrator, receiver, items)
}

/// Gives an account a webhook and an event, and returns its delivery.
async fn first_delivery(account: &Account, integrator: &Integrator, receiver: &Receiver) -> Value {
    let id = account.taxpayer.id;
    integrator
        .set_webhook(id, &receiver.url(), &[CREATED])
        .await
        .expect_status(200);
    account.taxpayer.invoice(&documents::invoice()).await;
    let delivered = async || {
        let log = integrator.deliveries(id, "?state=delivered").await;
        let log = log.expect_status(200);
        log.data()["data"].get(0).cloned()
    };
    eventually("a delivery", delivered).await
}

/// Makes a link and returns its path.
async fn share(
    world: &World,
    integrator: &Integrator,
    taxpayer: &Taxpayer,
    delivery: &Value,
) -> String {
    let id = delivery["id"].as_str().unwrap();
    let path = format!("{}/deliveries/{id}/link", webhook(taxpayer.id));
    let made = integrator
        .send("POST", &path, &json!({}))
        .await
        .expect_status(201);
    let url = made.data()["url"].as_str().unwrap();
    url.strip_prefix(&world.root()).unwrap().to_owned()
}

#[each_database]
async fn a_link_is_shown_once_whatever_the_key(world: &World) {
    let (taxpayer, integrator, _receiver, all) = with_deliveries(world).await;
    let id = all[0]["id"].as_str().unwrap();
    let path = format!("{}/deliveries/{id}/link", webhook(taxpayer.id));
    let [key, other] = [format!("{id}-1"), format!("{id}-2")];
    let post = async |key: &str| {
        let body = json!({});
        integrator.send_keyed(key, "POST", &path, &body).await
    };
    let first = post(&key).await.expect_status(201);
    let url = first.data()["url"].as_str().unwrap().to_owned();
    let again = post(&key).await;
    let again = again.expect_refusal(422, "IDEMPOTENCY_KEY_REUSED");
    assert!(!again.text.contains(&url), "{}", again.text);
    // Nothing was done a second time.
    let audit = format!("/v1/system-integrators/audit?subject={id}");
    let audit = integrator.get(&audit).await.expect_status(200);
    assert_eq!(audit.data()["total"], 1, "{}", audit.text);
    post(&other).await.expect_status(201);
}

#[each_database]
async fn a_link_shows_one_delivery_and_no_secret(world: &World) {
    let (taxpayer, integrator, receiver, all) = with_deliveries(world).await;
    let secret = integrator.rotate_secret(taxpayer.id).await;
    let link = share(world, &integrator, &taxpayer, &all[0]).await;
    let event = |delivery: &Value| delivery["event_id"].as_str().unwrap().to_owned();
    let [shown, hidden] = [event(&all[0]), event(&all[1])];
    let notifications = receiver.received_notifications();
    let sent = notifications.iter().find(|one| one.id == shown).unwrap();
    let page = Visitor::new(world).get(&link).await.expect(200);
    let page = page.shows_all(&[CREATED, &shown, "Delivered", "(hidden)", "traceparent"]);
    page.hides_all(&[
        &secret,
        "whsec_",
        "with-a-secret",
        &hidden,
        "csrf",
        &sent.header("webhook-signature")[3..],
    ]);
    let request = world.anonymous().request("GET", &link);
    let answer = request.send().await.unwrap();
    for (name, value) in [
        ("x-robots-tag", "noindex, nofollow"),
        ("cache-control", "no-store"),
        ("referrer-policy", "no-referrer"),
    ] {
        assert_eq!(answer.headers()[name], value, "{name}");
    }
}

#[on_sqlite]
async fn a_link_does_not_show_the_path_that_the_receiver_repeats(world: &World) {
    let (taxpayer, integrator, receiver, _) = with_deliveries(world).await;
    receiver.answer_next(&[Reply::Text(404, "Cannot POST /hook/with-a-secret")]);
    taxpayer.invoice(&documents::invoice()).await;
    let refused = async || {
        let log = integrator.deliveries(taxpayer.id, "").await;
        let newest = log.expect_status(200).data()["data"][0].clone();
        (newest["attempts"][0]["status"] == 404).then_some(newest)
    };
    let refused = eventually("a refused delivery", refused).await;
    let link = share(world, &integrator, &taxpayer, &refused).await;
    let page = Visitor::new(world).get(&link).await.expect(200);
    page.shows_all(&["Cannot POST (hidden)"])
        .hides_all(&["with-a-secret"]);
}

#[each_database]
async fn a_link_that_was_changed_or_has_ended_shows_nothing(world: &World) {
    let (taxpayer, integrator, _receiver, all) = with_deliveries(world).await;
    let link = share(world, &integrator, &taxpayer, &all[0]).await;
    let other = share(world, &integrator, &taxpayer, &all[1]).await;
    let visitor = Visitor::new(world);
    visitor.get(&link).await.expect(200);
    let (start, token) = link.rsplit_once('/').unwrap();
    let other = other.rsplit_once('/').unwrap().1;
    // The first 43 characters are the delivery and the end of the link, the others are its maker and the signature.
    let mixed = format!("{}{}", &token[..43], &other[43..]);
    for token in [&token[..80], &mixed, "x", "%00", &"x".repeat(2_000)] {
        let page = visitor.get(&format!("{start}/{token}")).await.expect(404);
        page.shows("not valid");
    }
    integrator.rotate_secret(taxpayer.id).await;
    visitor.get(&link).await.expect(404);
    let again = share(world, &integrator, &taxpayer, &all[0]).await;
    visitor.get(&again).await.expect(200);
}

#[on_sqlite]
async fn a_link_is_made_only_to_an_own_delivery_and_for_a_time_within_limits(world: &World) {
    let (taxpayer, integrator, _receiver, all) = with_deliveries(world).await;
    let path = |id: &str| format!("{}/deliveries/{id}/link", webhook(taxpayer.id));
    for seconds in [59, 2_592_001] {
        let body = json!({ "valid_for_s": seconds });
        integrator
            .send("POST", &path(all[0]["id"].as_str().unwrap()), &body)
            .await
            .expect_faults(&["valid_for_s"]);
    }
    let nobodys = path(&uuid::Uuid::nil().to_string());
    integrator
        .send("POST", &nobodys, &json!({}))
        .await
        .expect_refusal(404, "DELIVERY_NOT_FOUND");
    let stranger = world.new_integrator().await;
    stranger
        .send("POST", &path(all[0]["id"].as_str().unwrap()), &json!({}))
        .await
        .expect_refusal(404, "TAXPAYER_NOT_FOUND");
}

#[each_database]
async fn an_owner_makes_a_link_on_the_page_of_a_delivery(world: &World) {
    let account = Account::new(world).await;
    let receiver = Receiver::start();
    let url = receiver.url();
    let fields = [("webhook_url", url.as_str()), ("enabled_events", CREATED)];
    account.post("/webhooks", &fields).await.expect(303);
    account.taxpayer.invoice(&documents::invoice()).await;
    let delivered = async || {
        let log = account.page("/webhooks/deliveries?state=delivered").await;
        let (_, rest) = log.split_once("name=\"id\" value=\"")?;
        rest.split('"').next().map(str::to_owned)
    };
    let id = eventually("a delivery in the log", delivered).await;
    let page = format!("/webhooks/deliveries/{id}");
    let made = account
        .post(&format!("{page}/link"), &[("valid_for_s", "86400")])
        .await
        .expect(200);
    let (_, link) = made.html.split_once("id=\"link\">").unwrap();
    let link = link.split('<').next().unwrap();
    let link = link.strip_prefix(&world.root()).unwrap();
    Visitor::new(world)
        .get(link)
        .await
        .expect(200)
        .shows(CREATED);
}

/// The fields of the form that adds a person with this email as an owner.
fn owner_fields(email: &str) -> [(&str, &str); 4] {
    [
        ("first_name", "Bola"),
        ("last_name", "Ade"),
        ("email", email),
        ("role", "owner"),
    ]
}

/// An owner whom another owner added, and the links that it made for others: one to a delivery, and an invitation.
struct SecondOwner {
    browser: Visitor,
    email: String,
    links: [String; 2],
}

impl SecondOwner {
    async fn new(world: &World, account: &Account, delivery: &Value) -> Self {
        let email = format!("second.{}", account.email);
        let added = account.post("/contacts", &owner_fields(&email)).await;
        let own = link_path(&added.expect(200).html);
        let chosen = choose(&Visitor::new(world), &own, PASSWORD).await;
        chosen.expect(303);
        let browser = signed_in(world, &email, PASSWORD).await;
        let third = format!("third.{}", account.email);
        let people = account.path("/contacts");
        let invited = browser.submit(&people, &owner_fields(&third)).await;
        let invitation = link_path(&invited.expect(200).html);
        let id = delivery["id"].as_str().unwrap();
        let form = account.path(&format!("/webhooks/deliveries/{id}/link"));
        let made = browser.submit(&form, &[("valid_for_s", "86400")]).await;
        let made = made.expect(200).html;
        let (_, shared) = made.split_once("id=\"link\">").unwrap();
        let shared = shared.split('<').next().unwrap();
        let shared = shared.strip_prefix(&world.root()).unwrap();
        Self {
            browser,
            email,
            links: [shared.to_owned(), invitation],
        }
    }

    async fn id(&self, world: &World) -> i64 {
        let query = format!("SELECT id FROM contacts WHERE email = '{}'", self.email);
        world.number(&query).await
    }

    async fn expect_links(&self, world: &World, status: u16) {
        let visitor = Visitor::new(world);
        for link in &self.links {
            visitor.get(link).await.expect(status);
        }
    }
}

#[each_database]
async fn all_that_an_owner_made_for_others_ends_with_a_new_password(world: &World) {
    let new = "another four plain words";
    for way in ["page", "link"] {
        let account = Account::new(world).await;
        let receiver = Receiver::start();
        let delivery = first_delivery(&account, &world.integrator(), &receiver).await;
        let second = SecondOwner::new(world, &account, &delivery).await;
        second.expect_links(world, 200).await;
        if way == "page" {
            let own = signed_in(world, &second.email, PASSWORD).await;
            let fields = [("current", PASSWORD), ("new", new), ("again", new)];
            own.submit("/account/password", &fields).await.expect(303);
        } else {
            let form = format!("/contacts/{}/invitation", second.id(world).await);
            let reset = account.post(&form, &[]).await.expect(200);
            let link = link_path(&reset.html);
            let chosen = choose(&Visitor::new(world), &link, new).await;
            chosen.expect(303);
        }
        second.expect_links(world, 404).await;
        let people = account.path("/contacts");
        second.browser.get(&people).await.expect(303);
    }
}

#[each_database]
async fn all_that_an_owner_made_for_others_ends_with_the_owner(world: &World) {
    for (way, fields, status) in [
        ("remove", vec![], 303),
        ("disable", vec![], 303),
        ("role", vec![("role", "accountant")], 403),
    ] {
        let account = Account::new(world).await;
        let receiver = Receiver::start();
        let delivery = first_delivery(&account, &world.integrator(), &receiver).await;
        let second = SecondOwner::new(world, &account, &delivery).await;
        second.expect_links(world, 200).await;
        let people = account.path("/contacts");
        second.browser.get(&people).await.expect(200);
        let id = second.id(world).await;
        let change = format!("/contacts/{id}/{way}");
        account.post(&change, &fields).await.expect(303);
        second.expect_links(world, 404).await;
        second.browser.get(&people).await.expect(status);
        let activity = account.taxpayer.get("/v1/tax-payers/activity").await;
        let activity = activity.expect_status(200);
        let entries = activity.data()["entries"].as_array().unwrap();
        let own = entries
            .iter()
            .filter(|entry| entry["actor"]["kind"] == "contact")
            .filter(|entry| entry["actor"]["id"] == json!(id.to_string()));
        let names: Vec<_> = own.map(|entry| &entry["actor"]["name"]).collect();
        assert!(!names.is_empty(), "{way}: {}", activity.text);
        for name in names {
            assert_eq!(name, "Bola Ade", "{way}: {}", activity.text);
        }
    }
}

#[each_database]
async fn a_link_ends_with_the_access_of_its_integrator(world: &World) {
    for way in ["disable", "api-key/revoke"] {
        let (integrator, email, _) = world.new_integrator_person().await;
        let account = Account::newcomer(world, &integrator).await;
        let profile = json!({ "city": "Lagos", "state": "Lagos", "country": "NG" });
        integrator
            .change_profile(account.taxpayer.id, &profile)
            .await
            .expect_status(200);
        let receiver = Receiver::start();
        let delivery = first_delivery(&account, &integrator, &receiver).await;
        let link = share(world, &integrator, &account.taxpayer, &delivery).await;
        let visitor = Visitor::new(world);
        visitor.get(&link).await.expect(200);
        let id = format!("SELECT id FROM integrators WHERE email = '{email}'");
        let id = world.number(&id).await;
        let change = format!("/ops/integrators/{id}/{way}");
        let operator = world.new_operator().await;
        let changed = operator.send("POST", &change, &json!({})).await;
        changed.expect_status(200);
        visitor.get(&link).await.expect(404);
        let log = integrator.deliveries(account.taxpayer.id, "").await;
        log.expect_status(401);
    }
}

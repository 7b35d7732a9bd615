//! Each form has its effect once, however often the browser sends it, and the same payment is not recorded twice by
//! mistake.

use einvoice::internals::once_and_repeatable_form_patterns;
use serde_json::{Value, json};
use testkit::documents::{self, number};
use testkit::receiver::Receiver;
use testkit::roles::{Operator, webhook};
use testkit::{each_database, on_sqlite};

use super::{Account, assert_shows, seen};
use crate::support::world::World;

const DONE: &str = "This was done already.";

/// The forms of an account that a test can send at any time, below the account's path, with their fields.
fn forms(invoice: &Value) -> Vec<(String, Vec<(&'static str, &'static str)>)> {
    let page = format!("/invoices/{}", invoice["id"]);
    let part = vec![
        ("payment_status", "partial"),
        ("amount", "7"),
        ("remark", "first part"),
    ];
    let person = vec![
        ("first_name", "Ada"),
        ("last_name", "Obi"),
        ("email", "ada.obi@once.example"),
        ("role", "read_only"),
    ];
    vec![
        (
            format!("{page}/status"),
            vec![("status", "approved"), ("remark", "as agreed")],
        ),
        (format!("{page}/payment"), part),
        (
            "/keys/rotate".to_owned(),
            vec![("overlap_s", "86400"), ("scope", "full")],
        ),
        ("/webhooks/secret".to_owned(), vec![("type", "")]),
        ("/profile".to_owned(), vec![("city", "Ibadan")]),
        ("/contacts".to_owned(), person),
    ]
}

/// How much the log of the account and the audit hold about it.
async fn footprint(account: &Account, operator: &Operator) -> (usize, Value) {
    let audit = operator
        .audit(&format!("?taxpayer_id={}", account.taxpayer.id))
        .await
        .expect_status(200);
    (
        account.taxpayer.events().await.len(),
        audit.data()["total"].clone(),
    )
}

#[on_sqlite]
async fn the_same_form_twice_has_one_effect_and_leads_to_its_result(world: &World) {
    let account = Account::new(world).await;
    let receiver = Receiver::start();
    let operator = world.new_operator().await;
    world
        .integrator()
        .set_webhook(account.taxpayer.id, &receiver.url(), &[])
        .await
        .expect_status(200);
    let invoice = account.taxpayer.invoice(&documents::invoice()).await;
    for (form, fields) in forms(&invoice) {
        let path = account.path(&form);
        let once = number().to_string();
        let csrf = account.owner.get("/account/password").await.csrf();
        let seen = seen(&account, &format!("/invoices/{}", invoice["id"])).await;
        let tokens = [("csrf", &*csrf), ("once", &*once), ("seen", &*seen)];
        let fields: Vec<_> = fields.into_iter().chain(tokens).collect();
        let before = footprint(&account, &operator).await;
        let first = account.owner.send(&path, &fields).await;
        assert!(
            first.status < 400,
            "{form}: {} {}",
            first.status,
            first.html
        );
        let done = footprint(&account, &operator).await;
        assert_ne!(before, done, "{form} did nothing");
        let second = account.owner.send(&path, &fields).await.expect(303);
        assert_eq!(
            footprint(&account, &operator).await,
            done,
            "{form} had a second effect"
        );
        account
            .owner
            .get(&second.location)
            .await
            .expect(200)
            .shows(DONE);
        account
            .owner
            .get(&second.location)
            .await
            .expect(200)
            .hides(DONE);
    }
}

#[on_sqlite]
async fn a_form_whose_page_is_gone_leads_to_the_result_of_the_first(world: &World) {
    let account = Account::new(world).await;
    let receiver = Receiver::start();
    let integrator = world.integrator();
    integrator
        .set_webhook(account.taxpayer.id, &receiver.url(), &["invoice.created"])
        .await
        .expect_status(200);
    let added = integrator
        .send(
            "POST",
            &format!("{}/endpoints", webhook(account.taxpayer.id)),
            &json!({ "url": receiver.url(), "enabled_events": ["invoice.acknowledged"] }),
        )
        .await
        .expect_status(201);
    let endpoint = added.data()["id"].as_str().unwrap().to_owned();
    account.taxpayer.invoice(&documents::invoice()).await;
    receiver.wait_for(1).await;
    for (form, fields, result) in [
        (
            "/webhooks/deliveries/bulk".to_owned(),
            vec![("all", "true")],
            "/webhooks/replays/",
        ),
        (
            format!("/webhooks/endpoints/{endpoint}/remove"),
            vec![],
            "/webhooks",
        ),
    ] {
        let csrf = account.owner.get("/account/password").await.csrf();
        let once = number().to_string();
        let tokens = [("csrf", &*csrf), ("once", &*once)];
        let fields: Vec<_> = fields.into_iter().chain(tokens).collect();
        let path = account.path(&form);
        let first = account.owner.send(&path, &fields).await.expect(303);
        assert!(first.location.starts_with(&account.path(result)), "{form}");
        let second = account.owner.send(&path, &fields).await;
        let second = second.leads_to(&first.location);
        let page = account.owner.get(&second.location).await.expect(200);
        page.shows(DONE);
    }
    let bare = account.path("/webhooks/deliveries/bulk");
    let list = account.path("/webhooks/deliveries");
    account.owner.get(&bare).await.leads_to(&list);
}

#[each_database]
async fn two_clicks_at_once_have_one_effect(world: &World) {
    let account = Account::new(world).await;
    let invoice = account.taxpayer.invoice(&documents::invoice()).await;
    account
        .taxpayer
        .set_status(&invoice, "approved")
        .await
        .expect_status(200);
    let path = account.path(&format!("/invoices/{}/payment", invoice["id"]));
    let csrf = account.owner.get("/account/password").await.csrf();
    let once = number().to_string();
    let fields = [
        ("csrf", csrf.as_str()),
        ("once", once.as_str()),
        ("payment_status", "partial"),
        ("amount", "7"),
        ("remark", "first part"),
    ];
    let clicks = (0..4).map(|_| account.owner.send(&path, &fields));
    for answer in futures_util::future::join_all(clicks).await {
        answer.leads_to(&account.path(&format!("/invoices/{}", invoice["id"])));
    }
    assert_eq!(
        account
            .taxpayer
            .count_events("payment.status-updated")
            .await,
        1
    );
}

#[each_database]
async fn a_refused_form_can_be_sent_again(world: &World) {
    let account = Account::new(world).await;
    let invoice = account.taxpayer.invoice(&documents::invoice()).await;
    let path = account.path(&format!("/invoices/{}/payment", invoice["id"]));
    let csrf = account.owner.get("/account/password").await.csrf();
    let once = number().to_string();
    let fields = [
        ("csrf", &*csrf),
        ("once", &*once),
        ("payment_status", "paid"),
        ("remark", "all of it"),
    ];
    account.owner.send(&path, &fields).await.expect(422);
    account
        .taxpayer
        .set_status(&invoice, "approved")
        .await
        .expect_status(200);
    account.owner.send(&path, &fields).await.expect(303);
}

#[each_database]
async fn the_same_payment_by_another_form_asks_first(world: &World) {
    let account = Account::new(world).await;
    let invoice = account.taxpayer.invoice(&documents::invoice()).await;
    account
        .taxpayer
        .set_status(&invoice, "approved")
        .await
        .expect_status(200);
    let form = format!("/invoices/{}/payment", invoice["id"]);
    let part = [
        ("payment_status", "partial"),
        ("amount", "7"),
        ("remark", "first part"),
    ];
    account.post(&form, &part).await.expect(303);
    let asked = account.post(&form, &part).await.expect(422).html;
    assert_shows(
        &asked,
        &[
            "You recorded the same payment a moment ago. Record it again?",
            "Record it again",
        ],
    );
    let too_long = "R".repeat(300);
    for (reference, status) in [(&*too_long, 422), ("R-2", 303)] {
        let other: Vec<_> = part.into_iter().chain([("reference", reference)]).collect();
        let told = account.post(&form, &other).await.expect(status);
        told.hides("a moment ago");
    }
    let other = [
        ("payment_status", "partial"),
        ("amount", "8"),
        ("remark", "second part"),
    ];
    account.post(&form, &other).await.expect(303);
    let again: Vec<_> = part.into_iter().chain([("again", "yes")]).collect();
    account.post(&form, &again).await.expect(303);
    assert_eq!(
        account
            .taxpayer
            .count_events("payment.status-updated")
            .await,
        4
    );
}

#[on_sqlite]
async fn a_payment_in_full_takes_no_amount_and_nothing_is_preselected(world: &World) {
    let account = Account::new(world).await;
    let invoice = account.taxpayer.invoice(&documents::invoice()).await;
    account
        .taxpayer
        .set_status(&invoice, "approved")
        .await
        .expect_status(200);
    let form = format!("/invoices/{}/payment", invoice["id"]);
    let paid = [
        ("payment_status", "paid"),
        ("amount", "5"),
        ("remark", "all of it"),
    ];
    account
        .post(&form, &paid)
        .await
        .expect(422)
        .shows("Only a part payment takes an amount.");
    account
        .post(&form, &[("payment_status", ""), ("remark", "all of it")])
        .await
        .expect(422);
    assert_eq!(
        account
            .taxpayer
            .count_events("payment.status-updated")
            .await,
        0
    );
}

/// Every form of every page goes through the same policy, so that a new one cannot be without it.
#[on_sqlite]
async fn no_form_counts_without_its_token(world: &World) {
    let account = Account::new(world).await;
    let csrf = account.owner.get("/account/password").await.csrf();
    let (once, repeatable) = once_and_repeatable_form_patterns();
    let harmless = [
        "/sign-in",
        "/sign-in/forgotten",
        "/sign-in/invitation/{token}",
        "/sign-in/code",
        "/account/confirm",
        "/account/mails",
        "/sign-in/unsubscribe/{person}/{topic}/{signature}",
        "/dashboard/{taxpayer}/invoices/views",
        "/dashboard/{taxpayer}/invoices/views/delete",
        "/dashboard/{taxpayer}/invoices/new/lines",
        "/dashboard/{taxpayer}/invoices/{id}/correction",
        "/dashboard/{taxpayer}/invoices/{id}/retry",
        "/dashboard/{taxpayer}/invoices/{id}/edit/lines",
        "/dashboard/{taxpayer}/invoices/{id}/credit-note/lines",
        "/dashboard/{taxpayer}/invoices/{id}/correct/preview",
        "/dashboard/{taxpayer}/invoices/{id}/correct/lines",
        "/dashboard/{taxpayer}/imports/{import_no}/cancel",
        "/dashboard/{taxpayer}/import/answers",
        "/dashboard/{taxpayer}/webhooks/test",
        "/dashboard/{taxpayer}/webhooks/endpoints/{endpoint}/test",
        "/dashboard/{taxpayer}/webhooks/grade",
        "/dashboard/{taxpayer}/webhooks/endpoints/{endpoint}/grade",
        "/dashboard/{taxpayer}/contacts/{contact}/invitation/mail",
        "/dashboard/{taxpayer}/notifications",
        "/dashboard/taxpayers/new",
        "/dashboard/taxpayers/file",
        "/dashboard/taxpayers/webhooks",
    ];
    assert_eq!(repeatable, harmless);
    for pattern in once {
        let path = pattern.replace("{taxpayer}", &account.taxpayer.id.to_string());
        let path = path.replace(['{', '}'], "");
        for tokens in [&[][..], &[("once", "")], &[("once", "a"), ("once", "b")]] {
            let fields: Vec<_> = tokens
                .iter()
                .copied()
                .chain([("csrf", csrf.as_str())])
                .collect();
            let refused = account.owner.send(&path, &fields).await.expect(422);
            refused.shows("This form has no token that makes it count once.");
        }
    }
}

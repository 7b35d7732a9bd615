//! Forms that are refused, although no field has a fault: they are shown again with what was typed, and with the reason.

use serde_json::json;
use testkit::documents;
use testkit::on_sqlite;
use testkit::receiver::Receiver;

use super::{Account, assert_shows, post_seen};
use crate::support::world::World;

/// A form: its path, the fields that are sent, and what the page then shows of them.
type Case<'a> = (&'a str, &'a [(&'a str, &'a str)], &'a str);

/// As a `Case`, with several parts of the page.
type LongCase<'a> = (&'a str, &'a [(&'a str, &'a str)], &'a [&'a str]);

const PAUSED: &str = "Nothing was changed, because this account is paused.";
/// The beginning of the sentence about a pause. Each page of the account says it once.
const PAUSE: &str = "The operator of the service has paused this ";
const LIMITED: &str = "Too many requests; try again when Retry-After has passed";

/// The fields of a filled form for a new invoice.
const INVOICE: [(&str, &str); 21] = [
    ("invoice_no", "INV77001"),
    ("invoice_type_code", "381"),
    ("invoice_category", "B2C"),
    ("invoice_date", "2026-01-15"),
    ("due_date", "2026-02-15"),
    ("currency", "NGN"),
    ("customer.no", "C-77"),
    ("customer.name", "Typed Shop"),
    ("customer.email", "typed@shop.example"),
    ("customer.address_street_name", "5 Broad Street"),
    ("customer.address_city", "Abuja"),
    ("customer.address_state", "FCT"),
    ("customer.address_postal_code", "900001"),
    ("customer.address_country", "NG"),
    ("lines.0.item_name", "Laptop"),
    ("lines.0.item_no", "LAP-1"),
    ("lines.0.item_type", "PRODUCT"),
    ("lines.0.quantity", "2"),
    ("lines.0.price_unit", "EA"),
    ("lines.0.unit_price", "500"),
    ("lines.0.tax_category", "STANDARD_VAT"),
];

async fn pause(world: &World, account: &Account) {
    let operator = world.new_operator().await;
    let path = format!("/ops/taxpayers/{}/pause", account.taxpayer.id);
    let reason = json!({ "reason": "it floods us" });
    let paused = operator.send("POST", &path, &reason).await;
    paused.expect_status(200);
}

/// Adds an endpoint beside the default one, both of them disabled. Returns the path of its page.
async fn disabled_endpoints(world: &World, account: &Account, url: &str) -> String {
    let events = ("enabled_events", "invoice.created");
    let default = [("webhook_url", url), events];
    account.post("/webhooks", &default).await.expect(303);
    let added = [("url", url), events];
    let page = account.post("/webhooks/endpoints/new", &added).await;
    let page = page.expect(200).html;
    let id = page.split("/webhooks/endpoints/").nth(1).unwrap();
    let id = id.split('"').next().unwrap();
    let disable = format!(
        "UPDATE webhooks SET is_active = FALSE, disabled_reason = 'gone', disabled_after = 0 WHERE {} IN (taxpayer_id, owner_id)",
        account.taxpayer.id
    );
    assert_eq!(world.execute(&disable).await, 2);
    format!("/webhooks/endpoints/{id}")
}

#[on_sqlite]
async fn each_form_of_a_paused_account_keeps_what_was_typed(world: &World) {
    let account = Account::new(world).await;
    let receiver = Receiver::start();
    let url = receiver.url();
    let url = url.as_str();
    let endpoint = disabled_endpoints(world, &account, url).await;
    let added = |act: &str| format!("{endpoint}/{act}");
    pause(world, &account).await;
    let erp = [
        ("auth_type", "basic"),
        ("data_format", "soap"),
        ("origin", "https://erp.example.com"),
        ("auth.username", "typed clerk"),
        ("auth.password", "some words"),
    ];
    let replay = [("since", "2020-02-03"), ("only", "all")];
    let text = ("description", "Typed text");
    let event = ("enabled_events", "invoice.updated");
    let schedule = ("retry_schedule_s", "0, 61");
    let cases: [Case<'_>; 14] = [
        ("/invoices/new", &INVOICE, "value=\"Typed Shop\""),
        (
            "/webhooks",
            &[("webhook_url", url), event],
            "value=\"invoice.updated\" checked",
        ),
        (
            "/webhooks",
            &[("webhook_url", url), schedule],
            "value=\"0, 61\"",
        ),
        (
            "/webhooks/secret",
            &[("type", "ed25519")],
            "value=\"ed25519\" selected",
        ),
        (
            "/webhooks/enable",
            &[("replay", "failed")],
            "value=\"failed\" selected",
        ),
        ("/webhooks/replay", &replay, "value=\"2020-02-03\""),
        ("/webhooks/replay", &replay, "value=\"all\" selected"),
        (
            "/webhooks/endpoints/new",
            &[("url", url), text, event],
            "value=\"Typed text\"",
        ),
        (
            &endpoint,
            &[("url", url), text, event],
            "value=\"Typed text\"",
        ),
        (
            &added("secret"),
            &[("type", "ed25519")],
            "value=\"ed25519\" selected",
        ),
        (&added("replay"), &replay, "value=\"2020-02-03\""),
        ("/integration", &erp, "value=\"typed clerk\""),
        (
            "/profile",
            &[("city", "Typed City")],
            "value=\"Typed City\"",
        ),
        (
            "/profile/settings",
            &[("registration_number", "RC 77")],
            "value=\"RC 77\"",
        ),
    ];
    for (path, fields, typed) in cases {
        let refused = account.post(path, fields).await;
        assert_eq!(refused.status, 422, "{path}: {}", refused.html);
        assert_shows(&refused.html, &[PAUSED, typed]);
        assert_eq!(refused.html.matches(PAUSE).count(), 1, "{path}");
    }
}

#[on_sqlite]
async fn each_form_of_an_invoice_keeps_what_was_typed_while_the_account_is_paused(world: &World) {
    let account = Account::new(world).await;
    let invoice = account.taxpayer.invoice(&documents::invoice()).await;
    let page = format!("/invoices/{}", invoice["id"]);
    pause(world, &account).await;
    let part = [
        ("payment_status", "partial"),
        ("amount", "5"),
        ("remark", "typed remark"),
    ];
    let cases: [Case<'_>; 4] = [
        (
            "payment/take-back",
            &[("amount", "5"), ("remark", "typed remark")],
            "value=\"typed remark\"",
        ),
        (
            "status",
            &[("status", "cancelled"), ("remark", "typed remark")],
            "typed remark",
        ),
        ("payment", &part, "value=\"typed remark\""),
        ("edit", &[("note", "Typed note")], "Typed note</textarea>"),
    ];
    for (form, fields, typed) in cases {
        let refused = post_seen(&account, &page, form, fields).await;
        assert_eq!(refused.status, 422, "{form}: {}", refused.html);
        assert_shows(&refused.html, &[PAUSED, typed]);
        assert_eq!(refused.html.matches(PAUSE).count(), 1, "{form}");
    }
}

#[on_sqlite(&[("RATE_LIMIT__ROTATE_PER_MIN", "2"), ("RATE_LIMIT__REFUSED_CREATES_PER_MIN", "1")])]
async fn a_form_beyond_a_limit_keeps_what_was_typed(world: &World) {
    let account = Account::new(world).await;
    let other = Account::new(world).await;
    let key = [
        ("name", "Typed name"),
        ("scope", "read_only"),
        ("expires_in_days", "90"),
        ("overlap_s", "3600"),
    ];
    let person = [
        ("first_name", "Typed name"),
        ("last_name", "B"),
        ("email", other.email.as_str()),
        ("role", "accountant"),
    ];
    // The first attempt uses up the limit, after the rotation by which the account was given its key.
    account.post("/keys", &key).await.expect(200);
    account.post("/contacts", &person).await.expect(422);
    let cases: [LongCase; 3] = [
        (
            "/keys",
            &key,
            &["value=\"read_only\" selected", "value=\"90\" selected"],
        ),
        (
            "/keys/rotate",
            &key,
            &["value=\"3600\" selected", "<details open>"],
        ),
        (
            "/contacts",
            &person,
            &["value=\"accountant\" selected", &other.email],
        ),
    ];
    for (path, fields, typed) in cases {
        let refused = account.post(path, fields).await;
        assert_eq!(refused.status, 422, "{path}: {}", refused.html);
        assert_shows(&refused.html, &[LIMITED, "value=\"Typed name\""]);
        assert_shows(&refused.html, typed);
    }
}

//! Forms that are sent again: by a double click, by Back and the button once more, and by a reload. Each has its effect
//! once.

use std::time::{Duration, Instant};

use serde_json::json;
use testkit::documents;
use testkit::receiver::Receiver;
use tokio::time::sleep;

use crate::person::Visitor;
use crate::run_alone;
use crate::support::account::{Account, PASSWORD};
use crate::support::world::World;

const DONE: &str = "This was done already.";
const SIGHT: Duration = Duration::from_secs(30);

/// Fills the form with this action and sends it, past the script that would send it once. A second click is a request
/// beside the navigation, because a browser that navigates anew drops the request before. Returns false if the page does
/// not offer the form.
const SEND: &str = "
    const [action, fields, clicks] = arguments;
    const wanted = [...new URLSearchParams(fields)];
    const isOurs = (form) => form.getAttribute('action') === action && wanted.every(([name, value]) =>
        form.elements[name] && (form.elements[name].type !== 'hidden' || form.elements[name].value === value));
    const form = [...document.querySelectorAll('form')].find(isOurs);
    if (!form) return false;
    wanted.forEach(([name, value]) => { form.elements[name].value = value; });
    window.isBefore = true;
    const body = () => new URLSearchParams(new FormData(form));
    if (clicks === '2') fetch(action, { method: 'POST', body: body(), redirect: 'manual' });
    HTMLFormElement.prototype.submit.call(form);
    return true;";

/// A form: its page and its action below the account's path, its fields, and a query that counts its effects.
struct Case {
    page: String,
    action: String,
    fields: &'static str,
    effects: String,
}

fn case(page: &str, action: &str, fields: &'static str, effects: String) -> Case {
    Case { page: page.to_owned(), action: action.to_owned(), fields, effects }
}

fn cases(taxpayer: i64, invoice: &str) -> Vec<Case> {
    let page = format!("/invoices/{invoice}");
    let events = |kind: &str| {
        format!("SELECT count(*) FROM events WHERE taxpayer_id = {taxpayer} AND kind = '{kind}'")
    };
    let audit = |action: &str| {
        format!("SELECT count(*) FROM audit WHERE taxpayer_id = {taxpayer} AND action = '{action}'")
    };
    vec![
        case(
            &page,
            &format!("{page}/status"),
            "status=approved&remark=as agreed",
            events("invoice.status-updated"),
        ),
        case(
            &page,
            &format!("{page}/payment"),
            "payment_status=partial&amount=7&remark=first part",
            events("payment.status-updated"),
        ),
        case("/keys", "/keys/rotate", "scope=full", audit("taxpayer.rotate-key")),
        case("/webhooks", "/webhooks/secret", "", audit("webhook.rotate-secret")),
        case("/profile", "/profile", "city=Ibadan", audit("taxpayer.update-profile")),
        case(
            "/contacts",
            "/contacts",
            "first_name=Ada&last_name=Obi&email=ada.obi@once.example&role=read_only",
            audit("contact.add"),
        ),
    ]
}

/// Waits until the page that was open has given way to the next one.
async fn arrives(visitor: &Visitor) {
    let begun = Instant::now();
    let script = "return !window.isBefore && document.readyState === 'complete'";
    loop {
        let arrived =
            visitor.session.attempt("/execute/sync", &json!({ "script": script, "args": [] })).await;
        if arrived == Some(json!(true)) {
            return;
        }
        assert!(begun.elapsed() < SIGHT, "the next page did not come");
        sleep(Duration::from_millis(50)).await;
    }
}

/// Sends a form, if the page offers it, and waits for the next page.
async fn send(visitor: &Visitor, action: &str, fields: &str, clicks: &str) -> bool {
    let is_offered = visitor.session.script(SEND, &[action, fields, clicks]).await == json!(true);
    if is_offered {
        arrives(visitor).await;
    }
    is_offered
}

async fn has_one_effect(world: &World, visitor: &Visitor, base: &str, case: &Case) {
    let (page, action) = (format!("{base}{}", case.page), format!("{base}{}", case.action));
    visitor.open(&page).await;
    let before = world.number(&case.effects).await;
    assert!(send(visitor, &action, case.fields, "2").await, "{page} does not offer {action}");
    assert_eq!(world.number(&case.effects).await, before + 1, "{action} by a double click");
    visitor.session.attempt("/refresh", &json!({})).await;
    arrives(visitor).await;
    assert_eq!(world.number(&case.effects).await, before + 1, "{action} by a reload");
    visitor.session.post("/back", &json!({})).await;
    arrives(visitor).await;
    send(visitor, &action, case.fields, "1").await;
    assert_eq!(world.number(&case.effects).await, before + 1, "{action} by Back and the button again");
}

#[test]
fn a_form_that_is_sent_again_has_one_effect() {
    run_alone("once", |world| {
        Box::pin(async move {
            let (account, receiver) = (Account::new(world).await, Receiver::start());
            let id = account.taxpayer.id;
            world.integrator().set_webhook(id, &receiver.url(), &[]).await.expect_status(200);
            let invoice = account.taxpayer.invoice(&documents::invoice()).await;
            let owner = Visitor::signed_in(world, &account.email, PASSWORD).await;
            for case in cases(id, &invoice["id"].to_string()) {
                has_one_effect(world, &owner, &format!("/dashboard/{id}"), &case).await;
            }
        })
    });
}

#[test]
fn a_second_click_finds_a_quiet_button_and_back_leads_to_the_result() {
    run_alone("quiet", |world| {
        Box::pin(async move {
            let account = Account::new(world).await;
            let invoice = account.taxpayer.invoice(&documents::invoice()).await;
            account.taxpayer.set_status(&invoice, "approved").await.expect_status(200);
            let owner = Visitor::signed_in(world, &account.email, PASSWORD).await;
            let page = account.path(&format!("/invoices/{}", invoice["id"]));
            let fields = "payment_status=partial&amount=7&remark=first part";
            owner.open(&page).await;
            owner.session.script(
                "const form = document.querySelector('form[action$=\"/payment\"]');
                 new URLSearchParams(arguments[0]).forEach((value, name) => { form.elements[name].value = value; });
                 form.requestSubmit(); form.requestSubmit(); form.requestSubmit();",
                &[fields],
            ).await;
            owner.sees("The payment was recorded.").await;
            assert_eq!(account.taxpayer.count_of("payment.status-updated").await, 1);
            owner.session.post("/back", &json!({})).await;
            arrives(&owner).await;
            assert!(send(&owner, &format!("{page}/payment"), fields, "1").await);
            owner.sees(DONE).await;
            assert_eq!(account.taxpayer.count_of("payment.status-updated").await, 1);
        })
    });
}

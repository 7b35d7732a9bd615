//! Forms that are sent again: by a double click, by Back and the button once more, and by a reload. Each has its effect
//! once.

use std::collections::{BTreeSet, HashMap};
use std::time::{Duration, Instant};

use einvoice::internals::{OperatorRole, form_patterns};
use serde_json::json;
use testkit::documents;
use testkit::receiver::Receiver;
use tokio::time::sleep;

use crate::person::Visitor;
use crate::run_alone;
use crate::showcase::Showcase;
use crate::support::account::{Account, PASSWORD};
use crate::support::world::World;

const DONE: &str = "This was done already.";
const SIGHT: Duration = Duration::from_secs(30);

/// Fills the last form whose address has this pattern, which is that of the newest row, and sends it, past the script
/// that would send it once. A second click is a request beside the navigation, because a browser that navigates anew
/// drops the request before. Returns the form's address; null if the page does not offer the form.
const SEND: &str = "
    const [pattern, fields, clicks] = arguments;
    const wanted = [...new URLSearchParams(fields)];
    const isWanted = (address) => new RegExp(`^${pattern.replace(/[{][a-z]+[}]/g, '[^/]+')}$`).test(address);
    const addresses = (form) => [form.getAttribute('action'), ...[...form.querySelectorAll('button[formaction]')]
        .map((button) => button.getAttribute('formaction'))];
    const isOurs = (form) => form.method === 'post' && addresses(form).some(isWanted) && wanted.every(
        ([name, value]) => form.elements[name]?.type !== 'hidden' || form.elements[name].value === value);
    const form = [...document.querySelectorAll('form')].findLast(isOurs);
    if (!form) return null;
    const address = addresses(form).find(isWanted);
    form.action = address;
    // What a form lacks is the value of the button that is pressed.
    const valueOf = (name) => form.elements[name] instanceof HTMLButtonElement || !form.elements[name];
    wanted.forEach(([name, value]) => {
        if (valueOf(name) || form.elements[name] instanceof RadioNodeList && !form.elements[name].value) {
            form.append(Object.assign(document.createElement('input'), { type: 'hidden', name, value }));
        } else {
            form.elements[name].value = value;
        }
    });
    window.isBefore = true;
    // A page that Back takes out of the browser's memory is the next page too.
    window.addEventListener('pageshow', () => { window.isBefore = false; });
    const body = () => new URLSearchParams(new FormData(form));
    if (clicks === '2') fetch(form.action, { method: 'POST', body: body(), redirect: 'manual' });
    HTMLFormElement.prototype.submit.call(form);
    return address;";

/// A form: the patterns of its page and of itself, its fields, and a query that counts its effects.
struct Case {
    page: &'static str,
    form: &'static str,
    fields: String,
    effects: String,
}

fn case(page: &'static str, form: &'static str, fields: &str, effects: String) -> Case {
    Case { page, form, fields: fields.to_owned(), effects }
}

fn audit(action: &str) -> String {
    format!("SELECT count(*) FROM audit WHERE action = '{action}'")
}

fn events(kind: &str) -> String {
    format!("SELECT count(*) FROM events WHERE kind = '{kind}'")
}

/// The forms of an owner, in an order in which each finds what it needs.
fn cases_of_owner(webhook_url: &str) -> Vec<Case> {
    let invoice = "/dashboard/{taxpayer}/invoices/{id}";
    let contacts = "/dashboard/{taxpayer}/contacts";
    let keys = "/dashboard/{taxpayer}/keys";
    let webhooks = "/dashboard/{taxpayer}/webhooks";
    let receiver = format!("webhook_url={}", url_encoded(webhook_url));
    vec![
        case(
            DRAFT,
            "/dashboard/{taxpayer}/invoices/{id}/status",
            "status=approved&remark=as agreed",
            events("invoice.status-updated"),
        ),
        case(
            invoice,
            "/dashboard/{taxpayer}/invoices/{id}/payment",
            "payment_status=partial&amount=7&remark=first part",
            events("payment.status-updated"),
        ),
        case(
            "/dashboard/{taxpayer}/profile",
            "/dashboard/{taxpayer}/profile",
            "city=Ibadan",
            audit("taxpayer.update-profile"),
        ),
        case(
            contacts,
            contacts,
            "first_name=Ada&last_name=Obi&email=ada.obi@once.example&role=read_only",
            audit("contact.add"),
        ),
        case(
            contacts,
            "/dashboard/{taxpayer}/contacts/{contact}/role",
            "role=accountant",
            audit("contact.change-role"),
        ),
        case(contacts, "/dashboard/{taxpayer}/contacts/{contact}/invitation", "", audit("invitation.make")),
        case(contacts, "/dashboard/{taxpayer}/contacts/{contact}/disable", "", audit("contact.disable")),
        case(contacts, "/dashboard/{taxpayer}/contacts/{contact}/enable", "", audit("contact.enable")),
        case(contacts, "/dashboard/{taxpayer}/contacts/{contact}/remove", "", audit("contact.remove")),
        case(keys, keys, "scope=full&name=for the till", audit("taxpayer.rotate-key")),
        case(keys, "/dashboard/{taxpayer}/keys/rotate", "scope=full", audit("taxpayer.rotate-key")),
        case(keys, "/dashboard/{taxpayer}/keys/{key}/revoke", "", audit("taxpayer.revoke-key")),
        case(
            "/dashboard/{taxpayer}/integration",
            "/dashboard/{taxpayer}/integration",
            "erp_system=Sage",
            audit("taxpayer.set-integration"),
        ),
        case(webhooks, webhooks, &receiver, audit("webhook.update")),
        case(webhooks, "/dashboard/{taxpayer}/webhooks/secret", "", audit("webhook.rotate-secret")),
        case(
            webhooks,
            "/dashboard/{taxpayer}/webhooks/replay",
            "since=2026-01-15&only=missing",
            audit("webhook.replay"),
        ),
        case(
            "/dashboard/{taxpayer}/webhooks/deliveries/{delivery}",
            "/dashboard/{taxpayer}/webhooks/deliveries/{delivery}/resend",
            "",
            audit("webhook.replay"),
        ),
        case(
            "/dashboard/{taxpayer}/inbox/{irn}",
            "/dashboard/{taxpayer}/inbox/{irn}/acknowledge",
            "",
            "SELECT count(*) FROM supplier_invoices WHERE acknowledged_at IS NOT NULL".to_owned(),
        ),
    ]
}

const BECAUSE: &str = "reason=asked on the telephone";

/// The forms with which operators move work, in an order in which each finds what it needs.
fn cases_of_work(taxpayer: i64) -> Vec<Case> {
    let breakers = "/console/breakers";
    let run = "/console/runs/{id}";
    let day = format!("taxpayer_id={taxpayer}&day=2026-01-16");
    vec![
        case(breakers, "/console/breakers/{operation}/trip", BECAUSE, audit("breaker.trip")),
        case(breakers, "/console/breakers/{operation}/reset", BECAUSE, audit("breaker.reset")),
        case(run, "/console/runs/{id}/contact-data", BECAUSE, audit("invoice.show-contact-data")),
        case(run, "/console/runs/{id}/pause", BECAUSE, audit("run.pause")),
        case(run, "/console/runs/{id}/resume", BECAUSE, audit("run.resume")),
        case(run, "/console/runs/{id}/cancel", BECAUSE, audit("run.cancel")),
        case("/console/reconciliations", "/console/reconciliations", &day, audit("taxpayer.reconcile")),
        case(
            "/console/deliveries/dead-letters",
            "/console/deliveries/dead-letters/{id}/replay",
            BECAUSE,
            audit("delivery.replay"),
        ),
        case(
            "/console/deliveries/dead-letters",
            "/console/deliveries/dead-letters/replay",
            BECAUSE,
            audit("dead-letters.replay"),
        ),
        case(
            "/console/taxpayers/{taxpayer}/history",
            "/console/taxpayers/{taxpayer}/history/contact-data",
            BECAUSE,
            audit("invoice.show-contact-data"),
        ),
    ]
}

/// The forms with which admins change accounts, in an order in which each finds what it needs.
fn cases_of_accounts() -> Vec<Case> {
    let taxpayer_page = "/console/taxpayers/{id}";
    vec![
        case(
            taxpayer_page,
            "/console/taxpayers/{taxpayer}/contacts/{contact}/invitation",
            BECAUSE,
            audit("invitation.make"),
        ),
        case(
            taxpayer_page,
            "/console/taxpayers/{id}/subscription",
            "subscription=inactive",
            audit("taxpayer.set-subscription"),
        ),
        case(
            "/console/integrators",
            "/console/integrators/{integrator}/invitation",
            BECAUSE,
            audit("invitation.make"),
        ),
        case(
            "/console/integrators",
            "/console/integrators/{id}/access",
            "reason=gone&move=disable",
            audit("integrator.disable"),
        ),
        case(
            "/console/operators",
            "/console/operators/{operator}/invitation",
            BECAUSE,
            audit("invitation.make"),
        ),
        case(
            "/console/operators",
            "/console/operators/{id}/role",
            "reason=new work&role=viewer",
            audit("operator.change-role"),
        ),
        case(
            "/console/operators",
            "/console/operators/{id}/access",
            "reason=gone&move=disable",
            audit("operator.disable"),
        ),
    ]
}

fn url_encoded(text: &str) -> String {
    url::form_urlencoded::byte_serialize(text.as_bytes()).collect()
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
        assert!(begun.elapsed() <= SIGHT, "the next page did not come: {}", visitor.text().await);
        sleep(Duration::from_millis(50)).await;
    }
}

/// Sends a form, if the page offers it, and waits for the next page. Returns the form's address.
async fn send(visitor: &Visitor, form: &str, fields: &str, clicks: &str) -> Option<String> {
    let address = visitor.session.script(SEND, &[form, fields, clicks]).await;
    let address = address.as_str()?.to_owned();
    arrives(visitor).await;
    Some(address)
}

async fn has_one_effect(world: &World, visitor: &Visitor, page: &str, case: &Case) {
    let Case { form, fields, effects, .. } = case;
    visitor.open(page).await;
    let before = world.number(effects).await;
    let sent = send(visitor, form, fields, "2").await;
    let address = sent.unwrap_or_else(|| panic!("{page} does not offer {form}"));
    let shown = visitor.text().await;
    assert_eq!(world.number(effects).await, before + 1, "{form} by a double click: {shown}");
    visitor.session.attempt("/refresh", &json!({})).await;
    arrives(visitor).await;
    assert_eq!(world.number(effects).await, before + 1, "{form} by a reload");
    visitor.session.post("/back", &json!({})).await;
    arrives(visitor).await;
    send(visitor, &address, fields, "1").await;
    assert_eq!(world.number(effects).await, before + 1, "{form} by Back and the button again");
}

/// Forms that are not sent here: what they need is on no page of the showcase, or they end the session that would send
/// them again. The tests of the API show that these, too, do nothing without the token that counts once.
const NOT_SENT: [&str; 16] = [
    "/account/password",
    "/account/second-factor",
    "/account/second-factor/confirm",
    "/account/second-factor/off",
    "/account/sessions/end",
    "/console/integrators/{integrator}/second-factor/reset",
    "/console/operators/{operator}/second-factor/reset",
    "/console/quarantine/{reference}/drop",
    "/console/quarantine/{reference}/replay",
    "/console/taxpayers/{id}/panic",
    "/console/taxpayers/{id}/verify",
    "/console/taxpayers/{taxpayer}/contacts/{contact}/second-factor/reset",
    "/dashboard/{taxpayer}/contacts/{contact}/second-factor/reset",
    "/dashboard/{taxpayer}/webhooks/enable",
    "/dashboard/{taxpayer}/webhooks/replays/{replay}/cancel",
    "/sign-out",
];

/// The pattern of the forms that move a run.
const MOVE: &str = "/console/runs/{id}/{move}";
/// The page of an invoice that is a draft; the showcase opens one that is further.
const DRAFT: &str = "/dashboard/{taxpayer}/invoices/{id} of a draft";

#[test]
fn a_form_that_is_sent_again_has_one_effect() {
    run_alone("once", |world| {
        Box::pin(async move {
            let showcase = Showcase::new(world).await;
            let mut pages: HashMap<_, _> = showcase.pages().into_iter().collect();
            let draft = showcase.account.taxpayer.invoice(&documents::invoice()).await;
            pages.insert(DRAFT, showcase.account.path(&format!("/invoices/{}", draft["id"])));
            let dead_letters =
                format!("/console/deliveries/dead-letters?taxpayer_id={}", showcase.account.taxpayer.id);
            pages.insert("/console/deliveries/dead-letters", dead_letters);
            let receiver = Receiver::start();
            let owner = Visitor::signed_in(world, &showcase.account.email, PASSWORD).await;
            let admin = Visitor::operator(world, OperatorRole::Admin).await;
            world.new_operator().await;
            let of_owner = cases_of_owner(&receiver.url());
            let mut of_admin = cases_of_work(showcase.account.taxpayer.id);
            of_admin.extend(cases_of_accounts());
            for case in &of_owner {
                has_one_effect(world, &owner, &pages[case.page], case).await;
            }
            for case in &of_admin {
                has_one_effect(world, &admin, &pages[case.page], case).await;
            }
            let moves = ["/pause", "/resume", "/cancel"].map(|one| format!("/console/runs/{{id}}{one}"));
            let sent = of_owner.iter().chain(&of_admin).map(|case| case.form.to_owned());
            let sent = sent.map(|form| if moves.contains(&form) { MOVE.to_owned() } else { form });
            let known: BTreeSet<_> = sent.chain(NOT_SENT.map(str::to_owned)).collect();
            let (once, _) = form_patterns();
            let once: BTreeSet<_> = once.into_iter().map(str::to_owned).collect();
            assert_eq!(known, once, "every form is sent here or named");
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
            assert!(send(&owner, &format!("{page}/payment"), fields, "1").await.is_some());
            owner.sees(DONE).await;
            assert_eq!(account.taxpayer.count_of("payment.status-updated").await, 1);
        })
    });
}

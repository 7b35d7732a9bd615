//! Forms that are sent again: by a double click, by Back and the button once more, and by a reload. Each has its effect
//! once.

mod cases;

use std::collections::{BTreeSet, HashMap};
use std::time::{Duration, Instant};

use einvoice::internals::{OperatorRole, once_and_repeatable_form_patterns};
use serde_json::{Value, json};
use testkit::documents;
use testkit::patience::eventually;
use testkit::receiver::Receiver;
use testkit::roles::Taxpayer;
use tokio::time::sleep;

use self::cases::{
    Case, DRAFT, account_cases, audit_query, case, invoice_cases, own_account_cases, owner_cases,
    profile_cases, webhook_cases, work_cases,
};
use crate::person::Visitor;
use crate::run_alone;
use crate::showcase::Showcase;
use crate::support::account::{Account, PASSWORD, code_of_app, signed_in};
use crate::support::supplies;
use crate::support::world::World;

const DONE_ALREADY_TEXT: &str = "This was done already.";
const PAGE_WAIT_MAX: Duration = Duration::from_secs(30);

/// Fills the last form whose address has this pattern, which is that of the newest row, and sends it, past the script
/// that would send it once. A second click is a request beside the navigation, because a browser that navigates anew
/// drops the request before. Returns the form's address and what it sends; null if the page does not offer the form.
const SEND_SCRIPT: &str = "
    const [pattern, fields, clicks] = arguments;
    const wanted = [...new URLSearchParams(fields)];
    const isWanted = (address) => new RegExp(`^${pattern.replace(/[{][a-z_]+[}]/g, '[^/]+')}$`).test(address);
    const addresses = (form) => [form.getAttribute('action'), ...[...form.querySelectorAll('button[formaction]')]
        .map((button) => button.getAttribute('formaction'))];
    const isOurs = (form) => form.method === 'post' && addresses(form).some(isWanted) && wanted.every(
        ([name, value]) => form.elements[name]?.type !== 'hidden' || form.elements[name].value === value);
    const form = [...document.querySelectorAll('form')].findLast(isOurs);
    if (!form) return null;
    const address = addresses(form).find(isWanted);
    form.action = address;
    // What a form lacks is the value of the button that is pressed, or a box that is not ticked.
    const valueOf = (name) => form.elements[name] instanceof HTMLButtonElement || !form.elements[name]
        || form.elements[name].type === 'checkbox';
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
    const body = new URLSearchParams(new FormData(form));
    if (clicks === '2') fetch(form.action, { method: 'POST', body, redirect: 'manual' });
    HTMLFormElement.prototype.submit.call(form);
    return [address, body.toString()];";

/// Waits until the page that was open has given way to the next one.
async fn wait_for_next_page(visitor: &Visitor) {
    let begun = Instant::now();
    let script = "return !window.isBefore && document.readyState === 'complete'";
    loop {
        let arrived = visitor
            .session
            .attempt("/execute/sync", &json!({ "script": script, "args": [] }))
            .await;
        if arrived == Some(json!(true)) {
            return;
        }
        assert!(
            begun.elapsed() <= PAGE_WAIT_MAX,
            "the next page did not come: {}",
            visitor.text().await
        );
        sleep(Duration::from_millis(50)).await;
    }
}

/// A form that was sent.
struct Sent {
    address: String,
    body: String,
}

/// Sends a form, if the page offers it, and waits for the next page.
async fn send(visitor: &Visitor, form: &str, fields: &str, clicks: &str) -> Option<Sent> {
    let sent = visitor
        .session
        .script(SEND_SCRIPT, &[form, fields, clicks])
        .await;
    let part = |place: usize| sent[place].as_str().map(str::to_owned);
    let sent = Sent {
        address: part(0)?,
        body: part(1)?,
    };
    wait_for_next_page(visitor).await;
    Some(sent)
}

/// Sends the form of the open page by a double click, by a reload, and by Back and the button once more. `check` looks
/// after each of them, and is told which it was.
async fn send_again(visitor: &Visitor, form: &str, fields: &str, check: impl AsyncFn(&str)) {
    let sent = send(visitor, form, fields, "2").await;
    let Some(Sent { address, body }) = sent else {
        panic!("no {form} on this page:\n{}", visitor.text().await)
    };
    check(&format!(
        "{form} with {body} by a double click, which led to {}",
        visitor.text().await
    ))
    .await;
    visitor.session.attempt("/refresh", &json!({})).await;
    wait_for_next_page(visitor).await;
    check(&format!("{form} by a reload")).await;
    visitor.session.post("/back", &json!({})).await;
    wait_for_next_page(visitor).await;
    send(visitor, &address, fields, "1").await;
    check(&format!("{form} by Back and the button again")).await;
}

/// Sends the form of the open page again and again, and expects one effect.
async fn has_one_effect_here(world: &World, visitor: &Visitor, case: &Case) {
    let before = world.number(&case.effects).await;
    send_again(visitor, case.form, &case.fields, async |how| {
        assert_eq!(world.number(&case.effects).await, before + 1, "{how}");
    })
    .await;
}

async fn has_one_effect(world: &World, visitor: &Visitor, page: &str, case: &Case) {
    if let Some(statement) = &case.preparation {
        world.execute(statement).await;
    }
    visitor.open(page).await;
    has_one_effect_here(world, visitor, case).await;
}

/// Puts a command into the quarantine that can be replayed.
async fn quarantine_create(world: &World) {
    let taxpayer = world.taxpayer().await;
    // Its verification, which its actor records, would use up a panic.
    world.settled(&json!(taxpayer.id)).await;
    let order = json!({ "taxpayer_id": taxpayer.id, "panics": 2 });
    world
        .new_operator()
        .await
        .send("POST", "/ops/development/panic", &order)
        .await
        .expect_status(200);
    taxpayer
        .create_invoice(&documents::invoice())
        .await
        .expect_status(500);
}

async fn count_panics(world: &World) -> i64 {
    let page = world.anonymous().get("/metrics").await.text;
    let lines = page
        .lines()
        .filter(|line| line.starts_with("einvoice_actor_panics_total"));
    lines
        .map(|line| line.rsplit(' ').next().unwrap().parse::<i64>().unwrap())
        .sum()
}

/// The order of a panic is the one form whose effect is in no table.
async fn one_panic_is_ordered(world: &World, admin: &Visitor, page: &str, taxpayer: &Taxpayer) {
    let before = count_panics(world).await;
    admin.open(page).await;
    send_again(admin, PANIC, "panics=1&reason=a drill", async |how| {
        taxpayer.invoice(&documents::invoice()).await;
        assert_eq!(count_panics(world).await, before + 1, "{how}");
    })
    .await;
}

/// Sets a second factor up and switches it off.
async fn second_factor_changes_once(world: &World, person: &Visitor) {
    let page = "/account/second-factor";
    let begun = "SELECT count(*) FROM begun".to_owned();
    world.execute("CREATE TABLE begun (owner text)").await;
    let count = "CREATE TRIGGER begins AFTER INSERT ON second_factors \
                 BEGIN INSERT INTO begun VALUES (NEW.owner); END";
    world.execute(count).await;
    has_one_effect(world, person, page, &case(page, page, "", begun)).await;
    person.open(page).await;
    person.press("Set it up").await;
    person.wait_to_see("Or type this secret into the app").await;
    let secret = person
        .session
        .script("return document.querySelector('.secret').innerText", &[])
        .await;
    let code = |steps| format!("code={}", code_of_app(secret.as_str().unwrap(), steps));
    let confirm = case(page, CONFIRM, &code(0), audit_query("second-factor.enable"));
    has_one_effect_here(world, person, &confirm).await;
    let off = case(
        page,
        SWITCH_OFF,
        &code(1),
        audit_query("second-factor.disable"),
    );
    has_one_effect(world, person, page, &off).await;
}

/// Forgets a replica of which the application has found that it gives no sign.
async fn a_replica_is_forgotten_once(world: &World, admin: &Visitor) {
    let silent = "INSERT INTO replicas (id, name, seen_at, figures) \
                  SELECT 'gone', 'gone:8080', MAX(seen_at) - 10000000, '{}' FROM replicas";
    world.execute(silent).await;
    let operator = world.new_operator().await;
    eventually("the missing replica", async || {
        let answer = operator.get("/ops/replicas").await.expect_status(200);
        let replicas = answer.data()["replicas"].as_array()?.clone();
        let is_missing = |replica: &Value| replica["state"] == "missing";
        replicas.iter().any(is_missing).then_some(())
    })
    .await;
    let page = "/console/replicas";
    let case = case(page, FORGET, "", audit_query("replica.forget"));
    has_one_effect(world, admin, page, &case).await;
}

const FORGET: &str = "/console/replicas/{id}/forget";
const PANIC: &str = "/console/taxpayers/{id}/panic";
const CONFIRM: &str = "/account/second-factor/confirm";
const SWITCH_OFF: &str = "/account/second-factor/off";
/// The forms that are sent outside the tables of cases.
const FORMS_BESIDE_CASES: [&str; 5] =
    [FORGET, PANIC, CONFIRM, SWITCH_OFF, "/account/second-factor"];

/// The pattern of the forms that move a run.
const MOVE: &str = "/console/runs/{id}/{move}";

#[test]
fn each_form_that_is_sent_again_has_one_effect() {
    run_alone("once", |world| {
        Box::pin(async move {
            let showcase = Showcase::new(world).await;
            let account = &showcase.account;
            let taxpayer = &account.taxpayer;
            let mut pages: HashMap<_, _> = showcase.pages().into_iter().collect();
            let draft = taxpayer.invoice(&documents::invoice()).await;
            pages.insert(DRAFT, account.path(&format!("/invoices/{}", draft["id"])));
            let dead_letters = format!(
                "/console/deliveries/dead-letters?taxpayer_id={}",
                taxpayer.id
            );
            pages.insert("/console/deliveries/dead-letters", dead_letters);
            quarantine_create(world).await;
            let receiver = Receiver::start();
            let owner = Visitor::signed_in(world, &account.email, PASSWORD).await;
            let admin = Visitor::operator(world, OperatorRole::Admin).await;
            world.new_operator().await;
            let mut of_owner = invoice_cases();
            let supplied = supplies::received(world, taxpayer).await;
            of_owner.extend(owner_cases(taxpayer.id, &supplied));
            of_owner.extend(profile_cases());
            of_owner.extend(webhook_cases(taxpayer.id, &receiver.url()));
            let of_oneself = own_account_cases();
            let mut of_admin = work_cases(taxpayer.id);
            of_admin.extend(account_cases(taxpayer.id));
            one_panic_is_ordered(world, &admin, &pages["/console/taxpayers/{id}"], taxpayer).await;
            a_replica_is_forgotten_once(world, &admin).await;
            for case in &of_owner {
                has_one_effect(world, &owner, &pages[case.page], case).await;
            }
            second_factor_changes_once(world, &owner).await;
            signed_in(world, &account.email, PASSWORD).await;
            for case in &of_oneself {
                has_one_effect(world, &owner, &pages[case.page], case).await;
            }
            for case in &of_admin {
                has_one_effect(world, &admin, &pages[case.page], case).await;
            }
            let moves =
                ["/pause", "/resume", "/cancel"].map(|one| format!("/console/runs/{{id}}{one}"));
            let cases = of_owner.iter().chain(&of_oneself).chain(&of_admin);
            let sent = cases.map(|case| case.form.to_owned());
            let sent = sent.map(|form| {
                if moves.contains(&form) {
                    MOVE.to_owned()
                } else {
                    form
                }
            });
            let sent: BTreeSet<_> = sent.chain(FORMS_BESIDE_CASES.map(str::to_owned)).collect();
            let (once, _) = once_and_repeatable_form_patterns();
            let once: BTreeSet<_> = once.into_iter().map(str::to_owned).collect();
            assert_eq!(sent, once, "every form is sent");
        })
    });
}

#[test]
fn a_second_click_finds_a_quiet_button_and_back_leads_to_the_result() {
    run_alone("quiet", |world| {
        Box::pin(async move {
            let account = Account::new(world).await;
            let invoice = account.taxpayer.invoice(&documents::invoice()).await;
            account
                .taxpayer
                .set_status(&invoice, "approved")
                .await
                .expect_status(200);
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
            owner.wait_to_see("The payment was recorded.").await;
            assert_eq!(
                account
                    .taxpayer
                    .count_events("payment.status-updated")
                    .await,
                1
            );
            owner.session.post("/back", &json!({})).await;
            wait_for_next_page(&owner).await;
            assert!(
                send(&owner, &format!("{page}/payment"), fields, "1")
                    .await
                    .is_some()
            );
            owner.wait_to_see(DONE_ALREADY_TEXT).await;
            assert_eq!(
                account
                    .taxpayer
                    .count_events("payment.status-updated")
                    .await,
                1
            );
        })
    });
}

//! What people want to be told by mail, on their page and by the link in a mail.

use std::fs;

use einvoice::internals::{MailLinks, NoticeTopic, OperatorRole};
use testkit::patience::eventually;
use testkit::{each_database, on_sqlite};

use crate::support::account::{Account, PASSWORD, choose, link_path, signed_in};
use crate::support::visitor::Visitor;
use crate::support::world::World;

const PATH: &str = "/account/mails";

#[each_database]
async fn a_person_chooses_what_to_be_told_and_operators_have_nothing_to_choose(world: &World) {
    let account = Account::new(world).await;
    let page = account.owner.get(PATH).await.expect(200);
    let page = page
        .shows("Rejected and failed invoices")
        .hides("Not until");
    assert_eq!(page.html.matches("<select").count(), 4, "{}", page.html);
    let fields = [
        ("invoices", "day"),
        ("outage", "off"),
        ("security", "off"),
        ("webhook", "odd"),
    ];
    account.owner.submit(PATH, &fields).await.leads_to(PATH);
    let page = account.owner.get(PATH).await.expect(200);
    page.shows("Your choice was saved.")
        .shows("Not until")
        .shows("<option value=\"off\" selected>Never</option>");
    let kept = "SELECT count(*) FROM mail_choices";
    let of_person = format!(
        "{kept} WHERE person LIKE 'contact/{}/%'",
        account.taxpayer.id
    );
    assert_eq!(world.number(&of_person).await, 2);
    account
        .owner
        .submit(PATH, &[("invoices", "on"), ("outage", "keep")])
        .await
        .expect(303);
    assert_eq!(world.number(&of_person).await, 1);
    let operator = Visitor::operator(world, OperatorRole::Admin).await;
    operator
        .get(PATH)
        .await
        .expect(200)
        .shows("no mail that you could end");
    account
        .owner
        .send(PATH, &[("invoices", "off")])
        .await
        .expect(403);
}

#[each_database]
async fn the_link_in_a_mail_ends_its_topic_without_a_sign_in_and_only_by_a_post(world: &World) {
    let account = Account::new(world).await;
    let person = format!("contact/{}/{}", account.taxpayer.id, 1);
    let links = MailLinks::new(world.settings().secrets.encryption_key);
    let path = links.unsubscribe_path(person.parse().unwrap(), NoticeTopic::Webhook);
    let kept = format!(
        "SELECT count(*) FROM mail_choices WHERE person = '{person}' AND topic = 'webhook'"
    );
    let visitor = Visitor::new(world);
    visitor
        .get(&path)
        .await
        .expect(200)
        .shows("No mails about this any more");
    assert_eq!(world.number(&kept).await, 0, "opening it ends nothing");
    let one_click = [("List-Unsubscribe", "One-Click")];
    visitor
        .send(&path, &one_click)
        .await
        .expect(200)
        .shows("Done.");
    assert_eq!(world.number(&kept).await, 1);
    visitor.send(&path, &[("choice", "on")]).await.expect(200);
    assert_eq!(world.number(&kept).await, 0);
    let forged = path.replace("webhook", "invoices");
    visitor.get(&forged).await.expect(404);
    visitor.send(&forged, &one_click).await.expect(404);
    assert_eq!(world.number("SELECT count(*) FROM mail_choices WHERE topic = 'invoices' AND person = 'contact/0/0'").await, 0);
}

const FORGOTTEN: &str = "/sign-in/forgotten";

/// Waits for this many mails with a link to an address, and returns the texts of their messages.
async fn messages(world: &World, email: &str, count: i64) -> Vec<String> {
    let sent = format!(
        "SELECT count(*) FROM mails WHERE recipient = '{email}' AND link_for IS NOT NULL AND state = 'sent'"
    );
    let all = async || (world.number(&sent).await == count).then_some(());
    eventually("the mails", all).await;
    let files = fs::read_dir(world.settings().data_dir.join("mails")).unwrap();
    let texts = files.map(|file| fs::read_to_string(file.unwrap().path()).unwrap());
    let texts = texts.map(|text| text.replace("=\r\n", ""));
    let is_ours = |text: &String| text.contains(email) && text.contains("/sign-in/invitation/");
    texts.filter(is_ours).collect()
}

/// Returns the path of the link in a message.
fn link(message: &str) -> String {
    let path = link_path(message);
    path.lines().next().unwrap().trim().to_owned()
}

#[each_database]
async fn who_lost_a_password_gets_a_link_and_nobody_learns_who_can_sign_in(world: &World) {
    let account = Account::new(world).await;
    let visitor = Visitor::new(world);
    visitor.get("/sign-in").await.expect(200).shows(FORGOTTEN);
    visitor
        .get(FORGOTTEN)
        .await
        .expect(200)
        .shows("Send me a link");
    for email in ["nobody@nowhere.example", "odd", &account.email] {
        visitor
            .send(FORGOTTEN, &[("email", email)])
            .await
            .leads_to("/sign-in");
        visitor
            .get("/sign-in")
            .await
            .expect(200)
            .shows("If this address can sign in here");
    }
    let message = messages(world, &account.email, 1).await.remove(0);
    assert!(message.contains("your password stays"), "{message}");
    let nobody = "SELECT count(*) FROM mails WHERE recipient = 'nobody@nowhere.example'";
    assert_eq!(world.number(nobody).await, 0);
    let secret = link(&message);
    let secret = secret.rsplit('/').next().unwrap();
    let stored = format!(
        "SELECT count(*) FROM mails WHERE body LIKE '%{secret}%' OR html LIKE '%{secret}%'"
    );
    assert_eq!(world.number(&stored).await, 0, "the secret is not stored");
    signed_in(world, &account.email, PASSWORD).await;
    choose(&visitor, &link(&message), "another four plain words")
        .await
        .expect(303);
    signed_in(world, &account.email, "another four plain words").await;
    visitor.get(&link(&message)).await.expect(404);
    for _ in 0..5 {
        visitor
            .send(FORGOTTEN, &[("email", &account.email)])
            .await
            .expect(303);
        let waiting = "SELECT count(*) FROM notices WHERE scope = 'sign-in'";
        let none = async || (world.number(waiting).await == 0).then_some(());
        eventually("the notices to be taken", none).await;
    }
    messages(world, &account.email, 3).await;
}

/// Adds a person, and returns the path of the form that sends the link by mail.
async fn add_person(account: &Account, email: &str) -> String {
    let fields = [
        ("first_name", "Bola"),
        ("last_name", "Ade"),
        ("email", email),
        ("role", "accountant"),
    ];
    account.post("/contacts", &fields).await.expect(200);
    let page = account.page("/contacts").await;
    let (before, _) = page.split_once("/invitation/mail").unwrap();
    let id = before.rsplit('/').next().unwrap();
    format!("/contacts/{id}/invitation/mail")
}

#[each_database]
async fn an_owner_is_told_that_an_address_gets_no_more_links_today(world: &World) {
    let account = Account::new(world).await;
    let email = format!("many.{}", account.email);
    let form = add_person(&account, &email).await;
    for number in 0..13 {
        let mail = format!(
            "INSERT INTO mails (id, recipient, topic, subject, body, html, link_for, state, attempts, \
             next_attempt_at, created_at) VALUES ('{number}/{email}', '{email}', 'access', 'x', 'x', 'x', \
             'contact/0/0', 'sent', 1, 1, 4102444800000000)"
        );
        assert_eq!(world.execute(&mail).await, 1);
    }
    let refused = account.post(&form, &[]).await.expect(429);
    refused.shows("this address got as many links in a day as it may");
}

#[each_database]
async fn an_owner_sends_the_first_link_by_mail(world: &World) {
    let account = Account::new(world).await;
    let email = format!("new.{}", account.email);
    let form = add_person(&account, &email).await;
    account
        .post(&form, &[])
        .await
        .leads_to(&account.path("/contacts"));
    let message = messages(world, &email, 1).await.remove(0);
    assert!(message.contains("You are invited to einvoice"), "{message}");
    choose(&Visitor::new(world), &link(&message), PASSWORD)
        .await
        .expect(303);
    signed_in(world, &email, PASSWORD).await;
}

#[on_sqlite]
async fn a_viewer_does_not_see_the_emails_of_people(world: &World) {
    let account = Account::new(world).await;
    let mail = format!(
        "INSERT INTO mails (id, recipient, topic, subject, body, html, state, attempts, \
         next_attempt_at, created_at) VALUES ('{0}', '{0}', 'webhook', 'It fails', 'x', 'x', 'sent', 1, 1, \
         4102444800000000)",
        account.email
    );
    assert_eq!(world.execute(&mail).await, 1);
    let taxpayer = format!("/console/taxpayers/{}", account.taxpayer.id);
    for (role, sees) in [
        (OperatorRole::Viewer, false),
        (OperatorRole::Operator, true),
        (OperatorRole::Admin, true),
    ] {
        let visitor = Visitor::operator(world, role).await;
        for path in [taxpayer.as_str(), "/console/mails"] {
            let page = visitor.get(path).await.expect(200).html;
            assert_eq!(page.contains(&account.email), sees, "{role} at {path}");
            assert_eq!(page.contains("(hidden)"), !sees, "{role} at {path}");
        }
    }
}

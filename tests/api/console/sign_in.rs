//! Signing in and out: who gets a session, what ends it, and what is refused.

use std::time::{Duration, Instant};

use einvoice::internals::OperatorRole;
use futures_util::future::join_all;
use serde_json::json;
use testkit::documents;
use testkit::{each_database, on_sqlite};

use crate::support::visitor::{Seen, Visitor};
use crate::support::world::{ALONE, World};

const OWN: &str = "a few easy words";

/// The email of the contact person of a new taxpayer, whose password is `OWN`, and the taxpayer's id.
async fn contact(world: &World) -> (String, i64) {
    let body = documents::taxpayer();
    let email = body["contact_person"]["email"].as_str().unwrap().to_owned();
    let id = contact_with(world, &email, OWN).await;
    (email, id)
}

/// The id of a new taxpayer whose contact person has this email and password.
async fn contact_with(world: &World, email: &str, password: &str) -> i64 {
    let mut body = documents::taxpayer();
    body["contact_person"]["email"] = json!(email);
    body["contact_person"]["password"] = json!(password);
    let made = world
        .integrator()
        .create_taxpayer(&body)
        .await
        .expect_status(201);
    made.data()["id"].as_i64().unwrap()
}

/// Signs in to the account of this kind.
async fn sign_in_as(visitor: &Visitor, email: &str, password: &str, account: &str) -> Seen {
    let fields = [
        ("email", email),
        ("password", password),
        ("account", account),
    ];
    visitor.send("/sign-in", &fields).await
}

#[each_database]
async fn an_operator_signs_in_and_out(world: &World) {
    let visitor = Visitor::operator(world, OperatorRole::Viewer).await;
    visitor.get("/console").await.expect(200).shows("Overview");
    for (asked, page) in [
        ("/sign-in", "/console"),
        (
            "/sign-in?next=%2Fconsole%2Fruns%3Fq%3Da",
            "/console/runs?q=a",
        ),
        (
            "/sign-in?ended=true&next=%2Faccount%2Fpassword",
            "/account/password",
        ),
        ("/sign-in?next=%2F%2Fevil.example", "/console"),
    ] {
        visitor.get(asked).await.leads_to(page);
    }
    let token = visitor.get("/console").await.csrf();
    visitor
        .send("/sign-out", &[("csrf", &token), ("once", "1")])
        .await
        .leads_to("/sign-in");
    visitor
        .get("/console")
        .await
        .leads_to("/sign-in?next=%2Fconsole");
}

#[each_database]
async fn a_new_password_needs_the_present_one_and_is_not_a_common_one(world: &World) {
    let (email, id) = contact(world).await;
    let visitor = Visitor::new(world);
    let other = Visitor::new(world);
    let home = format!("/dashboard/{id}");
    for browser in [&visitor, &other] {
        browser.sign_in(&email, OWN).await.leads_to(&home);
    }
    let new = "another four plain words";
    let change = async |current, new| {
        visitor
            .submit(
                "/account/password",
                &[("current", current), ("new", new), ("again", new)],
            )
            .await
    };
    for (current, new, said) in [
        (OWN, "too short", "12 characters"),
        (OWN, "Password1234!", "everybody tries first"),
        (OWN, OWN, "is the current one"),
        ("a few easy word", new, "is not right"),
    ] {
        change(current, new).await.expect(422).shows(said);
    }
    change(OWN, new).await.leads_to(&home);
    other.get(&home).await.expect(303);
    other.sign_in(&email, OWN).await.expect(401);
    other.sign_in(&email, new).await.leads_to(&home);
}

#[each_database]
async fn the_present_password_is_the_one_of_this_account(world: &World) {
    let (_, email, password) = world.new_integrator_person().await;
    let visitor = Visitor::new(world);
    visitor
        .sign_in(&email, &password)
        .await
        .leads_to("/dashboard/taxpayers");
    contact_with(world, &email, OWN).await;
    let new = "another four plain words";
    let change = async |current: &str| {
        visitor
            .submit(
                "/account/password",
                &[("current", current), ("new", new), ("again", new)],
            )
            .await
    };
    change(OWN).await.expect(422).shows("is not right");
    change(&password).await.leads_to("/dashboard/taxpayers");
    // Both hashes have one salt, so that one hash answers for the email: `$argon2id$v=19$m=19456,t=2,p=1$` and 22 letters.
    let salted_alike = format!(
        "SELECT COUNT(*) FROM contacts c JOIN integrators i ON c.email_key = i.email_key WHERE i.email = '{email}' \
         AND substr(c.password_hash, 1, 53) = substr(i.password_hash, 1, 53)"
    );
    assert_eq!(world.number(&salted_alike).await, 1);
    let home = Visitor::new(world)
        .sign_in(&email, OWN)
        .await
        .expect(303)
        .location;
    assert!(
        home.starts_with("/dashboard/") && home != "/dashboard/taxpayers",
        "{home}"
    );
}

#[on_sqlite]
async fn a_wrong_password_and_an_unknown_person_are_refused_alike(world: &World) {
    let (email, _) = contact(world).await;
    let visitor = Visitor::new(world);
    let wrong = visitor
        .sign_in(&email, "another password")
        .await
        .expect(401);
    let unknown = visitor
        .sign_in("nobody@nowhere.example", "another password")
        .await
        .expect(401);
    assert_eq!(
        wrong.html.replace(&email, ""),
        unknown.html.replace("nobody@nowhere.example", "")
    );
}

#[on_sqlite]
async fn a_stranger_who_tries_passwords_keeps_nobody_out(world: &World) {
    let (_, email, password) = world.new_integrator_person().await;
    let home = "/dashboard/taxpayers";
    let known = Visitor::new(world);
    known.sign_in(&email, &password).await.leads_to(home);
    known.submit("/sign-out", &[]).await.leads_to("/sign-in");
    let stranger = Visitor::new(world);
    for _ in 0..10 {
        stranger
            .sign_in(&email, "another password")
            .await
            .expect(401);
    }
    known.sign_in(&email, &password).await.leads_to(home);
    Visitor::new(world)
        .sign_in(&email, &password)
        .await
        .leads_to(home);
}

#[each_database(ALONE)]
async fn attempts_at_the_same_time_are_bounded(world: &World) {
    let (email, _) = contact(world).await;
    let try_one = async |_| {
        Visitor::new(world)
            .sign_in(&email, "another password")
            .await
    };
    // On a busy machine they take many seconds, in which places become free again.
    let answers = join_all((0..80).map(try_one)).await;
    let refused = answers.iter().filter(|answer| answer.status == 429).count();
    assert!(refused >= 10, "{refused} of 80");
    let refused = answers
        .into_iter()
        .find(|answer| answer.status == 429)
        .unwrap();
    assert_eq!(refused.shows("Too many attempts").retry_after, Some(3));
}

/// A known browser has a bound of its own: it is no way around the one of strangers.
#[on_sqlite]
async fn a_known_browser_may_guess_no_more_than_others(world: &World) {
    let (_, email, password) = world.new_integrator_person().await;
    let known = Visitor::new(world);
    known.sign_in(&email, &password).await.expect(303);
    known.submit("/sign-out", &[]).await.leads_to("/sign-in");
    for _ in 0..10 {
        known.sign_in(&email, "another password").await.expect(401);
    }
    known.sign_in(&email, &password).await.expect(429);
    Visitor::new(world)
        .sign_in(&email, &password)
        .await
        .expect(303);
}

#[on_sqlite]
async fn a_known_browser_that_signs_in_again_stays_the_same_one(world: &World) {
    let (_, email, password) = world.new_integrator_person().await;
    let known = Visitor::new(world);
    known.sign_in(&email, &password).await.expect(303);
    let devices = known.devices();
    assert_eq!(devices.len(), 1);
    for _ in 0..2 {
        known.submit("/sign-out", &[]).await.leads_to("/sign-in");
        known.sign_in(&email, &password).await.expect(303);
        assert_eq!(known.devices(), devices);
    }
    let other = Visitor::new(world);
    other.sign_in(&email, &password).await.expect(303);
    assert_ne!(other.devices(), devices);
}

/// Whoever has one account with an email cannot try the password of another one as a known browser, and not in its own
/// sign-ins either: each of them is counted like the attempt of a stranger.
#[on_sqlite(&[("RATE_LIMIT__SIGN_INS_PER_MIN", "2")])]
async fn a_known_browser_has_no_allowance_for_another_account_with_the_email(world: &World) {
    let (_, email, _) = world.new_integrator_person().await;
    let home = format!("/dashboard/{}", contact_with(world, &email, OWN).await);
    let known = Visitor::new(world);
    known.sign_in(&email, OWN).await.leads_to(&home);
    known.submit("/sign-out", &[]).await.leads_to("/sign-in");
    Visitor::new(world)
        .sign_in(&email, "another password")
        .await
        .expect(401);
    let began = Instant::now();
    known.sign_in(&email, "another password").await.expect(401);
    assert!(began.elapsed() >= Duration::from_secs(3));
    known.sign_in(&email, OWN).await.leads_to(&home);
}

#[each_database]
async fn of_several_accounts_that_a_password_opens_a_person_chooses_one(world: &World) {
    let (_, email, password) = world.new_integrator_person().await;
    let id = contact_with(world, &email, &password).await;
    let home = format!("/dashboard/{id}");
    let visitor = Visitor::new(world);
    visitor
        .sign_in(&email, &password)
        .await
        .shows_all(&["opens more than one account", "Integrator: "])
        .shows("Contact person of a taxpayer: ")
        .hides(r#"value="operator""#)
        .hides(&password);
    assert_eq!(
        (visitor.cookie(), visitor.devices().len()),
        (String::new(), 0)
    );
    sign_in_as(&visitor, &email, &password, "operator")
        .await
        .expect(401);
    for (account, path) in [
        ("contact", home.as_str()),
        ("integrator", "/dashboard/taxpayers"),
    ] {
        sign_in_as(&visitor, &email, &password, account)
            .await
            .leads_to(path);
        visitor.submit("/sign-out", &[]).await.leads_to("/sign-in");
        // A browser that knows one account opens it, and offers those that it knows.
        let again = visitor.sign_in(&email, &password).await;
        if account == "contact" {
            again.leads_to(&home);
            visitor.submit("/sign-out", &[]).await.leads_to("/sign-in");
        } else {
            again.expect(200).shows("opens more than one account");
        }
    }
}

#[each_database]
async fn a_disabled_account_hides_no_other_with_the_same_password(world: &World) {
    for disabled in [["contacts", "integrators"], ["integrators", "contacts"]] {
        let (_, email, password) = world.new_integrator_person().await;
        let id = contact_with(world, &email, &password).await;
        let left = if disabled[0] == "contacts" {
            "/dashboard/taxpayers".to_owned()
        } else {
            format!("/dashboard/{id}")
        };
        for (table, path) in disabled.into_iter().zip([Some(left), None]) {
            let update = format!("UPDATE {table} SET disabled_at = 1 WHERE email = '{email}'");
            assert_eq!(world.execute(&update).await, 1);
            let answer = Visitor::new(world).sign_in(&email, &password).await;
            match path {
                Some(path) => answer.leads_to(&path),
                None => answer.expect(401).shows("Wrong email or password."),
            };
        }
    }
}

#[on_sqlite(&[("RATE_LIMIT__FAILED_AUTH_PER_MIN", "5")])]
async fn wrong_api_keys_of_an_address_refuse_no_sign_in(world: &World) {
    let (_, email, password) = world.new_integrator_person().await;
    let guesses = world.anonymous().with_key("tpk_of_nobody");
    while guesses.get("/v1/tax-payers/invoices").await.status != 429 {}
    Visitor::new(world)
        .send("/sign-in/forgotten", &[("email", &email)])
        .await
        .leads_to("/sign-in");
    Visitor::new(world)
        .sign_in(&email, &password)
        .await
        .leads_to("/dashboard/taxpayers");
}

#[on_sqlite]
async fn a_form_without_the_token_of_the_session_is_refused(world: &World) {
    let visitor = Visitor::operator(world, OperatorRole::Admin).await;
    for token in ["", "another"] {
        visitor
            .send("/sign-out", &[("csrf", token), ("once", "1")])
            .await
            .expect(403);
    }
    visitor
        .send("/sign-out", &[("once", "1")])
        .await
        .expect(403);
    visitor.get("/console").await.expect(200);
}

#[on_sqlite]
async fn the_sign_in_leads_only_to_pages_of_this_service(world: &World) {
    let (email, id) = contact(world).await;
    let sign_in = async |next: &str| {
        let fields = [("email", email.as_str()), ("password", OWN), ("next", next)];
        Visitor::new(world).send("/sign-in", &fields).await.location
    };
    let invoices = format!("/dashboard/{id}/invoices");
    assert_eq!(sign_in(&invoices).await, invoices);
    assert_eq!(
        sign_in("https://evil.example/").await,
        format!("/dashboard/{id}")
    );
    assert_eq!(sign_in("//evil.example/").await, format!("/dashboard/{id}"));
}

#[on_sqlite]
async fn one_kind_of_person_does_not_see_the_pages_of_another(world: &World) {
    let operator = Visitor::operator(world, OperatorRole::Admin).await;
    let (_, id) = contact(world).await;
    operator.get(&format!("/dashboard/{id}")).await.expect(404);
    operator.get("/console/nothing").await.expect(404);
}

#[on_sqlite]
async fn text_of_a_visitor_is_shown_and_not_run(world: &World) {
    let visitor = Visitor::new(world);
    let seen = visitor
        .sign_in(
            "<script>alert(1)</script>@x.example",
            "\"><img src=x onerror=alert(1)>",
        )
        .await;
    seen.expect(401).hides("<script>alert").hides("<img src=x");
    let next = "/sign-in?next=%22%3E%3Cscript%3Ealert(1)%3C/script%3E";
    visitor.get(next).await.expect(200).hides("<script>alert");
}

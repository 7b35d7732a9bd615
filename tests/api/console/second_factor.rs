//! The second factor of people: how it is set up, what a sign-in then needs, what is refused, and what needs password and
//! code once more.

use std::collections::BTreeSet;

use einvoice::app::{self, KeyKind, KeyOwner};
use einvoice::internals::{
    ContactId, KeyTerms, OperatorRole, TaxpayerId, once_and_repeatable_form_patterns,
};
use futures_util::future::join_all;
use testkit::documents::number;
use testkit::{each_database, on_sqlite};
use timing::clock::{Clock as _, SystemClock};

use crate::support::account::{Account, PASSWORD, choose, code_of_app, link_path, signed_in};
use crate::support::visitor::{Seen, Visitor};
use crate::support::world::{ALONE, World};

const REQUIRED: [(&str, &str); 1] = [("CONSOLE__SECOND_FACTOR", "always")];
const REFUSED: &str = "This code is not right";
const PATH: &str = "/account/second-factor";

/// An operator with an authenticator app.
struct Person {
    email: String,
    password: String,
    secret: String,
    /// The code that confirmed the secret. A new one comes every 30 seconds.
    confirmed_with: String,
    recovery_codes: Vec<String>,
}

impl Person {
    async fn new(world: &World) -> Self {
        let email = format!("operator{}@house.example", number());
        let role = OperatorRole::Admin;
        let made =
            app::create_operator(world.settings(), email.clone(), role, KeyTerms::default()).await;
        let password = made.unwrap()["password"].as_str().unwrap().to_owned();
        Self {
            email,
            password,
            secret: String::new(),
            confirmed_with: String::new(),
            recovery_codes: Vec::new(),
        }
    }

    /// A person whose second factor is on, and the browser in which it was set up.
    async fn enrolled(world: &World) -> (Self, Visitor) {
        let mut person = Self::new(world).await;
        let visitor = Visitor::new(world);
        visitor
            .sign_in(&person.email, &person.password)
            .await
            .expect(303);
        person.enrol(&visitor).await;
        (person, visitor)
    }

    async fn enrol(&mut self, visitor: &Visitor) {
        let shown = visitor
            .submit(PATH, &[])
            .await
            .expect(200)
            .shows("<svg class=\"qr\"");
        self.secret = between(&shown, "<code class=\"secret\">", "</code>");
        self.confirmed_with = self.code(0);
        let fields = [("code", self.confirmed_with.as_str())];
        let confirmed = visitor
            .submit("/account/second-factor/confirm", &fields)
            .await;
        let codes = between(
            &confirmed.expect(200),
            "<pre class=\"body\" id=\"codes\">",
            "</pre>",
        );
        self.recovery_codes = codes.split_whitespace().map(str::to_owned).collect();
        assert_eq!(self.recovery_codes.len(), 10, "{codes}");
    }

    fn code(&self, steps: i64) -> String {
        code_of_app(&self.secret, steps)
    }

    fn wrong_code(&self) -> String {
        let right: Vec<_> = (-3..=3).map(|steps| self.code(steps)).collect();
        let guesses = (0..100).map(|guess| format!("{guess:06}"));
        guesses
            .into_iter()
            .find(|guess| !right.contains(guess))
            .unwrap()
    }

    /// A browser in which the password was right.
    async fn with_password(&self, world: &World) -> Visitor {
        let visitor = Visitor::new(world);
        let next = "/sign-in/code?next=%2Fconsole";
        visitor
            .sign_in(&self.email, &self.password)
            .await
            .leads_to(next);
        visitor
    }
}

fn between(seen: &Seen, start: &str, end: &str) -> String {
    let (_, rest) = seen.html.split_once(start).unwrap();
    rest.split_once(end).unwrap().0.to_owned()
}

async fn enter(visitor: &Visitor, code: &str) -> Seen {
    let csrf = visitor.get("/sign-in/code").await.expect(200).csrf();
    visitor
        .send(
            "/sign-in/code",
            &[("csrf", &csrf), ("code", code), ("next", "/console/runs")],
        )
        .await
}

#[each_database]
async fn a_sign_in_with_a_second_factor_needs_its_code(world: &World) {
    let (person, _) = Person::enrolled(world).await;
    let visitor = person.with_password(world).await;
    enter(&visitor, &person.wrong_code())
        .await
        .expect(401)
        .shows(REFUSED);
    enter(&visitor, &person.code(1))
        .await
        .leads_to("/console/runs");
    visitor.get("/console").await.expect(200);
    visitor
        .get(PATH)
        .await
        .expect(200)
        .shows("Each sign-in asks for a code");
}

#[on_sqlite]
async fn before_the_code_no_page_opens(world: &World) {
    let (person, _) = Person::enrolled(world).await;
    let visitor = person.with_password(world).await;
    for path in [
        "/console",
        "/console/runs",
        "/account/password",
        PATH,
        "/dashboard",
        "/console/live/supervision",
    ] {
        visitor.get(path).await.leads_to("/sign-in/code");
    }
    let csrf = visitor.get("/sign-in/code").await.csrf();
    for path in [
        PATH,
        "/account/second-factor/off",
        "/account/password",
        "/console/taxpayers/1/verify",
    ] {
        let tokens = [("csrf", csrf.as_str()), ("once", "1")];
        let fields = [
            ("code", "1"),
            ("current", "1"),
            ("new", "1"),
            ("again", "1"),
        ];
        let fields: Vec<_> = tokens.into_iter().chain(fields).collect();
        visitor.send(path, &fields).await.leads_to("/sign-in/code");
    }
    visitor
        .send("/sign-in/code", &[("code", &person.code(1))])
        .await
        .expect(403);
}

#[each_database]
async fn a_code_counts_once(world: &World) {
    let (person, _) = Person::enrolled(world).await;
    let visitor = person.with_password(world).await;
    enter(&visitor, &person.confirmed_with)
        .await
        .expect(401)
        .shows(REFUSED);
    let code = person.code(1);
    enter(&visitor, &code).await.leads_to("/console/runs");
    let again = person.with_password(world).await;
    enter(&again, &code).await.expect(401).shows(REFUSED);
    again.get("/console").await.leads_to("/sign-in/code");
}

#[each_database]
async fn a_recovery_code_replaces_the_app_once(world: &World) {
    let (person, _) = Person::enrolled(world).await;
    let code = person.recovery_codes[3].to_lowercase();
    enter(&person.with_password(world).await, &code)
        .await
        .leads_to("/console/runs");
    enter(&person.with_password(world).await, &code)
        .await
        .expect(401);
    enter(
        &person.with_password(world).await,
        &person.recovery_codes[4],
    )
    .await
    .leads_to("/console/runs");
}

#[on_sqlite]
async fn a_stranger_who_tries_codes_keeps_nobody_out(world: &World) {
    let (person, known) = Person::enrolled(world).await;
    let stranger = person.with_password(world).await;
    let wrong = person.wrong_code();
    for _ in 0..10 {
        enter(&stranger, &wrong).await.expect(401).shows(REFUSED);
    }
    known.submit("/sign-out", &[]).await.leads_to("/sign-in");
    known
        .sign_in(&person.email, &person.password)
        .await
        .expect(303);
    enter(&known, &person.code(1))
        .await
        .leads_to("/console/runs");
}

#[each_database(ALONE)]
async fn codes_at_the_same_time_are_bounded(world: &World) {
    let (person, _) = Person::enrolled(world).await;
    let stranger = person.with_password(world).await;
    let wrong = person.wrong_code();
    let csrf = stranger.get("/sign-in/code").await.expect(200).csrf();
    let fields = [("csrf", csrf.as_str()), ("code", wrong.as_str())];
    let send = |_| stranger.send("/sign-in/code", &fields);
    join_all((0..10).map(send)).await;
    let answers = join_all((0..14).map(send)).await;
    let refused = answers
        .into_iter()
        .find(|answer| answer.status == 429)
        .unwrap();
    assert_eq!(refused.shows("Too many attempts").retry_after, Some(3));
}

#[each_database]
async fn a_secret_counts_only_when_it_is_confirmed(world: &World) {
    let person = Person::new(world).await;
    let visitor = Visitor::new(world);
    visitor
        .sign_in(&person.email, &person.password)
        .await
        .leads_to("/console");
    let first = between(
        &visitor.submit(PATH, &[]).await,
        "<code class=\"secret\">",
        "</code>",
    );
    let second = between(
        &visitor.submit(PATH, &[]).await,
        "<code class=\"secret\">",
        "</code>",
    );
    assert_ne!(first, second);
    let person = Person {
        secret: first.clone(),
        ..person
    };
    let confirm = async |code: String| {
        visitor
            .submit("/account/second-factor/confirm", &[("code", &code)])
            .await
    };
    confirm(person.code(0))
        .await
        .expect(422)
        .shows(REFUSED)
        .hides(&second);
    let again = Visitor::new(world);
    again
        .sign_in(&person.email, &person.password)
        .await
        .leads_to("/console");
    confirm(
        Person {
            secret: second,
            ..person
        }
        .code(0),
    )
    .await
    .expect(200)
    .shows("Your recovery codes");
    again.get("/console").await.expect(303);
}

#[each_database]
async fn a_second_factor_is_switched_off_with_a_code_only(world: &World) {
    let (person, visitor) = Person::enrolled(world).await;
    let off = "/account/second-factor/off";
    visitor
        .submit(off, &[("code", &person.wrong_code())])
        .await
        .expect(422)
        .shows(REFUSED);
    visitor.submit(PATH, &[]).await.leads_to(PATH);
    visitor
        .submit(off, &[("code", &person.recovery_codes[0])])
        .await
        .leads_to(PATH);
    visitor.get(PATH).await.expect(200).shows("Set it up");
    Visitor::new(world)
        .sign_in(&person.email, &person.password)
        .await
        .leads_to("/console");
}

#[on_sqlite(&REQUIRED)]
async fn where_it_is_required_nothing_opens_without_it(world: &World) {
    let mut person = Person::new(world).await;
    let visitor = Visitor::new(world);
    visitor
        .sign_in(&person.email, &person.password)
        .await
        .leads_to("/console");
    for path in ["/console", "/console/runs", "/console/operators"] {
        visitor.get(path).await.leads_to(PATH);
    }
    visitor
        .get(PATH)
        .await
        .expect(200)
        .shows("Set it up to go on");
    person.enrol(&visitor).await;
    visitor.get("/console").await.expect(200);
    let off = visitor
        .submit("/account/second-factor/off", &[("code", &person.code(1))])
        .await;
    off.expect(422)
        .shows("Operators and integrators of this service need a second factor");
    person
        .with_password(world)
        .await
        .get("/console")
        .await
        .leads_to("/sign-in/code");
}

#[each_database]
async fn an_admin_or_the_command_line_resets_a_lost_second_factor(world: &World) {
    let admin = Visitor::operator(world, OperatorRole::Admin).await;
    for by_admin in [true, false] {
        let (person, visitor) = Person::enrolled(world).await;
        let query = format!("SELECT id FROM operators WHERE email = '{}'", person.email);
        let id = world.number(&query).await;
        if by_admin {
            admin
                .get("/console/operators?per_page=100")
                .await
                .expect(200)
                .shows("Remove the second factor");
            let reset = format!("/console/operators/{id}/second-factor/reset");
            admin.submit(&reset, &[]).await.expect(422);
            admin
                .submit(&reset, &[("reason", "lost phone")])
                .await
                .leads_to("/console/operators");
        } else {
            let reset = app::reset_totp(world.settings(), operator(id))
                .await
                .unwrap();
            assert_eq!(reset, serde_json::json!({ "id": id, "had_totp": true }));
        }
        visitor.get("/console").await.expect(303);
        Visitor::new(world)
            .sign_in(&person.email, &person.password)
            .await
            .leads_to("/console");
        let audited = format!(
            "SELECT COUNT(*) FROM audit WHERE subject = '{id}' AND action IN ('second-factor.enable', 'second-factor.reset')"
        );
        assert_eq!(world.number(&audited).await, 2);
    }
    assert!(
        app::reset_totp(world.settings(), operator(987_654_321))
            .await
            .is_err()
    );
}

fn operator(id: i64) -> KeyOwner {
    KeyOwner {
        kind: KeyKind::Operator,
        id,
    }
}

#[on_sqlite]
async fn the_pages_of_second_factors_need_a_session(world: &World) {
    Visitor::new(world).get(PATH).await.expect(303);
    Visitor::new(world).get("/sign-in/code").await.expect(303);
    let operator = Visitor::operator(world, OperatorRole::Viewer).await;
    operator.get("/sign-in/code").await.expect(303);
    operator.send(PATH, &[("once", "1")]).await.expect(403);
}

#[each_database]
async fn contacts_and_integrators_have_second_factors_too(world: &World) {
    let account = Account::new(world).await;
    let (_, email, password) = world.new_integrator_person().await;
    let contact = (account.email.clone(), PASSWORD.to_owned(), account.path(""));
    for (email, password, home) in [
        contact,
        (email, password, "/dashboard/taxpayers".to_owned()),
    ] {
        let visitor = signed_in(world, &email, &password).await;
        let mut person = Person {
            email,
            password,
            secret: String::new(),
            recovery_codes: Vec::new(),
            confirmed_with: String::new(),
        };
        person.enrol(&visitor).await;
        visitor.get(&home).await.expect(200);
        let again = Visitor::new(world);
        again
            .sign_in(&person.email, &person.password)
            .await
            .expect(303);
        again.get(&home).await.leads_to("/sign-in/code");
        let csrf = again.get("/sign-in/code").await.expect(200).csrf();
        let code = person.code(1);
        again
            .send("/sign-in/code", &[("csrf", &csrf), ("code", &code)])
            .await
            .leads_to(&home);
        again.get(&home).await.expect(200);
    }
}

#[on_sqlite(&REQUIRED)]
async fn where_it_is_required_integrators_need_one_and_contacts_may_have_one(world: &World) {
    let account = Account::new(world).await;
    account.page("/invoices").await;
    let (_, email, password) = world.new_integrator_person().await;
    let integrator = signed_in(world, &email, &password).await;
    integrator.get("/dashboard/taxpayers").await.leads_to(PATH);
}

/// Makes all sessions of a database as old as if their people had shown password and code long ago.
async fn age_sessions(world: &World, kind: &str, id: i64) {
    let aged =
        format!("UPDATE sessions SET confirmed_at = 1 WHERE kind = '{kind}' AND account_id = {id}");
    assert!(world.execute(&aged).await > 0);
}

/// Sends each form whose path begins so, about nobody who exists, and returns those that ask for password and code first.
async fn asking_forms(person: &Visitor, start: &str, taxpayer: i64) -> BTreeSet<String> {
    let role = if start == "/console/" {
        "viewer"
    } else {
        "owner"
    };
    let fields = [
        ("role", role),
        ("code", "1"),
        ("move", "enable"),
        ("reason", "none"),
    ];
    let mut asking = BTreeSet::new();
    let (once, _) = once_and_repeatable_form_patterns();
    for pattern in once
        .into_iter()
        .filter(|pattern| pattern.starts_with(start))
    {
        let path = pattern.replace("{taxpayer}", &taxpayer.to_string());
        let path = path.split('/').map(|part| {
            if part.starts_with('{') {
                "999999"
            } else {
                part
            }
        });
        let path = path.collect::<Vec<_>>().join("/");
        let seen = person.submit(&path, &fields).await;
        if seen.location.starts_with("/account/confirm?next=") {
            asking.insert(pattern.to_owned());
        }
    }
    asking
}

#[on_sqlite]
async fn an_admin_changes_who_gets_in_only_with_password_and_code(world: &World) {
    let (admin, email, _) = Visitor::new_operator(world, OperatorRole::Admin).await;
    let id = world
        .number(&format!("SELECT id FROM operators WHERE email = '{email}'"))
        .await;
    age_sessions(world, "operator", id).await;
    let asking = asking_forms(&admin, "/console/", 999_999).await;
    let expected = [
        "/console/integrators/{id}/access",
        "/console/integrators/{integrator}/invitation",
        "/console/integrators/{integrator}/second-factor/reset",
        "/console/keys/{kind}/{owner}/{key}/revoke",
        "/console/operators/{id}/access",
        "/console/operators/{id}/role",
        "/console/operators/{operator}/invitation",
        "/console/operators/{operator}/second-factor/reset",
        "/console/taxpayers/{taxpayer}/contacts/{contact}/invitation",
        "/console/taxpayers/{taxpayer}/contacts/{contact}/second-factor/reset",
    ];
    assert_eq!(asking, expected.map(str::to_owned).into());
}

#[each_database]
async fn who_gets_in_is_changed_only_with_password_and_code(world: &World) {
    let account = Account::new(world).await;
    let id = world
        .number(&format!(
            "SELECT id FROM contacts WHERE taxpayer_id = {}",
            account.taxpayer.id
        ))
        .await;
    age_sessions(world, "contact", id).await;
    let asking = asking_forms(
        &account.owner,
        "/dashboard/{taxpayer}/",
        account.taxpayer.id,
    )
    .await;
    let of_account = [
        "/keys",
        "/keys/rotate",
        "/contacts",
        "/contacts/{contact}/disable",
        "/contacts/{contact}/enable",
        "/contacts/{contact}/invitation",
        "/contacts/{contact}/remove",
        "/contacts/{contact}/role",
        "/contacts/{contact}/second-factor/reset",
    ];
    assert_eq!(
        asking,
        of_account
            .map(|form| format!("/dashboard/{{taxpayer}}{form}"))
            .into()
    );
    let asking = asking_forms(
        &account.owner,
        "/account/second-factor",
        account.taxpayer.id,
    )
    .await;
    assert_eq!(
        asking,
        [
            PATH,
            "/account/second-factor/confirm",
            "/account/second-factor/off"
        ]
        .map(Into::into)
        .into()
    );
    let confirm = async |current: &str, code: &str| {
        let fields = [("current", current), ("code", code), ("next", "/dashboard")];
        account.owner.submit("/account/confirm", &fields).await
    };
    account
        .owner
        .get("/account/confirm")
        .await
        .expect(200)
        .hides("one-time-code");
    confirm("another password", "")
        .await
        .expect(422)
        .shows("This is not right");
    confirm(PASSWORD, "").await.leads_to("/dashboard");
    account
        .owner
        .submit(&account.path("/keys/rotate"), &[])
        .await
        .expect(200);
    let email = account.email.clone();
    let password = PASSWORD.to_owned();
    let mut person = Person {
        email,
        password,
        secret: String::new(),
        recovery_codes: Vec::new(),
        confirmed_with: String::new(),
    };
    person.enrol(&account.owner).await;
    age_sessions(world, "contact", id).await;
    account
        .owner
        .get("/account/confirm")
        .await
        .expect(200)
        .shows("one-time-code");
    confirm(PASSWORD, "").await.expect(422);
    confirm("another password", &person.code(1))
        .await
        .expect(422);
    confirm(PASSWORD, &person.code(1))
        .await
        .leads_to("/dashboard");
}

#[on_sqlite]
async fn nobody_resets_its_own_second_factor(world: &World) {
    let (person, visitor) = Person::enrolled(world).await;
    let id = world
        .number(&format!(
            "SELECT id FROM operators WHERE email = '{}'",
            person.email
        ))
        .await;
    let reset = format!("/console/operators/{id}/second-factor/reset");
    visitor
        .submit(&reset, &[("reason", "lost phone")])
        .await
        .expect(409)
        .shows("Nobody can reset their own");
    let account = Account::new(world).await;
    let own = world
        .number(&format!(
            "SELECT id FROM contacts WHERE taxpayer_id = {}",
            account.taxpayer.id
        ))
        .await;
    let reset = format!("/contacts/{own}/second-factor/reset");
    account
        .post(&reset, &[])
        .await
        .expect(409)
        .shows("Nobody can reset their own");
    person
        .with_password(world)
        .await
        .get("/console")
        .await
        .leads_to("/sign-in/code");
}

#[each_database]
async fn after_twenty_wrong_codes_in_a_day_only_a_recovery_code_opens(world: &World) {
    let (person, _) = Person::enrolled(world).await;
    let id = world
        .number(&format!(
            "SELECT id FROM operators WHERE email = '{}'",
            person.email
        ))
        .await;
    let now = SystemClock.now().as_microsecond();
    let guessed = format!(
        "UPDATE second_factors SET refused = 19, refused_since = {now} WHERE owner = 'operator/{id}'"
    );
    assert_eq!(world.execute(&guessed).await, 1);
    let visitor = person.with_password(world).await;
    enter(&visitor, &person.wrong_code()).await.expect(401);
    enter(&visitor, &person.code(1))
        .await
        .expect(401)
        .shows("A recovery code still works");
    let admin = Visitor::operator(world, OperatorRole::Admin).await;
    admin
        .get("/console/operators?per_page=100")
        .await
        .expect(200)
        .shows("Too many wrong codes today");
    let audited = format!(
        "SELECT COUNT(*) FROM audit WHERE subject = '{id}' AND action = 'second-factor.lock'"
    );
    assert_eq!(world.number(&audited).await, 1);
    enter(&visitor, &person.recovery_codes[0])
        .await
        .leads_to("/console/runs");
    enter(&person.with_password(world).await, &person.code(1))
        .await
        .leads_to("/console/runs");
}

#[each_database]
async fn an_owner_or_the_command_line_resets_the_second_factor_of_a_contact(world: &World) {
    for by_owner in [true, false] {
        let account = Account::new(world).await;
        let email = format!("bola{}@trading.example", number());
        let fields = [
            ("first_name", "B"),
            ("last_name", "A"),
            ("email", &email),
            ("role", "accountant"),
        ];
        let link = link_path(&account.post("/contacts", &fields).await.expect(200).html);
        choose(&Visitor::new(world), &link, PASSWORD)
            .await
            .leads_to("/sign-in");
        let visitor = signed_in(world, &email, PASSWORD).await;
        let password = PASSWORD.to_owned();
        let mut person = Person {
            email,
            password,
            secret: String::new(),
            recovery_codes: Vec::new(),
            confirmed_with: String::new(),
        };
        person.enrol(&visitor).await;
        let id = world
            .number(&format!(
                "SELECT id FROM contacts WHERE email = '{}'",
                person.email
            ))
            .await;
        if by_owner {
            assert!(
                account
                    .page("/contacts")
                    .await
                    .contains("Reset the second factor")
            );
            account
                .post(&format!("/contacts/{id}/second-factor/reset"), &[])
                .await
                .expect(303);
        } else {
            let reset = app::reset_contact_totp(
                world.settings(),
                TaxpayerId(account.taxpayer.id),
                ContactId(id),
            )
            .await
            .unwrap();
            assert_eq!(reset, serde_json::json!({ "id": id, "had_totp": true }));
        }
        visitor.get(&account.path("/invoices")).await.expect(303);
        visitor
            .sign_in(&person.email, PASSWORD)
            .await
            .leads_to(&account.path(""));
    }
}

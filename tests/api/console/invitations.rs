//! One-time links: who may make one, what it opens, and when it ends. No text opens two accounts.

use einvoice::app::{self, KeyKind, KeyOwner};
use einvoice::internals::{ContactId, KeyTerms, OperatorRole, TaxpayerId};
use futures_util::future::join_all;
use serde_json::{Value, json};
use testkit::answer::Answer;
use testkit::documents::{self, number};
use testkit::roles::{Integrator, TAXPAYERS};
use testkit::{each_database, on_sqlite};

use crate::support::account::{Account, PASSWORD, choose, link_path, signed_in};
use crate::support::visitor::Visitor;
use crate::support::world::{ALONE, World};

/// A contact person that was onboarded without a password.
struct Contact {
    taxpayer: i64,
    id: i64,
    email: String,
}

impl Contact {
    async fn new(integrator: &Integrator) -> Self {
        let body = documents::taxpayer();
        let made = integrator.create_taxpayer(&body).await.expect_status(201);
        let taxpayer = made.data()["id"].as_i64().unwrap();
        let shown = integrator
            .get(&format!("{TAXPAYERS}/{taxpayer}"))
            .await
            .expect_status(200);
        let user = &shown.data()["users"][0];
        let email = user["email"].as_str().unwrap().to_owned();
        Self {
            taxpayer,
            id: user["id"].as_i64().unwrap(),
            email,
        }
    }

    fn path(&self) -> String {
        format!(
            "{TAXPAYERS}/{}/contacts/{}/invitation",
            self.taxpayer, self.id
        )
    }

    fn home(&self) -> String {
        format!("/dashboard/{}", self.taxpayer)
    }

    async fn invite(&self, integrator: &Integrator) -> Answer {
        integrator.call("POST", &self.path()).await
    }
}

fn link_of(answer: &Answer) -> String {
    link_path(answer.data()["link"].as_str().unwrap())
}

fn path_of(printed: &Value) -> String {
    printed["path"].as_str().unwrap().to_owned()
}

#[each_database]
async fn a_contact_without_a_password_signs_in_with_its_own_link_only(world: &World) {
    let honest = world.new_integrator().await;
    let evil = world.new_integrator().await;
    let victim = Contact::new(&honest).await;
    let own = Contact::new(&evil).await;
    let visitor = Visitor::new(world);
    for guess in ["", " ", PASSWORD, "correct horse battery", &victim.email] {
        visitor.sign_in(&victim.email, guess).await.expect(401);
    }
    let answer = own.invite(&evil).await.expect_status(200);
    assert_eq!(answer.header("cache-control"), "no-store");
    assert_eq!(answer.data()["email"], json!(own.email));
    assert_eq!(answer.data()["id"], json!(own.id));
    let link = link_of(&answer);
    visitor.get(&link).await.expect(200).shows(&own.email);
    choose(&visitor, &link, PASSWORD).await.leads_to("/sign-in");
    visitor
        .sign_in(&own.email, PASSWORD)
        .await
        .leads_to(&own.home());
    let another = Visitor::new(world);
    another.sign_in(&victim.email, PASSWORD).await.expect(401);
    let answer = victim.invite(&honest).await.expect_status(200);
    choose(&another, &link_of(&answer), "another four plain words")
        .await
        .leads_to("/sign-in");
    another
        .sign_in(&victim.email, "another four plain words")
        .await
        .leads_to(&victim.home());
}

#[each_database]
async fn a_link_changes_nothing_before_it_is_used_and_ends_sessions_then(world: &World) {
    let account = Account::new(world).await;
    let query = format!(
        "SELECT id FROM contacts WHERE taxpayer_id = {}",
        account.taxpayer.id
    );
    let contact = Contact {
        taxpayer: account.taxpayer.id,
        id: world.number(&query).await,
        email: account.email.clone(),
    };
    let link = link_of(&contact.invite(&world.integrator()).await.expect_status(200));
    account.page("/keys").await;
    let visitor = signed_in(world, &account.email, PASSWORD).await;
    for (new, again, said) in [
        ("a few easy words", "a few easy word", "not the same"),
        ("short", "short", "12 characters"),
        ("Password2026!", "Password2026!", "everybody tries first"),
    ] {
        visitor
            .send(&link, &[("new", new), ("again", again)])
            .await
            .expect(422)
            .shows(said);
    }
    choose(&visitor, &link, "another four plain words")
        .await
        .leads_to("/sign-in");
    for browser in [&visitor, &account.owner] {
        browser.get(&contact.home()).await.expect(303);
    }
    visitor.sign_in(&account.email, PASSWORD).await.expect(401);
    visitor
        .sign_in(&account.email, "another four plain words")
        .await
        .leads_to(&contact.home());
    for action in ["invitation.make", "invitation.accept"] {
        let audited = format!(
            "SELECT COUNT(*) FROM audit WHERE action = '{action}' AND subject = '{}' AND taxpayer_id = {}",
            contact.id, contact.taxpayer
        );
        assert_eq!(world.number(&audited).await, 1, "{action}");
    }
    let audit = world
        .integrator()
        .get("/v1/system-integrators/audit")
        .await
        .expect_status(200);
    let entries = audit.data()["data"].as_array().unwrap();
    assert!(
        entries
            .iter()
            .any(|entry| entry["action"] == "invitation.make"),
        "{}",
        audit.text
    );
}

/// The ways to get a link for a contact person.
const WAYS: [&str; 4] = ["api", "owner", "integrator's page", "command line"];

/// Makes a link for the second person of an account in one of the ways.
async fn link_by(world: &World, way: &str, account: &Account, id: i64) -> String {
    let taxpayer = account.taxpayer.id;
    let form = format!("/contacts/{id}/invitation");
    match way {
        "api" => {
            let contact = Contact {
                taxpayer,
                id,
                email: String::new(),
            };
            link_of(&contact.invite(&world.integrator()).await.expect_status(200))
        }
        "owner" => link_path(&account.post(&form, &[]).await.expect(200).html),
        "integrator's page" => {
            let (integrator, email, password) = world.new_integrator_person().await;
            // What the authority answers later would write the taxpayer as its actor knows it.
            world.settled(&json!(taxpayer)).await;
            let moved = format!(
                "UPDATE taxpayers SET integrator_id = (SELECT id FROM integrators WHERE email = '{email}') \
                 WHERE id = {taxpayer}"
            );
            assert_eq!(world.execute(&moved).await, 1);
            integrator
                .get(&format!("{TAXPAYERS}/{taxpayer}"))
                .await
                .expect_status(200);
            let visitor = signed_in(world, &email, &password).await;
            link_path(
                &visitor
                    .submit(&account.path(&form), &[])
                    .await
                    .expect(200)
                    .html,
            )
        }
        _ => path_of(
            &app::invite_contact(world.settings(), TaxpayerId(taxpayer), ContactId(id))
                .await
                .unwrap(),
        ),
    }
}

/// Adds a person to an account and returns its id.
async fn add_person(world: &World, account: &Account) -> i64 {
    let email = format!("bola{}@trading.example", number());
    let fields = [
        ("first_name", "B"),
        ("last_name", "A"),
        ("email", &email),
        ("role", "read_only"),
    ];
    account.post("/contacts", &fields).await.expect(200);
    world
        .number(&format!("SELECT id FROM contacts WHERE email = '{email}'"))
        .await
}

#[each_database]
async fn a_link_works_once_in_time_and_while_the_person_is_there(world: &World) {
    for way in WAYS {
        let account = Account::new(world).await;
        let visitor = Visitor::new(world);
        let ended = async |link: &str| {
            visitor
                .get(link)
                .await
                .expect(404)
                .shows("This link is not valid");
            choose(&visitor, link, PASSWORD)
                .await
                .expect(404)
                .shows("This link is not valid");
        };
        let id = add_person(world, &account).await;
        let replaced = link_by(world, way, &account, id).await;
        let link = link_by(
            world,
            if way.starts_with("int") { "owner" } else { way },
            &account,
            id,
        )
        .await;
        ended(&replaced).await;
        choose(&visitor, &link, PASSWORD).await.leads_to("/sign-in");
        ended(&link).await;
        let late = link_by(world, "owner", &account, id).await;
        let past = format!(
            "UPDATE invitations SET expires_at = 1 WHERE account_id = {id} AND kind = 'contact'"
        );
        assert_eq!(world.execute(&past).await, 1, "{way}");
        ended(&late).await;
        let orphaned = link_by(world, "owner", &account, id).await;
        account
            .post(&format!("/contacts/{id}/remove"), &[])
            .await
            .expect(303);
        ended(&orphaned).await;
    }
}

#[on_sqlite]
async fn who_has_no_right_to_a_person_gets_no_link(world: &World) {
    let account = Account::new(world).await;
    let id = add_person(world, &account).await;
    let taxpayer = account.taxpayer.id;
    let contact = Contact {
        taxpayer,
        id,
        email: String::new(),
    };
    let other = world.new_integrator().await;
    contact
        .invite(&other)
        .await
        .expect_refusal(404, "TAXPAYER_NOT_FOUND");
    for unknown in [0, -1, 987_654_321] {
        let contact = Contact {
            id: unknown,
            email: String::new(),
            ..contact
        };
        contact
            .invite(&world.integrator())
            .await
            .expect_refusal(404, "CONTACT_NOT_FOUND");
    }
    let elsewhere = Account::new(world).await;
    let foreign = Contact {
        taxpayer: elsewhere.taxpayer.id,
        id,
        email: String::new(),
    };
    foreign
        .invite(&world.integrator())
        .await
        .expect_refusal(404, "CONTACT_NOT_FOUND");
    world
        .anonymous()
        .call("POST", &contact.path())
        .await
        .expect_status(401);
    account
        .taxpayer
        .call("POST", &contact.path())
        .await
        .expect_status(401);
    let form = format!("/contacts/{id}/invitation");
    elsewhere
        .owner
        .submit(&account.path(&form), &[])
        .await
        .expect(404);
    elsewhere.post(&form, &[]).await.expect(404);
    let own = format!("SELECT id FROM contacts WHERE taxpayer_id = {taxpayer} AND role = 'owner'");
    let own = world.number(&own).await;
    account
        .post(&format!("/contacts/{own}/invitation"), &[])
        .await
        .expect(409)
        .shows("for itself");
    account.set_role(world, "accountant").await;
    account.post(&form, &[]).await.expect(403);
    for link in [
        "/sign-in/invitation/x",
        "/sign-in/invitation/%00",
        "/sign-in/invitation/'",
    ] {
        Visitor::new(world)
            .get(link)
            .await
            .expect(404)
            .shows("This link is not valid");
    }
    assert!(
        app::invite_contact(
            world.settings(),
            TaxpayerId(taxpayer),
            ContactId(987_654_321)
        )
        .await
        .is_err()
    );
    let nobody = KeyOwner {
        kind: KeyKind::Operator,
        id: 987_654_321,
    };
    assert!(app::invite(world.settings(), nobody).await.is_err());
}

#[each_database]
async fn an_operator_or_an_integrator_chooses_another_password_with_a_link(world: &World) {
    let (_, email, password) = world.new_integrator_person().await;
    let id = world
        .number(&format!(
            "SELECT id FROM integrators WHERE email = '{email}'"
        ))
        .await;
    let owner = KeyOwner {
        kind: KeyKind::Integrator,
        id,
    };
    let link = path_of(&app::invite(world.settings(), owner).await.unwrap());
    let visitor = signed_in(world, &email, &password).await;
    choose(&visitor, &link, PASSWORD).await.leads_to("/sign-in");
    visitor.get("/dashboard/taxpayers").await.expect(303);
    visitor.sign_in(&email, &password).await.expect(401);
    visitor
        .sign_in(&email, PASSWORD)
        .await
        .leads_to("/dashboard/taxpayers");
}

#[on_sqlite(ALONE)]
async fn who_tries_links_is_slowed_down_as_at_the_sign_in(world: &World) {
    let contact = Contact::new(&world.integrator()).await;
    let link = link_of(&contact.invite(&world.integrator()).await.expect_status(200));
    let visitor = Visitor::new(world);
    let answers = join_all((0..40).map(|_| visitor.get("/sign-in/invitation/of-nobody"))).await;
    let refused: Vec<_> = answers
        .into_iter()
        .filter(|answer| answer.status == 429)
        .collect();
    assert!(refused.len() >= 10, "{} of 40", refused.len());
    for answer in refused {
        assert_eq!(answer.retry_after, Some(3));
    }
    visitor.get(&link).await.expect(200);
}

#[each_database]
async fn an_admin_makes_links_for_everybody_but_itself(world: &World) {
    let (admin_email, admin) = admin(world).await;
    let contact = Contact::new(&world.integrator()).await;
    let (_, email, _) = world.new_integrator_person().await;
    let integrator = world
        .number(&format!(
            "SELECT id FROM integrators WHERE email = '{email}'"
        ))
        .await;
    let (other, _) = self::admin(world).await;
    let id_of = async |email: &str| {
        world
            .number(&format!("SELECT id FROM operators WHERE email = '{email}'"))
            .await
    };
    let operator = id_of(&other).await;
    for (path, email, home) in [
        (
            format!("/console/operators/{operator}"),
            other,
            "/console".to_owned(),
        ),
        (
            format!("/console/integrators/{integrator}"),
            email,
            "/dashboard/taxpayers".to_owned(),
        ),
        (
            format!(
                "/console/taxpayers/{}/contacts/{}",
                contact.taxpayer, contact.id
            ),
            contact.email.clone(),
            contact.home(),
        ),
    ] {
        let form = format!("{path}/invitation");
        admin.submit(&form, &[]).await.expect(422);
        let page = admin
            .submit(&form, &[("reason", "asked by telephone")])
            .await
            .expect(200);
        let visitor = Visitor::new(world);
        choose(&visitor, &link_path(&page.html), PASSWORD)
            .await
            .leads_to("/sign-in");
        visitor.sign_in(&email, PASSWORD).await.leads_to(&home);
        let reset = format!("{path}/second-factor/reset");
        admin
            .submit(&reset, &[("reason", "lost phone")])
            .await
            .expect(303);
        visitor.get(&home).await.expect(303);
    }
    let own = id_of(&admin_email).await;
    let form = format!("/console/operators/{own}/invitation");
    admin
        .submit(&form, &[("reason", "x")])
        .await
        .expect(409)
        .shows("for itself");
    for unknown in [
        "operators/0",
        "integrators/987654321",
        "taxpayers/1/contacts/987654321",
    ] {
        let form = format!("/console/{unknown}/invitation");
        admin.submit(&form, &[("reason", "x")]).await.expect(404);
    }
}

/// A new admin: its email, and its browser.
async fn admin(world: &World) -> (String, Visitor) {
    let email = format!("operator{}@house.example", number());
    let role = OperatorRole::Admin;
    let made =
        app::create_operator(world.settings(), email.clone(), role, KeyTerms::default()).await;
    let visitor = signed_in(world, &email, made.unwrap()["password"].as_str().unwrap()).await;
    (email, visitor)
}

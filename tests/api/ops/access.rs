//! The ends of access: an account that is disabled, revoked or removed can do nothing on any surface from the answer on,
//! and what comes back later is the sign-in alone.

use einvoice::app;
use einvoice::internals::{KeyTerms, OperatorRole};
use serde_json::{Value, json};
use testkit::documents::number;
use testkit::each_database;
use testkit::roles::{INVOICES, Integrator, Operator, TAXPAYERS};

use crate::support::account::Account;
use crate::support::visitor::Visitor;
use crate::support::world::World;

/// An account with a key and a session.
struct Inside {
    kind: &'static str,
    id: i64,
    email: String,
    password: String,
    key: String,
    session: Visitor,
    /// A path that the key opens, and a page that the session opens.
    path: &'static str,
    page: &'static str,
}

impl Inside {
    async fn operator(world: &World, role: OperatorRole) -> Self {
        let email = format!("operator{}@house.example", number());
        let made =
            app::create_operator(world.settings(), email.clone(), role, KeyTerms::default()).await;
        Self::new(
            world,
            "operators",
            &made.unwrap(),
            ["/ops/audit", "/console"],
        )
        .await
    }

    async fn integrator(world: &World) -> Self {
        let name = format!("House {}", number());
        let email = format!("house{}@house.example", number());
        let made = app::create_integrator(world.settings(), name, email, KeyTerms::default()).await;
        Self::new(
            world,
            "integrators",
            &made.unwrap(),
            [TAXPAYERS, "/dashboard/taxpayers"],
        )
        .await
    }

    async fn new(
        world: &World,
        kind: &'static str,
        made: &Value,
        places: [&'static str; 2],
    ) -> Self {
        let text = |name: &str| made[name].as_str().unwrap().to_owned();
        let session = Visitor::new(world);
        session
            .sign_in(&text("email"), &text("password"))
            .await
            .leads_to(places[1]);
        Self {
            kind,
            id: made["id"].as_i64().unwrap(),
            email: text("email"),
            password: text("password"),
            key: text("api_key"),
            session,
            path: places[0],
            page: places[1],
        }
    }

    fn change(&self, to: &str) -> String {
        format!("/ops/{}/{}/{to}", self.kind, self.id)
    }

    /// Asserts that neither the old key nor the old session opens anything.
    async fn is_outside(&self, world: &World, way: &str) {
        let answer = world.anonymous().with_key(&self.key).get(self.path).await;
        assert_eq!(answer.status, 401, "{way} {}: {}", self.kind, answer.text);
        let page = self.session.get(self.page).await;
        let leads_away = page.status == 303 && page.location.starts_with("/sign-in");
        assert!(
            leads_away,
            "{way} {}: {} {}",
            self.kind, page.status, page.location
        );
    }

    async fn signs_in(&self, world: &World) -> u16 {
        Visitor::new(world)
            .sign_in(&self.email, &self.password)
            .await
            .status
    }
}

#[each_database]
async fn an_account_that_lost_its_access_does_nothing_and_gets_back_the_sign_in_alone(
    world: &World,
) {
    let admin = world.new_operator().await;
    let ways = [("api-key/revoke", 303), ("disable", 401), ("remove", 401)];
    for (way, sign_in) in ways {
        let integrator = if way == "remove" {
            None
        } else {
            Some(Inside::integrator(world).await)
        };
        let operator = Inside::operator(world, OperatorRole::Operator).await;
        for inside in integrator.into_iter().chain([operator]) {
            let answer = admin
                .call("POST", &inside.change(way))
                .await
                .expect_status(200);
            let ended = json!({ "id": inside.id, "revoked": 1, "revoked_of_taxpayers": 0, "ended_sessions": 1 });
            assert_eq!(*answer.data(), ended, "{way} {}", inside.kind);
            inside.is_outside(world, way).await;
            assert_eq!(
                inside.signs_in(world).await,
                sign_in,
                "{way} {}",
                inside.kind
            );
            let audit = admin
                .audit(&format!("?subject={}", inside.id))
                .await
                .expect_status(200);
            let action = way.strip_prefix("api-key/").unwrap_or(way);
            assert!(
                audit.text.contains(&format!(".{action}")),
                "{way}: {}",
                audit.text
            );
            if way != "disable" {
                continue;
            }
            let rotate = inside.change("api-key/rotate");
            admin
                .call("POST", &rotate)
                .await
                .expect_refusal(409, "INVALID_TRANSITION");
            let lists = format!("/ops/{}?per_page=100", inside.kind);
            let listed = admin.get(&lists).await.expect_status(200);
            assert!(
                listed.text.contains("\"disabled_at\":\""),
                "{}",
                listed.text
            );
            admin
                .call("POST", &inside.change("enable"))
                .await
                .expect_status(200);
            inside.is_outside(world, "enable").await;
            assert_eq!(inside.signs_in(world).await, 303, "enable {}", inside.kind);
            admin.call("POST", &rotate).await.expect_status(200);
        }
    }
}

#[each_database]
async fn a_disabled_integrators_taxpayers_go_on_unless_their_keys_are_named(world: &World) {
    let admin = world.new_operator().await;
    for (names_keys, status) in [(false, 200), (true, 401)] {
        let inside = Inside::integrator(world).await;
        let integrator = Integrator::new(&world.client, &inside.key);
        let taxpayer = world.newcomer_of(&integrator).await;
        let body = json!({ "taxpayer_keys": names_keys, "reason": "the laptop was stolen" });
        admin
            .send("POST", &inside.change("disable"), &body)
            .await
            .expect_status(200);
        inside.is_outside(world, "disable").await;
        assert_eq!(taxpayer.get(INVOICES).await.status, status, "{names_keys}");
    }
}

#[each_database]
async fn a_role_counts_from_the_next_request_on(world: &World) {
    let admin = world.new_operator().await;
    let inside = Inside::operator(world, OperatorRole::Viewer).await;
    let caller = Operator::new(&world.client, &inside.key);
    let role = inside.change("role");
    let verify = "/ops/taxpayers/0/verify";
    for (to, status, code) in [
        ("admin", 404, "TAXPAYER_NOT_FOUND"),
        ("operator", 403, "ROLE_INSUFFICIENT"),
        ("viewer", 403, "ROLE_INSUFFICIENT"),
        ("admin", 404, "TAXPAYER_NOT_FOUND"),
    ] {
        let answer = admin
            .send("POST", &role, &json!({ "role": to }))
            .await
            .expect_status(200);
        assert_eq!(*answer.data(), json!({ "id": inside.id, "role": to }));
        caller
            .send("POST", verify, &json!({ "reason": "x" }))
            .await
            .expect_refusal(status, code);
        let form = inside
            .session
            .submit("/console/taxpayers/0/verify", &[("reason", "x")])
            .await;
        assert_eq!(form.status, status, "{to}: {}", form.html);
    }
    admin
        .send("POST", &role, &json!({ "role": "owner" }))
        .await
        .expect_faults(&["role"]);
}

#[each_database]
async fn a_contact_person_is_disabled_enabled_and_removed_by_an_operator(world: &World) {
    let admin = world.new_operator().await;
    let account = Account::new(world).await;
    let people = format!("/ops/taxpayers/{}/contacts", account.taxpayer.id);
    let listed = admin.get(&people).await.expect_status(200);
    assert!(
        !listed.text.contains('@'),
        "operators see no contact data: {}",
        listed.text
    );
    let id = listed.data()[0]["id"].as_i64().unwrap();
    let change = |to: &str| format!("{people}/{id}/{to}");
    for to in ["disable", "remove"] {
        admin
            .call("POST", &change(to))
            .await
            .expect_refusal(409, "INVALID_TRANSITION");
    }
    let reader = json!({ "role": "read_only" });
    admin
        .send("POST", &change("role"), &reader)
        .await
        .expect_refusal(409, "INVALID_TRANSITION");
    let email = format!("bola{}@house.example", number());
    let fields = [
        ("first_name", "Bola"),
        ("last_name", "Ade"),
        ("email", &email),
        ("role", "owner"),
    ];
    account.post("/contacts", &fields).await.expect(200);

    let answer = admin
        .call("POST", &change("disable"))
        .await
        .expect_status(200);
    let ended = json!({ "taxpayer_id": account.taxpayer.id, "id": id, "ended_sessions": 1 });
    assert_eq!(*answer.data(), ended);
    let page = account.owner.get(&account.path("")).await;
    assert!(
        page.status == 303 && page.location.starts_with("/sign-in"),
        "{}",
        page.location
    );
    admin
        .call("POST", &change("enable"))
        .await
        .expect_status(200);
    let page = account.owner.get(&account.path("")).await;
    assert_eq!(page.status, 303, "no old session comes back");
    admin
        .call("POST", &change("remove"))
        .await
        .expect_status(200);
    admin
        .call("POST", &change("enable"))
        .await
        .expect_refusal(404, "CONTACT_NOT_FOUND");
}

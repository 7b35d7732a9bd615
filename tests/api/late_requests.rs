//! Requests that began before a right ended, and whose last byte came after: nothing takes effect any more. Each surface
//! stands here with each way to end its right.

use einvoice::app;
use einvoice::internals::{KeyTerms, OperatorRole};
use serde_json::{Value, json};
use testkit::documents::{self, number};
use testkit::each_database;
use testkit::roles::{INVOICES, Integrator, TAXPAYERS};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::support::account::{Account, PASSWORD, signed_in};
use crate::support::visitor::Visitor;
use crate::support::world::World;

/// A request of which the server waits for the last byte.
struct LateRequest {
    stream: TcpStream,
    last: u8,
}

impl LateRequest {
    async fn begin(world: &World, path: &str, headers: &str, body: &str) -> Self {
        let mut stream = TcpStream::connect(world.root().strip_prefix("http://").unwrap())
            .await
            .unwrap();
        let (last, first) = body.as_bytes().split_last().unwrap();
        let head = format!("POST {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n{headers}");
        stream
            .write_all(format!("{head}content-length: {}\r\n\r\n", body.len()).as_bytes())
            .await
            .unwrap();
        stream.write_all(first).await.unwrap();
        stream.flush().await.unwrap();
        // A later request gives the server the time to see the head of this one.
        assert_eq!(world.anonymous().get("/health/live").await.status, 200);
        Self {
            stream,
            last: *last,
        }
    }

    /// Begins a call of the API.
    async fn call(world: &World, path: &str, key: &str, body: &Value, more: &str) -> Self {
        let headers = format!("x-api-key: {key}\r\ncontent-type: application/json\r\n{more}");
        Self::begin(world, path, &headers, &body.to_string()).await
    }

    /// Begins a form of a page.
    async fn form(world: &World, path: &str, visitor: &Visitor, fields: &[(&str, &str)]) -> Self {
        let body = visitor.form(fields).await;
        let cookie = visitor.cookie();
        let headers =
            format!("cookie: {cookie}\r\ncontent-type: application/x-www-form-urlencoded\r\n");
        Self::begin(world, path, &headers, &body).await
    }

    /// Sends the last byte. Returns the answer.
    async fn finish(mut self) -> String {
        self.stream.write_all(&[self.last]).await.unwrap();
        let mut answer = String::new();
        timeout(
            testkit::patience::PATIENCE,
            self.stream.read_to_string(&mut answer),
        )
        .await
        .unwrap()
        .unwrap();
        answer
    }

    async fn expect_refused(self, status: u16, way: &str) {
        let answer = self.finish().await;
        assert!(
            answer.starts_with(&format!("HTTP/1.1 {status} ")),
            "{way}: {answer}"
        );
        let leads_to_sign_in = answer.to_ascii_lowercase().contains("location: /sign-in");
        assert_eq!(leads_to_sign_in, status == 303, "{way}: {answer}");
    }
}

/// Ends the key of a taxpayer.
async fn end_taxpayer_key(
    world: &World,
    account: &Account,
    integrator: &Integrator,
    id: i64,
    way: &str,
) {
    let admin = world.new_operator().await;
    match way {
        "rotate" => drop(
            integrator
                .rotate_api_key(account.taxpayer.id)
                .await
                .expect_status(200),
        ),
        "revoke" | "disable" => {
            let path = match way {
                "revoke" => format!("/ops/integrators/{id}/api-key/revoke"),
                _ => format!("/ops/integrators/{id}/disable"),
            };
            admin
                .send("POST", &path, &json!({ "taxpayer_keys": true }))
                .await
                .expect_status(200);
        }
        _ => panic!("{way}"),
    }
}

#[each_database]
async fn a_taxpayers_call_does_nothing_after_its_key_ended(world: &World) {
    for way in ["rotate", "revoke", "disable"] {
        let (made, integrator) = new_integrator(world).await;
        let account = Account::newcomer(world, &integrator).await;
        let profile = json!({ "city": "Lagos", "state": "Lagos", "country": "NG" });
        integrator
            .change_profile(account.taxpayer.id, &profile)
            .await
            .expect_status(200);
        let key = account.taxpayer.key().to_owned();
        let body = documents::invoice();
        let plain = LateRequest::call(world, INVOICES, &key, &body, "").await;
        let once = format!("idempotency-key: late{}\r\n", number());
        let keyed = LateRequest::call(world, INVOICES, &key, &body, &once).await;
        let id = made["id"].as_i64().unwrap();
        end_taxpayer_key(world, &account, &integrator, id, way).await;
        for late in [plain, keyed] {
            late.expect_refused(401, way).await;
        }
        let query = format!(
            "SELECT COUNT(*) FROM invoices WHERE taxpayer_id = {}",
            account.taxpayer.id
        );
        assert_eq!(world.number(&query).await, 0, "{way}");
    }
}

async fn new_admin(world: &World) -> Value {
    let email = format!("operator{}@house.example", number());
    app::create_operator(
        world.settings(),
        email,
        OperatorRole::Admin,
        KeyTerms::default(),
    )
    .await
    .unwrap()
}

async fn new_integrator(world: &World) -> (Value, Integrator) {
    let name = format!("House {}", number());
    let email = format!("house{}@house.example", number());
    let made = app::create_integrator(world.settings(), name, email, KeyTerms::default())
        .await
        .unwrap();
    let integrator = Integrator::new(&world.client, made["api_key"].as_str().unwrap());
    (made, integrator)
}

#[each_database]
async fn a_call_of_an_integrator_or_an_operator_does_nothing_after_its_key_ended(world: &World) {
    let admin = world.new_operator().await;
    let cases = [
        ("integrators", "api-key/rotate", 401),
        ("integrators", "api-key/revoke", 401),
        ("integrators", "disable", 401),
        ("operators", "api-key/rotate", 401),
        ("operators", "api-key/revoke", 401),
        ("operators", "disable", 401),
        ("operators", "remove", 401),
        ("operators", "role", 403),
    ];
    for (kind, way, status) in cases {
        let is_integrator = kind == "integrators";
        let made = if is_integrator {
            new_integrator(world).await.0
        } else {
            new_admin(world).await
        };
        let key = made["api_key"].as_str().unwrap();
        let taxpayer = documents::taxpayer();
        let late = if is_integrator {
            LateRequest::call(world, TAXPAYERS, key, &taxpayer, "").await
        } else {
            let path = format!("/ops/taxpayers/{}/verify", world.taxpayer().await.id);
            LateRequest::call(world, &path, key, &json!({ "reason": "late" }), "").await
        };
        let body = if way == "role" {
            json!({ "role": "viewer" })
        } else {
            json!({})
        };
        let change = format!("/ops/{kind}/{}/{way}", made["id"]);
        admin.send("POST", &change, &body).await.expect_status(200);
        late.expect_refused(status, &format!("{kind} {way}")).await;
        let tin = taxpayer["tin_no"].as_str().unwrap();
        let query = format!("SELECT COUNT(*) FROM taxpayers WHERE tin = '{tin}'");
        assert_eq!(world.number(&query).await, 0, "{kind} {way}");
    }
}

/// The ways to end a session that every person has, and the status of the form that came late.
const SESSION_WAYS: [(&str, u16); 2] = [("sign-out", 303), ("password", 303)];

/// Ends a session by its person: in this browser, or by a new password in another one.
async fn end_session(world: &World, visitor: &Visitor, email: &str, password: &str, way: &str) {
    if way == "sign-out" {
        visitor.submit("/sign-out", &[]).await.leads_to("/sign-in");
        return;
    }
    let elsewhere = signed_in(world, email, password).await;
    let new = "another four plain words";
    let fields = [("current", password), ("new", new), ("again", new)];
    elsewhere
        .submit("/account/password", &fields)
        .await
        .expect(303);
}

#[each_database]
async fn a_form_of_an_operator_does_nothing_after_its_right_ended(world: &World) {
    let admin = world.new_operator().await;
    let others = [
        ("disable", 303),
        ("remove", 303),
        ("api-key/revoke", 303),
        ("role", 403),
    ];
    for (way, status) in SESSION_WAYS.into_iter().chain(others) {
        let account = Account::new(world).await;
        let (visitor, email, password) = Visitor::new_operator(world, OperatorRole::Admin).await;
        let path = format!("/console/taxpayers/{}/subscription", account.taxpayer.id);
        let late = LateRequest::form(world, &path, &visitor, &[("subscription", "inactive")]).await;
        if SESSION_WAYS.iter().any(|(name, _)| *name == way) {
            end_session(world, &visitor, &email, &password, way).await;
        } else {
            let id = world
                .number(&format!("SELECT id FROM operators WHERE email = '{email}'"))
                .await;
            let body = if way == "role" {
                json!({ "role": "viewer" })
            } else {
                json!({})
            };
            admin
                .send("POST", &format!("/ops/operators/{id}/{way}"), &body)
                .await
                .expect_status(200);
        }
        late.expect_refused(status, way).await;
        account.taxpayer.invoice(&documents::invoice()).await;
    }
}

#[each_database]
async fn a_form_of_an_account_does_nothing_after_its_right_ended(world: &World) {
    let admin = world.new_operator().await;
    for (way, status) in
        SESSION_WAYS
            .into_iter()
            .chain([("disable", 303), ("remove", 303), ("role", 403)])
    {
        let account = Account::new(world).await;
        let id = account.taxpayer.id;
        let own = world
            .number(&format!("SELECT id FROM contacts WHERE taxpayer_id = {id}"))
            .await;
        let email = format!("bola{}@house.example", number());
        let other = [
            ("first_name", "Bola"),
            ("last_name", "Ade"),
            ("email", &email),
            ("role", "owner"),
        ];
        account.post("/contacts", &other).await.expect(200);
        let fields = [("address", "An address that came late")];
        let late =
            LateRequest::form(world, &account.path("/profile"), &account.owner, &fields).await;
        if SESSION_WAYS.iter().any(|(name, _)| *name == way) {
            end_session(world, &account.owner, &account.email, PASSWORD, way).await;
        } else {
            let body = if way == "role" {
                json!({ "role": "accountant" })
            } else {
                json!({})
            };
            let path = format!("/ops/taxpayers/{id}/contacts/{own}/{way}");
            admin.send("POST", &path, &body).await.expect_status(200);
        }
        late.expect_refused(status, way).await;
        let query = "SELECT COUNT(*) FROM taxpayers WHERE address = 'An address that came late'";
        assert_eq!(world.number(query).await, 0, "{way}");
    }
}

#[each_database]
async fn a_form_of_an_integrator_does_nothing_after_its_right_ended(world: &World) {
    let admin = world.new_operator().await;
    let others = [("disable", 303), ("api-key/revoke", 303)];
    for (way, status) in SESSION_WAYS.into_iter().chain(others) {
        let (made, integrator) = new_integrator(world).await;
        let account = Account::newcomer(world, &integrator).await;
        let [email, password] = ["email", "password"].map(|name| made[name].as_str().unwrap());
        let visitor = signed_in(world, email, password).await;
        let fields = [("address", "A house that came late")];
        let late = LateRequest::form(world, &account.path("/profile"), &visitor, &fields).await;
        if SESSION_WAYS.iter().any(|(name, _)| *name == way) {
            end_session(world, &visitor, email, password, way).await;
        } else {
            let path = format!("/ops/integrators/{}/{way}", made["id"]);
            admin
                .send("POST", &path, &json!({}))
                .await
                .expect_status(200);
        }
        late.expect_refused(status, way).await;
        let query = "SELECT COUNT(*) FROM taxpayers WHERE address = 'A house that came late'";
        assert_eq!(world.number(query).await, 0, "{way}");
    }
}

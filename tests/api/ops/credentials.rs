//! Credentials of ERP systems are sent to the origin they were set for, whatever URL the integrator sets later.

use serde_json::{Value, json};
use testkit::answer::Answer;
use testkit::documents;
use testkit::edit::with;
use testkit::patience::eventually;
use testkit::roles::{Operator, Taxpayer, webhook};
use testkit::{each_database, on_sqlite};

use crate::support::erp::{Erp, Gate};
use crate::support::ntlm::Account;
use crate::support::world::World;

const ACCOUNT: Account = Account {
    user: "erp_user",
    domain: "LAGOS",
    password: "Very-Secret-ERP-Password",
};
const BASIC: &str = "Basic ZXJwX3VzZXI6VmVyeS1TZWNyZXQtRVJQLVBhc3N3b3Jk";
const OTHER_HOST: &str = "The credentials were set for another host and were not sent: set the credentials again for this host";

fn path(taxpayer: i64) -> String {
    format!("/ops/taxpayers/{taxpayer}/integration")
}

/// A taxpayer with a webhook at its ERP.
struct ErpTaxpayer<'w> {
    world: &'w World,
    operator: Operator,
    taxpayer: Taxpayer,
    erp: Erp,
}

impl<'w> ErpTaxpayer<'w> {
    async fn at(world: &'w World, gate: Gate) -> Self {
        let taxpayer = world.taxpayer().await;
        let erp = Erp::start(gate);
        let fixture = Self {
            world,
            operator: world.new_operator().await,
            taxpayer,
            erp,
        };
        fixture.set_url(&fixture.erp.url()).await;
        fixture
    }

    async fn set_url(&self, url: &str) {
        let body = json!({ "webhook_url": url, "enabled_events": ["invoice.created"], "retry_schedule_s": [0] });
        let path = webhook(self.taxpayer.id);
        self.world
            .integrator()
            .send("PUT", &path, &body)
            .await
            .expect_status(200);
    }

    async fn put(&self, body: Value) -> Answer {
        self.operator
            .send("PUT", &path(self.taxpayer.id), &body)
            .await
    }

    async fn set(&self, auth_type: &str, auth: &Value) {
        let body = json!({ "auth_type": auth_type, "data_format": "rest", "auth": auth });
        self.put(body).await.expect_status(200);
    }

    async fn test(&self) -> Answer {
        self.world.integrator().test_webhook(self.taxpayer.id).await
    }
}

fn cases(erp: &Erp) -> Vec<(&'static str, Gate, Value)> {
    let account = json!({ "username": "erp_user", "password": "Very-Secret-ERP-Password" });
    let client = json!({ "token_url": erp.token_url(), "client_id": "c1", "client_secret": "s1" });
    vec![
        (
            "basic",
            Gate::Header("authorization", BASIC),
            account.clone(),
        ),
        (
            "api_key",
            Gate::Header("x-erp-key", "ERPKEY-123"),
            json!({ "header": "X-ERP-Key", "value": "ERPKEY-123" }),
        ),
        ("client_credentials", Gate::Token, client.clone()),
        (
            "oauth2",
            Gate::Token,
            with(&client, "refresh_token", json!("r1")),
        ),
        (
            "ntlm",
            Gate::Ntlm(ACCOUNT),
            with(&account, "domain", json!("LAGOS")),
        ),
    ]
}

#[on_sqlite]
async fn a_changed_url_gets_no_credentials_of_any_type(world: &World) {
    let fixture = ErpTaxpayer::at(world, Gate::Open).await;
    for (auth_type, gate, auth) in cases(&fixture.erp) {
        fixture.erp.set_gate(gate);
        fixture.set_url(&fixture.erp.url()).await;
        fixture.set(auth_type, &auth).await;
        let answer = fixture.test().await.expect_status(200);
        assert_eq!(
            answer.message(),
            "Connection test successful! Response code: 204",
            "{auth_type}"
        );
        let stranger = Erp::start(gate);
        let tokens = fixture.erp.token_calls().len();
        fixture.set_url(&stranger.url()).await;
        let answer = fixture
            .test()
            .await
            .expect_refusal(502, "WEBHOOK_UNREACHABLE");
        assert_eq!(answer.message(), OTHER_HOST, "{auth_type}");
        let graded = format!("{}/test?grade=true", webhook(fixture.taxpayer.id));
        let answer = world.integrator().call("POST", &graded).await;
        assert_eq!(
            answer.expect_refusal(502, "WEBHOOK_UNREACHABLE").message(),
            OTHER_HOST
        );
        let requests = (
            stranger.accepted().len(),
            stranger.refused(),
            stranger.token_calls().len(),
        );
        assert_eq!(
            requests,
            (0, 0, 0),
            "{auth_type}: nothing was sent, with or without credentials"
        );
        assert_eq!(
            fixture.erp.token_calls().len(),
            tokens,
            "{auth_type}: no token was asked for"
        );
        // Set again for this host, they are sent to it.
        stranger.set_gate(Gate::Open);
        fixture.set(auth_type, &auth).await;
        fixture.test().await;
        let requests = stranger.accepted().len() + stranger.refused();
        assert!(
            requests > 0,
            "{auth_type}: set for this host they are sent to it"
        );
        fixture.set_url(&fixture.erp.url()).await;
    }
}

#[on_sqlite]
async fn a_delivery_to_another_host_ends_as_auth_and_says_what_to_do(world: &World) {
    let fixture = ErpTaxpayer::at(world, Gate::Header("authorization", BASIC)).await;
    let (_, _, auth) = cases(&fixture.erp).remove(0);
    fixture.set("basic", &auth).await;
    let stranger = Erp::start(Gate::Open);
    fixture.set_url(&stranger.url()).await;
    fixture.taxpayer.invoice(&documents::invoice()).await;
    let integrator = world.integrator();
    let id = fixture.taxpayer.id;
    let dead = async || {
        let log = integrator
            .deliveries(id, "?state=dead")
            .await
            .expect_status(200);
        log.data()["data"].get(0).cloned()
    };
    let dead = eventually("a dead letter", dead).await;
    let attempt = &dead["attempts"][0];
    assert_eq!(
        (&attempt["status"], &attempt["failure"]),
        (&Value::Null, &json!("auth"))
    );
    let said = attempt["response"].as_str().unwrap();
    assert!(
        said.ends_with("set the credentials again for this host"),
        "{said}"
    );
    let of_taxpayer = format!("?taxpayer_id={id}");
    for letters in [
        fixture
            .taxpayer
            .get("/v1/tax-payers/webhook/dead-letters")
            .await,
        fixture.operator.dead_letters(&of_taxpayer).await,
    ] {
        let letter = letters.expect_status(200).data()["data"][0].clone();
        let why = letter["why"].as_str().unwrap();
        let what_to_do = letter["what_to_do"].as_str().unwrap();
        assert!(why.contains("could not be authenticated"), "{letter}");
        assert!(
            what_to_do.contains("set the credentials again for this host"),
            "{letter}"
        );
    }
    // A replay is an attempt as any other.
    let replay = format!(
        "{}/deliveries/{}/replay",
        webhook(id),
        dead["id"].as_str().unwrap()
    );
    integrator.call("POST", &replay).await.expect_status(200);
    let again = async || {
        let log = integrator
            .deliveries(id, "?state=dead")
            .await
            .expect_status(200);
        (log.data()["data"][0]["attempts"].as_array()?.len() == 2).then_some(())
    };
    eventually("the replay's end", again).await;
    assert_eq!((stranger.accepted().len(), stranger.refused()), (0, 0));
}

#[each_database]
async fn credentials_are_bound_to_the_url_of_the_moment_or_to_the_origin_that_is_named(
    world: &World,
) {
    let operator = world.new_operator().await;
    let taxpayer = world.newcomer().await;
    let put = async |auth: Value, origin: Value| {
        let body =
            json!({ "auth_type": "basic", "data_format": "rest", "auth": auth, "origin": origin });
        operator.send("PUT", &path(taxpayer.id), &body).await
    };
    let whole = json!({ "username": "ada", "password": "p" });
    let without = json!({ "username": "ada" });
    put(whole.clone(), Value::Null)
        .await
        .expect_faults(&["origin"]);
    put(whole.clone(), json!("https://erp.example.com/path"))
        .await
        .expect_faults(&["origin"]);
    let shown = put(whole.clone(), json!("https://ERP.example.com:443/"))
        .await
        .expect_status(200);
    assert_eq!(shown.data()["origin"], "https://erp.example.com");
    assert_eq!(
        operator.get(&path(taxpayer.id)).await.data()["origin"],
        "https://erp.example.com"
    );
    // What is stored stays for the same origin, and goes to no other.
    put(without.clone(), json!("https://erp.example.com"))
        .await
        .expect_status(200);
    let answer = put(without.clone(), json!("https://erp.example.com:8443")).await;
    let answer = answer.expect_faults(&["auth.password"]);
    assert_eq!(
        answer.message(),
        "The auth.password field is required: the stored one is for https://erp.example.com."
    );
    let integrator = world.integrator();
    integrator
        .set_webhook(taxpayer.id, "http://127.0.0.1:9/evil", &[])
        .await
        .expect_status(200);
    put(without, Value::Null)
        .await
        .expect_faults(&["auth.password"]);
    let shown = put(whole, Value::Null).await.expect_status(200);
    assert_eq!(
        shown.data()["origin"],
        "http://127.0.0.1:9",
        "that of the URL at this moment"
    );
    let audit = operator
        .audit(&format!("?actor=operator&taxpayer_id={}", taxpayer.id))
        .await;
    let entry = &audit.expect_status(200).data()["data"][0].clone();
    assert_eq!(
        entry["from_state"],
        "basic, rest, no system named, for https://erp.example.com"
    );
    assert_eq!(
        entry["to_state"],
        "basic, rest, no system named, for http://127.0.0.1:9"
    );
}

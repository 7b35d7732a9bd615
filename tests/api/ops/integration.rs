//! GET and PUT /ops/taxpayers/{id}/integration, and the notifications that come of it: each type of authentication
//! and each format at an ERP that knows no other.

use quick_xml::Reader;
use quick_xml::events::Event;
use serde_json::{Value, json};
use testkit::documents;
use testkit::patience::eventually;
use testkit::receiver::{Received, Receiver, Reply};
use testkit::roles::{Operator, Taxpayer};
use testkit::{each_database, on_sqlite};

use crate::support::erp::{Erp, Gate};
use crate::support::ntlm::Account;
use crate::support::world::World;

const ACCOUNT: Account = Account {
    user: "Ada",
    domain: "LAGOS",
    password: "päss word",
};

fn path(taxpayer: i64) -> String {
    format!("/ops/taxpayers/{taxpayer}/integration")
}

/// A taxpayer whose notifications go to an ERP.
struct ErpTaxpayer<'w> {
    world: &'w World,
    operator: Operator,
    taxpayer: Taxpayer,
    secret: String,
    erp: Erp,
}

impl<'w> ErpTaxpayer<'w> {
    async fn at(world: &'w World, gate: Gate) -> Self {
        let taxpayer = world.taxpayer().await;
        let erp = Erp::start(gate);
        let integrator = world.integrator();
        integrator
            .set_webhook(taxpayer.id, &erp.url(), &["invoice.created"])
            .await
            .expect_status(200);
        let secret = integrator.rotate_secret(taxpayer.id).await;
        Self {
            world,
            operator: world.new_operator().await,
            taxpayer,
            secret,
            erp,
        }
    }

    async fn set(&self, auth_type: &str, auth: Value) {
        let body = json!({ "auth_type": auth_type, "data_format": "rest", "auth": auth });
        self.operator
            .send("PUT", &path(self.taxpayer.id), &body)
            .await
            .expect_status(200);
    }

    async fn set_format(&self, data_format: &str, format: Value) {
        let body = json!({ "auth_type": "none", "data_format": data_format, "format": format });
        self.operator
            .send("PUT", &path(self.taxpayer.id), &body)
            .await
            .expect_status(200);
    }

    /// Client credentials at the ERP's own authorization server.
    async fn set_tokens(&self, auth_type: &str, refresh_token: Option<&str>) {
        let client =
            json!({ "token_url": self.erp.token_url(), "client_id": "c1", "client_secret": "s1" });
        let mut auth = client;
        if let Some(refresh_token) = refresh_token {
            auth["refresh_token"] = json!(refresh_token);
        }
        self.set(auth_type, auth).await;
    }

    /// The code that a test of the endpoint got.
    async fn code_of_test(&self) -> u16 {
        let answer = self
            .world
            .integrator()
            .test_webhook(self.taxpayer.id)
            .await
            .expect_status(200);
        answer
            .message()
            .rsplit(' ')
            .next()
            .unwrap()
            .parse()
            .unwrap()
    }

    async fn failure_of_test(&self) -> String {
        let answer = self.world.integrator().test_webhook(self.taxpayer.id).await;
        answer
            .expect_refusal(502, "WEBHOOK_UNREACHABLE")
            .message()
            .to_owned()
    }

    /// A notification of a real event, as the ERP took it.
    async fn notified(&self) -> Received {
        let before = self.erp.accepted().len();
        self.taxpayer.invoice(&documents::invoice()).await;
        let taken = async || self.erp.accepted().get(before).cloned();
        let taken = eventually("a notification", taken).await;
        assert!(
            taken.is_signed_with(&self.secret),
            "the bytes that were sent are signed"
        );
        taken
    }

    /// The attempts of the newest delivery, once that many were made.
    async fn attempts(&self, count: usize) -> Vec<Value> {
        let made = async || {
            let log = self
                .world
                .integrator()
                .deliveries(self.taxpayer.id, "")
                .await
                .expect_status(200);
            let attempts = log.data()["data"][0]["attempts"].as_array()?.clone();
            (attempts.len() >= count).then_some(attempts)
        };
        eventually("attempts", made).await
    }
}

#[each_database]
async fn what_is_not_set_is_signed_json_without_authentication(world: &World) {
    let operator = world.new_operator().await;
    let taxpayer = world.newcomer().await;
    let answer = operator.get(&path(taxpayer.id)).await.expect_status(200);
    let expected = json!({
        "taxpayer_id": taxpayer.id, "erp_system": null, "auth_type": "none", "data_format": "rest",
        "auth": {}, "origin": null, "allowed_networks": [], "format": {}, "secrets_set": [], "created_at": null, "updated_at": null,
    });
    assert_eq!(*answer.data(), expected);
    for nobody in ["0", "abc", "999999999", "%00"] {
        operator
            .get(&path(0).replace('0', nobody))
            .await
            .expect_refusal(404, "TAXPAYER_NOT_FOUND");
        let body = json!({ "auth_type": "none", "data_format": "rest" });
        let answer = operator
            .send("PUT", &path(0).replace('0', nobody), &body)
            .await;
        answer.expect_refusal(404, "TAXPAYER_NOT_FOUND");
    }
}

#[each_database]
async fn an_integration_is_shown_without_its_secrets_and_audited(world: &World) {
    let operator = world.new_operator().await;
    let taxpayer = world.newcomer().await;
    let body = json!({
        "erp_system": "sap", "auth_type": "oauth2", "data_format": "soap", "reason": "the go-live",
        "auth": { "token_url": "http://127.0.0.1:9/token", "client_id": "c1", "client_secret": "hush-1",
            "refresh_token": "hush-2", "scope": "notify", "client_authentication": "body" },
        "format": { "namespace": "urn:erp" }, "origin": "http://127.0.0.1:9",
    });
    let answer = operator
        .send("PUT", &path(taxpayer.id), &body)
        .await
        .expect_status(200);
    assert_eq!(answer.message(), "Integration updated successfully");
    let shown = operator.get(&path(taxpayer.id)).await.expect_status(200);
    assert_eq!(answer.data(), shown.data());
    let (auth, format) = (
        json!({ "token_url": "http://127.0.0.1:9/token", "client_id": "c1", "scope": "notify",
            "client_authentication": "body" }),
        json!({ "action": "urn:erp:Notify", "namespace": "urn:erp", "method": "Notify" }),
    );
    assert_eq!(
        (&shown.data()["auth"], &shown.data()["format"]),
        (&auth, &format)
    );
    assert_eq!(
        shown.data()["secrets_set"],
        json!(["client_secret", "refresh_token"])
    );
    let integrator = world.integrator();
    integrator
        .set_webhook(taxpayer.id, "http://127.0.0.1:9/", &[])
        .await
        .expect_status(200);
    let record = integrator.webhook(taxpayer.id).await.expect_status(200);
    let kinds = ["erp_system", "auth_type", "data_format"].map(|name| record.data()[name].clone());
    assert_eq!(kinds, ["sap", "oauth2", "soap"]);
    let audit = operator
        .audit(&format!("?actor=operator&taxpayer_id={}", taxpayer.id))
        .await
        .expect_status(200);
    let entry = &audit.data()["data"][0];
    let said = ["action", "from_state", "to_state", "reason"].map(|name| entry[name].clone());
    let expected = json!([
        "taxpayer.set-integration",
        null,
        "oauth2, soap, sap, for http://127.0.0.1:9",
        "the go-live"
    ]);
    assert_eq!(json!(said), expected);
    for text in [&answer.text, &shown.text, &record.text, &audit.text] {
        assert!(!text.contains("hush"), "{text}");
    }
}

#[on_sqlite]
async fn a_secret_is_required_where_none_is_stored_for_just_this(world: &World) {
    let operator = world.new_operator().await;
    let taxpayer = world.newcomer().await;
    let put = async |auth_type: &str, auth: Value| {
        let mut body = json!({ "auth_type": auth_type, "data_format": "rest", "auth": auth });
        if auth_type != "none" {
            body["origin"] = json!("http://127.0.0.1:9");
        }
        operator.send("PUT", &path(taxpayer.id), &body).await
    };
    put("basic", json!({ "username": "ada" }))
        .await
        .expect_faults(&["auth.password"]);
    put("basic", json!({ "username": "ada", "password": "p" }))
        .await
        .expect_status(200);
    put("basic", json!({ "username": "eve" }))
        .await
        .expect_status(200);
    put("ntlm", json!({ "username": "ada" }))
        .await
        .expect_faults(&["auth.password"]);
    put("api_key", json!({}))
        .await
        .expect_faults(&["auth.value"]);
    let client = |host: &str| json!({ "token_url": format!("http://{host}/t"), "client_id": "c" });
    let answer = put("oauth2", client("127.0.0.1:9")).await;
    answer.expect_faults(&["auth.client_secret", "auth.refresh_token"]);
    let mut whole = client("127.0.0.1:9");
    whole["client_secret"] = json!("s");
    put("client_credentials", whole).await.expect_status(200);
    put("client_credentials", client("127.0.0.1:9"))
        .await
        .expect_status(200);
    let elsewhere = put("client_credentials", client("127.0.0.1:10")).await;
    elsewhere.expect_faults(&["auth.client_secret"]);
    put("basic", json!({ "username": "a:b", "header": "x" }))
        .await
        .expect_faults(&["auth.header", "auth.username"]);
}

#[on_sqlite]
async fn basic_credentials_and_keys_are_those_that_were_set(world: &World) {
    let basic = Gate::Header("authorization", "Basic YWRhOnDDpHNzOiB3b3Jk");
    let fixture = ErpTaxpayer::at(world, basic).await;
    assert_eq!(fixture.code_of_test().await, 401);
    fixture
        .set(
            "basic",
            json!({ "username": "ada", "password": "päss: word" }),
        )
        .await;
    assert_eq!(fixture.code_of_test().await, 204);
    assert!(fixture.notified().await.header("webhook-id").len() > 10);
    fixture.erp.set_gate(Gate::Header("x-api-key", "k 1"));
    fixture.set("api_key", json!({ "value": "k 1" })).await;
    assert_eq!(fixture.code_of_test().await, 204);
    fixture.erp.set_gate(Gate::Header("x-erp-key", "k 1"));
    assert_eq!(fixture.code_of_test().await, 401);
    fixture
        .set("api_key", json!({ "header": "X-ERP-Key" }))
        .await;
    assert_eq!(fixture.notified().await.header("x-erp-key"), "k 1");
}

#[each_database]
async fn client_credentials_fetch_one_token_and_use_it_until_it_is_refused(world: &World) {
    let fixture = ErpTaxpayer::at(world, Gate::Token).await;
    fixture.set_tokens("client_credentials", None).await;
    for _ in 0..12 {
        fixture.taxpayer.invoice(&documents::invoice()).await;
    }
    let all = async || (fixture.erp.accepted().len() == 12).then_some(());
    eventually("twelve notifications", all).await;
    assert_eq!(fixture.code_of_test().await, 204);
    let calls = fixture.erp.token_calls();
    assert_eq!(calls.len(), 1, "{calls:?}");
    assert_eq!(calls[0].form["grant_type"], "client_credentials");
    assert_eq!(calls[0].authorization, "Basic YzE6czE=");
    assert_eq!(fixture.erp.refused(), 0);
    fixture.erp.revoke();
    assert_eq!(
        fixture.code_of_test().await,
        204,
        "made once more with a fresh token"
    );
    assert_eq!(
        (fixture.erp.token_calls().len(), fixture.erp.refused()),
        (2, 1)
    );
    fixture
        .erp
        .set_gate(Gate::Header("authorization", "nothing that comes"));
    assert_eq!(
        fixture.code_of_test().await,
        401,
        "and no more than once more"
    );
    assert_eq!(
        (fixture.erp.token_calls().len(), fixture.erp.refused()),
        (3, 3)
    );
}

#[on_sqlite]
async fn a_token_is_fetched_anew_when_it_ends_and_when_the_settings_change(world: &World) {
    let fixture = ErpTaxpayer::at(world, Gate::Token).await;
    fixture.erp.expire_in(0);
    fixture.set_tokens("client_credentials", None).await;
    for calls in 1..=3 {
        assert_eq!(fixture.code_of_test().await, 204);
        assert_eq!(fixture.erp.token_calls().len(), calls);
    }
    fixture.erp.expire_in(3_600);
    for _ in 0..2 {
        assert_eq!(fixture.code_of_test().await, 204);
        assert_eq!(fixture.erp.token_calls().len(), 4);
    }
    let client = json!({ "token_url": fixture.erp.token_url(), "client_id": "c2", "scope": "a b",
        "client_authentication": "body" });
    fixture.set("client_credentials", client).await;
    assert_eq!(
        fixture.notified().await.header("authorization"),
        "Bearer token-5"
    );
    let call = fixture.erp.token_calls().remove(4);
    assert_eq!(
        json!(call.form),
        json!({ "grant_type": "client_credentials", "client_id": "c2",
        "client_secret": "s1", "scope": "a b" })
    );
    assert_eq!(call.authorization, "");
}

#[each_database]
async fn a_refresh_token_that_the_server_replaces_is_kept(world: &World) {
    let fixture = ErpTaxpayer::at(world, Gate::Token).await;
    fixture.erp.rotate_from("refresh-0");
    fixture.set_tokens("oauth2", Some("refresh-0")).await;
    for _ in 0..3 {
        assert_eq!(fixture.code_of_test().await, 204);
        fixture.erp.revoke();
    }
    let sent: Vec<_> = fixture
        .erp
        .token_calls()
        .iter()
        .map(|call| call.form["refresh_token"].clone())
        .collect();
    assert_eq!(sent, ["refresh-0", "refresh-1", "refresh-2"]);
    // It is stored: settings without a refresh token continue with it.
    fixture.set_tokens("oauth2", None).await;
    assert_eq!(
        fixture.notified().await.header("authorization"),
        "Bearer token-4"
    );
    // What an operator sets goes before what the server gave.
    fixture.set_tokens("oauth2", Some("lost")).await;
    let said = fixture.failure_of_test().await;
    assert_eq!(
        said,
        "The token endpoint answered 400 invalid_grant: the refresh_token is no longer good; set a new one"
    );
}

#[on_sqlite]
async fn a_token_that_is_not_given_is_a_failed_attempt_that_says_what_to_do(world: &World) {
    let fixture = ErpTaxpayer::at(world, Gate::Token).await;
    fixture.set_tokens("client_credentials", None).await;
    let refusal =
        json!({ "error": "invalid_client", "error_description": "s1 is wrong" }).to_string();
    fixture.erp.answer_token_with(401, &refusal);
    fixture.erp.answer_token_with(500, "s1 is wrong");
    fixture.erp.answer_token_with(200, &"x".repeat(70_000));
    let taken = fixture.notified().await;
    assert_eq!(taken.header("authorization"), "Bearer token-4");
    let attempts = fixture.attempts(4).await;
    let said: Vec<_> = attempts
        .iter()
        .map(|attempt| json!([attempt["status"], attempt["failure"], attempt["response"]]))
        .collect();
    let invalid = "the token endpoint answered 401 invalid_client: correct client_id, client_secret or \
             client_authentication";
    let broken = "the token endpoint answered 500: see that auth.token_url is right and the client may use it";
    let unreadable =
        "the token endpoint answered no bearer token of RFC 6749: see that auth.token_url is right";
    assert_eq!(
        said,
        [
            json!([null, "auth", invalid]),
            json!([null, "auth", broken]),
            json!([null, "auth", unreadable]),
            json!([204, null, ""]),
        ]
    );
}

#[on_sqlite]
async fn ntlm_signs_in_each_request_over_a_connection_of_its_own(world: &World) {
    let fixture = ErpTaxpayer::at(world, Gate::Ntlm(ACCOUNT)).await;
    assert_eq!(fixture.code_of_test().await, 401);
    fixture
        .set(
            "ntlm",
            json!({ "username": "Ada", "domain": "LAGOS", "password": "päss word" }),
        )
        .await;
    assert_eq!(fixture.code_of_test().await, 204);
    let body = fixture.notified().await.body().clone();
    assert_eq!(body["type"], "invoice.created");
    fixture.notified().await;
    assert_eq!(
        fixture.erp.connections(),
        3,
        "none is used again, whoever signed in"
    );
    fixture
        .set(
            "ntlm",
            json!({ "username": "Ada", "domain": "LAGOS", "password": "wrong" }),
        )
        .await;
    assert_eq!(fixture.code_of_test().await, 401);
    fixture.set("ntlm", json!({ "username": "Ada" })).await;
    assert_eq!(fixture.code_of_test().await, 401, "another domain");
    fixture.erp.set_gate(Gate::Open);
    let said = "The endpoint did not ask for NTLM: enable it there, or set another auth_type";
    assert_eq!(fixture.failure_of_test().await, said);
}

/// The head of an answer accepts the notification. Waiting for the rest may not turn it into a failure.
#[on_sqlite]
async fn an_answer_whose_body_does_not_end_counts_with_any_credentials(world: &World) {
    let key = json!({ "header": "X-ERP-Key", "value": "k 1" });
    let ntlm = json!({ "username": "Ada", "domain": "LAGOS", "password": "päss word" });
    for (auth_type, gate, auth) in [
        ("api_key", Gate::Header("x-erp-key", "k 1"), Some(key)),
        ("client_credentials", Gate::Token, None),
        ("ntlm", Gate::Ntlm(ACCOUNT), Some(ntlm)),
    ] {
        let fixture = ErpTaxpayer::at(world, gate).await;
        match auth {
            Some(auth) => fixture.set(auth_type, auth).await,
            None => fixture.set_tokens(auth_type, None).await,
        }
        fixture.erp.leave_next_unfinished();
        assert_eq!(fixture.code_of_test().await, 200, "{auth_type}");
    }
}

#[on_sqlite]
async fn an_endpoint_without_ntlm_that_aborts_what_it_cannot_read_aborts_no_message(world: &World) {
    let fixture = ErpTaxpayer::at(world, Gate::Ntlm(ACCOUNT)).await;
    let plain = Receiver::start();
    fixture
        .set(
            "ntlm",
            json!({ "username": "Ada", "domain": "LAGOS", "password": "päss word" }),
        )
        .await;
    let integrator = world.integrator();
    integrator
        .set_webhook(fixture.taxpayer.id, &plain.url(), &["invoice.created"])
        .await
        .expect_status(200);
    plain.answer_always(Reply::Abort(400));
    fixture.taxpayer.invoice(&documents::invoice()).await;
    let attempt = fixture.attempts(1).await.remove(0);
    assert_eq!(
        (&attempt["status"], &attempt["failure"]),
        (&Value::Null, &json!("auth")),
        "{attempt}"
    );
    assert!(
        plain
            .received_notifications()
            .iter()
            .all(|one| one.bytes.is_empty()),
        "nothing was sent"
    );
    integrator
        .set_webhook(
            fixture.taxpayer.id,
            &fixture.erp.url(),
            &["invoice.created"],
        )
        .await
        .expect_status(200);
    eventually("the notification", async || fixture.erp.accepted().pop()).await;
}

#[on_sqlite]
async fn a_soap_envelope_holds_the_notification_and_its_fault_is_a_failure(world: &World) {
    let fixture = ErpTaxpayer::at(world, Gate::Open).await;
    fixture
        .set_format(
            "soap",
            json!({ "namespace": "http://erp.example/ws", "method": "PostEvent" }),
        )
        .await;
    let fault = |inside: &str| {
        format!(
            "<s:Envelope xmlns:s=\"http://schemas.xmlsoap.org/soap/envelope/\"><s:Body>{inside}</s:Body></s:Envelope>"
        )
    };
    fixture.erp.answer_next(
        200,
        &fault("<s:Fault><faultcode>s:Server</faultcode></s:Fault>"),
    );
    fixture.erp.answer_next(200, &fault("<PostEventResponse/>"));
    let taken = fixture.notified().await;
    assert_eq!(taken.header("content-type"), "text/xml; charset=utf-8");
    assert_eq!(
        taken.header("soapaction"),
        "\"http://erp.example/ws/PostEvent\""
    );
    let leaves = leaves(taken.text());
    let leaf = |path: &str| {
        let found = leaves.iter().find(|(at, _)| at == path);
        found
            .unwrap_or_else(|| panic!("{path} is not in {leaves:?}"))
            .1
            .clone()
    };
    assert_eq!(leaf("Envelope/Body/PostEvent/type"), "invoice.created");
    assert_eq!(
        leaf("Envelope/Body/PostEvent/id"),
        taken.header("webhook-id")
    );
    assert_eq!(
        leaf("Envelope/Body/PostEvent/data/invoice/invoice_category"),
        "B2B"
    );
    let attempts = fixture.attempts(2).await;
    assert_eq!(
        (&attempts[0]["status"], &attempts[0]["failure"]),
        (&json!(200), &json!("rejected"))
    );
    assert_eq!(
        (&attempts[1]["status"], &attempts[1]["failure"]),
        (&json!(200), &Value::Null)
    );
}

/// The texts of an XML document, each with the names that lead to it.
fn leaves(xml: &str) -> Vec<(String, String)> {
    let mut reader = Reader::from_str(xml);
    let mut names = Vec::new();
    let mut found = Vec::new();
    loop {
        match reader.read_event().unwrap() {
            Event::Start(element) => names.push(element.local_name().as_ref().to_owned()),
            Event::End(_) => drop(names.pop()),
            Event::Text(text) => found.push((names.join("/"), text.to_string())),
            Event::Eof => return found,
            _ => {}
        }
    }
}

#[on_sqlite]
async fn a_call_of_jsonrpc_is_answered_with_a_result_or_failed(world: &World) {
    let fixture = ErpTaxpayer::at(world, Gate::Open).await;
    fixture
        .set_format("jsonrpc", json!({ "method": "erp.notify" }))
        .await;
    let error = r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32603,"message":"Internal error"}}"#;
    fixture.erp.answer_next(200, error);
    fixture.erp.answer_next(
        200,
        r#"{"jsonrpc":"2.0","id":"of another call","result":true}"#,
    );
    fixture
        .erp
        .answer_next(200, r#"{"jsonrpc":"2.0","id":null,"result":true}"#);
    let taken = fixture.notified().await;
    let call = taken.body().clone();
    let expected = (
        json!("2.0"),
        json!("erp.notify"),
        json!(taken.header("webhook-id")),
    );
    assert_eq!(
        (
            call["jsonrpc"].clone(),
            call["method"].clone(),
            call["id"].clone()
        ),
        expected
    );
    assert_eq!(
        (&call["params"]["id"], &call["params"]["type"]),
        (&call["id"], &json!("invoice.created"))
    );
    let failures: Vec<_> = fixture
        .attempts(3)
        .await
        .iter()
        .map(|attempt| attempt["failure"].clone())
        .collect();
    assert_eq!(json!(failures), json!(["rejected", "rejected", null]));
}

#[on_sqlite]
async fn a_graphql_mutation_has_the_event_as_its_variable(world: &World) {
    let fixture = ErpTaxpayer::at(world, Gate::Open).await;
    let mutation = "mutation Take($event: EventInput!) { take(event: $event) { ok } }";
    fixture
        .set_format("graphql", json!({ "mutation": mutation }))
        .await;
    fixture
        .erp
        .answer_next(200, r#"{"data":{"take":null},"errors":[{"message":"no"}]}"#);
    fixture
        .erp
        .answer_next(200, r#"{"data":{"take":{"ok":true}}}"#);
    let taken = fixture.notified().await;
    let body = taken.body().clone();
    assert_eq!(body["query"], mutation);
    assert_eq!(body["variables"]["event"]["id"], taken.header("webhook-id"));
    let failures: Vec<_> = fixture
        .attempts(2)
        .await
        .iter()
        .map(|attempt| attempt["failure"].clone())
        .collect();
    assert_eq!(json!(failures), json!(["rejected", null]));
}

#[on_sqlite]
async fn an_odata_service_is_sent_a_flat_entity(world: &World) {
    let fixture = ErpTaxpayer::at(world, Gate::Open).await;
    fixture.set_format("odata", json!({})).await;
    fixture.erp.answer_next(201, "");
    let taken = fixture.notified().await;
    for (name, value) in [
        ("content-type", "application/json;odata.metadata=minimal"),
        ("odata-version", "4.0"),
        ("odata-maxversion", "4.0"),
        ("prefer", "return=minimal"),
    ] {
        assert_eq!(taken.header(name), value);
    }
    let entity = taken.body().clone();
    let names: Vec<_> = entity
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect();
    assert_eq!(
        names,
        [
            "Data",
            "Id",
            "Irn",
            "Sequence",
            "TaxpayerId",
            "Timestamp",
            "Type"
        ]
    );
    assert_eq!(
        (&entity["Type"], &entity["TaxpayerId"]),
        (&json!("invoice.created"), &json!(fixture.taxpayer.id))
    );
    let data: Value = strict_json::from_trusted(entity["Data"].as_str().unwrap()).unwrap();
    assert_eq!(data["irn"], entity["Irn"]);
}

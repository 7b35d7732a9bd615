//! GET /ops/integrators and /ops/operators, and the rotation and revocation of their keys.

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use testkit::documents::{self, number};
use testkit::patience::eventually;
use testkit::roles::{INVOICES, Integrator, Operator, TAXPAYERS, webhook};
use testkit::{each_database, on_sqlite};
use timing::clock::{Clock as _, SystemClock};

use crate::support::world::World;

/// The account that a key belongs to, among all that are listed. The id of a key is the beginning of its SHA-256.
async fn account_with(operator: &Operator, list: &str, key: &str) -> Value {
    let id = json!(hex::encode(Sha256::digest(key))[..12]);
    for page in 1.. {
        let found = operator
            .get(&format!("{list}?per_page=100&page={page}"))
            .await
            .expect_status(200);
        let accounts = found.data()["data"].as_array().unwrap();
        let has_key = |account: &&Value| {
            account["api_keys"]
                .as_array()
                .unwrap()
                .iter()
                .any(|key| key["id"] == id)
        };
        if let Some(account) = accounts.iter().find(has_key) {
            return account.clone();
        }
        assert!(!accounts.is_empty(), "no account has the key");
    }
    unreachable!("pages end")
}

/// A new integrator: its id and its key.
async fn new_integrator(world: &World, operator: &Operator) -> (i64, Integrator) {
    let integrator = world.new_integrator().await;
    let key = integrator.key().to_owned();
    let account = account_with(operator, "/ops/integrators", &key).await;
    (account["id"].as_i64().unwrap(), integrator)
}

#[each_database]
async fn an_operator_sees_the_accounts_with_their_keys_and_when_they_were_used(world: &World) {
    let operator = world.new_operator().await;
    let integrator = world.new_integrator().await;
    for (list, key) in [
        ("/ops/integrators", integrator.key()),
        ("/ops/operators", operator.key()),
    ] {
        let account = account_with(&operator, list, key).await;
        let key = &account["api_keys"][0];
        assert_eq!(
            account["api_keys"].as_array().unwrap().len(),
            1,
            "{account}"
        );
        assert_eq!(
            (&key["scope"], &key["is_valid"]),
            (&json!("full"), &json!(true))
        );
        assert_eq!(
            (&key["id"].as_str().unwrap().len(), &key["expires_at"]),
            (&12, &Value::Null)
        );
        assert!(key["created_at"].is_string(), "{account}");
        assert_eq!(
            account["name"].is_string(),
            list == "/ops/integrators",
            "{account}"
        );
        assert!(
            !account.to_string().contains("_key\":\""),
            "no text of a key: {account}"
        );
    }
}

#[each_database]
async fn the_last_use_of_a_key_is_shown_soon_after(world: &World) {
    let operator = world.new_operator().await;
    let integrator = world.new_integrator().await;
    integrator.get(TAXPAYERS).await.expect_status(200);
    let key = integrator.key().to_owned();
    let used = async || {
        let account = account_with(&operator, "/ops/integrators", &key).await;
        account["api_keys"][0]["last_used_at"].as_str().map(drop)
    };
    eventually("the last use of a key", used).await;
}

#[each_database]
async fn a_rotated_key_is_refused_at_once_or_after_its_overlap_and_the_audit_says_so(
    world: &World,
) {
    let operator = world.new_operator().await;
    let (id, integrator) = new_integrator(world, &operator).await;
    let first = integrator.key().to_owned();
    let rotate = format!("/ops/integrators/{id}/api-key/rotate");
    let lists = async |key: &str| world.anonymous().with_key(key).get(TAXPAYERS).await.status;

    let body = json!({ "overlap_s": 600, "reason": "yearly" });
    let answer = operator
        .send("POST", &rotate, &body)
        .await
        .expect_status(200);
    assert_eq!(
        (answer.header("cache-control"), &answer.data()["id"]),
        ("no-store", &json!(id))
    );
    let second = answer.data()["api_key"].as_str().unwrap().to_owned();
    assert!(second.starts_with("sik_"));
    assert_eq!(
        (lists(&first).await, lists(&second).await),
        (200, 200),
        "both are valid for a while"
    );

    let answer = operator.call("POST", &rotate).await.expect_status(200);
    let third = answer.data()["api_key"].as_str().unwrap().to_owned();
    assert_eq!(
        (
            lists(&first).await,
            lists(&second).await,
            lists(&third).await
        ),
        (401, 401, 200)
    );

    let audit = operator
        .audit(&format!("?subject={id}&integrator_id={id}"))
        .await
        .expect_status(200);
    let entries = audit.data()["data"].as_array().unwrap();
    let rotated: Vec<_> = entries
        .iter()
        .filter(|entry| entry["action"] == json!("integrator.rotate-key"))
        .collect();
    assert_eq!(rotated.len(), 2, "{}", audit.text);
    assert_eq!(
        (&rotated[1]["reason"], &rotated[1]["to_state"]),
        (&json!("yearly"), &json!("overlap_s 600"))
    );
    assert!(!audit.text.contains("sik_"), "{}", audit.text);
}

#[each_database]
async fn a_revoked_account_has_no_key_and_its_taxpayers_keep_theirs_unless_they_are_named(
    world: &World,
) {
    let operator = world.new_operator().await;
    let (id, integrator) = new_integrator(world, &operator).await;
    let taxpayer = world.newcomer_of(&integrator).await;
    let revoke = format!("/ops/integrators/{id}/api-key/revoke");

    let answer = operator.call("POST", &revoke).await.expect_status(200);
    assert_eq!(
        *answer.data(),
        json!({ "id": id, "revoked": 1, "revoked_of_taxpayers": 0, "ended_sessions": 0 })
    );
    integrator
        .get(TAXPAYERS)
        .await
        .expect_refusal(401, "INVALID_API_KEY");
    taxpayer.list_invoices("").await.expect_status(200);

    let answer = operator
        .send("POST", &revoke, &json!({ "taxpayer_keys": true }))
        .await;
    let data = answer.expect_status(200).data().clone();
    let ended = json!({ "id": id, "revoked": 0, "revoked_of_taxpayers": 1, "ended_sessions": 0 });
    assert_eq!(data, ended);
    taxpayer
        .list_invoices("")
        .await
        .expect_refusal(401, "INVALID_API_KEY");

    // The account itself is still there: a rotation gives it a key again.
    let rotate = format!("/ops/integrators/{id}/api-key/rotate");
    let answer = operator.call("POST", &rotate).await.expect_status(200);
    let key = answer.data()["api_key"].as_str().unwrap();
    world
        .anonymous()
        .with_key(key)
        .get(TAXPAYERS)
        .await
        .expect_status(200);
}

#[each_database]
async fn operators_are_thrown_out_by_operators(world: &World) {
    let operator = world.new_operator().await;
    let other = world.new_operator().await;
    let account = account_with(&operator, "/ops/operators", other.key()).await;
    let id = account["id"].as_i64().unwrap();
    let mut thrown_out = other;
    for path in ["rotate", "revoke"] {
        let answer = operator
            .call("POST", &format!("/ops/operators/{id}/api-key/{path}"))
            .await;
        let answer = answer.expect_status(200);
        thrown_out
            .get("/ops/audit")
            .await
            .expect_refusal(401, "INVALID_API_KEY");
        if let Some(key) = answer.data()["api_key"].as_str() {
            thrown_out = Operator::new(&world.client, key);
            thrown_out.get("/ops/audit").await.expect_status(200);
        }
    }
}

#[on_sqlite]
async fn a_read_only_key_reads_and_is_refused_each_write(world: &World) {
    let operator = world.new_operator().await;
    let (id, integrator) = new_integrator(world, &operator).await;
    world.newcomer_of(&integrator).await;
    let rotate = format!("/ops/integrators/{id}/api-key/rotate");
    let answer = operator
        .send("POST", &rotate, &json!({ "scope": "read_only" }))
        .await
        .expect_status(200);
    let key = answer.data()["api_key"].as_str().unwrap();
    let reader = world.anonymous().with_key(key);
    reader.get(TAXPAYERS).await.expect_status(200);
    reader
        .send("POST", TAXPAYERS, &documents::taxpayer())
        .await
        .expect_refusal(403, "KEY_READ_ONLY");
    reader
        .send_keyed(
            &format!("k{}", number()),
            "POST",
            TAXPAYERS,
            &documents::taxpayer(),
        )
        .await
        .expect_refusal(403, "KEY_READ_ONLY");
    let own = reader.get(TAXPAYERS).await.data()["data"][0]["id"]
        .as_i64()
        .unwrap();
    for (method, path) in [
        ("POST", format!("{TAXPAYERS}/{own}/api-key/rotate")),
        ("PATCH", format!("{TAXPAYERS}/{own}/profile")),
        ("PUT", webhook(own)),
        // It calls the receiver, whatever its method.
        ("GET", format!("{}/test", webhook(own))),
    ] {
        reader
            .send(method, &path, &json!({}))
            .await
            .expect_refusal(403, "KEY_READ_ONLY");
    }
    // A rotation that names no scope does not widen it.
    let answer = operator.call("POST", &rotate).await.expect_status(200);
    let key = answer.data()["api_key"].as_str().unwrap();
    let reader = world.anonymous().with_key(key);
    reader
        .send("POST", TAXPAYERS, &documents::taxpayer())
        .await
        .expect_refusal(403, "KEY_READ_ONLY");
}

#[each_database]
async fn a_taxpayers_key_may_overlap_read_only_and_expire_where_the_query_says_so(world: &World) {
    let taxpayer = world.taxpayer().await;
    let rotate = |query: &str| format!("{TAXPAYERS}/{}/api-key/rotate{query}", taxpayer.id);
    let integrator = world.integrator();
    let answer = integrator
        .call("POST", &rotate("?overlap_s=600&scope=read_only"))
        .await
        .expect_status(200);
    let key = answer.data()["api_key"].as_str().unwrap();
    taxpayer.list_invoices("").await.expect_status(200);
    let reader = world.anonymous().with_key(key);
    reader.get(INVOICES).await.expect_status(200);
    reader
        .send("POST", INVOICES, &documents::invoice())
        .await
        .expect_refusal(403, "KEY_READ_ONLY");
    taxpayer.invoice(&documents::invoice()).await;
    // Posted, and yet it only reads.
    let by_no = json!({ "unique_no": "X", "unique_no_type": "IRN" });
    let answer = reader
        .send("POST", &format!("{INVOICES}/get-by-unique-no"), &by_no)
        .await;
    assert_ne!(answer.status, 403, "{}", answer.text);
    for odd in [
        "?overlap_s=604801",
        "?overlap_s=x",
        "?scope=all",
        "?expires_at=2001-01-01T00:00:00Z",
    ] {
        integrator
            .call("POST", &rotate(odd))
            .await
            .expect_refusal(422, "VALIDATION_FAILED");
    }
    let soon = SystemClock.now() + std::time::Duration::from_secs(2);
    let query = format!("?scope=full&expires_at={soon}");
    let answer = integrator
        .call("POST", &rotate(&query))
        .await
        .expect_status(200);
    let key = answer.data()["api_key"].as_str().unwrap().to_owned();
    let expiring = world.anonymous().with_key(&key);
    let ended = async || (expiring.get(INVOICES).await.status == 401).then_some(());
    eventually("the end of a key", ended).await;
    expiring
        .get(INVOICES)
        .await
        .expect_refusal(401, "INVALID_API_KEY");
    taxpayer
        .list_invoices("")
        .await
        .expect_refusal(401, "INVALID_API_KEY");
}

#[on_sqlite]
async fn an_account_that_is_not_there_is_not_found(world: &World) {
    let operator = world.new_operator().await;
    for id in ["0", "999999999", "-1", "abc", "%00"] {
        for to in ["rotate", "revoke"] {
            let path = format!("/ops/integrators/{id}/api-key/{to}");
            operator
                .call("POST", &path)
                .await
                .expect_refusal(404, "INTEGRATOR_NOT_FOUND");
            let path = format!("/ops/operators/{id}/api-key/{to}");
            operator
                .call("POST", &path)
                .await
                .expect_refusal(404, "OPERATOR_NOT_FOUND");
        }
    }
    let path = "/ops/integrators/1/api-key/rotate";
    let odd = json!({ "overlap_s": -1, "scope": "all", "expires_at": "soon" });
    operator
        .send("POST", path, &odd)
        .await
        .expect_faults(&["expires_at", "overlap_s", "scope"]);
    let past = json!({ "expires_at": "2001-01-01T00:00:00Z" });
    operator
        .send("POST", path, &past)
        .await
        .expect_faults(&["expires_at"]);
}

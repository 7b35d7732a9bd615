//! Calls of the program beside a running service: keys that are taken back, secrets that get a new key, and checkpoints of
//! the log.

use std::process::Command;
use std::time::Duration;

use reqwest::Method;
use sea_orm::ConnectionTrait;
use serde_json::{Value, json};
use testkit::documents::invoice_numbered;
use testkit::edit::with;
use testkit::patience::eventually;
use testkit::{Backend, each_database};
use tokio::time::sleep;

use crate::support::client::Client;
use crate::support::database::{PostgresDatabase, connect};
use crate::support::database_queries::DatabaseQueries;
use crate::support::deployment::{Deployment, ENCRYPTION_KEY};
use crate::support::service::output_of;

const INTEGRATOR_PATH: &str = "/v1/system-integrators/taxpayers";
const OPERATOR_PATH: &str = "/ops/audit";
const EMAIL: &str = "keys@acme.example";
/// Base64 of 32 bytes.
const NEW_ENCRYPTION_KEY: &str = "Hx4dHBsaGRgXFhUUExIREA8ODQwLCgkIBwYFBAMCAQA=";
/// Longer than it takes to get the lease of cached keys.
const CALLS_UNTIL_CACHED: usize = 20;
const BETWEEN_CALLS: Duration = Duration::from_millis(10);
const CHECKPOINTS: [(&str, &str); 1] = [("EINVOICE__CHECKPOINTS__EVERY_S", "1")];

/// Runs a call that has to succeed; gives what it prints.
async fn run_and_parse(call: Command) -> Value {
    let done = output_of(call).await;
    assert!(
        done.status.success(),
        "{}",
        String::from_utf8_lossy(&done.stderr)
    );
    strict_json::from_untrusted(&done.stdout).unwrap()
}

/// Whether it succeeds, and what it prints and says.
async fn run_to_end(call: Command) -> (bool, String) {
    let done = output_of(call).await;
    let text = [done.stdout, done.stderr].concat();
    (done.status.success(), String::from_utf8(text).unwrap())
}

/// The account of a kind that these tests make.
async fn account_in_list(deployment: &Deployment, kind: &str) -> Value {
    let all = run_and_parse(deployment.service.call(&[kind, "list"])).await;
    let accounts = all[format!("{kind}s")].as_array().unwrap();
    accounts
        .iter()
        .find(|account| account["email"] == EMAIL)
        .unwrap()
        .clone()
}

async fn status(client: &Client, path: &str) -> u16 {
    client.get(path).await.unwrap().status
}

/// Uses a key until the service has it in memory.
async fn use_for_a_while(client: &Client, path: &str) {
    for _ in 0..CALLS_UNTIL_CACHED {
        assert_eq!(status(client, path).await, 200);
        sleep(BETWEEN_CALLS).await;
    }
}

/// Both are otherwise stored every few seconds only.
#[each_database]
async fn the_last_use_of_a_key_and_the_last_requests_are_stored_at_a_stop(backend: Backend) {
    let mut deployment = Deployment::open(backend).await;
    let create = ["operator", "create", "--email", EMAIL];
    let made = run_and_parse(deployment.service.call(&create)).await;
    let operator = Client::new(deployment.service.url(), made["api_key"].as_str().unwrap());
    assert_eq!(status(&operator, OPERATOR_PATH).await, 200);
    let unknown = format!("{INTEGRATOR_PATH}/999999");
    assert_eq!(status(&deployment.integrator, &unknown).await, 404);
    deployment.service.signal("TERM");
    let ended = deployment.service.wait_for_end().await;
    let output = deployment.service.output();
    assert_eq!(ended.code(), Some(0), "{output}");
    assert!(!output.contains("failed to write the last"), "{output}");
    let listed = account_in_list(&deployment, "operator").await;
    assert!(
        listed["api_keys"][0]["last_used_at"].is_string(),
        "{listed}"
    );
}

#[each_database]
async fn a_key_is_listed_rotated_and_revoked_beside_the_service(backend: Backend) {
    let deployment = Deployment::open(backend).await;
    for (kind, path, more) in [
        ("integrator", INTEGRATOR_PATH, &["--name", "Acme"] as &[_]),
        ("operator", OPERATOR_PATH, &[]),
    ] {
        let create = [&[kind, "create", "--email", EMAIL], more].concat();
        let made = run_and_parse(deployment.service.call(&create)).await;
        let client =
            |made: &Value| Client::new(deployment.service.url(), made["api_key"].as_str().unwrap());
        let first = client(&made);
        assert_eq!(status(&first, path).await, 200, "{kind}");
        eventually("the last use of the key", async || {
            account_in_list(&deployment, kind).await["api_keys"][0]["last_used_at"]
                .is_string()
                .then_some(())
        })
        .await;

        let number = made["id"].to_string();
        assert_eq!(
            number,
            account_in_list(&deployment, kind).await["id"].to_string()
        );
        use_for_a_while(&first, path).await;
        let second =
            client(&run_and_parse(deployment.service.call(&[kind, "rotate", &number])).await);
        assert_eq!(
            (status(&first, path).await, status(&second, path).await),
            (401, 200),
            "{kind}"
        );
        use_for_a_while(&second, path).await;
        let rotate = [
            kind,
            "rotate",
            &number,
            "--overlap-s",
            "600",
            "--scope",
            "read_only",
        ];
        let third = client(&run_and_parse(deployment.service.call(&rotate)).await);
        assert_eq!(
            (status(&second, path).await, status(&third, path).await),
            (200, 200),
            "{kind}"
        );
        let keys = account_in_list(&deployment, kind).await["api_keys"].clone();
        let terms: Vec<_> = keys
            .as_array()
            .unwrap()
            .iter()
            .map(|key| &key["scope"])
            .collect();
        assert_eq!(terms, ["read_only", "full"], "newest first: {keys}");
        assert!(
            keys[1]["expires_at"].is_string() && keys[0]["created_at"].is_string(),
            "{keys}"
        );

        use_for_a_while(&third, path).await;
        let revoked = run_and_parse(deployment.service.call(&[kind, "revoke", &number])).await;
        assert_eq!(revoked["revoked"], 2, "{revoked}");
        assert_eq!(
            (status(&second, path).await, status(&third, path).await),
            (401, 401),
            "{kind}"
        );
    }
}

#[each_database]
async fn secrets_are_sealed_anew_and_the_old_key_is_needed_no_more(backend: Backend) {
    let deployment = Deployment::open(backend).await;
    deployment.set_webhook("http://127.0.0.1:9/").await;
    let path = format!(
        "{INTEGRATOR_PATH}/{}/webhook/secret",
        deployment.taxpayer_id()
    );
    let made = deployment
        .integrator
        .call(Method::POST, &path, Some(&json!({})))
        .await
        .unwrap();
    assert_eq!(made.status, 200, "{made:?}");
    let old_keys = format!("[\"{ENCRYPTION_KEY}\"]");
    let reseal = |old_keys: &str| {
        let mut call = deployment.service.call(&["secrets", "reseal"]);
        call.env("EINVOICE__SECRETS__ENCRYPTION_KEY", NEW_ENCRYPTION_KEY);
        call.env("EINVOICE__SECRETS__ENCRYPTION_KEYS", old_keys);
        call
    };
    let (is_done, said) = run_to_end(reseal("[]")).await;
    assert!(!is_done && said.contains("open with no key"), "{said}");
    let sum = |resealed: &Value, name: &str| {
        let kinds = resealed["kinds"].as_object().unwrap().values();
        kinds.map(|kind| kind[name].as_u64().unwrap()).sum::<u64>()
    };
    let first = run_and_parse(reseal(&old_keys)).await;
    assert!(sum(&first, "resealed") >= 1, "{first}");
    let again = run_and_parse(reseal("[]")).await;
    assert_eq!(
        (sum(&again, "read"), sum(&again, "resealed")),
        (sum(&first, "read"), 0),
        "{again}"
    );
}

/// Cuts the end off by SQL beside the service: what is left is a whole chain.
async fn cut_last_event(deployment: &Deployment) {
    let url = deployment
        .postgres
        .as_ref()
        .map_or_else(|| deployment.sqlite_url(), PostgresDatabase::url);
    let of = format!("taxpayer_id = {}", deployment.taxpayer_id());
    let last = format!("{of} AND sequence = (SELECT MAX(sequence) FROM events WHERE {of})");
    connect(&url)
        .await
        .execute_unprepared(&format!("DELETE FROM events WHERE {last}"))
        .await
        .unwrap();
}

#[each_database]
async fn the_log_is_checkpointed_by_itself_and_on_demand_and_a_cut_is_named(backend: Backend) {
    let deployment = Deployment::with(backend, &CHECKPOINTS).await;
    deployment
        .taxpayer
        .create_invoice(&invoice_numbered("FIRST"))
        .await;
    let on_demand = run_and_parse(deployment.service.call(&["checkpoint"])).await;
    let file = on_demand["file"].as_str().unwrap();
    let key = on_demand["public_key"].as_str().unwrap();
    assert!(on_demand["number"].as_u64().unwrap() >= 1, "{on_demand}");
    deployment
        .taxpayer
        .create_invoice(&invoice_numbered("LAST"))
        .await;
    let head = DatabaseQueries::open(&deployment)
        .await
        .number("SELECT MAX(sequence) FROM events")
        .await;
    let signed = format!("{}:{head}:", deployment.taxpayer_id());
    let verify = || {
        run_to_end(
            deployment
                .service
                .call(&["verify", "--checkpoints", file, "--public-key", key]),
        )
    };
    eventually("a checkpoint by the service", async || {
        std::fs::read_to_string(file)
            .unwrap()
            .contains(&signed)
            .then_some(())
    })
    .await;
    let (is_whole, said) = verify().await;
    assert!(is_whole, "{said}");
    cut_last_event(&deployment).await;
    assert!(
        deployment.service.verify().await.0,
        "the chain alone is whole"
    );
    let (is_whole, said) = verify().await;
    let named = format!(
        "the chain of taxpayer {} was truncated",
        deployment.taxpayer_id()
    );
    assert!(!is_whole && said.contains(&named), "{said}");
}

#[each_database]
async fn a_file_is_imported_from_the_command_line(backend: Backend) {
    let deployment = Deployment::open(backend).await;
    let file = deployment.directory().join("july.ndjson");
    let good = invoice_numbered("JULY1");
    let faulty = with(&invoice_numbered("JULY2"), "currency", json!("NOWHERE"));
    std::fs::write(&file, format!("{good}\n{faulty}\n")).unwrap();
    let url = deployment.service.url();
    let path = file.to_str().unwrap();
    let call = |arguments: &[&str], key: &str| {
        let mut call = deployment.service.call(&["import", path, "--url", &url]);
        call.args(arguments).env("EINVOICE_IMPORT_KEY", key);
        call.stdin(std::process::Stdio::null());
        run_to_end(call)
    };
    let key = deployment.taxpayer.key();
    let (is_done, said) = call(&[], key).await;
    assert!(!is_done && said.contains("add --yes"), "{said}");
    assert!(said.contains("2 invoices: 1 to create"), "{said}");
    assert!(said.contains("1 × currency ("), "{said}");
    let (is_done, said) = call(&["--yes"], key).await;
    assert!(
        !is_done && said.contains("1 invoices were not created"),
        "{said}"
    );
    let errors = std::fs::read_to_string(file.with_extension("errors.csv")).unwrap();
    assert!(errors.contains("JULY2"), "{errors}");
    std::fs::write(&file, format!("{good}\n")).unwrap();
    let (is_done, said) = call(&["--yes"], key).await;
    assert!(
        is_done && said.contains("0 of 1 invoices created, 1 duplicates"),
        "{said}"
    );
    let (is_done, said) = call(&["--yes"], "tpk_wrong").await;
    assert!(!is_done && said.contains("refused"), "{said}");
    assert!(!said.contains("tpk_wrong"), "{said}");
}

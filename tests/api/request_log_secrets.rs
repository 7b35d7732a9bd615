//! No secret gets into the request log: none that a caller sends, in whatever place, and none that an answer shows. Every
//! operation of the API document is called with secrets in its body, its query string and its headers.

use serde_json::{Map, Value, json};
use testkit::answer::Answer;
use testkit::client::Client;
use testkit::on_sqlite;
use testkit::roles::{Integrator, Taxpayer};

use crate::support::world::{ALONE, World};

/// A secret that is sent. It is a password that the service accepts.
const MARK: &str = "Zq7-planted-mark-9";
/// The names of fields that carry secrets.
const SECRET_FIELDS: [&str; 12] = [
    "password",
    "api_key",
    "apiKey",
    "secret",
    "client_secret",
    "refresh_token",
    "access_token",
    "private_key",
    "crypto_key",
    "authorization",
    "cookie",
    "invitation_link",
];
/// The fields of answers whose values are secret.
const ANSWERED_SECRETS: [&str; 5] = ["api_key", "secret", "password", "private_key", "token"];
const INVITATION: &str = "/sign-in/invitation/";

/// The accounts of one integrator.
struct Callers {
    integrator: Integrator,
    taxpayer: Taxpayer,
    /// The taxpayer that the integrator acts on.
    other: Taxpayer,
    /// The id of the other taxpayer's contact person.
    contact: String,
}

struct Operation {
    method: String,
    path: String,
    example: Value,
}

impl Callers {
    /// The accounts of a new integrator: two taxpayers, of which the first one is also the other if it stands alone.
    async fn new(world: &World, is_alone: bool) -> Self {
        let integrator = world.new_integrator().await;
        let taxpayer = world.newcomer_of(&integrator).await;
        let other = if is_alone {
            taxpayer.clone()
        } else {
            world.newcomer_of(&integrator).await
        };
        let events = ["invoice.created"];
        integrator
            .set_webhook(other.id, "https://hooks.example.com/einvoice", &events)
            .await
            .expect_status(200);
        let path = format!("/v1/system-integrators/taxpayers/{}", other.id);
        let shown = integrator.get(&path).await.expect_status(200);
        Self {
            contact: shown.data()["users"][0]["id"].to_string(),
            integrator,
            taxpayer,
            other,
        }
    }

    /// Calls an operation with secrets beside its body, and returns the answer.
    async fn call(&self, operation: &Operation, body: &Value) -> Answer {
        let is_integrators = operation.path.starts_with("/v1/system-integrators");
        let caller: &Client = if is_integrators {
            &self.integrator
        } else {
            &self.taxpayer
        };
        let id = self.other.id.to_string();
        let path = operation.path.replace("{id}", &id);
        let path = path.replace("{contact_id}", &self.contact);
        let path = path.replace(['{', '}'], "");
        let path = format!("{path}?api_key={MARK}&webhook%5Fsecret={MARK}");
        let request = caller
            .request(&operation.method, &path)
            .header("authorization", format!("Bearer {MARK}"))
            .header("cookie", format!("session={MARK}"));
        match operation.method.as_str() {
            "GET" => Answer::to(request).await,
            _ => Answer::to(request.json(body)).await,
        }
    }

    fn keys(&self) -> [String; 3] {
        let keys = [self.integrator.key(), self.taxpayer.key(), self.other.key()];
        keys.map(str::to_owned)
    }
}

/// Returns all operations below `/v1/`.
async fn operations(world: &World) -> Vec<Operation> {
    let document = world.anonymous().get("/openapi.json").await;
    let document = document.expect_status(200).body;
    let mut all = Vec::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            let example = operation.pointer("/requestBody/content/application~1json/example");
            all.push(Operation {
                method: method.to_uppercase(),
                path: path.clone(),
                example: example.cloned().unwrap_or_else(|| json!({})),
            });
        }
    }
    all.retain(|operation| operation.path.starts_with("/v1/"));
    all
}

/// Adds each secret field to each object of a body, at any depth.
fn with_secrets(body: &Value) -> Value {
    match body {
        Value::Object(fields) => {
            let inner = fields
                .iter()
                .map(|(name, value)| (name.clone(), with_secrets(value)));
            let mut fields: Map<_, _> = inner.collect();
            for name in SECRET_FIELDS {
                fields.insert(name.to_owned(), json!(MARK));
            }
            fields.insert(
                "auth".to_owned(),
                json!({ "type": "API_KEY", "value": MARK }),
            );
            let nested =
                json!([{ "deeper": { "password": [MARK], "note": format!("tpk_{MARK}") } }]);
            fields.insert("nested".to_owned(), nested);
            Value::Object(fields)
        }
        Value::Array(items) => items.iter().map(with_secrets).collect(),
        other => other.clone(),
    }
}

/// Returns the secrets that an answer shows.
fn secrets_in(answer: &Value) -> Vec<String> {
    match answer {
        Value::Object(fields) => {
            let named = |(name, value): (&String, &Value)| {
                let text = value.as_str().unwrap_or_default();
                let link = text.split_once(INVITATION).map(|(_, token)| token);
                let is_secret = ANSWERED_SECRETS.contains(&name.as_str()) && !text.is_empty();
                let own = link.or_else(|| is_secret.then_some(text));
                let own = own.map(str::to_owned).into_iter();
                own.chain(secrets_in(value)).collect::<Vec<_>>()
            };
            fields.iter().flat_map(named).collect()
        }
        Value::Array(items) => items.iter().flat_map(secrets_in).collect(),
        _ => Vec::new(),
    }
}

/// Writes what is in memory, and fails if the log has one of these texts.
async fn assert_absent(world: &World, callers: &Callers, secrets: &[String]) {
    let list = "/v1/system-integrators/requests?per_page=1";
    callers.integrator.get(list).await.expect_status(200);
    for secret in secrets {
        let columns = ["path", "request", "response", "key_label", "invoice"];
        let found = columns.map(|column| format!("{column} LIKE '%{secret}%'"));
        let query = format!(
            "SELECT count(*) FROM request_log WHERE {}",
            found.join(" OR ")
        );
        assert_eq!(world.number(&query).await, 0, "{query}");
    }
}

#[on_sqlite(ALONE)]
async fn no_secret_that_is_sent_or_answered_is_in_the_log(world: &World) {
    let callers = Callers::new(world, false).await;
    let mut secrets = vec![MARK.to_owned()];
    secrets.extend(callers.keys());
    let mut failures = 0;
    let mut showing: Vec<(Operation, Value)> = Vec::new();
    for operation in operations(world).await {
        let example = operation.example.clone();
        let mut found = None;
        for body in [with_secrets(&example), example, json!({})] {
            let answer = callers.call(&operation, &body).await;
            failures += i64::from(answer.status >= 400);
            let shown = secrets_in(&answer.body);
            if !shown.is_empty() {
                found = Some(body);
            }
            secrets.extend(shown);
        }
        showing.extend(found.map(|body| (operation, body)));
    }
    assert_absent(world, &callers, &secrets).await;
    let logged = "SELECT count(*) FROM request_log WHERE status >= 400";
    assert_eq!(
        world.number(logged).await,
        failures,
        "all failures are kept"
    );
    for path in ["/api-key/rotate", "/webhook/secret", "/invitation"] {
        let is_shown = showing.iter().any(|one| one.0.path.ends_with(path));
        assert!(is_shown, "no answer of {path} showed a secret");
    }
    // Of good requests only some are kept. Those with a secret in their answer are made again, as the first of an account.
    for (operation, body) in &showing {
        let callers = Callers::new(world, true).await;
        let answer = callers.call(operation, body).await;
        let shown = secrets_in(&answer.body);
        assert!(answer.status < 300 && !shown.is_empty(), "{}", answer.text);
        assert_absent(world, &callers, &shown).await;
        let id = answer.header("x-request-id");
        let kept = format!(
            "SELECT count(*) FROM request_log WHERE request_id = '{id}' AND response LIKE '%omitted%'"
        );
        assert_eq!(world.number(&kept).await, 1, "{}", operation.path);
    }
}

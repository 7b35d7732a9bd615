//! Calls every path with every kind of key, on objects of another tenant. A key without the right to a path must be
//! refused, and no key may read or change another tenant's data. A path without a rule fails the test.

use actix_web::App;
use actix_web::dev::{Service, ServiceResponse};
use actix_web::http::Method;
use actix_web::middleware::from_fn;
use actix_web::test::{TestRequest, init_service, read_body};
use serde_json::{Value, json};

use crate::http::endpoint::Path;
use crate::http::forms::testing::{standard_invoice, submission, with_member};
use crate::http::table;
use crate::http::testing::{
    INTEGRATOR_KEY, OPERATOR_KEY, OTHER_INTEGRATOR_KEY, TAXPAYER, TAXPAYER_KEY, TestApp,
    new_integrator, new_key, start_apps,
};
use crate::store::accounts;

const READS: [Method; 2] = [Method::GET, Method::HEAD];
/// A text that all data of the other tenant contains, and that no other data contains.
const MARK: &str = "foreign-mark";
const INVOICES: &str = "/v1/tax-payers/invoices";
const TAXPAYERS: &str = "/v1/system-integrators/taxpayers";

/// The kind of key that may call a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rule {
    Public,
    /// The call is authorized by the token in the path and not by an API key.
    Token,
    Taxpayer,
    Integrator,
    AccessPoint,
    Operator,
}

const RULES: [(&str, Rule); 10] = [
    ("/v1/core/commons/invoice-categories", Rule::Public),
    ("/v1/core/", Rule::AccessPoint),
    ("/v1/tax-payers/", Rule::Taxpayer),
    ("/v1/system-integrators/", Rule::Integrator),
    ("/v1/app/", Rule::AccessPoint),
    ("/authority/notifications/{token}", Rule::Token),
    ("/health/", Rule::Public),
    ("/ops/", Rule::Operator),
    ("/openapi.json", Rule::Public),
    ("/docs", Rule::Public),
];

fn rule(pattern: &str) -> Rule {
    // In these tests only operators may read the metrics.
    if pattern == "/metrics" {
        return Rule::Operator;
    }
    if pattern == "/" {
        return Rule::Public;
    }
    let found = RULES.iter().find(|(prefix, _)| pattern.starts_with(prefix));
    found
        .unwrap_or_else(|| panic!("no rule says who may call {pattern}: add one"))
        .1
}

/// A kind of key, and the rules under which it is accepted.
#[derive(Debug, Clone)]
struct Key {
    name: &'static str,
    texts: Vec<String>,
    opens: &'static [Rule],
    reads_only: bool,
}

fn key(name: &'static str, texts: &[&str], opens: &'static [Rule]) -> Key {
    Key {
        name,
        texts: texts.iter().map(|text| (*text).to_owned()).collect(),
        opens,
        reads_only: false,
    }
}

/// The other tenant: its ids, its key and its data.
struct Foreign {
    taxpayer: i64,
    invoice: i64,
    taxpayer_key: String,
    irn: String,
    /// The other tenant's values for the parameters of paths, such as `{irn}`.
    places: Vec<(&'static str, String)>,
    body: Value,
}

struct Seen {
    status: u16,
    text: String,
}

impl Seen {
    fn data(&self) -> Value {
        let json: Value =
            strict_json::from_trusted(&self.text).unwrap_or_else(|_| panic!("{}", self.text));
        assert!(self.status < 300, "{}", self.text);
        json["data"].clone()
    }

    fn code(&self) -> String {
        let json: Value = strict_json::from_trusted(&self.text).unwrap_or_default();
        json["error_code"].as_str().unwrap_or_default().to_owned()
    }

    fn is_marked(&self) -> bool {
        self.text.to_ascii_lowercase().contains(MARK)
    }
}

struct Asked {
    method: Method,
    path: String,
    keys: Vec<String>,
    body: Option<Value>,
}

fn get(path: &str, key: &str) -> Asked {
    Asked {
        method: Method::GET,
        path: path.to_owned(),
        keys: vec![key.to_owned()],
        body: None,
    }
}

fn send(method: Method, path: &str, key: &str, body: Value) -> Asked {
    Asked {
        method,
        path: path.to_owned(),
        keys: vec![key.to_owned()],
        body: Some(body),
    }
}

fn request(asked: Asked) -> TestRequest {
    let mut request = TestRequest::default().method(asked.method).uri(&asked.path);
    for key in asked.keys {
        request = request.append_header(("x-api-key", key));
    }
    match asked.body {
        Some(body) => request.set_json(body),
        None => request,
    }
}

async fn read_response(response: ServiceResponse) -> Seen {
    let status = response.status().as_u16();
    Seen {
        status,
        text: String::from_utf8_lossy(&read_body(response).await).into_owned(),
    }
}

/// Posts a body and returns the data of the response.
async fn post(ask: &impl AsyncFn(Asked) -> Seen, path: &str, key: &str, body: Value) -> Value {
    ask(send(Method::POST, path, key, body)).await.data()
}

/// Onboards a taxpayer of another integrator, with a profile and a webhook. Returns the taxpayer's id and its key.
async fn onboard_foreign(ask: &impl AsyncFn(Asked) -> Seen) -> (i64, String) {
    let integrator = OTHER_INTEGRATOR_KEY;
    let onboarding = json!({
        "name": "foreign-mark Ltd", "email": "books@foreign-mark.example", "tin_no": "99887766-0001",
        "phone": "+2348010000000", "nature_of_business": "Milling", "authority_service_id": "F0E1D2C3",
        "authority_business_id": "99999999-9999-4999-8999-999999999999", "address": "9 foreign-mark Road",
        "contact_person": { "first_name": "Foreign", "last_name": "Person", "phone": "+2348020000000",
            "email": "person@foreign-mark.example", "password": "correct horse battery" },
    });
    let taxpayer = post(ask, TAXPAYERS, integrator, onboarding).await["id"]
        .as_i64()
        .unwrap();
    let of = |end: &str| format!("{TAXPAYERS}/{taxpayer}/{end}");
    let place = json!({ "city": "Lagos", "state": "Lagos", "country": "NG" });
    ask(send(Method::PATCH, &of("profile"), integrator, place))
        .await
        .data();
    let rotated = post(ask, &of("api-key/rotate"), integrator, json!({})).await;
    let taxpayer_key = rotated["api_key"].as_str().unwrap().to_owned();
    let url = json!({ "webhook_url": "https://hook.foreign-mark.example/", "enabled_events": ["invoice.created"] });
    ask(send(Method::PUT, &of("webhook"), integrator, url))
        .await
        .data();
    (taxpayer, taxpayer_key)
}

/// Creates a taxpayer of another integrator, and one object of each kind for that taxpayer.
async fn foreign(ask: &impl AsyncFn(Asked) -> Seen) -> Foreign {
    let integrator = OTHER_INTEGRATOR_KEY;
    let (taxpayer, taxpayer_key) = onboard_foreign(ask).await;
    let of = |end: &str| format!("{TAXPAYERS}/{taxpayer}/{end}");
    let invoice = with_member(
        &standard_invoice(),
        "/customer/name",
        Some(json!("foreign-mark customer")),
    );
    let invoice = with_member(&invoice, "/customer/tin", Some(json!("11223344-0001")));
    let made = post(ask, INVOICES, &taxpayer_key, invoice.clone()).await;
    let irn = made["irn"].as_str().unwrap().to_owned();
    let bulk = json!({ "invoices": [with_member(&invoice, "/invoice_no", Some(json!("INV002")))] });
    let batch =
        post(ask, &format!("{INVOICES}/bulk"), &taxpayer_key, bulk).await["batch_no"].clone();
    let submitted = with_member(&submission(), "/irn", Some(json!(irn)));
    let submitted = with_member(
        &submitted,
        "/accounting_supplier_party/tin",
        Some(json!("99887766-0001")),
    );
    let submitted = with_member(
        &submitted,
        "/business_id",
        Some(json!("99999999-9999-4999-8999-999999999999")),
    );
    // The authority is unreachable, so the run stays open.
    let run = ask(send(
        Method::POST,
        "/v1/app/invoices/submit",
        &taxpayer_key,
        submitted.clone(),
    ))
    .await;
    assert_eq!(run.status, 503, "{}", run.text);
    let replay = post(
        ask,
        &of("webhook/replay"),
        integrator,
        json!({ "since": 1, "only": "all" }),
    )
    .await;
    let deliveries = ask(get(&of("webhook/deliveries"), integrator)).await.data();
    let shown = ask(get(&format!("{TAXPAYERS}/{taxpayer}"), integrator))
        .await
        .data();
    let id = made["id"].as_i64().unwrap();
    let text = |value: &Value| {
        value
            .as_str()
            .map_or_else(|| value.to_string(), str::to_owned)
    };
    let places = vec![
        ("{irn}", irn.clone()),
        ("{batch_no}", text(&batch)),
        ("{contact_id}", text(&shown["users"][0]["id"])),
        ("{delivery_id}", text(&deliveries["data"][0]["id"])),
        ("{replay_id}", text(&replay["id"])),
        ("{reference}", uuid::Uuid::nil().to_string()),
        ("{list}", "countries".to_owned()),
        ("{file:.*}", "index.html".to_owned()),
        ("{token}", "not-the-token".to_owned()),
    ];
    let named = json!({
        "unique_no": irn, "unique_no_type": "IRN", "status": "approved", "payment_status": "PAID",
        "remark": "not mine", "taxpayer_id": taxpayer, "since": 1, "x": id,
    });
    let body = submitted
        .as_object()
        .unwrap()
        .iter()
        .chain(named.as_object().unwrap());
    let body = Value::Object(
        body.map(|(name, value)| (name.clone(), value.clone()))
            .collect(),
    );
    Foreign {
        taxpayer,
        invoice: id,
        taxpayer_key,
        irn,
        places,
        body,
    }
}

impl Foreign {
    /// Replaces the parameters of a path by the other tenant's values.
    fn path(&self, pattern: &str) -> String {
        let id = if pattern.starts_with(INVOICES) {
            self.invoice
        } else {
            self.taxpayer
        };
        let path = self
            .places
            .iter()
            .fold(pattern.to_owned(), |path, (name, value)| {
                path.replace(name, value)
            });
        let path = path.replace("{id}", &id.to_string());
        assert!(
            !path.contains('{'),
            "no value is known for a parameter of {pattern}: add one"
        );
        path
    }

    /// Returns true if the path contains the id of an object. Only the owner may see such an object.
    fn is_named_by(pattern: &str) -> bool {
        [
            "{id}",
            "{irn}",
            "{batch_no}",
            "{contact_id}",
            "{delivery_id}",
            "{replay_id}",
        ]
        .iter()
        .any(|name| pattern.contains(name))
    }

    /// Checks that the other tenant can read its own objects. Otherwise a missing object would look like a hidden one.
    async fn is_seen_by_itself(&self, ask: &impl AsyncFn(Asked) -> Seen) {
        for (path, key) in [
            (
                format!("{INVOICES}/{}", self.invoice),
                self.taxpayer_key.as_str(),
            ),
            (
                format!("{TAXPAYERS}/{}", self.taxpayer),
                OTHER_INTEGRATOR_KEY,
            ),
            (
                format!("{TAXPAYERS}/{}/webhook", self.taxpayer),
                OTHER_INTEGRATOR_KEY,
            ),
        ] {
            let own = ask(get(&path, key)).await;
            assert!(own.status == 200 && own.is_marked(), "{path}: {}", own.text);
        }
        for pattern in [
            "/v1/tax-payers/invoices/batches/{batch_no}",
            "/v1/tax-payers/invoices/{id}/timeline",
            "/v1/app/invoices/{irn}/run",
        ] {
            let own = ask(get(&self.path(pattern), &self.taxpayer_key)).await;
            assert_eq!(own.status, 200, "{pattern}: {}", own.text);
        }
        let replay = self.path("/v1/system-integrators/taxpayers/{id}/webhook/replays/{replay_id}");
        assert_eq!(ask(get(&replay, OTHER_INTEGRATOR_KEY)).await.status, 200);
    }

    /// Returns the other tenant's event log, which contains an event for every change.
    async fn events(&self, ask: &impl AsyncFn(Asked) -> Seen) -> Value {
        ask(get("/v1/tax-payers/events", &self.taxpayer_key))
            .await
            .data()
    }
}

/// Describes a response that is wrong: it breaks the path's rule for this key, or it shows data of the other tenant.
fn fault(path: &Path, method: &Method, key: &Key, seen: &Seen) -> Option<String> {
    let pattern = path.pattern;
    let rule = rule(pattern);
    let is_open = matches!(rule, Rule::Public | Rule::Token) || key.opens.contains(&rule);
    let is_one_key = matches!(key.texts.as_slice(), [text] if !text.is_empty());
    let refusal = match (rule, is_one_key) {
        (Rule::AccessPoint, true) => (403, "KEY_NOT_RECOGNIZED"),
        (_, true) => (401, "INVALID_API_KEY"),
        _ => (401, "UNAUTHENTICATED"),
    };
    let may_only_read = key.reads_only && !matches!(rule, Rule::Public | Rule::Token);
    let is_right = match (is_open, rule) {
        (false, _) if *method == Method::HEAD => seen.status == refusal.0,
        (false, _) => (seen.status, seen.code().as_str()) == refusal,
        (true, _) if may_only_read && !path.policy.only_reads(method) => {
            (seen.status, seen.code().as_str()) == (403, "KEY_READ_ONLY")
        }
        (true, Rule::Token) => seen.status == 404,
        // Operators may see the data of every tenant.
        (true, Rule::Public | Rule::Operator) => ![401, 403].contains(&seen.status),
        (true, _) if Foreign::is_named_by(pattern) => [401, 403, 404].contains(&seen.status),
        (true, _) => seen.status != 401,
    };
    let is_hidden = rule == Rule::Operator && is_open || !seen.is_marked();
    let said = || {
        format!(
            "{method} {pattern} with {}: {} {}",
            key.name, seen.status, seen.text
        )
    };
    (!is_right || !is_hidden).then(said)
}

async fn keys(test_app: &TestApp, ask: &impl AsyncFn(Asked) -> Seen) -> Vec<Key> {
    let rotate = format!("{TAXPAYERS}/{TAXPAYER}/api-key/rotate");
    let rotated = ask(send(Method::POST, &rotate, INTEGRATOR_KEY, json!({})))
        .await
        .data();
    let own = rotated["api_key"].as_str().unwrap();
    let beside = format!("{rotate}?scope=read_only&overlap_s=600");
    let reading = ask(send(Method::POST, &beside, INTEGRATOR_KEY, json!({})))
        .await
        .data();
    let reading = key(
        "a taxpayer's key that only reads",
        &[reading["api_key"].as_str().unwrap()],
        &[Rule::Taxpayer, Rule::AccessPoint],
    );
    let former = "sik_former";
    let now = test_app.state.now();
    let store = &test_app.state.store;
    let second = new_key("sik_latter");
    let integrator = accounts::add_integrator(store, &new_integrator("Former", former), now).await;
    accounts::replace_integrator_key(store, integrator.unwrap(), &second, now)
        .await
        .unwrap();
    vec![
        key("no key", &[], &[]),
        key("an empty key", &[""], &[]),
        key("two keys", &[own, own], &[]),
        key("a malformed key", &["odd"], &[]),
        key("a key with a blank", &[" tpk_ one"], &[]),
        key("an unknown prefix", &["xyz_one"], &[]),
        key("an unknown taxpayer's key", &["tpk_nobody"], &[]),
        key("an unknown integrator's key", &["sik_nobody"], &[]),
        key("an unknown operator's key", &["opk_nobody"], &[]),
        key("a taxpayer's former key", &[TAXPAYER_KEY], &[]),
        key("an integrator's former key", &[former], &[]),
        key(
            "a taxpayer's key",
            &[own],
            &[Rule::Taxpayer, Rule::AccessPoint],
        ),
        key(
            "an integrator's key",
            &[INTEGRATOR_KEY],
            &[Rule::Integrator, Rule::AccessPoint],
        ),
        key("an operator's key", &[OPERATOR_KEY], &[Rule::Operator]),
        Key {
            reads_only: true,
            ..reading
        },
    ]
}

#[actix_web::test]
async fn every_path_takes_its_keys_and_shows_nobody_what_is_another_tenants() {
    for test_app in start_apps().await {
        let state = test_app.state.clone();
        let app = App::new()
            .app_data(state)
            .wrap(from_fn(super::request_context))
            .configure(super::routes);
        let app = init_service(app).await;
        let ask = async |asked: Asked| {
            read_response(app.call(request(asked).to_request()).await.unwrap()).await
        };
        let foreign = foreign(&ask).await;
        foreign.is_seen_by_itself(&ask).await;
        let before = foreign.events(&ask).await;
        let mut faults = Vec::new();
        let mut count = 0;
        for key in keys(&test_app, &ask).await {
            for path in table() {
                // An operator's key may change any tenant's data, so operators' paths are tested only with reads.
                let is_theirs =
                    rule(path.pattern) == Rule::Operator && key.opens.contains(&Rule::Operator);
                for method in path
                    .allowed
                    .iter()
                    .filter(|method| !is_theirs || READS.contains(method))
                {
                    let has_body = !READS.contains(method);
                    let body = has_body.then(|| foreign.body.clone());
                    let target = foreign.path(path.pattern);
                    let seen = ask(Asked {
                        method: method.clone(),
                        path: target,
                        keys: key.texts.clone(),
                        body,
                    })
                    .await;
                    faults.extend(fault(&path, method, &key, &seen));
                    count += 1;
                }
            }
        }
        assert!(
            faults.is_empty(),
            "{} of {count} answers are wrong:\n{}",
            faults.len(),
            faults.join("\n")
        );
        assert_eq!(
            foreign.events(&ask).await,
            before,
            "nobody changed anything of {}",
            foreign.irn
        );
        foreign.is_seen_by_itself(&ask).await;
        println!("{count} requests over {} paths", table().len());
    }
}

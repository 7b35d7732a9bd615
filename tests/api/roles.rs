//! Each role of an operator on each path of `/ops` and `/console`. The list of paths comes from the handlers' own
//! parameters, so that a new path is tested as soon as it exists.

use einvoice::app;
use einvoice::internals::{KeyTerms, OperatorPath, OperatorRole, operator_paths};
use serde_json::Value;
use testkit::documents::number;
use testkit::on_sqlite;

use crate::support::visitor::Visitor;
use crate::support::world::World;

/// The text that a form of another session is refused with, before it does anything.
const FOREIGN_FORM: &str = "This form was not sent from a page of this service";

/// What all forms ask for.
const FIELDS: [(&str, &str); 9] = [
    ("as_of", "1"),
    ("day", "2026-01-15"),
    ("irn", "INV1-94AD90FB-20261121"),
    ("move", "disable"),
    ("panics", "1"),
    ("reason", "x"),
    ("role", "viewer"),
    ("subscription", "active"),
    ("taxpayer_id", "1"),
];

/// Fills the parameters of a path with an id that nothing has.
fn filled(pattern: &str) -> String {
    let parts = pattern
        .split('/')
        .map(|part| if part.starts_with('{') { "0" } else { part });
    parts.collect::<Vec<_>>().join("/")
}

/// Calls a path with a key. The body is no JSON, so that a call that is admitted changes nothing.
async fn call(http: &reqwest::Client, root: &str, key: &str, path: &OperatorPath) -> (u16, String) {
    let url = format!("{root}{}", filled(path.pattern));
    let request = http
        .request(path.method.parse().unwrap(), url)
        .header("x-api-key", key);
    let request = if path.method == "GET" {
        request
    } else {
        request.body("{")
    };
    let answer = request
        .header("content-type", "application/json")
        .send()
        .await
        .unwrap();
    (answer.status().as_u16(), answer.text().await.unwrap())
}

/// True for pages that end, unlike the streams.
fn is_page(path: &OperatorPath) -> bool {
    path.pattern.starts_with("/console") && !path.pattern.starts_with("/console/live/")
}

#[test]
fn a_path_that_reads_is_for_each_role_and_one_that_acts_is_not() {
    let paths = operator_paths();
    assert!(paths.len() > 80, "{}", paths.len());
    for OperatorPath {
        method,
        pattern,
        least_role,
    } in &paths
    {
        let reads = method == "GET" && !pattern.ends_with("/move/preview");
        assert_eq!(
            *least_role == Some(OperatorRole::Viewer),
            reads,
            "{method} {pattern} needs {least_role:?}"
        );
    }
    let accounts = [
        "disable",
        "enable",
        "remove",
        "role",
        "api-key/",
        "access",
        "second-factor/",
        "invitation",
        "keys/",
    ];
    let others = [
        "integration",
        "verify",
        "subscription",
        "development/",
        "panic",
    ];
    for OperatorPath {
        pattern,
        least_role,
        ..
    } in paths.iter().filter(|path| path.method != "GET")
    {
        let is_admins = accounts
            .iter()
            .chain(&others)
            .any(|part| pattern.contains(&format!("/{part}")));
        assert_eq!(
            *least_role == Some(OperatorRole::Admin),
            is_admins,
            "{pattern} needs {least_role:?}"
        );
    }
}

#[on_sqlite]
async fn a_key_carries_the_role_of_its_operator(world: &World) {
    let http = reqwest::Client::builder()
        .no_proxy()
        .tls_certs_only([])
        .build()
        .unwrap();
    for role in OperatorRole::ALL {
        let email = format!("operator{}@house.example", number());
        let made = app::create_operator(world.settings(), email, *role, KeyTerms::default())
            .await
            .unwrap();
        assert_eq!(made["role"], role.as_str());
        let key = made["api_key"].as_str().unwrap();
        for path in operator_paths()
            .iter()
            .filter(|path| path.pattern.starts_with("/ops/"))
        {
            let (status, text) = call(&http, &world.root(), key, path).await;
            let named = format!("{role}: {} {}: {status} {text}", path.method, path.pattern);
            if path.least_role.is_some_and(|least| *role < least) {
                let answer: Value = strict_json::from_trusted(&text).unwrap();
                assert_eq!(
                    (status, &answer["error_code"]),
                    (403, &"ROLE_INSUFFICIENT".into()),
                    "{named}"
                );
                assert!(!text.contains("api_key"), "{named}");
            } else {
                assert!(![401, 403].contains(&status) && status < 500, "{named}");
            }
        }
    }
}

#[on_sqlite]
async fn a_session_carries_the_role_of_its_operator(world: &World) {
    for role in OperatorRole::ALL {
        let visitor = Visitor::operator(world, *role).await;
        let csrf = visitor.get("/account/password").await.expect(200).csrf();
        for path in operator_paths().iter().filter(|path| is_page(path)) {
            let is_allowed = path.least_role.is_some_and(|least| *role >= least);
            let place = filled(path.pattern);
            let reads = path.method == "GET";
            let named = format!("{role}: {} {place}", path.method);
            let once = number().to_string();
            let form = |csrf| [&FIELDS[..], &[("csrf", csrf), ("once", once.as_str())]].concat();
            let seen = match (reads, is_allowed) {
                (true, _) => visitor.get(&place).await,
                (false, true) => visitor.send(&place, &form("another")).await,
                (false, false) => visitor.send(&place, &form(&csrf)).await,
            };
            match (reads, is_allowed) {
                (true, true) => assert!(
                    [200, 303, 404, 422].contains(&seen.status),
                    "{named} {}",
                    seen.html
                ),
                (false, true) => {
                    assert!(
                        seen.status == 403 && seen.html.contains(FOREIGN_FORM),
                        "{named} {}",
                        seen.html
                    );
                }
                (_, false) => {
                    let says = ["Your role may look", "Only an operator with the role admin"];
                    let is_named = says.iter().any(|sentence| seen.html.contains(sentence));
                    assert!(seen.status == 403 && is_named, "{named} {}", seen.html);
                }
            }
        }
    }
}

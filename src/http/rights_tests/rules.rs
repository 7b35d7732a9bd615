//! The rules that say which keys may call which paths, and the check that a response obeys them.

use actix_web::http::Method;
use serde_json::json;

use super::TAXPAYERS;
use super::calls::{CallResponse, TestCall, send};
use super::tenant::OtherTenant;
use crate::http::paths::Path;
use crate::http::testing::{
    INTEGRATOR_KEY, OPERATOR_KEY, TAXPAYER, TAXPAYER_KEY, TestApp, new_integrator, new_key,
};
use crate::store::accounts;

/// The kind of key that may call a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rule {
    Public,
    /// The call is authorized by the token in the path and not by an API key.
    Token,
    Taxpayer,
    Integrator,
    AccessPoint,
    Operator,
}

const RULES: [(&str, Rule); 9] = [
    ("/v1/core/commons/invoice-categories", Rule::Public),
    ("/v1/core/", Rule::AccessPoint),
    ("/v1/tax-payers/", Rule::Taxpayer),
    ("/v1/system-integrators/", Rule::Integrator),
    ("/v1/app/", Rule::AccessPoint),
    ("/authority/notifications/{token}", Rule::Token),
    ("/health/", Rule::Public),
    ("/ops/", Rule::Operator),
    ("/openapi.json", Rule::Public),
];

pub(super) fn rule_for_path(pattern: &str) -> Rule {
    // In these tests only operators may read the metrics.
    if pattern == "/metrics" {
        return Rule::Operator;
    }
    if pattern == "/" {
        return Rule::Public;
    }
    let rule = RULES.iter().find(|(prefix, _)| pattern.starts_with(prefix));
    rule.unwrap_or_else(|| panic!("no rule says who may call {pattern}: add one"))
        .1
}

/// A kind of key, and the rules under which it is accepted.
#[derive(Debug, Clone)]
pub(super) struct Key {
    name: &'static str,
    pub(super) texts: Vec<String>,
    pub(super) accepted_rules: &'static [Rule],
    is_read_only: bool,
}

fn key(name: &'static str, texts: &[&str], accepted_rules: &'static [Rule]) -> Key {
    Key {
        name,
        texts: texts.iter().map(|text| (*text).to_owned()).collect(),
        accepted_rules,
        is_read_only: false,
    }
}

pub(super) async fn keys(
    test_app: &TestApp,
    ask: &impl AsyncFn(TestCall) -> CallResponse,
) -> Vec<Key> {
    let rotate = format!("{TAXPAYERS}/{TAXPAYER}/api-key/rotate");
    let rotated = ask(send(Method::POST, &rotate, INTEGRATOR_KEY, json!({})))
        .await
        .data();
    let taxpayer_key = rotated["api_key"].as_str().unwrap();
    let read_only_rotation = format!("{rotate}?scope=read_only&overlap_s=600");
    let read_only = ask(send(
        Method::POST,
        &read_only_rotation,
        INTEGRATOR_KEY,
        json!({}),
    ))
    .await
    .data();
    let read_only_key = key(
        "a taxpayer's key that only reads",
        &[read_only["api_key"].as_str().unwrap()],
        &[Rule::Taxpayer, Rule::AccessPoint],
    );
    let former_key = "sik_former";
    let now = test_app.state.now();
    let store = &test_app.state.store;
    let new_integrator_key = new_key("sik_latter");
    let integrator =
        accounts::add_integrator(store, &new_integrator("Former", former_key), now).await;
    accounts::rotate_integrator_key(store, integrator.unwrap(), &new_integrator_key, now)
        .await
        .unwrap();
    vec![
        key("no key", &[], &[]),
        key("an empty key", &[""], &[]),
        key("two keys", &[taxpayer_key, taxpayer_key], &[]),
        key("a malformed key", &["odd"], &[]),
        key("a key with a blank", &[" tpk_ one"], &[]),
        key("an unknown prefix", &["xyz_one"], &[]),
        key("an unknown taxpayer's key", &["tpk_nobody"], &[]),
        key("an unknown integrator's key", &["sik_nobody"], &[]),
        key("an unknown operator's key", &["opk_nobody"], &[]),
        key("a taxpayer's former key", &[TAXPAYER_KEY], &[]),
        key("an integrator's former key", &[former_key], &[]),
        key(
            "a taxpayer's key",
            &[taxpayer_key],
            &[Rule::Taxpayer, Rule::AccessPoint],
        ),
        key(
            "an integrator's key",
            &[INTEGRATOR_KEY],
            &[Rule::Integrator, Rule::AccessPoint],
        ),
        key("an operator's key", &[OPERATOR_KEY], &[Rule::Operator]),
        Key {
            is_read_only: true,
            ..read_only_key
        },
    ]
}

/// Describes a response that is wrong: it breaks the path's rule for this key, or it shows data of the other tenant.
pub(super) fn wrong_response_sentence(
    path: &Path,
    method: &Method,
    key: &Key,
    response: &CallResponse,
) -> Option<String> {
    let pattern = path.pattern;
    let rule = rule_for_path(pattern);
    let is_open = matches!(rule, Rule::Public | Rule::Token) || key.accepted_rules.contains(&rule);
    let is_one_key = matches!(key.texts.as_slice(), [text] if !text.is_empty());
    let refusal = match (rule, is_one_key) {
        (Rule::AccessPoint, true) => (403, "KEY_NOT_RECOGNIZED"),
        (_, true) => (401, "INVALID_API_KEY"),
        _ => (401, "UNAUTHENTICATED"),
    };
    let may_only_read = key.is_read_only && !matches!(rule, Rule::Public | Rule::Token);
    let is_right = match (is_open, rule) {
        (false, _) if *method == Method::HEAD => response.status == refusal.0,
        (false, _) => (response.status, response.code().as_str()) == refusal,
        (true, _) if may_only_read && !path.policy.only_reads(method) => {
            (response.status, response.code().as_str()) == (403, "KEY_READ_ONLY")
        }
        (true, Rule::Token) => response.status == 404,
        // Operators may see the data of every tenant.
        (true, Rule::Public | Rule::Operator) => ![401, 403].contains(&response.status),
        (true, _) if OtherTenant::has_object_id(pattern) => {
            [401, 403, 404].contains(&response.status)
        }
        (true, _) => response.status != 401,
    };
    let is_hidden = rule == Rule::Operator && is_open || !response.is_marked();
    let sentence = || {
        format!(
            "{method} {pattern} with {}: {} {}",
            key.name, response.status, response.text
        )
    };
    (!is_right || !is_hidden).then(sentence)
}

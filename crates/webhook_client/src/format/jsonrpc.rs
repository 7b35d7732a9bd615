//! JSON-RPC 2.0: a call with the notification as parameters and the event's id as id.
//! <https://www.jsonrpc.org/specification>

use serde_json::Value;

pub(super) fn render(method: &str, id: &str, notification: &str) -> String {
    let method = Value::from(method);
    let id = Value::from(id);
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":{method},"params":{notification}}}"#)
}

/// Returns true if the response is the result of the call with this id, and not an error.
pub(super) fn is_accepted(id: &str, answer: &str) -> bool {
    let Ok(Value::Object(answer)) = strict_json::from_untrusted(answer.as_bytes()) else {
        return false;
    };
    let is_for_another_call = answer.get("id").is_some_and(|of| !of.is_null() && of != id);
    let has_error = answer.get("error").is_some_and(|error| !error.is_null());
    answer.contains_key("result") && !has_error && !is_for_another_call
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_call_has_the_event_as_its_parameters_and_its_id() {
        let text = render("erp.\"notify\"", "e1", r#"{"id":"e1","data":{"n":1.50}}"#);
        assert!(text.contains("1.50"), "digits are kept");
        let call: Value = strict_json::from_trusted(&text).unwrap();
        assert_eq!(
            (&call["jsonrpc"], &call["id"]),
            (&json!("2.0"), &json!("e1"))
        );
        assert_eq!(
            (&call["method"], &call["params"]["id"]),
            (&json!("erp.\"notify\""), &json!("e1"))
        );
    }

    #[test]
    fn only_a_result_of_this_call_is_acceptance() {
        for (answer, taken) in [
            (r#"{"jsonrpc":"2.0","id":"e1","result":null}"#, true),
            (
                r#"{"jsonrpc":"2.0","id":"e1","result":{"ok":true},"error":null}"#,
                true,
            ),
            (r#"{"result":1}"#, true),
            (r#"{"jsonrpc":"2.0","id":"e2","result":1}"#, false),
            (
                r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error"}}"#,
                false,
            ),
            (
                r#"{"jsonrpc":"2.0","id":"e1","result":1,"error":{"code":1,"message":"m"}}"#,
                false,
            ),
            (r#"{"jsonrpc":"2.0","id":"e1"}"#, false),
            (r#"[{"jsonrpc":"2.0","id":"e1","result":1}]"#, false),
            (r#"{"jsonrpc":"2.0","id":"e1","resu"#, false),
            ("ok", false),
        ] {
            assert_eq!(is_accepted("e1", answer), taken, "{answer}");
        }
    }
}

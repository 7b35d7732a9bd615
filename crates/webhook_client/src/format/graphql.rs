//! GraphQL over HTTP: a mutation with the notification as variable `event`. The body is read because errors may have
//! status 200. <https://graphql.github.io/graphql-over-http/draft/>

use serde_json::Value;

pub(super) const ACCEPTED_TYPES: &str = "application/graphql-response+json, application/json;q=0.9";

pub(super) fn render(mutation: &str, notification: &str) -> String {
    format!(
        r#"{{"query":{},"variables":{{"event":{notification}}}}}"#,
        Value::from(mutation)
    )
}

/// Returns true if the response has data and no error.
pub(super) fn is_accepted(answer: &str) -> bool {
    let Ok(Value::Object(answer)) = strict_json::from_untrusted(answer.as_bytes()) else {
        return false;
    };
    answer.get("data").is_some_and(|data| !data.is_null())
        && answer
            .get("errors")
            .is_none_or(|errors| errors.is_null() || errors.as_array().is_some_and(Vec::is_empty))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_event_is_a_variable_of_the_mutation() {
        let mutation = "mutation ($event: JSON!) {\n  take(event: $event, as: \"erp\")\n}";
        let text = render(mutation, r#"{"id":"e1","n":1.50}"#);
        assert!(text.contains("1.50"));
        let body: Value = strict_json::from_trusted(&text).unwrap();
        assert_eq!(
            (&body["query"], &body["variables"]["event"]["id"]),
            (&json!(mutation), &json!("e1"))
        );
    }

    #[test]
    fn a_response_with_errors_is_not_acceptance() {
        for (answer, taken) in [
            (r#"{"data":{"take":true}}"#, true),
            (r#"{"data":{"take":null},"errors":[]}"#, true),
            (
                r#"{"data":{"take":null},"errors":[{"message":"no"}]}"#,
                false,
            ),
            (r#"{"data":{"take":null},"errors":"no"}"#, false),
            (r#"{"data":null}"#, false),
            (r#"{"errors":[{"message":"no"}]}"#, false),
            ("{}", false),
            ("<html>", false),
        ] {
            assert_eq!(is_accepted(answer), taken, "{answer}");
        }
    }
}

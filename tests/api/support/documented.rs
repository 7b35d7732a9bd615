//! Compares every answer that a test receives with the API document, so that no schema can differ from an answer: the
//! status and the error code must be listed, and the body must match the schema in both directions. A required field is
//! there, and no field is there that the schema does not name.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, LazyLock, Mutex};

use jsonschema::{Draft, Validator};
use serde_json::{Map, Value, json};
use testkit::answer::{Answer, Exchange};

static DOCUMENT: LazyLock<Document> = LazyLock::new(|| {
    let text = strict_json::from_trusted(einvoice::app::openapi_document()).unwrap();
    Document::new(text)
});

/// Panics if the answer of a documented path differs from the document. Other paths, such as pages, have none.
pub(crate) fn check(exchange: Exchange<'_>) {
    let differences = DOCUMENT.differences(exchange);
    let Exchange {
        method,
        path,
        answer,
    } = exchange;
    assert!(
        differences.is_empty(),
        "{method} {path} answers {} otherwise than /openapi.json says: {}\n{}",
        answer.status,
        differences.join("; "),
        answer.text
    );
}

/// Panics if a value differs from the schema at this pointer into the document.
pub(crate) fn check_value(schema: &str, value: &Value) {
    let found = DOCUMENT.text.pointer(schema);
    let found = found.unwrap_or_else(|| panic!("{schema} is not in the document"));
    let validator = DOCUMENT.validator_at(schema.to_owned(), found);
    let faults = validator.iter_errors(value);
    let faults: Vec<_> = faults
        .map(|fault| format!("{fault} at `{}`", fault.instance_path()))
        .collect();
    assert!(
        faults.is_empty(),
        "{schema}: {}: {value}",
        faults.join("; ")
    );
}

/// One path of the document: its segments, where `None` stands for a parameter, and its operations by method.
struct Path {
    template: String,
    segments: Vec<Option<String>>,
    operations: BTreeMap<String, Value>,
}

struct Document {
    text: Value,
    paths: Vec<Path>,
    /// The validator of each schema that was needed so far, by its reference or by its place.
    validators: Mutex<HashMap<String, Arc<Validator>>>,
}

impl Document {
    fn new(text: Value) -> Self {
        let mut paths: Vec<Path> = text["paths"]
            .as_object()
            .unwrap()
            .iter()
            .map(Path::new)
            .collect();
        // A path without parameters comes before one that has a parameter in that place.
        paths.sort_by_key(|path| {
            path.segments
                .iter()
                .filter(|segment| segment.is_none())
                .count()
        });
        Self {
            text,
            paths,
            validators: Mutex::default(),
        }
    }

    fn differences(&self, exchange: Exchange<'_>) -> Vec<String> {
        let steps: Vec<_> = exchange.path.split('/').collect();
        let Some(path) = self.paths.iter().find(|known| known.fits(&steps)) else {
            return Vec::new();
        };
        let method = exchange.method.to_lowercase();
        let is_head = method == "head";
        let method = if is_head { "get" } else { method.as_str() };
        let answer = exchange.answer;
        let Some(operation) = path.operations.get(method) else {
            let is_refused = answer.code() == "METHOD_NOT_ALLOWED" || answer.status == 405;
            return if is_refused {
                Vec::new()
            } else {
                vec!["the method is not in the document".to_owned()]
            };
        };
        let Some(response) = operation["responses"].get(answer.status.to_string()) else {
            return vec![format!(
                "the status is not listed; the code is {}",
                answer.code()
            )];
        };
        if is_head {
            return Vec::new();
        }
        let mut differences = Vec::new();
        let described = response["description"].as_str().unwrap();
        let has_codes = response["content"]["application/problem+json"].is_object();
        if has_codes && !described.split(", ").any(|code| code == answer.code()) {
            differences.push(format!(
                "{} is not one of the codes {described}",
                answer.code()
            ));
        }
        let Some(contents) = response["content"].as_object() else {
            if !answer.text.is_empty() {
                differences.push("it has a body".to_owned());
            }
            return differences;
        };
        let kind = media_type(answer);
        match contents
            .iter()
            .find(|(listed, _)| without_parameters(listed) == kind)
        {
            Some((_, content)) => {
                let schema = &content["schema"];
                // Failures have one schema, whatever refuses and wherever: its validator is made once.
                let place = match schema["$ref"].as_str() {
                    Some(reference) => reference.to_owned(),
                    None => format!("{method} {} {} {kind}", path.template, answer.status),
                };
                differences.extend(self.faults(place, schema, answer));
            }
            None => differences.push(format!("{kind} is not a listed media type")),
        }
        differences
    }

    fn faults(&self, place: String, schema: &Value, answer: &Answer) -> Vec<String> {
        let media_type = media_type(answer);
        if media_type != "application/json" && !media_type.ends_with("+json") {
            return Vec::new();
        }
        let validator = self.validator_at(place, schema);
        // To find that there is no fault takes less than to describe faults.
        if validator.is_valid(&answer.body) {
            return Vec::new();
        }
        let faults = validator.iter_errors(&answer.body);
        faults
            .map(|fault| format!("{} at `{}`", fault, fault.instance_path()))
            .collect()
    }

    /// Returns the validator of the schema at this place, which is made when it is needed first.
    fn validator_at(&self, place: String, schema: &Value) -> Arc<Validator> {
        let mut validators = self.validators.lock().unwrap();
        let validator = validators
            .entry(place)
            .or_insert_with(|| Arc::new(self.validator(schema)));
        Arc::clone(validator)
    }

    fn validator(&self, schema: &Value) -> Validator {
        let closed = self.closed(schema, false);
        let options = jsonschema::options()
            .with_draft(Draft::Draft202012)
            .should_validate_formats(true);
        options.build(&closed).unwrap()
    }

    /// Returns the schema with its references resolved, in which each object that names its fields has no others. A part
    /// of an object (`allOf`) is left open: the whole of it is closed.
    fn closed(&self, schema: &Value, is_part: bool) -> Value {
        let fields = match schema {
            Value::Object(fields) => fields,
            Value::Array(all) => return all.iter().map(|one| self.closed(one, is_part)).collect(),
            other => return other.clone(),
        };
        if let Some(Value::String(reference)) = fields.get("$ref") {
            let target = self
                .text
                .pointer(reference.trim_start_matches('#'))
                .unwrap();
            return self.closed(target, is_part);
        }
        let has_parts = fields.contains_key("allOf");
        let inner = |(name, value): (&String, &Value)| {
            let value = match name.as_str() {
                "properties" => {
                    let all = value.as_object().unwrap().iter();
                    all.map(|(name, field)| (name.clone(), self.closed(field, false)))
                        .collect::<Map<_, _>>()
                        .into()
                }
                "allOf" => self.closed(value, true),
                "oneOf" | "anyOf" => self.closed(value, is_part),
                "items" | "additionalProperties" => self.closed(value, false),
                _ => value.clone(),
            };
            (name.clone(), value)
        };
        let mut closed: Map<_, _> = fields.iter().map(inner).collect();
        let names_fields =
            fields.contains_key("properties") && !fields.contains_key("additionalProperties");
        if (names_fields || has_parts) && !is_part {
            closed.insert("unevaluatedProperties".to_owned(), json!(false));
        }
        closed.into()
    }
}

impl Path {
    fn new((template, item): (&String, &Value)) -> Self {
        let is_literal = |step: &&str| !step.starts_with('{');
        let segments = template
            .split('/')
            .map(|step| Some(step).filter(is_literal).map(str::to_owned))
            .collect();
        let operations = item.as_object().unwrap().clone().into_iter().collect();
        Self {
            template: template.clone(),
            segments,
            operations,
        }
    }

    fn fits(&self, steps: &[&str]) -> bool {
        let fits = |(known, step): (&Option<String>, &&str)| {
            known.as_ref().is_none_or(|known| known == step)
        };
        steps.len() == self.segments.len() && self.segments.iter().zip(steps).all(fits)
    }
}

fn media_type(answer: &Answer) -> &str {
    without_parameters(answer.header("content-type"))
}

fn without_parameters(media_type: &str) -> &str {
    media_type.split(';').next().unwrap_or_default().trim()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn difference(method: &str, path: &str, status: u16, body: Value) -> String {
        let mut headers = reqwest::header::HeaderMap::new();
        headers.insert("content-type", "application/json".parse().unwrap());
        let answer = Answer {
            status,
            headers,
            text: body.to_string(),
            body,
        };
        DOCUMENT
            .differences(Exchange {
                method,
                path,
                answer: &answer,
            })
            .join("; ")
    }

    #[test]
    fn an_answer_that_differs_from_the_document_is_told() {
        let live = "/health/live";
        let failure = |code: &str| json!({ "success": false, "message": "m", "data": null, "error_code": code, "request_id": "r" });
        let list = "/v1/core/commons/invoice-categories";
        let lists = "/v1/tax-payers/invoices";
        let option = |extra: Value| {
            let mut option = json!({ "label": "B2B", "value": "B2B" });
            option
                .as_object_mut()
                .unwrap()
                .extend(extra.as_object().unwrap().clone());
            json!({ "success": true, "message": "m", "data": { "invoice_categories": [option] } })
        };
        for (method, path, status, body, told) in [
            ("GET", list, 200, option(json!({})), ""),
            (
                "GET",
                list,
                200,
                option(json!({ "colour": "red" })),
                "colour",
            ),
            (
                "GET",
                list,
                200,
                option(json!({ "value": 1 })),
                "is not of type \"string\"",
            ),
            (
                "GET",
                list,
                200,
                json!({ "success": true, "message": "m" }),
                "\"data\" is a required property",
            ),
            ("GET", list, 418, json!({}), "the status is not listed"),
            ("GET", list, 429, failure("RATE_LIMITED"), ""),
            (
                "GET",
                list,
                429,
                failure("INVOICE_LOCKED"),
                "INVOICE_LOCKED is not one of the codes RATE_LIMITED",
            ),
            (
                "DELETE",
                live,
                200,
                json!({}),
                "the method is not in the document",
            ),
            ("GET", lists, 304, json!({}), "it has a body"),
            ("DELETE", live, 405, failure("METHOD_NOT_ALLOWED"), ""),
            ("GET", "/no/such/path", 200, json!(1), ""),
        ] {
            let found = difference(method, path, status, body);
            assert!(
                found.contains(told) && found.is_empty() == told.is_empty(),
                "{method} {path}: {found}"
            );
        }
    }
}

//! The operations of the API document, as the reference shows them.

use std::sync::LazyLock;

use serde_json::Value;

use crate::http::openapi_document;

static DOCUMENT: LazyLock<Value> =
    LazyLock::new(|| strict_json::from_trusted(openapi_document()).unwrap_or_default());

/// A part of the API with its operations.
pub(super) struct ApiPart {
    pub(super) name: &'static str,
    pub(super) purpose: &'static str,
    pub(super) operations: Vec<Operation>,
}

/// One operation of the API document.
#[derive(Debug, Clone, Copy)]
pub(super) struct Operation {
    pub(super) id: &'static str,
    pub(super) summary: &'static str,
    pub(super) method: &'static str,
    pub(super) path: &'static str,
    /// The operation's object in the API document.
    pub(super) node: &'static Value,
}

static OPERATIONS: LazyLock<Vec<Operation>> = LazyLock::new(|| {
    let paths = DOCUMENT["paths"].as_object().into_iter().flatten();
    paths
        .flat_map(|(path, item)| {
            let methods = item.as_object().into_iter().flatten();
            methods.map(|(method, node)| Operation::new(method, path, node))
        })
        .collect()
});

/// Returns the schema with this name in the components of the API document.
pub(super) fn find_schema(reference: &str) -> Option<&'static Value> {
    let name = reference.strip_prefix("#/components/schemas/")?;
    DOCUMENT["components"]["schemas"].get(name)
}

/// Returns the example of a failure with this error code, as JSON text; an empty text if the document has none.
pub(super) fn failure_example(code: &str) -> String {
    let example = &DOCUMENT["components"]["examples"][code]["value"];
    if example.is_null() {
        String::new()
    } else {
        format!("{example:#}")
    }
}

/// Returns all operations, in the order of the API document.
pub(super) fn all() -> &'static [Operation] {
    &OPERATIONS
}

pub(super) fn find_by_id(id: &str) -> Option<Operation> {
    all().iter().copied().find(|operation| operation.id == id)
}

/// Returns the parts of the API with their operations.
pub(super) fn api_parts() -> Vec<ApiPart> {
    let tags = DOCUMENT["tags"].as_array().into_iter().flatten();
    tags.map(|tag| {
        let name = text_member(tag, "name");
        let operations = all()
            .iter()
            .filter(|operation| operation.api_part_name() == name);
        ApiPart {
            name,
            purpose: text_member(tag, "description"),
            operations: operations.copied().collect(),
        }
    })
    .collect()
}

/// Returns a text member of an object; an empty text if it has none.
pub(super) fn text_member(object: &'static Value, name: &str) -> &'static str {
    object[name].as_str().unwrap_or_default()
}

impl Operation {
    fn new(method: &'static str, path: &'static str, node: &'static Value) -> Self {
        Self {
            id: text_member(node, "operationId"),
            summary: text_member(node, "summary"),
            method,
            path,
            node,
        }
    }

    /// Returns the address of the operation's page.
    pub(super) fn page_path(&self) -> String {
        format!("/docs/reference/{}", self.id)
    }

    pub(super) fn method_in_capitals(&self) -> String {
        self.method.to_uppercase()
    }

    pub(super) fn api_part_name(&self) -> &'static str {
        self.node["tags"][0].as_str().unwrap_or_default()
    }

    pub(super) fn description(&self) -> &'static str {
        text_member(self.node, "description")
    }

    pub(super) fn parameters(&self) -> &'static [Value] {
        self.node["parameters"]
            .as_array()
            .map_or(&[], Vec::as_slice)
    }

    /// Returns the names of the kinds of keys that the operation takes.
    pub(super) fn key_schemes(&self) -> Vec<&'static str> {
        let schemes = self.node["security"].as_array().into_iter().flatten();
        let names = schemes
            .filter_map(Value::as_object)
            .flat_map(|scheme| scheme.keys());
        names.map(String::as_str).collect()
    }

    /// Returns the JSON of the request body: the schema and the example.
    pub(super) fn json_body(&self) -> Option<&'static Value> {
        self.node.pointer("/requestBody/content/application~1json")
    }

    /// Returns the answers with their statuses.
    pub(super) fn answers(&self) -> impl Iterator<Item = (&'static str, &'static Value)> {
        let node = self.node;
        let answers = node["responses"].as_object().into_iter().flatten();
        answers.map(|(status, answer)| (status.as_str(), answer))
    }

    /// Returns the error codes of the operation, each with its status in the answers of this operation.
    pub(super) fn failures(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        let failed = self.answers().filter(|(_, answer)| is_failure(answer));
        failed.flat_map(|(status, answer)| {
            let codes = text_member(answer, "description").split(", ");
            codes.map(move |code| (status, code))
        })
    }
}

/// True if an answer is a failure, which has error codes. The 503 of a service that is not ready has none.
pub(super) fn is_failure(answer: &Value) -> bool {
    answer
        .pointer("/content/application~1problem+json")
        .is_some()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::respond::code::ErrorCode;

    /// The page of an operation leads to the page of each of these codes.
    #[test]
    fn each_failure_of_an_operation_is_an_error_code() {
        for operation in all() {
            for (status, name) in operation.failures() {
                let mut codes = ErrorCode::ALL.iter();
                let is_code = codes.any(|code| code.as_str() == name);
                assert!(is_code, "{} {status} {name}", operation.id);
            }
        }
        let ready = find_by_id("ready").unwrap();
        assert!(ready.failures().all(|(status, _)| status != "503"));
        assert!(ready.answers().any(|(status, _)| status == "503"));
    }

    #[test]
    fn an_operation_is_found_by_its_id_and_stands_in_its_part() {
        let operation = find_by_id("create_invoice").unwrap();
        assert_eq!(
            (operation.method, operation.path),
            ("post", "/v1/tax-payers/invoices")
        );
        assert_eq!(operation.key_schemes(), ["taxpayer_key"]);
        assert!(
            operation
                .failures()
                .any(|one| one == ("422", "VALIDATION_FAILED"))
        );
        let parts = api_parts();
        let listed: usize = parts.iter().map(|part| part.operations.len()).sum();
        assert_eq!(listed, all().len());
        assert!(parts.iter().all(|part| !part.purpose.is_empty()));
    }
}

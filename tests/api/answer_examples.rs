//! The examples of answers and failures in the API document: real answers with fixed secrets, ids and moments.
//! `EINVOICE_WRITE_DOCS=1 cargo test --test api answers` writes them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use jiff::Timestamp;
use jiff::civil::DateTime;
use serde_json::{Value, json};
use testkit::answer::Answer;

const FILE: &str = "src/http/openapi/examples/answers.json";
const FAILURES_FILE: &str = "src/http/openapi/examples/failures.json";
/// More entries of a list tell a reader nothing new.
const ENTRIES_MAX: usize = 2;
/// Stand in examples for a moment in either of its formats, for a UUID, and for the 64 digits of a hash.
const MOMENT: &str = "2026-01-15T10:00:00.000000Z";
const MOMENT_OF_CONTRACT: &str = "2026-01-15 10:00:00";
const UUID: &str = "019bc0de-0000-7000-8000-000000000001";
const HASH: &str = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08";
/// Members with a value that nobody else may see, and that no scanner for secrets shall find here.
const SECRETS: [&str; 3] = ["api_key", "secret", "link"];
/// Operations whose answers describe examples themselves: linters take these for their own.
const WITHOUT_EXAMPLE: [&str; 2] = ["openapi", "list_webhook_events"];
/// The beginning of a link that is a secret, too.
const SHARED: &str = "/shared/";

/// Codes without an example: only a broken connection, a defect or a setting of the whole service causes them.
const CODES_WITHOUT_EXAMPLE: [&str; 5] = [
    "AUTHORITY_DOCUMENT_UNREADABLE",
    "INTERNAL_ERROR",
    "REQUEST_TIMEOUT",
    "TAXPAYER_LIMIT_REACHED",
    "TAXPAYER_UNVERIFIED",
];

/// The successful JSON answers of a story: by operation, then by status.
pub(crate) struct AnswerExamples {
    by_operation: BTreeMap<String, BTreeMap<String, Value>>,
    presenter: Presenter,
}

/// Makes an example of an answer: without secrets, and without what differs from day to day.
pub(crate) struct Presenter {
    /// The address of the service that answered.
    root: String,
}

impl AnswerExamples {
    /// Begins a collection of the answers of the service at this address.
    pub(crate) fn new(root: String) -> Self {
        Self {
            by_operation: BTreeMap::new(),
            presenter: Presenter::new(root),
        }
    }

    pub(crate) fn add(&mut self, operation: &str, answer: &Answer) {
        if answer.status < 300 && !answer.body.is_null() && !WITHOUT_EXAMPLE.contains(&operation) {
            let shown = self.presenter.presentable(&answer.body);
            let by_status = self.by_operation.entry(operation.to_owned()).or_default();
            by_status.insert(answer.status.to_string(), shown);
        }
    }

    /// Expects that the document has an example of each answer, with the same members.
    pub(crate) fn are_those_of(&self, document: &Value) {
        if std::env::var_os("EINVOICE_WRITE_DOCS").is_some() {
            let text = serde_json::to_string_pretty(&self.by_operation).unwrap();
            fs::write(
                Path::new(env!("CARGO_MANIFEST_DIR")).join(FILE),
                text + "\n",
            )
            .unwrap();
            return;
        }
        let paths = document["paths"].as_object().unwrap().values();
        let operations = paths.flat_map(|item| item.as_object().unwrap().values());
        let mut compared = 0;
        for operation in operations {
            let name = operation["operationId"].as_str().unwrap();
            for (status, answer) in self.by_operation.get(name).into_iter().flatten() {
                let content = &operation["responses"][status]["content"]["application/json"];
                let example = &content["example"];
                let differing = differing_members(answer, example);
                assert_eq!(
                    differing, [""; 0],
                    "the example of {name} {status} is old; see {FILE}"
                );
                compared += 1;
            }
        }
        let all: usize = self.by_operation.values().map(BTreeMap::len).sum();
        assert_eq!(compared, all);
    }
}

impl Presenter {
    pub(crate) fn new(root: String) -> Self {
        Self { root }
    }

    pub(crate) fn presentable(&self, value: &Value) -> Value {
        match value {
            Value::Object(members) => members
                .iter()
                .map(|(name, value)| {
                    let shown = match value {
                        Value::String(text)
                            if SECRETS.contains(&name.as_str()) || text.contains(SHARED) =>
                        {
                            json!(self.fixed(&without_secret(text)))
                        }
                        value => self.presentable(value),
                    };
                    (name.clone(), shown)
                })
                .collect(),
            Value::Array(entries) => {
                let first = entries.iter().take(ENTRIES_MAX);
                first.map(|entry| self.presentable(entry)).collect()
            }
            Value::String(text) => json!(self.fixed(text)),
            value => value.clone(),
        }
    }

    fn fixed(&self, text: &str) -> String {
        let port = self.root.rfind(':').map_or("", |colon| &self.root[colon..]);
        if text.parse::<Timestamp>().is_ok() {
            MOMENT.to_owned()
        } else if text.len() == MOMENT_OF_CONTRACT.len() && text.parse::<DateTime>().is_ok() {
            MOMENT_OF_CONTRACT.to_owned()
        } else if text.parse::<uuid::Uuid>().is_ok() {
            UUID.to_owned()
        } else if text.len() == HASH.len() && text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            HASH.to_owned()
        } else if text.starts_with(&self.root) {
            text.replace(&self.root, "https://einvoice.example")
        } else if text.ends_with(port) {
            "einvoice-1:8080".to_owned()
        } else {
            text.to_owned()
        }
    }
}

/// The first answer with each error code.
pub(crate) struct FailureExamples {
    by_code: BTreeMap<String, Value>,
    presenter: Presenter,
}

impl FailureExamples {
    /// Begins a collection of the failures of the service at this address.
    pub(crate) fn new(root: String) -> Self {
        Self {
            by_code: BTreeMap::new(),
            presenter: Presenter::new(root),
        }
    }

    #[track_caller]
    pub(crate) fn add(&mut self, code: &str, answer: Answer) {
        let status = answer.status;
        let answer = answer.expect_refusal(status, code);
        let shown = self.presenter.presentable(&answer.body);
        self.by_code.entry(code.to_owned()).or_insert(shown);
    }

    /// Expects that the document has an example for each of these codes, with the same members, and for all others but a
    /// few.
    pub(crate) fn are_those_of(&self, document: &Value) {
        if std::env::var_os("EINVOICE_WRITE_DOCS").is_some() {
            let text = serde_json::to_string_pretty(&self.by_code).unwrap();
            let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(FAILURES_FILE);
            fs::write(file, text + "\n").unwrap();
            return;
        }
        for (code, answer) in &self.by_code {
            let example = &document["components"]["examples"][code]["value"];
            assert_eq!(
                members(answer),
                members(example),
                "the example of {code} is old; see {FAILURES_FILE}"
            );
        }
        let codes = document.pointer("/components/schemas/Failure/properties/error_code/enum");
        let codes = codes.and_then(Value::as_array).unwrap().iter();
        let without: Vec<_> = codes
            .filter_map(Value::as_str)
            .filter(|code| !self.by_code.contains_key(*code))
            .collect::<BTreeSet<_>>()
            .into_iter()
            .collect();
        assert_eq!(without, CODES_WITHOUT_EXAMPLE, "codes without an example");
    }
}

fn members(body: &Value) -> Vec<&String> {
    let members = body.as_object().into_iter().flatten();
    members.map(|(name, _)| name).collect()
}

/// Returns the members that only one of the two has, in `data` or in the first entry of its list.
fn differing_members(answer: &Value, example: &Value) -> Vec<String> {
    let members = |value: &Value| -> BTreeSet<String> {
        let data = &value["data"];
        let list = if data.is_array() { data } else { &data["data"] };
        let shown = list.get(0).unwrap_or(data);
        let names = shown
            .as_object()
            .into_iter()
            .flatten()
            .map(|(name, _)| name);
        let outer = value
            .as_object()
            .into_iter()
            .flatten()
            .map(|(name, _)| name);
        names.chain(outer).cloned().collect()
    };
    let told = members(answer);
    told.symmetric_difference(&members(example))
        .cloned()
        .collect()
}

/// Keeps the kind of a secret, as in `tpk_…`, and of a link the part before the secret.
fn without_secret(text: &str) -> String {
    let end = if text.starts_with("http") {
        text.rfind('/')
    } else {
        text.find('_')
    };
    end.map_or_else(|| "…".to_owned(), |end| format!("{}…", &text[..=end]))
}

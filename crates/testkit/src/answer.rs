//! An HTTP answer: its status, its headers, and its body as JSON, which is null if the body is not JSON.

use std::sync::OnceLock;

use reqwest::RequestBuilder;
use reqwest::header::HeaderMap;
use serde_json::{Value, json};

/// An answer whose body was read to its end.
#[derive(Debug, Clone)]
pub struct Answer {
    pub status: u16,
    pub headers: HeaderMap,
    pub body: Value,
    pub text: String,
}

/// A request and its answer. `path` is as it was sent, without the query.
#[derive(Debug, Clone, Copy)]
pub struct Exchange<'e> {
    pub method: &'e str,
    pub path: &'e str,
    pub answer: &'e Answer,
}

static CHECK: OnceLock<fn(Exchange<'_>)> = OnceLock::new();

/// Calls `check` with every later answer of this process, in addition to what each test expects. `check` panics if it
/// fails. Only the first call of this function counts.
pub fn check_every_answer(check: fn(Exchange<'_>)) {
    CHECK.get_or_init(|| check);
}

impl Answer {
    /// Sends a request. Panics if no answer comes.
    pub async fn to(request: RequestBuilder) -> Self {
        Self::read(request).await.unwrap()
    }

    /// Sends a request. Returns `None` if no answer came; the request may have had its effect all the same.
    pub async fn try_to(request: RequestBuilder) -> Option<Self> {
        Self::read(request).await.ok()
    }

    async fn read(request: RequestBuilder) -> reqwest::Result<Self> {
        let (http, request) = request.build_split();
        let request = request?;
        let method = request.method().clone();
        let path = request.url().path().to_owned();
        let response = http.execute(request).await?;
        let status = response.status().as_u16();
        let headers = response.headers().clone();
        let text = response.text().await?;
        let body = strict_json::from_trusted(&text).unwrap_or(Value::Null);
        let answer = Self {
            status,
            headers,
            body,
            text,
        };
        if let Some(check) = CHECK.get() {
            check(Exchange {
                method: method.as_str(),
                path: &path,
                answer: &answer,
            });
        }
        Ok(answer)
    }

    #[track_caller]
    pub fn expect_status(self, status: u16) -> Self {
        assert_eq!(self.status, status, "{}", self.text);
        self
    }

    pub fn data(&self) -> &Value {
        &self.body["data"]
    }

    pub fn message(&self) -> &str {
        self.body["message"].as_str().unwrap_or_default()
    }

    pub fn code(&self) -> &str {
        self.body["error_code"].as_str().unwrap_or_default()
    }

    pub fn header(&self, name: &str) -> &str {
        self.headers
            .get(name)
            .map_or("", |value| value.to_str().unwrap())
    }

    /// Returns the warnings of a successful answer, one per line.
    pub fn warnings(&self) -> String {
        let all = self.headers.get_all("x-system-warning").iter();
        all.map(|value| value.to_str().unwrap())
            .collect::<Vec<_>>()
            .join("\n")
    }

    /// Returns the dot paths that `errors` names, in order.
    pub fn faulty_paths(&self) -> Vec<&str> {
        self.body["errors"]
            .as_object()
            .map_or_else(Vec::new, |all| all.keys().map(String::as_str).collect())
    }

    /// Expects a refusal with this status and code, in the JSON envelope of the API.
    #[track_caller]
    pub fn expect_refusal(self, status: u16, code: &str) -> Self {
        assert_eq!((self.status, self.code()), (status, code), "{}", self.text);
        assert_eq!(self.body["success"], json!(false), "{}", self.text);
        assert_eq!(self.body["data"], Value::Null, "{}", self.text);
        assert!(!self.message().is_empty(), "{}", self.text);
        self
    }

    /// Expects a refusal that names exactly these fields.
    #[track_caller]
    pub fn expect_faults(self, paths: &[&str]) -> Self {
        let answer = self.expect_refusal(422, "VALIDATION_FAILED");
        let mut expected = paths.to_vec();
        expected.sort_unstable();
        assert_eq!(answer.faulty_paths(), expected, "{}", answer.text);
        answer.assert_sentences();
        answer
    }

    /// Expects a refusal of Validate that names exactly these fields: its status is 400, not 422.
    #[track_caller]
    pub fn expect_invalid(self, paths: &[&str]) -> Self {
        assert_eq!(self.status, 400, "{}", self.text);
        Self {
            status: 422,
            ..self
        }
        .expect_faults(paths)
    }

    /// Asserts that the message is one of the sentences in `errors` and tells how many others there are.
    #[track_caller]
    fn assert_sentences(&self) {
        let errors = self.body["errors"].as_object().unwrap();
        let sentences: Vec<_> = errors
            .values()
            .flat_map(|all| all.as_array().unwrap())
            .collect();
        let suffix = match sentences.len() - 1 {
            0 => String::new(),
            1 => " (and 1 more error)".to_owned(),
            more => format!(" (and {more} more errors)"),
        };
        let first = self.message().strip_suffix(&suffix).unwrap();
        assert!(
            sentences
                .iter()
                .any(|sentence| sentence.as_str() == Some(first)),
            "{}",
            self.text
        );
    }
}

/// Returns a value as text for a snapshot. The fields at `pointers`, which differ from run to run, become `…`.
pub fn stable_text(value: &Value, pointers: &[&str]) -> String {
    let mut value = value.clone();
    for pointer in pointers {
        *value.pointer_mut(pointer).unwrap() = json!("…");
    }
    serde_json::to_string_pretty(&value).unwrap()
}

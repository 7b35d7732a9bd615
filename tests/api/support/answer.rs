//! What came back: status, headers and the body as JSON (null where it is none).

use reqwest::header::HeaderMap;
use serde_json::{Value, json};

/// An answer, read to its end.
#[derive(Debug, Clone)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Value,
    pub(crate) text: String,
}

impl Answer {
    pub(crate) async fn to(request: reqwest::RequestBuilder) -> Self {
        let response = request.send().await.unwrap();
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        let text = response.text().await.unwrap();
        let body = strict_json::from_trusted(&text).unwrap_or(Value::Null);
        Self { status, headers, body, text }
    }

    #[track_caller]
    pub(crate) fn expect_status(self, status: u16) -> Self {
        assert_eq!(self.status, status, "{}", self.text);
        self
    }

    pub(crate) fn data(&self) -> &Value {
        &self.body["data"]
    }

    pub(crate) fn message(&self) -> &str {
        self.body["message"].as_str().unwrap_or_default()
    }

    pub(crate) fn code(&self) -> &str {
        self.body["error_code"].as_str().unwrap_or_default()
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    /// The warnings of a success, one a line.
    pub(crate) fn warnings(&self) -> String {
        let all = self.headers.get_all("x-system-warning").iter();
        all.map(|value| value.to_str().unwrap()).collect::<Vec<_>>().join("\n")
    }

    /// The dot paths that are named in `errors`, in order.
    pub(crate) fn faulty_paths(&self) -> Vec<&str> {
        self.body["errors"].as_object().map_or_else(Vec::new, |all| all.keys().map(String::as_str).collect())
    }

    /// A refusal of the envelope: status and code.
    #[track_caller]
    pub(crate) fn expect_refusal(self, status: u16, code: &str) -> Self {
        assert_eq!((self.status, self.code()), (status, code), "{}", self.text);
        assert_eq!(self.body["success"], json!(false), "{}", self.text);
        assert_eq!(self.body["data"], Value::Null, "{}", self.text);
        assert!(!self.message().is_empty(), "{}", self.text);
        self
    }

    /// A refusal of these fields and no others, all of them named at once.
    #[track_caller]
    pub(crate) fn expect_faults(self, paths: &[&str]) -> Self {
        let answer = self.expect_refusal(422, "VALIDATION_FAILED");
        let mut expected = paths.to_vec();
        expected.sort_unstable();
        assert_eq!(answer.faulty_paths(), expected, "{}", answer.text);
        answer.assert_sentences();
        answer
    }

    /// The same where the payload as a whole is judged: Validate's 400.
    #[track_caller]
    pub(crate) fn expect_invalid(self, paths: &[&str]) -> Self {
        assert_eq!(self.status, 400, "{}", self.text);
        Self { status: 422, ..self }.expect_faults(paths)
    }

    /// The message is the first sentence, and how many more there are.
    #[track_caller]
    fn assert_sentences(&self) {
        let errors = self.body["errors"].as_object().unwrap();
        let sentences: Vec<_> = errors.values().flat_map(|all| all.as_array().unwrap()).collect();
        let suffix = match sentences.len() - 1 {
            0 => String::new(),
            1 => " (and 1 more error)".to_owned(),
            more => format!(" (and {more} more errors)"),
        };
        let first = self.message().strip_suffix(&suffix).unwrap();
        assert!(sentences.iter().any(|sentence| sentence.as_str() == Some(first)), "{}", self.text);
    }
}

/// A value as it is shown in snapshots, with what differs from run to run put out of sight.
pub(crate) fn stable(value: &Value, pointers: &[&str]) -> String {
    let mut value = value.clone();
    for pointer in pointers {
        *value.pointer_mut(pointer).unwrap() = json!("…");
    }
    serde_json::to_string_pretty(&value).unwrap()
}

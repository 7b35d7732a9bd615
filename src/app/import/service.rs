//! The requests to the service. A request that gets no response is sent again. The repetition does no harm, because the
//! service imports a file only once.

use std::path::Path;
use std::time::Duration;

use reqwest::header::RETRY_AFTER;
use reqwest::redirect::Policy;
use reqwest::{RequestBuilder, Response, StatusCode};
use secrecy::{ExposeSecret, SecretString};
use serde_json::Value;
use tokio::time::sleep;

use crate::app::import::{ImportError, file_error, report};
use crate::cli::ImportArguments;
use crate::domain::import::source::ImportForm;

const INVOICES_PATH: &str = "/v1/tax-payers/invoices";
/// The longest wait for a response. It is long, because the preview of a large file takes long.
const ANSWER_WAIT_MAX: Duration = Duration::from_mins(10);
/// The waits before a request is sent again.
const RETRY_WAITS_S: [u64; 6] = [1, 2, 4, 8, 15, 30];
/// The longest wait that the service may ask for.
const RETRY_AFTER_S_MAX: u64 = 120;
const CONTENT_TYPES: [(&str, &str); 6] = [
    ("xml", "application/xml"),
    ("csv", "text/csv"),
    (
        "xlsx",
        "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    ),
    ("ndjson", "application/x-ndjson"),
    ("jsonl", "application/x-ndjson"),
    ("json", "application/json"),
];

pub(super) struct ServiceClient {
    http: reqwest::Client,
    url: String,
    key: SecretString,
    form: ImportForm,
    content_type: &'static str,
}

/// The answer to an uploaded file.
pub(super) struct SentFile {
    pub(super) import: Value,
    /// True if the same file was imported before. `import` is then the record of that import, and nothing new was
    /// created.
    pub(super) was_imported_before: bool,
}

impl ServiceClient {
    pub(super) fn new(arguments: &ImportArguments) -> Result<Self, ImportError> {
        let url = arguments.url.trim_end_matches('/').to_owned();
        // A redirect would take the key elsewhere, or turn the upload into a read.
        let http = reqwest::Client::builder()
            .timeout(ANSWER_WAIT_MAX)
            .redirect(Policy::none())
            .build();
        let file = &arguments.file;
        Ok(Self {
            http: http.map_err(|error| no_answer_error(&url, &error))?,
            url,
            key: read_key(arguments)?,
            form: arguments.form,
            content_type: content_type(file)
                .ok_or_else(|| ImportError::UnknownEnding(file.clone()))?,
        })
    }

    /// Sends the file, for a preview or for the import.
    pub(super) async fn send_file(
        &self,
        file: &[u8],
        is_preview: bool,
    ) -> Result<SentFile, ImportError> {
        let form = self.form;
        let path = format!("{INVOICES_PATH}/import?form={form}&preview={is_preview}");
        self.send_for_import(|| {
            let request = self.http.post(format!("{}{path}", self.url));
            let request = request.header("content-type", self.content_type);
            request.body(file.to_vec())
        })
        .await
        .map(|(status, import)| SentFile {
            import,
            was_imported_before: !is_preview && status == StatusCode::OK,
        })
    }

    /// Reads the current state of the import.
    pub(super) async fn read_import(&self, import: &Value) -> Result<Value, ImportError> {
        let url = self.import_url(import);
        let (_, import) = self.send_for_import(|| self.http.get(&url)).await?;
        Ok(import)
    }

    /// Fetches the file of errors.
    pub(super) async fn download_errors(&self, import: &Value) -> Result<Vec<u8>, ImportError> {
        let url = format!("{}/errors", self.import_url(import));
        let answer = self.send_with_retries(|| self.http.get(&url)).await?;
        let bytes = answer.bytes().await;
        Ok(bytes
            .map_err(|error| no_answer_error(&self.url, &error))?
            .to_vec())
    }

    fn import_url(&self, import: &Value) -> String {
        let import_no = import["import_no"].as_str().unwrap_or_default();
        format!("{}{INVOICES_PATH}/imports/{import_no}", self.url)
    }

    async fn send_for_import(
        &self,
        request: impl Fn() -> RequestBuilder,
    ) -> Result<(StatusCode, Value), ImportError> {
        let answer = self.send_with_retries(request).await?;
        let status = answer.status();
        let bytes = answer.bytes().await;
        let bytes = bytes.map_err(|error| no_answer_error(&self.url, &error))?;
        let mut body: Value = strict_json::from_untrusted(&bytes).unwrap_or_default();
        let data = body.get_mut("data").map(Value::take);
        data.filter(report::is_import)
            .map(|import| (status, import))
            .ok_or_else(|| ImportError::WrongService(self.url.clone()))
    }

    /// Sends a request, and repeats it after transient failures. Returns the successful response.
    async fn send_with_retries(
        &self,
        request: impl Fn() -> RequestBuilder,
    ) -> Result<Response, ImportError> {
        let mut waits = RETRY_WAITS_S.into_iter();
        loop {
            let result = request()
                .header("x-api-key", self.key.expose_secret())
                .send()
                .await;
            let (requested_wait_s, error) = match result {
                Ok(answer) if answer.status().is_success() => return Ok(answer),
                Ok(answer) => (retry_after_s(&answer), refusal_error(answer).await),
                Err(error) => (Some(0), no_answer_error(&self.url, &error)),
            };
            let (Some(requested_s), Some(retry_s)) = (requested_wait_s, waits.next()) else {
                return Err(error);
            };
            eprintln!("{error}; trying again");
            sleep(Duration::from_secs(retry_s.max(requested_s))).await;
        }
    }
}

/// Returns the seconds that the service asks to wait; `None` if the failure is not transient.
fn retry_after_s(answer: &Response) -> Option<u64> {
    let is_transient = matches!(
        answer.status(),
        StatusCode::TOO_MANY_REQUESTS
            | StatusCode::BAD_GATEWAY
            | StatusCode::SERVICE_UNAVAILABLE
            | StatusCode::GATEWAY_TIMEOUT
    );
    let header = answer.headers().get(RETRY_AFTER);
    let text = header.and_then(|value| value.to_str().ok());
    let seconds: Option<u64> = text.and_then(|text| text.parse().ok());
    is_transient.then(|| seconds.unwrap_or(0).min(RETRY_AFTER_S_MAX))
}

async fn refusal_error(answer: Response) -> ImportError {
    let status = answer.status().as_u16();
    let body = answer.bytes().await.unwrap_or_default();
    let body: Value = strict_json::from_untrusted(&body).unwrap_or_default();
    ImportError::Refused {
        status,
        message: body["message"].as_str().unwrap_or_default().to_owned(),
    }
}

fn read_key(arguments: &ImportArguments) -> Result<SecretString, ImportError> {
    let key = match (&arguments.key, &arguments.key_file) {
        (_, Some(file)) => {
            std::fs::read_to_string(file).map_err(|error| file_error(file, error))?
        }
        (Some(key), None) => key.clone(),
        (None, None) => return Err(ImportError::NoKey),
    };
    Ok(key.trim().into())
}

fn content_type(file: &Path) -> Option<&'static str> {
    let ending = file.extension()?.to_str()?;
    let entry = CONTENT_TYPES
        .iter()
        .find(|(extension, _)| extension.eq_ignore_ascii_case(ending));
    entry.map(|(_, content_type)| *content_type)
}

fn no_answer_error(url: &str, error: &reqwest::Error) -> ImportError {
    ImportError::NoAnswer {
        url: url.to_owned(),
        problem: error.to_string(),
    }
}

//! The service on which a drill is held, and the simulator of the authority that the service calls.

use std::time::Duration;

use reqwest::{Method, RequestBuilder};
use secrecy::{ExposeSecret, SecretString};
use serde_json::Value;

use crate::app::drill::DrillError;
use crate::cli::DrillArguments;

/// The longest wait for a response. It is long, because the fault may delay responses.
const ANSWER_WAIT_MAX: Duration = Duration::from_mins(1);

const FAULTS_PATH: &str = "/sandbox/faults";

/// A client of the service and of its simulator. Clones share their connections.
#[derive(Clone)]
pub(super) struct Target {
    http: reqwest::Client,
    service: String,
    simulator: String,
    operator_key: SecretString,
    taxpayer_key: SecretString,
    integrator_key: Option<SecretString>,
    taxpayer: Option<i64>,
}

/// The account whose key a request carries.
#[derive(Debug, Clone, Copy)]
pub(super) enum CallerRole {
    Operator,
    Integrator,
    Taxpayer,
}

impl Target {
    pub(super) fn new(arguments: &DrillArguments) -> Result<Self, DrillError> {
        let http = reqwest::Client::builder()
            .no_proxy()
            .timeout(ANSWER_WAIT_MAX)
            .build();
        let service = arguments.url.trim_end_matches('/').to_owned();
        Ok(Self {
            http: http.map_err(|error| no_answer_error(&service, &error))?,
            service,
            simulator: arguments.simulator.trim_end_matches('/').to_owned(),
            operator_key: arguments.operator_key.clone().into(),
            taxpayer_key: arguments.taxpayer_key.clone().into(),
            integrator_key: arguments.integrator_key.clone().map(Into::into),
            taxpayer: arguments.taxpayer,
        })
    }

    /// Returns the id of the taxpayer that the drill may disturb.
    pub(super) fn required_taxpayer(&self) -> Result<i64, DrillError> {
        self.taxpayer.ok_or(DrillError::Missing("--taxpayer"))
    }

    /// Fails unless the simulator answers: faults must never reach a service of real taxpayers.
    pub(super) async fn require_simulator(&self) -> Result<(), DrillError> {
        let answer = self.request_simulator_faults(Method::GET, None).await;
        answer.map(drop).map_err(|_| DrillError::NoSimulator {
            url: self.simulator.clone(),
        })
    }

    pub(super) async fn fetch_incidents(&self) -> Result<Vec<Value>, DrillError> {
        let answer = self
            .call(CallerRole::Operator, Method::GET, "/ops/incidents", None)
            .await?;
        let incidents = answer["data"]["incidents"].as_array().cloned();
        Ok(incidents.unwrap_or_default())
    }

    /// Sends a request that must succeed. Returns the body of the response.
    pub(super) async fn call(
        &self,
        role: CallerRole,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Value, DrillError> {
        let request = self.build_request(role, method, path)?;
        send_request(&self.service, path, with_body(request, body)).await
    }

    /// Sends a request and ignores its result, because the fault may make it fail.
    pub(super) async fn try_call(
        &self,
        role: CallerRole,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) {
        if let Ok(request) = self.build_request(role, method, path) {
            drop(with_body(request, body).send().await);
        }
    }

    fn build_request(
        &self,
        role: CallerRole,
        method: Method,
        path: &str,
    ) -> Result<RequestBuilder, DrillError> {
        let key = match role {
            CallerRole::Operator => &self.operator_key,
            CallerRole::Taxpayer => &self.taxpayer_key,
            CallerRole::Integrator => self
                .integrator_key
                .as_ref()
                .ok_or(DrillError::Missing("--integrator-key"))?,
        };
        let url = format!("{}{path}", self.service);
        let request = self.http.request(method, url);
        Ok(request.header("x-api-key", key.expose_secret()))
    }

    /// Lists (GET), adds (POST) or clears (DELETE) the faults of the simulator.
    pub(super) async fn request_simulator_faults(
        &self,
        method: Method,
        fault: Option<&Value>,
    ) -> Result<Value, DrillError> {
        let url = format!("{}{FAULTS_PATH}", self.simulator);
        let request = with_body(self.http.request(method, url), fault);
        send_request(&self.simulator, FAULTS_PATH, request).await
    }
}

fn with_body(request: RequestBuilder, body: Option<&Value>) -> RequestBuilder {
    match body {
        Some(body) => request.json(body),
        None => request,
    }
}

async fn send_request(
    host: &str,
    path: &str,
    request: RequestBuilder,
) -> Result<Value, DrillError> {
    let to_drill_error = |error: reqwest::Error| no_answer_error(host, &error);
    let response = request.send().await.map_err(to_drill_error)?;
    let status = response.status();
    let body = response.bytes().await.map_err(to_drill_error)?;
    let body: Value = strict_json::from_untrusted(&body).unwrap_or_default();
    if status.is_success() {
        return Ok(body);
    }
    Err(DrillError::Refused {
        path: path.to_owned(),
        status: status.as_u16(),
        message: body["message"].as_str().unwrap_or_default().to_owned(),
    })
}

fn no_answer_error(url: &str, error: &reqwest::Error) -> DrillError {
    DrillError::NoAnswer {
        url: url.to_owned(),
        problem: error.to_string(),
    }
}

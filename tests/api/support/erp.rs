//! An ERP system: it answers a request only with the credentials that it asks for, and has an authorization server
//! beside it that issues tokens, lets them expire and rotates refresh tokens.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use testkit::receiver::{Endpoint, Received, Receiver, Reply, Request, Response};
use url::form_urlencoded;

use super::ntlm::{self, Account};

/// The credentials that it asks for.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) enum Gate {
    #[default]
    Open,
    /// A header with just this value.
    Header(&'static str, &'static str),
    /// One of the tokens that it issued and did not revoke.
    Token,
    Ntlm(Account),
}

/// A call of the authorization server.
#[derive(Debug, Clone)]
pub(crate) struct TokenCall {
    pub(crate) form: BTreeMap<String, String>,
    /// The authorization header, empty without one.
    pub(crate) authorization: String,
}

#[derive(Default)]
struct System {
    gate: Gate,
    accepted: Vec<Received>,
    refused: usize,
    answers: VecDeque<Response>,
    /// The connections that have an NTLM challenge.
    challenged: BTreeSet<usize>,
    tokens: AuthorizationServer,
}

#[derive(Default)]
struct AuthorizationServer {
    calls: Vec<TokenCall>,
    answers: VecDeque<Response>,
    valid: BTreeSet<String>,
    expires_in: Option<u64>,
    /// The one valid refresh token, where they are rotated.
    refresh_token: Option<String>,
}

pub(crate) struct Erp(Receiver<System>);

impl Erp {
    pub(crate) fn start(gate: Gate) -> Self {
        Self(Receiver::serve(System {
            gate,
            ..System::default()
        }))
    }

    pub(crate) fn port(&self) -> u16 {
        self.0.port()
    }

    pub(crate) fn url(&self) -> String {
        self.0.url_at("/erp")
    }

    pub(crate) fn token_url(&self) -> String {
        self.0.url_at("/token")
    }

    pub(crate) fn set_gate(&self, gate: Gate) {
        self.0.with(|system| system.gate = gate);
    }

    /// Answers the next accepted request like this instead of with 204.
    pub(crate) fn answer_next(&self, status: u16, body: &str) {
        self.0
            .with(|system| system.answers.push_back(Response::text(status, body)));
    }

    /// Answers the next accepted request with a 200 whose body does not end.
    pub(crate) fn leave_next_unfinished(&self) {
        let response = Response {
            is_unfinished: true,
            ..Response::text(200, "taken")
        };
        self.0.with(|system| system.answers.push_back(response));
    }

    /// Answers the next call of the authorization server like this instead of with a token.
    pub(crate) fn answer_token_with(&self, status: u16, body: &str) {
        self.0.with(|system| {
            system
                .tokens
                .answers
                .push_back(Response::text(status, body));
        });
    }

    /// Sets the lifetime of tokens that is stated from now on.
    pub(crate) fn expire_in(&self, seconds: u64) {
        self.0
            .with(|system| system.tokens.expires_in = Some(seconds));
    }

    /// Makes this the one valid refresh token. Each call replaces it.
    pub(crate) fn rotate_from(&self, refresh_token: &str) {
        self.0
            .with(|system| system.tokens.refresh_token = Some(refresh_token.to_owned()));
    }

    /// Revokes all tokens.
    pub(crate) fn revoke(&self) {
        self.0.with(|system| system.tokens.valid.clear());
    }

    /// Returns the requests with the credentials that were asked for.
    pub(crate) fn accepted(&self) -> Vec<Received> {
        self.0.with(|system| system.accepted.clone())
    }

    /// Returns the number of requests without the credentials that were asked for.
    pub(crate) fn refused(&self) -> usize {
        self.0.with(|system| system.refused)
    }

    pub(crate) fn token_calls(&self) -> Vec<TokenCall> {
        self.0.with(|system| system.tokens.calls.clone())
    }

    /// Returns the number of connections that requests were accepted over.
    pub(crate) fn connections(&self) -> usize {
        self.accepted()
            .iter()
            .map(|one| one.connection)
            .collect::<BTreeSet<_>>()
            .len()
    }
}

impl Endpoint for System {
    fn receive(&mut self, request: &Request<'_>) -> Response {
        if request.path() == "/token" {
            return self.tokens.issue(request);
        }
        if let Err(offers) = self.authenticate(request) {
            self.refused += 1;
            let refusal = Response::text(401, "credentials are required");
            return offers.into_iter().fold(refusal, |answer, offer| {
                answer.with_header("www-authenticate", offer)
            });
        }
        let response = self
            .answers
            .pop_front()
            .unwrap_or_else(|| Response::status(204));
        self.accepted
            .push(Received::new(request, Reply::Status(response.status)));
        response
    }
}

impl System {
    /// Checks the credentials of a request. Without them, returns what the answer asks for.
    fn authenticate(&mut self, request: &Request<'_>) -> Result<(), Vec<String>> {
        let authorization = request.header("authorization");
        let is_known = match self.gate {
            Gate::Open => true,
            Gate::Header(name, value) => request.header(name) == value,
            Gate::Token => authorization
                .strip_prefix("Bearer ")
                .is_some_and(|token| self.tokens.valid.contains(token)),
            Gate::Ntlm(account) => return self.sign_in(authorization, request.connection, account),
        };
        if is_known { Ok(()) } else { Err(Vec::new()) }
    }

    /// Each connection has a challenge of its own, and a response counts only after it.
    fn sign_in(
        &mut self,
        authorization: &str,
        connection: usize,
        account: Account,
    ) -> Result<(), Vec<String>> {
        let challenge = connection.to_be_bytes();
        let offer = |offer: String| Err(vec!["Negotiate".to_owned(), offer]);
        match authorization
            .strip_prefix("NTLM ")
            .and_then(|text| STANDARD.decode(text).ok())
        {
            Some(message) if ntlm::is_opening(&message) => {
                self.challenged.insert(connection);
                offer(format!(
                    "NTLM {}",
                    STANDARD.encode(ntlm::challenge(challenge))
                ))
            }
            Some(message)
                if self.challenged.contains(&connection)
                    && ntlm::is_proof(&message, challenge, account) =>
            {
                Ok(())
            }
            _ => offer("NTLM".to_owned()),
        }
    }
}

impl AuthorizationServer {
    fn issue(&mut self, request: &Request<'_>) -> Response {
        let form: BTreeMap<String, String> =
            form_urlencoded::parse(request.body).into_owned().collect();
        let refresh_token = form.get("refresh_token").cloned();
        self.calls.push(TokenCall {
            form,
            authorization: request.header("authorization").to_owned(),
        });
        if let Some(response) = self.answers.pop_front() {
            return response;
        }
        if self.refresh_token.is_some() && refresh_token != self.refresh_token {
            return Response::text(400, json!({ "error": "invalid_grant" }).to_string());
        }
        let number = self.calls.len();
        let token = format!("token-{number}");
        self.valid.insert(token.clone());
        let mut answer = json!({ "access_token": token, "token_type": "Bearer" });
        answer["expires_in"] = self.expires_in.map_or(json!(3_600), Value::from);
        if self.refresh_token.is_some() {
            let next = format!("refresh-{number}");
            answer["refresh_token"] = json!(next);
            self.refresh_token = Some(next);
        }
        Response::text(200, answer.to_string()).with_header("content-type", "application/json")
    }
}

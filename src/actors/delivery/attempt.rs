//! Makes one attempt to deliver a notification: formats it for the receiver, signs it and authenticates. Authentication
//! may need several HTTP calls; all calls together share the timeout of one attempt.

use std::future::Future;
use std::time::Instant;

use jiff::Timestamp;
use rand::RngExt;
use timing::clock;
use timing::trace::{Span, SpanKind, TRACEPARENT};
use tokio::time::timeout;
use webhook_client::auth::{AuthFault, Credentials, NonceAndTime, NtlmLogin};
use webhook_client::format::{FormattedRequest, interpret_body};
use webhook_client::{
    AttemptOutcome, AttemptResult, GuardedClient, PostRequest, SecretFault, SignedMessage,
    SigningSecret, TransportFault,
};

use crate::actors::delivery::deps::DeliveryDeps;
use crate::actors::delivery::erp_settings::body_format;
use crate::actors::delivery::token_cache::TokenRequest;
use crate::domain::events::endpoint::Endpoint;
use crate::domain::events::event::Event;
use crate::domain::integration::{Auth, Integration, SecretText};
use crate::store::webhooks;

const UNAUTHORIZED: u16 = 401;

/// The target of an attempt: an endpoint, its signing secrets and its integration.
#[derive(Debug)]
pub(super) struct DeliveryTarget {
    pub(super) endpoint: Endpoint,
    pub(super) secrets: Vec<SigningSecret>,
    pub(super) integration: Integration,
    /// True while a replay for this endpoint is open.
    pub(super) is_replaying: bool,
}

impl TryFrom<webhooks::LoadedEndpoint> for DeliveryTarget {
    type Error = SecretFault;

    fn try_from(found: webhooks::LoadedEndpoint) -> Result<Self, SecretFault> {
        let secrets = found
            .secrets
            .iter()
            .map(|text| SigningSecret::parse(text))
            .collect::<Result<_, _>>()?;
        let webhooks::LoadedEndpoint {
            endpoint,
            integration,
            is_replaying,
            ..
        } = found;
        Ok(Self {
            endpoint,
            secrets,
            integration,
            is_replaying,
        })
    }
}

/// An event to send, and the target to send it to.
#[derive(Clone, Copy)]
pub(super) struct OutgoingEvent<'a> {
    pub(super) to: &'a DeliveryTarget,
    pub(super) event: &'a Event,
    /// The time of sending, which is part of the signature.
    pub(super) at: Timestamp,
    /// The maximum number of bytes of the response body to keep.
    pub(super) keep_bytes: usize,
}

impl DeliveryDeps {
    /// Makes one attempt to deliver an event. Keeps up to `keep_bytes` bytes of the response body.
    pub(super) async fn attempt_delivery(
        &self,
        to: &DeliveryTarget,
        event: &Event,
        at: Timestamp,
        keep_bytes: usize,
    ) -> AttemptResult {
        self.send_with_signature(
            OutgoingEvent {
                to,
                event,
                at,
                keep_bytes,
            },
            |message| message.headers(&to.secrets),
        )
        .await
    }

    /// Makes one attempt with the signature headers that `sign` returns.
    pub(super) async fn send_with_signature(
        &self,
        outgoing: OutgoingEvent<'_>,
        sign: impl FnOnce(&SignedMessage<'_>) -> Vec<(&'static str, String)>,
    ) -> AttemptResult {
        let OutgoingEvent {
            to,
            event,
            at,
            keep_bytes,
        } = outgoing;
        let notification = event.notification_json();
        let id = event.id.to_string();
        let format = body_format(&to.integration.format);
        let request = FormattedRequest::new(format, &id, &notification);
        let body = request.body.as_bytes();
        let mut headers = sign(&SignedMessage {
            id: &id,
            timestamp: at.as_second(),
            body,
        });
        headers.extend(request.headers);
        let mut span = begin_span(event);
        headers.push((TRACEPARENT, span.context().to_string()));
        let post = PostRequest {
            url: &to.endpoint.url,
            headers: &headers,
            body,
            keep_bytes: FormattedRequest::body_bytes_to_keep(format, keep_bytes),
        };
        let attempt = interpret_body(
            self.post_authenticated(to, post).await,
            format,
            &id,
            keep_bytes,
        );
        describe_span(&mut span, &attempt);
        attempt
    }

    /// Sends a request with the credentials of the integration, but only to the origin that the credentials were set
    /// for. A request to another origin is not sent at all: without credentials it would disclose the event to a
    /// stranger, and the stranger's rejection would look like a fault of the ERP.
    async fn post_authenticated(
        &self,
        to: &DeliveryTarget,
        post: PostRequest<'_>,
    ) -> AttemptResult {
        if !to.integration.may_authenticate_at(post.url) {
            return AttemptResult::from_auth_fault(AuthFault::OtherOrigin);
        }
        let Ok(client) = self.client.for_networks(&to.integration.allowed_networks) else {
            return AttemptResult::without_response(AttemptOutcome::Unreachable(
                TransportFault::Tls,
            ));
        };
        match &to.integration.auth {
            Auth::None => client.post(post).await,
            Auth::Basic { username, password } => {
                post_with_credentials(
                    &client,
                    Credentials::basic(username, password.expose()),
                    post,
                )
                .await
            }
            Auth::ApiKey { header, value } => {
                post_with_credentials(&client, Credentials::api_key(header, value.expose()), post)
                    .await
            }
            Auth::OAuth2 { .. } | Auth::ClientCredentials { .. } => {
                measure_attempt(self.post_with_token(&client, to, post)).await
            }
            Auth::Ntlm {
                username,
                password,
                domain,
            } => {
                let login = NtlmLogin {
                    username,
                    password: password.as_secret(),
                    domain: domain.as_deref().unwrap_or_default(),
                };
                let nonce_and_time = NonceAndTime {
                    nonce: clock::system_rng().random(),
                    now: self.clock.now(),
                };
                measure_attempt(self.tokens.ntlm.post(&client, post, login, nonce_and_time)).await
            }
        }
    }

    /// Makes an attempt with an access token. If the endpoint answers 401, makes a second attempt with a new token. The
    /// two attempts share the timeout of one.
    async fn post_with_token(
        &self,
        client: &GuardedClient,
        to: &DeliveryTarget,
        post: PostRequest<'_>,
    ) -> AttemptResult {
        let started = Instant::now();
        let mut refused = None;
        loop {
            let is_second = refused.is_some();
            let rest = client.for_rest_of_attempt(started);
            let token = self.access_token_for(to, refused.take());
            let token = match timeout(rest.timeout(), token).await {
                Ok(Ok(token)) => token,
                Ok(Err(fault)) => return AttemptResult::from_auth_fault(fault),
                Err(_) => return AttemptResult::without_response(AttemptOutcome::TimedOut),
            };
            let rest = client.for_rest_of_attempt(started);
            let credentials = Credentials::bearer(token.expose());
            let attempt = post_with_credentials(&rest, credentials, post).await;
            if attempt.status != Some(UNAUTHORIZED) || is_second {
                return attempt;
            }
            refused = Some(token);
        }
    }

    async fn access_token_for(
        &self,
        to: &DeliveryTarget,
        refused: Option<SecretText>,
    ) -> Result<SecretText, AuthFault> {
        let Integration {
            version, origin, ..
        } = &to.integration;
        let wanted = TokenRequest {
            version: *version,
            origin: origin.clone(),
            now: self.clock.now(),
            refused,
        };
        self.token(to.endpoint.taxpayer_id, wanted).await
    }
}

/// Makes an attempt of several requests. Its duration is the time of all of them.
async fn measure_attempt(attempt: impl Future<Output = AttemptResult>) -> AttemptResult {
    let started = Instant::now();
    let made = attempt.await;
    AttemptResult {
        duration: started.elapsed(),
        ..made
    }
}

/// Begins the span of an attempt, in the trace of the request that caused the event. An event that no request caused
/// has a trace with its own id.
fn begin_span(event: &Event) -> Span {
    let name = format_args!("delivery {}", event.kind);
    let mut span = match event.trace {
        Some(trace) => Span::child(trace, SpanKind::Client, name),
        None => Span::root(event.id, SpanKind::Client, name),
    };
    span.set_text("einvoice.event_id", &event.id.to_string());
    span.set_number("einvoice.taxpayer_id", event.taxpayer_id.0);
    span
}

fn describe_span(span: &mut Span, attempt: &AttemptResult) {
    if let Some(status) = attempt.status {
        span.set_number("http.response.status_code", status.into());
    }
    span.set_text("einvoice.outcome", attempt.outcome.name());
    if attempt.outcome != AttemptOutcome::Delivered {
        span.mark_failed();
    }
}

async fn post_with_credentials(
    client: &GuardedClient,
    credentials: Result<Credentials, AuthFault>,
    post: PostRequest<'_>,
) -> AttemptResult {
    match credentials {
        Ok(credentials) => client.post_with_credentials(post, &credentials).await,
        Err(fault) => AttemptResult::from_auth_fault(fault),
    }
}

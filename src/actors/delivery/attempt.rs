//! One attempt at an endpoint: a notification in the receiver's format, signed as it is sent, authenticated as the
//! receiver wants it. However many calls that takes, they end within the time of one.

use std::future::Future;
use std::time::Instant;

use jiff::Timestamp;
use rand::RngExt;

use crate::actors::delivery::endpoint_worker::DeliveryDeps;
use crate::actors::delivery::target::DeliveryTarget;
use crate::actors::delivery::token_cache::TokenRequest;
use crate::domain::events::event::Event;
use crate::domain::integration::{Auth, Integration, SecretText};
use crate::domain::kernel::clock;
use crate::webhook::auth::{AuthFault, Credentials, Fresh, Login};
use crate::webhook::format::{Letter, judged};
use crate::webhook::{Attempt, Fault, GuardedClient, Message, Outcome, Post};

const UNAUTHORIZED: u16 = 401;

impl DeliveryDeps {
    /// Makes one attempt to deliver an event, and keeps so many bytes of the answer.
    pub(super) async fn attempt(
        &self,
        to: &DeliveryTarget,
        event: &Event,
        at: Timestamp,
        keep: usize,
    ) -> Attempt {
        self.send(to, event, (at, keep), |message| message.headers(&to.secrets)).await
    }

    /// Makes one attempt with the headers that `sign` gives to what is sent.
    pub(super) async fn send(
        &self,
        to: &DeliveryTarget,
        event: &Event,
        (at, keep): (Timestamp, usize),
        sign: impl FnOnce(&Message<'_>) -> Vec<(&'static str, String)>,
    ) -> Attempt {
        let (notification, id) = (event.notification(), event.id.to_string());
        let format = &to.integration.format;
        let letter = Letter::written(format, &id, &notification);
        let body = letter.body.as_bytes();
        let mut headers = sign(&Message { id: &id, timestamp: at.as_second(), body });
        headers.extend(letter.headers);
        let post = Post { url: &to.endpoint.url, headers: &headers, body, keep: Letter::keep(format, keep) };
        judged(self.authenticated(to, post).await, (format, &id), keep)
    }

    /// Credentials go to the origin they were set for. A request to another one is not sent: without them it would tell
    /// a stranger of the event, and look to the owner like a fault of the ERP.
    async fn authenticated(&self, to: &DeliveryTarget, post: Post<'_>) -> Attempt {
        if !to.integration.may_authenticate_at(post.url) {
            return Attempt::unauthenticated(AuthFault::OtherOrigin);
        }
        let Ok(client) = self.client.reaching(&to.integration.allowed_networks) else {
            return Attempt::unanswered(Outcome::Unreachable(Fault::Tls));
        };
        match &to.integration.auth {
            Auth::None => client.post(post).await,
            Auth::Basic { username, password } => {
                post_with(&client, Credentials::basic(username, password.expose()), post).await
            }
            Auth::ApiKey { header, value } => {
                post_with(&client, Credentials::key(header, value.expose()), post).await
            }
            Auth::OAuth2 { .. } | Auth::ClientCredentials { .. } => {
                self.in_time(self.with_token(&client, to, post)).await
            }
            Auth::Ntlm { username, password, domain } => {
                let login = Login { username, password, domain: domain.as_deref().unwrap_or_default() };
                let fresh = Fresh { nonce: clock::chance().random(), now: self.clock.now() };
                self.in_time(self.tokens.handshakes.post(&client, post, login, fresh)).await
            }
        }
    }

    /// A token that the endpoint refuses is replaced, and the attempt made once more.
    async fn with_token(&self, client: &GuardedClient, to: &DeliveryTarget, post: Post<'_>) -> Attempt {
        let token = match self.token_for(to, None).await {
            Ok(token) => token,
            Err(fault) => return Attempt::unauthenticated(fault),
        };
        let attempt = post_with(client, Credentials::bearer(token.expose()), post).await;
        if attempt.status != Some(UNAUTHORIZED) {
            return attempt;
        }
        match self.token_for(to, Some(token)).await {
            Ok(fresh) => post_with(client, Credentials::bearer(fresh.expose()), post).await,
            Err(fault) => Attempt::unauthenticated(fault),
        }
    }

    async fn token_for(
        &self,
        to: &DeliveryTarget,
        refused: Option<SecretText>,
    ) -> Result<SecretText, AuthFault> {
        let Integration { version, origin, .. } = &to.integration;
        let wanted =
            TokenRequest { version: *version, origin: origin.clone(), now: self.clock.now(), refused };
        self.token(to.endpoint.taxpayer_id, wanted).await
    }

    async fn in_time(&self, attempt: impl Future<Output = Attempt>) -> Attempt {
        let started = Instant::now();
        let made = tokio::time::timeout(self.client.timeout(), attempt).await;
        let made = made.unwrap_or_else(|_| Attempt::unanswered(Outcome::TimedOut));
        Attempt { duration: started.elapsed(), ..made }
    }
}

async fn post_with(
    client: &GuardedClient,
    credentials: Result<Credentials, AuthFault>,
    post: Post<'_>,
) -> Attempt {
    match credentials {
        Ok(credentials) => client.post_as(post, &credentials).await,
        Err(fault) => Attempt::unauthenticated(fault),
    }
}

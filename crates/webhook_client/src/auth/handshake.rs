//! The NTLM handshake. Each request gets a connection of its own, because NTLM authenticates the connection.

use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use super::fault::AuthFault;
use super::nlmp::NonceAndTime;
use super::ntlm::{Negotiation, NtlmLogin};
use crate::attempt::{AttemptOutcome, AttemptResult, TransportFault};
use crate::http::client::{GuardedClient, PostRequest};

/// The largest number of clients that are kept for reuse, without open connections. Building a client is expensive.
const SPARE_CLIENTS_MAX: usize = 16;
const CHALLENGE_STATUS: u16 = 401;

/// A pool of clients for requests with NTLM.
#[derive(Debug, Default)]
pub struct NtlmConnections {
    spare: Mutex<Vec<GuardedClient>>,
}

impl NtlmConnections {
    /// Signs in and makes one attempt on a new connection. The client has the policy and the limits of `template`.
    pub async fn post(
        &self,
        template: &GuardedClient,
        post: PostRequest<'_>,
        login: NtlmLogin<'_>,
        nonce_and_time: NonceAndTime,
    ) -> AttemptResult {
        let Some(client) = self
            .take_spare(template)
            .or_else(|| template.with_own_connections().ok())
        else {
            return AttemptResult::without_response(AttemptOutcome::Unreachable(
                TransportFault::Tls,
            ));
        };
        match sign_in(&client, post, login, nonce_and_time).await {
            Ok(attempt) => {
                // After a response the connection is closed. Without a response it may still be open and authenticated,
                // so the client is dropped.
                if attempt.status.is_some() {
                    self.keep_spare(client);
                }
                attempt
            }
            Err(attempt) => *attempt,
        }
    }

    /// Takes a spare client that has the same address policy as `template`.
    fn take_spare(&self, template: &GuardedClient) -> Option<GuardedClient> {
        let mut spare = self.spare.lock().unwrap_or_else(PoisonError::into_inner);
        let at = spare
            .iter()
            .position(|client| client.policy() == template.policy())?;
        Some(spare.swap_remove(at))
    }

    fn keep_spare(&self, client: GuardedClient) {
        let mut spare = self.spare.lock().unwrap_or_else(PoisonError::into_inner);
        if spare.len() < SPARE_CLIENTS_MAX {
            spare.push(client);
        }
    }
}

/// Signs in and sends the request. If the sign-in fails, returns the failed attempt as the error.
async fn sign_in(
    client: &GuardedClient,
    post: PostRequest<'_>,
    login: NtlmLogin<'_>,
    nonce_and_time: NonceAndTime,
) -> Result<AttemptResult, Box<AttemptResult>> {
    let started = Instant::now();
    let failed = |fault: AuthFault| Box::new(AttemptResult::from_auth_fault(fault));
    let negotiation = Negotiation::begin(nonce_and_time);
    // The first message has no body, because the connection is not authenticated yet.
    let opening = PostRequest {
        headers: &[],
        body: b"",
        ..post
    };
    let (attempt, challenge) = client
        .exchange(opening, &negotiation.opening_header().map_err(failed)?)
        .await;
    let challenge = match (attempt.outcome, challenge) {
        (
            AttemptOutcome::Rejected(CHALLENGE_STATUS) | AttemptOutcome::Aborted(CHALLENGE_STATUS),
            Some(challenge),
        ) => challenge,
        // The endpoint did not ask for NTLM. It got only the first message, which has no body, so the notification
        // was not sent and the attempt fails.
        (
            AttemptOutcome::Rejected(CHALLENGE_STATUS)
            | AttemptOutcome::Delivered
            | AttemptOutcome::Aborted(_),
            _,
        ) => {
            return Err(failed(AuthFault::NtlmNotAsked));
        }
        _ => return Err(Box::new(attempt)),
    };
    let response = negotiation.response(&challenge, login).map_err(failed)?;
    let mut headers = post.headers.to_vec();
    headers.push(("connection", "close".to_owned()));
    Ok(client
        .for_rest_of_attempt(started)
        .exchange(
            PostRequest {
                headers: &headers,
                ..post
            },
            &response,
        )
        .await
        .0)
}

impl AttemptResult {
    /// Builds the result of an attempt that failed before the notification was sent. The log of attempts shows the
    /// reason.
    pub fn from_auth_fault(fault: AuthFault) -> Self {
        Self {
            response_head: fault.to_string(),
            ..Self::without_response(AttemptOutcome::Unauthenticated(fault))
        }
    }
}

//! NTLM signs in a connection, not a request: its messages go over one connection that nobody else uses and that
//! ends with the request, so that no other request is taken for one of its user.

use std::sync::{Mutex, PoisonError};

use super::fault::AuthFault;
use super::nlmp::Fresh;
use super::ntlm::{Login, Negotiation};
use crate::webhook::attempt::{Attempt, Fault, Outcome};
use crate::webhook::client::{GuardedClient, Post};

/// Clients without connections that are kept for the next sign-ins: to make one is work.
const SPARE_MAX: usize = 16;
const CHALLENGED: u16 = 401;

/// Where sign-ins take their connections from.
#[derive(Debug, Default)]
pub struct Handshakes {
    spare: Mutex<Vec<GuardedClient>>,
}

impl Handshakes {
    /// Signs in and makes one attempt, over a connection of its own.
    pub async fn post(
        &self,
        like: &GuardedClient,
        post: Post<'_>,
        login: Login<'_>,
        fresh: Fresh,
    ) -> Attempt {
        let Some(client) = self.spare_like(like).or_else(|| like.apart().ok()) else {
            return Attempt::unanswered(Outcome::Unreachable(Fault::Tls));
        };
        match sign_in(&client, post, login, fresh).await {
            Ok(attempt) => {
                // Its one connection was closed with the request; any other end leaves what must not be used again.
                if attempt.status.is_some() {
                    self.keep(client);
                }
                attempt
            }
            Err(attempt) => *attempt,
        }
    }

    /// One that may reach just what this one may.
    fn spare_like(&self, like: &GuardedClient) -> Option<GuardedClient> {
        let mut spare = self.spare.lock().unwrap_or_else(PoisonError::into_inner);
        let at = spare.iter().position(|client| client.policy() == like.policy())?;
        Some(spare.swap_remove(at))
    }

    fn keep(&self, client: GuardedClient) {
        let mut spare = self.spare.lock().unwrap_or_else(PoisonError::into_inner);
        if spare.len() < SPARE_MAX {
            spare.push(client);
        }
    }
}

/// The attempt that was signed in, or the one that came to no sign-in.
async fn sign_in(
    client: &GuardedClient,
    post: Post<'_>,
    login: Login<'_>,
    fresh: Fresh,
) -> Result<Attempt, Box<Attempt>> {
    let failed = |fault: AuthFault| Box::new(Attempt::unauthenticated(fault));
    let negotiation = Negotiation::begin(fresh);
    // Nothing is sent before the endpoint has asked who sends it.
    let opening = Post { headers: &[], body: b"", ..post };
    let (attempt, challenge) = client.exchange(opening, &negotiation.opening().map_err(failed)?).await;
    let challenge = match (attempt.outcome, challenge) {
        (Outcome::Rejected(CHALLENGED) | Outcome::Aborted(CHALLENGED), Some(challenge)) => challenge,
        // Whoever takes or aborts the opening speaks of a message that was not sent yet.
        (Outcome::Rejected(CHALLENGED) | Outcome::Delivered | Outcome::Aborted(_), _) => {
            return Err(failed(AuthFault::NtlmNotAsked));
        }
        _ => return Err(Box::new(attempt)),
    };
    let response = negotiation.response(&challenge, login).map_err(failed)?;
    let mut headers = post.headers.to_vec();
    headers.push(("connection", "close".to_owned()));
    Ok(client.exchange(Post { headers: &headers, ..post }, &response).await.0)
}

impl Attempt {
    /// An attempt that ended before anything could be sent. Its log says why.
    pub fn unauthenticated(fault: AuthFault) -> Self {
        Self { response_head: fault.to_string(), ..Self::unanswered(Outcome::Unauthenticated(fault)) }
    }
}

//! Links with which somebody without an account, such as a support engineer, sees one delivery and nothing else. The
//! link is not stored. Its token contains the id of the delivery and the time at which the link expires. The token is
//! signed with a key of this deployment and the signing secret of the endpoint. So a link ends when it expires, when the
//! endpoint gets a new signing secret, and when the endpoint is deleted.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jiff::Timestamp;
use uuid::Uuid;

use crate::actors::taxpayer::commands::ShareDelivery;
use crate::domain::events::delivery::Delivery;
use crate::domain::events::endpoint::Endpoint;
use crate::domain::kernel::audit::Actor;
use crate::domain::kernel::ids::EndpointKey;
use crate::domain::kernel::refusal::Refusal;
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;
use crate::store::webhooks;
use crate::store::webhooks::delivery_log::{self, LoggedDelivery};

/// The path of the page of a shared delivery, up to the token.
const PATH: &str = "/shared/deliveries/";
/// The default lifetime of a link, in seconds: 7 days.
pub(crate) const VALID_FOR_S_DEFAULT: u32 = 604_800;
/// The longest lifetime of a link, in seconds: 30 days.
pub(crate) const VALID_FOR_S_MAX: u32 = 2_592_000;
const PURPOSE: &str = "link to a delivery v1";
const SIGNED_BYTES: usize = 32;

/// A link that was just made, and the command that records who made it. Only a recorded link may be shown.
pub(crate) struct NewDeliveryLink {
    pub(crate) link: DeliveryLink,
    pub(crate) record: ShareDelivery,
}

/// The path of a link, and the time at which it expires.
pub(crate) struct DeliveryLink {
    pub(crate) path: String,
    pub(crate) expires_at: Timestamp,
}

/// The contents of the page that a link leads to.
pub(crate) struct SharedDelivery {
    pub(crate) logged: LoggedDelivery,
    pub(crate) endpoint: Endpoint,
    pub(crate) expires_at: Timestamp,
}

/// The signed part of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct LinkClaim {
    endpoint: EndpointKey,
    delivery: Uuid,
    /// Seconds since 1970 (Unix time).
    expires_at: i64,
}

impl LinkClaim {
    fn to_bytes(self) -> [u8; SIGNED_BYTES] {
        let mut bytes = [0; SIGNED_BYTES];
        bytes[..8].copy_from_slice(&self.endpoint.0.to_be_bytes());
        bytes[8..24].copy_from_slice(self.delivery.as_bytes());
        bytes[24..].copy_from_slice(&self.expires_at.to_be_bytes());
        bytes
    }

    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        Some(Self {
            endpoint: EndpointKey(i64::from_be_bytes(bytes.get(..8)?.try_into().ok()?)),
            delivery: Uuid::from_slice(bytes.get(8..24)?).ok()?,
            expires_at: i64::from_be_bytes(bytes.get(24..SIGNED_BYTES)?.try_into().ok()?),
        })
    }

    fn is_expired(self, now: Timestamp) -> bool {
        self.expires_at <= now.as_second()
    }

    /// Returns the text that is signed. It contains the endpoint's signing secret, so a new secret makes old links
    /// invalid.
    fn text_to_sign(self, secret: &str) -> Vec<u8> {
        [&self.to_bytes(), secret.as_bytes()].concat()
    }
}

/// Makes a link to a delivery that is valid for `valid_for_s` seconds.
pub(crate) async fn make_link(
    state: &ApiState,
    delivery: &Delivery,
    valid_for_s: u32,
    by: Actor,
) -> Result<NewDeliveryLink, ApiError> {
    let now = state.now();
    let (_, secret) = find_endpoint(state, delivery.endpoint)
        .await?
        .ok_or(Refusal::EndpointNotFound)?;
    let claim = LinkClaim {
        endpoint: delivery.endpoint,
        delivery: delivery.id,
        expires_at: now.as_second().saturating_add(valid_for_s.into()),
    };
    let expires_at = Timestamp::from_second(claim.expires_at).map_err(ApiError::internal)?;
    let signature = state.store.sign(PURPOSE, &claim.text_to_sign(&secret))?;
    let token = [&claim.to_bytes()[..], &signature].concat();
    Ok(NewDeliveryLink {
        link: DeliveryLink {
            path: format!("{PATH}{}", URL_SAFE_NO_PAD.encode(token)),
            expires_at,
        },
        record: ShareDelivery {
            delivery: delivery.id,
            endpoint: delivery.endpoint,
            expires_at,
            by,
        },
    })
}

/// Returns the delivery that a token names; `None` if the token is invalid or expired, or the delivery is gone.
pub(crate) async fn open_link(
    state: &ApiState,
    token: &str,
) -> Result<Option<SharedDelivery>, ApiError> {
    let Some((claim, signature)) = read_token(token) else {
        return Ok(None);
    };
    if claim.is_expired(state.now()) {
        return Ok(None);
    }
    let Some((endpoint, secret)) = find_endpoint(state, claim.endpoint).await? else {
        return Ok(None);
    };
    let store = &state.store;
    if !store.verifies(PURPOSE, &claim.text_to_sign(&secret), &signature) {
        return Ok(None);
    }
    let found = delivery_log::find_logged_by_id(store, claim.endpoint, claim.delivery).await?;
    let expires_at = Timestamp::from_second(claim.expires_at).map_err(ApiError::internal)?;
    Ok(found.map(|logged| SharedDelivery {
        logged,
        endpoint,
        expires_at,
    }))
}

fn read_token(token: &str) -> Option<(LinkClaim, Vec<u8>)> {
    let bytes = URL_SAFE_NO_PAD.decode(token).ok()?;
    let claim = LinkClaim::from_bytes(&bytes)?;
    Some((claim, bytes[SIGNED_BYTES..].to_vec()))
}

/// Returns an endpoint and its newest signing secret.
async fn find_endpoint(
    state: &ApiState,
    key: EndpointKey,
) -> Result<Option<(Endpoint, String)>, ApiError> {
    let found = webhooks::load_endpoint(&state.store, key, state.now()).await?;
    Ok(found.and_then(|found| Some((found.endpoint, found.secrets.into_iter().next()?))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_read_as_it_was_written_and_garbage_is_not() {
        let claim = LinkClaim {
            endpoint: EndpointKey(-7),
            delivery: Uuid::from_u128(9),
            expires_at: 1_768_471_200,
        };
        let token = URL_SAFE_NO_PAD.encode([&claim.to_bytes()[..], b"signature"].concat());
        assert_eq!(read_token(&token), Some((claim, b"signature".to_vec())));
        for odd in ["", "a", "not-the-token", "AAAA", "%00", &"!".repeat(99)] {
            assert_eq!(read_token(odd), None, "{odd}");
        }
    }

    #[test]
    fn a_link_is_over_at_its_last_second() {
        let claim = LinkClaim {
            endpoint: EndpointKey(1),
            delivery: Uuid::nil(),
            expires_at: 100,
        };
        let is_over = |second| claim.is_expired(Timestamp::from_second(second).unwrap());
        assert_eq!([99, 100, 101].map(is_over), [false, true, true]);
    }

    #[test]
    fn another_secret_makes_another_text() {
        let claim = LinkClaim {
            endpoint: EndpointKey(1),
            delivery: Uuid::nil(),
            expires_at: 1,
        };
        assert_ne!(claim.text_to_sign("whsec_a"), claim.text_to_sign("whsec_b"));
    }
}

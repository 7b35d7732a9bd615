//! Links with which somebody without an account, such as a support engineer, sees one delivery and nothing else. Such a
//! link is not stored. Its token contains the id of the delivery, the maker of the link, and the times at which the link
//! was made and at which it expires. The token is signed with a key of this deployment and the signing secret of the
//! endpoint. So a link ends when it expires, when its maker loses the right to make links or gets a new password, when
//! the endpoint gets a new signing secret, and when the endpoint is deleted.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jiff::Timestamp;
use uuid::Uuid;

use crate::actors::taxpayer::commands::ShareDelivery;
use crate::domain::access::session::{ContactRole, Rights, SessionOwner};
use crate::domain::events::delivery::Delivery;
use crate::domain::events::endpoint::Endpoint;
use crate::domain::kernel::audit::{Actor, AuditAction};
use crate::domain::kernel::ids::{ContactId, EndpointKey, IntegratorId, TaxpayerId};
use crate::domain::kernel::refusal::Refusal;
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;
use crate::store::accounts::person_accounts;
use crate::store::operations::audit;
use crate::store::webhooks;
use crate::store::webhooks::delivery_log::{self, LoggedDelivery};

/// The path of the page of a shared delivery, up to the token.
const PATH: &str = "/shared/deliveries/";
/// The default lifetime of a link, in seconds: 7 days.
pub(crate) const VALID_FOR_S_DEFAULT: u32 = 604_800;
/// The longest lifetime of a link, in seconds: 30 days.
pub(crate) const VALID_FOR_S_MAX: u32 = 2_592_000;
/// The purpose of the signature in a token, so that no signature made for another purpose is valid as a link.
const SIGNATURE_PURPOSE: &str = "link to a delivery v2";
const SIGNED_BYTES: usize = 49;
/// The actions after which the links of an account no longer count. It has lost, at least for a time, the right by which
/// it made them, or has a new password, because somebody else may know the old one and have made links with it.
const ACTIONS_THAT_END_LINKS: [AuditAction; 7] = [
    AuditAction::ChangePassword,
    AuditAction::AcceptInvitation,
    AuditAction::DisableContact,
    AuditAction::ChangeContactRole,
    AuditAction::DisableIntegrator,
    AuditAction::RevokeIntegratorKeys,
    AuditAction::RotateIntegratorKey,
];

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

/// A decoded token whose signature was not checked yet: anybody may have made it.
#[derive(Debug, PartialEq, Eq)]
struct UnverifiedToken {
    claim: LinkClaim,
    signature: Vec<u8>,
}

/// The signed part of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct LinkClaim {
    endpoint: EndpointKey,
    delivery: Uuid,
    /// Seconds since 1970 (Unix time).
    expires_at: i64,
    maker: LinkMaker,
    /// Microseconds since 1970.
    made_at: i64,
}

/// The account that made a link: a contact person of the endpoint's taxpayer, or an integrator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LinkMaker {
    Contact(ContactId),
    Integrator(IntegratorId),
}

impl LinkMaker {
    fn from_actor(actor: Actor) -> Option<Self> {
        match actor {
            Actor::Contact(id) => Some(Self::Contact(id)),
            Actor::Integrator(id) => Some(Self::Integrator(id)),
            _ => None,
        }
    }

    fn account(self, taxpayer: TaxpayerId) -> SessionOwner {
        match self {
            Self::Contact(id) => SessionOwner::Contact { taxpayer, id },
            Self::Integrator(id) => SessionOwner::Integrator(id),
        }
    }

    fn kind_and_id(self) -> (u8, i64) {
        match self {
            Self::Contact(id) => (1, id.0),
            Self::Integrator(id) => (2, id.0),
        }
    }

    fn from_kind_and_id(kind: u8, id: i64) -> Option<Self> {
        match kind {
            1 => Some(Self::Contact(ContactId(id))),
            2 => Some(Self::Integrator(IntegratorId(id))),
            _ => None,
        }
    }
}

impl LinkClaim {
    fn to_bytes(self) -> [u8; SIGNED_BYTES] {
        let mut bytes = [0; SIGNED_BYTES];
        bytes[..8].copy_from_slice(&self.endpoint.0.to_be_bytes());
        bytes[8..24].copy_from_slice(self.delivery.as_bytes());
        bytes[24..32].copy_from_slice(&self.expires_at.to_be_bytes());
        bytes[32..40].copy_from_slice(&self.made_at.to_be_bytes());
        let (kind, id) = self.maker.kind_and_id();
        bytes[40] = kind;
        bytes[41..].copy_from_slice(&id.to_be_bytes());
        bytes
    }

    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let number = |start: usize| -> Option<i64> {
            let eight = bytes.get(start..start + 8)?;
            Some(i64::from_be_bytes(eight.try_into().ok()?))
        };
        Some(Self {
            endpoint: EndpointKey(number(0)?),
            delivery: Uuid::from_slice(bytes.get(8..24)?).ok()?,
            expires_at: number(24)?,
            made_at: number(32)?,
            maker: LinkMaker::from_kind_and_id(*bytes.get(40)?, number(41)?)?,
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
    let (_, secret) = find_endpoint_and_secret(state, delivery.endpoint)
        .await?
        .ok_or(Refusal::EndpointNotFound)?;
    let claim = LinkClaim {
        endpoint: delivery.endpoint,
        delivery: delivery.id,
        expires_at: now.as_second().saturating_add(valid_for_s.into()),
        maker: LinkMaker::from_actor(by).ok_or_else(ApiError::route_not_found)?,
        made_at: now.as_microsecond(),
    };
    let expires_at = Timestamp::from_second(claim.expires_at).map_err(ApiError::internal)?;
    let signature = state
        .store
        .sign(SIGNATURE_PURPOSE, &claim.text_to_sign(&secret))?;
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

/// Returns the delivery that a token names; `None` if the token is invalid or expired, if its maker has lost the right
/// to make links or got a new password, or if the delivery is gone.
pub(crate) async fn open_link(
    state: &ApiState,
    token: &str,
) -> Result<Option<SharedDelivery>, ApiError> {
    let Some(UnverifiedToken { claim, signature }) = decode_token(token) else {
        return Ok(None);
    };
    if claim.is_expired(state.now()) {
        return Ok(None);
    }
    let Some((endpoint, secret)) = find_endpoint_and_secret(state, claim.endpoint).await? else {
        return Ok(None);
    };
    let store = &state.store;
    if !store.verifies(SIGNATURE_PURPOSE, &claim.text_to_sign(&secret), &signature) {
        return Ok(None);
    }
    if !is_maker_unchanged(state, claim, endpoint.taxpayer_id).await? {
        return Ok(None);
    }
    let logged = delivery_log::find_logged_by_id(store, claim.endpoint, claim.delivery).await?;
    let expires_at = Timestamp::from_second(claim.expires_at).map_err(ApiError::internal)?;
    Ok(logged.map(|logged| SharedDelivery {
        logged,
        endpoint,
        expires_at,
    }))
}

/// True if the maker of a link has had the right to make links, and the same password, ever since it was made.
async fn is_maker_unchanged(
    state: &ApiState,
    claim: LinkClaim,
    taxpayer: TaxpayerId,
) -> Result<bool, ApiError> {
    let store = &state.store;
    let maker = claim.maker.account(taxpayer);
    let person = person_accounts::find_person(store, maker).await?;
    if person.is_none_or(|person| person.rights != Rights::Account(ContactRole::Owner)) {
        return Ok(false);
    }
    let made_at = Timestamp::from_microsecond(claim.made_at).map_err(ApiError::internal)?;
    let is_ended =
        audit::has_action_since(store.reader(), maker, &ACTIONS_THAT_END_LINKS, made_at).await?;
    Ok(!is_ended)
}

/// Decodes a token; `None` if it is malformed.
fn decode_token(token: &str) -> Option<UnverifiedToken> {
    let bytes = URL_SAFE_NO_PAD.decode(token).ok()?;
    let claim = LinkClaim::from_bytes(&bytes)?;
    Some(UnverifiedToken {
        claim,
        signature: bytes[SIGNED_BYTES..].to_vec(),
    })
}

/// Returns an endpoint and its newest signing secret.
async fn find_endpoint_and_secret(
    state: &ApiState,
    key: EndpointKey,
) -> Result<Option<(Endpoint, String)>, ApiError> {
    let loaded = webhooks::load_endpoint(&state.store, key, state.now()).await?;
    Ok(loaded.and_then(|loaded| Some((loaded.endpoint, loaded.secrets.into_iter().next()?))))
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLAIM: LinkClaim = LinkClaim {
        endpoint: EndpointKey(-7),
        delivery: Uuid::from_u128(9),
        expires_at: 1_768_471_200,
        maker: LinkMaker::Contact(ContactId(6)),
        made_at: 1_768_000_000_000_001,
    };

    #[test]
    fn a_token_is_read_as_it_was_written_and_garbage_is_not() {
        let by_integrator = LinkClaim {
            maker: LinkMaker::Integrator(IntegratorId(6)),
            ..CLAIM
        };
        for claim in [CLAIM, by_integrator] {
            let token = URL_SAFE_NO_PAD.encode([&claim.to_bytes()[..], b"signature"].concat());
            let signature = b"signature".to_vec();
            let expected = Some(UnverifiedToken { claim, signature });
            assert_eq!(decode_token(&token), expected);
        }
        let mut unknown_maker = CLAIM.to_bytes();
        unknown_maker[40] = 0;
        assert_eq!(decode_token(&URL_SAFE_NO_PAD.encode(unknown_maker)), None);
        for odd in ["", "a", "not-the-token", "AAAA", "%00", &"!".repeat(99)] {
            assert_eq!(decode_token(odd), None, "{odd}");
        }
    }

    #[test]
    fn a_link_expires_at_its_last_second() {
        let claim = LinkClaim {
            expires_at: 100,
            ..CLAIM
        };
        let is_expired = |second| claim.is_expired(Timestamp::from_second(second).unwrap());
        assert_eq!([99, 100, 101].map(is_expired), [false, true, true]);
    }

    #[test]
    fn another_secret_makes_another_text() {
        assert_ne!(CLAIM.text_to_sign("whsec_a"), CLAIM.text_to_sign("whsec_b"));
    }
}

//! Ends the wait of a relayed call when its key stops being valid. Work that the call has started at the authority
//! belongs to the taxpayer and continues.

use std::net::IpAddr;
use std::time::Duration;

use actix_web::{HttpRequest, web};
use secrecy::{ExposeSecret, SecretString};
use tokio::time::sleep;

use crate::domain::access::caller::KeyKind;
use crate::http::extract::auth::{self, ApiSurface};
use crate::http::middleware::client_address::client_address;
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;
use crate::store::accounts::keys;

/// The interval at which a waiting call checks that its key is still valid. Keys are cached, so this costs little (ADR
/// 0014).
const CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// The key of a call that waits.
pub(crate) struct KeyWatch {
    state: web::Data<ApiState>,
    kind: KeyKind,
    key: SecretString,
    address: Option<IpAddr>,
    surface: ApiSurface,
}

impl KeyWatch {
    /// Returns `None` if there is nothing to watch: the request has no key of this service, or `surface` is `None`.
    pub(crate) fn new(
        request: &HttpRequest,
        state: &web::Data<ApiState>,
        surface: Option<ApiSurface>,
    ) -> Option<Self> {
        let key = auth::sent_key(request)?;
        let kind = KeyKind::from_key(key)?;
        Some(Self {
            state: state.clone(),
            kind,
            key: key.to_owned().into(),
            address: client_address(request),
            surface: surface?,
        })
    }

    /// Waits until the key is no longer valid, and returns the error for the call. While the database fails, the key
    /// counts as valid.
    pub(crate) async fn wait_until_invalid(&self) -> ApiError {
        loop {
            sleep(CHECK_INTERVAL).await;
            let state = &self.state;
            let valid_key = keys::find_valid(
                &state.store,
                self.kind,
                self.key.expose_secret(),
                state.now(),
            )
            .await;
            if let Ok(Some(key)) = &valid_key {
                state.key_usage.record_use(key, self.address);
            }
            if matches!(valid_key, Ok(None)) {
                return self.surface.key_ended_error();
            }
        }
    }
}

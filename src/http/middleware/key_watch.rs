//! Ends the wait of a relayed call when its key ends. What the call began at the authority is the taxpayer's and goes on.

use std::time::Duration;

use actix_web::{HttpRequest, web};
use secrecy::{ExposeSecret, SecretString};
use tokio::time::sleep;

use crate::domain::access::caller::KeyKind;
use crate::http::extract::auth::{self, Surface};
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;
use crate::store::accounts::keys;

/// How often a waiting call looks whether its key is still valid. Keys are cached, so that this costs little (ADR 0014).
const EVERY: Duration = Duration::from_secs(1);

/// The key of a call that waits.
pub(crate) struct KeyWatch {
    state: web::Data<ApiState>,
    kind: KeyKind,
    key: SecretString,
    surface: Surface,
}

impl KeyWatch {
    /// Returns `None` for a call without a key.
    pub(crate) fn new(
        request: &HttpRequest,
        state: &web::Data<ApiState>,
        surface: Option<Surface>,
    ) -> Option<Self> {
        let key = auth::sent_key(request)?;
        let kind = KeyKind::from_key(key)?;
        Some(Self { state: state.clone(), kind, key: key.to_owned().into(), surface: surface? })
    }

    /// Waits until the key is no longer valid. While the database cannot be asked, the call goes on.
    pub(crate) async fn end(&self) -> ApiError {
        loop {
            sleep(EVERY).await;
            let state = &self.state;
            let found = keys::valid(&state.store, self.kind, self.key.expose_secret(), state.now()).await;
            if matches!(found, Ok(None)) {
                return self.surface.ended_error();
            }
        }
    }
}

//! Commands that make one-time links with which people choose a password. They may run beside a service. They return
//! only the path of the link, because they do not know the host under which the person reaches the service.

use rand::RngExt;
use serde_json::{Value, json};
use timing::clock::{self, Clock, SystemClock};

use crate::app::database::open_beside_service;
use crate::app::error::StartError;
use crate::config::Settings;
use crate::domain::access::api_key::KeyOwner;
use crate::domain::access::invitation::InvitationToken;
use crate::domain::access::session::SessionOwner;
use crate::domain::kernel::audit::Actor;
use crate::domain::kernel::ids::{ContactId, TaxpayerId};
use crate::store::accounts::invitations::{self, NewInvitation};

/// Makes a link for an operator or an integrator. The returned JSON is the only place where the link can be read.
pub async fn invite(settings: Settings, account: KeyOwner) -> Result<Value, StartError> {
    let owner = account
        .session_owner()
        .ok_or_else(|| StartError::no_account(account))?;
    make_invitation(settings, owner)
        .await?
        .ok_or_else(|| StartError::no_account(account))
}

/// Makes a link for a contact person of a taxpayer. The returned JSON is the only place where the link can be read.
pub async fn invite_contact(
    settings: Settings,
    taxpayer: TaxpayerId,
    id: ContactId,
) -> Result<Value, StartError> {
    make_invitation(settings, SessionOwner::Contact { taxpayer, id })
        .await?
        .ok_or(StartError::NoContact { taxpayer, id })
}

async fn make_invitation(
    settings: Settings,
    owner: SessionOwner,
) -> Result<Option<Value>, StartError> {
    let token = InvitationToken::new(clock::system_rng().random());
    let store = open_beside_service(&settings).await?;
    let by = Actor::CommandLine;
    let invitation = NewInvitation {
        owner,
        token: &token,
        by,
        reason: None,
        claim: None,
        now: SystemClock.now(),
    };
    let expires_at = invitations::add(&store, invitation).await;
    store.close().await;
    Ok(expires_at?.map(
        |expires_at| json!({ "id": owner.id(), "path": token.page_path(), "expires_at": expires_at.to_string() }),
    ))
}

//! Commands that disable, enable or remove an account or a contact person, and commands that change a role. A command
//! that ends keys returns only when no running service accepts these keys any more.

use serde_json::{Value, json};
use timing::clock::{Clock, SystemClock};

use crate::app::database::open_beside_service;
use crate::app::error::StartError;
use crate::config::Settings;
use crate::domain::access::api_key::KeyOwner;
use crate::domain::access::session::{ContactRole, OperatorRole};
use crate::domain::kernel::audit::Actor;
use crate::domain::kernel::ids::{ContactId, TaxpayerId};
use crate::http::views::account::{ChangedContact, ChangedRole, EnabledAccount, RevokedKeys};
use crate::store::accounts::access::{self, AccessChangeOutcome};
use crate::store::accounts::contacts::{self, ContactChange, ContactChangeResult};
use crate::store::accounts::{AccountChange, RevokedCounts};

/// A change of the access of an operator or an integrator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AccessAct {
    /// Disables the account. With `includes_taxpayers`, also ends the keys of the integrator's taxpayers.
    Disable {
        includes_taxpayers: bool,
    },
    Enable,
    /// Removes an operator.
    Remove,
    /// Gives an operator another role.
    Role(OperatorRole),
}

/// Changes the access of an account. Returns the counts of ended keys and sessions, or the new role.
pub async fn change_access(
    settings: Settings,
    owner: KeyOwner,
    act: AccessAct,
) -> Result<Value, StartError> {
    let store = open_beside_service(&settings).await?;
    let now = SystemClock.now();
    let change = AccountChange {
        owner,
        by: Actor::CommandLine,
        reason: None,
        address: None,
        now,
    };
    let outcome = match act {
        AccessAct::Disable { includes_taxpayers } => {
            access::disable_account(&store, change, includes_taxpayers).await
        }
        AccessAct::Enable => access::enable_account(&store, change).await,
        AccessAct::Remove => access::remove_operator(&store, change).await,
        AccessAct::Role(role) => access::set_operator_role(&store, change, role).await,
    };
    store.close().await;
    match (outcome?, act) {
        (AccessChangeOutcome::Unknown, _) => Err(StartError::no_account(owner)),
        (AccessChangeOutcome::LastAdmin, _) => Err(StartError::LastAdmin),
        (_, AccessAct::Enable) => Ok(json!(EnabledAccount { id: owner.id })),
        (_, AccessAct::Role(role)) => Ok(json!(ChangedRole { id: owner.id, role })),
        (AccessChangeOutcome::AlreadySo, _) => {
            Ok(json!(RevokedKeys::new(owner.id, RevokedCounts::default())))
        }
        (AccessChangeOutcome::Done(ended), _) => Ok(json!(RevokedKeys::new(owner.id, ended))),
    }
}

/// A change of a contact person of a taxpayer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ContactAct {
    Disable,
    Enable,
    Remove,
    Role(ContactRole),
}

/// Changes the access of a contact person. Returns the number of ended sessions.
pub async fn change_contact(
    settings: Settings,
    taxpayer: TaxpayerId,
    id: ContactId,
    act: ContactAct,
) -> Result<Value, StartError> {
    let store = open_beside_service(&settings).await?;
    let change = ContactChange {
        taxpayer,
        by: Actor::CommandLine,
        now: SystemClock.now(),
    };
    let outcome = match act {
        ContactAct::Disable => contacts::disable(&store, change, id).await,
        ContactAct::Enable => contacts::enable(&store, change, id).await,
        ContactAct::Remove => contacts::remove(&store, change, id).await,
        ContactAct::Role(role) => contacts::set_role(&store, change, id, role).await,
    };
    store.close().await;
    match outcome? {
        ContactChangeResult::Done { ended_sessions } => Ok(json!(ChangedContact {
            taxpayer_id: taxpayer,
            id,
            ended_sessions
        })),
        ContactChangeResult::Unknown => Err(StartError::NoContact { taxpayer, id }),
        ContactChangeResult::LastOwner => Err(StartError::LastOwner),
    }
}

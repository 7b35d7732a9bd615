//! Writes what a transaction changes of an account: the taxpayer, its endpoints with their secrets, its keys and its
//! settings. Such changes are rare, so they are written with separate statements for each taxpayer.

use std::collections::BTreeSet;
use std::time::Duration;

use database::{StoreError, Transaction};
use secrecy::ExposeSecret;
use timing::clock;
use webhook_client::SigningSecret;

use crate::actors::taxpayer::unit_of_work::UnitOfWork;
use crate::actors::taxpayer::write_set::FirstContact;
use crate::domain::access::api_key::KeyOwner;
use crate::domain::access::caller::KeyKind;
use crate::domain::access::session::ContactRole;
use crate::domain::kernel::ids::EndpointKey;
use crate::domain::party::email::email_key;
use crate::domain::party::settings::SettingChange;
use crate::store::Store;
use crate::store::accounts::contact_row;
use crate::store::accounts::keys;
use crate::store::accounts::logos;
use crate::store::accounts::taxpayers;
use crate::store::invoices::import_profiles;
use crate::store::lanes::{self, LaneKind, LanesToWake};
use crate::store::webhooks;
use crate::store::webhooks::integrations;
use crate::store::webhooks::secrets::{self, SecretRotation};

/// The time for which a replaced signing secret still signs notifications together with the new one.
const SECRET_OVERLAP: Duration = Duration::from_hours(24);

impl UnitOfWork {
    /// Returns the changed endpoints and those with a new secret, whose rows are written.
    pub(super) fn endpoints_to_write(&self) -> BTreeSet<EndpointKey> {
        let secrets = self.writes.secrets.iter();
        self.changed_endpoints()
            .map(|endpoint| endpoint.key)
            .chain(secrets.map(|(endpoint, _)| *endpoint))
            .chain(self.writes.removed_endpoints.iter().copied())
            .collect()
    }

    pub(super) async fn write_account(
        &self,
        store: &Store,
        tx: &Transaction,
    ) -> Result<(), StoreError> {
        let writes = &self.writes;
        if let Some(Some(taxpayer)) = self.taxpayer.changed_value() {
            match &writes.first_contact {
                Some(contact) => {
                    taxpayers::add(tx, taxpayer, self.to_contact_row(contact)).await?;
                    lanes::wake(
                        tx,
                        LaneKind::Verification,
                        &[self.id.to_string()],
                        LanesToWake::All,
                    )
                    .await?;
                }
                None => taxpayers::save(tx, taxpayer).await?,
            }
        }
        match &writes.logo {
            SettingChange::Keep => {}
            SettingChange::Unset => logos::remove(tx, self.id).await?,
            SettingChange::Set(logo) => logos::put(tx, self.id, logo).await?,
        }
        self.write_endpoints(store, tx).await?;
        if let Some(profile) = &writes.import_profile {
            import_profiles::save(tx, self.id, profile, self.now).await?;
        }
        if let Some(Some(integration)) = self.integration.changed_value() {
            integrations::save(store, tx, self.id, integration).await?;
        }
        let owner = KeyOwner {
            kind: KeyKind::Taxpayer,
            id: self.id.0,
        };
        for key in &writes.keys {
            keys::rotate(tx, owner, key, self.now).await?;
        }
        for id in &writes.revoked_keys {
            keys::revoke_one(tx, owner, id).await?;
        }
        Ok(())
    }

    async fn write_endpoints(&self, store: &Store, tx: &Transaction) -> Result<(), StoreError> {
        let writes = &self.writes;
        // Locks the lanes before the endpoints' own rows. The endpoints' workers lock in the same order, so the two
        // cannot deadlock.
        let lanes = self.endpoints_to_write();
        let lanes: Vec<_> = lanes.iter().map(EndpointKey::to_string).collect();
        lanes::wake(tx, LaneKind::Endpoint, &lanes, LanesToWake::All).await?;
        for endpoint in self.changed_endpoints() {
            // Only a new endpoint gets this secret. A stored endpoint keeps its own.
            let mut given = writes.first_secrets.iter();
            let secret = match given.find(|(key, _)| *key == endpoint.key) {
                Some((_, secret)) => secret.text(),
                None => SigningSecret::generate(&mut clock::system_rng()).text(),
            };
            webhooks::save(store, tx, endpoint, secret.expose_secret()).await?;
        }
        for (endpoint, secret) in &writes.secrets {
            let text = secret.text();
            let rotation = SecretRotation {
                secret: text.expose_secret(),
                public_key: secret.public_key(),
                now: self.now,
                overlap_until: self
                    .now
                    .saturating_add(SECRET_OVERLAP)
                    .unwrap_or(jiff::Timestamp::MAX),
            };
            secrets::rotate_secret(store, tx, *endpoint, rotation).await?;
        }
        webhooks::remove(tx, &writes.removed_endpoints).await
    }

    fn to_contact_row(&self, FirstContact { id, person }: &FirstContact) -> contact_row::Model {
        contact_row::Model {
            taxpayer_id: self.id.0,
            id: *id,
            first_name: person.first_name.clone(),
            last_name: person.last_name.clone(),
            email: person.email.clone(),
            email_key: email_key(&person.email),
            phone: person.phone.clone(),
            password_hash: person.password_hash.clone(),
            role: ContactRole::Owner.to_string(),
            created_at: self.now.as_microsecond(),
            updated_at: self.now.as_microsecond(),
            disabled_at: None,
        }
    }
}

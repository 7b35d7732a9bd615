//! The integration settings of taxpayers' ERPs. The vault seals the credentials so that they open only for their
//! taxpayer.

use std::fmt::Display;

use address_policy::AllowedNetwork;
use database::column::{RowRef, json};
use database::vault::Vault;
use database::{StoreError, Transaction};
use sea_orm::sea_query::OnConflict;
use sea_orm::{ConnectionTrait, EntityTrait, IntoActiveModel};
use serde::{Deserialize, Serialize};

use crate::domain::integration::origin::Origin;
use crate::domain::integration::{Auth, AuthType, Integration, IntegrationSummary};
use crate::domain::kernel::ids::TaxpayerId;
use crate::store::Store;
use crate::store::webhooks::integration_row::{Column, Entity, Model};

/// Loads a taxpayer's integration without its secrets.
pub async fn owned_by_without_secrets(
    connection: &impl ConnectionTrait,
    taxpayer: TaxpayerId,
) -> Result<IntegrationSummary, StoreError> {
    let found = Entity::find_by_id(taxpayer.0).one(connection).await?;
    Ok(found
        .map(IntegrationSummary::try_from)
        .transpose()?
        .unwrap_or_default())
}

/// Loads the private networks in which a taxpayer's endpoint may be.
pub async fn networks_owned_by(
    connection: &impl ConnectionTrait,
    taxpayer: TaxpayerId,
) -> Result<Vec<AllowedNetwork>, StoreError> {
    let found = Entity::find_by_id(taxpayer.0).one(connection).await?;
    Ok(found
        .as_ref()
        .map(parse_networks)
        .transpose()?
        .unwrap_or_default())
}

fn parse_networks(row: &Model) -> Result<Vec<AllowedNetwork>, StoreError> {
    let at = RowRef {
        table: "integrations",
        id: row.taxpayer_id,
    };
    Ok(row
        .allowed_networks
        .as_deref()
        .map(|text| at.parse_json(text))
        .transpose()?
        .unwrap_or_default())
}

/// Loads the complete integration of a taxpayer, with unsealed credentials.
pub async fn owned_by(
    store: &Store,
    connection: &impl ConnectionTrait,
    taxpayer: TaxpayerId,
) -> Result<Option<Integration>, StoreError> {
    let found = Entity::find_by_id(taxpayer.0).one(connection).await?;
    found
        .map(|row| unseal_integration(store.vault(), row))
        .transpose()
}

/// Writes the current state of a taxpayer's integration, new or existing.
pub async fn save(
    store: &Store,
    tx: &Transaction,
    taxpayer: TaxpayerId,
    integration: &Integration,
) -> Result<(), StoreError> {
    let auth = &integration.auth;
    let sealed = if auth.kind() == AuthType::None {
        None
    } else {
        let sealed = SealedSettings {
            origin: integration.origin.clone(),
            auth: auth.clone(),
        };
        Some(
            store
                .vault()
                .seal(&name_in_vault(taxpayer.0), &json(&sealed))?,
        )
    };
    let row = Model {
        taxpayer_id: taxpayer.0,
        erp_system: integration.erp_system.clone(),
        auth_type: auth.kind().to_string(),
        data_format: integration.format.kind().to_string(),
        format: json(&integration.format),
        settings: sealed,
        allowed_networks: Some(json(&integration.allowed_networks)),
        version: integration.version,
        created_at: integration.created_at.as_microsecond(),
        updated_at: integration.updated_at.as_microsecond(),
    };
    let changing = [
        Column::ErpSystem,
        Column::AuthType,
        Column::DataFormat,
        Column::Format,
        Column::Settings,
        Column::AllowedNetworks,
        Column::Version,
        Column::UpdatedAt,
    ];
    Entity::insert(row.into_active_model())
        .on_conflict(
            OnConflict::column(Column::TaxpayerId)
                .update_columns(changing)
                .to_owned(),
        )
        .exec_without_returning(tx)
        .await?;
    Ok(())
}

/// Converts a row and unseals its credentials. A row without authentication has no sealed text.
pub(crate) fn unseal_integration(vault: &Vault, row: Model) -> Result<Integration, StoreError> {
    let at = RowRef {
        table: "integrations",
        id: row.taxpayer_id,
    };
    let SealedSettings { origin, auth } = match &row.settings {
        Some(sealed) => parse_settings(at, &vault.open(&name_in_vault(row.taxpayer_id), sealed)?)?,
        None => SealedSettings {
            origin: None,
            auth: Auth::None,
        },
    };
    let integration = Integration {
        auth,
        origin,
        format: at.parse_json(&row.format)?,
        allowed_networks: parse_networks(&row)?,
        version: row.version,
        created_at: at.moment(row.created_at)?,
        updated_at: at.moment(row.updated_at)?,
        erp_system: row.erp_system.clone(),
    };
    if integration.summary() != IntegrationSummary::try_from(row)? {
        return Err(at.corrupt("its settings are of another type than it says"));
    }
    Ok(integration)
}

/// The content of the sealed text: the credentials, and the only origin to which they may be sent. So an attacker who
/// changes the URL in the database does not get the credentials.
#[derive(Serialize, Deserialize)]
struct SealedSettings {
    origin: Option<Origin>,
    auth: Auth,
}

/// Parses the decrypted text. Earlier versions stored no origin with the credentials. Such credentials are never sent.
fn parse_settings(at: RowRef<i64>, text: &str) -> Result<SealedSettings, StoreError> {
    at.parse_json(text).or_else(|_| {
        Ok(SealedSettings {
            origin: None,
            auth: at.parse_json(text)?,
        })
    })
}

/// Returns the name of the owner under which the vault seals the settings of a taxpayer.
pub(crate) fn name_in_vault(taxpayer: impl Display) -> String {
    format!("{taxpayer}/integration")
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;
    use crate::domain::integration::Format;
    use crate::store::testing::stores;

    const ID: TaxpayerId = TaxpayerId(7);

    fn basic(password: &str) -> Integration {
        Integration {
            erp_system: Some("sap".into()),
            auth: Auth::Basic {
                username: "ada".into(),
                password: password.to_owned().into(),
            },
            origin: Origin::from_url("https://erp.example"),
            format: Format::JsonRpc {
                method: "notify".into(),
            },
            allowed_networks: vec!["10.1.2.0/24:8443".parse().unwrap()],
            version: 1,
            created_at: Timestamp::UNIX_EPOCH,
            updated_at: Timestamp::UNIX_EPOCH,
        }
    }

    #[tokio::test]
    async fn an_integration_is_read_as_it_was_saved_and_its_secrets_are_sealed() {
        for test in stores().await {
            let store = &test.store;
            assert_eq!(
                owned_by_without_secrets(store.reader(), ID).await.unwrap(),
                IntegrationSummary::default()
            );
            assert!(owned_by(store, store.reader(), ID).await.unwrap().is_none());
            for (password, version) in [("hush", 1), ("hush again", 2)] {
                let tx = store.begin().await.unwrap();
                save(
                    store,
                    &tx,
                    ID,
                    &Integration {
                        version,
                        ..basic(password)
                    },
                )
                .await
                .unwrap();
                tx.commit().await.unwrap();
                let found = owned_by(store, store.reader(), ID).await.unwrap().unwrap();
                assert_eq!(
                    (found.version, found.auth.secrets()[0].1.expose()),
                    (version, password)
                );
                assert_eq!(
                    networks_owned_by(store.reader(), ID).await.unwrap(),
                    found.allowed_networks
                );
                assert_eq!(found.allowed_networks, basic("").allowed_networks);
                assert_eq!(found.origin, Origin::from_url("https://erp.example/hook"));
                assert_eq!(
                    owned_by_without_secrets(store.reader(), ID).await.unwrap(),
                    basic("").summary()
                );
                let row = Entity::find_by_id(ID.0)
                    .one(store.reader())
                    .await
                    .unwrap()
                    .unwrap();
                assert!(!format!("{row:?}").contains("hush"));
                assert!(
                    !format!("{row:?}").contains("erp.example"),
                    "the origin is sealed with them"
                );
                let before = store
                    .vault()
                    .seal(&name_in_vault(ID.0), &json(&basic("hush").auth))
                    .unwrap();
                let before = unseal_integration(
                    store.vault(),
                    Model {
                        settings: Some(before),
                        ..row.clone()
                    },
                )
                .unwrap();
                assert_eq!(
                    (before.origin.clone(), before.auth.kind()),
                    (None, AuthType::Basic)
                );
                assert!(
                    !before.may_authenticate_at("https://erp.example/"),
                    "older than the rule"
                );
                let moved = Model {
                    taxpayer_id: 8,
                    ..row.clone()
                };
                assert!(
                    unseal_integration(store.vault(), moved).is_err(),
                    "moved to another taxpayer it does not open"
                );
                let other = Model {
                    auth_type: "ntlm".into(),
                    ..row
                };
                assert!(matches!(
                    unseal_integration(store.vault(), other),
                    Err(StoreError::Corrupt { .. })
                ));
            }
        }
    }
}

//! The webhook addresses of taxpayers' chats. An address is a secret, because anybody who knows it can post to the
//! chat.

use database::StoreError;
use sea_orm::IntoActiveModel;
use sea_orm::entity::prelude::*;
use sea_orm::sea_query::OnConflict;
use secrecy::{ExposeSecret, SecretString};

use crate::domain::kernel::audit::AuditEntry;
use crate::domain::kernel::ids::TaxpayerId;
use crate::store::Store;
use crate::store::operations::audit;

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "chat_hooks")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub taxpayer_id: i64,
    pub url: String,
    pub updated_at: i64,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}

/// Returns the name under which the vault seals an address.
pub(in crate::store) fn name_in_vault(taxpayer: impl std::fmt::Display) -> String {
    format!("{taxpayer}/chat")
}

/// Sets the address, or removes it if `url` is `None`, and records this in the audit.
pub async fn set_address(
    store: &Store,
    taxpayer: TaxpayerId,
    url: Option<&SecretString>,
    entry: AuditEntry,
) -> Result<(), StoreError> {
    let tx = store.begin().await?;
    match url {
        None => {
            Entity::delete_by_id(taxpayer.0).exec(&tx).await?;
        }
        Some(url) => {
            let sealed = store
                .vault()
                .seal(&name_in_vault(taxpayer), url.expose_secret())?;
            let row = Model {
                taxpayer_id: taxpayer.0,
                url: sealed,
                updated_at: entry.at.as_microsecond(),
            };
            Entity::insert(row.into_active_model())
                .on_conflict(
                    OnConflict::column(Column::TaxpayerId)
                        .update_columns([Column::Url, Column::UpdatedAt])
                        .to_owned(),
                )
                .exec_without_returning(&tx)
                .await?;
        }
    }
    audit::append(&tx, &[entry]).await?;
    tx.commit().await
}

/// Returns the address of a taxpayer's chat, if it has one.
pub async fn owned_by(
    store: &Store,
    taxpayer: TaxpayerId,
) -> Result<Option<SecretString>, StoreError> {
    let row = Entity::find_by_id(taxpayer.0).one(store.reader()).await?;
    row.map(|row| {
        let url = store.vault().open(&name_in_vault(taxpayer), &row.url)?;
        Ok(url.into())
    })
    .transpose()
}

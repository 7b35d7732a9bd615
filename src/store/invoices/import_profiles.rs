//! The import profiles of taxpayers: values that their files lack.

use database::column::{RowRef, json};
use database::{StoreError, Transaction};
use jiff::Timestamp;
use sea_orm::entity::prelude::*;
use sea_orm::sea_query::OnConflict;
use sea_orm::{ConnectionTrait, IntoActiveModel};

use crate::domain::import::profile::ImportProfile;
use crate::domain::kernel::ids::TaxpayerId;

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "import_profiles")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub taxpayer_id: i64,
    pub profile: String,
    pub updated_at: i64,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}

/// Loads the import profile of a taxpayer; an empty one if none was set.
pub async fn owned_by(
    connection: &impl ConnectionTrait,
    taxpayer: TaxpayerId,
) -> Result<ImportProfile, StoreError> {
    let found = Entity::find_by_id(taxpayer.0).one(connection).await?;
    let at = RowRef {
        table: "import_profiles",
        id: taxpayer.0,
    };
    let profile = found.map(|row| at.parse_json(&row.profile)).transpose()?;
    Ok(profile.unwrap_or_default())
}

pub async fn save(
    tx: &Transaction,
    taxpayer: TaxpayerId,
    profile: &ImportProfile,
    now: Timestamp,
) -> Result<(), StoreError> {
    let row = Model {
        taxpayer_id: taxpayer.0,
        profile: json(profile),
        updated_at: now.as_microsecond(),
    };
    Entity::insert(row.into_active_model())
        .on_conflict(
            OnConflict::column(Column::TaxpayerId)
                .update_columns([Column::Profile, Column::UpdatedAt])
                .to_owned(),
        )
        .exec_without_returning(tx)
        .await?;
    Ok(())
}

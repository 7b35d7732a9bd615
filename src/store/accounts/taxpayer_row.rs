//! The table of taxpayers. The columns `…_key` and `tin_normal` hold normal forms, so that unique indexes also find
//! other spellings. `tin_skeleton` is equal for tax numbers that look alike to people.

use database::StoreError;
use database::column::{RowRef, fold_case};
use sea_orm::entity::prelude::*;

use crate::domain::kernel::ids::{IntegratorId, TaxpayerId};
use crate::domain::party::email::email_key;
use crate::domain::party::look_alike;
use crate::domain::party::normal_form;
use crate::domain::party::verification::Verification;
use crate::domain::party::{BusinessLocation, Taxpayer};
use crate::store::accounts::stored_settings;

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "taxpayers")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: i64,
    pub integrator_id: i64,
    pub name: String,
    pub email: String,
    pub email_key: String,
    pub tin: String,
    pub tin_normal: String,
    /// The form of the tax number that is equal for look-alikes (`look_alike::skeleton`). Empty for taxpayers whose
    /// number already looked like another one when look-alikes began to be refused.
    pub tin_skeleton: String,
    pub phone: Option<String>,
    pub nature_of_business: Option<String>,
    pub service_id: String,
    pub service_id_key: String,
    pub business_id: String,
    pub business_id_key: String,
    pub address: String,
    pub city: Option<String>,
    pub state: Option<String>,
    pub country: Option<String>,
    /// The settings of the account, as `stored_settings` writes them.
    pub settings: String,
    pub subscription: String,
    pub verification: String,
    pub verification_reason: Option<String>,
    /// The text in which searches look: name, tax number and email, one on each line, folded by
    /// `normal_form::fold_for_search`.
    pub search_text: String,
    pub created_at: i64,
    pub updated_at: i64,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}

impl TryFrom<Model> for Taxpayer {
    type Error = StoreError;

    fn try_from(row: Model) -> Result<Self, StoreError> {
        let at = RowRef {
            table: "taxpayers",
            id: row.id,
        };
        Ok(Self {
            id: TaxpayerId(row.id),
            integrator_id: IntegratorId(row.integrator_id),
            settings: stored_settings::parse_settings(&at, &row.settings)?,
            subscription: at.parse(&row.subscription)?,
            verification: Verification::parse(
                &row.verification,
                row.verification_reason.as_deref(),
            )
            .map_err(|fault| at.corrupt(fault))?,
            created_at: at.moment(row.created_at)?,
            updated_at: at.moment(row.updated_at)?,
            name: row.name,
            email: row.email,
            tin: row.tin,
            phone: row.phone,
            nature_of_business: row.nature_of_business,
            service_id: row.service_id,
            business_id: row.business_id,
            address: row.address,
            place: BusinessLocation {
                city: row.city,
                state: row.state,
                country: row.country,
            },
        })
    }
}

impl From<&Taxpayer> for Model {
    fn from(taxpayer: &Taxpayer) -> Self {
        Self {
            id: taxpayer.id.0,
            integrator_id: taxpayer.integrator_id.0,
            name: taxpayer.name.clone(),
            email: taxpayer.email.clone(),
            email_key: email_key(&taxpayer.email),
            tin: taxpayer.tin.clone(),
            tin_normal: normal_form::normal_tin(&taxpayer.tin).unwrap_or_default(),
            tin_skeleton: look_alike::skeleton(&taxpayer.tin),
            phone: taxpayer.phone.clone(),
            nature_of_business: taxpayer.nature_of_business.clone(),
            service_id: taxpayer.service_id.clone(),
            service_id_key: fold_case(&taxpayer.service_id),
            business_id: taxpayer.business_id.clone(),
            business_id_key: fold_case(&taxpayer.business_id),
            address: taxpayer.address.clone(),
            city: taxpayer.place.city.clone(),
            state: taxpayer.place.state.clone(),
            country: taxpayer.place.country.clone(),
            settings: stored_settings::settings_text(&taxpayer.settings),
            subscription: taxpayer.subscription.to_string(),
            verification: taxpayer.verification.status().to_string(),
            verification_reason: taxpayer.verification.reason().map(str::to_owned),
            search_text: search_text(taxpayer),
            created_at: taxpayer.created_at.as_microsecond(),
            updated_at: taxpayer.updated_at.as_microsecond(),
        }
    }
}

fn search_text(taxpayer: &Taxpayer) -> String {
    [&taxpayer.name, &taxpayer.tin, &taxpayer.email]
        .map(|text| normal_form::fold_for_search(text))
        .join("\n")
}

//! The table of the parts of UBL documents that no field of their invoices holds.

use database::column::{RowRef, json};
use database::{StoreError, Transaction};
use sea_orm::IntoActiveModel;
use sea_orm::entity::prelude::*;

use crate::domain::invoice::Invoice;
use crate::domain::invoice::ubl_parts::UblParts;
use crate::domain::kernel::ids::{InvoiceId, TaxpayerId};
use crate::store::Store;

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "invoice_ubl_parts")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub taxpayer_id: i64,
    #[sea_orm(primary_key, auto_increment = false)]
    pub invoice_id: i64,
    pub parts: String,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}

/// Adds the parts of a new invoice.
pub async fn add(
    tx: &Transaction,
    taxpayer: TaxpayerId,
    invoice: InvoiceId,
    parts: &UblParts,
) -> Result<(), StoreError> {
    let row = Model {
        taxpayer_id: taxpayer.0,
        invoice_id: invoice.0,
        parts: json(parts),
    };
    Entity::insert(row.into_active_model())
        .exec_without_returning(tx)
        .await?;
    Ok(())
}

/// Removes the parts of an invoice whose contents were replaced.
pub async fn remove(
    tx: &Transaction,
    taxpayer: TaxpayerId,
    invoice: InvoiceId,
) -> Result<(), StoreError> {
    Entity::delete_many()
        .filter(Column::TaxpayerId.eq(taxpayer.0))
        .filter(Column::InvoiceId.eq(invoice.0))
        .exec(tx)
        .await?;
    Ok(())
}

/// Loads the parts of an invoice; `None` if it was not imported from UBL or has no such parts.
pub async fn load_for_invoice(
    store: &Store,
    invoice: &Invoice,
) -> Result<Option<UblParts>, StoreError> {
    let id = (invoice.taxpayer_id.0, invoice.id.0);
    let found = Entity::find_by_id(id).one(store.reader()).await?;
    let at = RowRef {
        table: "invoice_ubl_parts",
        id: format!("{}/{}", id.0, id.1),
    };
    found.map(|row| at.parse_json(&row.parts)).transpose()
}

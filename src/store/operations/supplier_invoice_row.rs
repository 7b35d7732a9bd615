//! The table of supplier invoices, the inbox of a buyer. The documents are in `supplier_documents`.

use database::StoreError;
use database::column::RowRef;
use jiff::Timestamp;
use sea_orm::entity::prelude::*;

use crate::domain::kernel::ids::TaxpayerId;
use crate::domain::supplier_invoice::SupplierInvoice;

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "supplier_invoices")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub taxpayer_id: i64,
    #[sea_orm(primary_key, auto_increment = false)]
    pub irn_key: String,
    pub irn: String,
    pub supplier_name: Option<String>,
    pub supplier_tin: Option<String>,
    pub received_at: i64,
    pub acknowledged_at: Option<i64>,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}

impl TryFrom<Model> for SupplierInvoice {
    type Error = StoreError;

    fn try_from(row: Model) -> Result<Self, StoreError> {
        let at = RowRef {
            table: "supplier_invoices",
            id: format!("{}/{}", row.taxpayer_id, row.irn_key),
        };
        Ok(Self {
            taxpayer_id: TaxpayerId(row.taxpayer_id),
            irn: at.parse(&row.irn)?,
            received_at: at.moment(row.received_at)?,
            acknowledged_at: row
                .acknowledged_at
                .map(|moment| at.moment(moment))
                .transpose()?,
            supplier_name: row.supplier_name,
            supplier_tin: row.supplier_tin,
        })
    }
}

impl From<&SupplierInvoice> for Model {
    fn from(invoice: &SupplierInvoice) -> Self {
        Self {
            taxpayer_id: invoice.taxpayer_id.0,
            irn_key: invoice.irn.key(),
            irn: invoice.irn.to_string(),
            supplier_name: invoice.supplier_name.clone(),
            supplier_tin: invoice.supplier_tin.clone(),
            received_at: invoice.received_at.as_microsecond(),
            acknowledged_at: invoice.acknowledged_at.map(Timestamp::as_microsecond),
        }
    }
}

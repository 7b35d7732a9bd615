//! The corrections of signed invoices. The column `record` holds the documents and the state of a correction.

use database::column::{RowRef, json};
use database::{StoreError, Transaction};
use sea_orm::entity::prelude::*;
use sea_orm::sea_query::Expr;
use sea_orm::{ConnectionTrait, IntoActiveModel, QueryOrder};

use crate::domain::correction::record::Correction;
use crate::domain::invoice::Draft;
use crate::domain::kernel::ids::{InvoiceId, TaxpayerId};
use crate::store::Store;
use crate::store::lanes::{self, LaneKind, QueuedLane};

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "corrections")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub taxpayer_id: i64,
    #[sea_orm(primary_key, auto_increment = false)]
    pub correction_no: String,
    pub invoice_id: i64,
    pub record: String,
    pub replacement: Option<String>,
    pub created_at: i64,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}

/// A correction with the draft of its replacement, which is created after the credit note is signed.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredCorrection {
    pub correction: Correction,
    pub replacement: Option<Draft>,
}

/// The taxpayer and the number that identify a correction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CorrectionKey<'a> {
    pub taxpayer: TaxpayerId,
    pub correction_no: &'a str,
}

impl<'a> CorrectionKey<'a> {
    fn lane_key(self) -> String {
        format!("{}/{}", self.taxpayer, self.correction_no)
    }

    /// Parses the key of a correction's lane (`<taxpayer id>/<correction number>`); `None` if the text has another
    /// form.
    pub fn parse_lane_key(key: &'a str) -> Option<Self> {
        let (taxpayer, correction_no) = key.split_once('/')?;
        Some(Self {
            taxpayer: TaxpayerId(taxpayer.parse().ok()?),
            correction_no,
        })
    }
}

impl Model {
    fn row_ref(&self) -> RowRef<String> {
        RowRef {
            table: "corrections",
            id: format!("{}/{}", self.taxpayer_id, self.correction_no),
        }
    }

    fn correction(&self) -> Result<Correction, StoreError> {
        self.row_ref().parse_json(&self.record)
    }
}

impl TryFrom<Model> for StoredCorrection {
    type Error = StoreError;

    fn try_from(row: Model) -> Result<Self, StoreError> {
        let draft = row.replacement.as_deref();
        let replacement = draft
            .map(|draft| row.row_ref().parse_json(draft))
            .transpose()?;
        Ok(Self {
            correction: row.correction()?,
            replacement,
        })
    }
}

/// Stores a new correction and makes its lane due.
pub async fn start(
    tx: &Transaction,
    taxpayer: TaxpayerId,
    stored: &StoredCorrection,
) -> Result<(), StoreError> {
    let correction = &stored.correction;
    let key = CorrectionKey {
        taxpayer,
        correction_no: &correction.correction_no,
    };
    let created_at = correction.created_at.as_microsecond();
    let row = Model {
        taxpayer_id: taxpayer.0,
        correction_no: correction.correction_no.clone(),
        invoice_id: correction.original.0,
        record: json(correction),
        replacement: stored.replacement.as_ref().map(json),
        created_at,
    };
    let lane = QueuedLane {
        key: key.lane_key(),
        taxpayer_id: taxpayer.0,
        deadline: created_at,
        next_step: None,
    };
    Entity::insert(row.into_active_model())
        .exec_without_returning(tx)
        .await?;
    lanes::enqueue(tx, LaneKind::Correction, &[lane]).await
}

/// Writes the changed documents and state of a stored correction.
pub async fn save(
    tx: &Transaction,
    taxpayer: TaxpayerId,
    correction: &Correction,
) -> Result<(), StoreError> {
    Entity::update_many()
        .col_expr(Column::Record, Expr::value(json(correction)))
        .filter(Column::TaxpayerId.eq(taxpayer.0))
        .filter(Column::CorrectionNo.eq(correction.correction_no.as_str()))
        .exec(tx)
        .await?;
    Ok(())
}

pub async fn find_owned_by_number(
    store: &Store,
    key: CorrectionKey<'_>,
) -> Result<Option<StoredCorrection>, StoreError> {
    let found = Entity::find_by_id((key.taxpayer.0, key.correction_no.to_owned()))
        .one(store.reader())
        .await?;
    found.map(StoredCorrection::try_from).transpose()
}

/// Loads the corrections of these invoices, the newest first.
pub async fn find_owned_by_invoices(
    connection: &impl ConnectionTrait,
    taxpayer: TaxpayerId,
    invoices: &[InvoiceId],
) -> Result<Vec<Correction>, StoreError> {
    if invoices.is_empty() {
        return Ok(Vec::new());
    }
    let rows = Entity::find()
        .filter(Column::TaxpayerId.eq(taxpayer.0))
        .filter(Column::InvoiceId.is_in(invoices.iter().map(|id| id.0)))
        .order_by_desc(Column::CreatedAt)
        .all(connection)
        .await?;
    rows.iter().map(Model::correction).collect()
}

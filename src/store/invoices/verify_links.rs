//! The public pages of signed invoices: the secret token of each page, with its invoice. A token is created when
//! a link is first requested. It never changes, because it is printed on paper.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use database::StoreError;
use rand::RngExt as _;
use sea_orm::IntoActiveModel;
use sea_orm::entity::prelude::*;
use sea_orm::sea_query::OnConflict;
use timing::clock;

use crate::domain::invoice::Invoice;
use crate::domain::kernel::ids::{InvoiceId, TaxpayerId};
use crate::store::Store;

/// The length of a token in random bytes, large enough that nobody can guess a token.
const TOKEN_BYTES: usize = 16;

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "verify_links")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub taxpayer_id: i64,
    #[sea_orm(primary_key, auto_increment = false)]
    pub invoice_id: i64,
    pub token: String,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}

/// Returns the token of the invoice's page. Creates a random token if the invoice has none yet.
pub async fn load_or_create_token(store: &Store, invoice: &Invoice) -> Result<String, StoreError> {
    let id = (invoice.taxpayer_id.0, invoice.id.0);
    if let Some(row) = Entity::find_by_id(id).one(store.reader()).await? {
        return Ok(row.token);
    }
    let random: [u8; TOKEN_BYTES] = clock::system_rng().random();
    let row = Model {
        taxpayer_id: id.0,
        invoice_id: id.1,
        token: URL_SAFE_NO_PAD.encode(random),
    };
    let same_invoice = OnConflict::columns([Column::TaxpayerId, Column::InvoiceId]);
    let tx = store.begin().await?;
    Entity::insert(row.into_active_model())
        .on_conflict(same_invoice.clone().do_nothing().to_owned())
        .exec_without_returning(&tx)
        .await?;
    // Another request may have stored a token at the same time. The first token stays.
    let kept = Entity::find_by_id(id).one(&tx).await?;
    tx.commit().await?;
    kept.map(|row| row.token)
        .ok_or_else(|| StoreError::Corrupt {
            table: "verify_links",
            id: format!("{}/{}", id.0, id.1),
            reason: "it was not kept".to_owned(),
        })
}

/// Finds the invoice whose page has this token.
pub async fn find_invoice_by_token(
    store: &Store,
    token: &str,
) -> Result<Option<(TaxpayerId, InvoiceId)>, StoreError> {
    let found = Entity::find()
        .filter(Column::Token.eq(token))
        .one(store.reader())
        .await?;
    Ok(found.map(|row| (TaxpayerId(row.taxpayer_id), InvoiceId(row.invoice_id))))
}

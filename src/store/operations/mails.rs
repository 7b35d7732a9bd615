//! The mails that are to be sent, and those that were. One worker of the deployment sends them, under the lease of a lane.

use database::column::RowRef;
use database::page::{self, Page};
use database::{StoreError, Transaction};
use jiff::{SignedDuration, Timestamp};
use sea_orm::entity::prelude::*;
use sea_orm::sea_query::Expr;
use sea_orm::{IntoActiveModel, QueryOrder, QuerySelect};
use timing::clock;

use crate::domain::kernel::codes::words;
use crate::domain::notice::{NoticeScope, NoticeTopic};
use crate::store::Store;
use crate::store::old_rows::delete_before;

words! {
    MailState { Waiting = "waiting", Sent = "sent", Failed = "failed" }
}

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "mails")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: String,
    pub recipient: String,
    pub topic: String,
    pub subject: String,
    pub body: String,
    pub html: String,
    pub unsubscribe: Option<String>,
    pub link_for: Option<String>,
    pub state: String,
    pub attempts: i32,
    pub next_attempt_at: i64,
    pub last_error: Option<String>,
    pub created_at: i64,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}

/// What a mail says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Letter {
    pub subject: String,
    pub text: String,
    pub html: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mail {
    /// The id of the message, too: it stays the same when the mail is sent again.
    pub id: String,
    pub recipient: String,
    pub topic: NoticeTopic,
    pub letter: Letter,
    /// The address with which the recipient ends such mails.
    pub unsubscribe: Option<String>,
    /// The person who chooses a password with the link in the mail.
    pub link_for: Option<NoticeScope>,
    pub state: MailState,
    pub attempts: i32,
    pub last_error: Option<String>,
    pub created_at: Timestamp,
}

/// A mail that is not stored yet.
#[derive(Debug, Clone)]
pub struct NewMail {
    pub recipient: String,
    pub topic: NoticeTopic,
    pub letter: Letter,
    pub unsubscribe: Option<String>,
    pub link_for: Option<NoticeScope>,
}

/// What came of an attempt to send a mail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MailOutcome {
    Sent,
    /// It is tried again after this time.
    Retry(SignedDuration, String),
    Failed(String),
}

impl TryFrom<Model> for Mail {
    type Error = StoreError;

    fn try_from(row: Model) -> Result<Self, StoreError> {
        let at = RowRef {
            table: "mails",
            id: row.id.clone(),
        };
        Ok(Self {
            topic: at.parse(&row.topic)?,
            state: at.parse(&row.state)?,
            created_at: at.moment(row.created_at)?,
            letter: Letter {
                subject: row.subject,
                text: row.body,
                html: row.html,
            },
            id: row.id,
            recipient: row.recipient,
            unsubscribe: row.unsubscribe,
            link_for: row.link_for.map(|text| at.parse(&text)).transpose()?,
            attempts: row.attempts,
            last_error: row.last_error,
        })
    }
}

/// Adds mails that are to be sent at once.
pub async fn add(tx: &Transaction, new: Vec<NewMail>, now: Timestamp) -> Result<(), StoreError> {
    if new.is_empty() {
        return Ok(());
    }
    let rows = new.into_iter().map(|mail| {
        let row = Model {
            id: clock::new_id().to_string(),
            recipient: mail.recipient,
            topic: mail.topic.to_string(),
            subject: mail.letter.subject,
            body: mail.letter.text,
            html: mail.letter.html,
            unsubscribe: mail.unsubscribe,
            link_for: mail.link_for.map(|person| person.to_string()),
            state: MailState::Waiting.to_string(),
            attempts: 0,
            next_attempt_at: now.as_microsecond(),
            last_error: None,
            created_at: now.as_microsecond(),
        };
        row.into_active_model()
    });
    Entity::insert_many(rows).exec_without_returning(tx).await?;
    Ok(())
}

/// Counts the mails with a link that were written to an address since this time.
pub async fn count_links(
    store: &Store,
    recipient: &str,
    since: Timestamp,
) -> Result<u64, StoreError> {
    let mails = Entity::find()
        .filter(Expr::cust("link_for IS NOT NULL"))
        .filter(Column::Recipient.eq(recipient))
        .filter(Column::CreatedAt.gt(since.as_microsecond()));
    Ok(mails.count(store.reader()).await?)
}

/// Loads the mails that are to be sent now, those first that have waited longest.
pub async fn due(store: &Store, now: Timestamp, limit: u64) -> Result<Vec<Mail>, StoreError> {
    let rows = Entity::find()
        .filter(Expr::cust("state = 'waiting'"))
        .filter(Column::NextAttemptAt.lte(now.as_microsecond()))
        .order_by_asc(Column::NextAttemptAt)
        .order_by_asc(Column::Id)
        .limit(limit)
        .all(store.reader())
        .await?;
    rows.into_iter().map(Mail::try_from).collect()
}

/// Records what came of an attempt.
pub async fn record(
    tx: &Transaction,
    mail: &Mail,
    outcome: &MailOutcome,
    now: Timestamp,
) -> Result<(), StoreError> {
    let (state, error, next) = match outcome {
        MailOutcome::Sent => (MailState::Sent, None, now),
        MailOutcome::Failed(error) => (MailState::Failed, Some(error.clone()), now),
        MailOutcome::Retry(wait, error) => {
            let next = now.saturating_add(*wait).unwrap_or(Timestamp::MAX);
            (MailState::Waiting, Some(error.clone()), next)
        }
    };
    Entity::update_many()
        .col_expr(Column::State, Expr::value(state.as_str()))
        .col_expr(Column::Attempts, Expr::value(mail.attempts + 1))
        .col_expr(Column::LastError, Expr::value(error))
        .col_expr(Column::NextAttemptAt, Expr::value(next.as_microsecond()))
        .filter(Column::Id.eq(mail.id.as_str()))
        .exec(tx)
        .await?;
    Ok(())
}

/// Loads one page of all mails, newest first, and the number of all of them.
pub async fn page(store: &Store, page: Page) -> Result<(Vec<Mail>, u64), StoreError> {
    let all = Entity::find()
        .order_by_desc(Column::CreatedAt)
        .order_by_desc(Column::Id);
    page::load(store, all, page).await
}

/// Deletes up to `limit` old mails. Returns true if there may be more.
pub async fn sweep(store: &Store, before: Timestamp, limit: u64) -> Result<bool, StoreError> {
    delete_before::<Entity>(store, Column::Id, Column::CreatedAt, before, limit).await
}

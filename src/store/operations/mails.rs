//! The mails that wait to be sent, and those that were sent or failed. One worker of the deployment sends them, while
//! it holds the lease of a lane.

use database::column::RowRef;
use database::page::{self, Page};
use database::{StoreError, Transaction, statement_portions};
use jiff::{SignedDuration, Timestamp};
use sea_orm::entity::prelude::*;
use sea_orm::sea_query::Expr;
use sea_orm::{Condition, IntoActiveModel, QueryOrder, QuerySelect};
use timing::clock;

use crate::domain::kernel::codes::words;
use crate::domain::notice::{NoticeKind, NoticeScope, NoticeTopic};
use crate::domain::outage::CLOCK_DIFFERENCE_MAX;
use crate::store::Store;
use crate::store::old_rows::delete_before;

/// The maximum number of mails with a link that an address gets within `LINKS_PERIOD` because somebody claimed at the
/// sign-in to have lost the password. Invitations are not counted, so that they cannot use up these mails.
const LINKS_MAX: u64 = 3;
/// The maximum number of mails with a link, for any cause, that an address may have got within `LINKS_PERIOD` before it
/// is invited once more. It is larger than `LINKS_MAX`, so that strangers at the sign-in cannot use up the invitations.
const INVITATIONS_MAX: u64 = LINKS_MAX + 10;
const LINKS_PERIOD: SignedDuration = SignedDuration::from_hours(24);

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
    pub scope: Option<String>,
    pub person: Option<String>,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}

/// The contents of a mail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Letter {
    pub subject: String,
    pub text: String,
    pub html: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mail {
    /// The id of the mail, also in its headers. It stays the same if the mail is sent again.
    pub id: String,
    pub recipient: String,
    pub topic: NoticeTopic,
    pub letter: Letter,
    /// The address with which the recipient unsubscribes from such mails; `None` if that is not possible.
    pub unsubscribe: Option<String>,
    /// The person who may choose a password through the link in the mail; `None` if it has no such link.
    pub link_for: Option<NoticeScope>,
    pub state: MailState,
    pub attempts: i32,
    pub last_error: Option<String>,
    pub created_at: Timestamp,
    /// The recipients of the notices in the mail; `None` in mails from before this was stored.
    pub scope: Option<NoticeScope>,
    /// The person who gets the mail; `None` for a chat, and in mails from before this was stored.
    pub person: Option<NoticeScope>,
}

/// The channel of a message. The recipient of a mail contains an `@`, that of a post to a chat does not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MailChannel {
    Mail,
    Chat,
}

/// A mail that is not stored yet.
#[derive(Debug, Clone)]
pub struct NewMail {
    pub recipient: String,
    pub topic: NoticeTopic,
    pub letter: Letter,
    pub unsubscribe: Option<String>,
    pub link_for: Option<NoticeScope>,
    pub scope: NoticeScope,
    pub person: Option<NoticeScope>,
}

/// The outcome of an attempt to send a mail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MailOutcome {
    Sent,
    /// The attempt failed for this reason. The next attempt is made after this time.
    Retry(SignedDuration, String),
    /// No attempt was made, because other mails could not be sent. The first attempt is made after this time.
    Postponed(SignedDuration),
    Failed(String),
}

impl MailOutcome {
    fn state(&self) -> MailState {
        match self {
            Self::Sent => MailState::Sent,
            Self::Retry(..) | Self::Postponed(_) => MailState::Waiting,
            Self::Failed(_) => MailState::Failed,
        }
    }

    fn error(&self) -> Option<String> {
        match self {
            Self::Sent | Self::Postponed(_) => None,
            Self::Retry(_, error) | Self::Failed(error) => Some(error.clone()),
        }
    }

    /// Returns the time until the next attempt; zero if there is none.
    fn retry_delay(&self) -> SignedDuration {
        match self {
            Self::Sent | Self::Failed(_) => SignedDuration::ZERO,
            Self::Retry(wait, _) | Self::Postponed(wait) => *wait,
        }
    }
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
            scope: row.scope.map(|text| at.parse(&text)).transpose()?,
            person: row.person.map(|text| at.parse(&text)).transpose()?,
            attempts: row.attempts,
            last_error: row.last_error,
        })
    }
}

/// Adds mails, which are due at once.
pub async fn add(tx: &Transaction, new: Vec<NewMail>, now: Timestamp) -> Result<(), StoreError> {
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
            scope: Some(mail.scope.to_string()),
            person: mail.person.map(|person| person.to_string()),
        };
        row.into_active_model()
    });
    let rows: Vec<_> = rows.collect();
    for some in statement_portions(&rows) {
        Entity::insert_many(some.iter().cloned())
            .exec_without_returning(tx)
            .await?;
    }
    Ok(())
}

/// True if an address may get one more mail with a link for this cause, an invitation or a lost password, within
/// `LINKS_PERIOD`.
pub async fn may_get_link_mail(
    store: &Store,
    recipient: &str,
    cause: NoticeKind,
    now: Timestamp,
) -> Result<bool, StoreError> {
    let since = now - LINKS_PERIOD;
    let all = Entity::find()
        .filter(Expr::cust("link_for IS NOT NULL"))
        .filter(Column::Recipient.eq(recipient))
        .filter(Column::CreatedAt.gt(since.as_microsecond()));
    if cause == NoticeKind::Invited {
        return Ok(all.count(store.reader()).await? < INVITATIONS_MAX);
    }
    let lost = all.filter(Column::Scope.eq(NoticeScope::SignIn.to_string()));
    Ok(lost.count(store.reader()).await? < LINKS_MAX)
}

/// Loads up to `limit` due mails of one channel, the longest due first. Of the posts to each chat only the oldest is
/// loaded, so that a chat that does not respond leaves room for others.
pub async fn load_due(
    store: &Store,
    now: Timestamp,
    channel: MailChannel,
    limit: u64,
) -> Result<Vec<Mail>, StoreError> {
    let of_channel = match channel {
        MailChannel::Mail => "recipient LIKE '%@%'".to_owned(),
        MailChannel::Chat => format!(
            "id IN (SELECT MIN(id) FROM mails WHERE state = 'waiting' AND recipient NOT LIKE '%@%' \
             AND next_attempt_at <= {} GROUP BY recipient)",
            now.as_microsecond()
        ),
    };
    let rows = Entity::find()
        .filter(Expr::cust("state = 'waiting'"))
        .filter(Expr::cust(of_channel))
        .filter(Column::NextAttemptAt.lte(now.as_microsecond()))
        .order_by_asc(Column::NextAttemptAt)
        .order_by_asc(Column::Id)
        .limit(limit)
        .all(store.reader())
        .await?;
    rows.into_iter().map(Mail::try_from).collect()
}

/// Records the outcome of an attempt. A postponed mail keeps its number of attempts and its last error.
pub async fn record_outcome(
    tx: &Transaction,
    mail: &Mail,
    outcome: &MailOutcome,
    now: Timestamp,
) -> Result<(), StoreError> {
    let next = now
        .saturating_add(outcome.retry_delay())
        .unwrap_or(Timestamp::MAX);
    let mut change = Entity::update_many()
        .col_expr(Column::State, Expr::value(outcome.state().as_str()))
        .col_expr(Column::NextAttemptAt, Expr::value(next.as_microsecond()));
    if !matches!(outcome, MailOutcome::Postponed(_)) {
        change = change
            .col_expr(Column::Attempts, Expr::value(mail.attempts + 1))
            .col_expr(Column::LastError, Expr::value(outcome.error()));
    }
    change
        .filter(Column::Id.eq(mail.id.as_str()))
        .exec(tx)
        .await?;
    Ok(())
}

/// Makes the waiting mails due now whose next attempt is after `latest`, or that were created in the future: these
/// times are from before the clock was set back. A time of creation in the future becomes the present. Returns the
/// number of mails that were made due.
pub async fn make_due_after_clock_set_back(
    store: &Store,
    now: Timestamp,
    latest: Timestamp,
) -> Result<u64, StoreError> {
    let future = now.saturating_add(CLOCK_DIFFERENCE_MAX);
    let future = future.unwrap_or(Timestamp::MAX).as_microsecond();
    let is_too_late = Condition::any()
        .add(Column::NextAttemptAt.gt(latest.as_microsecond()))
        .add(Column::CreatedAt.gt(future));
    let tx = store.begin().await?;
    let made_due = Entity::update_many()
        .col_expr(Column::NextAttemptAt, Expr::value(now.as_microsecond()))
        .filter(Expr::cust("state = 'waiting'"))
        .filter(is_too_late)
        .exec(&tx)
        .await?;
    Entity::update_many()
        .col_expr(Column::CreatedAt, Expr::value(now.as_microsecond()))
        .filter(Column::CreatedAt.gt(future))
        .exec(&tx)
        .await?;
    tx.commit().await?;
    Ok(made_due.rows_affected)
}

/// Loads one page of all mails, newest first, and the number of all of them.
pub async fn page(store: &Store, page: Page) -> Result<(Vec<Mail>, u64), StoreError> {
    let all = Entity::find()
        .order_by_desc(Column::CreatedAt)
        .order_by_desc(Column::Id);
    page::load(store, all, page).await
}

/// Deletes up to `limit` mails that were created before this time, oldest first, in whichever state. Returns true if
/// more may be left.
pub async fn sweep(store: &Store, before: Timestamp, limit: u64) -> Result<bool, StoreError> {
    delete_before::<Entity>(store, Column::Id, Column::CreatedAt, before, limit).await
}

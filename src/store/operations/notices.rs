//! The notices that wait to be sent by mail. A notice is written in the transaction of the change that it reports.
//! `take_notices` deletes the notices of one scope and topic in the transaction that stores the mails about them, so
//! that each notice is sent once.

use std::collections::{HashMap, HashSet};

use database::column::RowRef;
use database::{StoreError, Transaction, statement_portions};
use jiff::{SignedDuration, Timestamp};
use sea_orm::entity::prelude::*;
use sea_orm::{
    Condition, ConnectionTrait, IntoActiveModel, QueryOrder, QuerySelect, Select, Statement, Value,
};
use timing::clock;

use crate::domain::kernel::codes::{AuthorityStatus, WorkflowStatus};
use crate::domain::kernel::ids::IntegratorId;
use crate::domain::notice::{Notice, NoticeKind, NoticeScope, NoticeTopic};
use crate::domain::outage::{CLOCK_DIFFERENCE_MAX, Outage, OutageEdge};
use crate::store::Store;
use crate::store::accounts::taxpayer_row;
use crate::store::invoices::invoice_row;
use crate::store::old_rows::delete_selected;
use crate::store::operations::work_facts::first_id_after;

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "notices")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: String,
    pub scope: String,
    pub topic: String,
    pub kind: String,
    pub about: String,
    pub detail: String,
    pub at: i64,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}

/// The maximum number of notices that one mail sums up. Further notices are left for the next mail.
const TAKEN_MAX: i64 = 5_000;
/// The maximum number of notices with a link that are taken in one transaction. It is small, because each needs a
/// look-up of the person.
const LINKS_TAKEN_MAX: i64 = 100;
/// The maximum number of groups that `due_groups` returns.
const GROUPS_MAX: i64 = 500;
/// Only taxpayers that created an invoice within this time are told of an outage.
const ACTIVE_FOR: SignedDuration = SignedDuration::from_hours(30 * 24);

/// The authority statuses of a signed invoice that leave open whether a later step, such as the transmission, has
/// stopped.
const UNCLEAR_STATUSES: [AuthorityStatus; 3] = [
    AuthorityStatus::Rejected,
    AuthorityStatus::Failed,
    AuthorityStatus::Acknowledged,
];

/// The times for which notices wait, so that one mail can sum up several of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GatherDelays {
    /// The time for which the first notice of a topic waits for others.
    pub gather: SignedDuration,
    /// The minimum time between two mails about the same topic, if the topic is one with frequent notices.
    pub repeat: SignedDuration,
}

/// All notices of one scope and topic.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoticeGroup {
    pub scope: NoticeScope,
    pub topic: NoticeTopic,
}

impl From<&Notice> for Model {
    fn from(notice: &Notice) -> Self {
        Self {
            id: clock::new_id().to_string(),
            scope: notice.scope.to_string(),
            topic: notice.kind.topic().to_string(),
            kind: notice.kind.to_string(),
            about: notice.about.clone(),
            detail: notice.detail.clone(),
            at: notice.at.as_microsecond(),
        }
    }
}

impl TryFrom<Model> for Notice {
    type Error = StoreError;

    fn try_from(row: Model) -> Result<Self, StoreError> {
        let at = RowRef {
            table: "notices",
            id: row.id.as_str(),
        };
        Ok(Self {
            scope: at.parse(&row.scope)?,
            kind: at.parse(&row.kind)?,
            at: at.moment(row.at)?,
            about: row.about,
            detail: row.detail,
        })
    }
}

/// Adds notices. A notice of a kind that concerns integrators (`tells_integrator`) is also copied for the integrator of
/// the taxpayer.
pub async fn add(tx: &Transaction, notices: &[Notice]) -> Result<(), StoreError> {
    if notices.is_empty() {
        return Ok(());
    }
    let mut all = notices.to_vec();
    all.extend(copies_for_integrators(tx, notices).await?);
    for some in statement_portions(&all) {
        let rows = some
            .iter()
            .map(|notice| Model::from(notice).into_active_model());
        Entity::insert_many(rows).exec_without_returning(tx).await?;
    }
    Ok(())
}

async fn copies_for_integrators(
    tx: &Transaction,
    notices: &[Notice],
) -> Result<Vec<Notice>, StoreError> {
    let told = notices
        .iter()
        .filter(|notice| notice.kind.tells_integrator());
    let told: Vec<_> = told
        .filter_map(|notice| match notice.scope {
            NoticeScope::Taxpayer(id) => Some((id, notice)),
            NoticeScope::Person(_) | NoticeScope::SignIn => None,
        })
        .collect();
    if told.is_empty() {
        return Ok(Vec::new());
    }
    let rows = taxpayer_row::Entity::find()
        .filter(taxpayer_row::Column::Id.is_in(told.iter().map(|(id, _)| id.0)))
        .all(tx)
        .await?;
    let taxpayers: HashMap<_, _> = rows.into_iter().map(|row| (row.id, row)).collect();
    let copies = told.into_iter().filter_map(|(id, notice)| {
        let taxpayer = taxpayers.get(&id.0)?;
        let integrator = IntegratorId(taxpayer.integrator_id);
        Some(notice.for_integrator(integrator, &taxpayer.name, &taxpayer.tin))
    });
    Ok(copies.collect())
}

/// Adds the notices of the start or the end of an outage in one statement: one for each active taxpayer and one for
/// each enabled integrator.
pub async fn add_outage_notices(
    tx: &Transaction,
    outage: &Outage,
    edge: OutageEdge,
    now: Timestamp,
) -> Result<(), StoreError> {
    let kind = match edge {
        OutageEdge::Started => NoticeKind::OutageStarted,
        OutageEdge::Ended => NoticeKind::OutageEnded,
    };
    let detail = match edge {
        OutageEdge::Started => String::new(),
        OutageEdge::Ended => format!(
            "It was down since {}",
            outage.started_at.strftime("%Y-%m-%d %H:%M UTC")
        ),
    };
    let row = "CAST($1 AS TEXT) || '/' || {scope}, {scope}, CAST($2 AS TEXT), CAST($3 AS TEXT), '', \
               CAST($4 AS TEXT), CAST($5 AS BIGINT)";
    let taxpayer = row.replace("{scope}", "'taxpayer/' || CAST(t.id AS TEXT)");
    let integrator = row.replace("{scope}", "'integrator/' || CAST(i.id AS TEXT)");
    let sql = format!(
        "INSERT INTO notices (id, scope, topic, kind, about, detail, at) SELECT {taxpayer} FROM taxpayers t \
         WHERE t.subscription = 'active' AND EXISTS (SELECT 1 FROM invoices \
         WHERE taxpayer_id = t.id AND created_at > CAST($6 AS BIGINT)) \
         UNION ALL SELECT {integrator} FROM integrators i WHERE i.disabled_at IS NULL"
    );
    let values: [Value; 6] = [
        format!("{}/{edge}", outage.id).into(),
        kind.topic().as_str().into(),
        kind.as_str().into(),
        detail.into(),
        now.as_microsecond().into(),
        (now - ACTIVE_FOR).as_microsecond().into(),
    ];
    let backend = tx.get_database_backend();
    tx.execute_raw(Statement::from_sql_and_values(backend, sql, values))
        .await?;
    Ok(())
}

/// Returns the groups of notices that are to be mailed now: those that have waited long enough, and those about urgent
/// topics, which never wait. A notice that something works again makes its group due at once, if a mail about the topic
/// was sent before.
pub async fn due_groups(
    store: &Store,
    now: Timestamp,
    policy: GatherDelays,
) -> Result<Vec<NoticeGroup>, StoreError> {
    let words = |keep: fn(NoticeTopic) -> bool| {
        let topics = NoticeTopic::ALL.iter().filter(|topic| keep(**topic));
        let topics: Vec<_> = topics.map(|topic| format!("'{topic}'")).collect();
        topics.join(", ")
    };
    let recoveries = NoticeKind::ALL.iter().filter(|kind| kind.is_recovery());
    let recoveries: Vec<_> = recoveries.map(|kind| format!("'{kind}'")).collect();
    let sql = format!(
        "SELECT n.scope AS scope, n.topic AS topic FROM notices n \
         LEFT JOIN told_topics t ON t.scope = n.scope AND t.topic = n.topic GROUP BY n.scope, n.topic, t.at \
         HAVING n.topic IN ({urgent}) \
         OR (MIN(n.at) <= $1 AND (t.at IS NULL OR t.at <= $2 OR n.topic NOT IN ({frequent}))) \
         OR (t.at IS NOT NULL AND SUM(CASE WHEN n.kind IN ({recoveries}) THEN 1 ELSE 0 END) > 0) \
         ORDER BY MIN(n.at) LIMIT $3",
        urgent = words(NoticeTopic::is_urgent),
        frequent = words(NoticeTopic::is_frequent),
        recoveries = recoveries.join(", "),
    );
    let values: [Value; 3] = [
        (now - policy.gather).as_microsecond().into(),
        (now - policy.repeat).as_microsecond().into(),
        GROUPS_MAX.into(),
    ];
    let statement = Statement::from_sql_and_values(store.backend(), sql, values);
    let rows = store.reader().query_all_raw(statement).await?;
    let at = RowRef {
        table: "notices",
        id: "group",
    };
    rows.iter()
        .map(|row| {
            let (scope, topic): (String, String) =
                (row.try_get("", "scope")?, row.try_get("", "topic")?);
            Ok(NoticeGroup {
                scope: at.parse(&scope)?,
                topic: at.parse(&topic)?,
            })
        })
        .collect()
}

/// Deletes up to `TAKEN_MAX` notices of a group and returns them, earliest first. Records the time, because later
/// notices of the group may have to wait.
pub async fn take_notices(
    tx: &Transaction,
    group: NoticeGroup,
    now: Timestamp,
) -> Result<Vec<Notice>, StoreError> {
    let backend = tx.get_database_backend();
    let sql = "DELETE FROM notices WHERE id IN (SELECT id FROM notices WHERE scope = $1 AND topic = $2 \
               ORDER BY at, id LIMIT $3) RETURNING id, scope, topic, kind, about, detail, at";
    let (scope, topic) = (group.scope.to_string(), group.topic.as_str());
    let max = if group.topic == NoticeTopic::Access {
        LINKS_TAKEN_MAX
    } else {
        TAKEN_MAX
    };
    let values: [Value; 3] = [scope.clone().into(), topic.into(), max.into()];
    let statement = Statement::from_sql_and_values(backend, sql, values);
    let mut rows = Entity::find().from_raw_sql(statement).all(tx).await?;
    rows.sort_by(|one, other| (one.at, &one.id).cmp(&(other.at, &other.id)));
    let told = "INSERT INTO told_topics (scope, topic, at) VALUES ($1, $2, $3) \
                ON CONFLICT (scope, topic) DO UPDATE SET at = excluded.at";
    let values: [Value; 3] = [scope.into(), topic.into(), now.as_microsecond().into()];
    tx.execute_raw(Statement::from_sql_and_values(backend, told, values))
        .await?;
    rows.into_iter().map(Notice::try_from).collect()
}

/// Returns those of these invoice numbers about which nothing is left to be done: cancelled invoices, and signed
/// invoices. For the topic of failed invoices, a signed invoice counts only if its status shows that no later step,
/// such as the transmission, may have stopped (see `UNCLEAR_STATUSES`).
pub async fn find_settled_invoices(
    tx: &Transaction,
    group: NoticeGroup,
    numbers: &[&str],
) -> Result<HashSet<String>, StoreError> {
    let mut settled = HashSet::new();
    let NoticeScope::Taxpayer(taxpayer) = group.scope else {
        return Ok(settled);
    };
    let signed = Condition::all().add(invoice_row::Column::Signed.eq(true));
    let done = match group.topic {
        NoticeTopic::Deadlines => signed,
        NoticeTopic::Invoices => {
            let unclear = UNCLEAR_STATUSES.map(AuthorityStatus::as_str);
            signed.add(invoice_row::Column::AuthorityStatus.is_not_in(unclear))
        }
        _ => return Ok(settled),
    };
    let cancelled = invoice_row::Column::Status.eq(WorkflowStatus::Cancelled.as_str());
    let settling = Condition::any().add(cancelled).add(done);
    for some in statement_portions(numbers) {
        let rows: Vec<String> = invoice_row::Entity::find()
            .select_only()
            .column(invoice_row::Column::InvoiceNo)
            .filter(invoice_row::Column::TaxpayerId.eq(taxpayer.0))
            .filter(invoice_row::Column::InvoiceNo.is_in(some.iter().copied()))
            .filter(settling.clone())
            .into_tuple()
            .all(tx)
            .await?;
        settled.extend(rows);
    }
    Ok(settled)
}

/// Replaces the times of notices and of mails about topics by the present if they are in the future: they are from
/// before the clock was set back, and would delay the next mails.
pub async fn reset_future_times(store: &Store, now: Timestamp) -> Result<(), StoreError> {
    let future = now.saturating_add(CLOCK_DIFFERENCE_MAX);
    let future = future.unwrap_or(Timestamp::MAX).as_microsecond();
    let tx = store.begin().await?;
    for table in ["notices", "told_topics"] {
        let sql = format!("UPDATE {table} SET at = $1 WHERE at > $2");
        let values: [Value; 2] = [now.as_microsecond().into(), future.into()];
        tx.execute_raw(Statement::from_sql_and_values(store.backend(), sql, values))
            .await?;
    }
    tx.commit().await
}

/// Selects the notices from before this time, by their ids, which begin with the time at which they were drawn: no
/// index begins with the time, and notices that nobody takes may be very many.
fn select_before(before: Timestamp) -> Select<Entity> {
    Entity::find()
        .filter(Column::Id.lt(first_id_after(before, SignedDuration::ZERO)))
        .filter(Column::At.lt(before.as_microsecond()))
        .order_by_asc(Column::Id)
}

/// Deletes up to `limit` notices from before this time, which nobody takes if the deployment sends no mails. Returns
/// true if more may be left.
pub async fn sweep(store: &Store, before: Timestamp, limit: u64) -> Result<bool, StoreError> {
    delete_selected(store, Column::Id, select_before(before), limit).await
}

#[cfg(test)]
mod tests {
    use sea_orm::{DbBackend, QueryTrait};

    use super::*;
    use crate::store::testing::{query_plan, stores};

    fn at_minute(minute: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + 60 * minute).unwrap()
    }

    #[tokio::test]
    async fn old_notices_are_swept_in_small_steps() {
        for test in stores().await {
            let store = &test.store;
            let tx = store.begin().await.unwrap();
            // The minute of the id, and the minute of the notice.
            for (drawn, noticed) in [(0, 0), (1, 1), (0, 9), (7, 7)] {
                let id = first_id_after(at_minute(drawn), SignedDuration::ZERO);
                let notice = Model {
                    id: format!("{id}/{noticed}"),
                    scope: "taxpayer/7".to_owned(),
                    topic: "outage".to_owned(),
                    kind: "outage-ended".to_owned(),
                    about: String::new(),
                    detail: String::new(),
                    at: at_minute(noticed).as_microsecond(),
                };
                Entity::insert(notice.into_active_model())
                    .exec_without_returning(&tx)
                    .await
                    .unwrap();
            }
            tx.commit().await.unwrap();
            let mut left = Vec::new();
            while sweep(store, at_minute(5), 1).await.unwrap() {
                left.push(Entity::find().count(store.reader()).await.unwrap());
            }
            assert_eq!(left, [3, 2]);
            let kept = Entity::find().order_by_asc(Column::At);
            let kept = kept.all(store.reader()).await.unwrap();
            let times: Vec<_> = kept.iter().map(|row| row.at).collect();
            assert_eq!(
                times,
                [7, 9].map(|minute| at_minute(minute).as_microsecond())
            );
        }
    }

    #[tokio::test]
    async fn a_sweep_looks_only_at_old_notices() {
        for test in stores().await {
            let backend = test.store.backend();
            let old = QueryTrait::build(&select_before(at_minute(5)).limit(9), backend);
            let values = old.values.map(|values| values.0).unwrap_or_default();
            let plan = query_plan(&test.store, &old.sql, values).await.join("\n");
            // PostgreSQL goes by its statistics, and knows no rows here.
            if backend == DbBackend::Sqlite {
                assert!(plan.contains("(id<?)"), "{plan}");
                assert!(!plan.contains("SCAN notices"), "{plan}");
                assert!(!plan.contains("TEMP B-TREE"), "{plan}");
            }
        }
    }
}

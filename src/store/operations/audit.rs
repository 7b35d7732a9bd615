//! The audit trail of security changes and operator actions. The database refuses to change or delete entries.

use std::collections::{HashMap, HashSet};

use database::page::{self, Page};
use database::{StoreError, Transaction};
use jiff::Timestamp;
use sea_orm::sea_query::{Expr, ExprTrait};
use sea_orm::{
    ColumnTrait, Condition, ConnectionTrait, EntityTrait, IdenStatic, IntoActiveModel, QueryFilter,
    QueryOrder, QuerySelect,
};

use crate::domain::access::session::SessionOwner;
use crate::domain::kernel::audit::{ActorKind, AuditAction, AuditEntry};
use crate::domain::kernel::ids::{IntegratorId, RunId, TaxpayerId};
use crate::domain::notice::Notice;
use crate::domain::party::email::{email_key, stored_email_keys};
use crate::store::Store;
use crate::store::accounts::operator_row;
use crate::store::operations::audit_row::{Column, Entity, Model};
use crate::store::operations::notices;
use crate::store::runs::TRACE_ID;

/// The filter of the list of audit entries. A field that is `None` does not filter.
#[derive(Debug, Default)]
pub struct AuditFilter {
    /// Only entries that this integrator may read.
    pub integrator_id: Option<IntegratorId>,
    pub taxpayer_id: Option<TaxpayerId>,
    pub actor: Option<ActorKind>,
    /// Only entries of the operator with this email.
    pub operator: Option<String>,
    pub action: Option<AuditAction>,
    /// Only entries at or after this time.
    pub from: Option<Timestamp>,
    /// Only entries before this time.
    pub until: Option<Timestamp>,
    /// Only entries about the object with this id: a run, delivery, reconciliation, taxpayer, integrator or operator.
    pub subject: Option<String>,
}

impl AuditFilter {
    /// Returns the condition of the filter, with the ids of the operators that have its email. If the filter names an
    /// object or a taxpayer, few entries match. SQLite might nevertheless use the index of another column, such as the
    /// action, and read its entries of all taxpayers. So the indexes of the other columns are hidden from it.
    fn condition(self, operators: Option<Vec<i64>>) -> Condition {
        let micros = |at: Option<Timestamp>| at.map(Timestamp::as_microsecond);
        let is_by_subject = self.subject.is_some();
        let is_by_few = is_by_subject || self.taxpayer_id.is_some();
        let integrator = filter_column(Column::IntegratorId, is_by_few);
        let taxpayer = filter_column(Column::TaxpayerId, is_by_subject);
        let operator = filter_column(Column::OperatorId, is_by_few);
        let action = filter_column(Column::Action, is_by_few);
        Condition::all()
            .add_option(self.integrator_id.map(|id| integrator.eq(id.0)))
            .add_option(self.taxpayer_id.map(|id| taxpayer.eq(id.0)))
            .add_option(self.actor.map(|actor| Column::Actor.eq(actor.as_str())))
            .add_option(operators.map(|ids| operator.is_in(ids)))
            .add_option(self.action.map(|wanted| action.eq(wanted.as_str())))
            .add_option(self.subject.map(|subject| Column::Subject.eq(subject)))
            .add_option(micros(self.from).map(|from| Column::At.gte(from)))
            .add_option(micros(self.until).map(|until| Column::At.lt(until)))
    }
}

/// Returns the SQL expression of a column for a filter. If `is_hidden_from_index`, a plus sign before the column keeps
/// SQLite from using an index on it. An empty text is appended to a text column instead, because PostgreSQL accepts a
/// plus sign only before a number.
fn filter_column(column: Column, is_hidden_from_index: bool) -> Expr {
    match (is_hidden_from_index, column) {
        (false, _) => Expr::col(column),
        (true, Column::Action) => Expr::cust(format!("{} || ''", column.as_str())),
        (true, _) => Expr::cust(format!("+{}", column.as_str())),
    }
}

/// Returns the ids of the operators that have this email, or had it when their accounts were removed.
async fn find_operator_ids_by_email(store: &Store, email: &str) -> Result<Vec<i64>, StoreError> {
    let keys = stored_email_keys(email);
    let mut ids: Vec<i64> = operator_row::Entity::find()
        .select_only()
        .column(operator_row::Column::Id)
        .filter(operator_row::Column::EmailKey.is_in(&keys))
        .into_tuple()
        .all(store.reader())
        .await?;
    let removed = load_removed_operator_emails(store).await?.into_iter();
    ids.extend(
        removed
            .filter(|(_, had)| email_key(had) == keys[0])
            .map(|(id, _)| id),
    );
    Ok(ids)
}

/// Loads the ids and emails of removed operators. Only the audit entry of the removal keeps the email.
async fn load_removed_operator_emails(store: &Store) -> Result<Vec<(i64, String)>, StoreError> {
    let rows: Vec<(String, Option<String>)> = Entity::find()
        .select_only()
        .columns([Column::Subject, Column::FromState])
        .filter(Column::Action.eq(AuditAction::RemoveOperator.as_str()))
        .into_tuple()
        .all(store.reader())
        .await?;
    let removed = rows.into_iter().filter_map(|(id, had)| {
        let (_role, email) = had.as_deref()?.split_once(' ')?;
        Some((id.parse().ok()?, email.to_owned()))
    });
    Ok(removed.collect())
}

/// Appends entries, and adds the notices that tell people of changes to their keys or passwords.
pub async fn append(tx: &Transaction, entries: &[AuditEntry]) -> Result<(), StoreError> {
    if entries.is_empty() {
        return Ok(());
    }
    let rows = entries
        .iter()
        .map(|entry| Model::from(entry).into_active_model());
    Entity::insert_many(rows).exec_without_returning(tx).await?;
    let told: Vec<_> = entries.iter().filter_map(Notice::for_audit).collect();
    notices::add(tx, &told).await
}

/// Appends entries about actions that change nothing else in the database, such as showing contact data to an operator.
pub async fn record(store: &Store, entries: &[AuditEntry]) -> Result<(), StoreError> {
    let tx = store.begin().await?;
    append(&tx, entries).await?;
    tx.commit().await
}

/// True if one of these actions on the account of a person was recorded after `since`.
pub async fn has_action_since(
    connection: &impl ConnectionTrait,
    owner: SessionOwner,
    actions: &[AuditAction],
    since: Timestamp,
) -> Result<bool, StoreError> {
    let (of_taxpayer, of_integrator) = match owner {
        SessionOwner::Contact { taxpayer, .. } => (Column::TaxpayerId.eq(taxpayer.0), None),
        SessionOwner::Integrator(id) => {
            // With the plus sign, SQLite does not read all entries of the integrator by their index.
            let is_own = Expr::cust("+integrator_id").eq(id.0);
            (Column::TaxpayerId.is_null(), Some(is_own))
        }
        SessionOwner::Operator(_) => {
            let is_none = Column::IntegratorId.is_null();
            (Column::TaxpayerId.is_null(), Some(is_none))
        }
    };
    let about = Condition::all().add(of_taxpayer).add_option(of_integrator);
    let found = Entity::find()
        .filter(Column::Subject.eq(owner.id().to_string()))
        .filter(about)
        .filter(Column::Action.is_in(actions.iter().map(|action| action.as_str())))
        .filter(Column::At.gt(since.as_microsecond()))
        .one(connection)
        .await?;
    Ok(found.is_some())
}

/// Loads one page of the matching entries that an integrator may read, newest first, and the number of all matches.
pub async fn page_owned_by(
    store: &Store,
    integrator: IntegratorId,
    filter: AuditFilter,
    page: Page,
) -> Result<(Vec<AuditEntry>, u64), StoreError> {
    self::page(
        store,
        AuditFilter {
            integrator_id: Some(integrator),
            ..filter
        },
        page,
    )
    .await
}

/// Loads one page of entries, newest first, and the number of all entries that match the filter.
pub async fn page(
    store: &Store,
    filter: AuditFilter,
    page: Page,
) -> Result<(Vec<AuditEntry>, u64), StoreError> {
    let operators = match &filter.operator {
        Some(email) => Some(find_operator_ids_by_email(store, email).await?),
        None => None,
    };
    let found = Entity::find().filter(filter.condition(operators));
    page::load(store, found.order_by_desc(Column::Id), page).await
}

/// Loads up to `limit` entries of actions that requests of this trace caused, oldest first.
pub async fn find_by_trace_id(
    store: &Store,
    trace_id: &str,
    limit: u64,
) -> Result<Vec<AuditEntry>, StoreError> {
    let rows = Entity::find()
        .filter(Column::Trace.is_not_null())
        .filter(ExprTrait::eq(Expr::cust(TRACE_ID), trace_id))
        .order_by_asc(Column::Id)
        .limit(limit)
        .all(store.reader())
        .await?;
    rows.into_iter().map(AuditEntry::try_from).collect()
}

/// Returns the runs in this list that an operator has paused: the last audit entry about each of them is a pause.
pub async fn find_runs_paused_by_operator(
    connection: &impl ConnectionTrait,
    runs: &[RunId],
) -> Result<HashSet<RunId>, StoreError> {
    let mut held = HashSet::new();
    for run in runs {
        let last = Entity::find()
            .filter(Column::Subject.eq(run.to_string()))
            .order_by_desc(Column::Id)
            .one(connection)
            .await?;
        let is_pause = last.is_some_and(|entry| entry.action == AuditAction::PauseRun.as_str());
        held.extend(is_pause.then_some(*run));
    }
    Ok(held)
}

/// Loads the emails of these operators, including removed ones, by operator id.
pub async fn operator_emails(
    store: &Store,
    ids: Vec<i64>,
) -> Result<HashMap<i64, String>, StoreError> {
    let rows = operator_row::Entity::find()
        .filter(operator_row::Column::Id.is_in(ids.iter().copied()))
        .all(store.reader())
        .await?;
    let emails = rows.into_iter().map(|row| (row.id, row.email));
    let mut emails: HashMap<i64, String> = emails.collect();
    if ids.iter().any(|id| !emails.contains_key(id)) {
        let removed = load_removed_operator_emails(store).await?.into_iter();
        emails.extend(removed.filter(|(id, _)| ids.contains(id)));
    }
    Ok(emails)
}

#[cfg(test)]
mod tests {
    use sea_orm::{ConnectionTrait, QueryTrait};

    use super::*;
    use crate::domain::kernel::audit::Actor;
    use crate::domain::kernel::ids::ContactId;
    use crate::store::testing::{query_plan, stores};

    fn pause(actor: Actor) -> AuditEntry {
        AuditEntry::new(
            actor,
            AuditAction::PauseRun,
            &"a run",
            Timestamp::UNIX_EPOCH,
        )
    }

    #[actix_rt::test]
    async fn entries_about_one_object_or_taxpayer_are_found_without_a_look_at_those_of_others() {
        // SQLite only: PostgreSQL's plan depends on the number of entries.
        for test in stores().await.into_iter().take(1) {
            for (subject, taxpayer, index) in [
                (None, Some(TaxpayerId(7)), "audit_by_taxpayer_id_id"),
                (Some("7"), Some(TaxpayerId(7)), "audit_by_subject_id"),
                (Some("7"), None, "audit_by_subject_id"),
            ] {
                let filter = AuditFilter {
                    integrator_id: Some(IntegratorId(1)),
                    taxpayer_id: taxpayer,
                    action: Some(AuditAction::PauseRun),
                    subject: subject.map(str::to_owned),
                    ..AuditFilter::default()
                };
                let found = Entity::find().filter(filter.condition(Some(vec![1])));
                let query = found.order_by_desc(Column::Id).build(test.store.backend());
                let values = query.values.map(|values| values.0).unwrap_or_default();
                let plan = query_plan(&test.store, &query.sql, values).await.concat();
                assert!(plan.contains(index), "{index}: {plan}");
                assert!(!plan.contains("B-TREE"), "{plan}");
            }
        }
    }

    #[actix_rt::test]
    async fn a_choice_of_a_password_is_found_for_its_own_person_only() {
        let contact = |taxpayer| SessionOwner::Contact {
            taxpayer: TaxpayerId(taxpayer),
            id: ContactId(5),
        };
        let owners = [
            SessionOwner::Operator(5),
            SessionOwner::Integrator(IntegratorId(5)),
            SessionOwner::Integrator(IntegratorId(6)),
            contact(1),
            contact(2),
        ];
        let at = |second| Timestamp::from_second(second).unwrap();
        let action = AuditAction::ChangePassword;
        for test in stores().await {
            for (second, chooser) in (1..).zip(owners) {
                let entry = AuditEntry::new(chooser.actor(), action, &chooser.id(), at(second));
                let entry = match chooser {
                    SessionOwner::Contact { taxpayer, .. } => entry.for_taxpayer(taxpayer),
                    SessionOwner::Integrator(id) => entry.for_integrator(id),
                    SessionOwner::Operator(_) => entry,
                };
                record(&test.store, &[entry]).await.unwrap();
                let tx = test.store.begin().await.unwrap();
                for owner in owners {
                    for (since, is_later) in [(second - 1, true), (second, false)] {
                        let found = has_action_since(&tx, owner, &[action], at(since)).await;
                        let expected = is_later && owner == chooser;
                        assert_eq!(found.unwrap(), expected, "{owner:?}, {chooser:?}, {since}");
                    }
                }
                tx.rollback().await.unwrap();
            }
            test.store.close().await;
        }
    }

    #[actix_rt::test]
    async fn a_removed_operator_is_still_found_by_its_email() {
        for test in stores().await {
            let store = &test.store;
            let removal = AuditEntry::new(
                Actor::CommandLine,
                AuditAction::RemoveOperator,
                &5,
                Timestamp::UNIX_EPOCH,
            );
            let removal = removal.with_states(Some("viewer Ada@house.example".to_owned()), None);
            let entries = [
                pause(Actor::Operator(5)),
                pause(Actor::Operator(6)),
                pause(Actor::Integrator(IntegratorId(5))),
                removal,
            ];
            record(store, &entries).await.unwrap();
            for (email, expected) in [
                ("Ada@house.example", vec![Actor::Operator(5)]),
                ("ada@HOUSE.example", vec![Actor::Operator(5)]),
                ("viewer Ada@house.example", vec![]),
                ("da@house.example", vec![]),
                ("", vec![]),
            ] {
                let filter = AuditFilter {
                    operator: Some(email.to_owned()),
                    ..AuditFilter::default()
                };
                let first = Page {
                    number: 1,
                    per_page: 10,
                };
                let (found, _) = page(store, filter, first).await.unwrap();
                let actors: Vec<_> = found.iter().map(|entry| entry.actor).collect();
                assert_eq!(actors, expected, "{email}");
            }
            let emails = operator_emails(store, vec![5, 6]).await.unwrap();
            let expected = HashMap::from([(5, "Ada@house.example".to_owned())]);
            assert_eq!(emails, expected);
            test.store.close().await;
        }
    }

    #[actix_rt::test]
    async fn the_audit_takes_entries_and_nothing_else() {
        for test in stores().await {
            let states = (Some("running".to_owned()), Some("paused".to_owned()));
            let entry = pause(Actor::Operator(1))
                .for_taxpayer(TaxpayerId(7))
                .with_states(states.0, states.1);
            let tx = test.store.begin().await.unwrap();
            append(&tx, std::slice::from_ref(&entry)).await.unwrap();
            tx.commit().await.unwrap();
            for forbidden in ["UPDATE audit SET reason = 'another'", "DELETE FROM audit"] {
                let tx = test.store.begin().await.unwrap();
                let error = tx.execute_unprepared(forbidden).await.unwrap_err();
                assert!(
                    error.to_string().contains("the audit is append-only"),
                    "{error}"
                );
            }
            let (found, total) = page(
                &test.store,
                AuditFilter::default(),
                Page {
                    number: 1,
                    per_page: 10,
                },
            )
            .await
            .unwrap();
            assert_eq!((found, total), (vec![entry], 1));
            test.store.close().await;
        }
    }

    /// Replacing a row is neither an update nor a deletion for SQLite's triggers.
    #[actix_rt::test]
    async fn no_entry_is_replaced() {
        for test in stores().await {
            let entry = pause(Actor::Operator(1));
            record(&test.store, std::slice::from_ref(&entry))
                .await
                .unwrap();
            let columns = "(id, at, actor, operator_id, action, subject)";
            let values = |id: &str| format!("('{id}', 0, 'operator', 2, 'run.pause', 'another')");
            let own = values(&entry.id.to_string());
            let other = values("another");
            let upsert = "ON CONFLICT (id) DO UPDATE SET subject = excluded.subject";
            let mut statements = vec![format!("INSERT INTO audit {columns} VALUES {own} {upsert}")];
            if test.store.backend() == sea_orm::DbBackend::Sqlite {
                statements.push(format!(
                    "INSERT OR REPLACE INTO audit {columns} VALUES {own}"
                ));
                statements.push(format!("REPLACE INTO audit {columns} VALUES {own}"));
                let with_row = other.replacen('(', "(1, ", 1);
                let of_row = columns.replacen('(', "(rowid, ", 1);
                statements.push(format!(
                    "INSERT OR REPLACE INTO audit {of_row} VALUES {with_row}"
                ));
            }
            for statement in statements {
                let tx = test.store.begin().await.unwrap();
                let error = tx.execute_unprepared(&statement).await.unwrap_err();
                assert!(
                    error.to_string().contains("the audit is append-only"),
                    "{statement}: {error}"
                );
            }
            let all = Page {
                number: 1,
                per_page: 10,
            };
            assert_eq!(
                page(&test.store, AuditFilter::default(), all)
                    .await
                    .unwrap(),
                (vec![entry], 1)
            );
            test.store.close().await;
        }
    }

    #[actix_rt::test]
    async fn an_integrator_reads_its_own_entries_and_those_about_its_account() {
        for test in stores().await {
            let own = IntegratorId(1);
            let other = IntegratorId(2);
            let entries = [
                pause(Actor::Integrator(own)),
                pause(Actor::Integrator(other)),
                pause(Actor::CommandLine).for_integrator(own),
                pause(Actor::Operator(1)),
            ];
            let tx = test.store.begin().await.unwrap();
            append(&tx, &entries).await.unwrap();
            tx.commit().await.unwrap();
            let read = async |integrator| {
                let found = page_owned_by(
                    &test.store,
                    integrator,
                    AuditFilter::default(),
                    Page {
                        number: 1,
                        per_page: 10,
                    },
                )
                .await;
                found
                    .unwrap()
                    .0
                    .into_iter()
                    .map(|entry| entry.actor)
                    .collect::<Vec<_>>()
            };
            assert_eq!(
                read(own).await,
                [Actor::CommandLine, Actor::Integrator(own)]
            );
            assert_eq!(read(other).await, [Actor::Integrator(other)]);
            assert_eq!(read(IntegratorId(3)).await, []);
            let (all, total) = page(
                &test.store,
                AuditFilter::default(),
                Page {
                    number: 1,
                    per_page: 10,
                },
            )
            .await
            .unwrap();
            assert_eq!((all.len(), total), (4, 4));
            test.store.close().await;
        }
    }
}

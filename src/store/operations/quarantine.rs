//! The quarantine: commands that panicked twice, until an operator replays or drops them.

use database::{StoreError, Transaction};
use jiff::Timestamp;
use sea_orm::sea_query::{Expr, OnConflict};
use sea_orm::{ColumnTrait, EntityTrait, IntoActiveModel, QueryFilter, QueryOrder, QuerySelect};
use timing::CommandId;

use crate::domain::kernel::audit::{AuditAction, AuditEntry, OperatorRequest};
use crate::domain::kernel::ids::TaxpayerId;
use crate::domain::quarantine::{END_UNKNOWN_MESSAGE, QuarantineState, QuarantinedCommand};
use crate::store::Store;
use crate::store::operations::audit;
use crate::store::operations::quarantine_row::{Column, Entity, Model};

/// The maximum number of quarantined commands that are stored for each taxpayer, and of those without a taxpayer. If
/// there are more, the oldest are deleted.
pub const PER_TAXPAYER_MAX: u64 = 100;

/// Stores a command that was just quarantined, with its contents sealed. A command without contents cannot be replayed.
/// If the command is stored already, nothing is changed.
pub async fn put_command(
    store: &Store,
    found: &QuarantinedCommand,
    contents: Option<&str>,
) -> Result<(), StoreError> {
    let reference = found.reference.to_string();
    let contents = contents
        .map(|contents| store.vault().seal(&reference, contents))
        .transpose()?;
    let row = Model {
        reference,
        actor: found.actor.clone(),
        command: found.command.clone(),
        taxpayer_id: found.taxpayer_id.map(|taxpayer| taxpayer.0),
        at: found.at.as_microsecond(),
        // The text of a panic may quote anything, and PostgreSQL stores no NUL.
        panic: found.panic.replace('\0', " "),
        state: found.state.as_str().to_owned(),
        moved_at: None,
        result: None,
        contents,
    };
    let tx = store.begin().await?;
    Entity::insert(row.into_active_model())
        .on_conflict(
            OnConflict::column(Column::Reference)
                .do_nothing()
                .to_owned(),
        )
        .exec_without_returning(&tx)
        .await?;
    remove_commands_beyond_limit(&tx, found.taxpayer_id).await?;
    tx.commit().await
}

async fn remove_commands_beyond_limit(
    tx: &Transaction,
    taxpayer: Option<TaxpayerId>,
) -> Result<(), StoreError> {
    let of_taxpayer = taxpayer.map_or_else(
        || Column::TaxpayerId.is_null(),
        |id| Column::TaxpayerId.eq(id.0),
    );
    let newest_removed: Option<String> = Entity::find()
        .select_only()
        .column(Column::Reference)
        .filter(of_taxpayer.clone())
        .order_by_desc(Column::Reference)
        .offset(PER_TAXPAYER_MAX)
        .limit(1)
        .into_tuple()
        .one(tx)
        .await?;
    if let Some(reference) = newest_removed {
        Entity::delete_many()
            .filter(of_taxpayer)
            .filter(Column::Reference.lte(reference))
            .exec(tx)
            .await?;
    }
    Ok(())
}

pub async fn find_command_by_reference(
    store: &Store,
    reference: CommandId,
) -> Result<Option<QuarantinedCommand>, StoreError> {
    let found = Entity::find_by_id(reference.to_string())
        .one(store.reader())
        .await?;
    found.map(QuarantinedCommand::try_from).transpose()
}

/// Returns the unsealed contents of a command for its replay; `None` if they were not stored.
pub async fn command_contents(
    store: &Store,
    reference: CommandId,
) -> Result<Option<String>, StoreError> {
    let found = Entity::find_by_id(reference.to_string())
        .one(store.reader())
        .await?;
    let sealed = found.and_then(|row| row.contents);
    sealed
        .map(|sealed| store.vault().open(&reference.to_string(), &sealed))
        .transpose()
}

/// Takes a kept command out of the quarantine, for a replay or as dropped, and records this in the audit. Returns false
/// if another operator has already taken it out. Of all calls for one command, only one returns true, even after a
/// crash, unless `record_replay_result` puts the command back.
pub async fn take_command(
    store: &Store,
    found: &QuarantinedCommand,
    to: QuarantineState,
    by: &OperatorRequest,
    now: Timestamp,
) -> Result<bool, StoreError> {
    let (action, result) = match to {
        QuarantineState::Dropped => (AuditAction::DropCommand, None),
        QuarantineState::Kept | QuarantineState::Replayed => (
            AuditAction::ReplayCommand,
            Some(END_UNKNOWN_MESSAGE.to_owned()),
        ),
    };
    let tx = store.begin().await?;
    let moved = Entity::update_many()
        .col_expr(Column::State, Expr::value(to.as_str()))
        .col_expr(Column::MovedAt, Expr::value(now.as_microsecond()))
        .col_expr(Column::Result, Expr::value(result))
        .filter(Column::Reference.eq(found.reference.to_string()))
        .filter(Column::State.eq(QuarantineState::Kept.as_str()))
        .exec(&tx)
        .await?;
    if moved.rows_affected == 0 {
        tx.rollback().await?;
        return Ok(false);
    }
    let states = (QuarantineState::Kept.to_string(), to.to_string());
    let entry = AuditEntry::for_operator_request(by, action, &found.reference, now)
        .with_states(Some(states.0), Some(states.1));
    audit::append(
        &tx,
        &[AuditEntry {
            taxpayer_id: found.taxpayer_id,
            ..entry
        }],
    )
    .await?;
    tx.commit().await?;
    Ok(true)
}

/// Records the result of a replay. If the replay certainly changed nothing, `state` is `Kept`, which puts the command
/// back.
pub async fn record_replay_result(
    store: &Store,
    reference: CommandId,
    state: QuarantineState,
    result: &str,
) -> Result<(), StoreError> {
    let tx = store.begin().await?;
    Entity::update_many()
        .col_expr(Column::State, Expr::value(state.as_str()))
        .col_expr(Column::Result, Expr::value(result))
        .filter(Column::Reference.eq(reference.to_string()))
        .filter(Column::State.eq(QuarantineState::Replayed.as_str()))
        .exec(&tx)
        .await?;
    tx.commit().await
}

/// Deletes up to `limit` commands that were replayed or dropped before this time. Returns true if more may be left.
pub async fn sweep(store: &Store, before: Timestamp, limit: u64) -> Result<bool, StoreError> {
    let ended = [
        QuarantineState::Replayed.as_str(),
        QuarantineState::Dropped.as_str(),
    ];
    let references: Vec<String> = Entity::find()
        .select_only()
        .column(Column::Reference)
        .filter(Column::State.is_in(ended))
        .filter(Column::MovedAt.lt(before.as_microsecond()))
        .limit(limit)
        .into_tuple()
        .all(store.reader())
        .await?;
    if references.is_empty() {
        return Ok(false);
    }
    let is_more = references.len() as u64 == limit;
    let tx = store.begin().await?;
    Entity::delete_many()
        .filter(Column::Reference.is_in(references))
        .exec(&tx)
        .await?;
    tx.commit().await?;
    Ok(is_more)
}

#[cfg(test)]
mod tests {
    use database::page::Page;
    use jiff::SignedDuration;
    use timing::clock;

    use super::*;
    use crate::domain::incident::CountAndOldest;
    use crate::domain::quarantine::WorkKind;
    use crate::store::operations::quarantine_list::{self, QuarantineFilter};
    use crate::store::testing::stores;

    const BY: OperatorRequest = OperatorRequest {
        operator_id: 1,
        reason: None,
    };
    const ALL: Page = Page {
        number: 1,
        per_page: 1_000,
    };

    fn command(taxpayer: Option<i64>) -> QuarantinedCommand {
        QuarantinedCommand {
            reference: clock::new_id(),
            actor: "7".to_owned(),
            command: "create".to_owned(),
            taxpayer_id: taxpayer.map(TaxpayerId),
            at: Timestamp::UNIX_EPOCH,
            panic: "no row".to_owned(),
            state: QuarantineState::Kept,
            moved_at: None,
            result: None,
            has_contents: true,
        }
    }

    #[actix_rt::test]
    async fn a_panic_that_quotes_a_nul_is_stored() {
        for test in stores().await {
            let kept = QuarantinedCommand {
                panic: "in `a\0b`".to_owned(),
                ..command(Some(7))
            };
            put_command(&test.store, &kept, None).await.unwrap();
            let stored = find_command_by_reference(&test.store, kept.reference).await;
            assert_eq!(stored.unwrap().unwrap().panic, "in `a b`");
        }
    }

    #[actix_rt::test]
    async fn contents_are_sealed_and_a_command_is_taken_once() {
        for test in stores().await {
            let store = &test.store;
            let kept = command(Some(7));
            put_command(store, &kept, Some("ada@example.org"))
                .await
                .unwrap();
            put_command(store, &kept, None).await.unwrap();
            let row = Entity::find().one(store.reader()).await.unwrap().unwrap();
            assert!(!row.contents.unwrap().contains("ada"));
            assert_eq!(
                command_contents(store, kept.reference)
                    .await
                    .unwrap()
                    .as_deref(),
                Some("ada@example.org")
            );
            assert_eq!(
                find_command_by_reference(store, kept.reference)
                    .await
                    .unwrap(),
                Some(kept.clone())
            );
            assert_eq!(
                quarantine_list::count_by_kind(store).await.unwrap()[0],
                (
                    WorkKind::Command,
                    CountAndOldest {
                        count: 1,
                        since: Some(kept.at)
                    }
                )
            );

            let replay = || {
                take_command(
                    store,
                    &kept,
                    QuarantineState::Replayed,
                    &BY,
                    Timestamp::UNIX_EPOCH,
                )
            };
            let (one, other) = tokio::join!(replay(), replay());
            assert_ne!(one.unwrap(), other.unwrap(), "only one replay takes it");
            record_replay_result(store, kept.reference, QuarantineState::Kept, "refused")
                .await
                .unwrap();
            assert!(replay().await.unwrap(), "it was put back");
            let filter = QuarantineFilter {
                state: Some(QuarantineState::Replayed),
                ..QuarantineFilter::default()
            };
            let replayed = quarantine_list::page(store, &filter, ALL).await.unwrap().0;
            assert_eq!(
                replayed[0].result.as_deref(),
                Some(END_UNKNOWN_MESSAGE),
                "until the end is recorded"
            );
            let filter = audit::AuditFilter {
                taxpayer_id: Some(TaxpayerId(7)),
                ..Default::default()
            };
            assert_eq!(audit::page(store, filter, ALL).await.unwrap().1, 2);
            test.store.close().await;
        }
    }

    #[actix_rt::test]
    async fn one_taxpayer_cannot_fill_the_disk_and_what_was_moved_is_swept() {
        for test in stores().await {
            let store = &test.store;
            let other = command(Some(8));
            put_command(store, &other, None).await.unwrap();
            let all: Vec<_> = (0..PER_TAXPAYER_MAX + 2)
                .map(|_| command(Some(7)))
                .collect();
            for one in &all {
                put_command(store, one, Some("{}")).await.unwrap();
            }
            let of = |id| QuarantineFilter {
                taxpayer_id: Some(TaxpayerId(id)),
                ..QuarantineFilter::default()
            };
            let (found, total) = quarantine_list::page(store, &of(7), ALL).await.unwrap();
            assert_eq!(
                (total, found.last().unwrap().reference.clone()),
                (PER_TAXPAYER_MAX, all[2].reference.to_string())
            );
            assert_eq!(
                quarantine_list::page(store, &of(8), ALL).await.unwrap().1,
                1,
                "another taxpayer keeps its own"
            );

            let moved_at = Timestamp::UNIX_EPOCH;
            assert!(
                take_command(store, &all[2], QuarantineState::Dropped, &BY, moved_at)
                    .await
                    .unwrap()
            );
            assert!(!sweep(store, moved_at, 10).await.unwrap());
            assert_eq!(
                quarantine_list::page(store, &of(7), ALL).await.unwrap().1,
                PER_TAXPAYER_MAX
            );
            sweep(store, moved_at + SignedDuration::from_secs(1), 10)
                .await
                .unwrap();
            let left = quarantine_list::page(store, &of(7), ALL).await.unwrap().0;
            assert_eq!(
                (left.len() as u64, left.last().unwrap().reference.clone()),
                (PER_TAXPAYER_MAX - 1, all[3].reference.to_string())
            );
            test.store.close().await;
        }
    }
}

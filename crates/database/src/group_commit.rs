//! The pool of write transactions. On PostgreSQL each write transaction has its own connection. SQLite has only one
//! writer, and each commit waits for the disk. So concurrent transactions share a commit on SQLite (group commit):
//! they take turns inside one database transaction, each behind a savepoint of its own.

use std::sync::Arc;
use std::time::{Duration, Instant};

use prometheus_client::metrics::histogram::Histogram;
use sea_orm::{
    ConnAcquireErr, ConnectionTrait, DatabaseTransaction, DbBackend, DbErr, SqliteTransactionMode,
    TransactionOptions,
};
use tokio::runtime::Handle;
use tokio::sync::{Mutex, OwnedMappedMutexGuard, OwnedMutexGuard, watch};
use tokio::time::timeout;

use crate::deadline::CallGuard;
use crate::error::{StoreError, is_busy};
use crate::metrics::DatabaseMetrics;
use crate::pool::Pool;
use crate::pool_settings::BUSY_WAIT;

/// The time for which a commit group accepts new members. Without this limit, the group might never commit.
const GROUP_OPEN_FOR: Duration = Duration::from_millis(20);

#[derive(Clone)]
pub(crate) struct WriterPool {
    pool: Pool,
    /// Grants the turns to write on SQLite; `None` on PostgreSQL.
    turns: Option<WriteTurns>,
    /// The longest time to wait while another process writes to the SQLite database.
    busy_wait: Duration,
    metrics: DatabaseMetrics,
}

/// Says whether a transaction may share one database transaction, and so its commit, with others on SQLite.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sharing {
    Shared,
    /// For a transaction that may make SQLite roll back the whole database transaction. It shares with no other, so no
    /// other transaction loses its changes.
    Apart,
}

/// Grants turns to write on SQLite's only write connection, one at a time. Clones share the connection.
#[derive(Clone)]
pub(crate) struct WriteTurns {
    /// The current commit group. Its lock is granted in the order of the requests, and only its holder runs statements.
    group: Arc<Mutex<Option<CommitGroup>>>,
    commits: watch::Sender<()>,
    sizes: Histogram,
    runtime: Handle,
}

/// The right to write. While this value exists, nobody else runs a statement on the write connection.
type WriteTurn = OwnedMutexGuard<Option<CommitGroup>>;

/// One database transaction that several write transactions share. These write transactions are its members.
pub(crate) struct CommitGroup {
    pub(super) whole: DatabaseTransaction,
    watch: CallGuard,
    begun: Instant,
    members: u32,
    /// True if no further member may join.
    is_full: bool,
    /// The number of the member that has begun and not committed. Its changes are undone if another member begins.
    open: Option<u32>,
    /// The result of the group's commit; `None` until the commit has ended.
    pub(super) outcome: watch::Sender<Option<Result<(), StoreError>>>,
}

/// The database transaction that the statements of a transaction run in.
pub(crate) enum TransactionKind {
    /// The transaction has a database transaction of its own.
    Dedicated(DatabaseTransaction),
    /// The transaction is a member of a commit group. Nobody else uses the group before the member has ended.
    Grouped(OwnedMappedMutexGuard<Option<CommitGroup>, CommitGroup>),
}

impl WriterPool {
    pub(crate) fn new(pool: Pool, busy_wait: Duration, metrics: DatabaseMetrics) -> Self {
        let turns = (pool.backend() == DbBackend::Sqlite).then(|| WriteTurns {
            group: Arc::default(),
            commits: watch::Sender::default(),
            sizes: metrics.group_sizes.clone(),
            runtime: pool.runtime().clone(),
        });
        Self {
            pool,
            turns,
            busy_wait,
            metrics,
        }
    }

    pub(crate) fn turns(&self) -> Option<&WriteTurns> {
        self.turns.as_ref()
    }

    pub(crate) fn pool(&self) -> &Pool {
        &self.pool
    }

    pub(crate) fn metrics(&self) -> &DatabaseMetrics {
        &self.metrics
    }

    pub(crate) async fn begin(
        &self,
        sharing: Sharing,
    ) -> Result<(TransactionKind, CallGuard), StoreError> {
        let started = Instant::now();
        let begun = self.begin_in_turn(sharing).await;
        self.metrics
            .write_waits
            .observe(started.elapsed().as_secs_f64());
        begun
    }

    async fn begin_in_turn(
        &self,
        sharing: Sharing,
    ) -> Result<(TransactionKind, CallGuard), StoreError> {
        let Some(turns) = &self.turns else {
            let (own, watch) = self.pool.begin(TransactionOptions::default()).await?;
            return Ok((TransactionKind::Dedicated(own), watch));
        };
        let mut held = timeout(BUSY_WAIT, turns.next_turn())
            .await
            .map_err(|_| busy_error())?;
        if held
            .as_ref()
            .is_some_and(|shared| !shared.is_open_to(sharing))
        {
            held = turns.commit(held).await?;
        }
        if held.is_none() {
            *held = Some(CommitGroup::begin(&self.pool, self.busy_wait).await?);
            // A task commits the group when it gets the lock. Transactions that already wait for the lock get it
            // before, and can still join the group.
            let last = turns.clone();
            turns
                .runtime
                .spawn(async move { drop(last.commit_open_group().await) });
        }
        let mut group = OwnedMutexGuard::try_map(held, Option::as_mut).map_err(|_| busy_error())?;
        group.begin_member().await?;
        group.is_full = sharing == Sharing::Apart;
        let watch = group.watch.clone();
        Ok((TransactionKind::Grouped(group), watch))
    }

    pub(crate) fn backend(&self) -> DbBackend {
        self.pool.backend()
    }

    pub(crate) async fn replace_connections(&self) -> Result<(), StoreError> {
        Ok(self.pool.replace_connections().await?)
    }

    /// Commits the open group and closes the connections.
    pub(crate) async fn close(self) -> Result<(), StoreError> {
        if let Some(turns) = &self.turns
            && let Ok(turn) = timeout(BUSY_WAIT, turns.next_turn()).await
        {
            drop(turns.commit(turn).await);
        }
        Ok(self.pool.close().await?)
    }
}

impl CommitGroup {
    /// Begins the group's database transaction. If another process writes, retries for up to `busy_wait`, because
    /// SQLite's lock has no queue.
    async fn begin(pool: &Pool, busy_wait: Duration) -> Result<Self, StoreError> {
        let at_once = Some(SqliteTransactionMode::Immediate);
        let begun = Instant::now();
        let (whole, watch) = loop {
            let options = TransactionOptions {
                sqlite_transaction_mode: at_once,
                ..Default::default()
            };
            match pool.begin(options).await {
                Err(error) if is_busy(&error) && begun.elapsed() < busy_wait => {}
                begun => break begun?,
            }
        };
        let outcome = watch::Sender::new(None);
        Ok(Self {
            whole,
            watch,
            begun: Instant::now(),
            members: 0,
            is_full: false,
            open: None,
            outcome,
        })
    }

    fn is_open_to(&self, sharing: Sharing) -> bool {
        sharing == Sharing::Shared && !self.is_full && self.begun.elapsed() <= GROUP_OPEN_FOR
    }

    /// Begins a member with a savepoint. First rolls back the previous member if it was dropped without a commit.
    async fn begin_member(&mut self) -> Result<(), StoreError> {
        self.undo_open_member().await?;
        self.members += 1;
        self.open = Some(self.members);
        self.run_savepoint_command("SAVEPOINT", self.members).await
    }

    /// Keeps the changes of the current member. They become durable when the group commits.
    pub(super) fn keep_member_changes(&mut self) {
        self.open = None;
    }

    async fn undo_open_member(&mut self) -> Result<(), StoreError> {
        if let Some(member) = self.open {
            self.run_savepoint_command("ROLLBACK TO", member).await?;
            self.open = None;
        }
        Ok(())
    }

    /// Releases the first savepoint and thus all later ones. Fails if the savepoint is missing: then SQLite has rolled
    /// everything back, for example because the disk is full, and the group must not be committed.
    async fn release_savepoints(&mut self) -> Result<(), StoreError> {
        self.undo_open_member().await?;
        self.run_savepoint_command("RELEASE", 1).await
    }

    /// Commits the group and tells its members the result.
    async fn commit_and_notify(mut self) {
        let result = match self.release_savepoints().await {
            Ok(()) => self.whole.commit().await.map_err(|error| {
                self.watch.record_error(&error);
                StoreError::from(error)
            }),
            Err(error) => Err(error),
        };
        self.outcome.send_replace(Some(result));
    }

    async fn run_savepoint_command(&self, command: &str, member: u32) -> Result<(), StoreError> {
        let sql = format!("{command} member_{member}");
        self.watch
            .call(Duration::MAX, self.whole.execute_unprepared(&sql))
            .await?;
        Ok(())
    }
}

impl WriteTurns {
    /// Waits for the next turn. It may come with an open group, which this transaction can join.
    fn next_turn(&self) -> impl Future<Output = WriteTurn> + use<> {
        Arc::clone(&self.group).lock_owned()
    }

    /// Waits for a turn and commits the open group.
    pub(crate) async fn commit_open_group(&self) -> Result<WriteTurn, StoreError> {
        self.commit(self.next_turn().await).await
    }

    /// Returns a receiver that changes with each commit from now on.
    pub(crate) fn subscribe_to_commits(&self) -> watch::Receiver<()> {
        self.commits.subscribe()
    }

    /// Commits the open group in a task of its own, so that dropping the caller does not cancel the commit, and in the
    /// pool's runtime: the runtime of an actor's thread may end while members on other threads wait for the commit.
    async fn commit(&self, mut turn: WriteTurn) -> Result<WriteTurn, StoreError> {
        let Some(group) = turn.take() else {
            return Ok(turn);
        };
        let turns = self.clone();
        let committed = self.runtime.spawn(async move {
            turns.sizes.observe(f64::from(group.members));
            group.commit_and_notify().await;
            turns.commits.send_replace(());
            turn
        });
        committed.await.map_err(|_| StoreError::Unsettled)
    }
}

fn busy_error() -> StoreError {
    StoreError::Unavailable(DbErr::ConnectionAcquire(ConnAcquireErr::Timeout))
}

#[cfg(test)]
mod tests {
    use futures_util::future::join_all;
    use sea_orm::Statement;

    use super::*;
    use crate::database::{Database, Transaction};
    use crate::testing::stores;

    /// The longest time for which the test tries to begin a transaction after the disk was full: the failed group has
    /// to end first.
    const PATIENCE: Duration = Duration::from_secs(30);

    async fn add(tx: &Transaction, name: &str) -> Result<(), DbErr> {
        let sql = format!("INSERT INTO counters (name, next) VALUES ('{name}', 1)");
        tx.execute_unprepared(&sql).await.map(drop)
    }

    async fn write(store: &Database, name: &str) -> Result<(), StoreError> {
        let tx = store.begin().await?;
        add(&tx, name).await?;
        tx.commit().await
    }

    /// Returns the committed names, read through another connection.
    async fn names(store: &Database) -> Vec<String> {
        let statement =
            Statement::from_string(store.backend(), "SELECT name FROM counters ORDER BY name");
        let rows = store.reader().query_all_raw(statement).await.unwrap();
        rows.iter()
            .map(|row| row.try_get("", "name").unwrap())
            .collect()
    }

    #[tokio::test]
    async fn each_transaction_leaves_exactly_its_committed_rows() {
        for test in stores().await {
            let store = &test.store;
            let work = (0..60).map(|number| async move {
                let tx = store.begin().await.unwrap();
                let name = format!("{number:02}");
                add(&tx, &name).await.unwrap();
                match number % 3 {
                    0 => {
                        tx.commit().await.unwrap();
                        assert!(
                            names(store).await.contains(&name),
                            "durable when it returns"
                        );
                    }
                    1 => tx.rollback().await.unwrap(),
                    _ => drop(tx),
                }
            });
            join_all(work).await;
            let kept: Vec<_> = (0..20).map(|number| format!("{:02}", number * 3)).collect();
            assert_eq!(names(store).await, kept);
        }
    }

    #[tokio::test]
    async fn a_refused_row_fails_only_its_own_transaction() {
        for test in stores().await {
            let store = &test.store;
            let results = join_all(["a", "b", "a", "c"].map(|name| write(store, name))).await;
            assert_eq!(results.iter().filter(|result| result.is_ok()).count(), 3);
            let refused = results.into_iter().find_map(Result::err).unwrap();
            assert!(matches!(refused, StoreError::Duplicate(_)), "{refused}");
            assert_eq!(names(store).await, ["a", "b", "c"]);
        }
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_group_of_a_thread_that_has_ended_is_committed_for_the_others() {
        for test in stores().await {
            let store = test.store.clone();
            let begin = move || {
                let runtime = tokio::runtime::Builder::new_current_thread()
                    .enable_all()
                    .build()
                    .unwrap();
                runtime.block_on(async { drop(store.begin().await.unwrap()) });
            };
            std::thread::spawn(begin).join().unwrap();
            timeout(PATIENCE, write(&test.store, "late"))
                .await
                .unwrap()
                .unwrap();
            assert_eq!(names(&test.store).await, ["late"]);
        }
    }

    #[tokio::test]
    async fn a_dropped_transaction_affects_no_other() {
        for test in stores().await {
            let store = &test.store;
            for pause in (0..40).map(|step| Duration::from_micros(step * 50)) {
                let name = format!("left-{pause:?}");
                let leaves = timeout(pause, write(store, &name));
                let before = format!("before-{pause:?}");
                let after = format!("after-{pause:?}");
                let (first, _, last) =
                    tokio::join!(write(store, &before), leaves, write(store, &after));
                first.unwrap();
                last.unwrap();
                let names = names(store).await;
                assert!(
                    names.contains(&before) && names.contains(&after),
                    "{pause:?}"
                );
            }
        }
    }

    #[tokio::test]
    async fn a_commit_on_a_full_disk_is_never_reported_as_done() {
        // The test imitates a full disk by a limit on database pages, which PostgreSQL does not have.
        let test = stores().await.remove(0);
        let store = &test.store;
        let pages = |limit: &'static str| async move {
            // On a full disk SQLite rolls back the whole group. The test tries again until a new group begins.
            let begun = Instant::now();
            while begun.elapsed() < PATIENCE {
                if let Ok(tx) = store.begin().await {
                    let set = tx
                        .execute_unprepared(&format!("PRAGMA max_page_count = {limit}"))
                        .await;
                    drop(tx.rollback().await);
                    if set.is_ok() {
                        return;
                    }
                }
                tokio::task::yield_now().await;
            }
            panic!("no transaction could set max_page_count to {limit} in {PATIENCE:?}");
        };
        pages("1").await;
        let long = "x".repeat(2_000);
        let results = join_all((0..40).map(|number| {
            let name = format!("{number:02}{long}");
            async move { (write(store, &name).await.is_ok(), name) }
        }))
        .await;
        let kept = names(store).await;
        assert!(results.iter().any(|(is_ok, _)| !is_ok));
        assert!(
            results
                .iter()
                .all(|(is_ok, name)| !is_ok || kept.contains(name))
        );
        pages("1000000").await;
        write(store, "after").await.unwrap();
        assert!(names(store).await.contains(&"after".to_owned()));
    }

    #[tokio::test]
    async fn a_commit_after_a_statement_that_failed_is_refused() {
        // PostgreSQL only: after a failed statement it rolls back on commit, but reports the commit as successful.
        for test in stores().await.into_iter().skip(1) {
            let tx = test.store.begin().await.unwrap();
            add(&tx, "lost").await.unwrap();
            tx.execute_unprepared("SELECT nothing FROM nowhere")
                .await
                .unwrap_err();
            assert!(matches!(tx.commit().await, Err(StoreError::Unavailable(_))));
            assert_eq!(names(&test.store).await, [""; 0]);
        }
    }

    #[tokio::test]
    async fn concurrent_transactions_share_a_commit() {
        let test = stores().await.remove(0);
        let store = &test.store;
        let second = async {
            let tx = store.begin().await.unwrap();
            let statement = Statement::from_string(store.backend(), "SELECT name FROM counters");
            let shared = tx.query_all_raw(statement).await.unwrap().len();
            let on_disk = names(store).await.len();
            tx.commit().await.unwrap();
            (shared, on_disk)
        };
        let (first, (shared, on_disk)) = tokio::join!(write(store, "first"), second);
        first.unwrap();
        assert_eq!((shared, on_disk), (1, 0));
    }

    #[tokio::test]
    async fn a_rollback_by_sqlite_costs_no_other_a_change_if_its_cause_is_apart() {
        let test = stores().await.remove(0);
        let store = &test.store;
        let rolls_back = async |name: &str| {
            let tx = store.begin_unshared().await.unwrap();
            add(&tx, name).await.unwrap();
            tx.execute_unprepared("ROLLBACK").await.unwrap();
            tx.commit().await
        };
        let (first, failed, second, also_failed, third) = tokio::join!(
            write(store, "1"),
            rolls_back("lost"),
            write(store, "2"),
            rolls_back("also lost"),
            write(store, "3")
        );
        assert!(failed.is_err() && also_failed.is_err());
        assert!(
            first.is_ok() && second.is_ok() && third.is_ok(),
            "{first:?}, {second:?}, {third:?}"
        );
        assert_eq!(names(store).await, ["1", "2", "3"]);
    }

    #[tokio::test]
    async fn a_rollback_by_sqlite_fails_the_group_and_not_the_next() {
        let test = stores().await.remove(0);
        let store = &test.store;
        // The statement `ROLLBACK` imitates SQLite, which rolls back by itself when the disk fails.
        let given_up = async {
            let tx = store.begin().await.unwrap();
            tx.execute_unprepared("ROLLBACK").await.unwrap();
            tx.commit().await
        };
        let (before, given_up, after) =
            tokio::join!(write(store, "before"), given_up, write(store, "after"));
        assert!(given_up.is_err());
        // Either transaction may succeed. A name must be stored if and only if its transaction was committed.
        let stored = names(store).await;
        for (written, name) in [(before, "before"), (after, "after")] {
            assert_eq!(written.is_ok(), stored.contains(&name.to_owned()), "{name}");
        }
        write(store, "next").await.unwrap();
        assert!(names(store).await.contains(&"next".to_owned()));
        let tx = store.begin().await.unwrap();
        let twin = store
            .reader()
            .execute_unprepared("PRAGMA busy_timeout = 0; BEGIN IMMEDIATE")
            .await;
        assert!(
            twin.is_err(),
            "a transaction holds the database lock from its start"
        );
        tx.rollback().await.unwrap();
    }
}

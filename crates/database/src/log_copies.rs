//! Copies SQLite's write-ahead log into the database file. SQLite calls this a checkpoint. By default, SQLite does it
//! in each commit that finds more than 1,000 pages in the log. Creating a few invoices fills so many pages. So most
//! commits would copy pages that the next commit changes again, and would wait for the disk two more times.
//!
//! Instead, a task copies the log while the writer goes on, each time it has grown by 64 MiB. It copies in rounds.
//! Each round leaves the pages that were written during it. When only few pages are left, or a round leaves hardly
//! fewer than the one before, the task stops the writer (`WriteTurns`) and copies the rest. The next commit then
//! overwrites the log from its start.
//!
//! SQLite waits until the database file is on disk only at the end of a round during which nothing was committed. The
//! last round is such a round: the writer would wait while SQLite writes all copied pages to disk. So each earlier
//! round begins just after a commit, and there are at least three. Then one of them probably ends before the next
//! commit and has already waited for the disk.

use std::sync::Arc;
use std::time::Duration;

use sea_orm::{ConnectionTrait, DbErr, Statement};
use tokio::time::{sleep, timeout};
use tokio_util::task::AbortOnDropHandle;

use crate::error::StoreError;
use crate::group_commit::WriteTurns;
use crate::pool::Pool;

/// The log is copied when it has grown by this many pages of 4 KiB.
const COPY_AFTER_PAGES: u32 = 16_384;
/// The last round, for which the writer waits some milliseconds, begins when no more than this many pages are left.
const LAST_ROUND_PAGES_MAX: u32 = 1_000;
/// The minimum number of rounds before the last one, even if few pages are left.
const ROUNDS_MIN: usize = 3;
const ROUNDS_MAX: usize = 10;
/// The shortest time between two looks at the size of the log. It is looked at only after commits.
const LOOK_EVERY: Duration = Duration::from_millis(10);
/// The longest time that a round waits for a commit before it begins.
const COMMIT_WAIT: Duration = Duration::from_millis(50);
/// The time to wait before the next try after the log could not be looked at or copied.
const RETRY_WAIT: Duration = Duration::from_secs(1);

/// Returns the size of the log without copying it.
const LOOK: &str = "PRAGMA wal_checkpoint(NOOP)";
/// Copies the pages that no transaction still reads from the log, without waiting for anybody.
const COPY: &str = "PRAGMA wal_checkpoint(PASSIVE)";
/// Copies like `COPY`, and then waits (`busy_timeout`) until no transaction reads from the log, so that the next commit
/// overwrites it from its start.
const COPY_AND_BEGIN_ANEW: &str = "PRAGMA wal_checkpoint(RESTART)";

/// The task that copies the log. It ends when the last clone is dropped.
#[derive(Clone)]
pub(crate) struct LogCopyTask {
    pool: Pool,
    task: Arc<AbortOnDropHandle<()>>,
}

impl LogCopyTask {
    /// Starts the task. `turns` notifies it of each commit.
    pub(crate) fn start(pool: Pool, turns: WriteTurns) -> Self {
        let copier = LogCopier {
            pool: pool.clone(),
            turns,
        };
        let task = pool.runtime().spawn(async move { copier.run().await });
        let task = Arc::new(AbortOnDropHandle::new(task));
        Self { pool, task }
    }

    /// Ends the task and closes its pool. SQLite copies the rest of the log when its last connection closes.
    pub(crate) async fn close(&self) -> Result<(), DbErr> {
        self.task.abort();
        self.pool.close().await
    }
}

struct LogCopier {
    pool: Pool,
    turns: WriteTurns,
}

/// The pages in the log, and how many of them are copied.
#[derive(Clone, Copy)]
struct LogPages {
    pages: u32,
    copied: u32,
}

impl LogPages {
    /// Returns the number of pages that are not copied yet. SQLite reads the two numbers one after the other, and
    /// another process may copy meanwhile, so `copied` may exceed `pages`.
    fn uncopied_pages(self) -> u32 {
        self.pages.saturating_sub(self.copied)
    }
}

impl LogCopier {
    async fn run(self) {
        let mut commits = self.turns.subscribe_to_commits();
        let mut seen = 0;
        // `changed` never fails, because `turns` keeps the sender of the commits alive.
        while commits.changed().await.is_ok() {
            match self.copy_if_grown(seen).await {
                Ok(pages) => {
                    seen = pages;
                    sleep(LOOK_EVERY).await;
                }
                Err(error) => {
                    tracing::warn!(%error, "failed to copy SQLite's write-ahead log; trying again");
                    sleep(RETRY_WAIT).await;
                }
            }
        }
    }

    /// Copies the log if it has grown enough since it had `seen` pages. Returns the `seen` of the next call: the number
    /// of pages after the copying, which is not zero if a long transaction still reads from the log.
    async fn copy_if_grown(&self, seen: u32) -> Result<u32, StoreError> {
        let log = self.run_log_pragma(LOOK).await?;
        // A shorter log than before means that SQLite has overwritten it from its start.
        let counted_from = if log.pages < seen { 0 } else { seen };
        if log.pages - counted_from < COPY_AFTER_PAGES {
            return Ok(counted_from);
        }
        self.copy_most_pages(log).await?;
        let turn = self.turns.commit_open_group().await?;
        let log = self.run_log_pragma(COPY_AND_BEGIN_ANEW).await?;
        drop(turn);
        Ok(log.pages)
    }

    /// Copies in rounds, while the writer goes on, until few pages are left or the rounds hardly become shorter.
    async fn copy_most_pages(&self, mut log: LogPages) -> Result<(), DbErr> {
        let mut left_before = u32::MAX;
        for round in 0..ROUNDS_MAX {
            let left = log.uncopied_pages();
            let is_at_end = left <= LAST_ROUND_PAGES_MAX || left > left_before / 4 * 3;
            if round >= ROUNDS_MIN && is_at_end {
                break;
            }
            left_before = left;
            drop(timeout(COMMIT_WAIT, self.turns.subscribe_to_commits().changed()).await);
            self.run_log_pragma(COPY).await?;
            log = self.run_log_pragma(LOOK).await?;
        }
        Ok(())
    }

    async fn run_log_pragma(&self, pragma: &str) -> Result<LogPages, DbErr> {
        let statement = Statement::from_string(self.pool.backend(), pragma);
        let row = self.pool.query_one_raw(statement).await?;
        let row = row.ok_or_else(|| DbErr::RecordNotFound(pragma.to_owned()))?;
        // SQLite returns -1 if the file system does not support a write-ahead log.
        let count = |column| {
            let count: i64 = row.try_get_by_index(column)?;
            Ok::<_, DbErr>(u32::try_from(count).unwrap_or_default())
        };
        Ok(LogPages {
            pages: count(1)?,
            copied: count(2)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use sea_orm::Value;

    use super::*;
    use crate::database::Database;
    use crate::testing::sqlite;

    const MIB: u64 = 1024 * 1024;

    /// Writes a mebibyte in one transaction, and looks at the log.
    async fn write_mebibyte(store: &Database, path: &Path, number: u64) -> u64 {
        let tx = store.begin().await.unwrap();
        let sql = "INSERT INTO counters (name, next) VALUES (hex(zeroblob(524288)) || ?, ?)";
        let values = [number.to_string().into(), Value::from(number.cast_signed())];
        let insert = Statement::from_sql_and_values(store.backend(), sql, values);
        tx.execute_raw(insert).await.unwrap();
        tx.commit().await.unwrap();
        std::fs::metadata(path.with_extension("db-wal"))
            .unwrap()
            .len()
    }

    #[test]
    fn a_log_of_which_more_is_copied_than_it_had_has_nothing_left() {
        for (pages, copied, left) in [(5, 3, 2), (5, 5, 0), (5, 8, 0), (0, 0, 0)] {
            assert_eq!(
                LogPages { pages, copied }.uncopied_pages(),
                left,
                "{pages}, {copied}"
            );
        }
    }

    #[tokio::test]
    async fn the_log_stays_short_however_much_is_written() {
        let test = sqlite().await;
        let mut longest = 0;
        for number in 0..500 {
            longest = longest.max(write_mebibyte(&test.store, &test.path(), number).await);
        }
        // Usually below 100. A busy machine lets the writer run ahead of the copies.
        assert!(
            (60 * MIB..400 * MIB).contains(&longest),
            "{} MiB",
            longest / MIB
        );
        assert_eq!(count(&test.store).await, 500);
    }

    #[tokio::test]
    async fn a_long_read_delays_no_write_and_the_log_is_begun_anew_after_it() {
        let test = sqlite().await;
        let read = test.store.begin_snapshot().await.unwrap();
        let sql = "SELECT count(*) FROM counters";
        let select = Statement::from_string(test.store.backend(), sql);
        read.query_one_raw(select.clone()).await.unwrap();
        for number in 0..150 {
            write_mebibyte(&test.store, &test.path(), number).await;
        }
        let row = read.query_one_raw(select).await.unwrap().unwrap();
        assert_eq!(row.try_get_by_index::<i64>(0).unwrap(), 0);
        read.rollback().await.unwrap();
        let long = std::fs::metadata(test.path().with_extension("db-wal"))
            .unwrap()
            .len();
        for number in 150..400 {
            let now = write_mebibyte(&test.store, &test.path(), number).await;
            assert!(now <= long + 90 * MIB, "{} MiB after {number}", now / MIB);
        }
        assert_eq!(count(&test.store).await, 400);
    }

    async fn count(store: &Database) -> i64 {
        let select = Statement::from_string(store.backend(), "SELECT count(*) FROM counters");
        let row = store.reader().query_one_raw(select).await.unwrap();
        row.unwrap().try_get_by_index(0).unwrap()
    }
}

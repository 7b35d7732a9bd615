//! Copies SQLite's write-ahead log into the database file (a checkpoint, as SQLite calls it). Left to itself, the writer
//! does it in each commit that finds more than 1,000 pages in the log. A few creates fill these, so most commits would
//! copy pages that the next one changes again, and wait for the disk two more times.
//!
//! Here a task copies while the writer goes on, when the log has grown by 64 MiB. Each round leaves the pages that were
//! written during it. When only few are left, or no fewer than before, the task takes a turn of the writer's and copies
//! these: after that the next commit begins the log anew.
//!
//! SQLite waits until the database file is on disk only at the end of a round during which nothing was committed. The
//! last round is one, and it would wait for all pages while the writer waits for it. So a round begins just after a
//! commit, and at least three are made: then one of them probably ends before the next commit and has waited already.

use std::sync::Arc;
use std::time::Duration;

use sea_orm::{ConnectionTrait, DbErr, Statement};
use tokio::time::{sleep, timeout};
use tokio_util::task::AbortOnDropHandle;

use crate::error::StoreError;
use crate::group_commit::Turns;
use crate::pool::Pool;

/// The log is copied when it has grown by so many pages, of 4 KiB each.
const COPIED_FROM: u32 = 16_384;
/// The number of pages that may be left for a turn of the writer's, which waits for some milliseconds.
const FEW: u32 = 1_000;
/// The number of rounds beside the writer, however few pages are left.
const ROUNDS_MIN: usize = 3;
const ROUNDS_MAX: usize = 10;
/// The log is looked at no more often than this, and only after commits.
const LOOK_EVERY: Duration = Duration::from_millis(10);
/// A round waits no longer than this for the commit after which it begins.
const COMMIT_WAIT: Duration = Duration::from_millis(50);
/// The wait after a log that could not be looked at or copied.
const RETRY_WAIT: Duration = Duration::from_secs(1);

/// Looks at the log and does nothing else.
const LOOK: &str = "PRAGMA wal_checkpoint(NOOP)";
/// Copies what no transaction reads from the log any more, and waits for nobody.
const COPY: &str = "PRAGMA wal_checkpoint(PASSIVE)";
/// Copies the same, and then waits (`busy_timeout`) for the transactions that still read from the log.
const COPY_AND_BEGIN_ANEW: &str = "PRAGMA wal_checkpoint(RESTART)";

/// The task that copies the log. It ends when the last clone is dropped.
#[derive(Clone)]
pub(crate) struct LogCopies {
    pool: Pool,
    task: Arc<AbortOnDropHandle<()>>,
}

impl LogCopies {
    /// Begins to copy the log after commits, which the turns tell of.
    pub(crate) fn begin(pool: Pool, turns: Turns) -> Self {
        let copier = Copier {
            pool: pool.clone(),
            turns,
        };
        let task = pool.runtime().spawn(async move { copier.run().await });
        let task = Arc::new(AbortOnDropHandle::new(task));
        Self { pool, task }
    }

    /// Ends the task. The last connection that is closed copies the rest of the log.
    pub(crate) async fn close(&self) -> Result<(), DbErr> {
        self.task.abort();
        self.pool.close().await
    }
}

struct Copier {
    pool: Pool,
    turns: Turns,
}

/// The pages in the log, and how many of them are copied.
#[derive(Clone, Copy)]
struct Log {
    pages: u32,
    copied: u32,
}

impl Log {
    /// Returns the number of pages to copy. SQLite reads the two numbers one after the other, so another process may have
    /// copied more than the log had.
    fn left(self) -> u32 {
        self.pages.saturating_sub(self.copied)
    }
}

impl Copier {
    async fn run(self) {
        let mut commits = self.turns.commits();
        let mut seen = 0;
        // The sender of the commits lives in `turns`.
        while commits.changed().await.is_ok() {
            match self.copy_if_long(seen).await {
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

    /// Copies the log if it has grown enough since it had `seen` pages. Returns the number that the next look counts
    /// from: the log may be as long as before, if a transaction reads from it for long.
    async fn copy_if_long(&self, seen: u32) -> Result<u32, StoreError> {
        let log = self.ask(LOOK).await?;
        // Shorter than before means begun anew.
        let counted_from = if log.pages < seen { 0 } else { seen };
        if log.pages - counted_from < COPIED_FROM {
            return Ok(counted_from);
        }
        self.copy_most(log).await?;
        let turn = self.turns.take().await?;
        let log = self.ask(COPY_AND_BEGIN_ANEW).await?;
        drop(turn);
        Ok(log.pages)
    }

    /// Copies in rounds, while the writer goes on, until few pages are left or the rounds no longer become shorter.
    async fn copy_most(&self, mut log: Log) -> Result<(), DbErr> {
        let mut left_before = u32::MAX;
        for round in 0..ROUNDS_MAX {
            let left = log.left();
            let is_at_end = left <= FEW || left > left_before / 4 * 3;
            if round >= ROUNDS_MIN && is_at_end {
                break;
            }
            left_before = left;
            drop(timeout(COMMIT_WAIT, self.turns.commits().changed()).await);
            self.ask(COPY).await?;
            log = self.ask(LOOK).await?;
        }
        Ok(())
    }

    async fn ask(&self, pragma: &str) -> Result<Log, DbErr> {
        let statement = Statement::from_string(self.pool.backend(), pragma);
        let row = self.pool.query_one_raw(statement).await?;
        let row = row.ok_or_else(|| DbErr::RecordNotFound(pragma.to_owned()))?;
        // SQLite says -1 where the file system allows no log.
        let count = |column| {
            let count: i64 = row.try_get_by_index(column)?;
            Ok::<_, DbErr>(u32::try_from(count).unwrap_or_default())
        };
        Ok(Log {
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
            assert_eq!(Log { pages, copied }.left(), left, "{pages}, {copied}");
        }
    }

    #[tokio::test]
    async fn the_log_stays_short_however_much_is_written() {
        let test = sqlite().await;
        let mut longest = 0;
        for number in 0..300 {
            longest = longest.max(write_mebibyte(&test.store, &test.path(), number).await);
        }
        assert!(
            (60 * MIB..200 * MIB).contains(&longest),
            "{} MiB",
            longest / MIB
        );
        assert_eq!(count(&test.store).await, 300);
    }

    #[tokio::test]
    async fn a_long_read_delays_no_write_and_the_log_is_begun_anew_after_it() {
        let test = sqlite().await;
        let read = test.store.snapshot().await.unwrap();
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

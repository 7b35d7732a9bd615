//! The pools for queries: one for the API and background work, and one for pages, so that people who open pages, or
//! strangers who try to, never make a call of the API wait for a connection. A third pool is for transactions that only
//! read (snapshots).
//!
//! A task that makes a page says so once (`run_with_page_pool`). All its queries then use the pool for pages, even in
//! functions that the API calls, too.

use tokio::task_local;

use crate::pool::Pool;

task_local! {
    static MAKES_PAGE: ();
}

#[derive(Clone)]
pub(crate) struct Readers {
    pub(crate) main: Pool,
    pub(crate) pages: Pool,
    /// The pool for transactions that only read. On PostgreSQL it is the pool of the writers.
    pub(crate) snapshots: Pool,
}

impl Readers {
    /// Returns the pool for pages if the current task makes a page, otherwise the main pool.
    pub(crate) fn pool(&self) -> &Pool {
        if MAKES_PAGE.try_with(|()| ()).is_ok() {
            &self.pages
        } else {
            &self.main
        }
    }
}

/// Runs a future that makes a page: its queries use the pool for pages.
pub async fn run_with_page_pool<F: Future>(page: F) -> F::Output {
    MAKES_PAGE.scope((), page).await
}

/// Polls the body of a page that is rendered while it is sent: its queries use the pool for pages, too.
pub fn poll_with_page_pool<T>(poll: impl FnOnce() -> T) -> T {
    MAKES_PAGE.sync_scope((), poll)
}

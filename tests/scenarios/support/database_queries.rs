//! Queries of the database beside the process, which cost it no request.

use std::time::Duration;

use sea_orm::{ConnectionTrait, DatabaseConnection, QueryResult, Statement};
use testkit::patience::{PATIENCE, eventually_within};

use crate::support::database::{PostgresDatabase, connect};
use crate::support::deployment::Deployment;

pub(crate) struct DatabaseQueries(DatabaseConnection);

impl DatabaseQueries {
    pub(crate) async fn open(deployment: &Deployment) -> Self {
        let url = deployment
            .postgres
            .as_ref()
            .map_or_else(|| deployment.sqlite_url(), PostgresDatabase::url);
        Self(connect(&url).await)
    }

    async fn rows(&self, text: &str) -> Vec<QueryResult> {
        let statement = Statement::from_string(self.0.get_database_backend(), text);
        self.0.query_all_raw(statement).await.unwrap()
    }

    pub(crate) async fn execute(&self, text: &str) {
        self.0.execute_unprepared(text).await.unwrap();
    }

    pub(crate) async fn number(&self, text: &str) -> i64 {
        self.rows(text).await[0].try_get_by_index(0).unwrap()
    }

    /// Waits until so many runs of an operation have succeeded. None may end otherwise.
    pub(crate) async fn wait_until_all_succeeded(&self, operation: &str, runs: usize) {
        let of = format!("FROM pipeline_runs WHERE operation = '{operation}' AND state");
        let patience = PATIENCE + Duration::from_millis(500) * u32::try_from(runs).unwrap();
        let what = format!("the end of {runs} runs of {operation}");
        eventually_within(patience, &what, async || {
            let given_up = format!("SELECT COUNT(*) {of} IN ('refused', 'paused', 'cancelled')");
            assert_eq!(
                self.number(&given_up).await,
                0,
                "{operation}: runs that did not end well"
            );
            let done = self
                .number(&format!("SELECT COUNT(*) {of} = 'succeeded'"))
                .await;
            (usize::try_from(done).unwrap() >= runs).then_some(())
        })
        .await;
    }

    /// Counts the runs with an unknown outcome and those that have not succeeded.
    pub(crate) async fn unknown_or_open(&self) -> i64 {
        let text =
            "SELECT COUNT(*) FROM pipeline_runs WHERE state <> 'succeeded' OR intent IS NOT NULL";
        self.number(text).await
    }

    /// Prints a table of counts: `SELECT word, word, count`.
    pub(crate) async fn print(&self, title: &str, text: &str) {
        println!("  {title}:");
        for row in self.rows(text).await {
            let word = |at: usize| row.try_get_by_index::<Option<String>>(at).unwrap();
            let count: i64 = row.try_get_by_index(2).unwrap();
            let [one, two] = [0, 1].map(|at| word(at).unwrap_or_else(|| "none".into()));
            println!("    {one:<24} {two:<16} {count:>6}");
        }
    }

    /// Prints the counts of runs by how their outcome became known, and of attempts by outcome.
    pub(crate) async fn print_outcomes(&self) {
        let runs = "SELECT operation, resolved_by, COUNT(*) FROM pipeline_runs GROUP BY 1, 2 ORDER BY 1, 2";
        self.print("runs by resolved_by", runs).await;
        let steps =
            "SELECT step, outcome, COUNT(*) FROM pipeline_steps GROUP BY 1, 2 ORDER BY 1, 2";
        self.print(
            "attempts by outcome (none: killed before it was written)",
            steps,
        )
        .await;
    }
}

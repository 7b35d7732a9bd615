//! A fresh database for a scenario, dropped at its end however it ends.

use std::env;
use std::io::{self, Write as _};
use std::sync::atomic::{AtomicU32, Ordering};

use sea_orm::{ConnectionTrait, Database as Connections, DatabaseConnection};
use url::Url;

const SERVER: &str = "EINVOICE_TEST_POSTGRES";
static SKIPPED: AtomicU32 = AtomicU32::new(0);
static MADE: AtomicU32 = AtomicU32::new(0);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Backend {
    Sqlite,
    Postgres,
}

impl Backend {
    /// PostgreSQL where there is a server for tests. Where there is none the scenario counts as passed, so it is
    /// named as skipped on standard error itself, which the harness does not capture.
    pub(crate) fn postgres() -> Option<Self> {
        if env::var_os(SERVER).is_some() {
            return Some(Self::Postgres);
        }
        let number = SKIPPED.fetch_add(1, Ordering::Relaxed) + 1;
        let thread = std::thread::current();
        let name = thread.name().unwrap_or("a scenario");
        let line = format!("SKIPPED ({number} so far): {name}: {SERVER} names no PostgreSQL server\n");
        io::stderr().write_all(line.as_bytes()).unwrap();
        None
    }

    /// The URL of the server for tests.
    pub(crate) fn server() -> Url {
        env::var(SERVER).unwrap().parse().unwrap()
    }
}

/// A database of PostgreSQL that is dropped with its value.
pub(crate) struct PostgresDatabase {
    server: Url,
    pub(crate) name: String,
}

impl PostgresDatabase {
    pub(crate) async fn create() -> Self {
        let server = Backend::server();
        let name = format!("scenario_{}_{}", std::process::id(), MADE.fetch_add(1, Ordering::Relaxed));
        let database = Self { server, name };
        database.order(&format!("CREATE DATABASE {}", database.name)).await;
        database
    }

    pub(crate) fn url(&self) -> String {
        let mut url = self.server.clone();
        url.set_path(&self.name);
        url.to_string()
    }

    /// Lets nobody in any more, and puts out who is there; or lets them in again.
    pub(crate) async fn let_in(&self, is_open: bool) {
        let name = &self.name;
        self.order(&format!("ALTER DATABASE {name} ALLOW_CONNECTIONS {is_open}")).await;
        if !is_open {
            let put_out =
                format!("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}'");
            self.order(&put_out).await;
        }
    }

    async fn order(&self, statement: &str) {
        order(&self.server, statement).await;
    }
}

async fn order(server: &Url, statement: &str) {
    let connection = Connections::connect(server.as_str()).await.unwrap();
    connection.execute_unprepared(statement).await.unwrap();
    connection.close().await.unwrap();
}

impl Drop for PostgresDatabase {
    fn drop(&mut self) {
        let (server, statement) =
            (self.server.clone(), format!("DROP DATABASE IF EXISTS {} WITH (FORCE)", self.name));
        // A drop cannot wait inside the runtime it is called on.
        let dropping = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.unwrap().block_on(order(&server, &statement));
        });
        if dropping.join().is_err() {
            println!("the database {} could not be dropped", self.name);
        }
    }
}

/// A connection that goes beside the service.
pub(crate) async fn connect(url: &str) -> DatabaseConnection {
    let mut options = sea_orm::ConnectOptions::new(url);
    options.max_connections(1).min_connections(1).sqlx_logging(false);
    Connections::connect(options).await.unwrap()
}

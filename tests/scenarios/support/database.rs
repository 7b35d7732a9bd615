//! A fresh database for a scenario, dropped at its end however it ends.

use std::sync::atomic::{AtomicU32, Ordering};

use futures_util::future::LocalBoxFuture;
use sea_orm::{ConnectionTrait, Database as Connections, DatabaseConnection};
use testkit::Backend;
use testkit::backend::postgres_server;
use url::Url;

static DATABASES_MADE: AtomicU32 = AtomicU32::new(0);

/// Runs a case on a runtime of its own.
pub(crate) fn run_case(
    backend: Backend,
    _: &str,
    case: fn(Backend) -> LocalBoxFuture<'static, ()>,
) {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build();
    runtime.unwrap().block_on(case(backend));
}

/// Returns the URL of the server for tests.
pub(crate) fn server() -> Url {
    postgres_server().parse().unwrap()
}

/// A database of PostgreSQL that is dropped with its value.
pub(crate) struct PostgresDatabase {
    server: Url,
    pub(crate) name: String,
}

impl PostgresDatabase {
    pub(crate) async fn create() -> Self {
        Self::create_from("template1").await
    }

    /// Creates a copy. Nobody may be connected to this one.
    pub(crate) async fn copy(&self) -> Self {
        Self::create_from(&self.name).await
    }

    async fn create_from(template: &str) -> Self {
        let server = server();
        let name = format!(
            "scenario_{}_{}",
            std::process::id(),
            DATABASES_MADE.fetch_add(1, Ordering::Relaxed)
        );
        let database = Self { server, name };
        database
            .order(&format!(
                "CREATE DATABASE {} TEMPLATE {template}",
                database.name
            ))
            .await;
        database
    }

    pub(crate) fn url(&self) -> String {
        let mut url = self.server.clone();
        url.set_path(&self.name);
        url.to_string()
    }

    /// Lets nobody in any more, and puts out who is there; or lets them in again.
    pub(crate) async fn allow_connections(&self, is_open: bool) {
        let name = &self.name;
        self.order(&format!(
            "ALTER DATABASE {name} ALLOW_CONNECTIONS {is_open}"
        ))
        .await;
        if !is_open {
            let put_out = format!(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}'"
            );
            self.order(&put_out).await;
        }
    }

    /// Makes transactions of new sessions read-only unless they ask for more, and puts out who is there.
    pub(crate) async fn set_read_only_by_default(&self) {
        let name = &self.name;
        self.order(&format!(
            "ALTER DATABASE {name} SET default_transaction_read_only = on"
        ))
        .await;
        self.order(&format!(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}'"
        ))
        .await;
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
        let server = self.server.clone();
        let statement = format!("DROP DATABASE IF EXISTS {} WITH (FORCE)", self.name);
        // A drop cannot wait inside the runtime it is called on.
        let dropping = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build();
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
    options
        .max_connections(1)
        .min_connections(1)
        .sqlx_logging(false);
    Connections::connect(options).await.unwrap()
}

//! A directory and a database for one application. Both are copies of what a first start left behind, once for each
//! kind of database: to migrate and to fetch the authority's lists is most of a start.

use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::{fs, process};

use einvoice::config::Settings;
use sea_orm::{ConnectionTrait, Database};
use testkit::Backend;
use testkit::backend::postgres_server;
use testkit::documents::number;

use super::world::{RUNTIME, World, new_integrator};

/// Quick schedules, and no limits but those a test asks for.
const SETTINGS: [(&str, &str); 14] = [
    ("HTTP__BIND", "127.0.0.1:0"),
    ("AUTHORITY__MODE", "sandbox"),
    ("AUTHORITY__PULL_EVERY_S", "3600"),
    ("PIPELINE__WAIT_S", "10"),
    ("PIPELINE__RETRY_INITIAL_MS", "20"),
    ("PIPELINE__RETRY_MAX_S", "1"),
    ("WEBHOOKS__RETRY_SCHEDULE_S", "[0, 0, 0, 1]"),
    ("WEBHOOKS__TIMEOUT_S", "2"),
    ("RATE_LIMIT__REQUESTS_PER_S", "0"),
    ("RATE_LIMIT__ROTATE_PER_MIN", "0"),
    ("RATE_LIMIT__WEBHOOK_TEST_PER_MIN", "0"),
    ("RATE_LIMIT__FAILED_AUTH_PER_MIN", "0"),
    ("RATE_LIMIT__REFUSED_CREATES_PER_MIN", "0"),
    ("RATE_LIMIT__PAGES_PER_S", "0"),
];

static FIRST_ON_SQLITE: LazyLock<First> = LazyLock::new(|| First::start(Backend::Sqlite));
static FIRST_ON_POSTGRESQL: LazyLock<First> = LazyLock::new(|| First::start(Backend::Postgres));

/// The result of a first start.
struct First {
    home: PathBuf,
    /// On PostgreSQL.
    database: Option<String>,
    /// Of the integrator that onboards the taxpayers of the tests.
    integrator_key: String,
}

impl First {
    fn start(backend: Backend) -> Self {
        let home = fresh_directory(&format!("first-{backend:?}"));
        let database =
            (backend == Backend::Postgres).then(|| RUNTIME.block_on(fresh_database(None)));
        let settings = settings_at(&home, database.as_deref(), &[]);
        let integrator_key = RUNTIME.block_on(new_integrator(&settings));
        World::begin(settings, &integrator_key).stop();
        Self {
            home,
            database,
            integrator_key,
        }
    }

    fn for_backend(backend: Backend) -> &'static Self {
        match backend {
            Backend::Sqlite => &FIRST_ON_SQLITE,
            Backend::Postgres => &FIRST_ON_POSTGRESQL,
        }
    }
}

/// Returns the settings of an application with its own directory and database, and the key of its integrator.
pub(crate) fn fresh_settings(
    backend: Backend,
    name: &str,
    changes: &[(&str, &str)],
) -> (Settings, &'static str) {
    let first = First::for_backend(backend);
    let home = fresh_directory(name);
    for file in fs::read_dir(&first.home).unwrap().map(Result::unwrap) {
        fs::copy(file.path(), home.join(file.file_name())).unwrap();
    }
    let copied = first.database.as_deref();
    let database = copied.map(|copied| RUNTIME.block_on(fresh_database(Some(copied))));
    (
        settings_at(&home, database.as_deref(), changes),
        &first.integrator_key,
    )
}

fn settings_at(home: &Path, database: Option<&str>, changes: &[(&str, &str)]) -> Settings {
    let url =
        database.map(|name| format!("{}/{name}", postgres_server().rsplit_once('/').unwrap().0));
    let own = [
        ("DATA_DIR", home.to_str().unwrap()),
        ("DATABASE__URL", url.as_deref().unwrap_or_default()),
    ];
    let pairs = SETTINGS.iter().chain(&own).chain(changes);
    let variables = pairs.map(|(key, value)| (format!("EINVOICE__{key}"), (*value).to_owned()));
    let variables: std::collections::BTreeMap<_, _> = variables.collect();
    Settings::load(None, variables.into_iter())
        .unwrap()
        .with_local_secrets()
        .unwrap()
}

/// Below the build's own directory; what an earlier run left there goes.
fn fresh_directory(name: &str) -> PathBuf {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR"))
        .join("api")
        .join(name);
    let _ = fs::remove_dir_all(&directory);
    fs::create_dir_all(&directory).unwrap();
    directory
}

/// Creates a database, empty or a copy of one without connections, and returns its name.
async fn fresh_database(copied: Option<&str>) -> String {
    let database = format!("api_{}_{}", process::id(), number());
    let admin = Database::connect(postgres_server()).await.unwrap();
    admin
        .execute_unprepared(&format!("DROP DATABASE IF EXISTS {database} WITH (FORCE)"))
        .await
        .unwrap();
    let template = copied
        .map(|copied| format!(" TEMPLATE {copied}"))
        .unwrap_or_default();
    admin
        .execute_unprepared(&format!("CREATE DATABASE {database}{template}"))
        .await
        .unwrap();
    admin.close().await.unwrap();
    database
}

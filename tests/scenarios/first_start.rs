//! The first start of a database: it may be killed at any moment, and several processes may make it at once.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use futures_util::stream::{self, StreamExt};
use sandbox::Sandbox;
use tempfile::TempDir;
use testkit::patience::eventually;
use testkit::{Backend, each_database, on_postgresql};
use tokio::net::TcpListener;
use tokio::runtime::Handle;
use tokio::task::spawn_blocking;
use tokio::time::sleep;

use crate::support::database::PostgresDatabase;
use crate::support::deployment::{ENCRYPTION_KEY, authority, write_keys};
use crate::support::service::{Service, Settings};

/// Moments of the kill after the launch, in milliseconds: from nothing done to all done.
const KILLS: u64 = 8;
const KILL_STEP_MS: u64 = 36;
/// Processes under way at a time.
const AT_ONCE: usize = 3;
/// Replicas that are started together.
const REPLICAS: usize = 3;

#[on_postgresql]
async fn several_processes_make_the_first_start_together(_: Backend) {
    let directory = TempDir::new().unwrap();
    let database = PostgresDatabase::create().await;
    let authority = authority().await;
    let settings = settings(&directory, Some(&database), &authority);
    let name = |replica: usize| format!("replica-{replica}");
    let mut replicas: Vec<_> = (0..REPLICAS)
        .map(|replica| {
            Service::new(
                directory.path().to_owned(),
                &name(replica),
                settings.clone(),
            )
        })
        .collect();
    replicas.iter_mut().for_each(Service::launch);
    join_all(replicas.iter_mut().map(Service::wait_until_ready)).await;
}

/// Lines that cannot be printed or logged are lost, and nothing else.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_whose_output_is_on_a_full_disk_serves_and_stops() {
    let directory = TempDir::new().unwrap();
    let home = directory.path().join("data").display().to_string();
    let settings = vec![
        ("EINVOICE__DATA_DIR", home),
        ("EINVOICE__LOG__LEVEL", "debug".into()),
    ];
    let mut service = Service::new(directory.path().to_owned(), "unheard", settings);
    service.launch_unheard();
    service.wait_until_ready().await;
    service.signal("TERM");
    let status = service.wait_for_end().await;
    assert_eq!(status.code(), Some(0));
}

/// The database of this process takes the connection and never answers.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_asked_to_stop_during_its_start_ends_in_order() {
    let directory = TempDir::new().unwrap();
    let home = directory.path().join("data").display().to_string();
    for signal in ["TERM", "INT"] {
        let database = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("postgres://u@{}/e", database.local_addr().unwrap());
        let settings = vec![
            ("EINVOICE__DATA_DIR", home.clone()),
            ("EINVOICE__DATABASE__URL", url),
        ];
        let mut service = Service::new(directory.path().to_owned(), signal, settings);
        service.launch();
        let _connection = database.accept().await.unwrap();
        service.signal(signal);
        let status = service.wait_for_end().await;
        assert_eq!(status.code(), Some(0), "{signal}: {}", service.output());
    }
}

/// The directory is one that others may list: what keeps them out is the mode of each file.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_file_of_a_start_can_be_read_by_others() {
    let directory = TempDir::new().unwrap();
    let home = directory.path().join("of-others");
    fs::create_dir(&home).unwrap();
    fs::set_permissions(&home, Permissions::from_mode(0o755)).unwrap();
    let settings = vec![
        ("EINVOICE__DATA_DIR", home.display().to_string()),
        ("EINVOICE__CHECKPOINTS__EVERY_S", "1".into()),
    ];
    let mut service = Service::new(directory.path().to_owned(), "first", settings);
    service.restart().await;
    let names = || {
        let files = fs::read_dir(&home).unwrap().map(Result::unwrap);
        files
            .map(|file| file.file_name().into_string().unwrap())
            .collect::<Vec<_>>()
    };
    let is_complete = async || {
        names()
            .contains(&"checkpoints.log".to_owned())
            .then_some(())
    };
    eventually("the first checkpoint", is_complete).await;
    for name in [
        "einvoice.db",
        "einvoice.db-wal",
        "serve.lock",
        "encryption_key",
        "checkpoint_key",
    ] {
        assert!(
            names().contains(&name.to_owned()),
            "{name} of {:?}",
            names()
        );
    }
    for file in fs::read_dir(&home).unwrap().map(Result::unwrap) {
        let mode = file.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, 0o600, "{:?}", file.file_name());
    }
}

#[each_database]
async fn a_first_start_killed_at_any_moment_is_made_up_for(backend: Backend) {
    let authority = Arc::new(authority().await);
    // A thread each: PostgreSQL hangs up on a connection whose task stands still while another waits for a process.
    let kills = stream::iter(0..KILLS).map(|kill| {
        let authority = authority.clone();
        spawn_blocking(move || {
            Handle::current().block_on(kill_a_first_start(backend, kill, &authority));
        })
    });
    kills
        .buffer_unordered(AT_ONCE)
        .for_each(async |end| end.unwrap())
        .await;
    println!(
        "{backend:?}: {KILLS} first starts killed within {} ms",
        KILLS * KILL_STEP_MS
    );
}

async fn kill_a_first_start(backend: Backend, kill: u64, authority: &Sandbox) {
    let directory = TempDir::new().unwrap();
    let database = match backend {
        Backend::Sqlite => None,
        Backend::Postgres => Some(PostgresDatabase::create().await),
    };
    let settings = settings(&directory, database.as_ref(), authority);
    let mut service = Service::new(directory.path().to_owned(), "first", settings);
    service.launch();
    sleep(Duration::from_millis(kill * KILL_STEP_MS)).await;
    service.kill_9();
    service.restart().await;
    let (is_intact, said) = service.verify().await;
    assert!(is_intact, "killed after {} ms: {said}", kill * KILL_STEP_MS);
}

/// With keys that are there already: making them takes longer than the rest of a start.
fn settings(
    directory: &TempDir,
    database: Option<&PostgresDatabase>,
    authority: &Sandbox,
) -> Settings {
    let keys = write_keys(authority, directory.path());
    let mut settings = vec![
        ("EINVOICE__DATA_DIR", directory.path().display().to_string()),
        (
            "EINVOICE__AUTHORITY__CRYPTO_KEYS_FILE",
            keys.display().to_string(),
        ),
        ("EINVOICE__SECRETS__ENCRYPTION_KEY", ENCRYPTION_KEY.into()),
    ];
    settings.extend(database.map(|database| ("EINVOICE__DATABASE__URL", database.url())));
    settings
}

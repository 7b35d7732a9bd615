//! The checks of the database, and the check that the encryption key opens the secrets in it.

use std::path::Path;

use database::vault::Vault;
use database::{StoreError, try_connection};
use jiff::Timestamp;
use secrecy::ExposeSecret;
use timing::clock::{Clock, SystemClock};
use tokio::time::timeout;

use crate::app::database::{open_for_inspection, vault};
use crate::app::doctor::receivers;
use crate::app::doctor::report::{CheckResult, advice};
use crate::app::doctor::waits::{REMOTE_WAIT, run_within};
use crate::app::error::StartError;
use crate::config::{Environment, Settings};
use crate::store::Store;
use crate::store::inspection::{self, ConnectionCounts, DatabaseServer, SchemaState};
use crate::store::reseal::{self, UnsealedSample};

/// Replaces an unusable encryption key, so that the database can still be checked. No secret is opened with this key.
const PLACEHOLDER_KEY: &str = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=";
const KEY: &str = "encryption-key";
const DATABASE: &str = "database";
const CONNECTIONS: &str = "database-connections";
const MIGRATIONS: &str = "database-migrations";
const WRITE: &str = "database-write";
const CLOCK: &str = "database-clock";
/// The maximum number of migrations that are listed by name.
const LISTED_MIGRATIONS_MAX: usize = 5;

/// The results of the checks that need the database.
#[derive(Debug, Default)]
pub(super) struct DatabaseChecks {
    pub(super) key: Vec<CheckResult>,
    pub(super) database: Vec<CheckResult>,
    pub(super) receivers: Vec<CheckResult>,
}

pub(super) async fn check(settings: &Settings) -> DatabaseChecks {
    let vault = match vault(settings) {
        Ok(vault) => Ok(vault),
        Err(_) if is_key_created_later(settings) => Err(CheckResult::ok(
            KEY,
            "not there yet: the first start creates one in data_dir",
        )),
        Err(error) => Err(CheckResult::fail(KEY, error.to_string())
            .advise("set secrets.encryption_key to 32 bytes in base64")),
    };
    if is_database_created_later(settings) {
        let found = format!("{} does not exist yet", settings.database_location());
        let untried = CheckResult::ok(KEY, "can be used; there is no secret yet to try it on");
        return DatabaseChecks {
            key: vec![vault.err().unwrap_or(untried)],
            database: vec![CheckResult::warn(DATABASE, found).advise(
                "nothing, if this is a new deployment: the first start creates it; otherwise set data_dir or database.url",
            )],
            receivers: Vec::new(),
        };
    }
    // The database is checked even if the encryption key cannot be used.
    let (vault, key) = match vault {
        Ok(vault) => (Ok(vault), None),
        Err(unusable) => (Vault::new(PLACEHOLDER_KEY), Some(unusable)),
    };
    let opened = async {
        let vault = vault?;
        try_connection(settings.database_url().expose_secret()).await?;
        open_for_inspection(settings, vault)
            .await
            .map_err(StartError::from)
    };
    match timeout(REMOTE_WAIT, opened).await {
        Ok(Ok(store)) => {
            let checks = check_store(settings, &store, key).await;
            store.close().await;
            checks
        }
        Ok(Err(error)) => unreachable_database(settings, key, &error.to_string()),
        Err(_) => unreachable_database(settings, key, "it does not answer"),
    }
}

/// True if the service would create the encryption key at its start.
fn is_key_created_later(settings: &Settings) -> bool {
    let key = settings.secrets.encryption_key.expose_secret();
    settings.environment == Environment::Development && key.is_empty()
}

/// True if the database is a file that does not exist. A start creates it.
fn is_database_created_later(settings: &Settings) -> bool {
    let is_file = settings
        .database_url()
        .expose_secret()
        .starts_with("sqlite:");
    is_file && !Path::new(&settings.database_location()).exists()
}

fn unreachable_database(
    settings: &Settings,
    key: Option<CheckResult>,
    reason: &str,
) -> DatabaseChecks {
    let untried = CheckResult::warn(KEY, "not tried: the database could not be opened");
    let found = format!(
        "{} cannot be opened: {reason}",
        settings.database_location()
    );
    DatabaseChecks {
        key: vec![key.unwrap_or(untried)],
        database: vec![
            CheckResult::fail(DATABASE, found)
                .advise("check database.url, the database, and the network to it"),
        ],
        receivers: Vec::new(),
    }
}

async fn check_store(
    settings: &Settings,
    store: &Store,
    unusable_key: Option<CheckResult>,
) -> DatabaseChecks {
    let schema = timeout(REMOTE_WAIT, inspection::load_schema_state(store)).await;
    let schema = match schema {
        Ok(Ok(schema)) => schema,
        Ok(Err(error)) => return unreachable_database(settings, unusable_key, &error.to_string()),
        Err(_) => return unreachable_database(settings, unusable_key, "it does not answer"),
    };
    let key = async {
        match unusable_key {
            Some(unusable) => vec![unusable],
            None => vec![check_encryption_key(store, &schema).await],
        }
    };
    let write_check = async { vec![judge_write(inspection::try_write(store, &schema).await)] };
    let receivers = async {
        if schema.is_empty() {
            Vec::new()
        } else {
            vec![receivers::check(settings, store).await]
        }
    };
    let (key, server, write_check, clock, receivers) = tokio::join!(
        run_within(REMOTE_WAIT, KEY, key),
        run_within(REMOTE_WAIT, DATABASE, check_server(settings, store)),
        run_within(REMOTE_WAIT, WRITE, write_check),
        run_within(REMOTE_WAIT, CLOCK, async { vec![check_clock(store).await] }),
        run_within(receivers::WAIT, receivers::CHECK, receivers),
    );
    DatabaseChecks {
        key,
        database: [server, vec![judge_migrations(&schema)], write_check, clock].concat(),
        receivers,
    }
}

async fn check_encryption_key(store: &Store, schema: &SchemaState) -> CheckResult {
    if !schema.missing.is_empty() {
        return CheckResult::warn(
            KEY,
            "can be used; not tried on a secret before the migration",
        );
    }
    match reseal::unseal_sample(store).await {
        Ok(sample) => judge_sample(sample),
        Err(error) => CheckResult::fail(KEY, format!("no secret could be read: {error}")),
    }
}

fn judge_sample(sample: UnsealedSample) -> CheckResult {
    let UnsealedSample { read, unopened } = sample;
    match (read, unopened) {
        (0, _) => CheckResult::ok(KEY, "can be used; there is no secret yet to try it on"),
        (read, 0) => CheckResult::ok(KEY, format!("opens each of {read} secrets that were tried")),
        (read, unopened) => {
            let found = format!("{unopened} of {read} secrets that were tried do not open");
            CheckResult::fail(KEY, found).advise(
                "set secrets.encryption_key to the key of this database, and add older ones to secrets.encryption_keys",
            )
        }
    }
}

async fn check_server(settings: &Settings, store: &Store) -> Vec<CheckResult> {
    match inspection::load_server(store).await {
        Ok(server) => judge_server(settings, &server),
        Err(error) => vec![
            CheckResult::fail(DATABASE, format!("it does not tell its version: {error}"))
                .advise(advice::SILENT),
        ],
    }
}

fn judge_server(settings: &Settings, server: &DatabaseServer) -> Vec<CheckResult> {
    let location = settings.database_location();
    let reached = CheckResult::ok(DATABASE, format!("{} at {location}", server.version));
    let pools = &settings.database;
    let needed = i64::from(pools.writer_connections_max)
        + i64::from(pools.reader_connections_max)
        + i64::from(pools.page_connections_max);
    let connections = server
        .connections
        .map(|counts| judge_connections(needed, counts));
    std::iter::once(reached).chain(connections).collect()
}

fn judge_connections(needed: i64, counts: ConnectionCounts) -> CheckResult {
    let ConnectionCounts { allowed, open } = counts;
    let found = format!(
        "a process uses up to {needed}; the server allows {allowed}, of which {open} are open"
    );
    let advice = "raise max_connections of the server, or lower database.writer_connections_max and its siblings";
    if needed > allowed {
        CheckResult::fail(CONNECTIONS, found).advise(advice)
    } else if needed + open > allowed {
        CheckResult::warn(CONNECTIONS, found).advise(advice)
    } else {
        CheckResult::ok(CONNECTIONS, found)
    }
}

fn judge_migrations(schema: &SchemaState) -> CheckResult {
    if !schema.unknown.is_empty() {
        let found = format!(
            "unknown to this program: {}",
            first_migration_names(&schema.unknown)
        );
        return CheckResult::fail(MIGRATIONS, found).advise(
            "a newer program has migrated this database: start that one, or restore a backup from before",
        );
    }
    if !schema.missing.is_empty() {
        let found = format!("missing: {}", first_migration_names(&schema.missing));
        return CheckResult::warn(MIGRATIONS, found)
            .advise("make a backup; the next start, or `einvoice migrate`, applies them");
    }
    CheckResult::ok(
        MIGRATIONS,
        format!("all {} are applied", schema.applied.len()),
    )
}

fn first_migration_names(names: &[String]) -> String {
    let first = names.iter().take(LISTED_MIGRATIONS_MAX).cloned();
    let first = first.collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(LISTED_MIGRATIONS_MAX) {
        0 => first,
        more => format!("{first} and {more} more"),
    }
}

fn judge_write(outcome: Result<(), StoreError>) -> CheckResult {
    match outcome {
        Ok(()) => CheckResult::ok(WRITE, "takes a write, which was rolled back"),
        Err(error) => CheckResult::fail(WRITE, format!("takes no write: {error}"))
            .advise("look at the rights of the user, the disk, and if it is a standby"),
    }
}

async fn check_clock(store: &Store) -> CheckResult {
    let before = SystemClock.now();
    match store.database_now().await {
        Ok(database_time) => judge_clock(before, database_time, SystemClock.now()),
        Err(error) => CheckResult::fail(CLOCK, format!("the database tells no time: {error}")),
    }
}

/// Compares the time of the database with our clock, which was read just before and just after the query.
fn judge_clock(before: Timestamp, database_time: Timestamp, after: Timestamp) -> CheckResult {
    let nearest = database_time.clamp(before, after.max(before));
    CheckResult::from_clock_offset(CLOCK, database_time.duration_since(nearest))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::doctor::report::Verdict;

    #[test]
    fn connections_are_compared_with_the_limit_of_the_server() {
        for (needed, allowed, open, expected) in [
            (28, 97, 5, Verdict::Ok),
            (28, 97, 69, Verdict::Ok),
            (28, 97, 70, Verdict::Warn),
            (97, 97, 0, Verdict::Ok),
            (98, 97, 0, Verdict::Fail),
        ] {
            let counts = ConnectionCounts { allowed, open };
            let judged = judge_connections(needed, counts);
            assert_eq!(judged.result, expected, "{judged}");
        }
    }

    #[test]
    fn unknown_migrations_fail_and_missing_ones_warn() {
        let names = |count: usize| (1..=count).map(|number| format!("m{number}")).collect();
        let judge = |missing, unknown| {
            judge_migrations(&SchemaState {
                applied: names(2),
                missing: names(missing),
                unknown: names(unknown),
            })
        };
        assert_eq!(
            judge(0, 0),
            CheckResult::ok(MIGRATIONS, "all 2 are applied")
        );
        assert_eq!(judge(1, 0).result, Verdict::Warn);
        assert_eq!(judge(1, 1).result, Verdict::Fail);
        assert_eq!(judge(7, 0).found, "missing: m1, m2, m3, m4, m5 and 2 more");
    }

    #[test]
    fn a_key_fails_with_the_first_secret_that_it_does_not_open() {
        let judge = |read, unopened| judge_sample(UnsealedSample { read, unopened }).result;
        assert_eq!([judge(0, 0), judge(7, 0)], [Verdict::Ok; 2]);
        assert_eq!([judge(7, 1), judge(7, 7)], [Verdict::Fail; 2]);
    }

    #[test]
    fn the_duration_of_the_query_is_not_counted_as_an_offset() {
        let at = |second: i64| Timestamp::from_second(1_800_000_000 + second).unwrap();
        let judge = |before, database_time, after| {
            judge_clock(at(before), at(database_time), at(after)).result
        };
        assert_eq!(judge(0, 8, 9), Verdict::Ok);
        assert_eq!(judge(0, 10, 1), Verdict::Warn);
        assert_eq!(judge(100, 10, 101), Verdict::Fail);
    }

    #[test]
    fn a_refused_write_says_why() {
        assert_eq!(judge_write(Ok(())).result, Verdict::Ok);
        let refused = judge_write(Err(StoreError::Locked));
        assert_eq!(refused.result, Verdict::Fail);
        assert!(refused.found.contains("has locked the lane"), "{refused}");
    }
}

//! Encrypts all stored secrets again with the current key (reseals them). A secret that is changed meanwhile is not
//! overwritten, so the service may keep running.

use std::time::Duration;

use database::StoreError;
use database::vault::Vault;
use sea_orm::{ConnectionTrait, QueryResult, Statement, Value};
use tokio::time::sleep;

use crate::store::Store;
use crate::store::operations::chat_hooks;
use crate::store::webhooks::integrations;
use crate::store::webhooks::secrets;

/// The number of rows in one transaction. It is small, so that other writers wait only briefly.
const ROWS_PER_TRANSACTION: i64 = 200;
const PAUSE: Duration = Duration::from_millis(10);
/// The maximum number of passes over one table. If other writers changed rows during a pass, another pass is needed.
const PASSES_MAX: u32 = 5;
/// The maximum number of owners of unreadable texts that a report names.
const UNREADABLE_NAMED_MAX: usize = 20;

/// A table column that holds sealed (encrypted) texts.
struct SealedColumn {
    name: &'static str,
    table: &'static str,
    key: &'static str,
    has_number: bool,
    column: &'static str,
    reseal: fn(&Vault, &str, &str) -> Result<Option<String>, StoreError>,
}

/// Every table column that holds sealed texts.
const SEALED_COLUMNS: [SealedColumn; 7] = [
    SealedColumn {
        name: "webhook_secrets",
        table: "webhooks",
        key: "taxpayer_id",
        has_number: true,
        column: "secret",
        reseal: |vault, id, text| vault.reseal(id, text),
    },
    SealedColumn {
        name: "replaced_webhook_secrets",
        table: "webhooks",
        key: "taxpayer_id",
        has_number: true,
        column: "previous_secrets",
        reseal: secrets::reseal_previous_secrets,
    },
    SealedColumn {
        name: "erp_credentials",
        table: "integrations",
        key: "taxpayer_id",
        has_number: true,
        column: "settings",
        reseal: |vault, id, text| vault.reseal(&integrations::name_in_vault(id), text),
    },
    SealedColumn {
        name: "chat_addresses",
        table: "chat_hooks",
        key: "taxpayer_id",
        has_number: true,
        column: "url",
        reseal: |vault, id, text| vault.reseal(&chat_hooks::name_in_vault(id), text),
    },
    SealedColumn {
        name: "totp_secrets",
        table: "second_factors",
        key: "owner",
        has_number: false,
        column: "secret",
        reseal: |vault, owner, text| vault.reseal(owner, text),
    },
    SealedColumn {
        name: "idempotent_answers",
        table: "idempotency_keys",
        key: "id",
        has_number: false,
        column: "answer",
        reseal: |vault, id, text| vault.reseal(id, text),
    },
    SealedColumn {
        name: "quarantined_commands",
        table: "quarantine",
        key: "reference",
        has_number: false,
        column: "contents",
        reseal: |vault, reference, text| vault.reseal(reference, text),
    },
];

/// The counts of one kind of secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResealCounts {
    pub kind: &'static str,
    pub read: u64,
    pub resealed: u64,
    /// The number of rows that are not resealed, because other writers changed them during the last pass.
    pub left: u64,
    pub unopened: u64,
    /// The owners of texts that no known key opens, at most `UNREADABLE_NAMED_MAX`.
    pub unopened_owners: Vec<String>,
}

/// Reseals the texts of all columns in `SEALED_COLUMNS`.
pub async fn reseal_columns(store: &Store) -> Result<Vec<ResealCounts>, StoreError> {
    let mut done = Vec::new();
    for texts in &SEALED_COLUMNS {
        done.push(texts.reseal_all(store).await?);
    }
    Ok(done)
}

/// The number of sealed texts that were read, and of those that no known key opens.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct UnsealedSample {
    pub read: usize,
    pub unopened: usize,
}

/// Tries to open the first sealed texts of each column in `SEALED_COLUMNS`. Changes nothing.
pub async fn unseal_sample(store: &Store) -> Result<UnsealedSample, StoreError> {
    let mut sample = UnsealedSample::default();
    for texts in &SEALED_COLUMNS {
        let mut rows = texts
            .rows_after(store, texts.value_before_first_key())
            .await?;
        rows.retain(SealedRow::has_sealed_text);
        sample.read += rows.len();
        sample.unopened += rows
            .iter()
            .filter(|row| !texts.can_unseal(store, row))
            .count();
    }
    Ok(sample)
}

/// Returns true if a known key opens at least one sealed text of the whole database. Reads until it finds one.
pub async fn can_unseal_any(store: &Store) -> Result<bool, StoreError> {
    for texts in &SEALED_COLUMNS {
        if texts.can_unseal_any(store).await? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// A row with a sealed text, as read from the table.
struct SealedRow {
    key: Value,
    id: String,
    sealed: String,
}

impl SealedRow {
    /// True unless the row is an empty list, which holds nothing sealed and so says nothing about the key.
    fn has_sealed_text(&self) -> bool {
        self.sealed != "[]"
    }
}

impl SealedColumn {
    fn can_unseal(&self, store: &Store, row: &SealedRow) -> bool {
        (self.reseal)(store.vault(), &row.id, &row.sealed).is_ok()
    }

    async fn can_unseal_any(&self, store: &Store) -> Result<bool, StoreError> {
        let mut after = self.value_before_first_key();
        loop {
            let rows = self.rows_after(store, after).await?;
            let Some(last) = rows.last() else {
                return Ok(false);
            };
            after = last.key.clone();
            let mut sealed = rows.iter().filter(|row| row.has_sealed_text());
            if sealed.any(|row| self.can_unseal(store, row)) {
                return Ok(true);
            }
        }
    }

    async fn reseal_all(&self, store: &Store) -> Result<ResealCounts, StoreError> {
        let mut resealed = 0;
        let mut passes = 0;
        loop {
            passes += 1;
            let mut pass = self.run_reseal_pass(store).await?;
            resealed += pass.resealed;
            if pass.left == 0 || passes == PASSES_MAX {
                pass.resealed = resealed;
                return Ok(pass);
            }
        }
    }

    /// Reads all rows of the table once and reseals the texts that another key sealed.
    async fn run_reseal_pass(&self, store: &Store) -> Result<ResealCounts, StoreError> {
        let mut report = ResealCounts {
            kind: self.name,
            read: 0,
            resealed: 0,
            left: 0,
            unopened: 0,
            unopened_owners: Vec::new(),
        };
        let mut after = self.value_before_first_key();
        loop {
            let rows = self.rows_after(store, after).await?;
            let Some(last) = rows.last() else {
                return Ok(report);
            };
            after = last.key.clone();
            self.reseal_rows(store, &rows, &mut report).await?;
            sleep(PAUSE).await;
        }
    }

    /// Returns a value that is less than the key of any row.
    fn value_before_first_key(&self) -> Value {
        if self.has_number {
            Value::from(i64::MIN)
        } else {
            Value::from("")
        }
    }

    async fn rows_after(&self, store: &Store, after: Value) -> Result<Vec<SealedRow>, StoreError> {
        let Self {
            table, key, column, ..
        } = self;
        let sql = format!(
            "SELECT {key} AS id, {column} AS sealed FROM {table} WHERE {key} > $1 AND {column} IS NOT NULL \
             ORDER BY {key} LIMIT {ROWS_PER_TRANSACTION}"
        );
        let statement = Statement::from_sql_and_values(store.backend(), sql, [after]);
        let rows = store.reader().query_all_raw(statement).await?;
        rows.iter().map(|row| self.to_sealed_row(row)).collect()
    }

    fn to_sealed_row(&self, found: &QueryResult) -> Result<SealedRow, StoreError> {
        let sealed = found.try_get("", "sealed")?;
        if self.has_number {
            let id: i64 = found.try_get("", "id")?;
            return Ok(SealedRow {
                key: id.into(),
                id: id.to_string(),
                sealed,
            });
        }
        let id: String = found.try_get("", "id")?;
        Ok(SealedRow {
            key: id.clone().into(),
            id,
            sealed,
        })
    }

    async fn reseal_rows(
        &self,
        store: &Store,
        rows: &[SealedRow],
        report: &mut ResealCounts,
    ) -> Result<(), StoreError> {
        let mut replaced = Vec::new();
        for row in rows {
            report.read += 1;
            match (self.reseal)(store.vault(), &row.id, &row.sealed) {
                Ok(Some(text)) => replaced.push((row, text)),
                Ok(None) => {}
                Err(error) => {
                    tracing::warn!(%error, table = self.table, "failed to open a sealed text");
                    report.unopened += 1;
                    if report.unopened_owners.len() < UNREADABLE_NAMED_MAX {
                        report.unopened_owners.push(row.id.clone());
                    }
                }
            }
        }
        if replaced.is_empty() {
            return Ok(());
        }
        let Self {
            table, key, column, ..
        } = self;
        let sql = format!("UPDATE {table} SET {column} = $1 WHERE {key} = $2 AND {column} = $3");
        let tx = store.begin().await?;
        for (row, text) in replaced {
            let values = [text.into(), row.key.clone(), row.sealed.clone().into()];
            let statement = Statement::from_sql_and_values(store.backend(), &sql, values);
            match tx.execute_raw(statement).await?.rows_affected() {
                0 => report.left += 1,
                _ => report.resealed += 1,
            }
        }
        tx.commit().await
    }
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    use database::PoolSettings;

    use super::*;
    use crate::store::testing::stores;

    fn key(byte: u8) -> String {
        STANDARD.encode([byte; 32])
    }

    /// Adds rows that are sealed with the key of the test vault, and one that is sealed with a lost key.
    async fn plant(store: &Store) {
        let seal = |owner: &str| store.vault().seal(owner, "hush").unwrap();
        let lost = Vault::new(&key(9)).unwrap().seal("2", "hush").unwrap();
        let previous = format!(r#"[{{"sealed":"{}","until":9000000000000000}}]"#, seal("1"));
        let webhook = |id: &str, secret: &str, previous: &str| {
            format!(
                "INSERT INTO webhooks (taxpayer_id, id, url, enabled_events, is_active, secret, previous_secrets, \
                 created_at, updated_at) VALUES ({id}, {id}, 'https://a.example', '[]', TRUE, '{secret}', '{previous}', 0, 0)"
            )
        };
        let integration = format!(
            "INSERT INTO integrations (taxpayer_id, auth_type, data_format, format, settings, version, created_at, \
             updated_at) VALUES (1, 'basic', 'json', '{{}}', '{}', 1, 0, 0), (2, 'none', 'json', '{{}}', NULL, 1, 0, 0)",
            seal("1/integration")
        );
        let factor = format!(
            "INSERT INTO second_factors (owner, secret) VALUES ('operator/3', '{}'), ('contact/4', '{}')",
            seal("operator/3"),
            seal("contact/4")
        );
        let tx = store.begin().await.unwrap();
        let command = format!(
            "INSERT INTO quarantine (reference, actor, command, at, panic, state, contents) \
             VALUES ('c1', '1', 'create', 0, 'no', 'kept', '{}'), ('c2', '1', 'pay', 0, 'no', 'kept', NULL)",
            seal("c1")
        );
        let webhooks = [
            webhook("1", &seal("1"), &previous),
            webhook("2", &lost, "[]"),
        ];
        let chat = format!(
            "INSERT INTO chat_hooks (taxpayer_id, url, updated_at) VALUES (1, '{}', 0)",
            seal("1/chat")
        );
        let others = [command, integration, factor, chat];
        for sql in webhooks.into_iter().chain(others) {
            tx.execute_unprepared(&sql).await.unwrap();
        }
        for number in 0..450 {
            let id = format!("k{number}");
            let sql = format!(
                "INSERT INTO idempotency_keys (id, fingerprint, answer, expires_at) VALUES ('{id}', 'f', '{}', 0)",
                seal(&id)
            );
            tx.execute_unprepared(&sql).await.unwrap();
        }
        tx.commit().await.unwrap();
    }

    async fn opens(store: &Store, sql: &str, owner: &str) -> bool {
        let statement = Statement::from_string(store.backend(), sql);
        let row = store
            .reader()
            .query_one_raw(statement)
            .await
            .unwrap()
            .unwrap();
        store
            .vault()
            .open(owner, &row.try_get_by_index::<String>(0).unwrap())
            .is_ok()
    }

    #[tokio::test]
    async fn every_secret_is_resealed_with_the_new_key_and_unreadable_ones_are_named() {
        for test in stores().await {
            plant(&test.store).await;
            let pools = PoolSettings::default();
            let vault = Vault::new(&key(8))
                .unwrap()
                .with_old_keys([key(7).as_str()])
                .unwrap();
            let both = Store::open_existing(&test.url, &pools, vault)
                .await
                .unwrap();
            let counts = |done: Vec<ResealCounts>| {
                done.into_iter()
                    .map(|one| {
                        (
                            one.kind,
                            one.read,
                            one.resealed,
                            one.left,
                            one.unopened_owners,
                        )
                    })
                    .collect::<Vec<_>>()
            };
            let lost = vec!["2".to_owned()];
            assert_eq!(
                counts(reseal_columns(&both).await.unwrap()),
                [
                    ("webhook_secrets", 2, 1, 0, lost.clone()),
                    ("replaced_webhook_secrets", 2, 1, 0, vec![]),
                    ("erp_credentials", 1, 1, 0, vec![]),
                    ("chat_addresses", 1, 1, 0, vec![]),
                    ("totp_secrets", 2, 2, 0, vec![]),
                    ("idempotent_answers", 450, 450, 0, vec![]),
                    ("quarantined_commands", 1, 1, 0, vec![]),
                ]
            );
            let again = counts(reseal_columns(&both).await.unwrap());
            assert!(
                again
                    .iter()
                    .all(|(_, _, resealed, left, _)| resealed + left == 0),
                "{again:?}"
            );
            let new = Store::open_existing(&test.url, &pools, Vault::new(&key(8)).unwrap())
                .await
                .unwrap();
            for (sql, owner) in [
                ("SELECT secret FROM webhooks WHERE taxpayer_id = 1", "1"),
                (
                    "SELECT settings FROM integrations WHERE taxpayer_id = 1",
                    "1/integration",
                ),
                ("SELECT url FROM chat_hooks WHERE taxpayer_id = 1", "1/chat"),
                (
                    "SELECT secret FROM second_factors WHERE owner = 'contact/4'",
                    "contact/4",
                ),
                ("SELECT answer FROM idempotency_keys WHERE id = 'k7'", "k7"),
                (
                    "SELECT contents FROM quarantine WHERE reference = 'c1'",
                    "c1",
                ),
            ] {
                assert!(opens(&new, sql, owner).await, "{sql}");
                assert!(!opens(&test.store, sql, owner).await, "{sql}");
            }
            both.close().await;
            new.close().await;
        }
    }
}

//! The database schema: SQL files that run in order, each once. README.md says how to add one.
//!
//! The same statements serve SQLite and PostgreSQL, so columns have types that both have. Times are microseconds
//! since 1970 (UTC) in `bigint`; dates and amounts are text, so that no digit is lost; documents are JSON text. An
//! `id` that is text is a UUID that grows with time, where no comment says otherwise.

use sea_orm_migration::prelude::*;
use sea_orm_migration::sea_orm::{ConnectionTrait, DbBackend};

pub use sea_orm_migration::MigratorTrait;

pub struct Migrator;

impl MigratorTrait for Migrator {
    fn migrations() -> Vec<Box<dyn MigrationTrait>> {
        MIGRATIONS
            .iter()
            .map(|script| Box::new(*script) as Box<dyn MigrationTrait>)
            .collect()
    }
}

/// All migrations, in the order in which they run. Every database records their names in its table
/// `seaql_migrations`, so the name of a released migration must never change.
const MIGRATIONS: [Script; 47] = [
    Script::new("m0001_accounts", include_str!("../sql/m0001_accounts.sql")),
    Script::new("m0002_invoices", include_str!("../sql/m0002_invoices.sql")),
    Script::new("m0003_events", include_str!("../sql/m0003_events.sql")),
    Script::new("m0004_lanes", include_str!("../sql/m0004_lanes.sql")),
    Script::new("m0005_runs", include_str!("../sql/m0005_runs.sql")),
    Script::new("m0006_webhooks", include_str!("../sql/m0006_webhooks.sql")),
    Script::new(
        "m0007_authority",
        include_str!("../sql/m0007_authority.sql"),
    ),
    Script {
        sqlite: include_str!("../sql/m0008_audit.sqlite.sql"),
        postgres: include_str!("../sql/m0008_audit.postgres.sql"),
        ..Script::new("m0008_audit", include_str!("../sql/m0008_audit.sql"))
    },
    Script::new("m0009_sessions", include_str!("../sql/m0009_sessions.sql")),
    Script::new(
        "m0010_quarantine",
        include_str!("../sql/m0010_quarantine.sql"),
    ),
    Script::new(
        "m0011_second_factors",
        include_str!("../sql/m0011_second_factors.sql"),
    ),
    Script::new(
        "m0012_invitations",
        include_str!("../sql/m0012_invitations.sql"),
    ),
    Script {
        sqlite: include_str!("../sql/m0013_access.sqlite.sql"),
        ..Script::new("m0013_access", include_str!("../sql/m0013_access.sql"))
    },
    Script::new(
        "m0014_key_names",
        include_str!("../sql/m0014_key_names.sql"),
    ),
    Script::new(
        "m0015_crash_lifts",
        include_str!("../sql/m0015_crash_lifts.sql"),
    ),
    Script::new(
        "m0017_look_alikes",
        include_str!("../sql/m0017_look_alikes.sql"),
    ),
    Script::new(
        "m0019_second_factors",
        include_str!("../sql/m0019_second_factors.sql"),
    ),
    Script::new("m0022_actors", include_str!("../sql/m0022_actors.sql")),
    Script::new(
        "m0023_quarantine",
        include_str!("../sql/m0023_quarantine.sql"),
    ),
    Script::new("m0024_replicas", include_str!("../sql/m0024_replicas.sql")),
    Script::new(
        "m0025_key_addresses",
        include_str!("../sql/m0025_key_addresses.sql"),
    ),
    Script::new(
        "m0026_call_failures",
        include_str!("../sql/m0026_call_failures.sql"),
    ),
    Script::new(
        "m0027_taxpayer_pauses",
        include_str!("../sql/m0027_taxpayer_pauses.sql"),
    ),
    Script::new(
        "m0028_invoice_sorts",
        include_str!("../sql/m0028_invoice_sorts.sql"),
    ),
    Script::new("m0029_imports", include_str!("../sql/m0029_imports.sql")),
    Script::new(
        "m0030_account_settings",
        include_str!("../sql/m0030_account_settings.sql"),
    ),
    Script::new("m0031_traces", include_str!("../sql/m0031_traces.sql")),
    Script::new(
        "m0032_large_imports",
        include_str!("../sql/m0032_large_imports.sql"),
    ),
    Script::new(
        "m0033_unsettled_invoices",
        include_str!("../sql/m0033_unsettled_invoices.sql"),
    ),
    Script {
        sqlite: include_str!("../sql/m0034_corrections.sqlite.sql"),
        postgres: include_str!("../sql/m0034_corrections.postgres.sql"),
        ..Script::new(
            "m0034_corrections",
            include_str!("../sql/m0034_corrections.sql"),
        )
    },
    Script::new(
        "m0035_webhook_endpoints",
        include_str!("../sql/m0035_webhook_endpoints.sql"),
    ),
    Script::new(
        "m0036_request_log",
        include_str!("../sql/m0036_request_log.sql"),
    ),
    Script::new("m0037_notices", include_str!("../sql/m0037_notices.sql")),
    Script::new(
        "m0038_webhook_deliveries",
        include_str!("../sql/m0038_webhook_deliveries.sql"),
    ),
    Script {
        sqlite: include_str!("../sql/m0039_customers.sqlite.sql"),
        postgres: include_str!("../sql/m0039_customers.postgres.sql"),
        ..Script::new(
            "m0039_customers",
            include_str!("../sql/m0039_customers.sql"),
        )
    },
    Script::new(
        "m0040_saved_views",
        include_str!("../sql/m0040_saved_views.sql"),
    ),
    Script::new(
        "m0041_ubl_parts",
        include_str!("../sql/m0041_ubl_parts.sql"),
    ),
    Script {
        sqlite: include_str!("../sql/m0042_credit_notes.sqlite.sql"),
        postgres: include_str!("../sql/m0042_credit_notes.postgres.sql"),
        ..Script::new(
            "m0042_credit_notes",
            include_str!("../sql/m0042_credit_notes.sql"),
        )
    },
    Script::new(
        "m0043_signatures",
        include_str!("../sql/m0043_signatures.sql"),
    ),
    Script {
        sqlite: include_str!("../sql/m0044_kinds_and_signatures.sqlite.sql"),
        postgres: include_str!("../sql/m0044_kinds_and_signatures.postgres.sql"),
        ..Script::new(
            "m0044_kinds_and_signatures",
            include_str!("../sql/m0044_kinds_and_signatures.sql"),
        )
    },
    Script::new(
        "m0045_finding_decisions",
        include_str!("../sql/m0045_finding_decisions.sql"),
    ),
    Script::new(
        "m0046_mail_people",
        include_str!("../sql/m0046_mail_people.sql"),
    ),
    Script::new(
        "m0047_run_askers",
        include_str!("../sql/m0047_run_askers.sql"),
    ),
    Script {
        sqlite: include_str!("../sql/m0048_payables_and_sales.sqlite.sql"),
        postgres: include_str!("../sql/m0048_payables_and_sales.postgres.sql"),
        ..Script::new(
            "m0048_payables_and_sales",
            include_str!("../sql/m0048_payables_and_sales.sql"),
        )
    },
    Script::new("m0049_payments", include_str!("../sql/m0049_payments.sql")),
    Script::new(
        "m0050_content_fingerprints",
        include_str!("../sql/m0050_content_fingerprints.sql"),
    ),
    Script::new(
        "m0051_batches_by_time",
        include_str!("../sql/m0051_batches_by_time.sql"),
    ),
];

/// One migration. The statements in `both` run on either kind of database. Then those in `sqlite` run on SQLite, and
/// those in `postgres` on PostgreSQL.
#[derive(Clone, Copy)]
struct Script {
    name: &'static str,
    both: &'static str,
    sqlite: &'static str,
    postgres: &'static str,
}

impl Script {
    const fn new(name: &'static str, both: &'static str) -> Self {
        Self {
            name,
            both,
            sqlite: "",
            postgres: "",
        }
    }
}

impl MigrationName for Script {
    fn name(&self) -> &str {
        self.name
    }
}

#[async_trait::async_trait]
impl MigrationTrait for Script {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let sql = match manager.get_database_backend() {
            DbBackend::Postgres => format!("{}{}", self.both, self.postgres),
            // SQLite's `integer` has 64 bits, like `bigint`. A primary key of the exact type `integer` is also
            // the table's row id, so SQLite needs no second index for it.
            _ => format!("{}{}", self.both.replace("bigint", "integer"), self.sqlite),
        };
        manager
            .get_connection()
            .execute_unprepared(&sql)
            .await
            .map(drop)
    }
}

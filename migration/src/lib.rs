//! The database schema, a file a change. The same migrations serve SQLite and PostgreSQL, so columns are
//! of the types both have: moments are microseconds since 1970 (UTC) in big integers, dates and amounts
//! are text so that no digit is lost, documents are JSON text. Migrations are never edited once released.

use sea_orm_migration::prelude::*;

pub use sea_orm_migration::MigratorTrait;

mod m0001_accounts;
mod m0002_books;
mod m0003_lanes;
mod m0004_pipeline;
mod m0005_webhooks;
mod m0006_reference_lists;
mod m0007_idempotency;
mod m0008_batches_and_lists;
mod m0009_items;
mod m0010_turns;
mod m0011_outages;
mod m0012_supplier_invoices;
mod m0013_replays;
mod m0014_operators;
mod m0015_reconciliations;
mod m0016_resolved_by;
mod m0017_circuits;
mod m0018_integrations;
mod m0019_phases_and_public_keys;
mod m0020_endpoint_schedule;
mod m0021_first_in_line;
mod m0022_lanes_due;
mod m0023_crashes;
mod m0024_audit_actors;
mod m0025_identities;
mod m0029_api_keys;

/// All migrations, in order.
pub struct Migrator;

#[async_trait::async_trait]
impl MigratorTrait for Migrator {
    fn migrations() -> Vec<Box<dyn MigrationTrait>> {
        vec![
            Box::new(m0001_accounts::Migration),
            Box::new(m0002_books::Migration),
            Box::new(m0003_lanes::Migration),
            Box::new(m0004_pipeline::Migration),
            Box::new(m0005_webhooks::Migration),
            Box::new(m0006_reference_lists::Migration),
            Box::new(m0007_idempotency::Migration),
            Box::new(m0008_batches_and_lists::Migration),
            Box::new(m0009_items::Migration),
            Box::new(m0010_turns::Migration),
            Box::new(m0011_outages::Migration),
            Box::new(m0012_supplier_invoices::Migration),
            Box::new(m0013_replays::Migration),
            Box::new(m0014_operators::Migration),
            Box::new(m0015_reconciliations::Migration),
            Box::new(m0016_resolved_by::Migration),
            Box::new(m0017_circuits::Migration),
            Box::new(m0018_integrations::Migration),
            Box::new(m0019_phases_and_public_keys::Migration),
            Box::new(m0020_endpoint_schedule::Migration),
            Box::new(m0021_first_in_line::Migration),
            Box::new(m0022_lanes_due::Migration),
            Box::new(m0023_crashes::Migration),
            Box::new(m0024_audit_actors::Migration),
            Box::new(m0025_identities::Migration),
            Box::new(m0029_api_keys::Migration),
        ]
    }
}

/// A table that is made of columns and a primary key over some of them.
fn table(
    name: &'static str,
    key: &[&'static str],
    columns: impl IntoIterator<Item = ColumnDef>,
) -> TableCreateStatement {
    let mut table = Table::create();
    table.table(name);
    for column in columns {
        table.col(column);
    }
    let mut primary = Index::create();
    for column in key {
        primary.col(*column);
    }
    table.primary_key(&mut primary);
    table.take()
}

/// A unique index, named after its table and columns.
fn unique(table: &'static str, columns: &[&'static str]) -> IndexCreateStatement {
    index(table, columns).unique().take()
}

/// An index, named after its table and columns.
fn index(table: &'static str, columns: &[&'static str]) -> IndexCreateStatement {
    let mut index = Index::create();
    index.name(format!("{table}_by_{}", columns.join("_"))).table(table);
    for column in columns {
        index.col(*column);
    }
    index.take()
}

/// Creates tables and their indexes.
async fn create<const T: usize, const I: usize>(
    manager: &SchemaManager<'_>,
    tables: [TableCreateStatement; T],
    indexes: [IndexCreateStatement; I],
) -> Result<(), DbErr> {
    for table in tables {
        manager.create_table(table).await?;
    }
    for index in indexes {
        manager.create_index(index).await?;
    }
    Ok(())
}

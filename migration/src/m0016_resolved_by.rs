//! How a run was resolved has four words. Two that stood beside them are among these now: the authority's word that it
//! has a report already is its answer, and that a payment status stands already was found by asking.

use sea_orm_migration::prelude::*;
use sea_orm_migration::sea_orm::ConnectionTrait;

#[derive(DeriveMigrationName)]
pub(crate) struct Migration;

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        for (before, after) in [("duplicate", "answer"), ("unchanged", "confirm")] {
            let update = Query::update()
                .table("pipeline_runs")
                .value("resolved_by", after)
                .and_where(Expr::col("resolved_by").eq(before))
                .take();
            manager.get_connection().execute(&update).await?;
        }
        Ok(())
    }
}

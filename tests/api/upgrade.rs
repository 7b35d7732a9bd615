//! A rolling upgrade. The first replica of the next release adds columns to tables, while this release goes on with the
//! statements that its connections have prepared.

use sea_orm::{ConnectionTrait, Database, DbBackend, Statement};
use secrecy::ExposeSecret as _;
use serde_json::json;
use testkit::documents::{invoice, submission, update};
use testkit::each_database;
use testkit::receiver::Receiver;

use crate::support::world::{ALONE, World};

async fn add_column_to_each_table(world: &World) {
    let url = world.settings().database_url();
    let connection = Database::connect(url.expose_secret()).await.unwrap();
    let backend = connection.get_database_backend();
    let tables = match backend {
        DbBackend::Postgres => {
            "SELECT table_name AS name FROM information_schema.tables \
             WHERE table_schema = 'public' AND table_type = 'BASE TABLE'"
        }
        _ => "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'",
    };
    let rows = connection
        .query_all_raw(Statement::from_string(backend, tables))
        .await
        .unwrap();
    assert!(rows.len() > 20, "{} tables", rows.len());
    for row in rows {
        let table: String = row.try_get("", "name").unwrap();
        let sql =
            format!("ALTER TABLE {table} ADD COLUMN of_next_release bigint NOT NULL DEFAULT 0");
        connection.execute_unprepared(&sql).await.unwrap();
    }
    connection.close().await.unwrap();
}

/// Lets an account live through what writes and reads most tables.
async fn live_one_day(world: &World) {
    let taxpayer = world.taxpayer().await;
    let integrator = world.integrator();
    let receiver = Receiver::start();
    integrator
        .set_webhook(taxpayer.id, &receiver.url(), &["invoice.created"])
        .await
        .expect_status(200);
    let first = taxpayer.invoice(&invoice()).await;
    taxpayer.update(&update(&first)).await.expect_status(200);
    taxpayer
        .set_status(&first, "approved")
        .await
        .expect_status(200);
    let number = first["invoice_no"].as_str().unwrap();
    let app = taxpayer.app();
    app.submit_to_the_end(&submission(&taxpayer, number))
        .await
        .expect_status(200);
    let payment = json!({
        "unique_no": first["irn"], "unique_no_type": "IRN", "payment_status": "partial", "amount": 10,
        "remark": "by transfer",
    });
    taxpayer.pay(&payment).await.expect_status(200);
    let correction = format!("/v1/tax-payers/invoices/{}/correct", first["id"]);
    taxpayer
        .send("POST", &correction, &json!({ "cancel": true }))
        .await
        .expect_status(202);
    let batch = taxpayer.create_batch(&[invoice(), invoice()]).await;
    taxpayer.created_batch(&batch).await;
    for path in ["", "/summary", "?status=draft"] {
        let path = format!("/v1/tax-payers/invoices{path}");
        taxpayer.get(&path).await.expect_status(200);
    }
    taxpayer.timeline(&first["id"]).await.expect_status(200);
    integrator
        .deliveries(taxpayer.id, "")
        .await
        .expect_status(200);
    let operator = world.new_operator().await;
    let run = operator.newest_run(&taxpayer).await;
    assert_eq!(run["taxpayer_id"], taxpayer.id);
    operator.audit("").await.expect_status(200);
}

#[each_database(ALONE)]
async fn a_column_that_the_next_release_adds_disturbs_no_statement(world: &World) {
    live_one_day(world).await;
    add_column_to_each_table(world).await;
    live_one_day(world).await;
}

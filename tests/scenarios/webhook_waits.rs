//! What waits for its next attempt waits in its lane's row: nothing is done with it before.

use std::time::Duration;

use sea_orm::{ConnectionTrait, Statement};
use testkit::Backend;
use testkit::documents::invoice_numbered;
use testkit::patience::eventually;
use tokio::time::sleep;

use crate::support::database::connect;
use crate::support::deployment::Deployment;

/// Several events of one IRN wait for a dead endpoint: until the next attempt nothing is done with its lane.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn notifications_that_wait_for_their_next_attempt_cost_nothing() {
    let deployment = Deployment::with(
        Backend::Sqlite,
        &[("EINVOICE__WEBHOOKS__RETRY_SCHEDULE_S", "[0, 3600, 3600]")],
    )
    .await;
    // Nobody listens there.
    deployment
        .set_webhook("http://127.0.0.1:9/notifications")
        .await;
    let created = deployment
        .taxpayer
        .create_invoice(&invoice_numbered("DEADEND"))
        .await;
    for status in ["approved", "draft"] {
        deployment
            .taxpayer
            .set_status(&created.irn, status)
            .await
            .unwrap();
    }
    let database = connect(&deployment.sqlite_url()).await;
    let number = async |sql: &str| {
        let row = database
            .query_one_raw(Statement::from_string(database.get_database_backend(), sql))
            .await;
        row.unwrap().unwrap().try_get_by_index::<i64>(0).unwrap()
    };
    eventually("the first attempt", async || {
        (number("SELECT COUNT(*) FROM attempts").await > 0).then_some(())
    })
    .await;
    let taken_over = async || number("SELECT epoch FROM lanes WHERE kind = 'endpoint'").await;
    let before = taken_over().await;
    sleep(Duration::from_secs(2)).await;
    let times = taken_over().await - before;
    assert!(
        times <= 2,
        "the lane was taken over {times} times in 2 s with nothing to deliver for an hour"
    );
}

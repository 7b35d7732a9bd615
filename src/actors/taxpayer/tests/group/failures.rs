//! Tests of commands that panic, and of rows that the database refuses.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use database::StoreError;
use futures_util::future::join_all;
use sea_orm::{ConnectionTrait, DbBackend};

use super::{NEIGHBOUR_IDS, OTHER_IDS, onboard, slowest_create, with_neighbours};
use crate::actors::taxpayer::commands::{CreateInvoice, CreatedInvoice};
use crate::actors::taxpayer::handle::{OnceClaim, TaxpayerError};
use crate::actors::taxpayer::tests::{ID, TestTaxpayers, claim, draft};
use crate::domain::access::claim::StoredResponse;
use crate::domain::kernel::ids::TaxpayerId;
use crate::store::testing::stores;

#[actix_rt::test]
async fn a_command_that_panics_costs_the_others_of_its_group_nothing() {
    let panics =
        |_: &CreatedInvoice| -> Option<StoredResponse> { panic!("the answer cannot be rendered") };
    for test in stores().await {
        let app = with_neighbours(test).await;
        let poison = OnceClaim {
            claim: claim("poison", b"1"),
            render: Some(Arc::new(panics)),
        };
        let (failed, created) = tokio::join!(
            app.taxpayers
                .send_once(ID, CreateInvoice(draft("POISON", 10)), Some(poison)),
            join_all(NEIGHBOUR_IDS.map(|id| {
                app.taxpayers
                    .send(TaxpayerId(id), CreateInvoice(draft("A", 10)))
            }))
        );
        assert!(
            matches!(failed, Err(TaxpayerError::Quarantined { .. })),
            "{failed:?}"
        );
        assert!(created.iter().all(|one| {
            one.as_ref()
                .is_ok_and(|created| created.duplicate.is_none())
        }));
        let after = app
            .taxpayers
            .send(ID, CreateInvoice(draft("POISON", 10)))
            .await
            .unwrap();
        assert_eq!(
            after.duplicate, None,
            "the command that panicked has stored nothing"
        );
        assert_eq!(app.verify_log().await, 1);
        app.close().await;
    }
}

/// A failure of the database that concerns only the rows of one taxpayer.
struct Failure {
    name: &'static str,
    /// The SQL that the trigger runs.
    action: &'static str,
    is_at_commit: bool,
    is_fatal: bool,
}

impl Failure {
    const fn new(name: &'static str, action: &'static str) -> Self {
        Self {
            name,
            action,
            is_at_commit: false,
            is_fatal: true,
        }
    }
}

const ON_SQLITE: [Failure; 4] = [
    Failure::new("abort", "SELECT RAISE(ABORT, 'refused');"),
    Failure::new("fail", "SELECT RAISE(FAIL, 'refused');"),
    Failure::new("rollback", "SELECT RAISE(ROLLBACK, 'refused');"),
    Failure::new(
        "unique",
        "INSERT INTO lanes (kind, key, epoch, version) VALUES ('taxpayer', '1', 0, 0);",
    ),
];

const ON_POSTGRES: [Failure; 13] = [
    Failure::new(
        "check violation",
        "RAISE EXCEPTION 'x' USING ERRCODE = '23514';",
    ),
    Failure::new("number out of range", "PERFORM (repeat('9', 30))::BIGINT;"),
    Failure::new(
        "untranslatable character",
        "RAISE EXCEPTION 'x' USING ERRCODE = '22P05';",
    ),
    Failure::new(
        "damaged page",
        "RAISE EXCEPTION 'x' USING ERRCODE = 'XX001';",
    ),
    Failure::new(
        "serialization failure",
        "RAISE EXCEPTION 'x' USING ERRCODE = '40001';",
    ),
    Failure::new("deadlock", "RAISE EXCEPTION 'x' USING ERRCODE = '40P01';"),
    Failure::new(
        "lock timeout",
        "RAISE EXCEPTION 'x' USING ERRCODE = '55P03';",
    ),
    Failure::new(
        "cancelled statement",
        "RAISE EXCEPTION 'x' USING ERRCODE = '57014';",
    ),
    Failure::new(
        "unique violation",
        "INSERT INTO lanes (kind, key, epoch, version) VALUES ('taxpayer', '1', 0, 0);",
    ),
    Failure::new(
        "ended session",
        "PERFORM pg_terminate_backend(pg_backend_pid());",
    ),
    Failure {
        is_at_commit: true,
        ..Failure::new("refused commit", "RAISE EXCEPTION 'x';")
    },
    Failure {
        is_at_commit: true,
        ..Failure::new(
            "session ended at the commit",
            "PERFORM pg_terminate_backend(pg_backend_pid());",
        )
    },
    Failure {
        is_fatal: false,
        ..Failure::new("slow row", "PERFORM pg_sleep(0.2);")
    },
];

/// Adds a trigger by which each new invoice of a taxpayer fails.
async fn provoke(app: &TestTaxpayers, failure: &Failure, id: TaxpayerId) {
    let Failure { action, .. } = failure;
    let sql = match (app.test.store.backend(), failure.is_at_commit) {
        (DbBackend::Sqlite, _) => format!(
            "CREATE TRIGGER failing BEFORE INSERT ON invoices WHEN NEW.taxpayer_id = {id} BEGIN {action} END"
        ),
        (_, is_at_commit) => {
            let trigger = if is_at_commit {
                "CONSTRAINT TRIGGER failing AFTER INSERT ON invoices DEFERRABLE INITIALLY DEFERRED"
            } else {
                "TRIGGER failing BEFORE INSERT ON invoices"
            };
            format!(
                "CREATE OR REPLACE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN \
                 IF NEW.taxpayer_id = {id} THEN {action} END IF; RETURN NEW; END $$; \
                 CREATE {trigger} FOR EACH ROW EXECUTE FUNCTION fail()"
            )
        }
    };
    execute(app, &sql).await;
}

async fn execute(app: &TestTaxpayers, sql: &str) {
    let tx = app.test.store.begin().await.unwrap();
    tx.execute_unprepared(sql).await.unwrap();
    tx.commit().await.unwrap();
}

/// Lets the rows of one taxpayer fail while all neighbours create invoices. Asserts that no neighbour is refused.
async fn assert_refuses_nobody_else(app: &TestTaxpayers, failure: &Failure, id: TaxpayerId) {
    onboard(app, id).await;
    provoke(app, failure, id).await;
    let series = format!("F{id}");
    let is_over = AtomicBool::new(false);
    let (results, _) = tokio::join!(
        async {
            let creates =
                ["A", "B"].map(|number| app.taxpayers.send(id, CreateInvoice(draft(number, 10))));
            let mut results = join_all(creates).await;
            results.push(app.taxpayers.send(id, CreateInvoice(draft("C", 10))).await);
            is_over.store(true, Ordering::SeqCst);
            results
        },
        slowest_create(app, &series, &is_over)
    );
    for result in results {
        let is_expected = match &result {
            Ok(_) => !failure.is_fatal,
            Err(TaxpayerError::Store(error)) => {
                failure.is_fatal && !matches!(error, StoreError::Unsettled)
            }
            Err(_) => false,
        };
        assert!(is_expected, "{}: {result:?}", failure.name);
    }
    let of_table = if app.test.store.backend() == DbBackend::Postgres {
        " ON invoices"
    } else {
        ""
    };
    execute(app, &format!("DROP TRIGGER failing{of_table}")).await;
    let after = app
        .taxpayers
        .send(id, CreateInvoice(draft("A", 10)))
        .await
        .unwrap();
    assert_eq!(
        after.duplicate.is_none(),
        failure.is_fatal,
        "{}: what failed has stored nothing",
        failure.name
    );
}

#[actix_rt::test]
async fn a_row_that_always_fails_refuses_only_its_own_taxpayer() {
    for test in stores().await {
        let app = with_neighbours(test).await;
        let failures: &[Failure] = match app.test.store.backend() {
            DbBackend::Postgres => &ON_POSTGRES,
            _ => &ON_SQLITE,
        };
        for (failure, id) in failures.iter().zip(OTHER_IDS) {
            assert_refuses_nobody_else(&app, failure, TaxpayerId(id)).await;
        }
        app.close().await;
    }
}

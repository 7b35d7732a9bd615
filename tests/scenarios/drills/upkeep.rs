//! Incidents of what is done from time to time: the ledger, checkpoints, reference lists, the signs of replicas and other tasks.

use std::fs;

use sandbox::{FaultKind, FaultOrder, Operation};
use testkit::patience::eventually;
use testkit::{Backend, each_database, on_sqlite};

use super::{Expected, SETTINGS, Watch};
use crate::support::database_queries::DatabaseQueries;
use crate::support::deployment::Deployment;

/// A state of the database that brings an incident, and the statement that ends it.
struct Case {
    expected: Expected<'static>,
    cause: &'static [&'static str],
    cure: &'static [&'static str],
}

/// Inserts a comparison that left one difference of a kind to an operator.
macro_rules! difference {
    ($kind:literal) => {
        &[
            "INSERT INTO reconciliations (taxpayer_id, id, day, asked_by, state, attempts, compared, agreed, in_progress, \
             repaired, listed, is_latest, created_at, ended_at) \
             VALUES (1, '01900000-0000-7000-8000-000000000000', '2026-01-15', 'operator', 'done', 1, 1, 0, 0, 0, 1, TRUE, 1, 1)",
            concat!(
                "INSERT INTO reconciliation_findings (taxpayer_id, reconciliation_id, number, kind, irn, action, detail) \
                 VALUES (1, '01900000-0000-7000-8000-000000000000', 1, '",
                $kind,
                "', 'DRILL-94AD90FB-20261121', 'listed', 'a drill')"
            ),
        ]
    };
}

const FORGET_DIFFERENCE: &[&str] = &[
    "DELETE FROM reconciliation_findings WHERE taxpayer_id = 1",
    "DELETE FROM reconciliations WHERE taxpayer_id = 1",
];

fn cases() -> [Case; 5] {
    [
        Case {
            expected: Expected::new(
                "invoices-missing-remotely",
                "does not have 1 invoice that it accepted",
            ),
            cause: difference!("missing_remotely"),
            cure: FORGET_DIFFERENCE,
        },
        Case {
            expected: Expected::new("ledger-differs", "to decide: payment differs")
                .caused_by("payment_differs"),
            cause: difference!("payment_differs"),
            cure: FORGET_DIFFERENCE,
        },
        Case {
            expected: Expected::new("reference-lists-old", "last fetched more than a day ago"),
            cause: &[
                "UPDATE reference_lists SET fetched_at = fetched_at - 90000000000 WHERE list = \
                 (SELECT MIN(list) FROM reference_lists)",
            ],
            cure: &[
                "UPDATE reference_lists SET fetched_at = fetched_at + 90000000000 WHERE list = \
                 (SELECT MIN(list) FROM reference_lists)",
            ],
        },
        Case {
            expected: Expected::new("replicas-out-of-step", "drill:1 is 7200 s ahead")
                .caused_by("clock"),
            // The row counts as a sign for ten minutes.
            cause: &[
                "INSERT INTO replicas (id, name, seen_at, figures) SELECT 'drill', 'drill:1', MAX(seen_at) + 600000000, \
                 '{\"clock_ahead_ms\": 7200000}' FROM replicas",
            ],
            cure: &["DELETE FROM replicas WHERE id = 'drill'"],
        },
        Case {
            expected: Expected::new("tasks-quarantined", "1 task is in quarantine")
                .caused_by("task"),
            cause: &[
                "INSERT INTO lanes (kind, key, epoch, version, taxpayer_id, next_due_at, lease_until, crashes) \
                 VALUES ('reconciliation', '4711', 3, 0, 0, 9000000000000000, 0, 3)",
            ],
            cure: &["DELETE FROM lanes WHERE kind = 'reconciliation' AND key = '4711'"],
        },
    ]
}

async fn drill(watch: &Watch<'_>, database: &DatabaseQueries, case: Case) {
    for statement in case.cause {
        database.execute(statement).await;
    }
    watch.appears(case.expected).await;
    for statement in case.cure {
        database.execute(statement).await;
    }
    watch.is_gone(case.expected.incident).await;
    watch.is_calm().await;
}

#[each_database]
async fn what_the_database_keeps_for_an_operator_is_told_until_it_is_done(backend: Backend) {
    let own = [("EINVOICE__RECONCILE__EVERY_S", "0")];
    let deployment = Deployment::with(backend, &[&SETTINGS[..], &own].concat()).await;
    let watch = deployment.watch().await;
    let database = DatabaseQueries::open(&deployment).await;
    for case in cases() {
        drill(&watch, &database, case).await;
    }
}

#[each_database]
async fn a_ledger_that_is_not_compared_is_told_until_it_is(backend: Backend) {
    let own = [("EINVOICE__RECONCILE__EVERY_S", "5")];
    let deployment = Deployment::with(backend, &[&SETTINGS[..], &own].concat()).await;
    let watch = deployment.watch().await;
    deployment.submit("COMPARED").await;
    deployment.add_fault(FaultOrder::new(FaultKind::ServerError).on(Operation::Search));
    let old = Expected::new(
        "reconciliation-old",
        "No comparison with the authority's ledger has succeeded for",
    );
    watch.appears(old.seen_within_s(40)).await;
    deployment.clear_faults();
    watch.is_gone("reconciliation-old").await;
    watch.is_calm().await;
}

#[on_sqlite]
async fn checkpoints_that_cannot_be_written_are_told_until_they_can(backend: Backend) {
    let own = [
        ("EINVOICE__CHECKPOINTS__EVERY_S", "1"),
        ("EINVOICE__CHECKPOINTS__FILE", "drill.checkpoints"),
    ];
    let deployment = Deployment::with(backend, &[&SETTINGS[..], &own].concat()).await;
    let watch = deployment.watch().await;
    let file = deployment.directory().join("drill.checkpoints");
    let kept = deployment.directory().join("kept.checkpoints");
    eventually("the first checkpoint", async || {
        file.is_file().then_some(())
    })
    .await;
    fs::rename(&file, &kept).unwrap();
    fs::create_dir(&file).unwrap();
    let old = Expected::new(
        "checkpoints-old",
        "No checkpoint of the event log has succeeded for",
    );
    watch.appears(old.seen_within_s(30)).await;
    fs::remove_dir(&file).unwrap();
    fs::rename(&kept, &file).unwrap();
    watch.is_gone("checkpoints-old").await;
    watch.is_calm().await;
}

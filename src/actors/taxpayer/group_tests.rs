//! Tests that a batch that is left out of a commit group neither delays nor harms the other taxpayers of the group.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use sea_orm::{ConnectionTrait, DbBackend};

use super::commands::{ChangeProfile, CreateInvoice, CreatedInvoice, Onboard, OpenRun};
use super::envelope::OnceClaim;
use super::handle::TaxpayerError;
use super::tests::{BY, ID, TestTaxpayers, claim, draft, submission, webhook};
use crate::domain::access::claim::StoredResponse;
use crate::domain::kernel::ids::TaxpayerId;
use crate::domain::party::ProfileChange;
use crate::domain::pipeline::run_lane;
use crate::store::db::error::StoreError;
use crate::store::lanes::{self, IfTaken, LaneKind, LaneName};
use crate::store::testing::{TestStore, stores};

/// More neighbours than committers, so that at least one of them shares a committer with `ID`.
const NEIGHBOUR_IDS: std::ops::Range<i64> = 2..10;
/// Well below the lock timeout of 3 s, which a group would take if it waited for a lane.
const PROMPT: Duration = Duration::from_secs(1);

async fn with_neighbours(test: TestStore) -> TestTaxpayers {
    let app = TestTaxpayers::with_taxpayer(test).await;
    for neighbour in NEIGHBOUR_IDS.map(TaxpayerId) {
        onboard(&app, neighbour).await;
    }
    app
}

async fn onboard(app: &TestTaxpayers, id: TaxpayerId) {
    app.taxpayers.send(id, Onboard::sample(id)).await.unwrap();
    app.taxpayers
        .send(
            id,
            ChangeProfile {
                change: new_city("Lagos"),
                by: BY,
            },
        )
        .await
        .unwrap();
}

fn new_city(city: &str) -> ProfileChange {
    let place = Some("Lagos".to_owned());
    let city = Some(city.to_owned());
    ProfileChange {
        city,
        state: place.clone(),
        country: place,
        ..ProfileChange::default()
    }
}

/// Has each neighbour create invoices until `is_over`. Asserts that no create is refused. Returns the longest time that
/// a create took.
async fn slowest_create(app: &TestTaxpayers, series: &str, is_over: &AtomicBool) -> Duration {
    let creates = NEIGHBOUR_IDS.map(TaxpayerId).map(async |neighbour| {
        let mut slowest = Duration::ZERO;
        for number in 0.. {
            if is_over.load(Ordering::SeqCst) {
                break;
            }
            let begun = Instant::now();
            let created = app
                .taxpayers
                .send(
                    neighbour,
                    CreateInvoice(draft(&format!("{series}N{number}"), 10)),
                )
                .await;
            assert!(
                created
                    .as_ref()
                    .is_ok_and(|created| created.duplicate.is_none()),
                "{series}: {created:?}"
            );
            slowest = slowest.max(begun.elapsed());
        }
        slowest
    });
    join_all(creates).await.into_iter().max().unwrap()
}

/// Holds a lane in a transaction while `ID` executes a command that needs the lane. Asserts that the command fails and
/// that no neighbour waits.
async fn assert_delays_only_its_taxpayer(
    app: &TestTaxpayers,
    lane: (LaneKind, &str),
    command: impl AsyncFn() -> Result<(), TaxpayerError>,
) {
    let holder = app.test.store.begin().await.unwrap();
    lanes::lock(&holder, &[LaneName::new(lane.0, lane.1)], IfTaken::Await)
        .await
        .unwrap();
    let is_over = AtomicBool::new(false);
    let (failed, slowest) = tokio::join!(
        async {
            let failed = command().await.unwrap_err();
            is_over.store(true, Ordering::SeqCst);
            failed
        },
        slowest_create(app, lane.0.as_str(), &is_over)
    );
    assert!(
        matches!(failed, TaxpayerError::Store(StoreError::Locked)),
        "{failed}"
    );
    assert!(
        slowest < PROMPT,
        "{lane:?}: a neighbour's create took {slowest:?}"
    );
    holder.rollback().await.unwrap();
    command().await.unwrap();
}

#[actix_rt::test]
async fn a_held_lane_delays_only_its_own_taxpayer() {
    // PostgreSQL only: SQLite has one writer, so nobody else can hold a lane.
    for test in stores().await.into_iter().skip(1) {
        let app = with_neighbours(test).await;
        let create = async || {
            app.taxpayers
                .send(ID, CreateInvoice(draft("A", 10)))
                .await
                .map(drop)
        };
        assert_delays_only_its_taxpayer(&app, (LaneKind::Taxpayer, "1"), create).await;

        app.taxpayers.send(ID, webhook()).await.unwrap();
        let create = async || {
            app.taxpayers
                .send(ID, CreateInvoice(draft("B", 10)))
                .await
                .map(drop)
        };
        assert_delays_only_its_taxpayer(&app, (LaneKind::Endpoint, "1"), create).await;

        let irn = "RELAYED-00000061-20260131";
        let run = app
            .taxpayers
            .send(ID, OpenRun(submission(irn, "a")))
            .await
            .unwrap();
        let reopen = async || {
            app.taxpayers
                .send(ID, OpenRun(submission(irn, "b")))
                .await
                .map(drop)
        };
        assert_delays_only_its_taxpayer(&app, (LaneKind::Run, &run_lane(ID, run.id)), reopen).await;
        app.close().await;
    }
}

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

/// The ids of taxpayers that are not among the neighbours.
const OTHERS: std::ops::RangeFrom<i64> = 100..;
/// The number of held lanes: more than there are connections for transactions.
const HELD: usize = 20;

#[actix_rt::test]
async fn many_held_lanes_delay_nobody_else() {
    // PostgreSQL only: SQLite has one writer, so nobody else can hold a lane.
    for test in stores().await.into_iter().skip(1) {
        let app = with_neighbours(test).await;
        let held: Vec<_> = OTHERS.take(HELD).map(TaxpayerId).collect();
        for id in &held {
            onboard(&app, *id).await;
        }
        let holder = app.test.store.begin().await.unwrap();
        for id in &held {
            lanes::lock(
                &holder,
                &[LaneName::new(LaneKind::Taxpayer, id.to_string())],
                IfTaken::Await,
            )
            .await
            .unwrap();
        }
        let is_over = AtomicBool::new(false);
        // Half of the commands may share a transaction. The other half set unique values, so they may not.
        let commands = held.iter().map(async |id| {
            if id.0 % 2 == 0 {
                app.taxpayers
                    .send(*id, CreateInvoice(draft("A", 10)))
                    .await
                    .map(drop)
            } else {
                app.taxpayers
                    .send(
                        *id,
                        ChangeProfile {
                            change: new_city("Abuja"),
                            by: BY,
                        },
                    )
                    .await
                    .map(drop)
            }
        });
        let (failed, slowest) = tokio::join!(
            async {
                let failed = join_all(commands).await;
                is_over.store(true, Ordering::SeqCst);
                failed
            },
            slowest_create(&app, "H", &is_over)
        );
        let is_locked = |result: &Result<(), _>| {
            matches!(result, Err(TaxpayerError::Store(StoreError::Locked)))
        };
        assert!(failed.iter().all(is_locked), "{failed:?}");
        assert!(slowest < PROMPT, "a neighbour's create took {slowest:?}");
        holder.rollback().await.unwrap();
        let created = held
            .iter()
            .map(|id| app.taxpayers.send(*id, CreateInvoice(draft("B", 10))));
        assert!(
            join_all(created).await.iter().all(Result::is_ok),
            "each goes on"
        );
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
        for (failure, id) in failures.iter().zip(OTHERS) {
            assert_refuses_nobody_else(&app, failure, TaxpayerId(id)).await;
        }
        app.close().await;
    }
}

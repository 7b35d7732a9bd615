//! Each kind of incident with a situation in which it is the matter, and the parts of such situations.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use crate::domain::incident::{
    CallFacts, CountAndOldest, DatabaseFault, ParkedEndpoints, PeriodicWork, RefusalReason,
    Situation, TaxpayerRefusals, WorkFacts,
};
use crate::domain::kernel::ids::TaxpayerId;
use crate::domain::kernel::upstream::UpstreamCause;
use crate::domain::quarantine::WorkKind;
use crate::domain::replica::{RefusedKey, Replica, ReplicaFigures, ReplicaIdentity, ReplicaList};
use crate::domain::taxpayer_pause::TaxpayerPause;

/// A kind of incident, and what brings a calm situation to it.
pub(crate) type Case = (&'static str, fn(&mut Situation));

const ONE: CountAndOldest = CountAndOldest {
    count: 1,
    since: None,
};

pub(super) fn work(situation: &mut Situation) -> &mut WorkFacts {
    situation.work.as_mut().unwrap()
}

#[rustfmt::skip]
pub(crate) const CASES: &[Case] = &[
    ("database-silent", |situation| situation.database.fault = Some(DatabaseFault::Silent)),
    ("database-silent", |situation| situation.database.fault = Some(DatabaseFault::ReadOnly)),
    ("disk-full", |situation| situation.database.fault = Some(DatabaseFault::DiskFull)),
    ("reads-wait", |situation| situation.database.slow_read_waits = 5),
    ("queue-growing", |situation| situation.actors.queue_lengths = vec![0, 5, 9, 15, 18, 20]),
    ("refusals-alike", |situation| {
        let last = situation.now;
        let reason = "the TIN is not known".to_owned();
        work(situation).refusal_reasons = vec![RefusalReason { reason, taxpayers: 10, documents: 12, since: last, last }];
    }),
    ("checkpoints-old", |situation| situation.checkpoints = Some(repeated(situation, 1_801))),
    ("reconciliation-old", |situation| situation.reconciliation = Some(repeated(situation, 1_801))),
    ("actors-failed", |situation| situation.actors.failure = Some("the dispatcher panicked 5 times".to_owned())),
    ("authority-refuses-key", |situation| situation.authority.refused_keys = vec![refused_key("a:8080", 0)]),
    // Another replica says so, and this one has a key that the authority accepts.
    ("authority-refuses-key", |situation| {
        situation.replicas = replica_list(REPLICA_STARTED, ReplicaFigures::default());
        situation.authority.refused_keys = vec![refused_key("b:8080", 0)];
    }),
    // The breaker opens then, too; but the authority is not out.
    ("authority-refuses-key", |situation| {
        situation.authority.last_causes = vec![("sign", UpstreamCause::Credentials)];
        situation.authority.held_operations = vec!["sign"];
        situation.authority.refused_keys = vec![refused_key("a:8080", 0)];
    }),
    ("authority-tls", |situation| {
        situation.authority.last_causes = vec![("sign", UpstreamCause::Tls)];
        situation.authority.held_operations = vec!["sign"];
    }),
    ("authority-out", |situation| {
        situation.authority.last_causes = vec![("sign", UpstreamCause::Connect)];
        situation.authority.held_operations = vec!["sign"];
    }),
    ("authority-out", |situation| situation.authority.is_silent = true),
    ("authority-out", |situation| work(situation).outage_since = Some(situation_time())),
    ("deadlines-missed", |situation| work(situation).overdue = ONE),
    ("deadlines-near", |situation| work(situation).due_soon = 1),
    ("runs-paused", |situation| work(situation).paused = ONE),
    ("work-not-taken", |situation| {
        let since = situation.now - SignedDuration::from_mins(1);
        work(situation).untaken = vec![("run", CountAndOldest { count: 1, since: Some(since) })];
    }),
    ("service-paused", |situation| situation.is_process_paused = true),
    // The replicas that the copy of the database lists are not missed.
    ("service-paused", |situation| {
        situation.is_process_paused = true;
        situation.replicas = replica_list(REPLICA_STARTED, ReplicaFigures::default());
        situation.replicas.replicas[0].seen_at = situation.now - SignedDuration::from_secs(4);
    }),
    // A paused process does not miss the periodic work that only a sending process does.
    ("service-paused", |situation| {
        situation.is_process_paused = true;
        situation.reconciliation = Some(repeated(situation, 1_801));
        let fetched = situation.now - SignedDuration::from_hours(25);
        work(situation).oldest_list_fetched_at = Some(fetched);
    }),
    // Work that nobody takes is no incident of its own then.
    ("service-paused", |situation| {
        situation.is_process_paused = true;
        let since = situation.now - SignedDuration::from_mins(1);
        work(situation).untaken = vec![("run", CountAndOldest { count: 1, since: Some(since) })];
    }),
    ("work-quarantined", |situation| work(situation).quarantined = vec![(WorkKind::Run, ONE)]),
    ("tasks-quarantined", |situation| work(situation).quarantined = vec![(WorkKind::Task, ONE)]),
    ("documents-refused", |situation| {
        let last = situation.now;
        work(situation).taxpayer_refusals = vec![TaxpayerRefusals { taxpayer: TaxpayerId(7), refusals: 5, last, reason: "No.".to_owned() }];
    }),
    ("endpoints-parked", |situation| {
        work(situation).endpoints = vec![ParkedEndpoints { failure: "timed_out".to_owned(), endpoints: 2, ..ParkedEndpoints::default() }];
    }),
    ("endpoints-disabled", |situation| work(situation).endpoints_disabled = 1),
    ("dead-letters", |situation| work(situation).dead_letters = ONE),
    ("invoices-missing-remotely", |situation| work(situation).differences = vec![("missing_remotely".to_owned(), ONE)]),
    ("ledger-differs", |situation| work(situation).differences = vec![("state_differs".to_owned(), ONE)]),
    ("reference-lists-old", |situation| {
        let fetched = situation.now - SignedDuration::from_hours(25);
        work(situation).oldest_list_fetched_at = Some(fetched);
    }),
    ("authority-slow", |situation| {
        situation.authority.calls = vec![slow_calls(3)];
    }),
    // One operation was slow, and is called too seldom to show the opposite.
    ("authority-slow", |situation| {
        situation.authority.calls = vec![slow_calls(1)];
        situation.authority.slow_operations = vec![slow_calls(3)];
    }),
    ("authority-throttles", |situation| situation.authority.throttled_calls = 1),
    ("authority-throttles", |situation| {
        let until = situation.now + SignedDuration::from_secs(20);
        situation.authority.pauses = vec![("sign", until)];
    }),
    ("authority-throttles", |situation| situation.authority.paused_at = Some(situation.now)),
    ("authority-limit-low", |situation| situation.authority.limited_operations = vec![("sign", 5, 80)]),
    ("breaker-tripped", |situation| situation.authority.tripped_operations = vec![("sign", None)]),
    ("taxpayers-paused", |situation| situation.paused_taxpayers = vec![pause()]),
    ("actors-stuck", |situation| situation.actors.stuck = 1),
    ("actors-panic", |situation| situation.actors.panics = 4),
    ("answers-broken", |situation| situation.traffic.broken = 1),
    ("commands-refused", |situation| situation.traffic.refused_commands = 1),
    ("authentications-fail", |situation| situation.traffic.failed_authentications = 50),
    ("memory-near-limit", |situation| {
        situation.process.resident_bytes = Some(85);
        situation.process.memory_bytes_max = Some(100);
    }),
    ("replica-missing", |situation| {
        situation.replicas = replica_list(REPLICA_STARTED, ReplicaFigures::default());
        situation.replicas.replicas[0].seen_at = situation.now - SignedDuration::from_secs(4);
    }),
    ("replica-not-ready", |situation| {
        let not_ready = Some("8 taxpayers' actors are stuck".to_owned());
        let figures = ReplicaFigures { not_ready, ..ReplicaFigures::default() };
        situation.replicas = replica_list(REPLICA_STARTED, figures);
    }),
    ("replicas-out-of-step", |situation| {
        let figures = ReplicaFigures { clock_ahead_ms: -2_001, ..ReplicaFigures::default() };
        situation.replicas = replica_list(REPLICA_STARTED, figures);
    }),
    ("replicas-out-of-step", |situation| {
        let figures = ReplicaFigures { version: "2".to_owned(), ..ReplicaFigures::default() };
        situation.replicas = replica_list(REPLICA_STARTED, figures);
    }),
    ("files-near-limit", |situation| {
        situation.process.open_files = Some(1_741);
        situation.process.open_files_max = Some(2_048);
    }),
];

/// A replica whose key the authority has refused for so many seconds.
pub(super) fn refused_key(name: &str, ago_s: i64) -> (String, RefusedKey) {
    let key = RefusedKey {
        since: situation_time() - SignedDuration::from_secs(ago_s),
        operations: vec!["sign".to_owned()],
    };
    (name.to_owned(), key)
}

pub(super) fn pause() -> TaxpayerPause {
    TaxpayerPause {
        taxpayer_id: TaxpayerId(7),
        since: situation_time(),
        reason: None,
    }
}

pub(super) const REPLICA_STARTED: SignedDuration = SignedDuration::from_mins(16);

/// Returns two replicas that have just given a sign. The figures are those of the first, which started so long ago.
pub(super) fn replica_list(ago: SignedDuration, figures: ReplicaFigures) -> ReplicaList {
    let now = situation_time();
    let replica = |name: &str, figures| Replica {
        identity: ReplicaIdentity {
            id: name.to_owned(),
            name: name.to_owned(),
        },
        seen_at: now,
        leases: 0,
        figures,
    };
    let first = ReplicaFigures {
        started_at: now - ago,
        ..figures
    };
    ReplicaList {
        read_at: Some(now),
        watched_since: Some(now - SignedDuration::from_mins(1)),
        replicas: vec![
            replica("a:8080", first),
            replica("b:8080", ReplicaFigures::default()),
        ],
    }
}

/// Work that is due every ten minutes and last succeeded so many seconds ago.
pub(super) fn repeated(situation: &Situation, ago_s: i64) -> PeriodicWork {
    PeriodicWork {
        every: SignedDuration::from_mins(10),
        last: situation.now - SignedDuration::from_secs(ago_s),
    }
}

pub(super) fn slow_calls(answered: u64) -> CallFacts {
    CallFacts {
        operation: "sign",
        answered,
        mean: Duration::from_secs(5),
    }
}

pub(super) fn situation_time() -> Timestamp {
    Situation::calm().now
}

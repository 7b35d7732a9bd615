//! Each kind of incident with a situation in which it is the matter, and nothing else is.

use std::collections::BTreeSet;
use std::time::Duration;

use jiff::SignedDuration;

use super::*;
use crate::domain::kernel::ids::TaxpayerId;
use crate::domain::kernel::upstream::UpstreamCause;
use crate::domain::quarantine::WorkKind;
use crate::domain::replica::{Replica, ReplicaFigures, ReplicaIdentity, ReplicaList};
use crate::domain::taxpayer_pause::TaxpayerPause;

/// A kind of incident, and what brings a calm situation to it.
type Case = (&'static str, fn(&mut Situation));

const ONE: Group = Group {
    count: 1,
    since: None,
};

fn work(situation: &mut Situation) -> &mut WorkFacts {
    situation.work.as_mut().unwrap()
}

#[rustfmt::skip]
const CASES: &[Case] = &[
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
    ("authority-refuses-key", |situation| situation.authority.last_causes = vec![("sign", UpstreamCause::Credentials)]),
    // The breaker opens then, too; but the authority is not out.
    ("authority-refuses-key", |situation| {
        situation.authority.last_causes = vec![("sign", UpstreamCause::Credentials)];
        situation.authority.held_operations = vec!["sign"];
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
        work(situation).untaken = vec![("run", Group { count: 1, since: Some(since) })];
    }),
    ("service-paused", |situation| situation.process.is_paused = true),
    // Work that nobody takes is no incident of its own then.
    ("service-paused", |situation| {
        situation.process.is_paused = true;
        let since = situation.now - SignedDuration::from_mins(1);
        work(situation).untaken = vec![("run", Group { count: 1, since: Some(since) })];
    }),
    ("work-quarantined", |situation| work(situation).quarantined = vec![(WorkKind::Run, ONE)]),
    ("tasks-quarantined", |situation| work(situation).quarantined = vec![(WorkKind::Task, ONE)]),
    ("documents-refused", |situation| {
        let last = situation.now;
        work(situation).refused = vec![RefusedTaxpayer { taxpayer: TaxpayerId(7), refusals: 5, last, reason: "No.".to_owned() }];
    }),
    ("endpoints-parked", |situation| {
        work(situation).endpoints = vec![ParkedEndpoints { failure: "timed_out".to_owned(), endpoints: 2, since: None, host: None }];
    }),
    ("endpoints-disabled", |situation| work(situation).endpoints_disabled = 1),
    ("dead-letters", |situation| work(situation).dead_letters = ONE),
    ("invoices-missing-remotely", |situation| work(situation).differences = vec![("missing_remotely".to_owned(), 1)]),
    ("ledger-differs", |situation| work(situation).differences = vec![("state_differs".to_owned(), 1)]),
    ("reference-lists-old", |situation| {
        let fetched = situation.now - SignedDuration::from_hours(25);
        work(situation).oldest_list_fetched_at = Some(fetched);
    }),
    ("authority-slow", |situation| {
        situation.authority.calls = vec![slow_calls(3)];
    }),
    ("authority-throttles", |situation| situation.authority.throttled_calls = 1),
    ("authority-limit-low", |situation| situation.authority.limited_operations = vec![("sign", 5, 80)]),
    ("breaker-tripped", |situation| situation.authority.tripped_operations = vec!["sign"]),
    ("taxpayers-paused", |situation| situation.paused_taxpayers = vec![pause()]),
    // Work that nobody takes is no incident of its own then.
    ("taxpayers-paused", |situation| {
        situation.paused_taxpayers = vec![pause()];
        let since = situation.now - SignedDuration::from_mins(1);
        work(situation).untaken = vec![("run", Group { count: 1, since: Some(since) })];
    }),
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

fn pause() -> TaxpayerPause {
    TaxpayerPause {
        taxpayer_id: TaxpayerId(7),
        since: situation_time(),
        reason: None,
    }
}

const REPLICA_STARTED: SignedDuration = SignedDuration::from_mins(16);

/// Returns two replicas that have just given a sign. The figures are those of the first, which started so long ago.
fn replica_list(ago: SignedDuration, figures: ReplicaFigures) -> ReplicaList {
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
fn repeated(situation: &Situation, ago_s: i64) -> Repetition {
    Repetition {
        every: SignedDuration::from_mins(10),
        last: situation.now - SignedDuration::from_secs(ago_s),
    }
}

fn slow_calls(answered: u64) -> CallFacts {
    CallFacts {
        operation: "sign",
        answered,
        mean: Duration::from_secs(5),
    }
}

fn situation_time() -> Timestamp {
    Situation::calm().now
}

/// Returns the kinds of incidents of a situation, with the sentences that an operator reads.
fn find_all(situation: &Situation) -> Vec<(&'static str, Finding)> {
    let kinds = INCIDENTS.iter();
    kinds
        .flat_map(|kind| {
            (kind.find)(situation)
                .into_iter()
                .map(|finding| (kind.name, finding))
        })
        .collect()
}

#[test]
fn each_incident_is_found_where_it_is_the_matter_and_nowhere_else() {
    assert_eq!(find_all(&Situation::calm()), []);
    for (name, change) in CASES {
        let mut situation = Situation::calm();
        change(&mut situation);
        let found = find_all(&situation);
        let names: Vec<_> = found.iter().map(|(name, _)| *name).collect();
        assert_eq!(names, [*name]);
        for (_, finding) in found {
            assert!(finding.summary.ends_with('.'), "{}", finding.summary);
            assert!(!finding.summary.contains("  "), "{}", finding.summary);
        }
    }
}

#[test]
fn each_incident_has_a_case() {
    let cases: BTreeSet<_> = CASES.iter().map(|(name, _)| *name).collect();
    let kinds: BTreeSet<_> = INCIDENTS.iter().map(|kind| kind.name).collect();
    assert_eq!(cases, kinds);
}

#[test]
fn what_is_normal_is_no_incident() {
    let normal: &[fn(&mut Situation)] = &[
        // Work that became due a moment ago, and work whose breaker is open.
        |situation| {
            work(situation).untaken = vec![(
                "run",
                Group {
                    count: 9,
                    since: Some(situation_time()),
                },
            )];
        },
        |situation| {
            let since = situation.now - SignedDuration::from_mins(5);
            work(situation).untaken = vec![(
                "run",
                Group {
                    count: 9,
                    since: Some(since),
                },
            )];
            situation.authority.is_held_for_some = true;
        },
        |situation| situation.authority.calls = vec![slow_calls(2)],
        |situation| situation.authority.last_causes = vec![("sign", UpstreamCause::Timeout)],
        |situation| situation.actors.panics = 1,
        |situation| situation.database.slow_read_waits = 4,
        |situation| situation.checkpoints = Some(repeated(situation, 1_800)),
        |situation| {
            let last = situation.now - SignedDuration::from_secs(14);
            let every = SignedDuration::from_secs(1);
            situation.reconciliation = Some(Repetition { every, last });
        },
        // A queue that is short, or young, or that shrank once, or that waits for the authority.
        |situation| situation.actors.queue_lengths = vec![0, 1, 2, 3, 4, 19],
        |situation| situation.actors.queue_lengths = vec![10, 20, 30, 40, 50],
        |situation| situation.actors.queue_lengths = vec![10, 20, 30, 30, 40, 50],
        |situation| {
            situation.actors.queue_lengths = vec![10, 20, 30, 40, 50, 60];
            situation.authority.is_held_for_some = true;
        },
        |situation| situation.traffic.failed_authentications = 49,
    ];
    for change in normal {
        let mut situation = Situation::calm();
        change(&mut situation);
        assert_eq!(find_all(&situation), []);
    }
}

#[test]
fn an_incident_says_whose_fault_it_is() {
    let blames = |change: fn(&mut Situation)| {
        let mut situation = Situation::calm();
        change(&mut situation);
        let found = find_all(&situation);
        found
            .into_iter()
            .map(|(_, finding)| (finding.blame, finding.summary))
            .collect::<Vec<_>>()
    };
    let ours = blames(|situation| {
        situation.authority.held_operations = vec!["sign"];
        situation.authority.last_causes = vec![("sign", UpstreamCause::Connect)];
        situation.authority.receivers_unreachable = 3;
    });
    assert_eq!(
        ours,
        [(
            Some(Blame::OurNetwork),
            "The authority is out: it cannot be reached. Receivers cannot be reached either, so look at our own network \
             first."
                .to_owned()
        )]
    );
    let theirs = blames(|situation| {
        situation.authority.held_operations = vec!["sign"];
        situation.authority.last_causes = vec![("sign", UpstreamCause::Connect)];
        situation.authority.receivers_unreachable = 3;
        situation.authority.receivers_reached = 1;
    });
    assert_eq!(theirs[0].0, Some(Blame::Authority));
    let key = blames(|situation| {
        situation.authority.last_causes = vec![("sign", UpstreamCause::Credentials)];
    });
    assert_eq!(key[0].0, Some(Blame::OurKey));
    let endpoints = |endpoints, active| {
        let mut situation = Situation::calm();
        work(&mut situation).endpoints = vec![ParkedEndpoints {
            failure: "connect".to_owned(),
            endpoints,
            since: None,
            host: None,
        }];
        work(&mut situation).endpoints_active = active;
        find_all(&situation)[0].1.blame
    };
    assert_eq!(endpoints(3, 3), Some(Blame::OurNetwork));
    assert_eq!(endpoints(3, 4), Some(Blame::Receiver));
    assert_eq!(endpoints(2, 2), Some(Blame::Receiver));
}

#[test]
fn sentences_say_how_many_whose_and_why() {
    let mut situation = Situation::calm();
    let since = situation.now - SignedDuration::from_mins(10);
    let now = situation.now;
    work(&mut situation).paused = Group {
        count: 17,
        since: Some(since),
    };
    work(&mut situation).endpoints = vec![ParkedEndpoints {
        failure: "timed_out".to_owned(),
        endpoints: 20,
        since: Some(since),
        host: Some(("hooks.example".to_owned(), 18)),
    }];
    work(&mut situation).endpoints_active = 337;
    work(&mut situation).refused = vec![RefusedTaxpayer {
        taxpayer: TaxpayerId(7),
        refusals: 12,
        last: now,
        reason: "The TIN of the customer is not known.".to_owned(),
    }];
    situation.authority.last_causes = vec![("sign", UpstreamCause::ServerError)];
    situation.authority.held_operations = vec!["sign"];
    let summaries: Vec<_> = find_all(&situation)
        .into_iter()
        .map(|(_, finding)| finding.summary)
        .collect();
    assert_eq!(
        summaries,
        [
            "The authority is out: it answers with errors of its own (5xx).",
            "17 runs are paused.",
            "The authority refused 12 documents of taxpayer 7 within an hour. The last one: The TIN of the customer is \
             not known.",
            "20 of 337 endpoints are parked, because each attempt failed: timed out. 18 of them are at hooks.example.",
        ]
    );
}

#[test]
fn the_reason_of_refusals_is_told_of_the_taxpayer_that_it_is_of() {
    let refused = |taxpayer, refusals, reason: &str| RefusedTaxpayer {
        taxpayer: TaxpayerId(taxpayer),
        refusals,
        last: situation_time(),
        reason: reason.to_owned(),
    };
    let cases = [
        (vec![refused(7, 4, "No.")], None),
        (
            vec![refused(7, 5, "No."), refused(8, 4, "")],
            Some("5 documents of taxpayer 7 within an hour. The last one: No."),
        ),
        (
            vec![refused(7, 12, "No."), refused(8, 6, ""), refused(9, 5, "")],
            Some(
                "23 documents of 3 taxpayers within an hour, 12 of them of taxpayer 7. The last one of taxpayer 7: No.",
            ),
        ),
    ];
    for (taxpayers, expected) in cases {
        let mut situation = Situation::calm();
        work(&mut situation).refused = taxpayers;
        let found = find_all(&situation);
        let summary = found.first().map(|(_, finding)| finding.summary.as_str());
        let expected = expected.map(|end| format!("The authority refused {end}"));
        assert_eq!(summary, expected.as_deref());
    }
}

#[test]
fn an_outage_that_this_process_did_not_see_is_told_by_who_may_have_seen_it() {
    let several = replica_list(REPLICA_STARTED, ReplicaFigures::default());
    let mut only = several.clone();
    only.replicas.truncate(1);
    for (replicas, names_another) in [
        (ReplicaList::default(), false),
        (only, false),
        (several, true),
    ] {
        let mut situation = Situation::calm();
        situation.replicas = replicas;
        work(&mut situation).outage_since = Some(situation_time());
        let found = find_all(&situation);
        let [("authority-out", finding)] = found.as_slice() else {
            panic!("{found:?}");
        };
        let summary = &finding.summary;
        assert_eq!(summary.contains("replica"), names_another, "{summary}");
        assert!(summary.contains("no call"), "{summary}");
    }
}

#[test]
fn replicas_that_are_being_upgraded_are_not_out_of_step() {
    let figures = ReplicaFigures {
        version: "2".to_owned(),
        clock_ahead_ms: 2_000,
        ..ReplicaFigures::default()
    };
    let mut situation = Situation::calm();
    situation.replicas = replica_list(SignedDuration::from_mins(14), figures);
    assert_eq!(find_all(&situation), []);
}

#[test]
fn what_wakes_somebody_stands_first() {
    let severities = INCIDENTS.iter().map(|kind| kind.severity);
    assert!(severities.is_sorted(), "the most urgent first");
}

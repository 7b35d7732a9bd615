//! Incidents are found where they are the matter and nowhere else, and their sentences say how many, whose and why.

mod cases;

use std::collections::BTreeSet;

use jiff::SignedDuration;

use super::*;
use crate::domain::kernel::ids::TaxpayerId;
use crate::domain::kernel::upstream::UpstreamCause;
use crate::domain::quarantine::WorkKind;
use crate::domain::replica::{RefusedKey, ReplicaFigures, ReplicaIncident, ReplicaList};
use crate::domain::taxpayer_pause::TaxpayerPause;
pub(crate) use cases::CASES;
use cases::{
    REPLICA_STARTED, pause, refused_key, repeated, replica_list, situation_time, slow_calls, work,
};

/// Returns the kinds of incidents of a situation, with the sentences that an operator reads.
fn find_all(situation: &Situation) -> Vec<(&'static str, FoundIncident)> {
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
                CountAndOldest {
                    count: 9,
                    since: Some(situation_time()),
                },
            )];
        },
        |situation| {
            let since = situation.now - SignedDuration::from_mins(5);
            work(situation).untaken = vec![(
                "run",
                CountAndOldest {
                    count: 9,
                    since: Some(since),
                },
            )];
            situation.authority.has_held_runs = true;
        },
        |situation| situation.authority.calls = vec![slow_calls(2)],
        // A pause that ended ten seconds ago, and one of before a clock was set back.
        |situation| {
            let ago = SignedDuration::from_secs(10);
            situation.authority.paused_at = Some(situation.now - ago);
        },
        |situation| {
            let ahead = SignedDuration::from_hours(1);
            situation.authority.paused_at = Some(situation.now + ahead);
        },
        |situation| situation.authority.last_causes = vec![("sign", UpstreamCause::Timeout)],
        |situation| situation.actors.panics = 1,
        |situation| situation.database.slow_read_waits = 4,
        |situation| situation.checkpoints = Some(repeated(situation, 1_800)),
        |situation| {
            let last = situation.now - SignedDuration::from_secs(14);
            let every = SignedDuration::from_secs(1);
            situation.reconciliation = Some(PeriodicWork { every, last });
        },
        // A queue that is short, or young, or that shrank once, or that waits for the authority.
        |situation| situation.actors.queue_lengths = vec![0, 1, 2, 3, 4, 19],
        |situation| situation.actors.queue_lengths = vec![10, 20, 30, 40, 50],
        |situation| situation.actors.queue_lengths = vec![10, 20, 30, 30, 40, 50],
        |situation| {
            situation.actors.queue_lengths = vec![10, 20, 30, 40, 50, 60];
            situation.authority.has_held_runs = true;
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
fn a_pause_that_the_authority_asked_for_is_told_until_calls_may_be_made_again() {
    /// The calls that were throttled lately, the pauses, the number that is told, and the rest of the sentence.
    type Case<'a> = (u64, &'a [(&'static str, Timestamp)], u64, &'a str);
    const SAYS: &str = "The authority asks to be called less often:";

    let at = |second| situation_time() + SignedDuration::from_secs(second);
    let both = [("sign", at(20)), ("validate", at(5))];
    let cases: [Case<'_>; 5] = [
        (2, &[], 2, "2 calls were refused for it a moment ago."),
        (0, &both[..1], 1, "for now no call is made to sign."),
        (0, &both, 2, "for now no call is made to sign, validate."),
        (
            3,
            &both[1..],
            3,
            "3 calls were refused for it a moment ago, and for now no call is made to validate.",
        ),
        (0, &[], 1, "the pause that it asked for has just ended."),
    ];
    for (throttled, pauses, count, end) in cases {
        let mut situation = Situation::calm();
        situation.authority.throttled_calls = throttled;
        situation.authority.pauses = pauses.to_vec();
        situation.authority.paused_at = Some(at(-9));
        let found = find_all(&situation);
        let [("authority-throttles", finding)] = found.as_slice() else {
            panic!("{found:?}");
        };
        assert_eq!(finding.summary, format!("{SAYS} {end}"));
        assert_eq!(finding.count, count, "{end}");
        let last_end = pauses.iter().map(|(_, until)| *until).max();
        assert_eq!(finding.until, last_end, "{end}");
    }
}

#[test]
fn an_operation_is_told_as_slow_once() {
    let lately = "has not answered several in a row quickly since.";
    // The slow calls of the last seconds, the operation that was slow before, and the ends of the sentences.
    let cases: [(u64, &str, &[&str]); 3] = [
        (3, "sign", &["in the mean of the last 3."]),
        (3, "validate", &["in the mean of the last 3.", lately]),
        (2, "sign", &[lately]),
    ];
    for (answered, operation, ends) in cases {
        let mut situation = Situation::calm();
        situation.authority.calls = vec![slow_calls(answered)];
        situation.authority.slow_operations = vec![CallFacts {
            operation,
            ..slow_calls(4)
        }];
        let found = find_all(&situation);
        let summaries: Vec<_> = found.iter().map(|(_, one)| one.summary.as_str()).collect();
        assert_eq!(summaries.len(), ends.len(), "{summaries:?}");
        for (summary, end) in summaries.iter().zip(ends) {
            assert!(summary.ends_with(end), "{summary}");
        }
    }
}

#[test]
fn a_paused_taxpayer_hides_no_incident_of_others() {
    let changes: [(&str, Change); 2] = [
        ("work-not-taken", |situation| {
            let since = situation.now - SignedDuration::from_mins(1);
            let group = CountAndOldest {
                count: 1,
                since: Some(since),
            };
            work(situation).untaken = vec![("run", group)];
        }),
        ("queue-growing", |situation| {
            situation.actors.queue_lengths = vec![10, 20, 30, 40, 50, 60];
        }),
    ];
    for (name, change) in changes {
        let mut situation = Situation::calm();
        change(&mut situation);
        situation.paused_taxpayers = vec![pause()];
        let found = find_all(&situation);
        let names: BTreeSet<_> = found.iter().map(|(name, _)| *name).collect();
        assert_eq!(names, BTreeSet::from([name, "taxpayers-paused"]));
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
        situation.authority.refused_keys = vec![refused_key("a:8080", 0)];
    });
    assert_eq!(key[0].0, Some(Blame::OurKey));
    let endpoints = |endpoints, active| {
        let mut situation = Situation::calm();
        work(&mut situation).endpoints = vec![ParkedEndpoints {
            failure: "connect".to_owned(),
            endpoints,
            ..ParkedEndpoints::default()
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
    work(&mut situation).paused = CountAndOldest {
        count: 17,
        since: Some(since),
    };
    work(&mut situation).endpoints = vec![ParkedEndpoints {
        failure: "timed_out".to_owned(),
        endpoints: 20,
        since: Some(since),
        host: Some(("hooks.example".to_owned(), 18)),
        ..ParkedEndpoints::default()
    }];
    work(&mut situation).endpoints_active = 337;
    work(&mut situation).taxpayer_refusals = vec![TaxpayerRefusals {
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
            "20 of 337 endpoints are parked, because they do not answer in time. 18 of them are at hooks.example.",
        ]
    );
}

#[test]
fn the_reason_of_refusals_is_told_of_the_taxpayer_that_it_is_of() {
    let refused = |taxpayer, refusals, reason: &str| TaxpayerRefusals {
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
        work(&mut situation).taxpayer_refusals = taxpayers;
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
fn an_authority_that_has_answered_since_the_outage_began_is_told_to_answer_again() {
    for (answered_s, cause) in [
        (None, "unknown"),
        (Some(-30), "unknown"),
        (Some(30), "recovering"),
    ] {
        let mut situation = Situation::calm();
        let began = situation.now - SignedDuration::from_mins(1);
        work(&mut situation).outage_since = Some(began);
        let answered_at = answered_s.map(|second| began + SignedDuration::from_secs(second));
        situation.authority.answered_at = answered_at;
        let found = find_all(&situation);
        let [("authority-out", finding)] = found.as_slice() else {
            panic!("{found:?}");
        };
        let summary = &finding.summary;
        assert_eq!(finding.cause, cause, "{summary}");
        assert_eq!(
            summary.contains("no call since"),
            cause == "unknown",
            "{summary}"
        );
    }
}

#[test]
fn work_is_told_as_untaken_only_of_the_time_at_which_it_was_counted() {
    // The seconds for which the work was due when it was counted, and if this is an incident, however long ago it was.
    for (due_before_count_s, is_told) in [(30, true), (1, false)] {
        for counted_ago_s in [0, 5, 600] {
            let mut situation = Situation::calm();
            let counted_at = situation.now - SignedDuration::from_secs(counted_ago_s);
            let group = CountAndOldest {
                count: 3,
                since: Some(counted_at - SignedDuration::from_secs(due_before_count_s)),
            };
            work(&mut situation).counted_at = Some(counted_at);
            work(&mut situation).untaken = vec![("endpoint", group)];
            let found = find_all(&situation);
            assert_eq!(found.len(), usize::from(is_told), "{found:?}");
        }
    }
}

#[test]
fn the_time_of_quarantined_tasks_is_that_of_the_next_attempt() {
    let at = |second| situation_time() + SignedDuration::from_secs(second);
    for (kind, second, since, until) in [
        (WorkKind::Run, -60, Some(at(-60)), None),
        (WorkKind::Task, 60, None, Some(at(60))),
        (WorkKind::Task, -60, None, None),
    ] {
        let mut situation = Situation::calm();
        let group = CountAndOldest {
            count: 1,
            since: Some(at(second)),
        };
        work(&mut situation).quarantined = vec![(kind, group)];
        let found = find_all(&situation);
        let [(_, finding)] = found.as_slice() else {
            panic!("{found:?}");
        };
        assert_eq!((finding.since, finding.until), (since, until), "{kind}");
    }
}

#[test]
fn one_parked_endpoint_among_several_is_one() {
    for (endpoints, active, begin) in [
        (1, 1, "1 endpoint is parked"),
        (1, 5, "1 of 5 endpoints is parked"),
        (2, 5, "2 of 5 endpoints are parked"),
    ] {
        let mut situation = Situation::calm();
        work(&mut situation).endpoints_active = active;
        work(&mut situation).endpoints = vec![ParkedEndpoints {
            failure: "timed_out".to_owned(),
            endpoints,
            ..ParkedEndpoints::default()
        }];
        let found = find_all(&situation);
        let summary = found.first().map(|(_, finding)| finding.summary.as_str());
        assert!(summary.is_some_and(|summary| summary.starts_with(begin)));
    }
}

#[test]
fn paused_taxpayers_are_named_and_their_number_is_bounded() {
    for (paused, summary) in [
        (1, "1 taxpayer is paused by operators: Ada Foods Ltd (1)."),
        (
            3,
            "3 taxpayers are paused by operators: Ada Foods Ltd (1), Bola & Sons (2), number 3.",
        ),
        (
            8,
            "8 taxpayers are paused by operators: Ada Foods Ltd (1), Bola & Sons (2), number 3, number 4, number 5 and \
             3 more.",
        ),
    ] {
        let mut situation = Situation::calm();
        work(&mut situation).paused_names = vec![
            (TaxpayerId(1), "Ada Foods Ltd".to_owned()),
            (TaxpayerId(2), "Bola & Sons".to_owned()),
        ];
        let pauses = (1..=paused).map(|number| TaxpayerPause {
            taxpayer_id: TaxpayerId(number),
            ..pause()
        });
        situation.paused_taxpayers = pauses.collect();
        let found = find_all(&situation);
        let [("taxpayers-paused", finding)] = found.as_slice() else {
            panic!("{found:?}");
        };
        assert_eq!(finding.summary, summary);
    }
}

#[test]
fn a_quoted_reason_ends_with_one_full_stop() {
    for (reason, end) in [
        ("No", "The last one: No."),
        ("No. ", "The last one: No."),
        ("Why?", "The last one: Why?"),
        ("", "The last one: it names no reason."),
    ] {
        let mut situation = Situation::calm();
        work(&mut situation).taxpayer_refusals = vec![TaxpayerRefusals {
            taxpayer: TaxpayerId(7),
            refusals: 5,
            last: situation_time(),
            reason: reason.to_owned(),
        }];
        let found = find_all(&situation);
        let summary = &found[0].1.summary;
        assert!(summary.ends_with(end), "{summary}");
    }
}

#[test]
fn a_replica_that_is_not_ready_is_told_unless_an_incident_of_its_own_explains_it() {
    let told = |kind: &str| ReplicaIncident {
        kind: kind.to_owned(),
        ..ReplicaIncident::default()
    };
    let reason = Some("the actors are stuck".to_owned());
    for (not_ready, is_stopping, incidents, is_found) in [
        (None, false, vec![], false),
        (reason.clone(), false, vec![], true),
        (reason.clone(), true, vec![], false),
        (reason.clone(), false, vec![told("actors-failed")], false),
        (reason.clone(), false, vec![told("disk-full")], false),
        // This does not explain it.
        (reason, false, vec![told("memory-near-limit")], true),
    ] {
        let figures = ReplicaFigures {
            is_stopping,
            not_ready,
            incidents,
            ..ReplicaFigures::default()
        };
        let mut situation = Situation::calm();
        situation.replicas = replica_list(REPLICA_STARTED, figures);
        let found = find_all(&situation);
        let summaries: Vec<_> = found.iter().map(|(_, one)| one.summary.as_str()).collect();
        let expected: &[&str] = if is_found {
            &["a:8080 is not ready: the actors are stuck."]
        } else {
            &[]
        };
        assert_eq!(summaries, expected);
    }
}

#[test]
fn a_replica_is_missed_only_if_the_database_would_have_taken_its_sign() {
    // The fault of the database, the seconds since it last had one, and if the replica is told as missing.
    for (fault, fault_ago_s, is_missed) in [
        (None, None, true),
        (Some(DatabaseFault::DiskFull), Some(0), false),
        (None, Some(9), false),
        (None, Some(10), true),
        // The clock was set back.
        (None, Some(-3_600), true),
    ] {
        let mut situation = Situation::calm();
        let now = situation.now;
        situation.replicas = replica_list(REPLICA_STARTED, ReplicaFigures::default());
        situation.replicas.replicas[0].seen_at = now - SignedDuration::from_secs(4);
        situation.database.fault = fault;
        situation.database.fault_at = fault_ago_s.map(|ago| now - SignedDuration::from_secs(ago));
        let found = find_all(&situation);
        let is_found = found.iter().any(|(name, _)| *name == "replica-missing");
        assert_eq!(is_found, is_missed, "{fault:?} {fault_ago_s:?}");
    }
}

#[test]
fn parked_endpoints_say_what_they_answer_and_when_the_next_probe_is_sent() {
    for (failure, endpoints, statuses, clause) in [
        ("rejected", 1, vec![500], "it answers 500."),
        ("rejected", 3, vec![500, 503], "they answer 500, 503."),
        ("rejected", 2, vec![], "they answer an error."),
        ("auth", 1, vec![], "it could not be authenticated to."),
        ("dns", 2, vec![], "they have names that are not found."),
    ] {
        let mut situation = Situation::calm();
        let next_probe_at = Some(situation.now + SignedDuration::from_secs(40));
        work(&mut situation).endpoints = vec![ParkedEndpoints {
            failure: failure.to_owned(),
            endpoints,
            statuses,
            next_probe_at,
            ..ParkedEndpoints::default()
        }];
        let found = find_all(&situation);
        let [("endpoints-parked", finding)] = found.as_slice() else {
            panic!("{found:?}");
        };
        let summary = &finding.summary;
        assert!(
            summary.ends_with(&format!("parked, because {clause}")),
            "{summary}"
        );
        assert_eq!(finding.until, next_probe_at, "{summary}");
        assert_eq!(finding.cause, failure, "{summary}");
    }
}

#[test]
fn a_refused_key_is_told_of_the_replicas_that_have_it_and_stops_all_unless_another_is_answered() {
    let only = "Only the calls of b:8080 are refused.";
    let all = "No invoice reaches the authority: the calls of a:8080, b:8080 are refused.";
    let alone = "No invoice reaches the authority: the calls of a:8080 are refused.";
    // Each case: true if another replica has an accepted key; the replicas with a refused key and the seconds since
    // then; the end of the sentence; and the oldest time in seconds.
    let cases = [
        (true, &[("b:8080", 9)][..], only, 9),
        (false, &[("a:8080", 3), ("b:8080", 7)], all, 7),
        // The other replica has made no call, or its calls fail.
        (false, &[("a:8080", 5)], alone, 5),
    ];
    for (has_accepted_key, refused, end, ago_s) in cases {
        let mut situation = Situation::calm();
        situation.replicas = replica_list(REPLICA_STARTED, ReplicaFigures::default());
        situation.authority.has_accepted_key = has_accepted_key;
        let keys = refused
            .iter()
            .map(|(name, ago_s)| refused_key(name, *ago_s));
        situation.authority.refused_keys = keys.collect();
        let found = find_all(&situation);
        let [("authority-refuses-key", finding)] = found.as_slice() else {
            panic!("{found:?}");
        };
        let summary = &finding.summary;
        assert!(summary.ends_with(end), "{summary}");
        let since = situation_time() - SignedDuration::from_secs(ago_s);
        assert_eq!(finding.since, Some(since), "{summary}");
        let is_partial = finding.cause == SOME_REPLICAS;
        assert_eq!(is_partial, end == only, "{summary}");
    }
}

#[test]
fn a_key_that_is_refused_at_some_calls_only_stops_what_needs_them() {
    let none = "No invoice reaches the authority: the calls of a:8080 are refused.";
    // The operations that are refused, the cause, and the end of the sentence.
    let cases: [(&[&str], &str, &str); 6] = [
        (&["validate_irn"], "", none),
        (&["sign"], "", none),
        (&["pull", "validate"], "", none),
        (
            &["pull"],
            SOME_CALLS,
            "No call that signs invoices was refused so far. The inbox is not read: invoices of suppliers do not arrive.",
        ),
        (
            &["lookup", "transmit"],
            SOME_CALLS,
            "No call that signs invoices was refused so far. Signed invoices are not transmitted.",
        ),
        (
            &["report", "update_payment"],
            SOME_CALLS,
            "No call that signs invoices was refused so far. Payments are not reported. Reports are not sent.",
        ),
    ];
    for (operations, cause, end) in cases {
        let mut situation = Situation::calm();
        let (name, key) = refused_key("a:8080", 0);
        let operations: Vec<_> = operations.iter().map(|name| (*name).to_owned()).collect();
        let names = operations.join(", ");
        situation.authority.refused_keys = vec![(name, RefusedKey { operations, ..key })];
        let found = find_all(&situation);
        let [("authority-refuses-key", finding)] = found.as_slice() else {
            panic!("{found:?}");
        };
        let summary = &finding.summary;
        assert!(summary.ends_with(end), "{names}: {summary}");
        assert_eq!(finding.cause, cause, "{names}");
    }
}

#[test]
fn the_old_cause_of_another_operation_makes_no_outage_of_a_fault_of_ours() {
    use UpstreamCause::{Credentials, ServerError, Timeout, Tls};
    // The causes of the last calls, the operations whose breaker is open, and the incidents.
    type Case = (
        &'static [(&'static str, UpstreamCause)],
        &'static [&'static str],
        &'static [&'static str],
    );
    let cases: [Case; 5] = [
        (
            &[("sign", Tls), ("pull", ServerError)],
            &["sign"],
            &["authority-tls"],
        ),
        (&[("sign", Credentials), ("pull", Timeout)], &["sign"], &[]),
        (
            &[("sign", Tls), ("pull", ServerError)],
            &["sign", "pull"],
            &["authority-out", "authority-tls"],
        ),
        (&[("pull", ServerError)], &[], &[]),
        (&[("sign", ServerError)], &["sign"], &["authority-out"]),
    ];
    for (last_causes, held, expected) in cases {
        let mut situation = Situation::calm();
        situation.authority.last_causes = last_causes.to_vec();
        situation.authority.held_operations = held.to_vec();
        let found = find_all(&situation);
        let names: BTreeSet<_> = found.iter().map(|(name, _)| *name).collect();
        let expected: BTreeSet<_> = expected.iter().copied().collect();
        assert_eq!(names, expected, "{last_causes:?} {held:?}");
    }
}

type Change = fn(&mut Situation);

#[test]
fn taxpayers_are_said_to_be_told_of_a_recorded_outage_and_of_no_other() {
    const TOLD: &str = "Taxpayers that subscribed are told.";
    let changes: [(Change, bool); 5] = [
        (|situation| situation.authority.is_silent = true, false),
        (
            |situation| {
                situation.authority.held_operations = vec!["sign"];
                situation.authority.last_causes = vec![("sign", UpstreamCause::BadAnswer)];
            },
            false,
        ),
        (
            |situation| work(situation).outage_since = Some(situation_time()),
            true,
        ),
        (
            |situation| {
                work(situation).outage_since = Some(situation_time());
                situation.authority.calls = vec![slow_calls(2)];
            },
            true,
        ),
        (
            |situation| {
                work(situation).outage_since = Some(situation_time());
                situation.authority.held_operations = vec!["sign"];
                situation.authority.last_causes = vec![("sign", UpstreamCause::Connect)];
                situation.authority.receivers_unreachable = 3;
            },
            true,
        ),
    ];
    for (change, is_told) in changes {
        let mut situation = Situation::calm();
        change(&mut situation);
        let found = find_all(&situation);
        let [("authority-out", finding)] = found.as_slice() else {
            panic!("{found:?}");
        };
        let summary = &finding.summary;
        assert_eq!(summary.ends_with(TOLD), is_told, "{summary}");
        assert_eq!(summary.matches("told").count(), usize::from(is_told));
    }
    assert!(INCIDENTS.iter().all(|kind| !kind.effect.contains(TOLD)));
}

#[test]
fn what_the_data_knows_is_the_beginning_of_an_incident() {
    let since = situation_time() - SignedDuration::from_mins(7);
    let group = CountAndOldest {
        count: 2,
        since: Some(since),
    };
    let mut situation = Situation::calm();
    situation.authority.tripped_operations = vec![("sign", Some(since))];
    work(&mut situation).differences = vec![
        ("missing_remotely".to_owned(), group),
        ("state_differs".to_owned(), group),
    ];
    let found = find_all(&situation);
    let begun: Vec<_> = found
        .iter()
        .map(|(name, finding)| (*name, finding.since))
        .collect();
    let expected = [
        "invoices-missing-remotely",
        "breaker-tripped",
        "ledger-differs",
    ];
    assert_eq!(begun, expected.map(|name| (name, Some(since))));
}

#[test]
fn a_key_that_was_once_refused_does_not_hide_that_the_probes_fail() {
    use UpstreamCause::{Connect, Credentials, Tls};
    // The causes of the last calls, whether the probes fail, and the incidents.
    let cases: [(&[UpstreamCause], bool, &[&str]); 7] = [
        (&[], true, &["authority-out"]),
        (&[Credentials], true, &["authority-out"]),
        (&[Credentials, Connect], true, &["authority-out"]),
        (&[Tls], true, &["authority-tls"]),
        (&[Credentials, Tls], true, &["authority-tls"]),
        (&[Credentials], false, &[]),
        (&[Tls], false, &["authority-tls"]),
    ];
    for (last_causes, is_silent, expected) in cases {
        let mut situation = Situation::calm();
        situation.authority.is_silent = is_silent;
        situation.authority.last_causes =
            last_causes.iter().map(|cause| ("sign", *cause)).collect();
        let found = find_all(&situation);
        let names: Vec<_> = found.iter().map(|(name, _)| *name).collect();
        assert_eq!(names, expected, "{:?}", situation.authority.last_causes);
    }
}

#[test]
fn a_list_that_was_never_fetched_is_missing_after_an_hour() {
    let fresh = situation_time();
    let old = fresh - SignedDuration::from_hours(25);
    // The lists that were never fetched, the time of the oldest other one, the minutes since the start, and the count.
    for (missing, fetched_at, minutes, count) in [
        (0, Some(fresh), 61, None),
        (0, None, 61, None),
        (11, None, 59, None),
        (11, None, 60, Some(11)),
        (1, Some(fresh), 59, None),
        (1, Some(fresh), 60, Some(1)),
        (2, Some(old), 59, Some(1)),
        (2, Some(old), 60, Some(1)),
    ] {
        let mut situation = Situation::calm();
        work(&mut situation).missing_lists = missing;
        work(&mut situation).oldest_list_fetched_at = fetched_at;
        let ago = SignedDuration::from_mins(minutes);
        situation.replicas = replica_list(ago, ReplicaFigures::default());
        situation.replicas.replicas.truncate(1);
        let found = find_all(&situation);
        let counts: Vec<_> = found
            .iter()
            .map(|(name, finding)| (*name, finding.count))
            .collect();
        let expected = count.map(|count| ("reference-lists-old", count));
        assert_eq!(counts, Vec::from_iter(expected), "{missing} {minutes}");
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

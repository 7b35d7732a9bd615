//! Claims for the probes of blocked steps. A probe is a trial call of a step that is blocked. One lane is claimed for
//! each, and the other lanes that need the step stay unclaimed in the queue.

use std::collections::HashSet;

use database::StoreError;
use sea_orm::sea_query::{Expr, ExprTrait, Query, SelectStatement};
use sea_orm::{ConnectionTrait, QueryResult, Value};

use crate::store::Store;
use crate::store::lanes::LaneKind;
use crate::store::lanes::claim::{self, ClaimRequest, ClaimedLane, FoundLane};
use crate::store::lanes::fair_queue::{BlockedStep, statement_with_parameters};

/// A probe that may start now: the work of one lane may call the step, although it is blocked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DueProbe {
    pub step: &'static str,
    /// The taxpayers of which one makes the probe; `None` for all taxpayers.
    pub taxpayers: Option<Vec<i64>>,
    /// The taxpayers and the integrators whose lanes do not make the probe.
    pub except_taxpayers: Vec<i64>,
    pub except_integrators: Vec<i64>,
}

/// The lanes that were claimed for probes.
#[derive(Debug, Default)]
pub struct ClaimedProbes {
    pub lanes: Vec<ClaimedLane>,
    /// The steps of the lanes that were found, also of those that another process has claimed first.
    pub found_steps: HashSet<String>,
}

impl DueProbe {
    /// True if the lanes of this taxpayer may make the probe, unless its integrator is excepted.
    fn may_be_made_by(&self, taxpayer: i64) -> bool {
        let taxpayers = self.taxpayers.as_ref();
        taxpayers.is_none_or(|taxpayers| taxpayers.contains(&taxpayer))
            && !self.except_taxpayers.contains(&taxpayer)
    }

    /// Returns the SQL condition that a lane may make the probe.
    fn lane_condition(&self) -> String {
        let mut conditions = vec![format!("lanes.next_step = '{}'", self.step)];
        if let Some(taxpayers) = &self.taxpayers {
            conditions.push(match taxpayers.as_slice() {
                [] => "1 = 0".to_owned(),
                ids => format!("lanes.taxpayer_id IN ({})", comma_separated(ids)),
            });
        }
        if !self.except_taxpayers.is_empty() {
            let ids = comma_separated(&self.except_taxpayers);
            conditions.push(format!("lanes.taxpayer_id NOT IN ({ids})"));
        }
        if !self.except_integrators.is_empty() {
            let ids = comma_separated(&self.except_integrators);
            conditions.push(format!(
                "NOT EXISTS (SELECT 1 FROM taxpayers WHERE taxpayers.id = lanes.taxpayer_id \
                 AND taxpayers.integrator_id IN ({ids}))"
            ));
        }
        conditions.join(" AND ")
    }
}

/// Claims one lane for each probe, up to `limit` lanes: the lane that has been due longest or, if none is due, the lane
/// that is due next. So a breaker is probed although all its runs wait for a later attempt.
pub async fn claim_probes(
    store: &Store,
    request: &ClaimRequest<'_>,
    probes: &[DueProbe],
) -> Result<ClaimedProbes, StoreError> {
    if probes.is_empty() || request.limit == 0 {
        return Ok(ClaimedProbes::default());
    }
    let values = [Value::from(request.kind.as_str())];
    let sql = probe_lanes_sql(request, probes);
    let rows = store
        .reader()
        .query_all_raw(statement_with_parameters(store, sql, values))
        .await?;
    let found: Vec<FoundLane> = rows
        .iter()
        .map(FoundLane::try_from)
        .collect::<Result<_, _>>()?;
    if found.is_empty() {
        return Ok(ClaimedProbes::default());
    }
    let free = select_unleased(request.kind, &found);
    Ok(ClaimedProbes {
        found_steps: rows.iter().map(next_step).collect::<Result<_, _>>()?,
        lanes: claim::claim_still_free(store, request, found, free).await?,
    })
}

/// Returns the steps that stay blocked if all who may make a probe now are let through. A step that is blocked for all
/// stays so if some integrators may make no probe: a lane of theirs would be claimed again and again.
pub fn let_probes_through(blocked: Vec<BlockedStep>, probes: &[DueProbe]) -> Vec<BlockedStep> {
    blocked
        .into_iter()
        .map(|entry| {
            let of_step = probes.iter().filter(|probe| probe.step == entry.step);
            of_step.fold(entry.clone(), let_probe_through)
        })
        .collect()
}

fn let_probe_through(blocked: BlockedStep, probe: &DueProbe) -> BlockedStep {
    let taxpayers = match (blocked.taxpayers, &probe.taxpayers) {
        (Some(held), _) => Some(
            held.into_iter()
                .filter(|id| !probe.may_be_made_by(*id))
                .collect(),
        ),
        (None, None) if probe.except_integrators.is_empty() => Some(probe.except_taxpayers.clone()),
        (None, _) => None,
    };
    BlockedStep {
        step: blocked.step,
        taxpayers,
    }
}

/// Builds the query for the lanes, one part for each probe. Each part reads the lanes in the order in which they are
/// due, from the index of due lanes.
fn probe_lanes_sql(request: &ClaimRequest<'_>, probes: &[DueProbe]) -> String {
    let share = request.share.below_limit_condition();
    let parts = probes.iter().take(request.limit).enumerate().map(|(number, probe)| {
        format!(
            "SELECT * FROM (SELECT lanes.taxpayer_id, lanes.key, lanes.next_step FROM lanes \
             WHERE lanes.kind = $1 AND lanes.next_due_at IS NOT NULL AND lanes.lease_until IS NULL AND {}{share} \
             ORDER BY lanes.next_due_at LIMIT 1) AS probe{number}",
            probe.lane_condition()
        )
    });
    parts.collect::<Vec<_>>().join(" UNION ALL ")
}

/// Selects those of the found lanes that nobody has claimed meanwhile, also those that are not due yet.
fn select_unleased(kind: LaneKind, found: &[FoundLane]) -> SelectStatement {
    let keys = found.iter().map(|lane| lane.key.as_str());
    Query::select()
        .column("key")
        .from("lanes")
        .and_where(Expr::col("kind").eq(kind.as_str()))
        .and_where(Expr::col("key").is_in(keys))
        .and_where(Expr::col("next_due_at").is_not_null())
        .and_where(Expr::col("lease_until").is_null())
        .to_owned()
}

fn next_step(row: &QueryResult) -> Result<String, StoreError> {
    Ok(row.try_get("", "next_step")?)
}

fn comma_separated(ids: &[i64]) -> String {
    let ids: Vec<_> = ids.iter().map(ToString::to_string).collect();
    ids.join(", ")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::store::lanes::claim::{FairShare, ROUND_START};
    use crate::store::lanes::leases::{self, LaneRelease};
    use crate::store::lanes::{self, QueuedLane};
    use crate::store::testing::{self, add_taxpayer, query_plan, stores};

    const LEASE: Duration = Duration::from_secs(30);

    fn probe(step: &'static str) -> DueProbe {
        DueProbe {
            step,
            taxpayers: None,
            except_taxpayers: Vec::new(),
            except_integrators: Vec::new(),
        }
    }

    fn request(limit: usize) -> ClaimRequest<'static> {
        ClaimRequest {
            kind: LaneKind::Run,
            owner: "me",
            lease: LEASE,
            limit,
            after_taxpayer: ROUND_START,
            blocked: &[],
            share: FairShare::without_limits(),
        }
    }

    async fn add(store: &Store, steps: &[(i64, &'static str)]) {
        let lanes: Vec<_> = steps
            .iter()
            .map(|(taxpayer_id, step)| QueuedLane {
                key: format!("{taxpayer_id}/{step}"),
                taxpayer_id: *taxpayer_id,
                deadline: *taxpayer_id,
                next_step: Some(*step),
            })
            .collect();
        let tx = store.begin().await.unwrap();
        lanes::enqueue(&tx, LaneKind::Run, &lanes).await.unwrap();
        tx.commit().await.unwrap();
    }

    /// Claims the probes and returns the keys of their lanes. The lanes are then free again and due.
    async fn claimed_keys(store: &Store, limit: usize, probes: &[DueProbe]) -> Vec<String> {
        let claimed = claim_probes(store, &request(limit), probes).await.unwrap();
        let leases: Vec<_> = claimed
            .lanes
            .into_iter()
            .map(|one| one.lane.lease)
            .collect();
        let releases = leases.iter().map(|lease| LaneRelease {
            next_step: Some(if lease.key.ends_with("sign") {
                "sign"
            } else {
                "send"
            }),
            ..LaneRelease::new(lease, Some(Duration::ZERO))
        });
        let tx = store.begin().await.unwrap();
        leases::release(&tx, &releases.collect::<Vec<_>>())
            .await
            .unwrap();
        tx.commit().await.unwrap();
        let mut keys: Vec<_> = leases.into_iter().map(|lease| lease.key).collect();
        keys.sort();
        keys
    }

    #[tokio::test]
    async fn each_probe_is_made_by_one_lane_of_those_who_may_make_it() {
        for test in stores().await {
            let store = &test.store;
            for (taxpayer, integrator) in [(1, 1), (2, 2), (3, 2)] {
                add_taxpayer(store, taxpayer, integrator).await;
            }
            add(store, &[(1, "sign"), (1, "send"), (2, "sign"), (3, "sign")]).await;
            let sign = probe("sign");
            let only = DueProbe {
                taxpayers: Some(vec![3]),
                ..sign.clone()
            };
            let of_nobody = DueProbe {
                taxpayers: Some(Vec::new()),
                ..sign.clone()
            };
            let unpaused = DueProbe {
                except_taxpayers: vec![1, 2],
                ..sign.clone()
            };
            let unfailed = DueProbe {
                except_integrators: vec![2],
                ..sign.clone()
            };
            for (probes, keys) in [
                (vec![probe("send")], vec!["1/send"]),
                (vec![probe("confirm")], vec![]),
                (vec![only.clone()], vec!["3/sign"]),
                (vec![of_nobody], vec![]),
                (vec![unpaused], vec!["3/sign"]),
                (vec![unfailed.clone()], vec!["1/sign"]),
                // Two operations at once, and two payers of one operation.
                (vec![probe("send"), only.clone()], vec!["1/send", "3/sign"]),
                (vec![unfailed, only], vec!["1/sign", "3/sign"]),
            ] {
                let claimed = claimed_keys(store, 8, &probes).await;
                assert_eq!(claimed, keys, "{probes:?}");
            }
            assert_eq!(claimed_keys(store, 8, &[sign]).await.len(), 1);
            let both = [probe("send"), probe("sign")];
            assert_eq!(claimed_keys(store, 1, &both).await.len(), 1, "one slot");
        }
    }

    #[tokio::test]
    async fn if_no_lane_is_due_the_next_one_makes_the_probe() {
        for test in stores().await {
            let store = &test.store;
            add(store, &[(1, "sign"), (2, "sign")]).await;
            let all = testing::claim_due(store, LaneKind::Run, "me", LEASE, 8)
                .await
                .unwrap();
            let releases = all.iter().map(|lease| {
                let minutes = if lease.key == "1/sign" { 9 } else { 5 };
                LaneRelease {
                    next_step: Some("sign"),
                    ..LaneRelease::new(lease, Some(Duration::from_mins(minutes)))
                }
            });
            let tx = store.begin().await.unwrap();
            leases::release(&tx, &releases.collect::<Vec<_>>())
                .await
                .unwrap();
            tx.commit().await.unwrap();
            let claimed = claim_probes(store, &request(8), &[probe("sign")])
                .await
                .unwrap();
            let keys: Vec<_> = claimed
                .lanes
                .iter()
                .map(|one| one.lane.lease.key.as_str())
                .collect();
            assert_eq!(keys, ["2/sign"]);
            assert!(claimed.found_steps.contains("sign"));
            let again = claim_probes(store, &request(8), &[probe("confirm")])
                .await
                .unwrap();
            assert!(again.found_steps.is_empty());
        }
    }

    #[tokio::test]
    async fn a_probe_reads_the_lanes_in_the_order_of_their_due_times() {
        // SQLite only: PostgreSQL goes by its statistics, and knows no rows here.
        for test in stores().await.into_iter().take(1) {
            let sql = probe_lanes_sql(&request(8), &[probe("sign"), probe("send")]);
            let values = [Value::from(LaneKind::Run.as_str())];
            let plan = query_plan(&test.store, &sql, values).await.join("\n");
            assert_eq!(
                plan.matches("USING INDEX lanes_due (kind=?").count(),
                2,
                "{plan}"
            );
            assert!(!plan.contains("TEMP B-TREE"), "{plan}");
        }
    }

    #[test]
    fn those_who_may_make_a_probe_are_let_through() {
        let blocked = |taxpayers: Option<&[i64]>| BlockedStep {
            step: "sign",
            taxpayers: taxpayers.map(<[i64]>::to_vec),
        };
        let other = probe("send");
        let of_two = DueProbe {
            taxpayers: Some(vec![1, 2]),
            except_taxpayers: vec![2],
            ..probe("sign")
        };
        let of_all = DueProbe {
            except_taxpayers: vec![7],
            ..probe("sign")
        };
        let of_unfailed = DueProbe {
            except_integrators: vec![2],
            ..of_all.clone()
        };
        for (before, probe, after) in [
            (blocked(None), &other, blocked(None)),
            (blocked(None), &of_all, blocked(Some(&[7]))),
            (blocked(None), &of_unfailed, blocked(None)),
            (blocked(Some(&[1, 7])), &of_all, blocked(Some(&[7]))),
            (blocked(None), &of_two, blocked(None)),
            (blocked(Some(&[1, 2, 3])), &of_two, blocked(Some(&[2, 3]))),
        ] {
            let left = let_probes_through(vec![before.clone()], std::slice::from_ref(probe));
            assert_eq!(left, [after], "{before:?} {probe:?}");
        }
    }
}

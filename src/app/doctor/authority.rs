//! The checks of the authority. They make only calls that change nothing at the authority.

use std::io;
use std::sync::Arc;

use authority_client::{Authority, AuthorityFailure, Cause, CauseKind, HealthAnswer};
use jiff::Timestamp;
use timing::clock::{SharedClock, SystemClock};
use tokio::net::lookup_host;

use crate::app::authority_connection::remote_client;
use crate::app::doctor::report::CheckResult;
use crate::app::doctor::waits::{REMOTE_WAIT, run_within};
use crate::config::Settings;

const NAME: &str = "authority-name";
const HEALTH: &str = "authority";
const KEY: &str = "authority-key";
const CLOCK: &str = "authority-clock";
/// An IRN that no invoice has. A request for it changes nothing, but shows whether our API key is valid: only with a
/// valid key does the authority answer that there is no such invoice.
const UNUSED_IRN: &str = "DOCTOR-00000000-20000101";

pub(super) async fn check(settings: &Settings) -> Vec<CheckResult> {
    let clock: SharedClock = Arc::new(SystemClock);
    let authority = match remote_client(settings, &clock) {
        Ok(Some(authority)) => authority,
        Ok(None) => return vec![CheckResult::ok(HEALTH, "the simulator in the service")],
        Err(error) => {
            return vec![
                CheckResult::fail(HEALTH, error.to_string())
                    .advise("correct the settings of [authority]"),
            ];
        }
    };
    let entity = settings.authority.entity_id.as_str();
    let entity = Some(entity).filter(|id| !id.is_empty());
    let health = async {
        let answer = authority.check_health().await;
        judge_health(answer, clock.now())
    };
    let (name, health, key) = tokio::join!(
        run_within(REMOTE_WAIT, NAME, async {
            vec![check_host_name(settings).await]
        }),
        run_within(REMOTE_WAIT, HEALTH, health),
        run_within(REMOTE_WAIT, KEY, async {
            vec![check_api_key(&authority, entity).await]
        }),
    );
    [name, health, key].concat()
}

async fn check_host_name(settings: &Settings) -> CheckResult {
    let url = settings.authority.base_url.as_ref();
    let host = url.and_then(|url| Some((url.host_str()?, url.port_or_known_default()?)));
    let Some((host, port)) = host else {
        return CheckResult::fail(NAME, "authority.base_url names no host")
            .advise("set authority.base_url");
    };
    // In a URL, an IPv6 address stands in brackets.
    let name = host.trim_matches(['[', ']']);
    let addresses = lookup_host((name, port)).await;
    judge_host_name(host, addresses.map(Iterator::count))
}

fn judge_host_name(host: &str, addresses: io::Result<usize>) -> CheckResult {
    let problem = match addresses {
        Ok(1) => return CheckResult::ok(NAME, format!("{host} has 1 address")),
        Ok(0) => "it has no address".to_owned(),
        Ok(count) => return CheckResult::ok(NAME, format!("{host} has {count} addresses")),
        Err(error) => error.to_string(),
    };
    CheckResult::fail(NAME, format!("{host} does not resolve: {problem}"))
        .advise("check authority.base_url and the name server of this machine")
}

/// Returns the results for the health of the authority and for its clock, which was read at `now`.
fn judge_health(answer: Result<HealthAnswer, Cause>, now: Timestamp) -> Vec<CheckResult> {
    let answer = match answer {
        Ok(answer) => answer,
        Err(cause) => {
            return vec![CheckResult::fail(HEALTH, cause.to_string()).advise(advice_for(&cause))];
        }
    };
    let health = if answer.is_healthy {
        CheckResult::ok(HEALTH, "answers, and says that it is healthy")
    } else {
        CheckResult::warn(HEALTH, "answers, and does not say that it is healthy")
            .advise("check that authority.base_url is the authority's; otherwise wait, or call the authority")
    };
    let clock = match answer.clock_time {
        Some(authority_time) => {
            CheckResult::from_clock_offset(CLOCK, authority_time.duration_since(now))
        }
        None => CheckResult::ok(CLOCK, "not known: its answers have no date"),
    };
    vec![health, clock]
}

fn advice_for(cause: &Cause) -> &'static str {
    match cause.kind() {
        CauseKind::Untrusted => {
            "check its certificate; set authority.extra_ca_file if its issuer is not a public one"
        }
        CauseKind::KeyRefused => "set authority.api_key and authority.api_secret to a valid pair",
        CauseKind::Redirected => "set authority.base_url to the address that it points to",
        CauseKind::Unreachable | CauseKind::TimedOut | CauseKind::ConnectionReset => {
            "check authority.base_url, and the network and firewalls between here and there"
        }
        CauseKind::Malformed | CauseKind::Down | CauseKind::Ambiguous | CauseKind::Offline => {
            "check that authority.base_url is the authority's; otherwise wait, or call the authority"
        }
    }
}

/// Checks the API key with a call that has no effect: asks for our entity or, if its id is not set, for an invoice that
/// does not exist.
async fn check_api_key(authority: &Authority, entity: Option<&str>) -> CheckResult {
    match entity {
        Some(id) => judge_key(authority.fetch_entity(id).await.map(drop), true),
        None => judge_key(authority.confirm(UNUSED_IRN).await.map(drop), false),
    }
}

fn judge_key(answer: Result<(), AuthorityFailure>, is_entity_request: bool) -> CheckResult {
    match answer {
        Err(AuthorityFailure::NotFound { .. }) if is_entity_request => CheckResult::warn(
            KEY,
            "accepted; but the authority does not know authority.entity_id",
        )
        .advise("set authority.entity_id to the id that the authority gave"),
        Ok(()) | Err(AuthorityFailure::NotFound { .. } | AuthorityFailure::Refused { .. }) => {
            CheckResult::ok(KEY, "accepted")
        }
        Err(failure) => {
            let cause = failure.cause();
            let is_refused = cause.is_some_and(|cause| cause.kind() == CauseKind::KeyRefused);
            let advice = cause.map_or("try again later", advice_for);
            if is_refused {
                return CheckResult::fail(KEY, "not accepted").advise(advice);
            }
            CheckResult::warn(KEY, format!("not known: {failure}")).advise(advice)
        }
    }
}

#[cfg(test)]
mod tests {
    use authority_client::testing::{Behaviour, Server, http};

    use super::*;
    use crate::app::doctor::report::Verdict;

    #[test]
    fn a_name_needs_an_address() {
        let judge = |addresses| judge_host_name("authority.example", addresses).result;
        assert_eq!([judge(Ok(1)), judge(Ok(4))], [Verdict::Ok; 2]);
        let unknown = Err(io::Error::other("no such name"));
        assert_eq!([judge(Ok(0)), judge(unknown)], [Verdict::Fail; 2]);
    }

    #[tokio::test]
    async fn the_key_is_judged_by_the_answer_to_a_call_without_effect() {
        let refused = r#"{"code":400,"message":"unable to validate api key"}"#;
        for (status, body, entity, expected) in [
            (200, r#"{"data":{"businesses":[]}}"#, Some("e"), Verdict::Ok),
            (
                404,
                r#"{"message":"no such entity"}"#,
                Some("e"),
                Verdict::Warn,
            ),
            (404, r#"{"message":"no such invoice"}"#, None, Verdict::Ok),
            (400, r#"{"message":"the irn is odd"}"#, None, Verdict::Ok),
            (400, refused, None, Verdict::Fail),
            (401, "{}", Some("e"), Verdict::Fail),
            (503, "", None, Verdict::Warn),
        ] {
            let server = Server::json(status, body).await;
            let judged = check_api_key(&server.authority(), entity).await;
            assert_eq!(judged.result, expected, "{status} {body}: {judged}");
            let calls = server.received_requests();
            assert!(
                calls.iter().all(|call| call.starts_with("GET ")),
                "{calls:?}"
            );
        }
    }

    #[tokio::test]
    async fn health_and_clock_are_read_from_one_answer() {
        let now: Timestamp = "2015-10-21T07:28:00Z".parse().unwrap();
        for (date, body, expected) in [
            (
                "07:28:01",
                r#"{"healthy":true}"#,
                [Verdict::Ok, Verdict::Ok],
            ),
            (
                "07:28:31",
                r#"{"healthy":true}"#,
                [Verdict::Ok, Verdict::Warn],
            ),
            (
                "05:28:00",
                r#"{"healthy":false}"#,
                [Verdict::Warn, Verdict::Fail],
            ),
        ] {
            let date = format!("date: Wed, 21 Oct 2015 {date} GMT\r\n");
            let server = Server::start(Behaviour::Bytes(http(200, &date, body))).await;
            let checks = judge_health(server.authority().check_health().await, now);
            let results: Vec<_> = checks.iter().map(|check| check.result).collect();
            assert_eq!(results, expected, "{checks:?}");
        }
        let server = Server::start(Behaviour::Drop).await;
        let checks = judge_health(server.authority().check_health().await, now);
        assert_eq!(checks.len(), 1, "{checks:?}");
        assert_eq!(checks[0].result, Verdict::Fail);
    }
}

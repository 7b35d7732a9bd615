//! The log of the requests that accounts made. Every finder takes the account whose requests may be read.

use database::column::RowRef;
use database::insert::Insert;
use database::page::{self, Page};
use database::{StoreError, Transaction};
use jiff::Timestamp;
use sea_orm::sea_query::{Expr, ExprTrait};
use sea_orm::{
    ColumnTrait, Condition, EntityTrait, FromQueryResult, QueryFilter, QueryOrder, Select,
    Statement,
};
use uuid::Uuid;

use crate::domain::kernel::ids::{IntegratorId, TaxpayerId};
use crate::domain::request_log::{ErrorGroup, LoggedRequest};
use crate::store::Store;
use crate::store::old_rows::delete_before;
use crate::store::operations::request_log_row::{Column, Entity, Model};

/// The lowest HTTP status that counts as a failure.
const FAILURE_MIN: i64 = 400;
/// The maximum number of groups of failures that a list has.
const GROUPS_MAX: u64 = 100;
/// The maximum number of requests of an account, the newest ones, among which failures are counted. A large account has
/// millions, and their rows are long.
const COUNTED_MAX: u64 = 50_000;

/// The account that reads the log. It decides which requests may be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadingAccount {
    Taxpayer(TaxpayerId),
    /// The integrator, which may read its own requests and those of all its taxpayers.
    Integrator(IntegratorId),
}

/// The filter of the log. A field that is `None` does not filter.
#[derive(Debug, Clone, Default)]
pub struct RequestFilter {
    /// The lowest and the highest status to include.
    pub status: Option<(u16, u16)>,
    /// Only requests whose path begins with this text.
    pub path: Option<String>,
    pub route: Option<String>,
    pub method: Option<String>,
    pub error_code: Option<String>,
    pub request_id: Option<String>,
    pub since: Option<Timestamp>,
    pub taxpayer: Option<TaxpayerId>,
    /// Only requests that name this invoice, by its id or its IRN.
    pub invoice: Option<[String; 2]>,
}

impl ReadingAccount {
    fn condition(self) -> Condition {
        Condition::all().add(match self {
            Self::Taxpayer(id) => Column::TaxpayerId.eq(id.0),
            Self::Integrator(id) => Column::IntegratorId.eq(id.0),
        })
    }
}

impl RequestFilter {
    fn condition(self, reader: ReadingAccount) -> Condition {
        reader
            .condition()
            .add_option(self.status.map(|(lowest, highest)| {
                Column::Status.between(i64::from(lowest), i64::from(highest))
            }))
            .add_option(self.path.map(|path| path_begins_with(&path)))
            .add_option(self.route.map(|route| Column::Route.eq(route)))
            .add_option(self.method.map(|method| Column::Method.eq(method)))
            .add_option(self.error_code.map(has_failed_with))
            .add_option(self.request_id.map(|id| Column::RequestId.eq(id)))
            .add_option(
                self.since
                    .map(|since| Column::At.gte(since.as_microsecond())),
            )
            .add_option(self.taxpayer.map(|id| Column::TaxpayerId.eq(id.0)))
            .add_option(self.invoice.map(|names| Column::Invoice.is_in(names)))
    }
}

/// Returns the condition that a path begins with this text. It uses no LIKE, in which some characters of a path would
/// be wildcards.
fn path_begins_with(path: &str) -> Expr {
    let start = format!("substr(path, 1, {})", path.chars().count());
    ExprTrait::eq(Expr::cust(start), path)
}

/// Returns the condition that a request failed with this code. Only failures have a code. The condition on the status
/// must stay word for word that of the index `request_log_failed`. Without it, all requests of the account would be
/// read.
fn has_failed_with(code: String) -> Condition {
    Condition::all()
        .add(Column::ErrorCode.eq(code))
        .add(Expr::cust(format!("status >= {FAILURE_MIN}")))
}

/// A batch may be written twice, if the response to its first commit was lost. Requests that are stored already are
/// then not changed.
static APPEND: Insert<Entity> = Insert::with_conflict(|| "ON CONFLICT DO NOTHING".to_owned());

/// Writes a batch of requests in one transaction.
pub async fn append(store: &Store, requests: &[LoggedRequest]) -> Result<(), StoreError> {
    let tx: Transaction = store.begin().await?;
    APPEND
        .execute(&tx, requests.iter().map(Model::from))
        .await?;
    tx.commit().await
}

/// Loads one page of the matching requests, newest first, and the number of all matches.
pub async fn page_for_reader(
    store: &Store,
    reader: ReadingAccount,
    filter: RequestFilter,
    page: Page,
) -> Result<(Vec<LoggedRequest>, u64), StoreError> {
    let found = select_newest_first(filter, reader);
    page::load(store, found, page).await
}

/// Selects the matching requests, newest first. Few requests name an invoice: to find them, the order by `id || ''`
/// keeps SQLite from reading all requests of the account in the order of their ids. (`+id` would be an error in
/// PostgreSQL, because ids are texts.)
fn select_newest_first(filter: RequestFilter, reader: ReadingAccount) -> Select<Entity> {
    let order = if filter.invoice.is_some() {
        "id || ''"
    } else {
        "id"
    };
    let found = Entity::find().filter(filter.condition(reader));
    found.order_by_desc(Expr::cust(order))
}

pub async fn find_for_reader(
    store: &Store,
    reader: ReadingAccount,
    id: Uuid,
) -> Result<Option<LoggedRequest>, StoreError> {
    let row = Entity::find()
        .filter(reader.condition())
        .filter(Column::Id.eq(id.to_string()))
        .one(store.reader())
        .await?;
    row.map(LoggedRequest::try_from).transpose()
}

/// Counts the failures among the newest `COUNTED_MAX` requests by error code, method and route. The group with the
/// newest failure is first.
pub async fn error_groups_for_reader(
    store: &Store,
    reader: ReadingAccount,
) -> Result<Vec<ErrorGroup>, StoreError> {
    let (owner, id) = match reader {
        ReadingAccount::Taxpayer(id) => ("taxpayer_id", id.0),
        ReadingAccount::Integrator(id) => ("integrator_id", id.0),
    };
    let sql = format!(
        "SELECT error_code, method, route, COUNT(*) AS failures, MAX(at) AS last_at FROM \
         (SELECT error_code, method, route, at, status FROM request_log WHERE {owner} = $1 \
         ORDER BY id DESC LIMIT {COUNTED_MAX}) AS newest WHERE status >= {FAILURE_MIN} \
         GROUP BY error_code, method, route ORDER BY last_at DESC LIMIT {GROUPS_MAX}"
    );
    let statement = Statement::from_sql_and_values(store.backend(), sql, [id.into()]);
    let rows = GroupRow::find_by_statement(statement)
        .all(store.reader())
        .await?;
    rows.into_iter().map(ErrorGroup::try_from).collect()
}

#[derive(FromQueryResult)]
struct GroupRow {
    error_code: Option<String>,
    method: String,
    route: String,
    failures: i64,
    last_at: i64,
}

impl TryFrom<GroupRow> for ErrorGroup {
    type Error = StoreError;

    fn try_from(row: GroupRow) -> Result<Self, StoreError> {
        let at = RowRef {
            table: "request_log",
            id: "groups",
        };
        Ok(Self {
            error_code: row.error_code.unwrap_or_default(),
            method: row.method,
            route: row.route,
            count: u64::try_from(row.failures).map_err(|fault| at.corrupt(fault))?,
            last_at: at.moment(row.last_at)?,
        })
    }
}

/// Deletes up to `limit` requests that were made before this time, oldest first. Returns true if more may be left.
pub async fn sweep(store: &Store, before: Timestamp, limit: u64) -> Result<bool, StoreError> {
    delete_before::<Entity>(store, Column::Id, Column::At, before, limit).await
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use sea_orm::QueryTrait;
    use timing::clock;

    use super::*;
    use crate::domain::request_log::{LoggedBody, RequestOwner};
    use crate::store::testing::{query_plan, stores};

    const OWN: TaxpayerId = TaxpayerId(7);
    const INTEGRATOR: IntegratorId = IntegratorId(3);

    fn request(taxpayer: Option<TaxpayerId>, status: u16, second: u64) -> LoggedRequest {
        LoggedRequest {
            id: clock::new_id(),
            at: Timestamp::UNIX_EPOCH + Duration::from_secs(second),
            caller: RequestOwner {
                taxpayer,
                integrator: Some(INTEGRATOR),
            },
            request_id: format!("request-{second}"),
            method: "POST".into(),
            path: format!("/v1/tax-payers/invoices/1_{second}?x=%"),
            route: "/v1/tax-payers/invoices/{id}".into(),
            status,
            error_code: (status >= 400).then(|| "VALIDATION_FAILED".to_owned()),
            duration_ms: 12,
            key: "Production (…abcd)".into(),
            invoice: Some(second.to_string()),
            request: LoggedBody::from_json(b"{\"a\":1}", 7),
            response: LoggedBody::without_text(9),
        }
    }

    const ALL: Page = Page {
        number: 1,
        per_page: 10,
    };

    #[tokio::test]
    async fn each_reads_its_own_requests_and_an_integrator_those_of_its_taxpayers() {
        for test in stores().await {
            let requests = [
                request(Some(OWN), 201, 1),
                request(Some(TaxpayerId(8)), 422, 2),
                request(None, 200, 3),
                request(Some(OWN), 422, 4),
            ];
            append(&test.store, &requests).await.unwrap();
            append(&test.store, &requests[..1]).await.unwrap();
            let read = async |reader, filter| {
                let page = page_for_reader(&test.store, reader, filter, ALL).await;
                page.unwrap().0
            };
            let own = ReadingAccount::Taxpayer(OWN);
            let found = read(own, RequestFilter::default()).await;
            assert_eq!(found, [requests[3].clone(), requests[0].clone()]);
            let all = ReadingAccount::Integrator(INTEGRATOR);
            assert_eq!(read(all, RequestFilter::default()).await.len(), 4);
            let other = ReadingAccount::Integrator(IntegratorId(4));
            assert_eq!(read(other, RequestFilter::default()).await, []);
            let foreign = requests[1].id;
            assert_eq!(
                find_for_reader(&test.store, own, foreign).await.unwrap(),
                None
            );
            let seen = find_for_reader(&test.store, all, foreign).await.unwrap();
            assert_eq!(seen.as_ref(), Some(&requests[1]));
            test.store.close().await;
        }
    }

    #[tokio::test]
    async fn every_filter_finds_what_it_names_and_nothing_else() {
        for test in stores().await {
            let requests = [request(Some(OWN), 201, 1), request(Some(OWN), 422, 12)];
            append(&test.store, &requests).await.unwrap();
            let none = RequestFilter::default;
            let text = |text: &str| Some(text.to_owned());
            for (filter, expected) in [
                (
                    RequestFilter {
                        status: Some((400, 499)),
                        ..none()
                    },
                    &requests[1..],
                ),
                (
                    RequestFilter {
                        status: Some((201, 201)),
                        ..none()
                    },
                    &requests[..1],
                ),
                (
                    RequestFilter {
                        path: text("/v1/tax-payers/invoices/1_12?x=%"),
                        ..none()
                    },
                    &requests[1..],
                ),
                (
                    RequestFilter {
                        path: text("/v1/tax-payers/invoices/1%"),
                        ..none()
                    },
                    &[][..],
                ),
                (
                    RequestFilter {
                        route: text("/v1/tax-payers/invoices"),
                        ..none()
                    },
                    &[][..],
                ),
                (
                    RequestFilter {
                        method: text("PUT"),
                        ..none()
                    },
                    &[][..],
                ),
                (
                    RequestFilter {
                        error_code: text("VALIDATION_FAILED"),
                        ..none()
                    },
                    &requests[1..],
                ),
                (
                    RequestFilter {
                        request_id: text("request-1"),
                        ..none()
                    },
                    &requests[..1],
                ),
                (
                    RequestFilter {
                        since: Some(requests[1].at),
                        ..none()
                    },
                    &requests[1..],
                ),
                (
                    RequestFilter {
                        taxpayer: Some(TaxpayerId(8)),
                        ..none()
                    },
                    &[][..],
                ),
                (
                    RequestFilter {
                        invoice: Some(["1".into(), "IRN".into()]),
                        ..none()
                    },
                    &requests[..1],
                ),
            ] {
                let said = format!("{filter:?}");
                let found =
                    page_for_reader(&test.store, ReadingAccount::Taxpayer(OWN), filter, ALL).await;
                assert_eq!(found.unwrap().0, expected, "{said}");
            }
            test.store.close().await;
        }
    }

    #[tokio::test]
    async fn failures_are_counted_in_groups_and_old_requests_are_deleted() {
        for test in stores().await {
            let requests = [
                request(Some(OWN), 422, 1),
                request(Some(OWN), 422, 2),
                request(Some(OWN), 201, 3),
            ];
            append(&test.store, &requests).await.unwrap();
            let reader = ReadingAccount::Taxpayer(OWN);
            let groups = error_groups_for_reader(&test.store, reader).await.unwrap();
            let expected = ErrorGroup {
                error_code: "VALIDATION_FAILED".into(),
                method: "POST".into(),
                route: "/v1/tax-payers/invoices/{id}".into(),
                count: 2,
                last_at: requests[1].at,
            };
            assert_eq!(groups, [expected]);
            let before = requests[2].at;
            assert!(sweep(&test.store, before, 1).await.unwrap());
            assert!(!sweep(&test.store, before, 2).await.unwrap());
            let (left, _) = page_for_reader(&test.store, reader, RequestFilter::default(), ALL)
                .await
                .unwrap();
            assert_eq!(left, requests[2..]);
            test.store.close().await;
        }
    }

    #[tokio::test]
    async fn what_few_requests_have_is_found_without_a_look_at_all_requests() {
        let about_invoice = RequestFilter {
            invoice: Some(["1".into(), "IRN".into()]),
            ..RequestFilter::default()
        };
        let failed = RequestFilter {
            error_code: Some("VALIDATION_FAILED".into()),
            ..RequestFilter::default()
        };
        let failed_there = RequestFilter {
            status: Some((422, 422)),
            route: Some("/v1/tax-payers/invoices".into()),
            ..failed.clone()
        };
        // SQLite only: PostgreSQL's plan depends on the number of requests.
        for test in stores().await.into_iter().take(1) {
            for (filter, index) in [
                (about_invoice.clone(), "request_log_by_invoice"),
                (failed.clone(), "request_log_failed"),
                (failed_there.clone(), "request_log_failed"),
            ] {
                let query = select_newest_first(filter, ReadingAccount::Taxpayer(OWN));
                let query = query.build(test.store.backend());
                let values = query.values.map(|values| values.0).unwrap_or_default();
                let plan = query_plan(&test.store, &query.sql, values).await;
                assert!(plan.concat().contains(index), "{plan:?}");
            }
        }
    }
}

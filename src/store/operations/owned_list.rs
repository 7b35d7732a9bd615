//! The list of an integrator's taxpayers with what each of them needs, the worst first. One statement reads a page with
//! all its columns, and one the totals, so that the number of queries does not grow with the number of taxpayers.

use std::collections::HashMap;

use database::StoreError;
use database::column::{RowRef, contains_pattern_text};
use database::page::Page;
use database::sql::SqlOnce;
use jiff::Timestamp;
use sea_orm::{ConnectionTrait, QueryResult, Statement};

use crate::domain::events::endpoint_health::EndpointHealth;
use crate::domain::kernel::codes::words;
use crate::domain::kernel::ids::{IntegratorId, TaxpayerId};
use crate::domain::party::{Taxpayer, normal_form};
use crate::store::Store;
use crate::store::accounts::taxpayers;
use crate::store::invoices::list_query::{UNCANCELLED_CONDITION, UNSETTLED_CONDITION};
use crate::store::webhooks::endpoint_list::NEVER_PARKED_PATTERN;

words! {
    /// The reason for which an integrator may have to look at a taxpayer.
    TaxpayerNeed {
        Attention = "attention",
        Webhook = "webhook",
        Incomplete = "incomplete",
        Waiting = "waiting",
        Inactive = "inactive",
    }
}

/// The filter of the list, and the period whose invoices are counted as usage.
#[derive(Debug, Clone)]
pub struct OwnedTaxpayerList {
    pub integrator: IntegratorId,
    /// Only taxpayers with this text in name, tax number or email.
    pub search: Option<String>,
    /// Only taxpayers with this need; `None` for all.
    pub need: Option<TaxpayerNeed>,
    /// The start and the end of the period of usage. The end does not belong to it.
    pub usage: (Timestamp, Timestamp),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedTaxpayer {
    pub taxpayer: Taxpayer,
    /// The number of invoices that were rejected or have failed.
    pub attention: i64,
    /// The number of invoices that wait for the authority.
    pub waiting: i64,
    /// The worst health of the taxpayer's webhook endpoints; `None` if it has no endpoint.
    pub webhook: Option<EndpointHealth>,
    pub last_invoice_at: Option<Timestamp>,
    /// The number of invoices that were created within the period of usage.
    pub invoices: i64,
}

/// The totals of all taxpayers that match the search, whatever their needs are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OwnedTaxpayerTotals {
    pub taxpayers: i64,
    /// The number of taxpayers with invoices that need attention. `attention_invoices` is the number of these invoices.
    pub attention: i64,
    pub attention_invoices: i64,
    pub waiting: i64,
    pub waiting_invoices: i64,
    /// The number of taxpayers with a webhook endpoint that fails, is parked or is disabled.
    pub webhook: i64,
    /// The number of taxpayers that are not verified or lack a detail that invoices need.
    pub incomplete: i64,
    pub inactive: i64,
}

impl OwnedTaxpayerTotals {
    /// Returns the number of taxpayers with this need.
    pub fn count(&self, need: Option<TaxpayerNeed>) -> i64 {
        match need {
            None => self.taxpayers,
            Some(TaxpayerNeed::Attention) => self.attention,
            Some(TaxpayerNeed::Webhook) => self.webhook,
            Some(TaxpayerNeed::Incomplete) => self.incomplete,
            Some(TaxpayerNeed::Waiting) => self.waiting,
            Some(TaxpayerNeed::Inactive) => self.inactive,
        }
    }
}

impl TaxpayerNeed {
    fn condition(need: Option<Self>) -> &'static str {
        match need {
            None => "TRUE",
            Some(Self::Attention) => "attention > 0",
            Some(Self::Webhook) => "trouble > 0",
            Some(Self::Incomplete) => "incomplete > 0",
            Some(Self::Waiting) => "waiting > 0",
            Some(Self::Inactive) => "subscription = 'inactive'",
        }
    }
}

/// The order of the list: the taxpayers with the worst needs come first, and among equal ones the newest.
const ORDER: &str =
    "attention DESC, COALESCE(trouble, 0) DESC, incomplete DESC, waiting DESC, id DESC";

/// The states of an endpoint's health, the best first. The column `trouble` holds an index into this list.
const BY_TROUBLE: [EndpointHealth; 4] = [
    EndpointHealth::Working,
    EndpointHealth::Failing,
    EndpointHealth::Parked,
    EndpointHealth::Disabled,
];

/// True for a taxpayer `t` that is verified and lacks none of the details that `Taxpayer::missing_profile_fields`
/// checks. A detail that was never given is `NULL`, for which the condition is not true.
const COMPLETE_CONDITION: &str = "t.verification = 'verified' AND t.city <> '' AND t.state <> '' AND t.country <> '' \
     AND t.email <> '' AND t.business_id <> '' AND t.service_id <> ''";

/// Returns the SQL query for all taxpayers of the integrator `$1` whose search text matches the pattern `$2`.
fn matching_taxpayers_sql() -> String {
    let count = |statuses: &str| {
        format!("SUM(CASE WHEN authority_status IN ({statuses}) THEN 1 ELSE 0 END)")
    };
    format!(
        "SELECT t.id AS id, t.subscription AS subscription, COALESCE(i.attention, 0) AS attention, \
         COALESCE(i.waiting, 0) AS waiting, (SELECT MAX(CASE WHEN NOT is_active THEN 3 \
         WHEN failure_streak IS NULL THEN 0 WHEN failure_streak LIKE '{NEVER_PARKED_PATTERN}' THEN 1 ELSE 2 END) \
         FROM webhooks WHERE taxpayer_id = t.id OR owner_id = t.id) AS trouble, \
         CASE WHEN {COMPLETE_CONDITION} THEN 0 ELSE 1 END AS incomplete FROM taxpayers t \
         LEFT JOIN (SELECT taxpayer_id, {} AS attention, {} AS waiting FROM invoices \
         WHERE {UNSETTLED_CONDITION} AND {UNCANCELLED_CONDITION} AND taxpayer_id IN (SELECT id FROM taxpayers WHERE integrator_id = $1) \
         GROUP BY taxpayer_id) i ON i.taxpayer_id = t.id \
         WHERE t.integrator_id = $1 AND t.search_text LIKE $2 ESCAPE '\\'",
        count("'REJECTED', 'FAILED'"),
        count("'QUEUED', 'VALIDATED'"),
    )
}

fn page_sql(need: Option<TaxpayerNeed>) -> String {
    format!(
        "SELECT id, attention, waiting, CAST(trouble AS BIGINT) AS trouble, \
         (SELECT MAX(created_at) FROM invoices WHERE taxpayer_id = part.id) AS last_invoice_at, \
         (SELECT COUNT(*) FROM invoices WHERE taxpayer_id = part.id AND created_at >= $5 AND created_at < $6) \
         AS invoices FROM (SELECT * FROM ({}) AS listed WHERE {} ORDER BY {ORDER} LIMIT $3 OFFSET $4) AS part \
         ORDER BY {ORDER}",
        matching_taxpayers_sql(),
        TaxpayerNeed::condition(need),
    )
}

static TOTALS: SqlOnce = SqlOnce::new(|_| {
    let number =
        |name: &str, sum: &str| format!("CAST(COALESCE(SUM({sum}), 0) AS BIGINT) AS {name}");
    let columns: Vec<_> = TaxpayerNeed::ALL
        .iter()
        .map(|need| {
            let condition = TaxpayerNeed::condition(Some(*need));
            number(
                need.as_str(),
                &format!("CASE WHEN {condition} THEN 1 ELSE 0 END"),
            )
        })
        .collect();
    format!(
        "SELECT COUNT(*) AS taxpayers, {}, {}, {} FROM ({}) AS listed",
        number("attention_invoices", "attention"),
        number("waiting_invoices", "waiting"),
        columns.join(", "),
        matching_taxpayers_sql(),
    )
});

/// The query for up to two taxpayers of the integrator `$1` whose search text matches the pattern `$2`. The lines of a
/// search text are name, tax number and email. Taxpayers with a whole line that matches `$3` come first.
const SEARCHED_TAXPAYER: &str = "SELECT id, \
     CAST(CASE WHEN ('\n' || search_text || '\n') LIKE $3 ESCAPE '\\' THEN 1 ELSE 0 END AS BIGINT) AS is_exact \
     FROM taxpayers WHERE integrator_id = $1 AND search_text LIKE $2 ESCAPE '\\' \
     ORDER BY is_exact DESC, id DESC LIMIT 2";

impl OwnedTaxpayerList {
    /// Returns the LIKE pattern of the searched text. Without a search, it matches every text.
    fn search_pattern(&self) -> String {
        contains_pattern_text(&normal_form::fold_for_search(
            self.search.as_deref().unwrap_or_default(),
        ))
    }

    /// Loads one page of the taxpayers that match the filter, those with the worst needs first.
    pub async fn page(&self, store: &Store, page: Page) -> Result<Vec<ListedTaxpayer>, StoreError> {
        let number = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
        let values = [
            self.integrator.0.into(),
            self.search_pattern().into(),
            number(page.per_page).into(),
            number(page.offset()).into(),
            self.usage.0.as_microsecond().into(),
            self.usage.1.as_microsecond().into(),
        ];
        let backend = store.backend();
        let statement = Statement::from_sql_and_values(backend, page_sql(self.need), values);
        let rows = store.reader().query_all_raw(statement).await?;
        let ids = rows.iter().map(|row| row.try_get("", "id").map(TaxpayerId));
        let ids: Vec<_> = ids.collect::<Result<_, _>>()?;
        let mut known = taxpayers::find_by_ids(store.reader(), &ids).await?;
        let mut listed = Vec::with_capacity(rows.len());
        for (row, id) in rows.iter().zip(ids) {
            listed.extend(to_listed_taxpayer(row, id, &mut known)?);
        }
        Ok(listed)
    }

    /// Finds the taxpayer that is searched for: the one with exactly this name, tax number or email, or else the only
    /// one that matches. If several have this name, it is the newest of them.
    pub async fn find_searched_taxpayer(
        &self,
        store: &Store,
    ) -> Result<Option<TaxpayerId>, StoreError> {
        let text = normal_form::fold_for_search(self.search.as_deref().unwrap_or_default());
        let values = [
            self.integrator.0.into(),
            self.search_pattern().into(),
            contains_pattern_text(&format!("\n{text}\n")).into(),
        ];
        let statement = Statement::from_sql_and_values(store.backend(), SEARCHED_TAXPAYER, values);
        let rows = store.reader().query_all_raw(statement).await?;
        let Some(first) = rows.first() else {
            return Ok(None);
        };
        let is_exact = !text.is_empty() && first.try_get::<i64>("", "is_exact")? > 0;
        let id = first.try_get("", "id").map(TaxpayerId)?;
        Ok((is_exact || rows.len() == 1).then_some(id))
    }

    /// Computes the totals of the taxpayers that match the search.
    pub async fn totals(&self, store: &Store) -> Result<OwnedTaxpayerTotals, StoreError> {
        let backend = store.backend();
        let values = [self.integrator.0.into(), self.search_pattern().into()];
        let statement = Statement::from_sql_and_values(backend, TOTALS.get(backend), values);
        let Some(row) = store.reader().query_one_raw(statement).await? else {
            return Ok(OwnedTaxpayerTotals::default());
        };
        let number = |name: &str| row.try_get::<i64>("", name);
        Ok(OwnedTaxpayerTotals {
            taxpayers: number("taxpayers")?,
            attention: number("attention")?,
            attention_invoices: number("attention_invoices")?,
            waiting: number("waiting")?,
            waiting_invoices: number("waiting_invoices")?,
            webhook: number("webhook")?,
            incomplete: number("incomplete")?,
            inactive: number("inactive")?,
        })
    }
}

/// Converts a row; `None` if the taxpayer was deleted after the row was read.
fn to_listed_taxpayer(
    row: &QueryResult,
    id: TaxpayerId,
    known: &mut HashMap<TaxpayerId, Taxpayer>,
) -> Result<Option<ListedTaxpayer>, StoreError> {
    let Some(taxpayer) = known.remove(&id) else {
        return Ok(None);
    };
    let at = RowRef {
        table: "taxpayers",
        id: id.0,
    };
    let trouble: Option<i64> = row.try_get("", "trouble")?;
    let trouble = trouble.and_then(|number| usize::try_from(number).ok());
    let last: Option<i64> = row.try_get("", "last_invoice_at")?;
    Ok(Some(ListedTaxpayer {
        taxpayer,
        attention: row.try_get("", "attention")?,
        waiting: row.try_get("", "waiting")?,
        webhook: trouble.and_then(|number| BY_TROUBLE.get(number).copied()),
        last_invoice_at: last.map(|micros| at.moment(micros)).transpose()?,
        invoices: row.try_get("", "invoices")?,
    }))
}

#[cfg(test)]
mod tests {
    use sea_orm::DbBackend;

    use super::*;
    use crate::store::testing::{TestStore, add_taxpayer, query_plan, stores};

    const USAGE: (Timestamp, Timestamp) = (Timestamp::UNIX_EPOCH, Timestamp::MAX);

    async fn execute(test: &TestStore, sql: &str) {
        let tx = test.store.begin().await.unwrap();
        tx.execute_unprepared(sql).await.unwrap();
        tx.commit().await.unwrap();
    }

    /// Adds a taxpayer of an integrator, with this number of invoices in each of these states.
    async fn add(test: &TestStore, integrator: i64, id: i64, invoices: &[(&str, usize)]) {
        add_taxpayer(&test.store, id, integrator).await;
        let states = invoices
            .iter()
            .flat_map(|(state, count)| vec![*state; *count]);
        for (number, state) in states.enumerate() {
            let key = format!("{id}-{number}");
            execute(test, &format!(
                "INSERT INTO invoices (taxpayer_id, id, irn, irn_key, invoice_no, category, invoice_type, \
                 invoice_date, currency, customer, lines, status, payment_status, payable, paid, authority_status, \
                 qr_code, signed, extras, content_digest, created_at, updated_at) VALUES ({id}, {number}, '{key}', \
                 '{key}', '{key}', 'B2B', '380', '2026-01-01', 'NGN', '{{}}', '[]', 'approved', 'PENDING', '1', '0', \
                 '{state}', '', FALSE, '{{}}', '', {}, 1)",
                1_000_000 + number
            ))
            .await;
        }
    }

    /// Adds an endpoint with this key; `owner` is the taxpayer of an added one, else `NULL`.
    async fn add_webhook(test: &TestStore, key: i64, owner: &str, is_active: bool, streak: &str) {
        execute(test, &format!(
            "INSERT INTO webhooks (taxpayer_id, id, owner_id, url, enabled_events, is_active, secret, \
             previous_secrets, failure_streak, created_at, updated_at) VALUES ({key}, {key}, {owner}, \
             'https://x.example', '[]', {is_active}, '', '[]', {streak}, 1, 1)"
        ))
        .await;
    }

    fn list(need: Option<TaxpayerNeed>, search: Option<&str>) -> OwnedTaxpayerList {
        OwnedTaxpayerList {
            integrator: IntegratorId(7),
            search: search.map(str::to_owned),
            need,
            usage: USAGE,
        }
    }

    async fn ids(
        test: &TestStore,
        list: &OwnedTaxpayerList,
        number: u64,
        per_page: u64,
    ) -> Vec<i64> {
        let page = list
            .page(&test.store, Page { number, per_page })
            .await
            .unwrap();
        page.iter().map(|listed| listed.taxpayer.id.0).collect()
    }

    #[tokio::test]
    async fn the_worst_is_first_and_each_need_lists_its_own() {
        for test in stores().await {
            add(&test, 7, 1, &[("SUBMITTED", 3)]).await;
            add(&test, 7, 2, &[("REJECTED", 1), ("QUEUED", 1)]).await;
            add(&test, 7, 3, &[("REJECTED", 1), ("FAILED", 1)]).await;
            add(&test, 7, 4, &[("QUEUED", 2)]).await;
            // Nobody corrects cancelled invoices, and nobody waits for them.
            add(&test, 7, 5, &[("REJECTED", 2), ("QUEUED", 1)]).await;
            execute(
                &test,
                "UPDATE invoices SET status = 'cancelled' WHERE taxpayer_id = 5",
            )
            .await;
            add(&test, 7, 6, &[]).await;
            add(&test, 8, 9, &[("REJECTED", 9)]).await;
            add_webhook(&test, 5, "NULL", true, "NULL").await;
            // An added endpoint that is disabled is worse than one that fails.
            add_webhook(&test, -15, "5", false, "NULL").await;
            add_webhook(&test, 6, "NULL", true, "'{\"parked_until\":null}'").await;
            add_webhook(&test, 1, "NULL", true, "NULL").await;
            let order = [3, 2, 5, 6, 4, 1];
            assert_eq!(ids(&test, &list(None, None), 1, 9).await, order);
            assert_eq!(ids(&test, &list(None, None), 2, 4).await, order[4..]);
            for (need, expected) in [
                (TaxpayerNeed::Attention, vec![3, 2]),
                (TaxpayerNeed::Webhook, vec![5, 6]),
                (TaxpayerNeed::Incomplete, order.to_vec()),
                (TaxpayerNeed::Waiting, vec![2, 4]),
                (TaxpayerNeed::Inactive, vec![]),
            ] {
                assert_eq!(
                    ids(&test, &list(Some(need), None), 1, 9).await,
                    expected,
                    "{need}"
                );
            }
            assert_eq!(ids(&test, &list(None, Some("4")), 1, 9).await, [4]);
            assert_eq!(ids(&test, &list(None, Some("%")), 1, 9).await, [0; 0]);
            let totals = list(Some(TaxpayerNeed::Waiting), None)
                .totals(&test.store)
                .await
                .unwrap();
            let expected = OwnedTaxpayerTotals {
                taxpayers: 6,
                attention: 2,
                attention_invoices: 3,
                waiting: 2,
                waiting_invoices: 3,
                webhook: 2,
                incomplete: 6,
                inactive: 0,
            };
            assert_eq!(totals, expected);
            let page = Page {
                number: 1,
                per_page: 9,
            };
            let page = list(None, Some("1")).page(&test.store, page).await.unwrap();
            let facts = (page[0].invoices, page[0].webhook, page[0].last_invoice_at);
            let last = Timestamp::from_microsecond(1_000_002).unwrap();
            assert_eq!(facts, (3, Some(EndpointHealth::Working), Some(last)));
            test.store.close().await;
        }
    }

    #[tokio::test]
    async fn a_taxpayer_is_incomplete_until_it_is_verified_and_has_all_details() {
        for test in stores().await {
            add_taxpayer(&test.store, 1, 7).await;
            add_taxpayer(&test.store, 2, 7).await;
            let complete = "UPDATE taxpayers SET verification = 'verified', \
                            verification_reason = 'confirmed_by_operator', city = 'Lagos', state = 'LA', \
                            country = 'NG', email = '1', business_id = '1', service_id = '1' WHERE id = 1";
            for (change, expected) in [
                (None, vec![2]),
                (
                    Some("verification = 'pending', verification_reason = NULL"),
                    vec![2, 1],
                ),
                (Some("city = NULL"), vec![2, 1]),
                (Some("city = ''"), vec![2, 1]),
                (Some("state = NULL"), vec![2, 1]),
                (Some("country = ''"), vec![2, 1]),
                (Some("email = ''"), vec![2, 1]),
                (Some("business_id = ''"), vec![2, 1]),
                (Some("service_id = ''"), vec![2, 1]),
            ] {
                execute(&test, complete).await;
                if let Some(change) = change {
                    execute(
                        &test,
                        &format!("UPDATE taxpayers SET {change} WHERE id = 1"),
                    )
                    .await;
                }
                let list = list(Some(TaxpayerNeed::Incomplete), None);
                assert_eq!(ids(&test, &list, 1, 9).await, expected, "{change:?}");
                let totals = list.totals(&test.store).await.unwrap();
                let count = i64::try_from(expected.len()).unwrap();
                assert_eq!(totals.incomplete, count, "{change:?}");
            }
            test.store.close().await;
        }
    }

    #[tokio::test]
    async fn the_taxpayer_that_is_meant_is_found_among_however_many() {
        for test in stores().await {
            for id in 1..=60 {
                add_taxpayer(&test.store, id, 7).await;
                let text = format!("shop {id}\n10{id}\nno{id}@shop.example");
                let sql = format!("UPDATE taxpayers SET search_text = '{text}' WHERE id = {id}");
                execute(&test, &sql).await;
            }
            add_taxpayer(&test.store, 99, 8).await;
            for (search, meant) in [
                // A part of many others, which would all come before it on the list.
                (Some(" Shop 1"), Some(1)),
                (Some("101"), Some(1)),
                (Some("NO2@shop.example"), Some(2)),
                (Some("no33@"), Some(33)),
                (Some("shop"), None),
                (Some("shop _"), None),
                // Another integrator's.
                (Some("99"), None),
                (None, None),
            ] {
                let found = list(None, search)
                    .find_searched_taxpayer(&test.store)
                    .await
                    .unwrap();
                assert_eq!(found, meant.map(TaxpayerId), "{search:?}");
            }
            let only = OwnedTaxpayerList {
                integrator: IntegratorId(8),
                ..list(None, None)
            };
            let found = only.find_searched_taxpayer(&test.store).await.unwrap();
            assert_eq!(found, Some(TaxpayerId(99)), "it has no other");
            test.store.close().await;
        }
    }

    #[tokio::test]
    async fn a_page_looks_through_no_table_of_invoices() {
        for test in stores().await {
            // PostgreSQL goes by its statistics, and knows no rows here.
            if test.store.backend() == DbBackend::Sqlite {
                let values = vec![
                    7_i64.into(),
                    "%".into(),
                    25_i64.into(),
                    0_i64.into(),
                    0_i64.into(),
                    1_i64.into(),
                ];
                let sql = page_sql(None);
                let plan = query_plan(&test.store, &sql, values).await.join("\n");
                assert!(plan.contains("invoices_unsettled"), "{plan}");
                assert!(plan.contains("invoices_as_listed"), "{plan}");
                assert!(!plan.contains("SCAN invoices\n"), "{plan}");
            }
            test.store.close().await;
        }
    }
}

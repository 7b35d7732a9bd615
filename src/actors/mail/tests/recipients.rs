//! Tests of who is told: nobody who never chose a password, and everybody of an account with very many people.

use super::*;

#[tokio::test]
async fn who_never_chose_a_password_is_told_nothing() {
    let table = [
        ("contacts", OWNER, NoticeKind::KeyChanged),
        ("contacts", ACCOUNTANT, NoticeKind::InvoiceRejected),
        ("contacts", OWNER, NoticeKind::OutageStarted),
        ("integrators", INTEGRATOR, NoticeKind::EndpointDisabled),
    ];
    for (people, email, kind) in table {
        for (password, mails) in [("NULL", 0), ("'hash'", 1)] {
            for test in stores().await {
                let office = Office::new(test).await;
                office
                    .execute(&format!(
                        "UPDATE {people} SET password_hash = {password} WHERE email = '{email}'"
                    ))
                    .await;
                office.tell(kind, "X").await;
                office.pass(30).await;
                let told = office.mails_to(email).await;
                assert_eq!(told.len(), mails, "{kind} to {email}, {password}");
                office.test.store.close().await;
            }
        }
    }
}

/// One statement for all of them would have more values than either database takes.
#[tokio::test]
async fn an_account_with_very_many_people_holds_back_no_mail() {
    const PEOPLE: u64 = 4_400;
    for test in stores().await {
        let office = Office::new(test).await;
        office
            .execute(&format!(
                "WITH RECURSIVE numbers(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < {PEOPLE}) \
                 INSERT INTO contacts (taxpayer_id, id, first_name, last_name, email, email_key, password_hash, role, \
                 created_at, updated_at) SELECT 7, 100000 + n, 'Ada', 'Obi', 'p' || n || '@mill.example', \
                 'p' || n || '@mill.example', 'x', 'owner', 0, 0 FROM numbers"
            ))
            .await;
        office.tell(NoticeKind::EndpointDisabled, "X").await;
        office.pass(15).await;
        let one = Page {
            number: 1,
            per_page: 1,
        };
        let (_, count) = mails::page(&office.test.store, one).await.unwrap();
        // The first owner and the integrator are told, too.
        assert_eq!(count, PEOPLE + 2);
        office.test.store.close().await;
    }
}

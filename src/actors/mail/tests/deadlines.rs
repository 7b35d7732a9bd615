//! Mails about invoices whose state may have changed before the mail is written: near deadlines, and refusals.

use super::*;

#[tokio::test]
async fn an_invoice_that_stands_still_is_told_once_before_its_deadline() {
    for test in stores().await {
        let office = Office::new(test).await;
        for (id, state, operation, hours) in [
            ("a", "waiting", "submit", 3),
            ("b", "refused", "submit", 30),
            ("c", "succeeded", "submit", 3),
            ("d", "waiting", "transmit", 3),
            ("e", "paused", "submit", -1),
            ("f", "refused", "submit", 3),
        ] {
            office.add_run(id, state, operation, hours * 60).await;
        }
        office
            .add_invoice("f", "cancelled", "REJECTED", false)
            .await;
        office.pass(30).await;
        let mails = office.mails_to(ACCOUNTANT).await;
        assert_eq!(subjects(&mails), ["Invoice A-a is near its deadline"]);
        assert!(
            mails[0].letter.text.contains("It must be signed by"),
            "{}",
            mails[0].letter.text
        );
        office.pass(27 * 60).await;
        let mails = office.mails_to(ACCOUNTANT).await;
        assert_eq!(subjects(&mails)[1..], ["Invoice A-b is near its deadline"]);
        office.pass(24 * 60).await;
        assert_eq!(office.mails_to(ACCOUNTANT).await.len(), 2);
        office.test.store.close().await;
    }
}

#[tokio::test]
async fn no_deadline_waits_for_the_mail_about_an_earlier_one() {
    for test in stores().await {
        let office = Office::new(test).await;
        office.add_run("a", "waiting", "submit", 3 * 60).await;
        office.add_run("b", "waiting", "submit", 5 * 60).await;
        office.pass(2 * 60).await;
        assert_eq!(
            subjects(&office.mails_to(ACCOUNTANT).await),
            [
                "Invoice A-a is near its deadline",
                "Invoice A-b is near its deadline",
            ]
        );
        office.test.store.close().await;
    }
}

#[tokio::test]
async fn a_deadline_that_passed_while_notices_were_gathered_is_told_as_missed_or_not_at_all() {
    for test in stores().await {
        let office = Office::new(test).await;
        office.add_run("late", "waiting", "submit", 8).await;
        office.add_run("signed", "waiting", "submit", 8).await;
        office.pass(5).await;
        office
            .add_invoice("A-signed", "submitted", "SUBMITTED", true)
            .await;
        office.pass(25).await;
        assert_eq!(
            subjects(&office.mails_to(ACCOUNTANT).await),
            ["Invoice A-late missed its deadline"]
        );
        office.test.store.close().await;
    }
}

#[tokio::test]
async fn a_refusal_that_is_settled_when_the_mail_is_written_is_not_told() {
    let table = [
        ("draft", "REJECTED", false, 1),
        ("draft", "QUEUED", false, 1),
        ("cancelled", "REJECTED", false, 0),
        ("submitted", "SUBMITTED", true, 0),
        ("transmitted", "TRANSMITTED", true, 0),
        ("submitted", "FAILED", true, 1),
        ("transmitted", "ACKNOWLEDGED", true, 1),
    ];
    for (status, authority, is_signed, mails) in table {
        for test in stores().await {
            let office = Office::new(test).await;
            office.tell(NoticeKind::InvoiceRejected, "INV-1").await;
            office
                .add_invoice("INV-1", status, authority, is_signed)
                .await;
            office.pass(30).await;
            let told = office.mails_to(ACCOUNTANT).await;
            assert_eq!(told.len(), mails, "{status} {authority}");
            office.test.store.close().await;
        }
    }
}

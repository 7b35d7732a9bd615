//! The list of invoices, and the page of one.

use serde_json::json;
use testkit::documents::{self, submission};
use testkit::edit::with;
use testkit::{each_database, on_sqlite};

use super::{Account, assert_shows, post_seen};
use crate::support::world::World;

const HOSTILE: &str = r#"<script>alert("x")</script>'"&"#;
const ESCAPED: &str = "&#60;script&#62;alert(";

#[each_database]
async fn the_list_is_searched_and_filtered(world: &World) {
    let account = Account::new(world).await;
    let none = account.page("/invoices").await;
    assert_shows(&none, &["There is no invoice yet."]);
    let invoice = account.taxpayer.invoice(&documents::invoice()).await;
    let other = account.taxpayer.invoice(&documents::invoice()).await;
    let [no, other_no] =
        [&invoice, &other].map(|one| one["invoice_no"].as_str().unwrap().to_owned());
    account
        .taxpayer
        .set_status(&other, "approved")
        .await
        .expect_status(200);
    assert_shows(
        &account.page("/invoices").await,
        &[
            &no,
            &other_no,
            "NGN 1,075.00",
            "Draft",
            "NGN 2,150.00, of which paid 0.00",
        ],
    );
    let approved = account.page("/invoices?status=approved").await;
    assert!(
        approved.contains(&other_no) && !approved.contains(&no),
        "{approved}"
    );
    let found = account.page(&format!("/invoices?q={no}")).await;
    assert!(found.contains(&no) && !found.contains(&other_no), "{found}");
    let odd = account
        .page("/invoices?date_from=yesterday&status=banana")
        .await;
    assert_shows(
        &odd,
        &[
            "The Issued from field must be a date",
            "The Status field must be one of",
        ],
    );
    let page = account.page("/invoices?per_page=1").await;
    assert_shows(&page, &["per_page=1&#38;page=2", "1 / 2"]);
}

#[each_database]
async fn the_list_is_filtered_by_amounts_as_it_shows_them(world: &World) {
    let account = Account::new(world).await;
    let invoice = account.taxpayer.invoice(&documents::invoice()).await;
    let no = invoice["invoice_no"].as_str().unwrap();
    for (query, is_found) in [
        ("amount_min=1,000", true),
        ("amount_min=1%2C075.00&amount_max=+1%2C075+", true),
        ("amount_min=1,076", false),
    ] {
        let list = account.page(&format!("/invoices?{query}")).await;
        assert_eq!(list.contains(no), is_found, "{query}: {list}");
        let file = account.page(&format!("/invoices/files/csv?{query}")).await;
        assert_eq!(file.contains(no), is_found, "{query}: {file}");
    }
    let odd = account.page("/invoices?amount_min=1,5").await;
    assert_shows(
        &odd,
        &[
            "The Amount from field must be a number written like 1234.50",
            "name=\"amount_min\" value=\"1,5\"",
        ],
    );
}

#[on_sqlite]
async fn the_list_is_filtered_by_currency_with_its_totals_its_file_and_its_views(world: &World) {
    let account = Account::new(world).await;
    let dollars = with(&documents::invoice(), "currency", json!("USD"));
    let dollars = account.taxpayer.invoice(&dollars).await;
    let naira = account.taxpayer.invoice(&documents::invoice()).await;
    for (code, found, other) in [("USD", &dollars, &naira), ("NGN", &naira, &dollars)] {
        let query = format!("currency={code}&amount_min=1,000");
        let found = found["invoice_no"].as_str().unwrap();
        let other = other["invoice_no"].as_str().unwrap();
        let list = account.page(&format!("/invoices?{query}")).await;
        let file = account.page(&format!("/invoices/files/csv?{query}")).await;
        for page in [&list, &file] {
            assert!(
                page.contains(found) && !page.contains(other),
                "{code}: {page}"
            );
        }
        let total = format!("> invoice · {code} 1,075.00, of which");
        assert_shows(
            &list,
            &[&total, &format!("name=\"currency\" value=\"{code}\"")],
        );
        let view = [("name", code), ("filter", &*query)];
        let kept = account.post("/invoices/views", &view).await;
        kept.leads_to(&account.path(&format!("/invoices?currency={code}&amount_min=1%2C000")));
    }
    let odd = account.page("/invoices?currency=ngn").await;
    let sentence = "The Currency field must exist in currencies (did you mean NGN?).";
    assert_shows(&odd, &[sentence, "name=\"currency\" value=\"ngn\""]);
}

#[on_sqlite]
async fn a_page_shows_the_whole_document_and_escapes_it(world: &World) {
    let account = Account::new(world).await;
    let body = with(&documents::invoice(), "customer.name", json!(HOSTILE));
    let body = with(&body, "invoice_lines.0.item_name", json!(HOSTILE));
    let invoice = account.taxpayer.invoice(&body).await;
    let page = account.page(&format!("/invoices/{}", invoice["id"])).await;
    let irn = invoice["irn"].as_str().unwrap();
    assert_shows(
        &page,
        &[
            irn,
            ESCAPED,
            "1,000.00",
            "75.00",
            "1,075.00",
            "<td data-label=\"Tax\">VAT 7.5\u{a0}%</td>",
            "Provisional",
            "<svg class=\"qr\"",
        ],
    );
    assert_shows(&page, &["The invoice was created"]);
    let developer = account
        .page(&format!("/invoices/{}?tab=developer", invoice["id"]))
        .await;
    assert_shows(&developer, &[irn, "This invoice was not submitted."]);
    assert!(!developer.contains("<script>alert"), "{developer}");
    assert!(!page.contains("<script>alert"), "{page}");
    let list = account.page("/invoices").await;
    assert!(
        list.contains(ESCAPED) && !list.contains("<script>alert"),
        "{list}"
    );
    for odd in ["0", "x", "99999999999"] {
        account
            .owner
            .get(&account.path(&format!("/invoices/{odd}")))
            .await
            .expect(404);
    }
}

#[each_database]
async fn a_signed_invoice_shows_each_step(world: &World) {
    let account = Account::new(world).await;
    let invoice = account.taxpayer.invoice(&documents::invoice()).await;
    let body = submission(&account.taxpayer, invoice["invoice_no"].as_str().unwrap());
    account
        .taxpayer
        .app()
        .submit_to_the_end(&body)
        .await
        .expect_status(200);
    let path = format!("/invoices/{}", invoice["id"]);
    let page = account.page(&path).await;
    assert_shows(
        &page,
        &["Signed by the authority.", "Transmit", "Credit note"],
    );
    assert!(!page.contains(&format!("{path}/submit")), "{page}");
    let developer = account.page(&format!("{path}?tab=developer")).await;
    assert_shows(
        &developer,
        &["Check of the IRN: done", "Signature: done", "It is done."],
    );
}

#[each_database]
async fn a_refused_invoice_says_why_and_how_to_correct_it(world: &World) {
    let account = Account::new(world).await;
    let invoice = account.refused_invoice().await;
    let path = format!("/invoices/{}", invoice["id"]);
    let page = account.page(&path).await;
    assert_shows(
        &page,
        &[
            "why it was rejected",
            "Rejected",
            "Line 1, HSN code",
            "Suggest a correction",
        ],
    );
    let suggested = account
        .post(&format!("{path}/correction"), &[])
        .await
        .expect(200)
        .html;
    assert_shows(&suggested, &["Suggested correction"]);
}

#[each_database]
async fn an_accountant_approves_and_records_a_payment(world: &World) {
    let account = Account::new(world).await;
    let invoice = account.taxpayer.invoice(&documents::invoice()).await;
    let path = format!("/invoices/{}", invoice["id"]);
    let short = [("status", "cancelled"), ("remark", "x")];
    let refused = post_seen(&account, &path, "status", &short).await;
    let refused = refused.expect(422).html;
    assert_shows(
        &refused,
        &[
            "The remark field must be at least 3 characters.",
            "value=\"x\"",
        ],
    );
    let page = account.page(&path).await;
    assert_shows(&page, &["It can be paid once it is approved."]);
    assert!(!page.contains("Record a payment"), "{page}");
    let early = [("payment_status", "paid"), ("remark", "all of it")];
    let refused = account
        .post(&format!("{path}/payment"), &early)
        .await
        .expect(422)
        .html;
    assert_shows(
        &refused,
        &["The invoice must be approved before it can be paid; it is draft"],
    );
    let approve = [("status", "approved"), ("remark", "as agreed")];
    let changed = post_seen(&account, &path, "status", &approve).await;
    changed.leads_to(&account.path(&path));
    let part = [
        ("payment_status", "partial"),
        ("amount", "75.5"),
        ("reference", "R-1"),
        ("remark", "a part"),
    ];
    account
        .post(&format!("{path}/payment"), &part)
        .await
        .expect(303);
    let too_much = [
        ("payment_status", "partial"),
        ("amount", "5000"),
        ("reference", "R-2"),
        ("remark", "more"),
    ];
    let refused = account
        .post(&format!("{path}/payment"), &too_much)
        .await
        .expect(422)
        .html;
    assert_shows(&refused, &["left to pay of 1,075.00."]);
    let odd = [
        ("payment_status", "partial"),
        ("amount", "lots"),
        ("reference", "R-2"),
        ("remark", "more"),
    ];
    account
        .post(&format!("{path}/payment"), &odd)
        .await
        .expect(422);
    let page = account.page(&path).await;
    assert_shows(
        &page,
        &[
            "Partly paid",
            "75.5",
            "R-1",
            "999.50",
            "A payment of NGN 75.50 was recorded",
        ],
    );
    assert_eq!(
        account.taxpayer.reread(&invoice).await["payment_status"],
        "PARTIAL"
    );
}

#[each_database]
async fn the_filtered_list_and_a_batch_are_downloaded(world: &World) {
    let account = Account::new(world).await;
    let other = Account::new(world).await;
    let made = account
        .taxpayer
        .create_batch(&[
            documents::invoice(),
            documents::invoice_with_price("7", "1"),
        ])
        .await
        .expect_status(201);
    let page = account.page("/invoices?amount_max=7&sort=-payable").await;
    let links = ["csv", "xlsx"].map(|kind| {
        account.path(&format!(
            "/invoices/files/{kind}?amount_max=7&#38;sort=-payable"
        ))
    });
    assert_shows(&page, &links.each_ref().map(String::as_str));
    let file = account.page("/invoices/files/csv?amount_max=7").await;
    assert_eq!(file.lines().count(), 2, "{file}");
    assert!(file.starts_with("invoice_no,"), "{file}");
    let batch = made.data()["batch_no"].as_str().unwrap();
    let page = account.page(&format!("/batches/{batch}")).await;
    let path = format!("/batches/{batch}/files/csv");
    assert_shows(&page, &[&account.path(&path)]);
    let outcomes = account.page(&path).await;
    assert!(
        outcomes.starts_with("index,") && outcomes.lines().count() == 3,
        "{outcomes}"
    );
    for (path, status) in [
        ("/invoices/files/xlsx", 200),
        ("/invoices/files/pdf", 404),
        ("/invoices/files/csv?date_from=soon", 422),
    ] {
        account.owner.get(&account.path(path)).await.expect(status);
    }
    for path in ["/invoices/files/csv", &path] {
        other.owner.get(&account.path(path)).await.expect(404);
    }
    other.owner.get(&other.path(&path)).await.expect(404);
}

#[each_database]
async fn a_search_keeps_every_filter_and_each_without_a_field_can_be_removed(world: &World) {
    let account = Account::new(world).await;
    let own = account.taxpayer.invoice(&documents::invoice()).await;
    let other = with(&documents::invoice(), "customer.no", json!("C-4"));
    let other = with(&other, "customer.tin", json!("87654321-0004"));
    account.taxpayer.invoice(&other).await;
    let own_no = own["invoice_no"].as_str().unwrap();
    for (filter, value, chip) in [
        ("customer_no", "C-4", "Customer C-4"),
        ("batch_no", "B20260101-1", "Batch B20260101-1"),
        ("invoice_category", "B2C", "Category B2C"),
        ("overdue", "true", "Overdue"),
        ("refund_due", "true", "Refund due"),
        ("without_cancelled", "true", "Without cancelled ones"),
        ("updated_since", "2026-01-15", "Changed since 2026-01-15"),
    ] {
        let page = account
            .page(&format!("/invoices?{filter}={value}&q=a&sort=-payable"))
            .await;
        let others = format!("{}?q=a&#38;sort=-payable", account.path("/invoices"));
        assert_shows(
            &page,
            &[
                &format!(r#"<input type="hidden" name="{filter}" value="{value}">"#),
                r#"<input type="hidden" name="sort" value="-payable">"#,
                &format!(r#"<a href="{others}" aria-label="{chip}: remove this filter">"#),
            ],
        );
    }
    let page = account.page("/invoices?customer_no=C-4&q=INV").await;
    assert!(!page.contains(own_no), "{page}");
    let page = account.page("/invoices?q=a&sort=-payable").await;
    assert!(!page.contains("remove this filter"), "{page}");
}

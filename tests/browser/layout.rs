//! Nothing that a person must see whole is hidden, whatever the data: amounts, names from right to left, the columns after
//! a long text, and the labels of amounts on a phone.

use serde_json::json;
use testkit::documents;
use testkit::edit::{exact, with};
use testkit::roles::webhook;

use crate::every_page::Look;
use crate::person::Visitor;
use crate::run_alone;
use crate::support::account::{Account, PASSWORD};
use crate::support::world::World;

const ARABIC_NAME: &str = "شركة الخليج للتجارة العامة والمقاولات والنقل والخدمات اللوجستية المحدودة";

/// Returns the amounts that are wider than their cards.
const CUT_AMOUNTS: &str = "
    const cards = [...document.querySelectorAll('.cards .figure')];
    const cut = cards.filter((one) => one.scrollWidth > one.clientWidth);
    return cards.length ? cut.map((one) => one.textContent) : ['no amount'];";

/// Returns the names that are cut at their beginning.
const CUT_NAMES: &str = "
    const names = [...document.querySelectorAll('a.clip, td.rest')];
    const arabic = names.filter((one) => /^\\s*\\p{Script=Arabic}/u.test(one.textContent));
    const wrong = arabic.filter((one) => getComputedStyle(one).direction !== 'rtl');
    return arabic.length ? wrong.map((one) => one.textContent) : ['no name'];";

/// Returns the numbers of invoices and the names of customers whose end is hidden.
const CUT_ENDS: &str = "
    const names = [...document.querySelectorAll('a.number, table:not(.dense) a.clip')];
    const cut = names.filter((one) => one.scrollWidth > one.clientWidth + 1);
    return names.length ? cut.map((one) => one.textContent) : ['no name'];";

/// Returns the title of the current page if the navigation hides its entry. An edge may lie between two pixels.
const HIDDEN_PAGE: &str = "
    const current = document.querySelector('.side [aria-current]').getBoundingClientRect();
    const is_hidden = current.left < -1 || current.right > document.documentElement.clientWidth + 1;
    return is_hidden ? [document.title] : [];";

/// Returns the tables that are wider than their frames.
const WIDE_TABLES: &str = "
    const tables = [...document.querySelectorAll('.wide > table')];
    const wide = tables.filter((one) => one.scrollWidth > one.parentElement.clientWidth + 1);
    const show = (one) => `${one.caption.textContent}: ${one.scrollWidth} pixels`;
    return tables.length ? wide.map(show) : ['no table'];";

/// Returns the amounts of a report without a label.
const UNLABELLED_AMOUNTS: &str = "
    const cells = [...document.querySelectorAll('table.stacked td.num')];
    const bare = cells.filter((one) => getComputedStyle(one, '::before').content === 'none');
    return cells.length ? bare.map((one) => one.textContent) : ['no amount'];";

/// Returns the amounts of an invoice that are wider than their places, and the width of the page if it is too wide.
const CUT_SUMS: &str = "
    const sums = [...document.querySelectorAll('.object-sum .figure, dl.totals dt, dl.totals dd')];
    const wide = sums.filter((one) => one.scrollWidth > one.clientWidth);
    const cut = wide.map((one) => one.textContent);
    const { scrollWidth, clientWidth } = document.documentElement;
    if (scrollWidth > clientWidth) cut.push(`${scrollWidth} pixels`);
    return sums.length ? cut : ['no amount'];";

/// Returns an account with a large amount, a name from right to left, and long texts without a blank; and the addresses of
/// an invoice with such a text, and of one with the largest amounts.
async fn account_with_odd_data(world: &World) -> (Account, [String; 2]) {
    let account = Account::new(world).await;
    let price = "invoice_lines.0.unit_price";
    let large = with(&documents::invoice(), price, json!(1_322_694_007));
    let named = with(&large, "customer.name", json!(ARABIC_NAME));
    let owed = account.taxpayer.invoice(&named).await;
    let approved = account.taxpayer.set_status(&owed, "approved").await;
    approved.expect_status(200);
    let item = "invoice_lines.0.item_name";
    let long = with(&documents::invoice(), item, json!("W".repeat(250)));
    let number = format!("LONGINVOICENUMBER{}", documents::number());
    let long = with(&long, "invoice_no", json!(number));
    let long = account.taxpayer.invoice(&long).await;
    let largest = with(&documents::invoice(), price, exact("49999999999999.99"));
    let largest = account.taxpayer.invoice(&largest).await;
    let endpoint = json!({
        "url": "http://127.0.0.1:9/warehouse", "enabled_events": ["invoice.acknowledged"],
        "description": "W".repeat(200),
    });
    let path = format!("{}/endpoints", webhook(account.taxpayer.id));
    let added = world.integrator().send("POST", &path, &endpoint).await;
    added.expect_status(201);
    let addresses = [long, largest].map(|invoice| format!("/invoices/{}", invoice["id"]));
    (account, addresses)
}

#[test]
fn odd_data_hides_nothing_that_a_person_must_see() {
    run_alone("layout", |world| {
        Box::pin(async move {
            let (account, [long, largest]) = account_with_odd_data(world).await;
            let owner = Visitor::signed_in(world, &account.email, PASSWORD).await;
            for (page, look, script) in [
                ("/customers", Look::Light, CUT_AMOUNTS),
                ("/customers", Look::Phone, CUT_AMOUNTS),
                ("/customers", Look::Light, CUT_NAMES),
                ("/invoices", Look::Light, CUT_NAMES),
                ("/invoices", Look::Light, CUT_ENDS),
                ("/invoices", Look::Phone, CUT_ENDS),
                ("/customers", Look::Light, CUT_ENDS),
                ("/customers", Look::Phone, CUT_ENDS),
                ("/activity", Look::Phone, HIDDEN_PAGE),
                (long.as_str(), Look::Light, WIDE_TABLES),
                (largest.as_str(), Look::Light, CUT_SUMS),
                (largest.as_str(), Look::Phone, CUT_SUMS),
                ("/webhooks", Look::Light, WIDE_TABLES),
                ("/reports?month=2026-01", Look::Phone, UNLABELLED_AMOUNTS),
            ] {
                look.apply_to(&owner).await;
                owner.open(&account.path(page)).await;
                let wrong = owner.session.script(script, &[]).await;
                assert_eq!(wrong, json!([]), "{page} {}", look.name());
            }
        })
    });
}

//! The inbox: a supplier's invoice is read and acknowledged.

use testkit::each_database;

use super::{Account, assert_shows};
use crate::support::supplies;
use crate::support::world::World;

#[each_database]
async fn a_suppliers_invoice_is_read_and_acknowledged(world: &World) {
    let account = Account::new(world).await;
    assert_shows(
        &account.page("/inbox").await,
        &["No supplier has sent an invoice yet."],
    );
    let irn = supplies::received(world, &account.taxpayer).await;
    let (number, _) = irn.split_once('-').unwrap();
    let shown = [number, "2026-01-15", "NGN ", "To acknowledge</span>"];
    assert_shows(&account.page("/inbox").await, &shown);
    assert_shows(&account.page("/inbox?open=true").await, &shown);
    let path = format!("/inbox/{irn}");
    for (file, begins) in [("pdf", "%PDF-"), ("json", "{")] {
        let file = account.page(&format!("{path}/files/{file}")).await;
        assert!(file.starts_with(begins), "{file}");
    }
    for file in ["ubl.xml", "qr.svg", "odd"] {
        let path = account.path(&format!("{path}/files/{file}"));
        account.owner.get(&path).await.expect(404);
    }
    assert_shows(
        &account.page(&path).await,
        &[
            &irn,
            "Supplier",
            "Payable",
            "The document as it was received",
        ],
    );
    account
        .post(&format!("{path}/acknowledge"), &[])
        .await
        .expect(303);
    let page = account.page(&path).await;
    assert_shows(&page, &["Acknowledged"]);
    assert!(!page.contains("To acknowledge"), "{page}");
    let open = account.page("/inbox?open=true").await;
    assert_shows(&open, &["Every invoice is acknowledged."]);
    assert_shows(&account.page("/inbox").await, &[number, "Acknowledged"]);
    account
        .post(&format!("{path}/acknowledge"), &[])
        .await
        .expect(409);
}

#[each_database]
async fn many_are_found_and_acknowledged_at_once(world: &World) {
    let account = Account::new(world).await;
    let mut irns = Vec::new();
    for _ in 0..3 {
        irns.push(supplies::received(world, &account.taxpayer).await);
    }
    let page = account
        .page(&format!("/inbox?q={}", irns[1].to_lowercase()))
        .await;
    assert_shows(&page, &[&number(&irns[1])]);
    assert!(!page.contains(&format!(">{}<", number(&irns[0]))), "{page}");
    let page = account.page("/inbox?open=true&q=%25").await;
    assert_shows(&page, &["No invoice matches."]);
    let chosen = [
        ("id", irns[0].as_str()),
        ("id", "odd"),
        ("id", irns[1].as_str()),
    ];
    let other = Account::new(world).await;
    let told = other.post("/inbox/acknowledge", &chosen).await.expect(303);
    let page = other.owner.get(&told.location).await.expect(200);
    page.shows("0 invoices were acknowledged. 2 were not. The first: ");
    let told = account
        .post("/inbox/acknowledge", &chosen)
        .await
        .expect(303);
    account
        .owner
        .get(&told.location)
        .await
        .shows_all(&["2 invoices were acknowledged.", &number(&irns[2])])
        .hides(&format!(">{}<", number(&irns[0])));
    let told = account
        .post("/inbox/acknowledge", &chosen[..1])
        .await
        .expect(303);
    account
        .owner
        .get(&told.location)
        .await
        .shows("0 invoices were acknowledged. One was not.");
    let search = irns[2].to_lowercase();
    let page = account.page(&format!("/inbox?q={search}")).await;
    assert_shows(
        &page,
        &[&format!(r#"type="hidden" name="q" value="{search}""#)],
    );
    let fields = [("id", irns[2].as_str()), ("q", search.as_str())];
    let told = account
        .post("/inbox/acknowledge", &fields)
        .await
        .expect(303);
    let address = format!("/inbox?open=true&q={search}");
    assert!(told.location.ends_with(&address), "{}", told.location);
    account.post("/inbox/acknowledge", &[]).await.expect(422);
    account
        .post("/inbox/acknowledge", &[("id", "odd")])
        .await
        .expect(422);
}

fn number(irn: &str) -> String {
    irn.split('-').next().unwrap().to_owned()
}

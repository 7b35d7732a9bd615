//! The people of an account: a new one signs in with the role that it was given, and a removed one is signed out.

use testkit::documents::number;
use testkit::{each_database, on_sqlite};

use super::{Account, assert_shows, signed_in};
use crate::support::account::{choose, link_path};
use crate::support::visitor::Visitor;
use crate::support::world::World;

/// Adds a person by the form and returns the path of the link that is shown.
async fn add(account: &Account, email: &str, role: &str) -> String {
    let fields = [
        ("first_name", "Bola"),
        ("last_name", "<b>Ade</b>"),
        ("email", email),
        ("role", role),
    ];
    let page = account.post("/contacts", &fields).await.expect(200).html;
    link_path(&page)
}

/// Returns the id of the person that the page lists last.
fn last_id(page: &str) -> &str {
    page.rsplit("/contacts/")
        .find_map(|part| part.split_once("/role"))
        .unwrap()
        .0
}

#[each_database]
async fn a_new_person_signs_in_with_its_role_and_a_removed_one_is_signed_out(world: &World) {
    let account = Account::new(world).await;
    let email = format!("bola{}@trading.example", number());
    let link = add(&account, &email, "read_only").await;
    let page = account.page("/contacts").await;
    assert_shows(
        &page,
        &[
            &email,
            "Has no password yet",
            "Link for the first password",
            "&#60;b&#62;Ade",
        ],
    );
    let id = last_id(&page).to_owned();
    let new = "another four plain words";
    choose(&Visitor::new(world), &link, new)
        .await
        .leads_to("/sign-in");
    let person = signed_in(world, &email, new).await;
    person.get(&account.path("/invoices")).await.expect(200);
    person.get(&account.path("/contacts")).await.expect(403);
    let role = format!("/contacts/{id}/role");
    account.post(&role, &[("role", "owner")]).await.expect(303);
    person.get(&account.path("/contacts")).await.expect(200);
    account
        .post(&format!("/contacts/{id}/remove"), &[])
        .await
        .expect(303);
    person.get(&account.path("/invoices")).await.expect(303);
    account.post(&role, &[("role", "owner")]).await.expect(404);
}

#[each_database]
async fn an_account_keeps_an_owner_and_an_email_belongs_to_one_person(world: &World) {
    let account = Account::new(world).await;
    let other = Account::new(world).await;
    let page = account.page("/contacts").await;
    let own = last_id(&page).to_owned();
    account
        .post(&format!("/contacts/{own}/role"), &[("role", "accountant")])
        .await
        .expect(409);
    account
        .post(&format!("/contacts/{own}/remove"), &[])
        .await
        .expect(409);
    account
        .post(&format!("/contacts/{own}/role"), &[("role", "king")])
        .await
        .expect(404);
    let fields = [
        ("first_name", "A"),
        ("last_name", "B"),
        ("email", other.email.as_str()),
        ("role", "owner"),
    ];
    let page = account.post("/contacts", &fields).await.expect(422).html;
    assert_shows(&page, &["Somebody signs in with this email already."]);
    let page = account
        .post("/contacts", &[("email", "odd")])
        .await
        .expect(422)
        .html;
    assert_shows(
        &page,
        &[
            "The first_name field is required.",
            "The email field must be",
        ],
    );
    let theirs = last_id(&other.page("/contacts").await).to_owned();
    account
        .post(&format!("/contacts/{theirs}/remove"), &[])
        .await
        .expect(404);
}

#[on_sqlite]
async fn an_owner_who_becomes_an_accountant_is_led_to_a_page_of_the_new_role(world: &World) {
    let account = Account::new(world).await;
    let own = last_id(&account.page("/contacts").await).to_owned();
    let email = format!("bola{}@trading.example", number());
    add(&account, &email, "owner").await;
    let role = format!("/contacts/{own}/role");
    for (wanted, page) in [("owner", "/contacts"), ("accountant", "")] {
        let done = account.post(&role, &[("role", wanted)]).await;
        done.leads_to(&account.path(page));
        assert_shows(&account.page(page).await, &["The role was changed."]);
    }
}

#[on_sqlite(&[("RATE_LIMIT__REFUSED_CREATES_PER_MIN", "1")])]
async fn beyond_the_limit_a_taken_email_is_answered_like_a_free_one(world: &World) {
    let account = Account::new(world).await;
    let other = Account::new(world).await;
    let free = [0; 3].map(|_| format!("free{}@trading.example", number()));
    let limited = "Too many requests; try again when Retry-After has passed";
    let taken = "Somebody signs in with this email already.";
    let mine = account.email.as_str();
    let cases: [(&str, u16, &str); 5] = [
        (&free[0], 200, "/sign-in/invitation/"),
        (&free[1], 200, "/sign-in/invitation/"),
        (&other.email, 422, taken),
        (&free[2], 422, limited),
        (mine, 422, limited),
    ];
    for (email, status, shown) in cases {
        let fields = [
            ("first_name", "Bola"),
            ("last_name", "Ade"),
            ("email", email),
            ("role", "read_only"),
        ];
        let answer = account.post("/contacts", &fields).await;
        assert_eq!(answer.status, status, "{email}: {}", answer.html);
        assert_shows(&answer.html, &[shown]);
    }
}

#[on_sqlite]
async fn an_account_has_so_many_people_and_no_more(world: &World) {
    let account = Account::new(world).await;
    let taxpayer = account.taxpayer.id;
    let others = (1_000_000_001..1_000_000_200).map(|id| {
        let email = format!("{id}.of{taxpayer}@trading.example");
        format!("({taxpayer}, {id}, 'Ada', 'Obi', '{email}', '{email}', 'read_only', 0, 0)")
    });
    let others: Vec<_> = others.collect();
    let columns =
        "taxpayer_id, id, first_name, last_name, email, email_key, role, created_at, updated_at";
    let insert = format!(
        "INSERT INTO contacts ({columns}) VALUES {}",
        others.join(", ")
    );
    assert_eq!(world.execute(&insert).await, 199);
    let email = format!("bola{}@trading.example", number());
    let fields = [
        ("first_name", "Bola"),
        ("last_name", "Ade"),
        ("email", email.as_str()),
        ("role", "read_only"),
    ];
    let page = account.post("/contacts", &fields).await.expect(422).html;
    let sentence = "An account has 200 people at most. Remove somebody who has left.";
    assert_shows(&page, &[sentence]);
    account
        .post("/contacts/1000000001/remove", &[])
        .await
        .expect(303);
    add(&account, &email, "read_only").await;
}

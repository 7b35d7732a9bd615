//! GET /v1/system-integrators/taxpayers.

use serde_json::{Value, json};
use testkit::answer::Answer;
use testkit::documents::{self, number};
use testkit::each_database;
use testkit::edit::with;
use testkit::patience::eventually;
use testkit::roles::{Integrator, TAXPAYERS};
use url::form_urlencoded;

use crate::support::world::World;

async fn create(integrator: &Integrator) -> (Value, Value) {
    let body = documents::taxpayer();
    let id = integrator
        .create_taxpayer(&body)
        .await
        .expect_status(201)
        .data()["id"]
        .clone();
    (id, body)
}

async fn list(integrator: &Integrator, query: &[(&str, &str)]) -> Answer {
    let query = form_urlencoded::Serializer::new(String::new())
        .extend_pairs(query)
        .finish();
    integrator
        .get(&format!("{TAXPAYERS}?{query}"))
        .await
        .expect_status(200)
}

fn ids(answer: &Answer) -> Vec<Value> {
    answer.data()["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| item["id"].clone())
        .collect()
}

#[each_database]
async fn an_integrator_without_taxpayers_has_an_empty_page(world: &World) {
    let answer = list(&world.new_integrator().await, &[]).await;
    let empty =
        json!({ "current_page": 1, "total": 0, "per_page": 15, "last_page": 1, "data": [] });
    assert_eq!(*answer.data(), empty);
}

#[each_database]
async fn an_integrator_lists_its_own_taxpayers_newest_first(world: &World) {
    let integrator = world.new_integrator().await;
    let other = world.new_integrator().await;
    let (first, _) = create(&integrator).await;
    create(&other).await;
    let (second, _) = create(&integrator).await;
    let answer = list(&integrator, &[]).await;
    assert_eq!(ids(&answer), [second.clone(), first]);
    let settled = async || {
        let read = integrator
            .get(&format!("{TAXPAYERS}/{second}"))
            .await
            .expect_status(200);
        (read.data()["verification"] != "pending").then_some(read)
    };
    let read = eventually("the authority's word", settled).await;
    let answer = list(&integrator, &[]).await;
    assert_eq!(answer.data()["data"][0], *read.data());
}

#[each_database]
async fn a_search_finds_name_tin_or_email_in_any_case(world: &World) {
    let integrator = world.new_integrator().await;
    let (id, body) = create(&integrator).await;
    create(&integrator).await;
    for field in ["name", "tin_no", "email"] {
        let text = body[field].as_str().unwrap();
        for text in [text.to_owned(), text.to_uppercase(), text.to_lowercase()] {
            let found = ids(&list(&integrator, &[("search", &text)]).await);
            assert_eq!(found, std::slice::from_ref(&id), "{text}");
        }
    }
    for (text, count) in [
        ("trading.example", 2),
        (" trading.example ", 2),
        ("  ", 2),
        ("\0", 0),
        ("trading\0.example", 0),
    ] {
        let found = ids(&list(&integrator, &[("search", text)]).await);
        assert_eq!(found.len(), count, "{text:?}");
    }
}

#[each_database]
async fn a_search_finds_capitals_beyond_ascii_in_name_and_email(world: &World) {
    let integrator = world.new_integrator().await;
    let create = async |name: &str, field: &str| {
        let n = number();
        let body = with(
            &documents::taxpayer(),
            field,
            json!(name.replace('#', &n.to_string())),
        );
        integrator
            .create_taxpayer(&body)
            .await
            .expect_status(201)
            .data()["id"]
            .clone()
    };
    let özil = create("ÖZIL Trading", "name").await;
    let olawale = create("Ọláwálé & Sons", "name").await;
    let tin = create("ÑÀ-#", "tin_no").await;
    for (text, id) in [
        ("özil", &özil),
        ("ÖZIL TRADING", &özil),
        ("o\u{308}zil", &özil),
        ("ọláwálé", &olawale),
        ("ỌLÁWÁLÉ", &olawale),
        ("O\u{323}LA\u{301}", &olawale),
        ("ñà-", &tin),
        ("ÑÀ-", &tin),
    ] {
        assert_eq!(
            ids(&list(&integrator, &[("search", text)]).await),
            std::slice::from_ref(id),
            "{text}"
        );
    }
    integrator
        .change_profile(özil.as_i64().unwrap(), &json!({ "name": "ÄRGER" }))
        .await
        .expect_status(200);
    assert_eq!(
        ids(&list(&integrator, &[("search", "ärger")]).await),
        [özil]
    );
    assert_eq!(
        ids(&list(&integrator, &[("search", "özil")]).await),
        [] as [Value; 0]
    );
}

#[each_database]
async fn the_wildcards_of_the_database_are_letters_in_a_search(world: &World) {
    let integrator = world.new_integrator().await;
    create(&integrator).await;
    for text in ["%", "_", "' OR 1=1 --", "\\", "no such taxpayer", "*"] {
        assert_eq!(
            ids(&list(&integrator, &[("search", text)]).await),
            [] as [Value; 0],
            "{text}"
        );
    }
    assert_eq!(ids(&list(&integrator, &[("search", "")]).await).len(), 1);
}

#[each_database]
async fn pages_are_of_fifteen_unless_asked_for_otherwise(world: &World) {
    let integrator = world.new_integrator().await;
    for _ in 0..3 {
        create(&integrator).await;
    }
    let page = list(&integrator, &[("per_page", "2"), ("page", "2")]).await;
    let numbers = ["current_page", "total", "per_page", "last_page"]
        .map(|name| page.data()[name].as_i64().unwrap());
    assert_eq!((numbers, ids(&page).len()), ([2, 3, 2, 2], 1));
    for (per_page, used) in [
        ("0", 15),
        ("-1", 15),
        ("x", 15),
        ("", 15),
        ("101", 100),
        ("100", 100),
    ] {
        let answer = list(&integrator, &[("per_page", per_page)]).await;
        assert_eq!(answer.data()["per_page"], json!(used), "{per_page}");
    }
}

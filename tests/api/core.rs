//! `/v1/core`.

use serde_json::json;

use crate::support::world::on_every_database;

const CATEGORIES: &str = "/v1/core/commons/invoice-categories";

#[test]
fn the_invoice_categories_are_public() {
    on_every_database(async |world| {
        let answer = world.anonymous().get(CATEGORIES).await.expect_status(200);
        assert_eq!(answer.body["success"], json!(true));
        let option = |value: &str| json!({ "label": value, "value": value });
        let expected = ["Blank", "B2B", "B2C", "B2G"].map(option);
        assert_eq!(*answer.data(), json!({ "invoice_categories": expected }));
    });
}

#[test]
fn the_invoice_categories_do_not_look_at_a_key() {
    on_every_database(async |world| {
        for key in ["tpk_unknown", "sik_unknown", "nonsense"] {
            world.anonymous().with_key(key).get(CATEGORIES).await.expect_status(200);
        }
    });
}

//! Finds the values of a taxpayer that another taxpayer already has, although they must be unique.

use database::StoreError;
use sea_orm::sea_query::Expr;
use sea_orm::{ColumnTrait, Condition, ConnectionTrait, EntityTrait, QueryFilter, Select};

use crate::domain::kernel::fault::{Fault, Faults};
use crate::domain::party::Taxpayer;
use crate::domain::party::email::stored_email_keys;
use crate::store::accounts::contact_row;
use crate::store::accounts::taxpayer_row::{Column, Entity, Model};

/// Returns a fault for each value that another taxpayer has although it must be unique. The fault names the field of
/// the request Create Taxpayer. `login` is the email of the new contact person, if there is one.
pub async fn find_taken_values(
    connection: &impl ConnectionTrait,
    taxpayer: &Taxpayer,
    login: Option<&str>,
) -> Result<Faults, StoreError> {
    let row = Model::from(taxpayer);
    let others = select_taxpayers_with_same_values(&row)
        .all(connection)
        .await?;
    let mut faults = Faults::default();
    for unique in unique_values(&row) {
        let value = unique.value;
        let is_taken = others.iter().any(|other| match unique.column {
            Column::EmailKey => other.email_key == value,
            Column::TinNormal => {
                other.tin_normal == value || other.tin_skeleton == row.tin_skeleton
            }
            Column::ServiceIdKey => other.service_id_key == value,
            _ => other.business_id_key == value,
        });
        if is_taken {
            faults.push(taken_fault(unique.field));
        }
    }
    if let Some(login) = login {
        let same = contact_row::Column::EmailKey.is_in(stored_email_keys(login));
        if contact_row::Entity::find()
            .filter(same)
            .one(connection)
            .await?
            .is_some()
        {
            faults.push(taken_fault("contact_person.email"));
        }
    }
    Ok(faults)
}

/// A value of a taxpayer that no other taxpayer may have.
struct UniqueValue<'r> {
    /// The field of the request Create Taxpayer.
    field: &'static str,
    column: Column,
    value: &'r str,
}

fn unique_values(row: &Model) -> [UniqueValue<'_>; 4] {
    [
        ("email", Column::EmailKey, row.email_key.as_str()),
        ("tin_no", Column::TinNormal, row.tin_normal.as_str()),
        (
            "authority_service_id",
            Column::ServiceIdKey,
            row.service_id_key.as_str(),
        ),
        (
            "authority_business_id",
            Column::BusinessIdKey,
            row.business_id_key.as_str(),
        ),
    ]
    .map(|(field, column, value)| UniqueValue {
        field,
        column,
        value,
    })
}

/// Selects the other taxpayers that have one of the `unique_values` of this taxpayer, or a tax number that looks like
/// its own. Numbers that look alike have the same `tin_skeleton`. The literal condition is that of the partial index on
/// `tin_skeleton`. Without it, SQLite would use no index and read all taxpayers.
fn select_taxpayers_with_same_values(row: &Model) -> Select<Entity> {
    let looks_alike = Condition::all()
        .add(Column::TinSkeleton.eq(row.tin_skeleton.as_str()))
        .add(Expr::cust("tin_skeleton <> ''"));
    let mut any = Condition::any();
    for unique in unique_values(row) {
        any = any.add(unique.column.eq(unique.value));
    }
    Entity::find()
        .filter(Column::Id.ne(row.id))
        .filter(any.add(looks_alike))
}

fn taken_fault(field: &str) -> Fault {
    Fault::new(
        field,
        "unique",
        format!("The {field} has already been taken."),
    )
}

#[cfg(test)]
mod tests {
    use sea_orm::QueryTrait;

    use super::*;
    use crate::store::testing::{add_taxpayer, query_plan, stores};

    #[tokio::test]
    async fn taken_values_are_found_without_a_look_at_all_taxpayers() {
        // SQLite only: PostgreSQL's plan depends on the number of taxpayers.
        for test in stores().await.into_iter().take(1) {
            add_taxpayer(&test.store, 1, 7).await;
            let row = Entity::find_by_id(1_i64).one(test.store.reader()).await;
            let query = select_taxpayers_with_same_values(&row.unwrap().unwrap())
                .build(test.store.backend());
            let values = query.values.map(|values| values.0).unwrap_or_default();
            let plan = query_plan(&test.store, &query.sql, values).await.join("\n");
            assert!(!plan.contains("SCAN"), "{plan}");
            for column in [
                "email_key",
                "tin_normal",
                "service_id_key",
                "business_id_key",
                "tin_skeleton",
            ] {
                let index = format!("INDEX taxpayers_by_{column} ");
                assert!(plan.contains(&index), "{plan}");
            }
        }
    }
}

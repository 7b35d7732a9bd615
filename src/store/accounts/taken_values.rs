//! The values that no two taxpayers may have: those of an account that another one has already.

use database::StoreError;
use database::column::fold_case;
use sea_orm::{ColumnTrait, Condition, ConnectionTrait, EntityTrait, QueryFilter};

use crate::domain::kernel::fault::{Fault, Faults};
use crate::domain::party::Taxpayer;
use crate::store::accounts::contact_row;
use crate::store::accounts::taxpayer_row::{Column, Entity, Model};

/// Returns a fault for each value that another taxpayer has although it must be unique. The fault names the field of
/// Create Taxpayer.
pub async fn find_taken(
    connection: &impl ConnectionTrait,
    taxpayer: &Taxpayer,
    login: Option<&str>,
) -> Result<Faults, StoreError> {
    let row = Model::from(taxpayer);
    let unique = [
        ("email", Column::EmailKey, &row.email_key),
        ("tin_no", Column::TinNormal, &row.tin_normal),
        (
            "authority_service_id",
            Column::ServiceIdKey,
            &row.service_id_key,
        ),
        (
            "authority_business_id",
            Column::BusinessIdKey,
            &row.business_id_key,
        ),
    ];
    let mut any = Condition::any();
    for (_, column, value) in &unique {
        any = any.add(column.eq(value.as_str()));
    }
    any = any.add(Column::TinSkeleton.eq(row.tin_skeleton.as_str()));
    let others = Entity::find()
        .filter(Column::Id.ne(row.id))
        .filter(any)
        .all(connection)
        .await?;
    let mut faults = Faults::default();
    for (field, column, value) in unique {
        let is_taken = others.iter().any(|other| match column {
            Column::EmailKey => &other.email_key == value,
            Column::TinNormal => {
                &other.tin_normal == value || other.tin_skeleton == row.tin_skeleton
            }
            Column::ServiceIdKey => &other.service_id_key == value,
            _ => &other.business_id_key == value,
        });
        if is_taken {
            faults.push(taken_fault(field));
        }
    }
    if let Some(login) = login {
        let same = contact_row::Column::EmailKey.eq(fold_case(login));
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

fn taken_fault(field: &str) -> Fault {
    Fault::new(
        field,
        "unique",
        format!("The {field} has already been taken."),
    )
}

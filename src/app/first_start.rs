//! Demo accounts. In development, the first start with a new database creates them and prints their API keys once.

use std::net::SocketAddr;

use database::StoreError;
use jiff::Timestamp;
use rand::RngExt;
use sandbox::PartyEnrolment;
use secrecy::{ExposeSecret, SecretString};
use serde_json::json;
use timing::clock;

use crate::actors::taxpayer::commands::{ChangeProfile, Onboard, RotateKey};
use crate::actors::taxpayer::handle::TaxpayerError;
use crate::app::accounts::random_password;
use crate::app::composition::App;
use crate::app::error::StartError;
use crate::config::authority::AuthorityMode;
use crate::config::{Environment, Settings};
use crate::domain::access::api_key::NewKey;
use crate::domain::access::caller::{KeyKind, new_key};
use crate::domain::access::session::OperatorRole;
use crate::domain::kernel::audit::Actor;
use crate::domain::kernel::fault::Faults;
use crate::domain::kernel::ids::{IntegratorId, TaxpayerId};
use crate::domain::party::{BusinessLocation, NewContact, ProfileChange};
use crate::http::password;
use crate::store::Store;
use crate::store::accounts::keys;
use crate::store::accounts::taxpayers;
use crate::store::accounts::{self, NewIntegrator, NewOperator};
use crate::store::ids::IdKind;

pub(super) struct DemoAccounts {
    pub integrator_key: SecretString,
    pub taxpayer_id: TaxpayerId,
    pub taxpayer_key: SecretString,
    /// The password of the demo's contact person; `None` if an earlier start has created the person.
    pub contact_password: Option<SecretString>,
    /// `None` if an earlier start has created the operator.
    pub operator: Option<DemoOperator>,
}

pub(super) struct DemoOperator {
    pub password: SecretString,
    pub key: SecretString,
}

pub(super) const SERVICE_ID: &str = "94CD90AA";
pub(super) const BUSINESS_ID: &str = "11111111-1111-4111-8111-111111111111";

const NAME: &str = "Demo Trading Ltd";
const TIN: &str = "12345678-0001";
const INTEGRATOR_EMAIL: &str = "integrator@demo.example";
const CONTACT_EMAIL: &str = "ada.obi@demo.example";
const OPERATOR_EMAIL: &str = "operator@demo.example";

/// Creates the demo accounts if the database has no integrator; never in production or with a remote authority.
/// Completes them if an earlier start was interrupted. Returns `None` if nothing was created.
pub(super) async fn create_accounts(
    app: &App,
    settings: &Settings,
) -> Result<Option<DemoAccounts>, StartError> {
    if settings.environment == Environment::Production
        || settings.authority.mode == AuthorityMode::Remote
    {
        return Ok(None);
    }
    let store = &app.store;
    let integrator = accounts::find_integrator_by_email(store, INTEGRATOR_EMAIL).await?;
    if integrator.is_none() && accounts::has_integrator(store).await? {
        return Ok(None);
    }
    let taxpayer = match integrator {
        Some(id) => taxpayers::find_owned_by_service_id(store, id, SERVICE_ID).await?,
        None => None,
    };
    if let Some(taxpayer) = &taxpayer
        && keys::has_any(store, KeyKind::Taxpayer, taxpayer.id.0).await?
    {
        return Ok(None);
    }
    match create_missing_accounts(app, integrator, taxpayer.map(|taxpayer| taxpayer.id)).await {
        // Another process creates the demo accounts at the same moment, and prints their keys.
        Err(
            StartError::Store(StoreError::Duplicate(_))
            | StartError::Command(TaxpayerError::Refused(_)),
        ) => Ok(None),
        outcome => outcome.map(Some),
    }
}

async fn create_missing_accounts(
    app: &App,
    integrator: Option<IntegratorId>,
    taxpayer: Option<TaxpayerId>,
) -> Result<DemoAccounts, StartError> {
    let store = &app.store;
    let now = app.clock.now();
    let integrator_key = new_key(KeyKind::Integrator, clock::system_rng().random());
    let key: NewKey = integrator_key.clone().into();
    let integrator = if let Some(id) = integrator {
        accounts::rotate_integrator_key(store, id, &key, now)
            .await
            .map(|()| id)?
    } else {
        let new_integrator = NewIntegrator {
            name: "Demo Integrator".into(),
            email: INTEGRATOR_EMAIL.into(),
            password_hash: None,
            key,
        };
        accounts::add_integrator(store, &new_integrator, now).await?
    };
    let mut contact_password = None;
    let id = if let Some(id) = taxpayer {
        id
    } else {
        enrol_in_sandbox(app)?;
        let id = TaxpayerId(store.ids().next(IdKind::Taxpayer).await?);
        let password = random_password();
        let id = app
            .taxpayers
            .send(id, onboard_command(integrator, &password)?)
            .await?
            .id;
        contact_password = Some(password);
        id
    };
    app.taxpayers
        .send(
            id,
            ChangeProfile {
                change: demo_profile(),
                by: Actor::CommandLine,
            },
        )
        .await?;
    let taxpayer_key = new_key(KeyKind::Taxpayer, clock::system_rng().random());
    app.taxpayers
        .send(
            id,
            RotateKey {
                key: taxpayer_key.clone().into(),
                keys_max: None,
                by: Actor::CommandLine,
            },
        )
        .await?;
    let operator = create_operator(store, now).await?;
    Ok(DemoAccounts {
        integrator_key,
        taxpayer_id: id,
        taxpayer_key,
        contact_password,
        operator,
    })
}

async fn create_operator(
    store: &Store,
    now: Timestamp,
) -> Result<Option<DemoOperator>, StartError> {
    let password = random_password();
    let key = new_key(KeyKind::Operator, clock::system_rng().random());
    let new_operator = NewOperator {
        email: OPERATOR_EMAIL.into(),
        password_hash: password::hash(&password, None).map_err(|_| StartError::PasswordHash)?,
        role: OperatorRole::Admin,
        key: key.clone().into(),
    };
    match accounts::add_operator(store, &new_operator, now).await {
        Ok(_) => Ok(Some(DemoOperator { password, key })),
        Err(StoreError::Duplicate(_)) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

fn onboard_command(
    integrator_id: IntegratorId,
    password: &SecretString,
) -> Result<Onboard, StartError> {
    let password_hash = password::hash(password, None).map_err(|_| StartError::PasswordHash)?;
    Ok(Onboard {
        integrator_id,
        name: NAME.into(),
        email: "accounts@demo.example".into(),
        tin: TIN.into(),
        phone: None,
        nature_of_business: Some("Wholesale of computers".into()),
        service_id: SERVICE_ID.into(),
        business_id: BUSINESS_ID.into(),
        address: "1 Marina Road".into(),
        place: BusinessLocation::default(),
        contact: NewContact {
            first_name: "Ada".into(),
            last_name: "Obi".into(),
            email: CONTACT_EMAIL.into(),
            phone: None,
            password_hash: Some(password_hash),
        },
        conflicts: Faults::default(),
    })
}

/// Enrols the demo taxpayer's business with the simulator, so that the verification of the taxpayer succeeds.
fn enrol_in_sandbox(app: &App) -> Result<(), StartError> {
    let Some(sandbox) = &app.sandbox else {
        return Ok(());
    };
    let enrolment = PartyEnrolment {
        business_id: Some(BUSINESS_ID.into()),
        tin: Some(TIN.into()),
        name: Some(NAME.into()),
        ..PartyEnrolment::default()
    };
    sandbox
        .state()
        .enrol(&enrolment)
        .map_err(StartError::Sandbox)
}

fn demo_profile() -> ProfileChange {
    ProfileChange {
        city: Some("Lagos".into()),
        state: Some("Lagos".into()),
        country: Some("NG".into()),
        ..ProfileChange::default()
    }
}

/// Returns the text that is printed as soon as the service listens.
pub(super) fn welcome_text(
    app: &App,
    address: SocketAddr,
    ops_address: Option<SocketAddr>,
    accounts: Option<&DemoAccounts>,
) -> String {
    let mut lines = vec![format!("einvoice is listening on http://{address}")];
    if let Some(sandbox) = &app.sandbox {
        lines.push(format!(
            "  simulator of the authority   {}",
            sandbox.base_url()
        ));
    }
    lines.push(format!(
        "  ready when it answers 200    http://{address}/health/ready"
    ));
    if let Some(accounts) = accounts {
        lines.extend([
            String::new(),
            "Demo accounts were created. Their keys and passwords are shown only here:".to_owned(),
            format!(
                "  integrator       {}",
                accounts.integrator_key.expose_secret()
            ),
            format!(
                "  taxpayer (id {})  {}",
                accounts.taxpayer_id,
                accounts.taxpayer_key.expose_secret()
            ),
        ]);
        if let Some(operator) = &accounts.operator {
            lines.push(format!(
                "  operator         {}",
                operator.key.expose_secret()
            ));
        }
        lines.push(String::new());
        lines.extend(sign_in_lines(address, ops_address, accounts));
        lines.extend([
            format!("The documentation is at http://{address}/docs/"),
            String::new(),
            "Create an invoice:".to_owned(),
            String::new(),
            curl_example(address, &accounts.taxpayer_key),
        ]);
    }
    lines.join("\n") + "\n"
}

/// Returns a line for each account that can sign in, with the address for it.
fn sign_in_lines(
    address: SocketAddr,
    ops_address: Option<SocketAddr>,
    accounts: &DemoAccounts,
) -> Vec<String> {
    let mut lines = vec![format!("Sign in at http://{address}/ with one of these:")];
    if let Some(operator) = &accounts.operator {
        let password = operator.password.expose_secret();
        // Operators who have a listener of their own can sign in only there.
        let sign_in_note = ops_address.map_or_else(String::new, |address| {
            format!("   at http://{address}/sign-in")
        });
        lines.push(format!("  {OPERATOR_EMAIL}   {password}{sign_in_note}"));
    }
    if let Some(password) = &accounts.contact_password {
        lines.push(format!("  {CONTACT_EMAIL}    {}", password.expose_secret()));
    }
    lines
}

fn curl_example(address: SocketAddr, key: &SecretString) -> String {
    format!(
        "curl -sS http://{address}/v1/tax-payers/invoices -H 'content-type: application/json' -H 'x-api-key: {}' -d '{}'",
        key.expose_secret(),
        demo_invoice("INV0001")
    )
}

/// Returns a valid request body of Create Invoice (Full).
pub(crate) fn demo_invoice(invoice_no: &str) -> serde_json::Value {
    json!({
        "invoice_no": invoice_no,
        "invoice_category": "B2B",
        "invoice_type_code": "381",
        "invoice_date": "2026-01-15",
        "due_date": "2026-02-15",
        "currency": "NGN",
        "customer": {
            "no": "C-001", "name": "Retail Stores Ltd", "email": "buyer@retail.example", "tin": "87654321-0001",
            "business_description": "Retail of household goods", "address_street_name": "5 Broad Street",
            "address_city": "Abuja", "address_state": "FCT", "address_postal_code": "900001", "address_country": "NG",
        },
        "invoice_lines": [{
            "item_name": "Laptop", "item_no": "LAP-1", "item_type": "PRODUCT", "unit_price": 500, "quantity": 2,
            "price_unit": "EA", "tax_category": "STANDARD_VAT", "product_category": "8471.30",
        }],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_operator_is_sent_to_the_listener_where_it_can_sign_in() {
        let accounts = DemoAccounts {
            integrator_key: "i".into(),
            taxpayer_id: TaxpayerId(1),
            taxpayer_key: "t".into(),
            contact_password: Some("four".into()),
            operator: Some(DemoOperator {
                password: "five".into(),
                key: "o".into(),
            }),
        };
        let address: SocketAddr = "127.0.0.1:8080".parse().unwrap();
        for (ops_address, sign_in_note) in [
            (None, ""),
            (
                Some("127.0.0.1:9090"),
                "   at http://127.0.0.1:9090/sign-in",
            ),
        ] {
            let ops_address = ops_address.map(|text| text.parse().unwrap());
            let lines = sign_in_lines(address, ops_address, &accounts);
            let expected = [
                "Sign in at http://127.0.0.1:8080/ with one of these:".to_owned(),
                format!("  operator@demo.example   five{sign_in_note}"),
                "  ada.obi@demo.example    four".to_owned(),
            ];
            assert_eq!(lines, expected);
        }
    }
}

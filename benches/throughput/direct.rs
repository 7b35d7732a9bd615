//! Writes the rows of creates with the store's own statements, without an actor or HTTP: the ceiling for creates.

use std::time::{Duration, Instant};

use einvoice::app::open_store;
use einvoice::config::Settings;
use einvoice::internals::{
    Address, Category, CustomerDetails, CustomerId, DeclaredPaymentStatus, Draft, EventKind,
    EventStamp, IfLocked, Invoice, InvoiceCustomer, InvoiceId, InvoiceIdentity, InvoiceObject, Irn,
    ItemType, LaneKind, LaneName, Line, NewEvent, Store, TaxpayerId, append_events, event_head,
    lock_lanes, save_invoices,
};
use futures_util::future::join_all;
use timing::clock::{Clock, SystemClock, new_id};

/// The first of the taxpayer ids for which the writers write. No account has them, so nothing else touches their
/// rows.
const FIRST_OWNER: i64 = 1_000_000_000;

/// Returns the creates per second of this many concurrent writers, each with `batch` creates per commit.
pub(crate) async fn creates_per_second(
    settings: &Settings,
    writers: i64,
    batch: i64,
    span: Duration,
) -> f64 {
    let store = open_store(settings).await.unwrap();
    let start = Instant::now();
    let writing = (0..writers)
        .map(|writer| write_invoices(&store, TaxpayerId(FIRST_OWNER + writer), batch, span));
    let written: i64 = join_all(writing).await.into_iter().sum();
    let elapsed = start.elapsed().as_secs_f64();
    store.close().await;
    f64::from(u32::try_from(written).unwrap()) / elapsed
}

/// Writes invoices for the time `span`. Returns how many it wrote.
async fn write_invoices(store: &Store, owner: TaxpayerId, batch: i64, span: Duration) -> i64 {
    let mut head = event_head(store.reader(), owner).await.unwrap();
    let start = Instant::now();
    let first = head.sequence;
    while start.elapsed() < span {
        let numbers = (1..=batch).map(|n| head.sequence + n);
        let invoices: Vec<_> = numbers
            .map(|number| sample_invoice(owner, number))
            .collect();
        let tx = store.begin().await.unwrap();
        lock_lanes(
            &tx,
            &[LaneName::new(LaneKind::Taxpayer, owner.to_string())],
            IfLocked::Await,
        )
        .await
        .unwrap();
        let log: Vec<_> = invoices
            .iter()
            .map(|invoice| head.append(created_event(invoice), event_stamp(owner)))
            .collect();
        save_invoices(&tx, &invoices.iter().collect::<Vec<_>>())
            .await
            .unwrap();
        append_events(&tx, &log).await.unwrap();
        tx.commit().await.unwrap();
    }
    head.sequence - first
}

/// Returns a draft of the same invoice that the clients post.
pub(crate) fn sample_draft(invoice_no: String) -> Draft {
    let date = "2026-01-15".parse().unwrap();
    Draft {
        invoice_no,
        irn: None,
        category: Category::B2B,
        invoice_type: "381".into(),
        invoice_date: date,
        due_date: Some(date),
        currency: "NGN".into(),
        customer: CustomerDetails {
            no: "C-001".into(),
            name: "Retail Stores Ltd".into(),
            email: "buyer@retail.example".into(),
            tin: Some("87654321-0001".into()),
            business_description: Some("Retail of household goods".into()),
            address: Address::default(),
            telephone: None,
        },
        lines: vec![
            sample_line("LAP-1"),
            sample_line("LAP-2"),
            sample_line("LAP-3"),
        ],
        payable: 3225.into(),
        declared: DeclaredPaymentStatus::Pending,
        extras: serde_json::Map::new(),
        batch_no: None,
    }
}

/// Returns the invoice of this draft with a number of its own.
fn sample_invoice(owner: TaxpayerId, number: i64) -> Invoice {
    let draft = sample_draft(format!("B{number}"));
    let irn = Irn::for_invoice(&draft.invoice_no, "94CD90AA", draft.invoice_date).unwrap();
    let customer = InvoiceCustomer {
        id: CustomerId(1),
        external_customer_no: draft.customer.no.clone(),
        name: draft.customer.name.clone(),
        tin: draft.customer.tin.clone(),
        email: draft.customer.email.clone(),
    };
    // The ids of the owners follow each other, and no owner writes a million invoices, so all ids differ.
    let id = InvoiceId(owner.0 * 1_000_000 + number);
    let taxpayer_id = owner;
    let provisional_qr = "e30=".repeat(12);
    draft
        .into_invoice(
            InvoiceIdentity {
                id,
                taxpayer_id,
                irn,
                customer,
                provisional_qr,
            },
            SystemClock.now(),
        )
        .0
}

fn sample_line(item_no: &str) -> Line {
    Line {
        item_id: None,
        item_name: "Laptop".into(),
        item_no: Some(item_no.into()),
        item_type: ItemType::Product,
        unit_price: 500.into(),
        quantity: 2.into(),
        price_unit: "EA".into(),
        tax_category: "STANDARD_VAT".into(),
        product_category: Some("8471.30".into()),
        service_category: None,
        discount_rate: None,
        discount_amount: None,
        extras: serde_json::Map::new(),
    }
}

fn created_event(invoice: &Invoice) -> NewEvent {
    let data =
        serde_json::json!({ "irn": invoice.irn.as_str(), "invoice": InvoiceObject::from(invoice) });
    let irn = Some(invoice.irn.to_string());
    NewEvent {
        kind: EventKind::InvoiceCreated,
        irn,
        data: data.to_string(),
        actor: None,
    }
}

fn event_stamp(taxpayer_id: TaxpayerId) -> EventStamp {
    EventStamp {
        id: new_id(),
        taxpayer_id,
        command_id: new_id(),
        trace: None,
        now: SystemClock.now(),
    }
}

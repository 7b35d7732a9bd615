//! Test support: drafts, signed invoices and the plans of their corrections.

use jiff::Timestamp;
use serde_json::{Map, json};

use crate::domain::correction::plan::{
    CorrectionCase, CorrectionNumbers, CorrectionWish, Plan, PlanError,
};
use crate::domain::invoice::breakdown::Breakdown;
use crate::domain::invoice::irn::Irn;
use crate::domain::invoice::{Draft, Invoice, InvoiceIdentity, Line, totals};
use crate::domain::kernel::codes::{Category, DeclaredPaymentStatus};
use crate::domain::kernel::ids::{CustomerId, InvoiceId, TaxpayerId};
use crate::domain::money::Amount;
use crate::domain::party::{Address, CustomerDetails, InvoiceCustomer};
use crate::domain::reference::catalog::{Catalog, ReferenceList};

pub(super) const CATEGORIES: [&str; 3] = ["STANDARD_VAT", "REDUCED_VAT", "ZERO_VAT"];

pub(super) fn amount(text: &str) -> Amount {
    Amount::parse(text).unwrap()
}

pub(super) fn catalog() -> Catalog {
    let mut catalog = Catalog::default();
    let list = json!([{ "code": "STANDARD_VAT", "percent": 7.5 }, { "code": "ZERO_VAT", "percent": 0 },
        { "code": "REDUCED_VAT", "percent": 5 }]);
    catalog.load(ReferenceList::TaxCategories, &list);
    catalog
}

pub(super) fn line(item: usize, quantity: Amount, price: Amount, category: &str) -> Line {
    Line {
        item_no: Some(format!("I{item}")),
        quantity,
        unit_price: price,
        tax_category: category.to_owned(),
        ..Line::sample()
    }
}

pub(crate) fn draft(lines: Vec<Line>) -> Draft {
    Draft {
        payable: totals::payable_amount(&lines, "NGN", &catalog()).unwrap(),
        invoice_no: "1".into(),
        irn: None,
        category: Category::B2B,
        invoice_type: "381".into(),
        invoice_date: "2026-01-15".parse().unwrap(),
        due_date: Some("2026-02-15".parse().unwrap()),
        currency: "NGN".into(),
        customer: CustomerDetails {
            no: "C1".into(),
            name: "C".into(),
            email: "c@example.com".into(),
            tin: Some("1".into()),
            business_description: None,
            address: Address::default(),
            telephone: None,
        },
        lines,
        declared: DeclaredPaymentStatus::Pending,
        extras: Map::new(),
        batch_no: None,
    }
}

/// Returns a draft that states its amounts.
pub(super) fn full_draft(lines: Vec<Line>) -> Draft {
    let mut draft = draft(lines);
    let breakdown = Breakdown::from_draft(&draft, &catalog()).unwrap();
    for (line, net) in draft.lines.iter_mut().zip(&breakdown.lines) {
        let tax = catalog()
            .tax_percent(&line.tax_category)
            .percent_share(*net);
        let stated = [
            ("line_extension_amount", json!(net)),
            ("total_tax", json!(tax.unwrap().round_half_up(2))),
        ];
        let stated = stated.map(|(name, value)| (name.to_owned(), value));
        line.extras.extend(stated);
    }
    let totals = breakdown.totals;
    draft.extras.insert(
        "legal_monetary_total".into(),
        json!({
            "line_extension_amount": totals.line_extension_amount,
            "tax_exclusive_amount": totals.tax_exclusive_amount,
            "tax_inclusive_amount": totals.tax_inclusive_amount,
            "payable_amount": totals.payable_amount,
        }),
    );
    draft
}

pub(crate) fn signed(draft: Draft) -> Invoice {
    let identity = InvoiceIdentity {
        id: InvoiceId(1),
        taxpayer_id: TaxpayerId(1),
        irn: Irn::parse("1-94AD90FB-20260115").unwrap(),
        customer: InvoiceCustomer {
            id: CustomerId(1),
            external_customer_no: "C1".into(),
            name: "C".into(),
            tin: Some("1".into()),
            email: "c@example.com".into(),
        },
        provisional_qr: String::new(),
    };
    let (invoice, _) = draft.into_invoice(identity, Timestamp::UNIX_EPOCH);
    invoice.mark_signed(Some("signed".into()))
}

pub(super) fn plan(
    original: &Invoice,
    credit_notes: &[Invoice],
    wish: &CorrectionWish,
) -> Result<Plan, PlanError> {
    let numbers = CorrectionNumbers {
        credit_note: "1CN1".into(),
        replacement: "1R1".into(),
    };
    let case = CorrectionCase {
        original,
        credit_notes,
        numbers: &numbers,
        today: "2026-03-01".parse().unwrap(),
        catalog: &catalog(),
    };
    case.plan(wish)
}

pub(super) fn become_draft(draft: Draft) -> CorrectionWish {
    CorrectionWish::Become(Box::new(draft))
}

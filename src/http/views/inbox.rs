//! The inbox of supplier invoices, and the responses to an acknowledgement and to a notice of the authority.

use serde::Serialize;
use utoipa::ToSchema;

use crate::domain::invoice::invoice_view::plain_time;
use crate::domain::invoice::irn::Irn;
use crate::domain::kernel::codes::NoticeMessage;
use crate::domain::supplier_invoice::SupplierInvoice;
use crate::http::forms::notice::Notice;

/// A supplier invoice, as the list of the inbox shows it.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct InboxLine {
    supplier_irn: Irn,
    supplier_name: Option<String>,
    supplier_tin: Option<String>,
    received_at: String,
    acknowledged: bool,
    acknowledged_at: Option<String>,
}

impl From<SupplierInvoice> for InboxLine {
    fn from(invoice: SupplierInvoice) -> Self {
        Self {
            supplier_irn: invoice.irn,
            supplier_name: invoice.supplier_name,
            supplier_tin: invoice.supplier_tin,
            received_at: plain_time(invoice.received_at),
            acknowledged: invoice.acknowledged_at.is_some(),
            acknowledged_at: invoice.acknowledged_at.map(plain_time),
        }
    }
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Acknowledgement {
    supplier_irn: Irn,
    acknowledged: bool,
    acknowledged_at: Option<String>,
}

impl From<SupplierInvoice> for Acknowledgement {
    fn from(invoice: SupplierInvoice) -> Self {
        Self {
            supplier_irn: invoice.irn,
            acknowledged: invoice.acknowledged_at.is_some(),
            acknowledged_at: invoice.acknowledged_at.map(plain_time),
        }
    }
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Notice)]
pub(crate) struct NoticeView {
    irn: Irn,
    message: NoticeMessage,
}

impl From<&Notice> for NoticeView {
    fn from(notice: &Notice) -> Self {
        Self {
            irn: notice.irn.clone(),
            message: notice.message,
        }
    }
}

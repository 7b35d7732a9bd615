//! Enumerations of the API contract, parsed without regard to case. There are several enums of payment statuses,
//! because the operations of the API accept different ones.

/// Declares an enum whose values are words, with `ALL`, `as_str`, `allowed_words` and a `parse` that ignores case.
macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$case:meta])* $variant:ident = $text:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
        pub enum $name { $($(#[$case])* #[serde(rename = $text)] $variant),+ }

        impl $name {
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $text),+ }
            }

            /// Parses a word without regard to case.
            pub fn parse(word: &str) -> Option<Self> {
                let mut values = Self::ALL.iter().copied();
                values.find(|value| value.as_str().eq_ignore_ascii_case(word))
            }

            /// Returns the allowed words, separated by commas, for the message of a fault.
            pub fn allowed_words() -> String {
                let words: Vec<_> = Self::ALL.iter().map(|value| value.as_str()).collect();
                words.join(", ")
            }
        }

        impl std::str::FromStr for $name {
            type Err = String;

            fn from_str(word: &str) -> Result<Self, String> {
                Self::parse(word).ok_or_else(|| format!("{word:?} is none of {}", Self::allowed_words()))
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }
    };
}
pub(crate) use words;

words! {
    /// The kind of customer: a business, a consumer or a government body.
    Category { B2B = "B2B", B2C = "B2C", B2G = "B2G" }
}

impl Category {
    /// True if the tax number of the customer is required: businesses and government bodies are identified by it.
    pub fn needs_tin(self) -> bool {
        self != Self::B2C
    }
}

words! {
    /// The kind of item on a line.
    ItemType { Product = "PRODUCT", Service = "SERVICE" }
}

words! {
    /// The workflow state of an invoice. Only the pipeline sets `Validated`, `Submitted`, `Transmitted` and `Reported`:
    /// an invoice in these states cannot be edited.
    WorkflowStatus {
        Draft = "draft",
        Approved = "approved",
        Cancelled = "cancelled",
        Paid = "paid",
        Validated = "validated",
        Submitted = "submitted",
        Transmitted = "transmitted",
        Reported = "reported",
    }
}

words! {
    /// The states that a caller can set with Update Invoice Status.
    SettableStatus { Draft = "draft", Approved = "approved", Cancelled = "cancelled" }
}

words! {
    /// The payment status in the taxpayer API. Requests may write it in any case; responses use upper case.
    PaymentStatus { Pending = "PENDING", Paid = "PAID", Rejected = "REJECTED", Partial = "PARTIAL" }
}

words! {
    /// The payment status that callers send with Create Invoice (Full) and Submit.
    DeclaredPaymentStatus { Pending = "PENDING", Paid = "PAID", Cancelled = "CANCELLED" }
}

impl DeclaredPaymentStatus {
    /// Returns the payment status that responses show for an invoice that was created with this declared status.
    pub fn to_payment_status(self) -> PaymentStatus {
        match self {
            Self::Pending => PaymentStatus::Pending,
            Self::Paid => PaymentStatus::Paid,
            Self::Cancelled => PaymentStatus::Rejected,
        }
    }
}

/// Partial payments cannot be declared with a submission, so they become `Pending`.
impl From<PaymentStatus> for DeclaredPaymentStatus {
    fn from(status: PaymentStatus) -> Self {
        match status {
            PaymentStatus::Paid => Self::Paid,
            PaymentStatus::Rejected => Self::Cancelled,
            PaymentStatus::Pending | PaymentStatus::Partial => Self::Pending,
        }
    }
}

words! {
    /// The payment status that the access point API relays to the authority. Partial payments are not relayed.
    RelayedPaymentStatus { Paid = "PAID", Pending = "PENDING", Rejected = "REJECTED" }
}

impl RelayedPaymentStatus {
    /// Returns the payment status that responses show after this status was relayed.
    pub fn to_payment_status(self) -> PaymentStatus {
        match self {
            Self::Paid => PaymentStatus::Paid,
            Self::Pending => PaymentStatus::Pending,
            Self::Rejected => PaymentStatus::Rejected,
        }
    }
}

words! {
    /// The tax treatment of a sale, as callers send it to Report.
    VatStatus {
        StandardVat = "STANDARD_VAT",
        Exempt = "EXEMPT",
        NonVatable = "NON_VATABLE",
        ZeroRated = "ZERO_RATED",
    }
}

impl VatStatus {
    /// Returns the authority's name for this tax treatment.
    pub fn authority_name(self) -> &'static str {
        match self {
            Self::ZeroRated => "ZERO_VAT",
            other => other.as_str(),
        }
    }
}

words! {
    /// The state of the invoice at the authority (`authority_data.status`).
    AuthorityStatus {
        Pending = "PENDING",
        Queued = "QUEUED",
        Validated = "VALIDATED",
        Submitted = "SUBMITTED",
        Transmitted = "TRANSMITTED",
        Acknowledged = "ACKNOWLEDGED",
        Reported = "REPORTED",
        Rejected = "REJECTED",
        Failed = "FAILED",
    }
}

impl AuthorityStatus {
    /// Returns a rank that grows as the invoice advances at the authority. Rejected and failed have rank 0, because
    /// they do not show how far the invoice has come.
    pub fn progress_rank(self) -> u8 {
        match self {
            Self::Pending | Self::Queued | Self::Rejected | Self::Failed => 0,
            Self::Validated => 1,
            Self::Submitted => 2,
            Self::Transmitted => 3,
            Self::Acknowledged => 4,
            Self::Reported => 5,
        }
    }
}

words! {
    /// The message in a notice that the authority sends about an invoice.
    NoticeMessage {
        Transmitting = "TRANSMITTING",
        Acknowledged = "ACKNOWLEDGED",
        Transmitted = "TRANSMITTED",
        Failed = "FAILED",
    }
}

words! {
    /// The kind of identifier that a caller sends in `unique_no`.
    UniqueNoType {
        PortalId = "PORTAL_ID",
        Irn = "IRN",
        ExternalInvoiceNo = "EXTERNAL_INVOICE_NO",
        InternalInvoiceNo = "INTERNAL_INVOICE_NO",
    }
}

words! {
    /// The subscription of a taxpayer. Without an active subscription a taxpayer cannot create invoices.
    Subscription { Active = "active", Inactive = "inactive" }
}

/// The authority's invoice type code for a commercial invoice.
pub const INVOICE_CODE: &str = "381";
/// The authority's invoice type code for a credit note.
pub const CREDIT_NOTE_CODE: &str = "380";
/// The word for a credit note in requests whose invoice type is free text.
pub const CREDIT_NOTE_WORD: &str = "CREDIT_NOTE";

/// Returns true if documents of this type are issued by the buyer, so that the taxpayer that submits one is the buyer.
pub fn is_self_billed(type_code: &str) -> bool {
    DocumentKind::from_type_code(type_code).is_self_billed()
}

words! {
    /// The kinds of documents of which there are separate sums. Only invoices and credit notes are sales of the
    /// taxpayer. The taxpayer is the buyer of a self-billed document. Other documents, such as a waybill, claim no
    /// payment.
    DocumentKind {
        Invoice = "invoice",
        CreditNote = "credit_note",
        SelfBilled = "self_billed",
        SelfBilledCreditNote = "self_billed_credit_note",
        Other = "other",
    }
}

/// The document types that do not count as invoices: the authority's code, the name in lower case letters, and the
/// kind. The migration m0048 has the same codes and names.
const DOCUMENT_TYPES: [(&str, &str, DocumentKind); 15] = [
    (CREDIT_NOTE_CODE, "creditnote", DocumentKind::CreditNote),
    ("385", "selfbilled", DocumentKind::SelfBilled),
    ("388", "statementofaccount", DocumentKind::Other),
    ("389", "purchaseorder", DocumentKind::Other),
    ("390", "proforma", DocumentKind::Other),
    (
        "393",
        "selfbilledcreditnote",
        DocumentKind::SelfBilledCreditNote,
    ),
    ("394", "selfbilledinvoice", DocumentKind::SelfBilled),
    ("395", "creditnoterequest", DocumentKind::Other),
    ("396", "invoicerequest", DocumentKind::Other),
    ("399", "billoflading", DocumentKind::Other),
    ("400", "waybill", DocumentKind::Other),
    ("402", "shippinginstructions", DocumentKind::Other),
    ("404", "certificateoforigin", DocumentKind::Other),
    ("406", "customsdeclaration", DocumentKind::Other),
    ("408", "packinglist", DocumentKind::Other),
];

impl DocumentKind {
    /// Returns the kind of documents with this invoice type code. An unknown type counts as an invoice.
    pub fn from_type_code(type_code: &str) -> Self {
        let known = DOCUMENT_TYPES.iter().find(|(code, ..)| *code == type_code);
        known.map_or(Self::Invoice, |(.., kind)| *kind)
    }

    /// Returns the kind of documents of this type, which is given as a code or a name, such as `Credit Note`.
    pub fn from_type(code_or_name: &str) -> Self {
        let letters = code_or_name
            .chars()
            .filter(|letter| letter.is_alphanumeric());
        let folded: String = letters.flat_map(char::to_lowercase).collect();
        let named = DOCUMENT_TYPES.iter().find(|(_, name, _)| *name == folded);
        named.map_or_else(|| Self::from_type_code(&folded), |(.., kind)| *kind)
    }

    /// True for a document that counts as a sale of the taxpayer, so that the customer owes its amount or, for a credit
    /// note, owes less.
    pub fn is_sale(self) -> bool {
        matches!(self, Self::Invoice | Self::CreditNote)
    }

    pub fn is_credit_note(self) -> bool {
        matches!(self, Self::CreditNote | Self::SelfBilledCreditNote)
    }

    fn is_self_billed(self) -> bool {
        matches!(self, Self::SelfBilled | Self::SelfBilledCreditNote)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_is_known_by_its_code_and_by_its_name() {
        for (text, kind) in [
            ("380", DocumentKind::CreditNote),
            ("393", DocumentKind::SelfBilledCreditNote),
            ("Credit Note", DocumentKind::CreditNote),
            (" credit-note ", DocumentKind::CreditNote),
            (
                "Self-billed Credit Note",
                DocumentKind::SelfBilledCreditNote,
            ),
            ("385", DocumentKind::SelfBilled),
            ("394", DocumentKind::SelfBilled),
            ("Self-billed Invoice", DocumentKind::SelfBilled),
            ("390", DocumentKind::Other),
            ("Proforma", DocumentKind::Other),
            ("400", DocumentKind::Other),
            ("Bill of Lading", DocumentKind::Other),
            ("381", DocumentKind::Invoice),
            ("384", DocumentKind::Invoice),
            ("386", DocumentKind::Invoice),
            ("392", DocumentKind::Invoice),
            ("397", DocumentKind::Invoice),
            ("Credit Note Request", DocumentKind::Other),
            ("Debit Note", DocumentKind::Invoice),
            ("", DocumentKind::Invoice),
        ] {
            assert_eq!(DocumentKind::from_type(text), kind, "{text}");
        }
    }

    #[test]
    fn only_invoices_and_credit_notes_of_the_taxpayer_are_sales() {
        for (kind, is_sale, is_credit_note, is_own_purchase) in [
            (DocumentKind::Invoice, true, false, false),
            (DocumentKind::CreditNote, true, true, false),
            (DocumentKind::SelfBilled, false, false, true),
            (DocumentKind::SelfBilledCreditNote, false, true, true),
            (DocumentKind::Other, false, false, false),
        ] {
            assert_eq!(kind.is_sale(), is_sale, "{kind}");
            assert_eq!(kind.is_credit_note(), is_credit_note, "{kind}");
            assert_eq!(kind.is_self_billed(), is_own_purchase, "{kind}");
        }
        let types = DOCUMENT_TYPES.iter();
        let types = types.filter(|(.., kind)| kind.is_self_billed());
        let codes: Vec<_> = types.map(|(code, ..)| *code).collect();
        assert_eq!(codes, ["385", "393", "394"]);
        assert!(codes.into_iter().all(is_self_billed));
    }

    #[test]
    fn a_word_is_read_in_any_case_and_shown_in_its_own() {
        assert_eq!(Category::parse("b2b"), Some(Category::B2B));
        assert_eq!(
            PaymentStatus::parse("paid").map(PaymentStatus::as_str),
            Some("PAID")
        );
        assert_eq!(
            WorkflowStatus::parse("APPROVED").map(WorkflowStatus::as_str),
            Some("approved")
        );
    }

    #[test]
    fn a_blank_category_is_no_category() {
        assert_eq!(Category::parse("Blank"), None);
        assert_eq!(Category::parse(""), None);
    }

    #[test]
    fn the_three_payment_status_sets_differ() {
        assert_eq!(DeclaredPaymentStatus::parse("REJECTED"), None);
        assert_eq!(DeclaredPaymentStatus::parse("PARTIAL"), None);
        assert_eq!(PaymentStatus::parse("CANCELLED"), None);
        assert_eq!(
            DeclaredPaymentStatus::Cancelled.to_payment_status(),
            PaymentStatus::Rejected
        );
        assert_eq!(RelayedPaymentStatus::parse("PARTIAL"), None);
        assert_eq!(RelayedPaymentStatus::parse("CANCELLED"), None);
    }

    #[test]
    fn one_vat_status_has_another_name_with_the_authority() {
        let differing: Vec<_> = VatStatus::ALL
            .iter()
            .filter(|status| status.as_str() != status.authority_name())
            .collect();
        assert_eq!(differing, [&VatStatus::ZeroRated]);
        assert_eq!(VatStatus::ZeroRated.authority_name(), "ZERO_VAT");
    }
}

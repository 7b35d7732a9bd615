//! The commands of a taxpayer actor, one group of commands in each file. A command makes all checks first and changes
//! the unit of work last, so a refused command leaves no trace. Nothing here reads or writes the database.
//!
//! | Commands | File |
//! |---|---|
//! | create one invoice, with its customer and its items; create a batch | `create`, `batch` |
//! | correct a signed invoice, the numbers of its documents; the steps of a correction | `correct`, `correction_names`, `advance_correction` |
//! | change a stored customer | `customer` |
//! | import a file of invoices or a piece of it, preview it, set the import profile, add answers to it | `import` |
//! | cancel the import of a large file | `cancel_import` |
//! | replace a cancelled invoice with the invoice of a file | `replace_cancelled` |
//! | revise an invoice, set its status | `update` |
//! | a change that depends on the invoice, or on the settings, that its sender has seen | `if_unchanged`, `seen_settings` |
//! | pay; payments relayed to the authority | `payment` |
//! | the warnings about the amounts of a payment | `payment_amounts` |
//! | credit notes that are set off when an invoice is paid | `set_off` |
//! | what was paid back through a credit note | `refund` |
//! | take back a payment that was recorded by mistake | `take_back` |
//! | open a run, recheck it, lift its quarantine | `runs` |
//! | record the steps of a run, and the signature of its invoice | `steps`, `signature` |
//! | pause, resume, retry or cancel a run | `operator_actions` |
//! | transmissions, supplier invoices and outages reported by the authority | `inbound` |
//! | onboarding, profile, subscription, verification | `account` |
//! | API keys | `keys` |
//! | webhook endpoints: the default endpoint, and the commands for every endpoint; added endpoints | `webhook`, `endpoints` |
//! | replays | `replays` |
//! | the record of a link to a delivery | `share_delivery` |
//! | how the ERP receives notifications | `integration` |

mod account;
mod advance_correction;
mod batch;
mod cancel_import;
mod correct;
mod correction_names;
mod create;
mod customer;
mod endpoints;
mod if_unchanged;
mod import;
mod inbound;
mod integration;
mod keys;
mod operator_actions;
mod payment;
mod payment_amounts;
mod refund;
mod replace_cancelled;
mod replays;
mod runs;
mod seen_settings;
mod set_off;
mod share_delivery;
mod signature;
mod steps;
mod take_back;
mod update;
mod webhook;

pub use account::{ChangeProfile, Onboard, RecordVerification, SetSubscription};
pub use advance_correction::{AdvanceCorrection, CorrectionStep};
pub use batch::CreateBatch;
pub use cancel_import::CancelImport;
pub use correct::{CorrectInvoice, CorrectedInvoiceIdentifiers};
pub use create::{CreateInvoice, CreatedInvoice};
pub use customer::ChangeCustomer;
pub use endpoints::{AddEndpoint, ChangeEndpoint, RemoveEndpoint};
pub use if_unchanged::{IfUnchanged, SeenInvoice};
pub use import::{
    AddImportAnswers, FileImport, ImportInvoices, ImportPiece, PlannedInvoices, PreviewImport,
    SetImportProfile,
};
pub use inbound::{
    AcknowledgeSupplierInvoice, NotifyOutage, ReceiveSupplierInvoice, RecordReceipt,
    RecordTransmission,
};
pub use integration::{SetIntegration, StoreRefreshToken};
pub use keys::{RevokeKey, RotateKey};
pub use operator_actions::ApplyOperatorAction;
pub use payment::{ChangePayment, InvoiceAfterPayment};
pub use refund::RecordRefund;
pub use replays::{CancelReplay, StartReplay};
pub use runs::{LiftQuarantine, OpenAuditedRun, OpenRun, RecheckRun, StoppedRun};
pub use seen_settings::SeenSettings;
pub use share_delivery::ShareDelivery;
pub use steps::{RecordSteps, StepOutcome};
pub use take_back::{TakePaymentBack, check_not_paid_at_authority};
pub use update::{
    CancelUnlessCancelled, ReviseInvoice, RevisedInvoice, SetStatus, SubmissionAfterApproval,
    SubmissionOfStored,
};
pub use webhook::{DisableEndpoint, EnableEndpoint, EnabledEndpoint, RotateSecret, SetWebhook};

//! Data of the whole deployment, such as the audit, mails, outages, reconciliations and the quarantine.
//!
//! | File | Content |
//! |---|---|
//! | `activity` | the activity of an account: the actions of people and keys, newest first |
//! | `audit` | the audit trail of security changes and operator actions |
//! | `audit_row` | the table of audit entries |
//! | `breaker_orders` | the operators' orders to stop or allow the calls to an operation of the authority |
//! | `chat_hooks` | the webhook addresses of taxpayers' chats |
//! | `finding_decisions` | operators' decisions on listed findings: differences that a reconciliation could not repair |
//! | `ledger_days` | finds the invoices that a reconciliation of one day must compare: those with an event or an unfinished run on that day |
//! | `mail_choices` | the topics about which people want no mails, for some time or permanently |
//! | `mails` | the mails that wait to be sent, and those that were sent or failed |
//! | `moved_findings` | moves findings between the reconciliations of different days |
//! | `near_deadlines` | notices to people about submissions that have stopped and whose deadline is near |
//! | `notices` | the notices that wait to be sent by mail |
//! | `outage_notice_row` | the table of sent outage notifications |
//! | `outage_row` | the table of the authority's outages |
//! | `outages` | outages of the authority and the notifications about them |
//! | `owned_list` | the list of an integrator's taxpayers with what each of them needs, the worst first |
//! | `pull_cursors` | the times at which the poller last read the authority's list of invoices in transit |
//! | `quarantine` | the quarantine: commands that panicked twice, until an operator replays or drops them |
//! | `quarantine_list` | the operators' list of everything in quarantine |
//! | `quarantine_row` | the table of quarantined commands |
//! | `reconciliation_finding_row` | the table of the findings of reconciliations |
//! | `reconciliation_row` | the table of reconciliations, each of one day of one taxpayer |
//! | `reconciliations` | reconciliations and their findings |
//! | `reference_lists` | the stored copy of the authority's reference lists |
//! | `replicas` | the heartbeats of the replicas, with their figures |
//! | `request_log` | the log of the requests that accounts made |
//! | `request_log_row` | the table of the request log |
//! | `search` | searches across all taxpayers: for an invoice by its number, for an event by its id, and for the events of a trace |
//! | `supplier_document_row` | the table of the documents of supplier invoices: JSON as received from the authority |
//! | `supplier_invoice_row` | the table of supplier invoices, the inbox of a buyer |
//! | `supplier_invoices` | the inbox of supplier invoices that were pulled from the authority, with their documents as received |
//! | `taxpayer_pauses` | the taxpayers that operators have paused |
//! | `work_facts` | loads the facts about the work of all taxpayers that the conditions of incidents check |

pub mod activity;
pub mod audit;
pub mod audit_row;
pub mod breaker_orders;
pub mod chat_hooks;
pub mod finding_decisions;
pub mod ledger_days;
pub mod mail_choices;
pub mod mails;
mod moved_findings;
pub mod near_deadlines;
pub mod notices;
pub mod outage_notice_row;
pub mod outage_row;
pub mod outages;
pub mod owned_list;
pub mod pull_cursors;
pub mod quarantine;
pub mod quarantine_list;
pub mod quarantine_row;
pub mod reconciliation_finding_row;
pub mod reconciliation_row;
pub mod reconciliations;
pub mod reference_lists;
pub mod replicas;
pub mod request_log;
pub mod request_log_row;
pub mod search;
pub mod supplier_document_row;
pub mod supplier_invoice_row;
pub mod supplier_invoices;
pub mod taxpayer_pauses;
pub mod work_facts;

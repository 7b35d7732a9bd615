//! What the API tests share.
//!
//! | Concept | File |
//! |---|---|
//! | the application, one a database | `world` |
//! | its directory and its database | `directory` |
//! | the comparison of every answer with the API document | `documented` |
//! | an ERP that asks for credentials | `erp`, its side of NTLM in `ntlm` |
//! | what suppliers send | `supplies` |
//! | a person with a browser; an account with its owner | `visitor`, `account` |
//! | the sheet of an XLSX file | `workbook` |
//! | documents that another system let the authority sign | `planted` |

pub(crate) mod account;
pub(crate) mod directory;
pub(crate) mod documented;
pub(crate) mod erp;
pub(crate) mod ntlm;
pub(crate) mod planted;
pub(crate) mod supplies;
pub(crate) mod visitor;
pub(crate) mod workbook;
pub(crate) mod world;

pub(crate) use world::{run_case, run_case_with};

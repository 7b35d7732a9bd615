//! The command line: parses arguments into values and does nothing else. The commands are implemented in `app`.
//!
//! | Concept | File |
//! |---|---|
//! | the arguments of the program, and its calls | `arguments` |
//! | the calls that manage accounts and keys | `accounts` |
//! | the arguments of a fire drill | `drill` |

mod accounts;
mod arguments;
mod drill;
#[cfg(test)]
mod tests;

pub use accounts::{
    ContactCommand, IntegratorCall, KeyArguments, KeyCall, OperatorCall, TaxpayerCall,
};
pub use arguments::{Arguments, Call, ConfigCall, DemoFault, ImportArguments, SecretsCall};
pub use drill::{DrillArguments, DrillFault};

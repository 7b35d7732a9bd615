//! The command line: parses arguments into values and does nothing else. The commands are implemented in `app`.
//!
//! | Concept | File |
//! |---|---|
//! | the arguments of the program, and its commands | `arguments` |
//! | the subcommands that manage accounts and keys | `accounts` |
//! | the arguments of a fire drill | `drill` |

mod accounts;
mod arguments;
mod drill;
#[cfg(test)]
mod tests;

pub use accounts::{
    ContactSubcommand, IntegratorSubcommand, KeyArguments, KeySubcommand, OperatorSubcommand,
    TaxpayerSubcommand,
};
pub use arguments::{
    Arguments, Command, ConfigSubcommand, DemoFault, ImportArguments, SecretsSubcommand,
};
pub use drill::{DrillArguments, DrillFault};

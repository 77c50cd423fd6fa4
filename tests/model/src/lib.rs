//! A model of the handover between software terms and fast terms, for exhaustive search: which states
//! three replicas can reach, and that none of them is unsafe. It knows nothing of the product's code.
mod control;
mod forgetting;
mod log;
mod model;
mod plane;
mod properties;
mod rule;
mod state;
mod symmetry;

pub use log::{Entry, LOG_CAPACITY, Log, Mover};
pub use model::{Action, Bounds, Durability, Handover};
pub use properties::Safety;
pub use rule::Rule;
pub use state::{Message, State};
